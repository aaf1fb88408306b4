"""The sections of a release file, and the neighbours and budget that they describe."""

import re
from collections.abc import Callable
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast, get_args

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from hedgerow.declared import With, either
from hedgerow.errors import PlanError, SpecError, shorten
from hedgerow.noise.loss import InEpsilon
from hedgerow.noise.mechanisms import MECHANISMS
from hedgerow.plan.allocation.fair import RATIO
from hedgerow.plan.allocation.optimal import ObjectiveName
from hedgerow.plan.criteria.criterion import (
    CELLS,
    PROBABILITY,
    Bound,
    OfCount,
    OfQuantile,
    OfRecords,
    OfShare,
)
from hedgerow.plan.facts.facts import PublicTable, Zeros
from hedgerow.plan.workload import WORKLOADS, AnyWorkload, Cuboids
from hedgerow.privacy.budget import AMOUNT, DELTA, WELL_BELOW, Budget, Epsilon, EpsilonDelta, Rho
from hedgerow.privacy.neighbours import CONTRIBUTIONS, AddRemove, Neighbours, Replace
from hedgerow.spec.axis_section import AxisSection
from hedgerow.spec.toml_file import Number, Section, fitting, made_of, within
from hedgerow.tables.description import Description, paragraphs
from hedgerow.text import Exact, Texts, exact


def _is_file(source: str) -> str:
    """Refuse a URL, which may hold a password, without quoting it."""
    if "://" in source:
        raise PydanticCustomError("url", "must name a file, not a database; export the table first")
    return source


PublicFile = Annotated[str, Field(min_length=1), AfterValidator(_is_file)]


class PublicSection(Section):
    """``[[public]]``: what public rules and files say of cells beside a spine."""

    zeros: Annotated[
        Literal["unlisted", "listed"] | dict[str, list[str]] | None,
        fitting(
            'must be "unlisted" or "listed" with a source, or columns with lists of codes, such as '
            '{hhgq = ["nursing"], votingage = ["minor"]}'
        ),
    ] = None
    source: PublicFile | None = None
    at_least: str | None = None
    at_most: str | None = None


def public_fact(section: PublicSection, folder: Path) -> Zeros | PublicTable:
    """Return the fact of a section; its file is relative to a folder, and not yet read."""
    if section.source is not None:
        zeros = cast("Any", section.zeros)  # a table refuses a rule
        bounds = section.at_least, section.at_most
        return PublicTable(folder / section.source, zeros, *bounds)
    if not isinstance(section.zeros, dict) or section.at_least or section.at_most:
        raise SpecError(
            "[[public]] without a source is a rule, and has zeros alone: columns with lists of "
            'codes, such as {hhgq = ["nursing"], votingage = ["minor"]}'
        )
    return Zeros(section.zeros)


class DescribeSection(Section):
    """``[describe]``: title, unit, source and labels; all of it is published."""

    title: str = Field(default="", min_length=1)
    unit: str = Field(default="", min_length=1)
    publisher: str = Field(default="", min_length=1)
    period: str = Field(default="", min_length=1)
    notes: str = Field(default="", min_length=1)
    licence: str = Field(default="", min_length=1)
    language: str = Field(default="", min_length=1)
    axes: dict[str, str] = Field(default_factory=dict)
    levels: dict[str, str | dict[str, str]] = Field(default_factory=dict)


def described_by(section: DescribeSection) -> Description:
    """Return what a section says, or raise for a text that cannot be published.

    Raises:
        TableError: it has control characters, or is no language's tag.
        SpecError: a level with two labels.
    """
    said = section.model_dump(exclude={"notes", "levels"})
    levels = {}
    for name, given in section.levels.items():
        inner = {name: given} if isinstance(given, str) else {}
        if isinstance(given, dict):  # as TOML reads ``origin.region = …``
            inner = {f"{name}.{level}": label for level, label in given.items()}
        for full, label in inner.items():
            if full in levels:
                raise SpecError(f"levels labels {full!r} twice; label it once")
            levels[full] = label
    return Description(**said, notes=paragraphs(section.notes), levels=levels)


if TYPE_CHECKING:
    MechanismName = str
    WorkloadName = str
else:
    MechanismName = Literal[tuple(MECHANISMS)]
    WorkloadName = Literal[tuple(WORKLOADS)]
"""The names under which mechanisms and workloads are registered."""

PURE = [name for name, kind in MECHANISMS.items() if isinstance(kind.price, InEpsilon)]
"""The mechanisms that are bought with a pure ε."""


class TableSection(Section):
    """``[table]``: where the records are."""

    source: str = Field(min_length=1)
    query: str | None = None
    count: str | None = None
    unit: str | None = None


class TreeSection(Section):
    """``[tree]``: the order of refinement."""

    refine: list[str] | None = None


