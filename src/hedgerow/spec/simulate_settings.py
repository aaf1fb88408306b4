"""The settings that a ``[simulate]`` section compares: combinations of its lists, and baselines."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, field_validator

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
    TableSection,
    WorkloadSection,
)
from hedgerow.spec.release_spec import ReleaseSpec
from hedgerow.spec.toml_file import Section, parse
from hedgerow.tables.tree import Tree

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


USUAL_ESTIMATORS = ("chebyshev", "euclidean", "sparse")
BASELINES: tuple[Baseline, ...] = (
    "uniform",
    "boninsegna",
    "ko-uniform",
    "ko-optimal",
    "independent-noise",
    "leaf-noise",
    "stability-histogram",
)

Made = tuple[str, Method | HedgerowError]
"""A name, and the setting or the reason why it is impossible."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An impossible setting, and the reason."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """The settings that a section compares: its lists, and for the rest the release file.

    A setting is the release file with other sections: budget, mechanism, workload, allocation,
    measure and estimator.
    """

    section: SimulateSection
    release: ReleaseSpec

    def settings(self, tree: Tree) -> tuple[list[Method], list[LeftOut]]:
        """Return what to compare, and what is impossible; raise if nothing is left."""
        possible: list[Method] = []
        left_out: list[LeftOut] = []
        own = self.own()
        for name, made in (*self._combined(tree, own), *self._baselines(tree, own)):
            if isinstance(made, HedgerowError):
                left_out.append(LeftOut(name, str(made)))
            else:
                possible.append(made)
        if not possible:
            raise SpecError(f"[simulate] leaves no setting to compare: {left_out[0].reason}")
        return possible, left_out

    def own(self) -> ReleaseSpec:
        """Return the release file's own setting, its measure and its estimator written out."""
        self.release.file.privacy.budget("[privacy]")
        said = {"measure": self.release.measure.name, "method": self.release.estimator.name}
        return self._with(estimate=self.release.file.estimate.model_copy(update=said))

    def _with(
        self, budget: BudgetSection | None = None, mechanism: str | None = None, **sections: Section
    ) -> ReleaseSpec:
        """Return the release file with a budget, a mechanism and sections in place of its own."""
        update = {} if budget is None else budget.model_dump()
        update |= {} if mechanism is None else {"mechanism": mechanism}
        privacy = self.release.file.privacy.model_copy(update=update)
        return with_sections(self.release, privacy=privacy, **sections)

    def combinations(self, own: ReleaseSpec) -> list[ReleaseSpec]:
        """Return those of the lists, each once, the file's own first where a list is left out."""
        section, estimate = self.section, own.file.estimate
        combinations: list[ReleaseSpec] = []
        for workload in section.workloads or [own.file.workload]:
            is_chain = workload.cuboids == Chain.name
            methods = USUAL_ESTIMATORS if is_chain else (Euclidean.name,)
            others = [EstimateSection.model_validate({"method": name}) for name in methods]
            allocations = [own.file.allocation, AllocationSection(method="uniform")]
            if is_chain:
                allocations.append(AllocationSection(method="optimal", objective="released"))
            for budget, mechanism, allocation, measure, estimator in product(
                section.budgets or [None],
                section.mechanisms or [None],
                section.allocations or allocations,
                section.measures or [estimate.measure, Survivors.name, All.name],
                section.estimators or [estimate.model_copy(update={"measure": None}), *others],
            ):
                measured = estimator.model_copy(update={"measure": estimator.measure or measure})
                sections = {"workload": workload, "allocation": allocation, "estimate": measured}
                given = self._with(budget, mechanism, **sections)
                if not any(is_same(given, other) for other in combinations):
                    combinations.append(given)
        return combinations

    def _combined(self, tree: Tree, own: ReleaseSpec) -> Iterator[Made]:
        plans: dict[str, Plan | HedgerowError] = {}
        taken: set[str] = set()
        usual = self.section.measures is None
        for given in self.combinations(own):
            called, file = self._name(given, own), given.file
            tries = (called, *(f"{called} #{i}" for i in range(2, len(taken) + 3)))
            name = next(each for each in tries if each not in taken)
            taken.add(name)
            measure = file.estimate.measure
            too_large = measure == All.name and tree.leaves > MOST_CELLS_OF_RUNS
            if too_large and usual and measure != own.file.estimate.measure:
                yield name, SpecError(f'{tree.leaves:,} leaves: ask for measures = ["all"]')
                continue
            key = repr((file.privacy, file.workload, file.allocation, measure))
            if key not in plans:
                plans[key] = _attempt(given.plan, tree)
            yield name, _setting(name, plans[key], given)

    def _name(self, given: ReleaseSpec, own: ReleaseSpec) -> str:
        file = given.file
        how = f"{file.estimate.measure}, {words_of(file.estimate)}"
        name = f"{words_of(file.allocation)}, {how}"
        if len(self.section.workloads or ()) > 1:
            name = f"{file.workload.words}, {name}"
        suffix = self._suffix(file.privacy, file.privacy.mechanism)
        return name + suffix + (" (own)" if is_same(given, own) else "")

    def _suffix(self, budget: BudgetSection, mechanism: str | None) -> str:
        """Return the suffix of a name where there are several budgets or mechanisms."""
        several = mechanism is not None and len(self.section.mechanisms or ()) > 1
        words = [str(mechanism)] if several else []
        if len(self.section.budgets or ()) > 1:
            words.append(budget_text(budget.budget()))
        return "".join(f", {word}" for word in words)

    def _baselines(self, tree: Tree, own: ReleaseSpec) -> Iterator[Made]:
        privacy = own.file.privacy
        wanted = BASELINES if self.section.baselines is None else self.section.baselines
        for given, baseline in product(self.section.budgets or [privacy], wanted):
            if baseline == "uniform":
                even = AllocationSection(method="uniform")
                budget = given if self.section.budgets else None
                spec = self._with(budget, allocation=even, estimate=own.file.estimate)
                # else it is there already
                if not any(is_same(spec, other) for other in self.combinations(own)):
                    name = self._name(spec, own)
                    yield name, _setting(name, _attempt(spec.plan, tree), spec)
                continue
            noisy = baseline in {"leaf-noise", "independent-noise"}
            mechanisms = self.section.mechanisms or [privacy.mechanism]
            kinds: Sequence[str | None] = mechanisms if noisy else [None]
            for kind in kinds:
                name = baseline.replace("-", " ") + self._suffix(given, kind)
                yield name, _attempt(self._baseline, tree, baseline, given.budget(), kind, name)

    def _baseline(
        self, tree: Tree, baseline: Baseline, budget: Budget, kind: str | None, name: str
    ) -> Method:
        neighbours, invariants = self.release.neighbours, self.release.invariants
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


def is_same(one: ReleaseSpec, other: ReleaseSpec) -> bool:
    """Return whether two settings are equal, however the budgets' numbers are written."""
    bare = dict.fromkeys(("epsilon", "delta", "rho"))
    files = [
        each.file.model_copy(update={"privacy": each.file.privacy.model_copy(update=bare)})
        for each in (one, other)
    ]
    return files[0] == files[1] and one.file.privacy.budget() == other.file.privacy.budget()


def with_sections(spec: ReleaseSpec, **sections: Section) -> ReleaseSpec:
    """Return a release file with other sections in place of its own."""
    made = ReleaseSpec.__new__(ReleaseSpec)
    made.path, made.file = spec.path, spec.file.model_copy(update=sections)
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
