"""Covariances between least squares estimates of chosen nodes, found by climbing the tree.

Below a parent p, `hedgerow.estimate.tree.least_squares.spread` gives a child c the final estimate

    y_c = a_c y_p + r_c,   a_c = v_c / S,   r_c = z_c - a_c Σ z,

z being the family's combined estimates, each from its own subtree, v their variances, S = Σ v.

*The residual r_c is uncorrelated with all that is decided above and beside it.* The z of a family
come from disjoint measurements, so they are independent, and
``Cov(r_c, Σz) = v_c - a_c S = 0``. All measurements below p enter y_p, and every estimate outside
p's subtree, through Σz alone (that is `combine`); all other measurements are independent of z. So
r_c is uncorrelated with y_p and with everything outside p's subtree, and by the same argument with
the residuals of other families. Within the family

    Cov(r_c, r_d) = -v_c v_d / S,   Var(r_c) = v_c - v_c² / S.

So a covariance needs the lowest common ancestor p of u and w alone. With A_u the product of a from
u up to, but without, the child c of p on the way, and A_w up to d,

    Cov(y_u, y_w) = A_u A_w (a_c a_d Var(y_p) + Cov(r_c, r_d)),

and ``Cov(y_u, y_w) = A_u Var(y_w)`` where w is itself an ancestor of u, A_u then up to w.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from hedgerow.errors import EstimateError
from hedgerow.estimate.tree.layers import Layer, start_of
from hedgerow.estimate.tree.least_squares import upward
from hedgerow.estimate.tree.two_passes import Float64


@dataclass(frozen=True, slots=True)
class _Step:
    """A node on the way down: its index, z's variance v, a, Var(r) and the final Var(y)."""

    index: int
    combined: float
    share: float
    residual: float
    final: float


def covariance(
    layers: Sequence[Layer],
    nodes: Sequence[tuple[int, int]],
    combined: Sequence[tuple[Float64, Float64]] | None = None,
) -> Float64:
    """The covariance matrix of the estimates of some nodes, records², float64 (nodes, nodes).

    C is that of `least_squares`; a sum of nodes with coefficients k has the variance ``k @ C @ k``.
    After one upward pass it takes O(families on the way) a node and O(depth) a pair.

    Args:
        layers: the tree, as in `least_squares`.
        nodes: (depth, index in the depth's tree order) of each.
        combined: what `upward` returned for these layers, to spare that pass.

    Raises:
        EstimateError: a node that is not in the tree, or that the measurements do not identify.
    """
    combined = upward(layers) if combined is None else combined
    paths = [_path(layers, combined, depth, index) for depth, index in nodes]
    matrix = np.empty((len(nodes), len(nodes)))
    for i, one in enumerate(paths):
        for j, other in enumerate(paths[: i + 1]):
            matrix[i, j] = matrix[j, i] = _pair(one, other)
    return matrix


def _path(
    layers: Sequence[Layer],
    combined: Sequence[tuple[Float64, Float64]],
    depth: int,
    index: int,
) -> list[_Step]:
    """The steps from the root down to a node."""
    if not 0 <= depth < len(layers) or not 0 <= index < layers[depth].nodes:
        raise EstimateError(f"the tree has no node {index} at depth {depth}")
    indices = [index]
    for t in range(depth, 0, -1):
        parent = np.searchsorted(start_of(layers[t]), indices[-1], side="right") - 1
        indices.append(int(parent))
    root = float(combined[0][1][0])
    path = [_Step(0, root, 1.0, 0.0, root)]
    for t, own in enumerate(indices[-2::-1], start=1):
        begin, end = start_of(layers[t])[path[-1].index :][:2]
        path.append(_step(own, combined[t][1][begin:end], own - int(begin), path[-1].final))
    if path[-1].final == inf:
        raise EstimateError(
            f"the measurements do not identify node {index} of depth {depth}: its variance is "
            "infinite; leave it out, or ask for an ancestor"
        )
    return path


def _step(index: int, family: Float64, place: int, above: float) -> _Step:
    """The step to one child, by its place in the family; ``above`` is Var(y_p)."""
    v = float(family[place])
    rest = float(family[:place].sum() + family[place + 1 :].sum())
    if v == inf:  # Alone with an infinite variance it is what the others leave; else unknown.
        share, residual = 1.0, rest
    elif v + rest in {0.0, inf}:
        share, residual = 0.0, v
    else:
        share = v / (v + rest)
        residual = rest * share if v > rest else v * (rest / (v + rest))
    return _Step(index, v, share, residual, residual + _times(share**2, above))


def _pair(one: list[_Step], other: list[_Step]) -> float:
    """The covariance of the nodes at the ends of two paths."""
    common = 0
    for a, b in zip(one, other, strict=False):
        if a.index != b.index:
            break
        common += 1
    if common in {len(one), len(other)}:
        product = _product(one[common:]) * _product(other[common:])
        return _times(product, one[common - 1].final)
    below = _product(one[common + 1 :]) * _product(other[common + 1 :])
    c, d = one[common], other[common]
    narrow, wide = (c, d) if c.combined <= d.combined else (d, c)
    within = _times(c.share * d.share, one[common - 1].final) - _times(wide.share, narrow.combined)
    return _times(below, within)


def _product(steps: Sequence[_Step]) -> float:
    return float(np.prod([step.share for step in steps]))


def _times(share: float, variance: float) -> float:
    """The product; of what is not identified a share of 0 takes nothing."""
    return share * variance if share else 0.0
