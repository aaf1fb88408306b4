"""A tree laid out by depth: what was measured there, what is estimated, and how families lie."""

from collections.abc import Sequence
from math import inf

import numpy as np

from hedgerow.arrays import Float64, FloatPair, Int64, float64
from hedgerow.declared import frozen
from hedgerow.errors import EstimateError
from hedgerow.estimate.estimator import Families, check_vector
from hedgerow.kernels import kernel, run_ends

# The two loops of least squares over a tree: combine upward, spread downward.
#
# `hedgerow.estimate.tree.least_squares` states the problem and the formulas; here is how they stay
# exact in doubles. Every term is positive or a difference without cancellation, so variances may
# differ by any factor, and 0 and infinity need no stand-in.
#
# A column of variances comes with the step from one entry to the next: 0 where one stands for all.

Noisy = Int64 | Float64
Column = tuple[Float64, int]
Estimates = FloatPair
"""Of each node, records, and their variances, records²."""


@kernel
def decreases(family_start: Int64) -> bool:
    """Return whether a family begins before the one in front of it."""
    falls = 0
    # Counted to the end, without a branch: hardly any layout has one.
    for family in range(len(family_start) - 1):
        falls += family_start[family + 1] < family_start[family]
    return falls > 0


@kernel
def combine_families(
    noisy: Noisy,
    own: Column,
    child_estimate: Noisy,
    child: Column,
    family_start: Int64,
    families: Families,
    combined: Estimates,
) -> None:
    """Write the nodes from the first up to the last, exclusive; shapes as in `combine`."""
    # total and below: the sums of the children's estimates and variances. Own and children's counts
    # are weighted by inverse variances, written so that no difference cancels.
    variance, step = own
    child_variance, child_step = child
    estimates, variances = combined
    for node in range(families[0], families[1]):
        begin, end = run_ends(family_start, node)
        total = 0.0
        below = 0.0 if end > begin else np.inf
        for i in range(begin, end):
            total += child_estimate[i]
            below += child_variance[i * child_step]
        v = variance[node * step]
        # Unmeasured: what the children say. Exact, or nothing below: its own count.
        if v == np.inf:
            estimates[node] = total
            variances[node] = below
        elif v == 0.0 or below == np.inf:
            estimates[node] = noisy[node]
            variances[node] = v
        elif v <= below:
            share = v / (v + below)
            estimates[node] = noisy[node] + (total - noisy[node]) * share
            variances[node] = below * share
        else:  # Starting from the better of the two, a wild one leaves no rounding behind.
            share = below / (v + below)
            estimates[node] = total + (noisy[node] - total) * share
            variances[node] = v * share


@kernel
def distribute_families(
    parent_estimate: Float64,
    above: Column,
    estimate: Noisy,
    own: Column,
    family_start: Int64,
    families: Families,
    final: Estimates,
) -> None:
    """Write the families from the first up to the last one, exclusive.

    Shapes are those of `distribute_down`.
    """
    # Each child takes its share v/S of the gap between its parent and the family's sum.
    parent_variance, parent_step = above
    variance, step = own
    estimates, variances = final
    for family in range(families[0], families[1]):
        begin, end = run_ends(family_start, family)
        if end == begin:
            continue
        # The child of the largest variance is kept apart: S - v would cancel for it alone.
        widest = begin
        largest = variance[begin * step]
        rest = 0.0
        others = 0.0
        for i in range(begin + 1, end):
            v = variance[i * step]
            if v > largest:
                rest += largest
                others += estimate[widest]
                widest = i
                largest = v
            else:
                rest += v
                others += estimate[i]
        left = parent_estimate[family] - others
        inherited = parent_variance[family * parent_step]
        whole = rest + largest
        # Two or more are unknown; or all are exact, and stay.
        if rest == np.inf:
            _share_evenly(parent_estimate[family], estimate, own, (begin, end), final)
            continue
        if whole == 0.0:
            estimates[begin:end] = estimate[begin:end]
            variances[begin:end] = 0.0
            continue
        gap = left - estimate[widest]
        # y = z + (v/S) gap, with the variance v (1 - v/S) + (v/S)² Var(y_p).
        for i in range(begin, end):
            v = variance[i * step]
            share = v / whole
            estimates[i] = estimate[i] + gap * share
            # 0 times an unidentified parent's infinite variance is 0: nothing comes from there.
            variances[i] = v * (1.0 - share) + (share * share * inherited if share > 0.0 else 0.0)
        # The widest takes what the others leave; its 1 - v/S is rest/S.
        share = largest / whole if largest < np.inf else 1.0
        estimates[widest] = left - gap * (rest / whole)
        variances[widest] = rest * share + share * share * inherited


