"""Which model estimates the cuboids of a plan along its spine, from shares and public facts."""

from collections.abc import Mapping
from math import prod

import numpy as np

from hedgerow.arrays import Int32, Levels
from hedgerow.errors import EstimateError, PlanError
from hedgerow.estimate.cube.shape import CubeShape
from hedgerow.estimate.spine.coupled import MOST_APART
from hedgerow.estimate.spine.marginals.marginals import Marginals
from hedgerow.estimate.spine.model import Model
from hedgerow.estimate.spine.nested.nested import Nested
from hedgerow.limits import MOST_ATTRIBUTE_CELLS, MOST_CELLS_MEASURED
from hedgerow.plan.cuboids import All, Measured
from hedgerow.plan.design import Planned
from hedgerow.plan.joint import own_levels, shape_of_tree
from hedgerow.plan.known import Known, attribute_cells, known_cells
from hedgerow.plan.product import axis_factors, product_variances
from hedgerow.plan.public_rows import SECTION
from hedgerow.plan.spine import PlannedSpine
from hedgerow.plan.tables import SMALLEST, wide_variance
from hedgerow.tables.tree import Tree

NEXT_TO_NONE = 1e-4
"""Of a noise variance, records²: a hundredth of a record."""


class NoSpineError(EstimateError):
    """Cuboids that can be held as tables cannot go along a spine, and why, in a clause."""


def planned_spine(plan: Planned) -> PlannedSpine:
    """Return what a plan decides for cuboids along the spine of its tree.

    Raises:
        NoSpineError: without public facts, which tables cannot use: survivors are measured, more
            than the total is public, or no model fits.
        PlanError: the spine is not the first axis, too many cells would be measured, or the same
            of a plan with public facts.
    """
    tree, public = plan.tree, plan.public
    if plan.known is None:
        _check_admitted(plan)
    else:
        _check_with_facts(plan)
    _check_order(tree)
    known = known_cells(tree, ()) if plan.known is None else plan.known
    shape = shape_of_tree(tree)
    measured = {
        shape.given(levels): what
        for levels, what in plan.by_levels.items()
        if isinstance(what, Measured)
    }
    if plan.known is None and shape.finest not in measured:
        raise NoSpineError(f"{tree.name_of(tree.chain[-1])} is not measured")
    noise = _noise_variances(measured)
    own = own_levels(shape, plan.by_levels)
    exact = None if public is None else shape.given(public)
    try:
        model = _nested(shape, measured, exact, known) or _marginals(shape, noise, exact, known)
    except EstimateError as error:
        raise (NoSpineError if plan.known is None else PlanError)(str(error)) from None
    wide = {cuboid: wide_variance(what.mechanism) for cuboid, what in measured.items()}
    excess = max((wide[cuboid] / variance for cuboid, variance in noise.items()), default=1.0)
    leaves = _detail_leaves(shape, model, _group_axis(shape, known))
    found = PlannedSpine(
        plan, shape, noise, exact, frozenset(own), model, leaves, ~known.zeros[leaves], own, excess
    )
    if (cells := found.held[-1]) > MOST_CELLS_MEASURED:
        raise PlanError(
            f"this plan would measure {cells:,} cells at the finest level of the spine, more than "
            f"2**32: say what nobody can be in ([[public]]), or leave out a level"
        )
    return found


def _noise_variances(measured: Mapping[Levels, Measured]) -> dict[Levels, float]:
    """Return the noise variances of measured cuboids, those of next to no noise raised a little.

    A budget that leaves one cuboid no noise at all may leave another much: raised to `NEXT_TO_NONE`
    at most, least squares hold both, and estimates vary by less than is said.
    """
    found = {cuboid: what.mechanism.noise_variance for cuboid, what in measured.items()}
    held = max(found.values(), default=0.0) / MOST_APART
    least = max(SMALLEST, min(held, NEXT_TO_NONE))
    return {cuboid: max(variance, least) for cuboid, variance in found.items()}


