"""``[simulate]``: the settings that a simulation compares, and the word that its table is public.

It stands in a release file whose table is public or synthetic::

    [simulate]
    public = true

or, where the release file's own table is confidential, in a file of its own that names a public
table of the same columns (an earlier census, a synthetic one)::

    [simulate]
    public     = true
    release    = "release.toml"
    allocations = ["uniform", {method = "optimal", objective = "released"}]
    mechanisms = ["discrete-gaussian"]
    measures   = ["survivors", "all"]
    estimators = ["chebyshev", {method = "sparse", penalty = 1}]
    budgets    = [{epsilon = "0.1", delta = "1e-8"}, {epsilon = 1, delta = "1e-8"}]
    baselines  = ["leaf-noise", "boninsegna"]

    [simulate.table]
    source = "census-2010.parquet"
    count  = "population"

Every list may be left out: the file's own setting is then in it, beside usual ones.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from hedgerow.errors import SpecError
from hedgerow.privacy.budget import Budget, Epsilon, EpsilonDelta, Rho
from hedgerow.spec.release_file import (
    AllocationSection,
    EstimateSection,
    MechanismName,
    PrivacySection,
    TableSection,
)
from hedgerow.spec.toml_file import Number, Section, parse, within

Baseline = Literal[
    "leaf-noise",
    "stability-histogram",
    "independent-noise",
    "uniform",
    "boninsegna",
    "ko-uniform",
    "ko-optimal",
]


class BudgetSection(Section):
    """One of ``budgets``: rho, or epsilon with delta, or epsilon alone."""

    epsilon: Number | None = None
    delta: Number | None = None
    rho: Number | None = None

    def budget(self) -> Budget:
        """Return the budget.

        Raises:
            SpecError: other keys than these.
            BudgetError: numbers that are no budget.
        """
        return within("[simulate] budgets:", _budget, self)


def _budget(given: BudgetSection) -> Budget:
    if given.rho is not None and given.epsilon is None and given.delta is None:
        return Rho(given.rho)
    if given.epsilon is None or given.rho is not None:
        raise SpecError("give one budget: rho, or epsilon with delta, or epsilon alone")
    if given.delta is None:
        return Epsilon(given.epsilon)
    return EpsilonDelta(given.epsilon, given.delta)


def _each(kind: type[Section]) -> Callable[[object], object]:
    """Return a validator of a list: entries that are a mere name become ``{method = name}``."""

    def checked(given: object) -> object:
        if not isinstance(given, list):
            return given
        return [_entry(kind, i, entry) for i, entry in enumerate(given, start=1)]

    return checked


def _entry(kind: type[Section], place: int, entry: object) -> Section:
    try:
        return kind.model_validate({"method": entry} if isinstance(entry, str) else entry)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][:1])
        unknown = first["type"] == "extra_forbidden"
        words = {
            "place": place,
            "what": f"unknown key {where!r}" if unknown else f"{where} {first['msg'].lower()}",
        }
        raise PydanticCustomError("entry", "entry {place}: {what}", words) from None


class SimulateSection(Section):
    """``[simulate]``."""

    public: bool = False
    release: str | None = None
    table: TableSection | None = None
    allocations: list[AllocationSection] | None = None
    mechanisms: list[MechanismName] | None = None
    measures: list[str] | None = None
    estimators: list[EstimateSection] | None = None
    budgets: list[BudgetSection] | None = None
    baselines: list[Baseline] | None = None

    _allocations = field_validator("allocations", mode="before")(_each(AllocationSection))
    _estimators = field_validator("estimators", mode="before")(_each(EstimateSection))
    _budgets = field_validator("budgets", mode="before")(_each(BudgetSection))

    @field_validator("measures")
    @classmethod
    def _measures(cls, given: list[str] | None) -> list[str] | None:
        """Return the names, which are those of ``[estimate] measure``."""
        for i, name in enumerate(given or (), start=1):
            try:
                EstimateSection.model_validate({"measure": name})
            except ValidationError as error:
                words = {"place": i, "what": error.errors()[0]["msg"].lower()}
                raise PydanticCustomError("entry", "entry {place}: {what}", words) from None
        return given


class SimulateFile(Section):
    """A file of its own, which names the release file."""

    simulate: SimulateSection


class _Beside(Section):
    """The section of a file that may hold others."""

    model_config = ConfigDict(extra="ignore")

    simulate: SimulateSection | None = None


def read_section(path: Path) -> tuple[SimulateSection, Path]:
    """Return the section ``[simulate]`` of a file, and the release file that it belongs to.

    Raises:
        SpecError: the file cannot be read, has no such section, breaks a rule of it, or does not
            declare the table public.
    """
    found = parse(path, _Beside).simulate
    if found is None or not found.public:
        raise SpecError(
            f"{str(path)!r} does not declare its table public, and a simulation shows exact "
            f"errors, which give a table away: write [simulate] public = true where it is public "
            f"or synthetic, and simulate on another table where it is not"
        )
    if found.release is None:
        return found, path
    return parse(path, SimulateFile).simulate, path.parent / found.release


def own_budget(privacy: PrivacySection) -> BudgetSection:
    """Return the budget of ``[privacy]``.

    Raises:
        SpecError, BudgetError: it is none.
    """
    made = BudgetSection(epsilon=privacy.epsilon, delta=privacy.delta, rho=privacy.rho)
    within("[privacy]", _budget, made)
    return made


def words_of(entry: Section) -> str:
    """Return an allocation or an estimator in a few words."""
    given: dict[str, Any] = entry.model_dump(exclude_none=True)
    given.pop("measure", None)
    words = [str(given.pop("method"))]
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