@kernel
def first_contradiction(
    parent_estimate: Float64, estimate: Float64, variance: Float64, family_start: Int64
) -> int:
    """Return the first family of exact children that does not sum to its parent, or -1."""
    for family in range(len(family_start) - 1):
        begin, end = run_ends(family_start, family)
        # Only a family whose children are all exact can miss its parent.
        i = begin
        gap = parent_estimate[family]
        size = abs(gap)
        while i < end and variance[i] == 0.0:
            gap -= estimate[i]
            size += abs(estimate[i])
            i += 1
        if i == end and end > begin and abs(gap) > 1e-9 * size:
            return family
    return -1


@kernel
def _share_evenly(
    total: float,
    estimate: Noisy,
    own: Column,
    cells: tuple[int, int],
    final: Estimates,
) -> None:
    """Write a family in which several children are not identified."""
    variance, step = own
    estimates, variances = final
    begin, end = cells
    # Identified children keep what they have; the others share what that leaves.
    unknown = 0
    for i in range(begin, end):
        v = variance[i * step]
        estimates[i] = estimate[i]
        variances[i] = v
        if v == np.inf:
            unknown += 1
        else:
            total -= estimate[i]
    for i in range(begin, end):
        # Nothing tells them apart, so no division is better; their variances stay infinite.
        if variances[i] == np.inf:
            estimates[i] = total / unknown


@frozen(eq=False)
class Layer:
    """One depth of a tree, in tree order.

    Attributes:
        noisy: int64 or float64 (nodes), records; None where the depth is unmeasured.
        variance: of the noisy counts, one float or float64 (nodes), records²: 0 holds a count
            exactly, infinity leaves it unmeasured; infinite where noisy is None.
        family_start: int64 (nodes of the depth above + 1): where the children of each of those
            begin, and the end. None for the root, a family of one below nothing.

    Raises:
        EstimateError: arrays that do not fit together; a measurement that is not finite; a variance
            that is negative or not a number.
    """

    noisy: Noisy | None
    variance: float | Float64 = inf
    family_start: Int64 | None = None

    def __post_init__(self) -> None:
        if self.family_start is not None:
            family_count(self.family_start)
        variance, _ = column("variance", self.variance, self.nodes)
        if not (variance >= 0).all():
            raise EstimateError("variances must not be negative; at least one is, or is no number")
        if self.noisy is None:
            if not (variance == inf).all():
                raise EstimateError("a depth with a finite variance needs its noisy counts")
            return
        check_vector("noisy", self.noisy, np.int64, np.float64)
        check_length("noisy", self.noisy, self.nodes)
        if not (np.isfinite(self.noisy) | (variance == inf)).all():
            raise EstimateError("noisy counts must be finite; give unmeasured ones variance inf")

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return 1 if self.family_start is None else int(self.family_start[-1])


@frozen(eq=False)
class Estimate:
    """The estimates of one depth.

    Attributes:
        estimate: float64 (nodes), records.
        variance: float64 (nodes), records²; infinite for a node that is not identified.
    """

    estimate: Float64
    variance: Float64


def check_layers(layers: Sequence[Layer]) -> None:
    """Raise unless the layers form a tree."""
    if not layers or layers[0].nodes != 1 or len(start_of(layers[0])) != 2:
        raise EstimateError("layers must begin with the root, one node")
    for depth in range(1, len(layers)):
        families = len(start_of(layers[depth])) - 1
        if families != layers[depth - 1].nodes:
            raise EstimateError(
                f"depth {depth} must have one family for each node above "
                f"({layers[depth - 1].nodes}), got {families}"
            )


def start_of(layer: Layer) -> Int64:
    """Return where the families of a layer begin, and the end; the root is a family of one."""
    return np.array([0, 1]) if layer.family_start is None else layer.family_start


def column(name: str, values: float | Float64, length: int) -> Column:
    """Return the values and the step between entries: 0 where one value stands for all."""
    if isinstance(values, np.ndarray) and values.ndim:
        check_vector(name, values, np.float64)
        check_length(name, values, length)
        return values, 1
    return float64([values]), 0


def check_length(name: str, values: Noisy, length: int) -> None:
    """Raise unless the array has this length."""
    if len(values) != length:
        raise EstimateError(f"{name} must have {length} entries, one a node, got {len(values)}")


def family_count(family_start: Int64, cells: int | None = None) -> int:
    """Return the number of families, once they are known to partition the cells."""
    check_vector("family_start", family_start, np.int64)
    if not len(family_start) or family_start[0] != 0 or decreases(family_start):
        raise EstimateError("family_start must begin with 0 and not decrease")
    if cells is not None and family_start[-1] != cells:
        raise EstimateError(
            f"family_start must end with the number of children, {cells}, got {family_start[-1]}"
        )
    return len(family_start) - 1
