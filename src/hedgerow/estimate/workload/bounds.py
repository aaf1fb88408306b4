"""Upper bounds of variances where exact ones are too much work.

By Gauss and Markov the best linear unbiased estimate of a cell has no larger variance than any
other linear unbiased one, from the same measurements or from fewer. Two of these have variances
that are cheap to know, and each cell takes the smaller:

1. what one chain of nested cuboids says of it, those of the most cells that refine the cell's
   cuboid or are refined by it (`Chain.variances_of`): least squares from some measurements;
2. the mean of the sums of all measured cuboids d that refine its cuboid, weighted by their inverse
   variances: 1 / Σ_d 1 / (v_d r_d), r_d being the number of d's cells in the cell. It is unbiased,
   and its terms are independent.

*From below.* With J = Σ_c S_cᵀS_c / v_c the variance of the sum aᵀx of a cell's finest cells is the
largest (aᵀu)² / (uᵀJu) over all u that are 0 on what is public (Cauchy and Schwarz). Here u is any
combination Σ_d y_d u_d over the cuboids d that the cell's refines, u_d being one record spread
evenly over the finest cells below d's cell around it. As s²/t is convex, the mean of this over the
cells of a cuboid is at least (yᵀa)² / (yᵀGy), a and G the means of aᵀu_d and of u_dᵀJu_e over these
cells; and they are sums of products over axes. The best y makes it aᵀG⁻¹a. Where the nodes of a
level all have as many children nothing is lost: moving cells within their parents changes neither a
nor J, so the best u is such a combination.
"""

from collections.abc import Iterable
from functools import reduce
from itertools import product

import numpy as np

from hedgerow.arrays import Float64, FloatPair, Levels
from hedgerow.estimate.cube.shape import AxisShape, is_within
from hedgerow.estimate.workload.chains import heaviest
from hedgerow.estimate.workload.dual import combined_sums
from hedgerow.estimate.workload.observed import Observed
from hedgerow.limits import MOST_SPREAD


def bounds(observed: Observed, cuboid: Levels) -> tuple[Levels, Float64]:
    """Return bounds of the variances of a cuboid's cells, alike below the cells of a coarser one.

    Returns:
        That coarser cuboid, or the cuboid itself; and float64 (its cells along each axis).
    """
    nested = [c for c in observed.variances if is_within(c, cuboid) or is_within(cuboid, c)]
    if cuboid in observed.tables:  # no other measurement refines it
        return heaviest(observed, nested, cuboid).variances_of(cuboid)
    variances = combined_sums(observed.shape, observed.variances, cuboid)
    for table in observed.tables:
        if is_within(cuboid, table):
            np.minimum(
                variances, heaviest(observed, nested, table).own_variances(cuboid), out=variances
            )
    return cuboid, variances


def least_mean(observed: Observed, cuboid: Levels) -> float:
    """Return what the mean variance of a cuboid's cells is at least, records²; 0 if that is all.

    It is 0 where a cell of the cuboid holds parts of several cells that are public.
    """
    axes = observed.shape.axes
    spread_over: Iterable[Levels] = product(*(range(k + 1) for k in cuboid))
    if np.prod([k + 1 for k in cuboid], dtype=object) > MOST_SPREAD:
        spread_over = {cuboid, *(c for c in observed.variances if is_within(c, cuboid))}
    public = observed.public
    every = [d for d in sorted(spread_over) if public is None or is_within(public, d)]
    if len(every) <= (public is not None):
        return 0.0
    means = [_spread_means(axis, level) for axis, level in zip(axes, cuboid, strict=True)]
    at = list(zip(*every, strict=True))
    inside = reduce(np.multiply, [own[list(d)] for (own, _), d in zip(means, at, strict=True)])
    information = np.zeros((len(every), len(every)))
    for measured, variance in observed.variances.items():
        each = zip(means, at, measured, strict=True)
        information += (
            reduce(np.multiply, [both[c][np.ix_(d, d)] for (_, both), d, c in each]) / variance
        )
    if public is not None:  # y sums to 0: all u_d have one record in the same public cell
        turn = np.vstack([np.eye(len(every) - 1), -np.ones(len(every) - 1)])
        inside, information = turn.T @ inside, turn.T @ information @ turn
    scale = 1 / np.sqrt(np.diag(information))
    best = (
        scale * np.linalg.lstsq(scale[:, None] * information * scale, scale * inside, rcond=None)[0]
    )
    below = float(best @ information @ best)
    return float(best @ inside) ** 2 / below if below > 0 else 0.0


def _spread_means(axis: AxisShape, level: int) -> FloatPair:
    """Return means over the nodes of a level of an axis, of a record spread below their ancestors.

    Returns:
        float64 (level + 1): for each level d what lies in the node of a record spread evenly over
        the finest nodes below its ancestor at d; and float64 (levels, level + 1, level + 1): for
        each level c the inner product at c of such records of levels d and e.
    """
    above = [axis.ancestors(level, k) for k in range(level + 1)]
    sizes = [
        np.diff(axis.descendant_start(k, axis.depth)).astype(float) for k in range(axis.depth + 1)
    ]
    share = [sizes[level] / sizes[k][above[k]] for k in range(level + 1)]
    both = np.ones((axis.depth + 1, level + 1, level + 1))
    for c, d, e in product(range(axis.depth + 1), range(level + 1), range(level + 1)):
        near = min(d, e)
        far = max(d, e)
        if near < c <= far:
            both[c, d, e] = (sizes[c][above[c]] / sizes[near][above[near]]).mean()
        elif c > far:
            start = axis.descendant_start(far, c)[:-1]
            squares = np.add.reduceat(sizes[c] ** 2, start)[above[far]]
            both[c, d, e] = (squares / sizes[d][above[d]] / sizes[e][above[e]]).mean()
    return np.array([each.mean() for each in share]), both
