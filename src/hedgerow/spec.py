"""The release file: TOML in, trees, plans and estimators out. Strings become types here alone."""

import difflib
import tomllib
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from hedgerow.errors import BudgetError, NoiseError, PlanError, SpecError, TableError
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.named import ESTIMATORS
from hedgerow.noise.mechanisms import MECHANISMS, DiscreteGaussian, DiscreteLaplace
from hedgerow.plan.allocation import Allocation, Shares, Uniform
from hedgerow.plan.depths import Invariant
from hedgerow.plan.plan import Plan, make_plan
from hedgerow.privacy.budget import Budget, Epsilon, EpsilonDelta, Rho
from hedgerow.privacy.ledger import Ledger
from hedgerow.privacy.neighbours import AddRemove, Neighbours, Replace
from hedgerow.privacy.profile import Guarantee, Profile, compose, read_profile
from hedgerow.release.charging import Charging
from hedgerow.release.manifest import read_manifest
from hedgerow.tables.axis import Axis, check_names
from hedgerow.tables.counts import Counts
from hedgerow.tables.read import Query, read_areas
from hedgerow.tables.tree import Tree

Number = int | Decimal | str
AREAS_OF_TABLE = "table"

T = TypeVar("T")
F = TypeVar("F", bound="Section")


class Section(BaseModel):
    """A section of the file: unknown keys are refused, nothing is converted silently."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, arbitrary_types_allowed=True
    )


class TableSection(Section):
    """``[table]``: where the records are."""

    source: str = Field(min_length=1)
    query: str | None = None
    count: str | None = None
    unit: str | None = None


class AxisSection(Section):
    """``[[axis]]``: one hierarchy and its public list of areas."""

    name: str
    levels: list[str]
    columns: list[str] | None = None
    areas: str = Field(min_length=1)
    not_stated: str | None = None


class TreeSection(Section):
    """``[tree]``: the order of refinement."""

    refine: list[str] | None = None


class PrivacySection(Section):
    """``[privacy]``: who is protected, and how well."""

    neighbours: Literal["add-remove", "replace"] = "add-remove"
    contributions: int = 1
    exactly: bool | None = None
    mechanism: Literal["discrete-gaussian", "discrete-laplace"] = "discrete-gaussian"
    epsilon: Number | None = None
    delta: Number | None = None
    rho: Number | None = None


class AllocationSection(Section):
    """``[allocation]``: how the measured depths share the budget."""

    method: Literal["uniform", "shares"] = "uniform"
    shares: list[Number] | None = None


class EstimateSection(Section):
    """``[estimate]``: how noisy counts become consistent ones."""

    method: Literal["chebyshev", "euclidean"] = "chebyshev"


class InvariantSection(Section):
    """``[[invariant]]``: counts that are public and held exactly."""

    axis: str
    level: str


class LedgerSection(Section):
    """``[ledger]``: where releases of the dataset are charged."""

    database: str = Field(min_length=1)
    dataset: str


class OutputSection(Section):
    """``[output]``: where the release appears."""

    directory: str = Field(min_length=1)


class ReleaseFile(Section):
    """The whole file."""

    table: TableSection
    axis: list[AxisSection] = Field(min_length=1)
    tree: TreeSection = TreeSection()
    privacy: PrivacySection
    allocation: AllocationSection = AllocationSection()
    estimate: EstimateSection = EstimateSection()
    invariant: list[InvariantSection] = []
    ledger: LedgerSection | None = None
    output: OutputSection = OutputSection(directory="out")


class UseSection(Section):
    """``[[use]]``: a mechanism, or a guarantee, and how often it is used."""

    mechanism: Literal["discrete-gaussian", "discrete-laplace", "guarantee"]
    sigma2: Number | None = None
    scale: Number | None = None
    epsilon: Number | None = None
    delta: Number | None = None
    times: int = 1
    shift: int = 1


class AccountFile(Section):
    """A list of mechanisms to account for."""

    use: list[UseSection] = Field(min_length=1)


def read_account(path: Path) -> Profile:
    """The profile of a TOML list of mechanisms, or of a release (its directory or manifest)."""
    if path.is_dir() or path.suffix == ".json":
        manifest = read_manifest(path if path.is_dir() else path.parent)
        return read_profile(manifest["plan"]["guarantee"])
    file = _parse(path, AccountFile)
    return compose(_within(f"[[use]] {i}", _use, use) for i, use in enumerate(file.use, start=1))


def _use(use: UseSection) -> tuple[Guarantee, int, int]:
    wanted = {
        "discrete-gaussian": ({"sigma2"},),
        "discrete-laplace": ({"scale"},),
        "guarantee": ({"epsilon"}, {"epsilon", "delta"}),
    }[use.mechanism]
    keys = ("sigma2", "scale", "epsilon", "delta")
    given = {key: getattr(use, key) for key in keys if getattr(use, key) is not None}
    if set(given) not in wanted:
        names = " or ".join(" and ".join(sorted(names)) for names in wanted)
        raise SpecError(f"{use.mechanism} takes {names}, got {', '.join(given) or 'nothing'}")
    kinds: dict[tuple[str, ...], Callable[..., Guarantee]] = {
        ("sigma2",): DiscreteGaussian,
        ("scale",): DiscreteLaplace,
        ("epsilon",): Epsilon,
        ("epsilon", "delta"): EpsilonDelta,
    }
    return kinds[tuple(given)](*given.values()), use.times, use.shift


class ReleaseSpec:
    """A release file and where it lies; relative paths in it are relative to it."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.file = _parse(self.path, ReleaseFile)

    @property
    def output(self) -> Path:
        """Where the release appears.

        Raises:
            SpecError: inside the folder that the table is read from: the next run would read it.
        """
        output = self.path.parent / self.file.output.directory
        source = self._source()
        folder = source if isinstance(source, Path) and source.is_dir() else None
        if folder is not None and folder.resolve() in output.resolve().parents:
            raise SpecError("[output] directory lies inside the folder of the table; move it")
        return output

    @property
    def estimator(self) -> Estimator:
        """From ``[estimate]``."""
        return ESTIMATORS[self.file.estimate.method]()

    @property
    def ledger_path(self) -> Path:
        """Where the ledger of ``[ledger]`` lies.

        Raises:
            SpecError: the file names none.
        """
        if self.file.ledger is None:
            raise SpecError("the release file has no [ledger] with its database and dataset")
        return self.path.parent / self.file.ledger.database

    @property
    def charging(self) -> Charging | None:
        """From ``[ledger]``; the ledger must be there (hedgerow ledger open)."""
        if self.file.ledger is None:
            return None
        return _within("[ledger]", lambda: Charging(Ledger(self.ledger_path), self.dataset))

    @property
    def dataset(self) -> str:
        """What the ledger calls the dataset."""
        return "" if self.file.ledger is None else self.file.ledger.dataset

    def tree(self) -> Tree:
        """From ``[[axis]]`` and ``[tree]``; reads the public lists (and no confidential table,
        unless the file asserts that the table's own list is public).
        """  # noqa: D205
        axes = [_within(f"[[axis]] {axis.name!r}", self._axis, axis) for axis in self.file.axis]
        return _within("[tree]", Tree, axes, self.file.tree.refine)

    def plan(self, tree: Tree) -> Plan:
        """From ``[privacy]``, ``[allocation]`` and ``[[invariant]]``."""
        privacy = self.file.privacy
        return make_plan(
            tree,
            budget=_within("[privacy]", _budget, privacy),
            neighbours=self.neighbours,
            mechanism={kind.name: kind for kind in MECHANISMS}[privacy.mechanism],
            allocation=_within("[allocation]", _allocation, self.file.allocation),
            invariants=[Invariant(i.axis, i.level) for i in self.file.invariant],
        )

    def counts(self, tree: Tree) -> Counts:
        """The confidential table of ``[table]``."""
        table = self.file.table
        return _within(
            "[table]",
            lambda: Counts.from_frame(
                tree,
                self._source(),
                count=table.count,
                unit=table.unit,
                contributions=self.file.privacy.contributions,
            ),
        )

    def _axis(self, axis: AxisSection) -> Axis:
        check_names(axis.name, tuple(axis.levels), tuple(axis.columns or axis.levels))
        of_table = axis.areas == AREAS_OF_TABLE
        columns = axis.columns if of_table and axis.columns else axis.levels
        source = self._source() if of_table else self.path.parent / axis.areas
        areas = read_areas(source, columns, repeated=of_table)
        return Axis.from_frame(
            axis.name,
            areas.rename(dict(zip(columns, axis.levels, strict=True))),
            axis.levels,
            columns=axis.columns,
            not_stated=axis.not_stated,
            from_table=of_table,
        )

    def _source(self) -> Path | Query:
        table = self.file.table
        if "://" not in table.source:
            if table.query is not None:
                raise SpecError("[table] query needs a database URL as source")
            return self.path.parent / table.source
        if table.query is None:
            raise SpecError('[table] a database URL as source needs query = "SELECT …"')
        return Query(table.source, table.query)

    @property
    def neighbours(self) -> Neighbours:
        """From ``[privacy]``."""
        return _within("[privacy]", self._neighbours)

    def _neighbours(self) -> Neighbours:
        privacy, unit = self.file.privacy, self.file.table.unit
        m, exactly = privacy.contributions, privacy.exactly
        if privacy.neighbours == "add-remove":
            if exactly is not None:
                raise SpecError(
                    "exactly goes with replace neighbours; add-remove measures the total"
                )
            return AddRemove(m, unit=unit)
        if exactly is None and unit is None and m > 1:
            raise SpecError(
                f"replace with contributions = {m} needs exactly = true (every unit has exactly "
                f"{m} records, so the total is public) or exactly = false (at most {m}; the total "
                f"is measured)"
            )
        # A unit column keeps *at most* m records a unit; only for m = 1 is that exactly m.
        return Replace(m, exactly=m == 1 if exactly is None else exactly, unit=unit)


