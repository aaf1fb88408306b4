"""The release file: TOML in, trees, plans and estimators out. Strings become types here alone."""

from functools import cached_property
from pathlib import Path
from typing import Any

from hedgerow.axis_section import AxisSection, listed_axis, numeric_axis, numeric_column
from hedgerow.engines.spark import SparkEngine
from hedgerow.engines.spark_table import SparkSource, SparkTable, read_source
from hedgerow.errors import EstimateError, PlanError, SpecError, TableError
from hedgerow.estimate.chebyshev import Chebyshev
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.euclidean import Euclidean
from hedgerow.estimate.named import read_estimator
from hedgerow.estimate.nearest_cdf import Isotonic
from hedgerow.noise.mechanisms import MECHANISMS, DiscreteLaplace, Mechanism
from hedgerow.noise.numerals import exact
from hedgerow.plan.allocation import Allocation, Shares, Uniform
from hedgerow.plan.cheapest import cheapest
from hedgerow.plan.depths import MEASURES, Invariant, Measure, RunningSums, Survivors
from hedgerow.plan.distribution import plan_distribution
from hedgerow.plan.fair_allocation import Fair
from hedgerow.plan.for_distribution import ForDistribution
from hedgerow.plan.importance import Relative
from hedgerow.plan.optimal import Optimal
from hedgerow.plan.plan import Plan, make_plan
from hedgerow.plan.prior import Prior, refuse_own_table
from hedgerow.privacy.budget import WELL_BELOW, Budget, Epsilon, EpsilonDelta, Rho
from hedgerow.privacy.ledger import Ledger
from hedgerow.privacy.neighbours import AddRemove, Neighbours, Replace
from hedgerow.release.charging import Charging
from hedgerow.release_file import AREAS_OF_TABLE, PrivacySection, ReleaseFile
from hedgerow.tables.axis import Axis
from hedgerow.tables.binned import NumericColumn, binned
from hedgerow.tables.counts import Counts
from hedgerow.tables.files import share_files
from hedgerow.tables.read import Query
from hedgerow.tables.tree import Tree
from hedgerow.toml_file import Number, as_float, parse, within