class WorkloadSection(Section):
    """``[workload]``: which cuboids are measured."""

    cuboids: Annotated[
        WorkloadName | list[str],
        fitting(
            f"must be {', '.join(map(dumps, WORKLOADS))} or a list of names, such as "
            f'["origin.region"]',
            *WORKLOADS,
        ),
    ] = "chain"
    chain: bool = False

    @property
    def workload(self) -> AnyWorkload:
        """Return the workload, or raise a PlanError for cuboids that cannot be named."""
        if isinstance(self.cuboids, list):
            return Cuboids(self.cuboids, chain=self.chain)
        if self.chain:
            raise PlanError('chain = true goes with a list of cuboids: cuboids = ["…"]')
        return WORKLOADS[self.cuboids]

    @property
    def words(self) -> str:
        """The workload in words."""
        if isinstance(self.cuboids, str):
            return self.cuboids
        more = len(self.cuboids) - 2
        named = ", ".join(map(shorten, self.cuboids[:2])) + (
            f" and {more} more" if more > 0 else ""
        )
        return f"chain with {named}" if self.chain else named


class BudgetSection(Section):
    """A budget: rho, or epsilon with delta, or epsilon alone."""

    epsilon: Annotated[Number | None, AMOUNT] = None
    delta: Annotated[Number | None, DELTA] = None
    rho: Annotated[Number | None, AMOUNT] = None

    def budget(self, where: str = "[simulate] budgets:") -> Budget:
        """Return the budget, or raise for other keys; errors begin with ``where``."""
        return within(where, self._budget)

    def _budget(self) -> Budget:
        kinds: dict[Texts, Callable[..., Budget]] = {
            ("rho",): Rho, ("epsilon",): Epsilon, ("epsilon", "delta"): EpsilonDelta,
        }  # fmt: skip
        rule = (
            f"give one budget: rho, or epsilon with delta, or (for {' or '.join(PURE)}) epsilon "
            f"alone;"
        )
        return made_of(self, {"epsilon", "delta", "rho"}, kinds, rule)


class PrivacySection(BudgetSection):
    """``[privacy]``: who is protected, and how well."""

    neighbours: Literal["add-remove", "replace"] = "add-remove"
    contributions: Annotated[int, CONTRIBUTIONS] = 1
    exactly: Annotated[
        bool | None,
        With(("neighbours",), ("replace",), advice="; add-remove measures the total"),
    ] = None
    mechanism: MechanismName = "discrete-gaussian"


class PriorSection(Section):
    """``prior = {…}``: an earlier public table with the same levels."""

    source: PublicFile
    public: bool
    count: str | None = None
    columns: dict[str, list[str]] | None = None


Numbers = list[Number] | dict[str, list[Number]] | dict[str, Number]
"""One a depth; a list an axis; or one a cuboid or level by its name."""


OfTrees = Literal["cdf", "ranges", "quantiles"]
"""What the tree of a distribution is designed for."""


def by_method(*methods: str, is_needed: bool = False) -> With:
    """Return that a key goes with some methods of allocation."""
    return With(("method",), methods, is_needed=is_needed)


class AllocationSection(Section):
    """``[allocation]``: how the measured cuboids share the budget."""

    method: Literal["uniform", "shares", "optimal", "fair", "distribution"] | None = None
    shares: Annotated[Numbers | None, by_method("shares")] = None
    levels: Annotated[dict[str, Number] | None, by_method("shares"), With(("queries",))] = None
    queries: Annotated[
        dict[str, dict[str, Number]] | None,
        by_method("shares"),
        With(("levels",), advice=': levels = {county = "1/4", ...}'),
    ] = None
    importance: Annotated[
        Numbers | Literal["relative", "levels"] | None, by_method("optimal", "fair")
    ] = None
    prior: Annotated[PriorSection | None, by_method("optimal")] = None
    objective: Annotated[ObjectiveName | OfTrees | None, by_method("optimal", "distribution")] = (
        None
    )
    quantiles: Annotated[
        list[Number] | None,
        by_method("distribution"),
        With(("objective",), ("quantiles",), is_needed=True),
    ] = None
    ratio: Annotated[Number | None, RATIO, by_method("fair", is_needed=True)] = None

    def check(self) -> None:
        """Raise a SpecError for keys that do not go together."""
        self.check_together()
        if self.method == "shares" and (self.shares is None) == (self.levels is None):
            raise SpecError(
                'method = "shares" takes shares = [...], or levels and queries, not both'
            )
        if self.method == "fair" and isinstance(self.importance, dict | str):
            raise SpecError('method = "fair" takes importance as a list')
        own = "optimal"
        others = OfTrees
        if self.objective in get_args(OfTrees):
            own = "distribution"
            others = ObjectiveName
        if self.objective is not None and self.method != own:
            raise SpecError(
                f'objective = "{self.objective}" goes with method = "{own}"; that of '
                f'"{self.method}" is {either(get_args(others))}'
            )


MeasureName = Literal["survivors", "all", "running-sums"]


