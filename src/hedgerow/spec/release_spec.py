"""The release file: TOML in, trees, plans and estimators out.

Strings become types in this room only: here, and in ``release_file``, ``allocation`` and ``table``.
"""

from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from os.path import realpath
from pathlib import Path

from hedgerow.distribution.plan import plan_distribution
from hedgerow.errors import EstimateError, PlanError, SpecError
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.families.isotonic import Isotonic
from hedgerow.estimate.registry import read_estimator
from hedgerow.noise.mechanisms import MECHANISMS, Mechanism
from hedgerow.plan.allocation.cheapest import cheapest
from hedgerow.plan.allocation.shares import Shares
from hedgerow.plan.criteria.criterion import Criterion
from hedgerow.plan.cuboids import (
    MEASURES,
    Invariant,
    Measure,
    RunningSums,
    Survivors,
    protection,
)
from hedgerow.plan.defaults import measure_for
from hedgerow.plan.facts.facts import PublicTable, Zeros
from hedgerow.plan.make import make_plan
from hedgerow.plan.plan import Plan
from hedgerow.plan.workload import Chain, Workload, workload_for
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.neighbours import Neighbours
from hedgerow.privacy.promise import Protection
from hedgerow.release.directory.keys import Charging
from hedgerow.spark.session import SparkEngine
from hedgerow.spark.table import SparkSource
from hedgerow.spec.allocation import AllocationSpec, designed_for, is_copy, read_prior
from hedgerow.spec.axis_section import (
    AREAS_OF_TABLE,
    LISTED,
    NUMERIC,
    AxisSection,
    listed_axis,
    public_axis,
    with_shapes,
)
from hedgerow.spec.release_file import (
    AcceptSection,
    ReleaseFile,
    budget_of,
    described_by,
    neighbours_of,
    public_fact,
)
from hedgerow.spec.table import TableSpec
from hedgerow.spec.toml_file import as_float, parse, within
from hedgerow.tables.axis import Axis
from hedgerow.tables.counts import Counts
from hedgerow.tables.description import Description
from hedgerow.tables.lists.lookup import Lookup
from hedgerow.tables.tree import Tree
from hedgerow.text import exact


