"""Sums over areas of a user's own, which are no level of an axis and may overlap.

Beside the sum of released counts stands the sum of least-squares estimates: unbiased, with its
exact variance. Of a chain these come from one pass over the tree for each group of areas that do
not overlap (`hedgerow.estimate.tree.sums`); of a cube and named cuboids from the covariance of sums
whose weights are a product over axes (`hedgerow.estimate.workload.observed.Solver`).

*Along a spine* estimates are linear in noisy counts and, as least squares,

    y = C Σ_c S_cᵀ m_c / v_c,

C being their covariance, S_c the sums of cuboid c, m_c its noisy counts and v_c their variance. A
sum wᵀ y of cells that measured cuboid c refines (w = S_cᵀ u) has the variance wᵀ C w. So the model
itself, given v_c u as the noisy counts of c and 0 elsewhere, returns C w: one pass a sum, exact
where the plan's variances are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from hedgerow.arrays import Float64, Int64
from hedgerow.errors import EstimateError, ReleaseError
from hedgerow.estimate.cube.shape import Cuboid, is_within, meet
from hedgerow.estimate.cube.variances import Product
from hedgerow.estimate.intervals import Confidence, Steps
from hedgerow.estimate.tree.layers import Layer
from hedgerow.estimate.tree.least_squares import least_squares, upward
from hedgerow.estimate.tree.sums import variance_of_sums
from hedgerow.plan.cuboids import All
from hedgerow.plan.joint import Joint
from hedgerow.plan.plan import Plan
from hedgerow.plan.spine import PlannedSpine
from hedgerow.release.descent.nodes import Nodes, sums_of_cells
from hedgerow.release.descent.outline import Outline
from hedgerow.release.descent.source import Stored
from hedgerow.release.directory.cuboid_errors import CuboidErrors
from hedgerow.release.directory.measurements import (
    CONTRADICTED,
    COUNT,
    ESTIMATE,
    HIGH,
    LOW,
    STANDARD_ERROR,
)
from hedgerow.release.directory.stored import Content, noise_variances, public_nodes
from hedgerow.release.joint.joint_pass import JointPass
from hedgerow.release.reestimate.measured_nodes import measured_nodes
from hedgerow.release.spine.answers import estimates_along_spine
from hedgerow.tables.lookup import Lookup
from hedgerow.tables.tree import Codes, Levels

MOST_SUMS = 1 << 22
"""Sums of counts, at most: areas times the combinations beside them."""
MOST_CELLS = 1 << 27
"""Cells that are summed, at most: they stand in a table of a gigabyte."""
MOST_NOISY, MOST_READ = 1 << 24, 1 << 29
"""Noisy counts that errors of sums need, at most: along a chain, and of other workloads."""
MOST_WORK = 1 << 33
"""Sums times what each runs through: along a spine all noisy counts, else the axes' nodes."""
COUNTS_ALONE = "ask for counts alone: areas(…, confidence=None) or --counts-only"


