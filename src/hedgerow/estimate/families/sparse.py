"""The estimator of penalised least squares: few counts that are not zero, and close ones."""

import math
from functools import partial

import numpy as np

from hedgerow.arrays import Float64, Int64
from hedgerow.declared import frozen
from hedgerow.errors import EstimateError
from hedgerow.estimate.estimator import Families
from hedgerow.estimate.families.real_projection import FamilyEstimator, project_real
from hedgerow.estimate.families.support_edge import Edge, is_doubtful, last_worthwhile, moved_edge
from hedgerow.estimate.families.units import (
    cheapest_units,
    family_hash,
    receives_leftover_unit,
    widest_family,
    write_variances,
)
from hedgerow.kernels import kernel, run_ends

# Minimise Σ (y - x)² / v + penalty · #{y > 0} over integers y >= 0 with Σ y = c. Equal variances:
# the support is that of the k largest x, and the least cost is convex in k, so the best k is the
# last one whose gain exceeds the price; exact. Unequal variances: cells are taken in the order of
# what giving them up would cost; an approximation. On the support the estimate is integer least
# squares of x - 1 to c - k. Proof: `docs/proofs/families.md`, "Penalised least squares".


@kernel
def project_penalised(
    penalty: float,
    noisy: Float64,
    variance: Float64,
    family_start: Int64,
    totals: Int64,
    families: Families,
    result: Int64,
) -> None:
    """Write the families from the first up to the last, exclusive; see `real_projection.Kernel`.

    Without a penalty it is integer least squares.
    """
    widest = widest_family(family_start, families)
    s = np.empty(widest)
    keys = np.empty(widest)
    room = widest if penalty > 0.0 else 0
    scratch = np.empty((8, room))
    units = np.empty((2, room), dtype=np.int64)
    for family in range(families[0], families[1]):
        begin, end = run_ends(family_start, family)
        if end == begin:
            continue
        x = noisy[begin:end]
        y = result[begin:end]
        # Without the penalty: its support holds that of the penalised optimum.
        equal = write_variances(variance, begin, len(x), s)
        hashed = family_hash(x, totals[family])
        cutoff = cheapest_units(x, s, None, (0.5, totals[family], hashed), keys, y)[0]
        if room == 0 or len(x) == 1:
            continue
        # Equal variances are 1 in s, so the penalty is in units of theirs.
        price = penalty * (variance[begin] if len(variance) > 1 else variance[0])
        price = price if equal else penalty
        if len(x) == 2:
            _sparsen_two(x, s, price, hashed, y)
        elif price > 0.0:
            _sparsen(x, s, (cutoff, price, equal, hashed), scratch, units, y)


@kernel
def _sparsen_two(x: Float64, s: Float64, price: float, hashed: int, y: Int64) -> None:
    """Turn integer least squares of two cells into the penalised optimum, for any variances."""
    if y[0] == 0 or y[1] == 0:
        return
    total = y[0] + y[1]
    # Three supports, so each is priced; of equally good ones a single cell is chosen.
    both = _distance(x, s, y[0], y[1]) + price
    first = _distance(x, s, total, 0)
    second = _distance(x, s, 0, total)
    if min(first, second) <= both:
        ahead = first < second or (first == second and receives_leftover_unit(0, hashed, 1, 2))
        y[0] = total if ahead else 0
        y[1] = total - y[0]


@kernel
def _distance(x: Float64, s: Float64, first: int, second: int) -> float:
    return float((first - x[0]) ** 2 / s[0] + (second - x[1]) ** 2 / s[1])


@kernel
def _sparsen(
    x: Float64,
    s: Float64,
    problem: tuple[float, float, bool, int],
    scratch: Float64,
    units: Int64,
    y: Int64,
) -> None:
    """Turn integer least squares in y into the penalised optimum in y.

    The problem: the level of least squares, the price of a count, whether variances are equal, and
    a hash of the family.
    """
    # Rows of scratch: x, s, rank, best and trial estimates, and three for `_solve`.
    cutoff, price, equal, hashed = problem
    size = 0
    total = 0
    places = units[0]
    whole = equal
    for i in range(len(x)):
        if y[i] > 0:
            whole &= x[i] == np.floor(x[i])
            # Ranks: x, or the root of (x + λ s)² / s, what giving the cell up would cost.
            places[size] = i
            scratch[0, size] = x[i]
            scratch[1, size] = s[i]
            scratch[2, size] = x[i] if equal else (x[i] + cutoff * s[i]) / np.sqrt(s[i])
            size += 1
            total += y[i]
    if size < 2:
        return
    cells = scratch[:3, :size]
    ranks = scratch[2, :size]
    # The last cell that gains more than the price; rounding may put it a few cells off.
    k, edge = last_worthwhile(cells, total, price, whole)
    doubtful = equal and not whole and is_doubtful(cells, total, price, k, edge)
    if k == size and not doubtful:
        return
    best = scratch[3, :size]
    trial = scratch[4, :size]
    cost = _solve(scratch, size, (total, price, hashed), edge, units[1], best)
    # One cell more, or less, as long as the objective falls: F is convex.
    for direction in (1, -1):
        moved = doubtful
        while moved:
            after = moved_edge(ranks, edge, direction)
            tried = np.inf
            if after[1] > 0:
                tried = _solve(scratch, size, (total, price, hashed), after, units[1], trial)
            # Of two equally good supports the smaller one.
            moved = tried < cost or (direction < 0 and tried == cost and tried < np.inf)
            if moved:
                cost, edge = tried, after
                best[:] = trial
    for i in range(size):
        y[places[i]] = int(best[i])