class ReleaseSpec:
    """A release file and where it lies; relative paths in it are relative to it."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.file = parse(self.path, ReleaseFile)

    @property
    def output(self) -> Path:
        """Where the release appears: outside the folder of the table, which is read whole."""
        output = self.path.parent / self.file.output.directory
        for place in self.table.places:
            with suppress(OSError):  # a name that no file can have: reading it says so
                if place.is_dir() and place.resolve() in Path(realpath(output)).parents:
                    raise SpecError(
                        "[output] directory lies inside the folder of the table; move it"
                    )
        return output

    @property
    def ledger_path(self) -> Path:
        """Where the ledger of ``[ledger]`` lies."""
        if self.file.ledger is None:
            raise SpecError("the release file has no [ledger] with its database and dataset")
        return self.path.parent / self.file.ledger.database

    @property
    def dataset(self) -> str:
        """The dataset's name in the ledger."""
        return "" if self.file.ledger is None else self.file.ledger.dataset

    @property
    def charging(self) -> Charging | None:
        """From ``[ledger]``; the ledger must be there (hedgerow ledger open)."""
        if self.file.ledger is None:
            return None
        return within("[ledger]", lambda: Charging(Ledger(self.ledger_path), self.dataset))

    @property
    def spark(self) -> SparkEngine | None:
        """From ``[engine]``: where Spark is, if it runs the release."""
        engine = self.file.engine
        within("[engine]", engine.check_together)
        return SparkEngine(engine.master) if engine.name == "spark" else None

    @property
    def mechanism(self) -> type[Mechanism]:
        """From ``[privacy]``."""
        return MECHANISMS[self.file.privacy.mechanism]

    @property
    def neighbours(self) -> Neighbours:
        """From ``[privacy]``, and the unit of ``[table]``."""
        return neighbours_of(self.file.privacy, self.file.table.unit)

    @property
    def invariants(self) -> list[Invariant]:
        """From ``[[invariant]]``."""
        return [Invariant(given.axis, given.level) for given in self.file.invariant]

    @property
    def public(self) -> list[Zeros | PublicTable]:
        """From ``[[public]]``; no file is read yet."""
        for given in self.file.public:
            self.table.check_public(given.source, "[[public]] source", "name a public file")
        return [public_fact(given, self.path.parent) for given in self.file.public]

    def protection(self, tree: Tree) -> Protection:
        """Return who is protected, and what neighbours agree on."""
        return protection(tree, self.workload(tree), self.neighbours, self.invariants)

    @property
    def estimator(self) -> Estimator:
        """From ``[estimate]``."""
        given = self.file.estimate.model_dump(exclude_none=True, exclude={"measure"})
        if "method" not in given:  # what is measured by default depends on the tree
            given["method"] = self.measure.method
        if "penalty" in given:
            number = within("[estimate]", as_float, given["penalty"], "penalty", EstimateError)
            given["penalty"] = number
        return within("[estimate]", read_estimator, given)

    @property
    def measure(self) -> Measure:
        """From ``measure`` in ``[estimate]``; else the usual one, for a distribution the better."""
        tree = self.tree()
        return measure_for(tree, self.workload(tree), self._own_measure)[0]

    @property
    def _own_measure(self) -> Measure | None:
        """The same, None for the usual one."""
        given = self.file.estimate.measure
        if given is not None:
            return MEASURES[given]
        return None if self._designed is None else self._designed.measure

    @cached_property
    def _designed(self) -> Plan | None:
        """The plan of a distribution over one numeric axis, where the file asks for one."""
        axis = self.file.axis[0]
        measure = self.file.estimate.measure
        alone = self.file.allocation.method == "distribution" and len(self.file.axis) == 1
        if not alone or axis.attribute or axis.kind is not NUMERIC or measure == Survivors.name:
            return None
        if axis.branching is not None:
            return None
        if self.file.estimate.method not in {None, Isotonic.name} and measure is None:
            measure = "all"  # the method needs a tree
        _ = axis.column  # raises for several columns
        return plan_distribution(
            within(f"[[axis]] {axis.name!r}", lambda: axis.ranges),
            budget=budget_of(self.file.privacy),
            neighbours=self.neighbours,
            objective=within("[allocation]", designed_for, self.file.allocation),
            measure=None if measure is None else MEASURES[measure],
        )

    def tree(self) -> Tree:
        """Return the tree of ``[[axis]]`` and ``[tree]``.

        Reads the public lists, and no confidential table unless the file declares the table's own
        list public. What was read is kept, and is not read again.
        """
        return self._tree

    @cached_property
    def _tree(self) -> Tree:
        axes = [within(f"[[axis]] {axis.name!r}", self._drawn, axis) for axis in self.file.axis]
        return within("[tree]", Tree, axes, self.file.tree.refine)

    def _drawn(self, axis: AxisSection) -> Axis:
        self.table.check_public(axis.shapes, "shapes", "name a public file of areas")
        return with_shapes(self._axis(axis), axis, self.path.parent)

    def _axis(self, axis: AxisSection) -> Axis:
        if self._designed is not None:
            return self._designed.tree.axes[0]
        for each in axis.lists or []:
            self.table.check_public(each, "a list", "name public lists, one a factor")
        if axis.kind is LISTED and axis.areas == AREAS_OF_TABLE:
            source = self.table.source
            if isinstance(source, SparkSource):
                raise SpecError('areas = "table" needs a file or a query; on Spark name a list')
            return listed_axis(axis, source, of_table=True)
        self.table.check_public(
            axis.areas or None,
            "areas",
            "name a public list with one row an area, or, if the codes in the table are public, "
            'areas = "table", which the promise states',
        )
        return public_axis(axis, self.path.parent, self.mechanism, flat=self._of_sums)

    @property
    def _of_sums(self) -> bool:
        """Whether running sums are measured; they need bins of one level."""
        return self.file.estimate.measure == RunningSums.name

    def workload(self, tree: Tree) -> Workload:
        """Return the workload of ``[workload]``."""
        given = within("[workload]", lambda: self.file.workload.workload)
        return within("[workload]", workload_for, tree, given)

    def plan(self, tree: Tree) -> Plan:
        """Return the plan of the file, with the public files that it names read."""
        description = self.description(tree)
        made = make_plan(
            tree,
            budget=budget_of(self.file.privacy),
            neighbours=self.neighbours,
            mechanism=self.mechanism,
            allocation=within("[allocation]", self.allocation.allocation, tree),
            workload=self.workload(tree),
            measure=self._own_measure,
            invariants=self.invariants,
            public=self.public,
            accept=self.criteria(tree),
        )
        is_best = any(a.kind is NUMERIC and a.branching is None for a in self.file.axis)
        by_design = ("branching",) * (is_best and not self._of_sums and len(self.file.axis) > 1)
        if self._designed is not None:
            by_design = self._designed.chosen
        return made.described(description).choosing(*by_design)

    def criteria(self, tree: Tree) -> list[Criterion]:
        """Return the criteria of ``[[accept]]``, with the public tables of sizes read."""
        return [
            within(f"[[accept]] {number}", self._criterion, section, tree)
            for number, section in enumerate(self.file.accept, start=1)
        ]

    def own_sizes(self, tree: Tree, counts: Counts) -> list[int]:
        """Return of which criteria the sizes are a copy of the table: confidential."""
        return [
            number
            for number, section in enumerate(self.file.accept, start=1)
            if is_copy(section.sizes, self.table, tree, counts, "sizes")
        ]

    def _criterion(self, section: AcceptSection, tree: Tree) -> Criterion:
        sizes = None
        if section.sizes is not None:
            advice = "the verdicts made from it would tell of it: name a public table"
            sizes = read_prior(section.sizes, self.table, tree, "sizes", advice)
        bound = section.bound
        areas = None
        if section.areas is not None:
            self.table.check_public(section.areas, "areas", "name a public file")
            lookup = Lookup.of(tree, self.path.parent / section.areas, section.area_column)
            areas = lookup.rows(tree)
        given = section.model_dump(include={"cuboid", "cells", "probability", "records"})
        made = Criterion(within=bound, sizes=sizes, areas=areas, **given)
        made.needed(tree)
        return made

    def description(self, tree: Tree) -> Description:
        """Return what ``[describe]`` says of the table."""
        description = within("[describe]", described_by, self.file.describe)
        within("[describe]", description.check_names, tree)
        return description

    def check_target(self, target: str) -> None:
        """Raise a SpecError unless a plan can be made for a target; see `AllocationSpec`."""
        of_counts = self.file.workload.cuboids == Chain.name
        self.allocation.check_target(target, of_estimates=not of_counts)

    def cheapest(self, tree: Tree, target: str) -> Plan:
        """Return the plan of least budget for a weighted squared error (records²).

        It ignores the budget of ``[privacy]``; its allocation is called as in the release file that
        would plan it (`hedgerow.spec.allocation.release_file_lines`).
        """
        optimal = within("[allocation]", self.allocation.optimal, tree)
        plan = cheapest(
            tree,
            target=exact(target, "--target-mse", PlanError),
            importance=optimal.importance,
            prior=optimal.prior,
            neighbours=self.neighbours,
            mechanism=self.mechanism,
            workload=self.workload(tree),
            measure=self._own_measure,
            invariants=self.invariants,
            public=self.public,
        )
        plan = replace(plan, allocation=Shares.name, accept=tuple(self.criteria(tree)))
        return plan.described(self.description(tree))

    @property
    def allocation(self) -> AllocationSpec:
        """From ``[allocation]``."""
        return AllocationSpec(self.file.allocation, self.table)

    @property
    def table(self) -> TableSpec:
        """From ``[table]``, and what other sections say of the records."""
        return TableSpec(self.file, self.path.parent)