class ReleaseSpec:
    """A release file and where it lies; relative paths in it are relative to it."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.file = parse(self.path, ReleaseFile)

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
        given = self.file.estimate.model_dump(exclude_none=True, exclude={"measure"})
        given.setdefault("method", self._usual_method())
        if "penalty" in given:
            number = within("[estimate]", as_float, given["penalty"], "penalty", EstimateError)
            given["penalty"] = number
        return within("[estimate]", read_estimator, given)

    def _usual_method(self) -> str:
        """What ``[estimate] method`` is where it is left out."""
        if isinstance(self.measure, RunningSums):
            return Isotonic.name
        return (Euclidean if self.file.allocation.method == "distribution" else Chebyshev).name

    @property
    def measure(self) -> Measure:
        """From ``measure`` in ``[estimate]``; for a distribution the better one unless given."""
        given = self.file.estimate.measure
        if given is not None:
            return MEASURES[given]
        return Survivors() if self._designed is None else self._designed.measure

    @cached_property
    def _designed(self) -> Plan | None:
        """The plan of a distribution over one numeric axis, where the file asks for one."""
        axis, measure = self.file.axis[0], self.file.estimate.measure
        alone = self.file.allocation.method == "distribution" and len(self.file.axis) == 1
        if not alone or not axis.is_numeric or measure == Survivors.name:
            return None
        if self.file.estimate.method not in {None, Isotonic.name} and measure is None:
            measure = "all"  # the method is one for trees
        _ = axis.column  # which may not be named
        return plan_distribution(
            within(f"[[axis]] {axis.name!r}", lambda: axis.ranges),
            budget=within("[privacy]", _budget, self.file.privacy),
            neighbours=self.neighbours,
            measure=None if measure is None else MEASURES[measure],
        )

    def check_target(self, target: str) -> None:
        """Refuse a target of error for single noisy counts where the file plans for others.

        Raises:
            SpecError: the objective is that of released counts, or of a distribution.
            PlanError: it is no number.
        """
        given = self.file.allocation
        if given.objective == "released":
            raise SpecError('--target-mse goes with objective = "cells": of single noisy counts')
        if given.method == "distribution":
            raise SpecError(
                '--target-mse is of single noisy counts, and method = "distribution" plans for '
                "cumulative ones: give a budget, and see their error in the plan"
            )
        as_float(target, "--target-mse", PlanError)

    def cheapest(self, tree: Tree, target: str) -> Plan:
        """The plan with the least budget for a weighted squared error, whatever ``[privacy]`` has.

        Args:
            tree: of the release.
            target: an exact number, records²; see `check_target`.
        """
        optimal = within("[allocation]", self.optimal, tree)
        return cheapest(
            tree,
            target=exact(target, "--target-mse", PlanError),
            importance=optimal.importance,
            prior=optimal.prior,
            neighbours=self.neighbours,
            mechanism=self.mechanism,
            measure=self.measure,
            invariants=[Invariant(i.axis, i.level) for i in self.file.invariant],
        )

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
        return within("[ledger]", lambda: Charging(Ledger(self.ledger_path), self.dataset))

    @property
    def dataset(self) -> str:
        """What the ledger calls the dataset."""
        return "" if self.file.ledger is None else self.file.ledger.dataset

    def tree(self) -> Tree:
        """From ``[[axis]]`` and ``[tree]``; reads the public lists (and no confidential table,
        unless the file asserts that the table's own list is public).
        """  # noqa: D205
        axes = [within(f"[[axis]] {axis.name!r}", self._axis, axis) for axis in self.file.axis]
        return within("[tree]", Tree, axes, self.file.tree.refine)

    def plan(self, tree: Tree) -> Plan:
        """From ``[privacy]``, ``[allocation]`` and ``[[invariant]]``."""
        privacy = self.file.privacy
        return make_plan(
            tree,
            budget=within("[privacy]", _budget, privacy),
            neighbours=self.neighbours,
            mechanism=self.mechanism,
            allocation=within("[allocation]", self._allocation, tree),
            measure=self.measure,
            invariants=[Invariant(i.axis, i.level) for i in self.file.invariant],
        )

    def prior(self, tree: Tree) -> Prior | None:
        """From ``prior`` in ``[allocation]``.

        Raises:
            SpecError: it is the confidential table itself.
        """
        given = self.file.allocation.prior
        if given is None:
            return None
        path, table = self.path.parent / given.source, self._source()
        if isinstance(table, Path) and share_files(path, table):
            raise SpecError(
                "the prior is the confidential table itself, or some of it: shares that follow "
                "from it would give it away; name a public table, such as an earlier release"
            )
        return Prior.read(tree, path, count=given.count, public=given.public)

    def refuse_own_prior(self, tree: Tree, counts: Counts) -> None:
        """Nothing, unless the prior's file, read as the table is, has the counts of the table.

        Raises:
            PlanError: it has: the prior is a copy of the table, whatever the file says it counts.
        """
        given, table = self.file.allocation.prior, self.file.table
        if given is None:
            return
        path, bound = self.path.parent / given.source, self.file.privacy.contributions
        for unit in {table.unit, None}:
            try:
                copy = Counts.from_frame(
                    tree, path, count=table.count, unit=unit, contributions=bound if unit else 1
                )
            except TableError:  # it is no table like that, so no copy of it
                continue
            refuse_own_table(Prior(copy, public=True), counts)

    def _allocation(self, tree: Tree) -> Allocation:
        given = self.file.allocation
        if (given.shares is not None) != (given.method == "shares"):
            raise SpecError('shares = [...] goes with method = "shares", and only with it')
        if (given.ratio is not None) != (given.method == "fair"):
            raise SpecError('ratio goes with method = "fair", which needs it')
        if given.method == "optimal":
            return self.optimal(tree)
        if given.ratio is not None:
            weights = _floats(given.importance)
            if isinstance(given.importance, dict | str) or given.prior or given.objective:
                raise SpecError('method = "fair" takes ratio, and importance as a list')
            ratio = as_float(given.ratio, "ratio", PlanError)
            return Fair(ratio, tuple(weights) if isinstance(weights, list) else None)
        if (given.importance, given.prior, given.objective) != (None, None, None):
            raise SpecError('importance, prior and objective go with method = "optimal"')
        if given.method == "distribution":
            return ForDistribution()
        return Uniform() if given.shares is None else Shares(given.shares)

    def optimal(self, tree: Tree) -> Optimal:
        """The optimal allocation with the importance, prior and objective of ``[allocation]``."""
        given = self.file.allocation
        importance = Relative() if given.importance == "relative" else _floats(given.importance)
        return Optimal(
            importance=importance, prior=self.prior(tree), objective=given.objective or "cells"
        )

    def counts(self, tree: Tree, memory: int | None = None, *, bounded: bool = True) -> Counts:
        """The confidential table of ``[table]``.

        Args:
            tree: of the release.
            memory: bytes; see `hedgerow.release.memory`.
            bounded: whether contributions are, as the file says; without, to compare tables.
        """
        table = self.file.table
        return within(
            "[table]",
            lambda: Counts.from_frame(
                tree,
                self._table(tree),
                count=table.count,
                unit=table.unit if bounded else None,
                contributions=self.file.privacy.contributions if bounded else 1,
                memory=memory,
            ),
        )

    @property
    def spark(self) -> SparkEngine | None:
        """From ``[engine]``: where Spark is, if it runs the release."""
        engine = self.file.engine
        if engine.name == "spark":
            return SparkEngine(engine.master)
        if engine.master is not None:
            raise SpecError('[engine] master goes with name = "spark"')
        return None

    def spark_table(self, session: Any, tree: Tree) -> SparkTable:
        """The confidential table of ``[table]``, to be read on Spark."""
        table, bound = self.file.table, self.file.privacy.contributions
        source = self._source()
        if isinstance(source, Query):
            raise SpecError("[table] on Spark a database is read over JDBC: jdbc:postgresql://…")
        text = source.text if isinstance(source, SparkSource) else str(source.absolute())
        frame = within("[table]", read_source, session, text, table.query)
        numeric = tuple(self._numeric(tree))
        return SparkTable(frame, "the table", table.count, table.unit, bound, numeric)

    def _numeric(self, tree: Tree) -> list[NumericColumn]:
        """The numeric columns of the table, each with its axis."""
        numeric = [
            numeric_column(given, axis)
            for given, axis in zip(self.file.axis, tree.axes, strict=True)
            if given.is_numeric
        ]
        for name in (self.file.table.count, self.file.table.unit):
            if name in {n.column for n in numeric}:
                raise TableError(f"column {name!r} is already the numeric column of an axis")
        return numeric

    def _table(self, tree: Tree) -> Any:
        """The table; where axes are numeric, with the codes of their bins."""
        numeric = self._numeric(tree)
        if isinstance(self._source(), SparkSource):
            raise SpecError("[table] source is one that Spark alone reads, in hedgerow release")
        if not numeric:
            return self._source()
        made = {column for n in numeric for column in n.axis.columns}
        columns = {column for axis in tree.axes for column in axis.columns} - made
        extra = [c for c in (self.file.table.count, self.file.table.unit) if c is not None]
        return binned(self._source(), numeric, [*sorted(columns), *extra])

    def _axis(self, axis: AxisSection) -> Axis:
        if self._designed is not None:
            return self._designed.tree.axes[0]
        if axis.is_numeric:
            return numeric_axis(axis, self.mechanism)
        if axis.areas == AREAS_OF_TABLE:
            source = self._source()
            if isinstance(source, SparkSource):
                raise SpecError('areas = "table" needs a file or a query; on Spark name a list')
            return listed_axis(axis, source, of_table=True)
        path, table = self.path.parent / axis.areas, self._source()
        if isinstance(table, Path) and axis.areas and share_files(path, table):
            raise SpecError(
                "areas is the confidential table itself; name a public list with one row an area, "
                'or, if the codes in the table are public, say areas = "table", and the promise '
                "tells so"
            )
        return listed_axis(axis, path)

    def _source(self) -> Path | Query | SparkSource:
        table = self.file.table
        if self.file.engine.name == "spark" and SparkSource.names(table.source):
            return SparkSource(table.source)
        if "://" not in table.source:
            if table.query is not None:
                raise SpecError("[table] query needs a database URL as source")
            return self.path.parent / table.source
        if table.query is None:
            raise SpecError('[table] a database URL as source needs query = "SELECT …"')
        return Query(table.source, table.query)

    @property
    def mechanism(self) -> type[Mechanism]:
        """From ``[privacy]``."""
        return {kind.name: kind for kind in MECHANISMS}[self.file.privacy.mechanism]

    @property
    def neighbours(self) -> Neighbours:
        """From ``[privacy]``."""
        return within("[privacy]", self._neighbours)

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


def _budget(privacy: PrivacySection) -> Budget:
    given = {n for n in ("epsilon", "delta", "rho") if getattr(privacy, n) is not None}
    if privacy.rho is not None and given == {"rho"}:
        return Rho(privacy.rho)
    if privacy.epsilon is not None and privacy.delta is not None and len(given) == 2:
        return EpsilonDelta(privacy.epsilon, privacy.delta)
    if privacy.epsilon is not None and given == {"epsilon"}:
        if privacy.mechanism != DiscreteLaplace.name:
            raise SpecError(
                f"the discrete Gaussian has no pure epsilon; add a delta {WELL_BELOW}, or give "
                f'rho, or use mechanism = "discrete-laplace"'
            )
        return Epsilon(privacy.epsilon)
    raise SpecError(
        f"give one budget: rho, or epsilon with delta, or (for discrete-laplace) epsilon alone; "
        f"got {' and '.join(sorted(given)) or 'none'}"
    )


def _floats(
    importance: list[Number] | dict[str, Number] | str | None,
) -> list[float] | dict[str, float] | None:
    """The importances as given: no privacy rests on their last digits."""
    if isinstance(importance, list):
        return [as_float(w, "importance", PlanError) for w in importance]
    if isinstance(importance, dict):
        return {n: as_float(w, f"importance of {n}", PlanError) for n, w in importance.items()}
    return None
