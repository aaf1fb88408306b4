"""How the variances of a plan's estimates follow from its shares and budget, for a browser.

A page cannot hold the answers to all questions that a slider asks, so it holds what they follow
from, and computes them (`solver.js`):

- *projected*: a chain measured from survivors. Mean variances are linear in those of the noise
  (`Shapes.projection`), a small matrix.
- *combined*: a chain under least squares. The two passes of `hedgerow.estimate.tree.passes` go over
  the distinct subtrees of each depth; sums over nodes that are alike are exact.
- *cube*: every combination of levels with shares that are a product over the axes: each axis is a
  chain of its own, and a cuboid's mean variance is a product (`hedgerow.estimate.cube.variances`).
- *fixed*: everything else. The shares stay as they are, and the variances of `forecast` are
  carried at some budgets: times ρ (or ε²) they hardly change, so that a line between two is near.

The noise of a share is what `hedgerow.privacy.calibrate` buys; its variance, which is not quite
that of wide noise, is a table by precision. Everything is a public fact.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from hedgerow.estimate.cube.shape import at_level
from hedgerow.estimate.tree.shapes import LevelShapes, Shapes, level_shapes
from hedgerow.noise.loss import GaussianLoss
from hedgerow.noise.mechanisms import Mechanism
from hedgerow.plan.cube import PlannedCube
from hedgerow.plan.cuboids import All, Measured, Public, Survivors, measurable
from hedgerow.plan.plan import Plan
from hedgerow.privacy.budget import EpsilonDelta
from hedgerow.privacy.calibrate import norm_of
from hedgerow.privacy.neighbours import Change, Norm

MOST_WORK = 150_000
"""Pairs of distinct subtrees, parent and child, that a browser goes over at each move."""

MOST_AXES_OF_CUBE, MOST_CUBOIDS = 8, 400
"""Of a cube that a browser computes."""

WIDEST, NARROWEST, NODES = 1e4, 0.02, 600
"""Nominal variances (records²) between which the true ones are carried, and how many."""

DIGITS = 9


def solver_of(plan: Plan) -> dict[str, Any]:
    """Return what the variances of a plan follow from, as JSON.

    Returns:
        ``kind``, and what it needs; ``rows``: how many cuboids the workload has; ``measurable``:
        the rows that can have a share; ``public``: the rows that are public; ``changes``: for each
        that can have a share the norms of what one unit changes, one a case; ``moves``: the same
        changes themselves, where the page's own accountant takes them; ``price``; ``noise``.
    """
    price = plan.mechanism.price
    possible = set(measurable(plan.tree, plan.workload, plan.neighbours, plan.invariants))
    rows = [row for row, levels in enumerate(plan.levels) if levels in possible]
    norm = norm_of(price)
    changes = [plan.neighbours.changes(sum(plan.levels[row])) for row in rows]
    kinds = (_projected, _combined, _cube)
    own: dict[str, Any] = {"kind": "fixed"}
    if is_movable(plan):
        own = next((found for kind in kinds if (found := kind(plan)) is not None), own)
    return {
        **own,
        "rows": len(plan.levels),
        "measurable": rows,
        "public": [row for row, what in enumerate(plan.by_levels.values()) if what == Public()],
        "changes": [[float(norm(change)) for change in cases] for cases in changes],
        "moves": _moves(plan, changes),
        "price": {"power": price.power, "variance": float(price.variance)},
        "noise": _true_variances(plan.mechanism),
    }


def is_movable(plan: Plan) -> bool:
    """Return whether what a budget buys hardly depends on the shares.

    Where an (ε, δ) budget rests on a bound of the loss (`Profile.is_exact`), it does.
    """
    return plan.guarantee.is_exact or not isinstance(plan.budget, EpsilonDelta)


def accounts_itself(plan: Plan) -> bool:
    """Return whether the page's own accountant takes what one unit changes."""
    possible = measurable(plan.tree, plan.workload, plan.neighbours, plan.invariants)
    return _moves(plan, [plan.neighbours.changes(sum(levels)) for levels in possible]) is not None


def _moves(plan: Plan, changes: Sequence[tuple[Change, ...]]) -> list[list[int]] | None:
    """Return what one unit changes in each cuboid, where the page's own accountant takes it."""
    only = [change for cases in changes if len(cases) == 1 for change in cases]
    gaussian = [isinstance(use.noise.loss(1), GaussianLoss) for use in plan.guarantee.uses]
    if not plan.guarantee.is_exact or not all(gaussian):
        return None
    if len(only) < len(changes) or any(isinstance(change, Norm) for change in only):
        return None
    return [list(change) for change in only if not isinstance(change, Norm)]