@dataclass(frozen=True, eq=False)
class AreaSums:
    """Sums over areas of one axis, by levels of the others.

    Attributes:
        plan: of the release.
        lookup: the areas.
        beside: the level of each axis beside that of the areas, 0 for those summed over.
    """

    plan: Plan
    lookup: Lookup
    beside: Mapping[str, str]

    def __post_init__(self) -> None:
        axis = self.plan.tree.axes[self.lookup.axis]
        if axis.name in self.beside:
            raise ReleaseError(
                f"the areas are made of axis {axis.name!r}, so sums cannot be by one of its "
                f"levels, too; name levels of the other axes"
            )
        nodes = axis.size(self.lookup.level)
        if len(self.lookup) * self.cells > MOST_SUMS or nodes * self.cells > MOST_CELLS:
            raise ReleaseError(
                f"sums over {len(self.lookup):,} areas of {nodes:,} nodes by {self.cells:,} "
                f"combinations are too many; name coarser levels beside the areas, or fewer areas"
            )

    @property
    def levels(self) -> Levels:
        """The cuboid whose cells are summed."""
        levels = []
        for number, axis in enumerate(self.plan.tree.axes):
            own = axis.level_number(self.beside[axis.name]) if axis.name in self.beside else 0
            levels.append(self.lookup.level if number == self.lookup.axis else own)
        return tuple(levels)

    @property
    def sizes(self) -> list[int]:
        """How many nodes each axis has beside the areas: 1 for that of the areas."""
        each = enumerate(zip(self.plan.tree.axes, self.levels, strict=True))
        return [1 if a == self.lookup.axis else axis.size(level) for a, (axis, level) in each]

    @property
    def cells(self) -> int:
        """How many combinations of the other axes' nodes there are."""
        return int(np.prod(self.sizes, dtype=object))

    def labels(self) -> list[pl.Series]:
        """Return the area and the codes beside it of each sum, a column each."""
        many = len(self.lookup)
        columns = [self.lookup.areas[np.repeat(np.arange(many), self.cells)]]
        codes = np.unravel_index(np.tile(np.arange(self.cells), many), self.sizes)
        axes = zip(self.plan.tree.axes, self.levels, codes, strict=True)
        for number, (axis, level, code) in enumerate(axes):
            if number != self.lookup.axis:
                columns += axis.path(level, code.astype(np.int32))
        return columns

    def counts(self, content: Content) -> Int64:
        """Return the sums of released counts: int64 (areas, cells beside)."""
        table = self.table()
        tree, levels = self.plan.tree, self.levels
        numbers, sums = sums_of_cells(tree, levels, table, content.listed(table))
        node, beside = self._placed(numbers)
        found = np.zeros((tree.axes[self.lookup.axis].size(levels[self.lookup.axis]), self.cells),
                         dtype=np.int64)  # fmt: skip
        found[node, beside] = sums
        return np.asarray(self.lookup.sums(found), dtype=np.int64)

    def _placed(self, numbers: Int64) -> tuple[Int64, Int64]:
        """Return of cells row by row the node on the areas' axis, and the number beside it."""
        shape = [axis.size(k) for axis, k in zip(self.plan.tree.axes, self.levels, strict=True)]
        return self.split(np.unravel_index(numbers, shape))

    def split(self, codes: Sequence[np.ndarray]) -> tuple[Int64, Int64]:
        """Return the node on the areas' axis, and the number of the others' combination."""
        own = codes[self.lookup.axis].astype(np.int64)
        others = [np.zeros_like(own) if a == self.lookup.axis else code.astype(np.int64)
                  for a, code in enumerate(codes)]  # fmt: skip
        return own, np.ravel_multi_index(tuple(others), self.sizes).astype(np.int64)

    def table(self) -> Levels:
        """Return a released table whose cells are summed, or raise a ReleaseError."""
        if self.plan.is_chain:
            return self.plan.tree.chain[-1]
        table = self.plan.table_of(self.levels)
        if table is None:
            raise ReleaseError(
                f"areas by {self.plan.tree.name_of(self.levels)} are no sums of what was released: "
                f"{' and '.join(map(self.plan.tree.name_of, self.plan.tables))}; name levels "
                f"beside the areas that one of these tables has"
            )
        return table


def area_sums(content: Content, sums: AreaSums, confidence: Confidence | None) -> pl.DataFrame:
    """Return released sums over areas, with their errors.

    Returns:
        One row an area and combination, whether its count is 0 or not: the area, the codes beside
        it, ``count``, and with a confidence ``estimate``, ``standard_error``, ``low``, ``high``
        and ``contradicted``.

    Raises:
        ReleaseError: no released table holds the sums, or errors cannot be had.
    """
    if confidence is not None:
        check_errors(sums)  # before anything is read
    counts = sums.counts(content).ravel()
    found = pl.DataFrame([*sums.labels(), pl.Series(COUNT, counts)])
    if confidence is None:
        return found
    estimate, variance = (each.ravel() for each in _estimated(content, sums))
    total = int(content.listed(content.plan.tree.cuboid(0)).counts.sum())
    errors = CuboidErrors.of_sums(content.plan, len(counts), total, _steps(content.plan))
    low, high = errors.interval(estimate, variance, confidence)
    flags = errors.contradicted(counts, estimate, variance, confidence.coverage)
    columns = {
        ESTIMATE: estimate, STANDARD_ERROR: np.sqrt(variance), LOW: low, HIGH: high,
        CONTRADICTED: flags,
    }  # fmt: skip
    return found.with_columns(pl.Series(name, column) for name, column in columns.items())


def check_errors(sums: AreaSums) -> None:
    """Raise unless estimates of the sums and their variances can be had.

    Raises:
        ReleaseError: survivors alone were measured, or it would take too long.
    """
    plan = sums.plan
    if plan.is_chain:
        known = isinstance(plan.measure, All)
        cells = sum(plan.tree.cells(levels) for levels in noise_variances(plan))
        most, work = MOST_NOISY, 0
    else:
        joint, given = plan.joint, _given(sums)
        known = joint.is_answerable(given)
        cells = sum(map(joint.possible_cells, joint.noise))
        each = (
            cells if isinstance(joint, PlannedSpine) else sum(joint.shape.shape(given)) + (1 << 14)
        )
        most, work = MOST_READ, len(sums.lookup) * sums.cells * each
    if not known:
        raise ReleaseError(
            "errors of sums over areas are unknown here: not every one of these cells was measured "
            f"with noise of its own, and noise decided which were; {COUNTS_ALONE}; a plan with "
            'measure = "all" has errors of any areas'
        )
    if cells > most or work > MOST_WORK:
        raise ReleaseError(
            f"errors of these {len(sums.lookup) * sums.cells:,} sums need all {cells:,} noisy "
            f"counts, and would take too long; name fewer areas or coarser levels, or "
            f"{COUNTS_ALONE}"
        )