def _check_order(tree: Tree) -> None:
    """Raise a PlanError unless the spine comes first."""
    spine = tree.axes[tree.spine or 0].name
    if tree.spine != 0 or not tree.is_spine_first:
        raise PlanError(
            f"a release along a spine takes the axis {spine!r} first: list it first, and in refine "
            f"all its levels before those of the attributes (or leave refine out)"
        )


def _check_admitted(plan: Planned) -> None:
    """Raise a NoSpineError unless a plan without public facts may go along its spine."""
    cells, public = attribute_cells(plan.tree), plan.public
    if cells > MOST_ATTRIBUTE_CELLS:
        raise NoSpineError(
            f"the attributes have {cells:,} cells, more than {MOST_ATTRIBUTE_CELLS:,}"
        )
    if not isinstance(plan.measure, All):
        raise NoSpineError("all cells are measured there, not survivors")
    if public is not None and any(public):
        raise NoSpineError("only the total can be held exactly there")


def _check_with_facts(plan: Planned) -> None:
    """Raise a PlanError if survivors are measured beside public facts, or more is held exactly."""
    tree, public = plan.tree, plan.public
    if not isinstance(plan.measure, All):
        raise PlanError(
            f"with {SECTION} all cells are measured that public facts do not rule out: leave "
            'measure out, or set measure = "all"'
        )
    if public is not None and any(public):
        raise PlanError(
            f"along the spine {tree.axes[tree.spine or 0].name!r} only the total can be held "
            "exactly; leave out [[invariant]], or the attributes (attribute = true)"
        )


def _nested(
    shape: CubeShape,
    measured: Mapping[Levels, Measured],
    public: Levels | None,
    known: Known,
) -> Model | None:
    """Return the model of a cube over the spine and one attribute, if shares are a product."""
    if len(shape.axes) != 2 or shape.finest not in measured:
        return None
    factors = axis_factors(shape, {c: what.share for c, what in measured.items()}, public)
    if factors is None:
        return None
    spine, attribute = product_variances(shape, factors, measured[shape.finest].mechanism, public)
    return Nested.of(
        shape.axes[0],
        shape.axes[1],
        known.group_level,
        known.has,
        known.bounds,
        known.zeros,
        spine,
        attribute,
        total_known=public is not None,
        noise={cuboid: what.mechanism.noise_variance for cuboid, what in measured.items()},
    )


def _marginals(
    shape: CubeShape, noise: Mapping[Levels, float], public: Levels | None, known: Known
) -> Model:
    """Return the model of any cuboids over the spine and attributes of two levels.

    Raises:
        EstimateError: it does not fit.
    """
    axis = _group_axis(shape, known)
    by_group = known.has, known.bounds
    has, bounds = by_group if axis is None else known.at_leaves(axis, shape.axes[axis])
    return Marginals.of(
        shape,
        0,
        axis,
        has,
        bounds,
        known.zeros,
        noise,
        total_known=public is not None,
    )


def _group_axis(shape: CubeShape, known: Known) -> int | None:
    """Return the attribute axis of the groups: the facts', or the one that has several levels."""
    several = [a for a, axis in enumerate(shape.axes) if a and axis.depth > 1]
    return known.group_axis or (several[0] if several else None)


def _detail_leaves(shape: CubeShape, model: Model, group_axis: int | None) -> Int32:
    """Return the attribute leaf that each detail cell is: int32 (detail cells of all groups)."""
    if isinstance(model, Nested):
        return model.detail_leaves
    sizes = [axis.sizes[-1] for axis in shape.axes[1:]]
    every = np.arange(prod(sizes), dtype=np.int32).reshape(sizes)
    if group_axis is None:
        return every.ravel()
    by_group = np.moveaxis(every, group_axis - 1, 0).reshape(sizes[group_axis - 1], -1)
    return by_group[model.support.widths > 0].ravel()
