"""``[simulate]``: the settings that a simulation compares, and that its table is public.

It stands in a release file whose table is public or synthetic, or in a file of its own that names a
release file and a public table of the same columns: docs/reference/release-file.md. A list that is
left out holds the file's own setting and common alternatives.
"""

from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, field_validator

from hedgerow.errors import SpecError
from hedgerow.spec.release_file import (
    AllocationSection,
    BudgetSection,
    EstimateSection,
    MeasureName,
    MechanismName,
    TableSection,
    WorkloadSection,
)
from hedgerow.spec.toml_file import Section, parse

Baseline = Literal[
    "leaf-noise",
    "stability-histogram",
    "independent-noise",
    "uniform",
    "boninsegna",
    "ko-uniform",
    "ko-optimal",
]


class SimulateSection(Section):
    """``[simulate]``."""

    public: bool = False
    release: str | None = None
    table: TableSection | None = None
    allocations: list[AllocationSection] | None = None
    mechanisms: list[MechanismName] | None = None
    workloads: list[WorkloadSection] | None = None
    measures: list[MeasureName] | None = None
    estimators: list[EstimateSection] | None = None
    budgets: list[BudgetSection] | None = None
    baselines: list[Baseline] | None = None

    @field_validator("allocations", "estimators", mode="before")
    @classmethod
    def _from_names(cls, given: object) -> object:
        """Turn entries that are just a name into ``{method = name}``."""
        if not isinstance(given, list):
            return given
        return [{"method": entry} if isinstance(entry, str) else entry for entry in given]

    @field_validator("workloads", mode="before")
    @classmethod
    def _from_cuboids(cls, given: object) -> object:
        """Turn entries that are just a name or a list of names into ``{cuboids = entry}``."""
        if not isinstance(given, list):
            return given
        return [each if isinstance(each, dict) else {"cuboids": each} for each in given]


class SimulateFile(Section):
    """A file of its own, which names the release file."""

    simulate: SimulateSection


class _Beside(Section):
    """The section of a file that may hold others."""

    model_config = ConfigDict(extra="ignore")

    simulate: SimulateSection | None = None


def read_section(path: Path) -> tuple[SimulateSection, Path]:
    """Return the section ``[simulate]`` of a file, and the release file that it belongs to."""
    section = parse(path, _Beside).simulate
    if section is None or not section.public:
        raise SpecError(
            f"{str(path)!r} does not declare its table public, and a simulation shows exact "
            f"errors, which reveal a table: write [simulate] public = true if it is public or "
            f"synthetic, or simulate on another table"
        )
    if section.release is None:
        return section, path
    return parse(path, SimulateFile).simulate, path.parent / section.release


def words_of(entry: Section) -> str:
    """Return a name for an allocation or an estimator."""
    given: dict[str, Any] = entry.model_dump(exclude_none=True)
    given.pop("measure", None)
    words = [str(given.pop("method", "usual"))]
    for key, value in given.items():
        if key in {"objective", "penalty"}:
            words.append(f"{value}")
        elif key in {"shares", "quantiles"}:
            words.append(" ".join(map(str, value)))
        elif key == "combine":
            words.append("combined" if value else "not combined")
        else:
            words.append(f"{key} {value}" if key == "ratio" else key)
    return " ".join(words)