def variances(sums: AreaSums) -> Float64:
    """Return the variances of the sums' estimates from public facts: float64 (areas, cells beside).

    Of a chain with public counts below the total every node is taken to have records.

    Raises:
        ReleaseError: they cannot be had.
    """
    check_errors(sums)
    plan = sums.plan
    if not plan.is_chain:
        return _joint_variances(sums)
    nodes, layers = _layers_of_plan(plan)
    return _along_chain(sums, nodes, layers)[1]


def area_forecast(sums: AreaSums) -> pl.DataFrame:
    """Return the standard errors that the sums' estimates will have, from public facts.

    Returns:
        One row an area and combination: the area, the codes beside it, ``standard_error``
        (records).

    Raises:
        ReleaseError: they cannot be had.
    """
    error = pl.Series(STANDARD_ERROR, np.sqrt(variances(sums)).ravel())
    return pl.DataFrame([*sums.labels(), error])


def _steps(plan: Plan) -> Steps | None:
    """Return what bounds the coefficients of sums; None along a chain, where none is above 1."""
    if plan.is_chain:
        return None
    joint = plan.joint
    if isinstance(joint, PlannedSpine):
        return joint.steps_of_sums
    return Steps(min(joint.noise.values()), is_exact=True)


def _estimated(content: Content, sums: AreaSums) -> tuple[Float64, Float64]:
    """Return estimates and variances: float64 (areas, cells beside) both."""
    plan = content.plan
    if plan.is_chain:
        nodes, layers = measured_nodes(content.stored, Outline.of(plan), content.nodes)
        return _along_chain(sums, nodes[-1], layers)
    joint = plan.joint
    if joint.is_public(_given(sums)):
        exact = sums.counts(content).astype(np.float64)
        return exact, np.zeros(exact.shape)
    if isinstance(joint, PlannedSpine):
        return _spine_estimates(content.stored, sums, joint), _joint_variances(sums)
    run, given = JointPass(plan, content.stored, content.estimator), _given(sums)
    table = np.moveaxis(run.estimates([given])[given], sums.lookup.axis, 0)
    return sums.lookup.sums(table.reshape(len(table), sums.cells)), _joint_variances(sums)


def _given(sums: AreaSums) -> Cuboid:
    """Return the cuboid whose cells are summed, in the terms of the plan's estimates."""
    joint = sums.plan.joint
    return joint.shape.given(meet(sums.levels, sums.table()))


def _joint_variances(sums: AreaSums) -> Float64:
    joint, found = sums.plan.joint, np.zeros((len(sums.lookup), sums.cells))
    if joint.is_public(_given(sums)):
        return found
    if isinstance(joint, PlannedSpine):
        return _spine_variances(sums, joint)
    for area in range(len(found)):
        for cell in range(sums.cells):
            weights = _product(sums, joint, area, cell)
            variances_of = joint.variances_of(_given(sums))
            try:
                found[area, cell] = variances_of.covariance(weights, weights)
            except EstimateError as error:
                raise ReleaseError(
                    f"errors of sums over areas are unknown here: {error}; {COUNTS_ALONE}"
                ) from None
    return np.maximum(found, 0.0)


def _product(sums: AreaSums, joint: Joint, area: int, cell: int) -> Product:
    """Return the weights of a sum, a product over axes."""
    given, place = _given(sums), np.unravel_index(cell, sums.sizes)
    shape, found = joint.shape.shape(given), list[tuple[int, Float64]]()
    for number, (level, size) in enumerate(zip(given, shape, strict=True)):
        weight = np.zeros(size)
        weight[sums.lookup.members(area) if number == sums.lookup.axis else place[number]] = 1.0
        found.append((level, weight))
    return found


# --- along a chain --------------------------------------------------------------------------------


