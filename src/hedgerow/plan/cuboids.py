"""What a plan decides for one cuboid, and which cuboids of a workload can be measured."""

from collections.abc import Sequence
from fractions import Fraction

from hedgerow.arrays import Levels
from hedgerow.declared import frozen
from hedgerow.errors import PlanError, kind_of
from hedgerow.estimate.cube.shape import is_within
from hedgerow.estimate.families.euclidean import Euclidean
from hedgerow.estimate.families.isotonic import Isotonic
from hedgerow.limits import (
    MOST_CELLS_MEASURED,
    MOST_SUMMED_BINS,
    MOST_SUMMED_CELLS,
    MOST_WHOLE,
    MOST_WORK_OF_ROWS,
)
from hedgerow.noise.mechanisms import MECHANISMS, Mechanism, check_registered
from hedgerow.plan.workload import Chain, Workload, repeated, tables_of
from hedgerow.privacy.neighbours import Neighbours
from hedgerow.privacy.promise import Protection, Restriction
from hedgerow.tables.codes.ranges import is_numeric
from hedgerow.tables.tree import Tree


@frozen
class Measured:
    """A cuboid whose counts are measured: each gets fresh noise of ``mechanism``.

    Attributes:
        mechanism: the noise of one count.
        share: of the budget, above 0; relative to the other cuboids' (see `Plan.price_of_a_share`).

    Example:
        >>> tree = hr.Tree([hr.Ranges.equal_width("age", 0, 80, 8).axis([2, 4])])
        >>> plan = hr.make_plan(tree, budget=hr.Rho(1), allocation=hr.Shares([0, 0, 1]))
        >>> plan.depths[2] == hr.Measured(hr.DiscreteGaussian("1/2"), plan.shares[2])
        True
    """

    mechanism: Mechanism
    share: Fraction

    kind = "measured"


@frozen
class Summed:
    """A cuboid of which weighted running sums are measured: each gets fresh noise.

    Attributes:
        mechanism: the noise of one sum, in units of the sums.
        share: of the budget, above 0; relative to the other cuboids' (see `Plan.price_of_a_share`).
        scale: of the weights, public: a sum in records is one of these divided by it.

    Example:
        >>> ranges = hr.Ranges.equal_width("age", 0, 100, 100)
        >>> plan = hr.plan_distribution(ranges, budget=hr.Rho(1), measure=hr.RunningSums())
        >>> isinstance(plan.depths[-1], hr.Summed)
        True
    """

    mechanism: Mechanism
    share: Fraction
    scale: int

    kind = "summed"


@frozen
class Public:
    """A cuboid on whose counts all neighbours agree, so that they are released exactly.

    Example:
        >>> tree = hr.Tree([hr.Ranges.equal_width("age", 0, 80, 8).axis([2, 4])])
        >>> hr.make_plan(tree, budget=hr.Rho(1), neighbours=hr.Replace()).depths[0]
        Public()
    """

    kind = "public"


@frozen
class Unmeasured:
    """A cuboid without a measurement of its own: its counts follow from others.

    Example:
        >>> tree = hr.Tree([hr.Ranges.equal_width("age", 0, 80, 8).axis([2, 4])])
        >>> shares = hr.Shares([0, 0, 1])
        >>> hr.make_plan(tree, budget=hr.Rho(1), allocation=shares).depths[1]
        Unmeasured()
    """

    kind = "unmeasured"


@frozen
class Invariant:
    """Counts of one level that are public and held exactly (replace neighbours only).

    Attributes:
        axis: the axis.
        level: its level; all other axes at their root.

    Example:
        >>> tree = hr.Tree([hr.Ranges.equal_width("age", 0, 80, 8).axis([2, 4])])
        >>> exact = [hr.Invariant("age", "bins_4")]
        >>> plan = hr.make_plan(
        ...     tree, budget=hr.Rho(1), neighbours=hr.Replace(), invariants=exact
        ... )
        >>> plan.public_depth
        1
    """

    axis: str
    level: str


@frozen
class Survivors:
    """Measure the cells below counts that were released as positive.

    Along a chain these are the children of positive nodes, depth by depth. In a cube every cuboid
    but the largest ones is measured whole, and of those the cells all of whose margins are
    positive. What survives depends on noise, so sums of survivors are biased, and what was not
    measured of a sum is estimated by a model (`hedgerow.release.survivor_sums`).

    Example:
        >>> tree = hr.Tree([hr.Ranges.equal_width("age", 0, 80, 8).axis([2, 4])])
        >>> plan = hr.make_plan(tree, budget=hr.Rho(1), measure=hr.Survivors())
        >>> bool(hr.forecast(plan)["rmse"][0] < hr.forecast(plan)["noise_sd"][0])
        False
    """

    name = "survivors"
    method = Euclidean.name


@frozen
class All:
    """Measure every cell of every measured cuboid, which combining cuboids needs.

    Example:
        >>> tree = hr.Tree([hr.Ranges.equal_width("age", 0, 80, 8).axis([2, 4])])
        >>> plan = hr.make_plan(tree, budget=hr.Rho(1), measure=hr.All())  # the default
        >>> bool(hr.forecast(plan)["rmse"][0] < hr.forecast(plan)["noise_sd"][0])
        True
    """

    name = "all"
    method = Euclidean.name


