"""The settings that a ``[simulate]`` section compares: combinations of its lists, and baselines."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import ConfigDict

from hedgerow.declared import frozen
from hedgerow.errors import HedgerowError, SpecError
from hedgerow.estimate.families.euclidean import Euclidean
from hedgerow.evaluate.baselines import (
    IndependentNoise,
    LeafNoise,
    StabilityHistogram,
    boninsegna,
    ko,
)
from hedgerow.evaluate.method import Method, Setting, budget_text
from hedgerow.limits import MOST_CELLS_OF_RUNS
from hedgerow.noise.mechanisms import MECHANISMS, DiscreteGaussian
from hedgerow.plan.allocation.allocation import Allocation, Uniform
from hedgerow.plan.allocation.optimal import Optimal
from hedgerow.plan.cuboids import All, Survivors
from hedgerow.plan.make import make_plan
from hedgerow.plan.plan import Plan
from hedgerow.plan.workload import Chain
from hedgerow.privacy.budget import Budget
from hedgerow.spec.release_file import (
    AllocationSection,
    BudgetSection,
    EstimateSection,
    MeasureName,
    MechanismName,
    PrivacySection,
    TableSection,
    WorkloadSection,
)
from hedgerow.spec.release_spec import ReleaseSpec
from hedgerow.spec.toml_file import Section, called_by, parse
from hedgerow.tables.tree import Tree
from hedgerow.text import Json

Baseline = Literal[
    "uniform",
    "boninsegna",
    "ko-uniform",
    "ko-optimal",
    "independent-noise",
    "leaf-noise",
    "stability-histogram",
]


class SimulateSection(Section):
    """``[simulate]``."""

    public: bool = False
    release: str | None = None
    table: TableSection | None = None
    allocations: list[Annotated[AllocationSection, called_by("method")]] | None = None
    mechanisms: list[MechanismName] | None = None
    workloads: list[Annotated[WorkloadSection, called_by("cuboids")]] | None = None
    measures: list[MeasureName] | None = None
    estimators: list[Annotated[EstimateSection, called_by("method")]] | None = None
    budgets: list[BudgetSection] | None = None
    baselines: list[Baseline] | None = None


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


def own_budget(privacy: PrivacySection) -> BudgetSection:
    """Return the budget of ``[privacy]``, or raise if there is none."""
    privacy.budget("[privacy]")
    return BudgetSection(epsilon=privacy.epsilon, delta=privacy.delta, rho=privacy.rho)


def words_of(entry: Section) -> str:
    """Return a name for an allocation or an estimator."""
    given: Json = entry.model_dump(exclude_none=True)
    given.pop("measure", None)
    words = [str(given.pop("method", "usual"))]
    for key, value in given.items():
        if key in {"objective", "penalty"}:
            words.append(f"{value}")
        elif key in {"shares", "quantiles"}:
            words.append(" ".join(map(str, value)))
        else:
            words.append(f"{key} {value}" if key == "ratio" else key)
    return " ".join(words)


USUAL_ESTIMATORS = ("chebyshev", "euclidean", "sparse")
BASELINES: tuple[Baseline, ...] = get_args(Baseline)

Made = tuple[str, Method | HedgerowError]
"""A name, and the setting or the reason why it is impossible."""


@frozen
class LeftOut:
    """An impossible setting, and the reason."""

    name: str
    reason: str


@frozen
class Combination:
    """One combination of the lists of a file, as sections; the estimator's has no measure."""

    budget: BudgetSection
    mechanism: str
    workload: WorkloadSection
    allocation: AllocationSection
    measure: str
    estimator: EstimateSection

    def is_same(self, other: "Combination") -> bool:
        """Return whether both are equal, however the budget's numbers are written."""
        one, two = (replace(each, budget=BudgetSection()) for each in (self, other))
        return one == two and self.budget.budget() == other.budget.budget()


