"""The sections of a release file, as it is written."""

from typing import TYPE_CHECKING, Literal

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from hedgerow.errors import SpecError
from hedgerow.noise.loss import InEpsilon
from hedgerow.noise.mechanisms import MECHANISMS, Mechanism
from hedgerow.privacy.budget import WELL_BELOW, Budget, Epsilon, EpsilonDelta, Rho
from hedgerow.privacy.neighbours import AddRemove, Neighbours, Replace
from hedgerow.spec.axis_section import AxisSection
from hedgerow.spec.toml_file import Number, Section, within

AREAS_OF_TABLE = "table"

if TYPE_CHECKING:
    MechanismName = str
else:
    MechanismName = Literal[tuple(MECHANISMS)]
"""What a file may call a mechanism: the names under which it is registered."""


class TableSection(Section):
    """``[table]``: where the records are."""

    source: str = Field(min_length=1)
    query: str | None = None
    count: str | None = None
    unit: str | None = None


class TreeSection(Section):
    """``[tree]``: the order of refinement."""

    refine: list[str] | None = None


class PrivacySection(Section):
    """``[privacy]``: who is protected, and how well."""

    neighbours: Literal["add-remove", "replace"] = "add-remove"
    contributions: int = 1
    exactly: bool | None = None
    mechanism: MechanismName = "discrete-gaussian"
    epsilon: Number | None = None
    delta: Number | None = None
    rho: Number | None = None


class PriorSection(Section):
    """``prior = {…}``: an earlier table that is public already, with the same levels."""

    source: str = Field(min_length=1)
    public: bool
    count: str | None = None

    @field_validator("source")
    @classmethod
    def _is_file(cls, source: str) -> str:
        """Return the source; a URL, which may hold a password, is refused and not quoted."""
        if "://" in source:
            raise PydanticCustomError("url", "a prior is a file, not a database; export it first")
        return source


class AllocationSection(Section):
    """``[allocation]``: how the measured depths share the budget."""

    method: Literal["uniform", "shares", "optimal", "fair", "distribution"] = "uniform"
    shares: list[Number] | None = None
    importance: list[Number] | dict[str, Number] | Literal["relative", "levels"] | None = None
    prior: PriorSection | None = None
    objective: Literal["cells", "released", "cdf", "ranges", "quantiles"] | None = None
    quantiles: list[Number] | None = None
    ratio: Number | None = None


class EstimateSection(Section):
    """``[estimate]``: how noisy counts become consistent ones."""

    method: Literal["chebyshev", "euclidean", "sparse", "least-squares", "isotonic"] | None = None
    measure: Literal["survivors", "all", "running-sums"] | None = None
    combine: bool | None = None
    penalty: Number | None = None


class InvariantSection(Section):
    """``[[invariant]]``: counts that are public and held exactly."""

    axis: str
    level: str


class LedgerSection(Section):
    """``[ledger]``: where releases of the dataset are charged."""

    database: str = Field(min_length=1)
    dataset: str


class EngineSection(Section):
    """``[engine]``: who runs the subtrees of a large release."""

    name: Literal["local", "spark"] = "local"
    master: str | None = None


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
    invariant: list[InvariantSection] = Field(default_factory=list)
    ledger: LedgerSection | None = None
    engine: EngineSection = EngineSection()
    output: OutputSection = OutputSection(directory="out")
    simulate: dict[str, object] | None = None  # see hedgerow.spec.simulate_section


def refuse_release_file(given: object, wanted: str) -> object:
    """Return what was read of another kind of file, unless it is a release file.

    Raises:
        PydanticCustomError: it is; the message says what is wanted instead.
    """
    if isinstance(given, dict) and {"table", "privacy"} <= set(given):
        raise PydanticCustomError("release-file", "this is a release file; " + wanted)
    return given


# ``[privacy]`` of a release file as types: the mechanism, the neighbours and the budget.


def mechanism_of(privacy: PrivacySection) -> type[Mechanism]:
    """Return the mechanism that a section names."""
    return MECHANISMS[privacy.mechanism]


def neighbours_of(privacy: PrivacySection, unit: str | None) -> Neighbours:
    """Return the tables that a section makes hard to tell apart.

    Args:
        privacy: the section.
        unit: the column of the table that names the unit of privacy, if there is one.

    Raises:
        SpecError: keys that do not go together.
        BudgetError: no number of contributions.
    """
    return within("[privacy]", _neighbours, privacy, unit)


def budget_of(privacy: PrivacySection) -> Budget:
    """Return the budget of a section.

    Raises:
        SpecError: none, or several, or one that the mechanism cannot keep.
        BudgetError: numbers that are no budget.
    """
    return within("[privacy]", _budget, privacy)


def _neighbours(privacy: PrivacySection, unit: str | None) -> Neighbours:
    m, exactly = privacy.contributions, privacy.exactly
    if privacy.neighbours == "add-remove":
        if exactly is not None:
            raise SpecError("exactly goes with replace neighbours; add-remove measures the total")
        return AddRemove(m, unit=unit)
    if exactly is None and unit is None and m > 1:
        raise SpecError(
            f"replace with contributions = {m} needs exactly = true (every unit has exactly "
            f"{m} records, so the total is public) or exactly = false (at most {m}; the total "
            f"is measured)"
        )
    # A unit column keeps *at most* m records a unit; only for m = 1 is that exactly m.
    return Replace(m, exactly=m == 1 if exactly is None else exactly, unit=unit)


def _budget(privacy: PrivacySection) -> Budget:
    given = {n for n in ("epsilon", "delta", "rho") if getattr(privacy, n) is not None}
    if privacy.rho is not None and given == {"rho"}:
        return Rho(privacy.rho)
    if privacy.epsilon is not None and privacy.delta is not None and len(given) == 2:
        return EpsilonDelta(privacy.epsilon, privacy.delta)
    if privacy.epsilon is not None and given == {"epsilon"}:
        if not isinstance(mechanism_of(privacy).price, InEpsilon):
            raise SpecError(
                f"{privacy.mechanism} noise has no pure epsilon; add a delta {WELL_BELOW}, or give "
                f'rho, or use mechanism = "discrete-laplace"'
            )
        return Epsilon(privacy.epsilon)
    raise SpecError(
        f"give one budget: rho, or epsilon with delta, or (for discrete-laplace) epsilon alone; "
        f"got {' and '.join(sorted(given)) or 'none'}"
    )