def _within(where: str, make: Callable[..., T], *given: Any) -> T:
    """What ``make`` gives; an error says in which section of the file it arose."""
    try:
        return make(*given)
    except (TableError, NoiseError, BudgetError, PlanError, SpecError) as error:
        if str(error).startswith("["):
            raise
        raise type(error)(f"{where} {error}", confidential=error.confidential) from error


def _budget(privacy: PrivacySection) -> Budget:
    given = {n for n in ("epsilon", "delta", "rho") if getattr(privacy, n) is not None}
    if privacy.rho is not None and given == {"rho"}:
        return Rho(privacy.rho)
    if privacy.epsilon is not None and privacy.delta is not None and len(given) == 2:
        return EpsilonDelta(privacy.epsilon, privacy.delta)
    if privacy.epsilon is not None and given == {"epsilon"}:
        return Epsilon(privacy.epsilon)
    raise SpecError(
        f"give one budget: rho, or epsilon with delta, or (for discrete-laplace) epsilon alone; "
        f"got {' and '.join(sorted(given)) or 'none'}"
    )


def _allocation(allocation: AllocationSection) -> Allocation:
    if (allocation.shares is not None) != (allocation.method == "shares"):
        raise SpecError('shares = [...] goes with method = "shares", and only with it')
    return Uniform() if allocation.shares is None else Shares(allocation.shares)