@frozen
class Comparison:
    """The settings that a section compares: its lists, and for the rest the release file."""

    section: SimulateSection
    release: ReleaseSpec

    def settings(self, tree: Tree) -> tuple[list[Method], list[LeftOut]]:
        """Return what to compare, and what is impossible; raise if nothing is left."""
        possible = []
        left_out = []
        for name, made in (*self._combined(tree), *self._baselines(tree)):
            if isinstance(made, HedgerowError):
                left_out.append(LeftOut(name, str(made)))
            else:
                possible.append(made)
        if not possible:
            raise SpecError(f"[simulate] leaves no setting to compare: {left_out[0].reason}")
        return possible, left_out

    def own(self) -> Combination:
        """Return the release file's own setting."""
        file = self.release.file
        method = {"measure": None, "method": self.release.estimator.name}
        return Combination(
            own_budget(file.privacy),
            file.privacy.mechanism,
            file.workload,
            file.allocation,
            self.release.measure.name,
            file.estimate.model_copy(update=method),
        )

    def _mechanisms(self) -> list[str]:
        return [*(self.section.mechanisms or [self.release.file.privacy.mechanism])]

    def combinations(self) -> list[Combination]:
        """Return those of the lists, each once, the file's own first where a list is left out."""
        section = self.section
        own = self.own()
        measures: Sequence[str] = section.measures or [own.measure, Survivors.name, All.name]
        combinations: list[Combination] = []
        for workload in section.workloads or [own.workload]:
            allocations, estimators = _usual(own, workload)
            for budget, mechanism, allocation, measure, estimator in product(
                section.budgets or [own.budget],
                self._mechanisms(),
                section.allocations or allocations,
                measures,
                section.estimators or estimators,
            ):
                own_measure = estimator.measure or measure
                alone = estimator.model_copy(update={"measure": None})
                given = Combination(budget, mechanism, workload, allocation, own_measure, alone)
                if not any(map(given.is_same, combinations)):
                    combinations.append(given)
        return combinations

    def _combined(self, tree: Tree) -> Iterator[Made]:
        plans = {}
        taken: set[str] = set()
        usual = self.section.measures is None
        for given in self.combinations():
            own = self._name(given)
            spec = self._spec(given)
            tries = (own, *(f"{own} #{i}" for i in range(2, len(taken) + 3)))
            name = next(each for each in tries if each not in taken)
            taken.add(name)
            too_large = given.measure == All.name and tree.leaves > MOST_CELLS_OF_RUNS
            if too_large and usual and given.measure != self.own().measure:
                yield name, SpecError(f'{tree.leaves:,} leaves: ask for measures = ["all"]')
                continue
            key = repr(replace(given, estimator=EstimateSection()))
            if key not in plans:
                plans[key] = _attempt(spec.plan, tree)
            yield name, _setting(name, plans[key], spec)

    def _spec(self, given: Combination) -> ReleaseSpec:
        """Return the release file with the sections of a combination."""
        privacy = {"mechanism": given.mechanism, **given.budget.model_dump()}
        return with_sections(
            self.release,
            privacy=self.release.file.privacy.model_copy(update=privacy),
            workload=given.workload,
            allocation=given.allocation,
            estimate=given.estimator.model_copy(update={"measure": given.measure}),
        )

    def _name(self, given: Combination) -> str:
        name = f"{words_of(given.allocation)}, {given.measure}, {words_of(given.estimator)}"
        if len(self.section.workloads or ()) > 1:
            name = f"{given.workload.words}, {name}"
        own = " (own)" if given.is_same(self.own()) else ""
        return name + self._suffix(given.budget, given.mechanism) + own

    def _suffix(self, budget: BudgetSection, mechanism: str | None) -> str:
        """Return the suffix of a name where there are several budgets or mechanisms."""
        several = mechanism is not None and len(self.section.mechanisms or ()) > 1
        words = [str(mechanism)] if several else []
        if len(self.section.budgets or ()) > 1:
            words.append(budget_text(budget.budget()))
        return "".join(f", {word}" for word in words)

    def _baselines(self, tree: Tree) -> Iterator[Made]:
        own = self.own()
        wanted = BASELINES if self.section.baselines is None else self.section.baselines
        for given, baseline in product(self.section.budgets or [own.budget], wanted):
            if baseline == "uniform":
                even = AllocationSection(method="uniform")
                setting = replace(own, budget=given, allocation=even)
                if not any(map(setting.is_same, self.combinations())):  # else it is there already
                    name = self._name(setting)
                    spec = self._spec(setting)
                    yield name, _setting(name, _attempt(spec.plan, tree), spec)
                continue
            noisy = baseline in {"leaf-noise", "independent-noise"}
            kinds: Sequence[str | None] = self._mechanisms() if noisy else [None]
            for kind in kinds:
                name = baseline.replace("-", " ") + self._suffix(given, kind)
                yield name, _attempt(self._baseline, tree, baseline, given.budget(), kind, name)

    def _baseline(
        self, tree: Tree, baseline: Baseline, budget: Budget, kind: str | None, name: str
    ) -> Method:
        neighbours = self.release.neighbours
        invariants = self.release.invariants
        mechanism = MECHANISMS[kind or DiscreteGaussian.name]
        if baseline == "leaf-noise":
            return LeafNoise(tree, budget, neighbours, mechanism, name)
        if baseline == "stability-histogram":
            return StabilityHistogram(budget, neighbours, name)
        if baseline == "boninsegna":
            return boninsegna(tree, budget, neighbours, invariants, name)
        if baseline == "independent-noise":
            made = make_plan(
                tree,
                budget=budget,
                neighbours=neighbours,
                mechanism=mechanism,
                allocation=Uniform(),
                invariants=invariants,
            )
            return IndependentNoise(made, name)
        allocation: Allocation = Uniform()
        if baseline == "ko-optimal":
            allocation = Optimal(prior=self.release.allocation.prior(tree), objective="cells")
        return ko(tree, budget, neighbours, allocation, invariants, name)


def _usual(
    own: Combination, workload: WorkloadSection
) -> tuple[list[AllocationSection], list[EstimateSection]]:
    """Return the allocations and estimators of a workload that are compared unless listed."""
    methods = USUAL_ESTIMATORS if workload.cuboids == Chain.name else (Euclidean.name,)
    allocations = [own.allocation, AllocationSection(method="uniform")]
    if workload.cuboids == Chain.name:
        allocations.append(AllocationSection(method="optimal", objective="released"))
    estimators = [EstimateSection.model_validate({"method": name}) for name in methods]
    return allocations, [own.estimator, *estimators]


def with_sections(spec: ReleaseSpec, **sections: Section) -> ReleaseSpec:
    """Return a release file with other sections in place of its own."""
    made = ReleaseSpec.__new__(ReleaseSpec)
    made.path = spec.path
    made.file = spec.file.model_copy(update=sections)
    return made


def _setting(name: str, plan: Plan | HedgerowError, spec: ReleaseSpec) -> Method | HedgerowError:
    if isinstance(plan, HedgerowError):
        return plan
    made: Method | HedgerowError = _attempt(lambda: Setting(name, plan, spec.estimator))
    return made


def _attempt(make: Any, *given: Any) -> Any:
    """Call ``make``; return its result, or its error."""
    try:
        return make(*given)
    except HedgerowError as error:
        return error
