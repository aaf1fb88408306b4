"""The design of a tree over a numeric range: branching factors and shares of least error."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import prod

import numpy as np

from hedgerow.arrays import Sizes, float64
from hedgerow.declared import Rational, Whole, frozen
from hedgerow.distribution.bins import coded_axis
from hedgerow.distribution.branching_search import Costs, best_order
from hedgerow.distribution.ranges import Ranges
from hedgerow.errors import PlanError, as_list
from hedgerow.limits import MOST_BINS_OF_A_TREE
from hedgerow.noise.mechanisms import DiscreteGaussian, Mechanism, check_mechanism
from hedgerow.tables.axis import Axis
from hedgerow.text import Exact

SHARE_UNITS = 10_000
BINS = Whole("the number of bins", 2, MOST_BINS_OF_A_TREE, PlanError, ends="[]")
RANK = Rational("the rank of a quantile", 0, 1, PlanError, ends="()")


@frozen
class Cdf:
    """The mean squared error over all cuts: the counts before bin 0, 1, …, K - 1.

    Example:
        >>> hr.best_branching(64, mechanism=hr.DiscreteLaplace, objective=hr.Cdf()).branching
        (8, 8)
    """


@frozen
class AllRanges:
    """The mean squared error of the count between two cuts, over all pairs of cuts.

    Example:
        >>> hr.best_branching(64, mechanism=hr.DiscreteLaplace, objective=hr.AllRanges()).branching
        (64,)
    """


@frozen(init=False)
class Quantiles:
    """The mean squared error of the counts at given ranks, taken as positions in the range.

    The distribution of the records is confidential, so a rank q is planned for as if records were
    uniform: at the fraction q of the bins, somewhere in the child of the root that lies there.

    Args:
        ranks: exact numbers in (0, 1).

    Raises:
        PlanError: no rank, or one outside (0, 1).

    Example:
        >>> hr.Quantiles(["1/4", "1/2", "3/4"]).ranks[1]
        Fraction(1, 2)
    """

    ranks: tuple[Fraction, ...]

    def __init__(self, ranks: Sequence[Exact]) -> None:
        given = as_list("quantiles", ranks, "a list of exact ranks, such as ['1/2']", PlanError)
        if not given:
            raise PlanError("quantiles need at least one rank, such as 1/2")
        object.__setattr__(self, "ranks", tuple(map(RANK, given)))


Objective = Cdf | AllRanges | Quantiles


@frozen
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
            released tree has at most the error of the padded one: knowing that bins K and above
            are empty cannot make the best linear estimate worse (Gauss and Markov).
    """

    bins: int
    branching: Sizes
    shares: tuple[Fraction, ...]
    error: float

    @property
    def sizes(self) -> Sizes:
        """The number of nodes of each level that exist: ⌈K / M_i⌉, M_i leaves below a node."""
        below = (prod(self.branching[i:]) for i in range(1, len(self.branching) + 1))
        return tuple(-(-self.bins // leaves) for leaves in below)


def best_branching(
    bins: int,
    *,
    mechanism: type[Mechanism],
    objective: Objective | None = None,
) -> Design:
    """Return the tree and shares of least mean squared error over a range of K bins.

    Minimises the mean squared error of least squares with a public total over ordered
    factorisations n_1 · … · n_m = K̄ ≥ K, all heights, each with its best shares. Noise variances
    are proportional to 1/share² under pure ε (discrete Laplace) and to 1/share under zCDP (discrete
    Gaussian). Formulas, sources and the search are in docs/proofs/distributions.md, "Trees over a
    numeric range".

    Args:
        bins: K, 2 to 2^30.
        mechanism: the noise.
        objective: `Cdf` unless given.

    Raises:
        PlanError: bins or objective are not as above.
        NoiseError: the mechanism is incomplete.

    Example:
        >>> design = hr.best_branching(1000, mechanism=hr.DiscreteLaplace)
        >>> design.branching, sum(design.shares)
        ((10, 10, 10), Fraction(1, 1))
    """
    objective = Cdf() if objective is None else objective
    BINS(bins)
    costs = costs_of(mechanism, objective)
    branching = best_order(bins, costs)
    error, shares = costs.error(branching)
    # the shares in units of 1/10,000, the largest of them rounded so that they sum to 1
    units = [max(1, round(share * SHARE_UNITS)) for share in shares.tolist()]
    units[int(np.argmax(shares))] += SHARE_UNITS - sum(units)
    return Design(bins, branching, tuple(Fraction(unit, SHARE_UNITS) for unit in units), error)


def costs_of(mechanism: type[Mechanism], objective: Objective) -> Costs:
    """Return what the kernels need to know about mechanism and objective."""
    check_mechanism(mechanism)
    ranks = objective.ranks if isinstance(objective, Quantiles) else ()
    quantiles = float64([float(rank) for rank in ranks])
    return Costs(mechanism.price.power, isinstance(objective, AllRanges), quantiles)


def numeric_axis(
    ranges: Ranges,
    branching: Sequence[int] | None = None,
    *,
    mechanism: type[Mechanism] = DiscreteGaussian,
    attribute: bool = False,
) -> Axis:
    """Return a numeric column as an axis: bins whose codes name their ranges, below coarser ones.

    A table has the codes of bins in the column ``NAME_bin``; those of the axis, in order, are
    ``axis.labels[-1]``, and `Ranges.bin` gives the number of each value's.

    Args:
        ranges: the bins.
        branching: how many parts each node is cut into, coarsest level first, with a product of at
            least the number of bins; unless given those of `best_branching`, for the CDF.
        mechanism: the noise that these are best for.
        attribute: whether the axis stands beside a spine.

    Raises:
        TableError: the branching has no number for each level, or too few leaves.

    Example:
        >>> hr.numeric_axis(hr.Ranges.equal_width("income", 0, 1000, 64), [4, 16])
        Axis(income: 4 bins_16, 64 bin)
    """
    if branching is None:
        branching = best_branching(ranges.bins, mechanism=mechanism).branching
    return replace(coded_axis(ranges, branching), attribute=attribute)