@frozen
class RunningSums:
    """Measure weighted running sums of the bins that end a chain, not the bins themselves.

    For cumulative counts under Gaussian noise: see `hedgerow.estimate.running_sums`. Each node of
    the depth above the bins, such as an area, has a row of them with sums of its own, and nothing
    else is measured: counts of larger areas are sums of rows, and their errors add up.

    Example:
        >>> ranges = hr.Ranges.equal_width("age", 0, 100, 100)
        >>> plan = hr.plan_distribution(ranges, budget=hr.Rho(1), measure=hr.RunningSums())
        >>> [depth.kind for depth in plan.depths]
        ['public', 'summed']
    """

    name = "running-sums"
    method = Isotonic.name


CuboidPlan = Measured | Summed | Public | Unmeasured
Measure = Survivors | All | RunningSums
MEASURES: dict[str, Measure] = {kind.name: kind for kind in (Survivors(), All(), RunningSums())}
"""By the name that a release file and a manifest give them.

Each has the name of the estimator that is used where nobody names one: its ``method``.
"""


def check_tree(tree: object) -> None:
    """Raise a PlanError unless it is a tree."""
    if not isinstance(tree, Tree):
        refuse_kind("a plan's tree", "Tree([axis, …])", tree)


def check_parts(neighbours: object, mechanism: object, measure: object, workload: object) -> None:
    """Raise unless these are the parts of a plan: ``measure="all"`` would pass for survivors."""
    if not isinstance(neighbours, Neighbours):
        refuse_kind("neighbours", "AddRemove() or Replace()", neighbours)
    if isinstance(mechanism, type) and hasattr(mechanism, "draw"):
        check_registered(mechanism)
    else:
        kinds = " or ".join(kind.__name__ for kind in MECHANISMS.values())
        refuse_kind("a mechanism", f"the class {kinds}", mechanism)
    if not isinstance(measure, Measure):
        refuse_kind("measure", "All(), Survivors() or RunningSums()", measure)
    if isinstance(measure, RunningSums) and not isinstance(workload, Chain):
        raise PlanError('measure = "running-sums" goes with cuboids = "chain"')


def refuse_kind(name: str, fitting: str, given: object) -> None:
    """Raise a PlanError that says what would fit, and what was given."""
    raise PlanError(f"{name} must be {fitting}, got {kind_of(given)}")


def whole_cuboids(
    tree: Tree, workload: Workload, measure: Measure, public: Levels | None
) -> frozenset[Levels]:
    """Return the cuboids of which every cell is measured, public or a sum of such.

    Under `Survivors` these are all but the tables that have a coarser cuboid among those named, and
    all of at most 2²⁶ cells. Of the others survivors are measured.
    """
    every = workload.cuboids(tree)
    if not isinstance(measure, Survivors):
        return frozenset(every)
    if isinstance(workload, Chain):
        return frozenset(every[:1])
    named = [levels for levels in workload.named(tree) if tree.cells(levels) > 1]
    below = [
        (table, tree.cells(table))
        for table in tables_of(tree, every)
        if not is_within(table, public)
        and any(is_within(k, table) and tree.cells(k) < tree.cells(table) for k in named)
    ]
    return frozenset(
        levels
        for levels in every
        if (cells := tree.cells(levels)) <= MOST_WHOLE
        and not any(cells == most and is_within(table, levels) for table, most in below)
    )


def measurable(
    tree: Tree,
    workload: Workload,
    neighbours: Neighbours,
    invariants: Sequence[Invariant],
) -> list[Levels]:
    """Return the cuboids of a workload that are neither public nor the cells of a coarser one.

    A cuboid with an axis at a level of only children repeats the counts above it, so measuring it
    tells nothing new: the coarsest with its cells is measured.
    """
    every = workload.cuboids(tree)
    exact = public_cuboid(tree, workload, neighbours, invariants)
    again = repeated(tree, every)
    named = {again.get(levels, levels) for levels in workload.named(tree)}
    return [levels for levels in every if levels in named and not is_within(levels, exact)]


def public_cuboid(
    tree: Tree,
    workload: Workload,
    neighbours: Neighbours,
    invariants: Sequence[Invariant],
) -> Levels | None:
    """Return the finest cuboid on whose counts all neighbours agree; None for none at all.

    Those of its coarsenings are public too, and no others.

    Raises:
        PlanError: invariants that neighbours do not agree on, that are no cuboids of the workload,
            or of which none refines all the others.
    """
    if invariants and not neighbours.total_is_public:
        raise PlanError(
            "invariants need replace neighbours and units with exactly as many records as "
            "contributions says: otherwise one unit changes the total, so neighbours would not "
            "agree on the invariant counts"
        )
    if not neighbours.total_is_public:
        return None
    every = workload.cuboids(tree)
    exact = [_levels_of(tree, invariant) for invariant in invariants]
    for invariant, levels in zip(invariants, exact, strict=True):
        if levels not in every:
            name = f"{invariant.axis}.{invariant.level}"
            listed = ", ".join(map(tree.name_of, every))
            if isinstance(workload, Chain):
                raise PlanError(
                    f"invariant {name} is not a depth of this tree; put its axis down to that "
                    f"level first in refine (the depths are {listed})"
                )
            raise PlanError(
                f"invariant {name} is no cuboid of the workload; name it, too (there are {listed})"
            )
    finest = max([every[0], *exact], key=sum)
    for levels in exact:
        if not is_within(levels, finest):
            raise PlanError(
                f"invariants must be nested: {tree.name_of(levels)} and {tree.name_of(finest)} are "
                f"not; held exactly together, the two would leave records that cannot move alone, "
                f"and publish their pairs"
            )
    return finest