@kernel
def _solve(
    scratch: Float64,
    size: int,
    problem: tuple[int, float, int],
    edge: Edge,
    units: Int64,
    estimate: Float64,
) -> float:
    """Write integer least squares on the support with this edge, 0 elsewhere; the objective.

    Which of the cells of the edge's rank: of alike ones evenly spread ones, else the last ones.
    """
    # Rows 5 to 7 of scratch hold x - 1, s and keys of the cells on the support.
    total, price, hashed = problem
    ranks = scratch[2]
    # How many cells are of the edge's rank; where variances are alike, any of them may be inside.
    ties = 0
    alike = True
    for i in range(size):
        ties += ranks[i] == edge[0]
        alike &= scratch[1, i] == scratch[1, 0]
    place = 0
    k = 0
    for i in range(size):
        # The support: all above the edge, and of its own rank as many as it says.
        inside = ranks[i] > edge[0]
        if ranks[i] == edge[0]:
            inside = receives_leftover_unit(place, hashed, edge[1], ties)
            if not alike:
                inside = place >= ties - edge[1]
            place += 1
        estimate[i] = 1.0 if inside else 0.0
        if inside:
            scratch[5, k] = scratch[0, i] - 1.0
            scratch[6, k] = scratch[1, i]
            k += 1
    if k > total:
        return np.inf
    x = scratch[5, :k]
    # Counts from 1 on: least squares of x - 1 to c - k.
    cheapest_units(x, scratch[6, :k], None, (0.5, total - k, hashed), scratch[7, :k], units[:k])
    # price · k + Σ (y - x)² / s.
    cost = price * k
    k = 0
    for i in range(size):
        if estimate[i] > 0.0:
            estimate[i] += units[k]
            k += 1
        change = estimate[i] - scratch[0, i]
        cost += change * change / scratch[1, i]
    return cost


@frozen
class Sparse(FamilyEstimator):
    """Minimise ``Σ (y_i - x_i)² / v_i + penalty · #{y > 0}`` over integers ``y >= 0``, ``Σ y = c``.

    x (cells) are a family's noisy counts or combined estimates, v their variances (records²), c is
    the family's total, y its estimate, both in records. For equal variances the objective is the
    squared distance plus penalty · v for every count that is not 0: a count stays where giving it
    up costs more than ``penalty`` squared standard deviations. Exact for equal variances, an
    approximation for unequal ones: see `hedgerow.estimate.families.sparse`.

    A penalty of 0 makes it `Euclidean`, a very large one gives each family's total to one cell.

    Example:
        >>> import numpy as np
        >>> noisy, families, totals = np.array([7, -2, 4, 1]), np.array([0, 2, 4]), np.array([6, 5])
        >>> hr.Sparse(penalty=0.5).project(noisy, families, totals, variance=4.0)
        array([6, 0, 5, 0])
    """

    name = "sparse"
    penalty: float = 0.5

    def __post_init__(self) -> None:
        number = isinstance(self.penalty, int | float) and not isinstance(self.penalty, bool)
        if not number or not 0 <= self.penalty < math.inf:
            raise EstimateError(
                f"a sparse estimator's penalty must be a number from 0 on, got {self.penalty!r}; "
                "0.5 is usual"
            )

    def project(
        self,
        noisy: Int64 | Float64,
        family_start: Int64,
        totals: Int64,
        variance: float | Float64 | None = None,
    ) -> Int64:
        """Return the consistent counts, int64 (cells), in records; see `FamilyEstimator.project`.

        Raises:
            EstimateError: there is no variance, too.
        """
        if variance is None:
            raise EstimateError(
                "a sparse estimator weighs counts against their variance, but got None; "
                "give the variance of the noisy counts, in records²"
            )
        penalty = float(self.penalty)
        solve = partial(project_penalised, penalty)
        return project_real(solve, noisy, family_start, totals, variance, penalty)
