"""The design of a tree over a numeric range: branching factors and shares of least error."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

import numpy as np

from hedgerow.arrays import Float64, Int64
from hedgerow.distribution.branching_search import Costs, best_order, level_coefficients, mean_error
from hedgerow.errors import PlanError, as_list
from hedgerow.kernels import kernel
from hedgerow.noise.mechanisms import Mechanism, check_mechanism
from hedgerow.text import Exact, exact

# The error of a tree without its padded bins: the last node of each level is narrower.
#
# Bins K … K̄ - 1 do not exist, which is the same as knowing that they are empty: the best linear
# estimate from more knowledge is never worse (Gauss and Markov), so with the same shares a trimmed
# tree is at every cut at least as good as the padded one. Only the *spine*, the last node of each
# level, differs from a full node: its last child is itself a spine node, with another variance from
# below.
#
# For a node x with the children's variances from below u_c, S = Σ u_c, a cut that weighs the
# children with g (1 before the cut, the fraction f inside the child it enters, 0 behind) gives
# ``g'u/S · x`` plus residuals of variance ``Σ g² u - (g'u)²/S``. So f is passed up, and of the cuts
# inside a node their number, Σ f, Σ f² and Σ variance are all that its parent needs.


@kernel
def trimmed_mean(
    bins: int,
    branching: Int64,
    coefficients: Float64,
    shares: Float64,
    power: int,
) -> float:
    """The mean over all cuts of the squared error after least squares; units as for shares."""
    levels = len(branching)
    full = 1.0 / shares[levels - 1] ** power  # variance from below of a full node of the level
    spine = full
    number, weight, square, variance = 1.0, 0.0, 0.0, 0.0  # of the cuts in the spine node
    leaves = 1  # below a full node of the level
    inside = 0.0  # mean variance of the cuts in a full node, given its count
    for i in range(levels - 1, -1, -1):
        n = branching[i]
        others = (bins - 1) // leaves % n  # full siblings of the spine node
        total = others * full + spine
        lead = others * full
        variance += number * lead + square * spine
        variance -= (number * lead**2 + 2 * lead * spine * weight + spine**2 * square) / total
        square = (number * lead**2 + 2 * lead * spine * weight + spine**2 * square) / total**2
        weight = (number * lead + spine * weight) / total
        t = (leaves - 1) / 2.0
        tt = (leaves - 1) * (2.0 * leaves - 1) / (6.0 * leaves)
        for j in range(others):
            moment = full * full * (leaves * float(j) * j + 2 * j * t + tt)
            variance += full * (leaves * j + tt) - moment / total + leaves * inside
            square += moment / total**2
            weight += full * (leaves * j + t) / total
        number += float(others) * leaves
        if i > 0:
            inside += coefficients[i] * full
            own = shares[i - 1] ** power
            spine = 1.0 / (own + 1.0 / total)
            full = 1.0 / (own + 1.0 / (n * full))
        leaves *= n
    return variance / bins


@kernel
def trimmed_mean_of_coverings(bins: int, branching: Int64, shares: Float64, power: int) -> float:
    """Return the mean over all cuts of the squared error of covering sums; units as for shares."""
    leaves = 1
    total = 0.0
    for i in range(len(branching) - 1, -1, -1):
        n = branching[i]
        families = bins // (leaves * n)
        rest = bins - families * leaves * n
        whole = rest // leaves
        siblings = families * leaves * (n * (n - 1) // 2) + leaves * (whole * (whole - 1) // 2)
        siblings += (rest - whole * leaves) * whole
        total += siblings / shares[i] ** power
        leaves *= n
    return total / bins


MOST_BINS = 1 << 30
SHARE_UNITS = 10_000


@dataclass(frozen=True, slots=True)
class Cdf:
    """The mean squared error over all cuts: the counts before bin 0, 1, …, K - 1."""


@dataclass(frozen=True, slots=True)
class AllRanges:
    """The mean squared error of the count between two cuts, over all pairs of cuts."""


@dataclass(frozen=True, slots=True, init=False)
class Quantiles:
    """The mean squared error of the counts at given ranks, taken as places in the range.

    The records' own distribution is confidential, so a rank q is planned for as if records were
    uniform: at the fraction q of the bins, somewhere in the child of the root that lies there.

    Args:
        ranks: exact numbers in (0, 1).

    Raises:
        PlanError: none, or one outside (0, 1).
    """

    ranks: tuple[Fraction, ...]

    def __init__(self, ranks: Sequence[Exact]) -> None:
        given = as_list("quantiles", ranks, "a list of exact ranks, such as ['1/2']", PlanError)
        found = tuple(exact(q, f"rank {i}", PlanError) for i, q in enumerate(given, start=1))
        if not found:
            raise PlanError("quantiles need at least one rank, such as 1/2")
        for q in found:
            if not 0 < q < 1:
                raise PlanError(f"the rank of a quantile must be in (0, 1), got {q}")
        object.__setattr__(self, "ranks", found)


Objective = Cdf | AllRanges | Quantiles


@dataclass(frozen=True, slots=True)
class Design:
    """A tree over a range of bins, without its root, which is public.

    Attributes:
        bins: K.
        branching: n_1 … n_m, coarsest first, at least 2 each; their product is at least K. Leaves K
            and above do not exist, so the last family of a level may be narrower.
        shares: of the budget, one a level: above 0, sum exactly 1.
        error: the objective's mean squared error, in units of the noise variance that one count
            would have with the whole budget (for pure ε under replace, whose depths change by 2,
            2·(2/ε)² records²), over all cuts of the padded tree of Π n_i leaves. At every cut the
            released tree has at most the error of the padded one: see `trimmed_error`.

    Raises:
        PlanError: they contradict each other.
    """

    bins: int
    branching: tuple[int, ...]
    shares: tuple[Fraction, ...]
    error: float

    def __post_init__(self) -> None:
        _check(self.bins, self.branching, self.shares)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of nodes of each level that exist: ⌈K / M_i⌉, M_i leaves below a node."""
        leaves = prod(self.branching)
        found = []
        for n in self.branching:
            leaves //= n
            found.append(-(-self.bins // leaves))
        return tuple(found)


def best_branching(
    bins: int,
    *,
    mechanism: type[Mechanism],
    objective: Objective | None = None,
    combine: bool = True,
    padded: bool = True,
) -> Design:
    """Return the tree and shares of least mean squared error over a range of K bins.

    Minimises the mean squared error over ordered factorisations n_1 · … · n_m = K̄ ≥ K, all heights,
    each with its best shares. Noise variances are proportional to 1/share² under pure ε (discrete
    Laplace) and to 1/share under zCDP (discrete Gaussian). The formulas and their sources are in
    `hedgerow.distribution.branching_search`; the search, in `branching_search`, equals brute force
    wherever that was possible.

    Args:
        bins: K, 2 to 2^30.
        mechanism: the noise.
        objective: `Cdf` unless given.
        combine: least squares over the whole tree with a public total; without it the covering sums
            of Rameshwar, for which all ranges are no objective.
        padded: K̄ may exceed K. Without, the factors multiply to exactly K.

    Raises:
        PlanError: bins or objective are not as above.
        NoiseError: the mechanism is no complete one.
    """
    objective = Cdf() if objective is None else objective
    _check_bins(bins)
    if isinstance(objective, AllRanges) and not combine:
        raise PlanError("all ranges can be an objective of combined estimates only; set combine")
    costs = costs_of(mechanism, objective, combine=combine)
    branching = best_order(bins, costs, padded=padded)
    error, shares = costs.error(branching)
    return Design(bins, branching, _exact_shares(shares), error)


def best_shares_for(
    branching: Sequence[int],
    *,
    mechanism: type[Mechanism],
    objective: Objective | None = None,
    combine: bool = True,
) -> Design:
    """Return the design with these factors and the best shares for them, over all their leaves.

    Raises:
        PlanError: a factor is below 2, or a level is best left unmeasured.
    """
    factors = tuple(int(n) for n in branching)
    if not factors or min(factors) < 2:
        raise PlanError(f"branching factors must be at least 2, got {list(factors)}")
    costs = costs_of(mechanism, objective or Cdf(), combine=combine)
    error, shares = costs.error(factors)
    if not np.isfinite(error):
        raise PlanError(f"with factors {list(factors)} a level is best left unmeasured; merge two")
    return Design(prod(factors), factors, _exact_shares(shares), error)


def design_error(
    branching: Sequence[int],
    shares: Sequence[Fraction],
    *,
    mechanism: type[Mechanism],
    objective: Objective | None = None,
    combine: bool = True,
) -> float:
    """Return the mean squared error of any factors with any shares; units as in `Design`.

    Raises:
        PlanError: the factors or shares are not those of a design.
    """
    _check(prod(branching), tuple(branching), tuple(shares))
    costs = costs_of(mechanism, objective or Cdf(), combine=combine)
    factors, coefficients = np.array(branching, dtype=np.int64), np.empty(len(branching))
    level_coefficients(factors, combine, costs.ranges, costs.quantiles, coefficients)
    return float(mean_error(factors, coefficients, _floats(shares), costs.power, combine))


def trimmed_error(design: Design, *, mechanism: type[Mechanism], combine: bool = True) -> float:
    """The mean squared error of the K cuts before bins 0 … K - 1 of the tree that is released.

    Exact, where `Design.error` speaks of the padded tree; units as there.
    """
    costs = costs_of(mechanism, Cdf(), combine=combine)
    factors = np.array(design.branching, dtype=np.int64)
    shares = _floats(design.shares)
    if not combine:
        return float(trimmed_mean_of_coverings(design.bins, factors, shares, costs.power))
    coefficients = np.empty(len(factors))
    level_coefficients(factors, True, False, costs.quantiles, coefficients)
    return float(trimmed_mean(design.bins, factors, coefficients, shares, costs.power))


def costs_of(mechanism: type[Mechanism], objective: Objective, *, combine: bool) -> Costs:
    """Return what the kernels need to know about mechanism and objective.

    Raises:
        NoiseError: it is no complete mechanism.
    """
    check_mechanism(mechanism)
    ranks = objective.ranks if isinstance(objective, Quantiles) else ()
    ranges = isinstance(objective, AllRanges)
    return Costs(mechanism.price.power, combine, ranges, _floats(ranks))


def _floats(numbers: Sequence[Fraction]) -> Float64:
    return np.array([float(number) for number in numbers], dtype=np.float64)


def _exact_shares(shares: Float64) -> tuple[Fraction, ...]:
    """Return the shares in parts of 1/10,000, the largest of them rounded so that they sum to 1."""
    units = [max(1, round(share * SHARE_UNITS)) for share in shares.tolist()]
    units[int(np.argmax(shares))] += SHARE_UNITS - sum(units)
    return tuple(Fraction(unit, SHARE_UNITS) for unit in units)


def _check_bins(bins: int) -> None:
    if not isinstance(bins, int) or isinstance(bins, bool) or not 2 <= bins <= MOST_BINS:
        raise PlanError(f"a range needs 2 to 2^30 bins, got {bins!r}")


def _check(bins: int, branching: tuple[int, ...], shares: tuple[Fraction, ...]) -> None:
    _check_bins(bins)
    if not branching or min(branching) < 2:
        raise PlanError(f"branching factors must be at least 2, got {list(branching)}")
    if prod(branching) < bins:
        raise PlanError(
            f"branching factors {list(branching)} make {prod(branching)} leaves, fewer than the "
            f"{bins} bins"
        )
    if len(shares) != len(branching) or sum(shares) != 1 or min(shares) <= 0:
        raise PlanError("a design needs one share a level, each above 0, that sum to exactly 1")