def _along_chain(sums: AreaSums, leaves: Nodes, layers: Sequence[Layer]) -> tuple[Float64, Float64]:
    """Return estimates and variances, group after group of areas that do not overlap."""
    tree, lookup, cells = sums.plan.tree, sums.lookup, sums.cells
    estimate, variance = np.zeros((2, len(lookup) * cells))
    if not len(leaves):
        return estimate.reshape(-1, cells), variance.reshape(-1, cells)
    axes = zip(tree.axes, sums.levels, leaves.codes, strict=True)
    node, beside = sums.split([axis.ancestors(k)[code] for axis, k, code in axes])
    combined, best = upward(layers), least_squares(layers)[-1].estimate
    for area_of in lookup.partitions(tree.axes[lookup.axis].size(lookup.level)):
        area = area_of[node]
        groups = np.where(area >= 0, area * cells + beside, len(variance))
        found = variance_of_sums(layers, groups, combined)
        of = np.unique(groups[area >= 0])
        variance[of] = found[of]
        estimate += np.bincount(groups, best, minlength=len(estimate) + 1)[:-1]
    return estimate.reshape(-1, cells), variance.reshape(-1, cells)


def _layers_of_plan(plan: Plan) -> tuple[Nodes, list[Layer]]:
    """Return the leaves of a chain and its layers as public facts have them, with counts of 0."""
    outline, tree, released = Outline.of(plan), plan.tree, dict[Levels, Nodes]()
    for levels in plan.levels:
        sizes = [axis.size(level) for axis, level in zip(tree.axes, levels, strict=True)]
        public = plan.is_public(levels)
        rows = np.unravel_index(np.arange(tree.cells(levels) if public else 0), sizes)
        codes = tuple(row.astype(np.int32) for row in rows)
        released[levels] = Nodes.exact(codes, np.ones(len(codes[0]), dtype=np.int64))
    noisy = {c: np.zeros(tree.cells(c), dtype=np.int64) for c in noise_variances(plan)}
    stored = Stored(tree, noisy, noise_variances(plan), public_nodes(plan, released))
    nodes, layers = measured_nodes(stored, outline, released)
    return nodes[-1], layers


# --- along a spine --------------------------------------------------------------------------------


def _spine_estimates(stored: Stored, sums: AreaSums, joint: PlannedSpine) -> Float64:
    codes, _ = joint.codes_of(_given(sums))
    values = estimates_along_spine(sums.plan, stored, joint.levels(_given(sums)), codes)
    return _summed(sums, codes, values)


def _summed(sums: AreaSums, codes: Codes, values: Float64) -> Float64:
    """Return the sums over areas of listed cells: float64 (areas, cells beside)."""
    node, beside = sums.split(codes)
    axis = sums.plan.tree.axes[sums.lookup.axis]
    table = np.zeros((axis.size(sums.lookup.level), sums.cells))
    table[node, beside] = values
    return sums.lookup.sums(table)


def _spine_variances(sums: AreaSums, joint: PlannedSpine) -> Float64:
    """Return the variances: of each sum what the model makes of its own weights as noisy counts."""
    plan, given = sums.plan, _given(sums)
    source = _measured_below(sums, joint, given)
    fine, order = joint.codes_of(source)
    axes = zip(joint.shape.axes, source, given, fine, strict=True)
    node, beside = sums.split([axis.ancestors(k, above)[code] for axis, k, above, code in axes])
    noisy = {c: np.zeros(joint.possible_cells(c)) for c in joint.noise}
    own, found = joint.model.measured[source], np.zeros((len(sums.lookup), sums.cells))
    nothing = Nodes.exact(
        tuple(np.zeros(0, np.int32) for _ in plan.tree.axes), np.zeros(0, np.int64)
    )
    public = {levels: nothing for levels in plan.levels if plan.is_public(levels)}
    levels = {c: joint.levels(c) for c in joint.noise}
    inside = np.zeros(plan.tree.axes[sums.lookup.axis].size(sums.lookup.level), dtype=bool)
    for area in range(len(found)):
        inside[:] = False
        inside[sums.lookup.members(area)] = True
        for cell in range(sums.cells):
            weights = np.zeros(len(order))
            weights[order] = own * (inside[node] & (beside == cell))
            stored = Stored(
                plan.tree, {levels[c]: weights if c == source else noisy[c] for c in joint.noise},
                {levels[c]: v for c, v in joint.noise.items()}, public,
            )  # fmt: skip
            found[area, cell] = _spine_estimates(stored, sums, joint)[area, cell]
    return np.maximum(found, 0.0)


def _measured_below(sums: AreaSums, joint: PlannedSpine, given: Cuboid) -> Cuboid:
    """Return the smallest measured cuboid that refines the cells that are summed."""
    finer = [cuboid for cuboid in joint.noise if is_within(given, cuboid)]
    if not finer:
        raise ReleaseError(
            f"errors of areas by {sums.plan.tree.name_of(sums.levels)} are unknown: no measured "
            f"cuboid has all these levels; {COUNTS_ALONE}"
        )
    return min(finer, key=joint.possible_cells)