class EstimateSection(Section):
    """``[estimate]``: how noisy counts become consistent ones."""

    method: Literal["chebyshev", "euclidean", "sparse", "least-squares", "isotonic"] | None = None
    measure: MeasureName | None = None
    penalty: Number | None = None


class InvariantSection(Section):
    """``[[invariant]]``: counts that are public and held exactly."""

    axis: str
    level: str


_PART = re.compile(r"\s*([0-9./]+)\s*(%|%\s+of\s+records|points)\s*")
"""``"1 %"`` of each count, ``"0.5 % of records"``, or ``"0.5 points"`` of a share."""


class AcceptSection(Section):
    """``[[accept]]``: how far counts may be off, of how many cells, with what probability."""

    cuboid: str
    within: Number
    least: int | None = Field(default=None, alias="from")
    areas: PublicFile | None = None
    area_column: Annotated[str | None, With(("areas",))] = None
    share: str | None = None
    quantile: Annotated[dict[str, Number] | None, Field(min_length=1, max_length=1)] = None
    cells: Annotated[Number, CELLS] = 1
    probability: Annotated[Number, PROBABILITY] = "0.95"
    records: int | None = None
    sizes: PriorSection | None = None

    @property
    def bound(self) -> Exact | Bound:
        """The bound, or raise for what is none."""
        self.check_together()
        part = _PART.fullmatch(str(self.within))
        number = self.within if part is None else exact(part[1], "within", SpecError) / 100
        unit = "" if part is None else " ".join(part[2].split())
        least = 1 if self.least is None else self.least
        match (unit, self.least, self.share, self.quantile):
            case ("", None, None, None):
                return number
            case ("%", int(), None, None):
                return OfCount(number, least=least)
            case ("% of records", None, None, None):
                return OfRecords(number)
            case ("points", _, str(share), None):
                return OfShare(number, share, least=least)
            case ("", _, None, dict(quantile)):
                ((axis, rank),) = quantile.items()
                return OfQuantile(number, axis, rank, least=least)
        raise SpecError(
            'within must be a number of records, or "1 %" of the count with from = 1000, from '
            'which size on it must hold, or "0.5 % of records", got '
            f'{shorten(str(self.within))!r}; "0.5 points" goes with share, a number of units of '
            "the axis with quantile"
        )


class LedgerSection(Section):
    """``[ledger]``: where releases of the dataset are charged."""

    database: str = Field(min_length=1)
    dataset: str


class EngineSection(Section):
    """``[engine]``: where the subtrees of a large release run."""

    name: Literal["local", "spark"] = "local"
    master: Annotated[str | None, With(("name",), ("spark",))] = None


class OutputSection(Section):
    """``[output]``: where the release appears."""

    directory: str = Field(min_length=1)


class ReleaseFile(Section):
    """The whole file."""

    table: TableSection
    axis: list[AxisSection] = Field(min_length=1)
    tree: TreeSection = TreeSection()
    workload: WorkloadSection = WorkloadSection()
    privacy: PrivacySection
    allocation: AllocationSection = AllocationSection()
    estimate: EstimateSection = EstimateSection()
    invariant: list[InvariantSection] = Field(default_factory=list)
    public: list[PublicSection] = Field(default_factory=list)
    accept: list[AcceptSection] = Field(default_factory=list)
    ledger: LedgerSection | None = None
    engine: EngineSection = EngineSection()
    output: OutputSection = OutputSection(directory="out")
    describe: DescribeSection = DescribeSection()
    simulate: dict[str, object] | None = None  # see hedgerow.spec.simulate_settings


def neighbours_of(privacy: PrivacySection, unit: str | None) -> Neighbours:
    """Return the neighbours of a section; ``unit`` is the column that names the unit of privacy."""
    return within("[privacy]", _neighbours, privacy, unit)


def budget_of(privacy: PrivacySection) -> Budget:
    """Return the budget of a section, or raise unless the mechanism can spend it."""
    budget = privacy.budget("[privacy]")
    if isinstance(budget, Epsilon) and privacy.mechanism not in PURE:
        raise SpecError(
            f"[privacy] {privacy.mechanism} noise has no pure epsilon; add a delta {WELL_BELOW}, "
            f"or give rho, or use mechanism = {' or '.join(map(dumps, PURE))}"
        )
    return budget


def _neighbours(privacy: PrivacySection, unit: str | None) -> Neighbours:
    privacy.check_together()
    m = privacy.contributions
    exactly = privacy.exactly
    if privacy.neighbours == "add-remove":
        return AddRemove(m, unit=unit)
    if exactly is None and unit is None and m > 1:
        raise SpecError(
            f"replace with contributions = {m} needs exactly = true (every unit has exactly "
            f"{m} records, so the total is public) or exactly = false (at most {m}; the total "
            f"is measured)"
        )
    # A unit column keeps *at most* m records a unit; only for m = 1 is that exactly m.
    return Replace(m, exactly=m == 1 if exactly is None else exactly, unit=unit)
