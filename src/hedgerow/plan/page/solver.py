"""How the variances of a plan's estimates follow from its shares and budget, for a browser.

A page cannot hold the answers to all questions that a slider asks, so it holds what they follow
from, and computes them (`solver.js`):

- *projected*: a chain measured from survivors. Mean variances are linear in those of the noise
  (`Shapes.projection`), a small matrix.
- *combined*: a chain under least squares. The two passes of `hedgerow.estimate.tree.error` go over
  the distinct subtrees of each depth; sums over nodes that are alike are exact.
- *cube*: every combination of levels with shares that are a product over the axes: each axis is a
  chain of its own, and a cuboid's mean variance is the sum over all cuboids' noise of products of
  what each axis's levels have in it (`hedgerow.estimate.cube.variances`), whatever noise it is.
- *fixed*: everything else. The shares stay those of the divisions that were computed beforehand,
  and the errors of `forecast` are carried at each budget.

The noise of a share is what `hedgerow.privacy.calibrate` buys; its variance, which is not quite
that of wide noise, is a table by precision. What it promises, the page computes by case of what one
unit can do (`points.js`). Everything is a public fact.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from hedgerow.estimate.tree.shapes import LevelShapes, Shapes, level_shapes
from hedgerow.limits import MOST_PAIRS_OF_A_MOVE
from hedgerow.noise.loss import GaussianLoss, InEpsilon, precision_of
from hedgerow.noise.mechanisms import Mechanism
from hedgerow.plan.cuboids import All, Measured, Public, Survivors
from hedgerow.plan.plan import Plan
from hedgerow.plan.tables import PlannedTables
from hedgerow.privacy.budget import EpsilonDelta
from hedgerow.privacy.calibrate import norm_of
from hedgerow.privacy.neighbours import Change, Norm, l2_squared
from hedgerow.privacy.use import Use
from hedgerow.text import Json

MOST_AXES_OF_CUBE, MOST_CUBOIDS_OF_CUBE = 8, 400
"""Of a cube that a browser computes."""

WIDEST, NARROWEST, NODES = 1e4, 0.02, 600
"""Nominal variances (records²) between which the true ones are carried, and how many."""

DIGITS = 9


def solver_of(plan: Plan) -> Json:
    """Return what the variances of a plan follow from, as JSON.

    Returns:
        ``kind``, and what it needs; ``rows``: how many cuboids the workload has; ``measurable``:
        the rows that can have a share; ``public``: the rows that are public; ``changes``: for each
        that can have a share the norms of what one unit changes, one a case, and ``squares``, their
        squared ℓ2 norms; ``moves``: the sizes of the changes themselves, where these are proved to
        be the worst; ``law``: of the privacy loss (`law_of`); ``price``, with the ρ of noise of
        precision 1; ``noise``.
    """
    price = plan.mechanism.price
    possible = plan.possible_shares
    rows = [row for row, levels in enumerate(plan.levels) if levels in possible]
    norm = norm_of(price)
    changes = [plan.changes(plan.levels[row]) for row in rows]
    uses = plan.guarantee.uses
    kinds = (_projected, _combined, _cube)
    own: Json = {"kind": "fixed"}
    if is_priced(plan):
        own = next((model for kind in kinds if (model := kind(plan)) is not None), own)
    return {
        **own,
        "rows": len(plan.levels),
        "measurable": rows,
        "public": [row for row, what in enumerate(plan.by_levels.values()) if what == Public()],
        "changes": [[float(norm(change)) for change in cases] for cases in changes],
        "squares": [[float(l2_squared(change)) for change in cases] for cases in changes],
        "moves": _moves(changes) if plan.guarantee.is_worst else None,
        "law": law_of(plan),
        "price": {
            "power": price.power,
            "variance": float(price.variance),
            "rho": float(max(u.noise.rho(Fraction(1)) / _spent(u) ** price.power for u in uses)),
        },
        "noise": _true_variances(plan.mechanism),
    }


def is_priced(plan: Plan) -> bool:
    """Return whether the page can compute what a budget buys of this noise, for any shares."""
    return law_of(plan) is not None or not isinstance(plan.budget, EpsilonDelta)


def law_of(plan: Plan) -> str | None:
    """Return the law of the privacy loss of the noise, where the page's own accountant takes it.

    Returns:
        ``gaussian``: of discrete Gaussian noise of σ² = 1/(2 precision); ``pairs``: of one that is
        the precision or less it at a move by one, as that of discrete Laplace noise; None for
        others, of which ρ and pure ε alone are known.
    """
    uses = plan.guarantee.uses
    if all(use.noise.loss(1) == GaussianLoss(1 / (2 * _spent(use)), 1) for use in uses):
        return "gaussian"
    if isinstance(plan.mechanism.price, InEpsilon):
        return "pairs"
    return None


def _spent(use: Use) -> Fraction:
    return precision_of(use.noise)


def _moves(changes: Sequence[tuple[Change, ...]]) -> list[list[list[int]]]:
    return [
        [[abs(shift) for shift in change] for change in cases if not isinstance(change, Norm)]
        for cases in changes
    ]


def _true_variances(mechanism: type[Mechanism]) -> Json:
    """Return ln of the variance of noise at precisions whose logarithms are evenly spaced."""
    price = mechanism.price
    ends = [(float(price.variance) / v) ** (1 / price.power) for v in (WIDEST, NARROWEST)]
    logs = np.linspace(math.log(ends[0]), math.log(ends[1]), NODES)
    each = (mechanism.with_precision(Fraction(math.exp(x)).limit_denominator(10**9)) for x in logs)
    log_variances = [math.log(max(noise.noise_variance, 1e-300)) for noise in each]
    return {
        "first": float(logs[0]),
        "step": float(logs[1] - logs[0]),
        "log_variances": _rounded(log_variances),
    }


def is_measured_throughout(plan: Plan) -> bool:
    """Return whether a chain has noisy counts of all depths but those that repeat the one above."""
    return all(isinstance(plan.by_levels[levels], Measured) for levels in plan.possible_shares)


def _projected(plan: Plan) -> Json | None:
    if not plan.is_chain or not isinstance(plan.measure, Survivors):
        return None
    if not is_measured_throughout(plan):
        return None
    shapes = Shapes.of(plan.tree)
    matrix = shapes.projection / shapes.sizes[:, None]
    return {"kind": "projected", "matrix": [_rounded(row) for row in matrix]}


def _combined(plan: Plan) -> Json | None:
    if not plan.is_chain or not isinstance(plan.measure, All):
        return None
    shapes = Shapes.of(plan.tree)
    if not shapes.fit or _work(shapes) > MOST_PAIRS_OF_A_MOVE:
        return None
    return {
        "kind": "combined",
        "axes": [_levels(axis) for axis in shapes.levels],
        "steps": [list(step) for step in shapes.steps],
    }


def _work(shapes: Shapes) -> int:
    """Return how many pairs of distinct subtrees one pass goes over."""
    pairs = 0
    for depth in range(1, shapes.depth + 1):
        level, (before, _, after), _ = shapes.refined(depth)
        pairs += before * len(level.child) * after
    return pairs


def _cube(plan: Plan) -> Json | None:
    cube = plan.design
    if plan.axis_shares is None or not isinstance(cube, PlannedTables):
        return None
    is_small = (
        len(cube.shape.axes) <= MOST_AXES_OF_CUBE and len(plan.levels) <= MOST_CUBOIDS_OF_CUBE
    )
    if not is_small or len(cube.whole) < len(cube.cuboids):
        return None
    axes = [level_shapes(axis.child_start) for axis in cube.shape.axes]
    if sum(len(level.child) for axis in axes for level in axis) > MOST_PAIRS_OF_A_MOVE:
        return None
    return {
        "kind": "cube",
        "axes": [_levels(axis) for axis in axes],
        "cuboids": [list(cube.shape.given(levels)) for levels in plan.levels],
        "exact": None if cube.public is None else list(cube.public),
    }


def shares_for(plan: Plan) -> list[Any]:
    """Return the shares of a plan as the solver takes them: by axis of a cube, else by cuboid."""
    if is_priced(plan) and _cube(plan) is not None:
        return [[float(share) for share in each] for each in plan.axis_shares or ()]
    return [float(share) for share in plan.possible_shares.values()]


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