def _parse(path: Path, kind: type[F]) -> F:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise SpecError(f"cannot read the release file {str(path)!r}: {reason}") from None
    try:
        return kind.model_validate(tomllib.loads(text, parse_float=Decimal))
    except (ValueError, RecursionError) as error:
        if isinstance(error, ValidationError):
            raise SpecError(_first_error(error.errors(), kind)) from None
        raise SpecError(f"{str(path)!r} is not TOML: {error}") from None


def _first_error(errors: list[ErrorDetails], kind: type[BaseModel]) -> str:
    """One sentence for the first thing that is wrong, unknown keys first: they explain others."""
    error = min(errors, key=lambda e: e["type"] != "extra_forbidden")
    path = [
        str(part) for part in error["loc"] if part not in {"int", "str", "is-instance[Decimal]"}
    ]
    where, key = _place(path)
    if error["type"] == "extra_forbidden":
        return f"{where}unknown key {key!r}{_nearest(path, kind)}"
    if error["type"] == "missing":
        return f"{where}{key} is missing" if where else f"[{key}] is missing"
    given = error["input"]
    short = isinstance(given, str | int | Decimal) and len(str(given)) < 80
    shown = f", got {given!r}" if short and "://" not in str(given) else ""
    return f"{where}{key}: {error['msg'].lower()}{shown}"


def _place(path: list[str]) -> tuple[str, str]:
    """``[section] `` and the key within it."""
    if len(path) < 2:
        return "", path[0] if path else "the file"
    number = f" {int(path[1]) + 1}" if path[1].isdigit() else ""
    name = f"[[{path[0]}]]{number}" if number else f"[{path[0]}]"
    keys = path[2:] if number else path[1:]
    return f"{name} ", keys[0] if keys else "the section"


def _nearest(path: list[str], section: type[BaseModel]) -> str:
    for part in path[:-1]:
        field = section.model_fields.get(part)
        if field is None:
            continue
        inner = getattr(field.annotation, "__args__", (field.annotation,))[0]
        section = inner if isinstance(inner, type) and issubclass(inner, BaseModel) else section
    known = list(section.model_fields)
    near = difflib.get_close_matches(path[-1], known, n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(known)}"