def _true_variances(mechanism: type[Mechanism]) -> dict[str, Any]:
    """Return ln of the variance of noise at precisions whose logarithms are evenly spaced."""
    price = mechanism.price
    ends = [(float(price.variance) / v) ** (1 / price.power) for v in (WIDEST, NARROWEST)]
    logs = np.linspace(math.log(ends[0]), math.log(ends[1]), NODES)
    each = (mechanism.with_precision(Fraction(math.exp(x)).limit_denominator(10**9)) for x in logs)
    found = [math.log(max(noise.noise_variance, 1e-300)) for noise in each]
    return {
        "first": float(logs[0]),
        "step": float(logs[1] - logs[0]),
        "log_variances": _rounded(found),
    }


def is_measured_throughout(plan: Plan) -> bool:
    """Return whether a chain has noisy counts of all depths but those that repeat the one above."""
    possible = set(measurable(plan.tree, plan.workload, plan.neighbours, plan.invariants))
    told = plan.by_levels.items()
    return all(isinstance(what, Measured) for levels, what in told if levels in possible)


def _projected(plan: Plan) -> dict[str, Any] | None:
    if not plan.is_chain or not isinstance(plan.measure, Survivors):
        return None
    if not is_measured_throughout(plan):
        return None
    shapes = Shapes.of(plan.tree)
    matrix = shapes.projection / shapes.sizes[:, None]
    return {"kind": "projected", "matrix": [_rounded(row) for row in matrix]}


def _combined(plan: Plan) -> dict[str, Any] | None:
    if not plan.is_chain or not isinstance(plan.measure, All):
        return None
    shapes = Shapes.of(plan.tree)
    if not shapes.fit or _work(shapes) > MOST_WORK:
        return None
    return {
        "kind": "combined",
        "axes": [_levels(axis) for axis in shapes.levels],
        "steps": [list(step) for step in shapes.steps],
    }


def _work(shapes: Shapes) -> int:
    """Return how many pairs of distinct subtrees one pass goes over."""
    found = 0
    for depth in range(1, shapes.depth + 1):
        level, (before, _, after), _ = shapes.refined(depth)
        found += before * len(level.child) * after
    return found


def _cube(plan: Plan) -> dict[str, Any] | None:
    if plan.is_chain or not isinstance(plan.joint, PlannedCube):
        return None
    cube = plan.joint
    is_small = len(cube.shape.axes) <= MOST_AXES_OF_CUBE and len(plan.levels) <= MOST_CUBOIDS
    if not is_small or len(cube.whole) < len(cube.cuboids):
        return None
    axes = [level_shapes(axis.child_start) for axis in cube.shape.axes]
    if sum(len(level.child) for axis in axes for level in axis) > MOST_WORK:
        return None
    known = cube.shape.within(cube.public)
    finest = cube.shape.finest
    return {
        "kind": "cube",
        "axes": [_levels(axis) for axis in axes],
        "cuboids": [list(cube.shape.given(levels)) for levels in plan.levels],
        "exact": None if cube.public is None else list(cube.public),
        # A level that is public even beside the leaves is never measured.
        "known": [
            [at_level(finest, axis, k) in known for k in range(own.depth + 1)]
            for axis, own in enumerate(cube.shape.axes)
        ],
    }


def shares_for(plan: Plan) -> list[Any]:
    """Return the shares of a plan as the solver takes them: by axis of a cube, else by cuboid."""
    if is_movable(plan) and _cube(plan) is not None:
        return [[float(f / sum(each)) for f in each] for each in plan.cube.factors]
    possible = set(measurable(plan.tree, plan.workload, plan.neighbours, plan.invariants))
    given = zip(plan.levels, plan.shares, strict=True)
    return [float(share or 0) for levels, share in given if levels in possible]


def _levels(axis: Sequence[LevelShapes]) -> list[dict[str, list[int]]]:
    return [
        {
            "nodes": [int(n) for n in level.nodes],
            "start": level.start.tolist(),
            "child": level.child.tolist(),
            "times": [int(n) for n in level.times],
        }
        for level in axis
    ]


def _rounded(numbers: Sequence[float] | np.ndarray[Any, Any]) -> list[float]:
    return [float(f"{number:.{DIGITS}g}") for number in numbers]