def protection(
    tree: Tree,
    workload: Workload,
    neighbours: Neighbours,
    invariants: Sequence[Invariant],
) -> Protection:
    """Return who is protected, and what neighbours agree on: invariants, and lists from the table.

    Only the finest invariant level of an axis is named: coarser counts are sums of its counts.
    """
    public_cuboid(tree, workload, neighbours, invariants)
    restrictions = []
    for axis in tree.axes:
        levels = [axis.level_number(i.level) for i in invariants if i.axis == axis.name]
        exact: list[str | None] = [axis.levels[max(levels) - 1]] if levels else []
        listed = [None] if axis.from_table else []
        restrictions += [Restriction(axis.name, level, axis.digest) for level in exact + listed]
    return Protection(neighbours, tuple(restrictions))


def goes_along_spine(tree: Tree, workload: Workload) -> bool:
    """Return whether a release goes along a spine: attributes are set beside one axis."""
    return tree.spine is not None and not isinstance(workload, Chain)


def check_size(tree: Tree, workload: Workload, measure: Measure) -> None:
    """Raise a PlanError if all cells of a cuboid with more than 2³² would be measured.

    Along a spine those count that public facts do not rule out (`hedgerow.plan.spine`).
    """
    if not goes_along_spine(tree, workload):
        check_whole(tree, workload, measure)


def check_whole(tree: Tree, workload: Workload, measure: Measure) -> None:
    """Raise a PlanError if all cells of a table with more than 2³² would be measured."""
    largest = max(map(tree.cells, tables_of(tree, workload.cuboids(tree))))
    if isinstance(measure, All) and largest > MOST_CELLS_MEASURED:
        raise PlanError(
            f"measuring all nodes would draw noise for {largest:,} leaves, more than "
            f'2**32; measure survivors alone (measure = "survivors")'
        )


def check_running_sums(
    tree: Tree, mechanism: type[Mechanism], measured: Sequence[Levels], public: Levels | None
) -> None:
    """Raise a PlanError unless rows of bins, and nothing else, are measured under Gaussian noise.

    Args:
        tree: whose last depth is the bins.
        mechanism: of the noise.
        measured: the cuboids that are measured.
        public: the finest one that is public.
    """
    rule, (last, level) = 'measure = "running-sums" ', tree.steps[-1]
    rows = tree.chain[-2]
    axis = tree.axes[last]
    bins = axis.leaves
    if not (tree.depth == 1 or is_numeric(axis)):
        raise PlanError(
            f"{rule}is for a chain that ends with the bins of a numeric axis, and this one ends "
            f"with {axis.name!r}; refine the bins last (refine = [...] in [tree])"
        )
    if level != 1:
        raise PlanError(
            f"{rule}is for a chain that ends with the bins of an axis of one level, and "
            f"{axis.name!r} has {level}; leave out branching, or name the number of bins as the "
            "only one"
        )
    if not 2 <= bins <= MOST_SUMMED_BINS:
        raise PlanError(f'{rule}is for 2 to 2^16 bins, got {bins:,}; use measure = "all"')
    if tree.leaves > MOST_SUMMED_CELLS or tree.leaves * bins > MOST_WORK_OF_ROWS:
        raise PlanError(
            f"{rule}of {tree.cells(rows):,} rows of {bins:,} bins would take too much time or "
            'memory; name fewer bins, or use measure = "all"'
        )
    if mechanism.price.norm != 2:
        raise PlanError(rule + "goes with discrete Gaussian noise: give rho, or epsilon and delta")
    if list(measured) != [tree.finest]:
        raise PlanError(
            rule + "measures the bins alone, which tell all above them: leave out "
            '[allocation], or use method = "distribution"'
        )
    if public is not None and any(public) and public != rows:
        raise PlanError(
            f"{rule}goes with public counts of {tree.name_of(rows)} or of the total, got those of "
            f"{tree.name_of(public)}"
        )


def _levels_of(tree: Tree, invariant: Invariant) -> Levels:
    """Return the cuboid whose counts an invariant publishes."""
    names = tree.axis_names
    if invariant.axis not in names:
        raise PlanError(f"invariant: no axis {invariant.axis!r}; the axes are {', '.join(names)}")
    return tree.cuboid_of({invariant.axis: invariant.level})
