"""Whether a plan keeps its criteria, by how much, and why not.

*Of estimates* a criterion is judged by the law of all errors of a cuboid together
(`hedgerow.plan.criteria.law`). `within` is meant of *released counts*: whole, from 0 on, and in sum
what coarser ones are. What follows for them is proved, whatever the true counts N ≥ 0 are:

1. *The total* has no sum to keep: its count is the nearest whole number from 0 on to the estimate
   y, but where public facts bound it, or survivors let it be settled from less than it is estimated
   from. Then |max(0, y) - N| ≤ |y - N|, and rounding stays within ⌊w⌋ of N where |y - N| <
   ⌊w⌋ + 1/2: it keeps a bound whenever the estimate keeps min(w, ⌊w⌋ + 1/2), which is what the law
   of estimates is asked.
2. *Down a chain* that `Euclidean` settles counts can be off by more than estimates, and by how much
   at most is known for each draw of the errors (`_settled`).
3. *Elsewhere* nothing of the kind is known, and there is no verdict on whole counts.

*Proof of 2.* A family with the settled total C of its parent has errors e_i of its estimates y_i,
subtree variances u_i, S = Σ u, n cells, and r = max e_j / u_j. Its counts minimise Σ (x_i - z_i)² /
u_i over whole x ≥ 0 with Σ x = C (`hedgerow.estimate.families.euclidean`), z and y differing by a
multiple of u. So for some θ each x_i is next to max(0, y_i + θ u_i), by 1/2 at most: ρ(…), ρ rising
and leaving whole numbers alone.

- Let q = max(0, Σ N - C). If θ < -r - q/u_i, all y_j + θ u_j lie below N_j - q u_j / u_i, so that
  x_j ≤ N_j, and x_i ≤ max(0, N_i - q): as Σ x = Σ N - q or more, N_i - x_i ≤ q. Else N_i - x_i ≤
  -e_i + r u_i + q + 1/2, where -e_i + r u_i ≥ 0: so this bounds it in either case.
- Σ x ≥ Σ (y_j + θ u_j - 1/2) = Y + θ S - n/2, so that θ ≤ (C - Y + n/2) / S. With a bound V of C -
  Y where C > 0: x_i - N_i ≤ max(0, e_i + u_i (V + n/2) / S) + 1/2, and x_i - y_i ≤ u_i (V + n/2) /
  S + 1/2 is the next V. Where C = 0, all below is 0 and not above N.
- A cell that is alone has its parent's count, and its bounds.
"""

from collections.abc import Callable
from dataclasses import field
from fractions import Fraction
from math import floor, inf, isinf

import numpy as np

from hedgerow.arrays import Float64, Levels, Tables
from hedgerow.declared import frozen
from hedgerow.estimate.cube.axis_squares import AxisSquares
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.families.euclidean import Euclidean
from hedgerow.plan.criteria.criterion import Criterion, OfQuantile
from hedgerow.plan.criteria.items import Items, table_of
from hedgerow.plan.criteria.joint import Errors, NoVerdictError, errors_of
from hedgerow.plan.criteria.law import ENOUGH, Alike, Bounded, Law, drawn_law
from hedgerow.plan.criteria.sizes import SizesOf, sized_items
from hedgerow.plan.cuboids import RunningSums
from hedgerow.plan.plan import Plan
from hedgerow.text import Json

NARROW = 1.01
"""From this widening of its variance on a law that bounds narrow noise is told as a bound."""
SURELY = 1e9
"""Bounds over standard deviations that no error reaches."""


@frozen
class Verdict:
    """Whether a plan keeps a criterion.

    Attributes:
        criterion: which one.
        power: variances fall with the budget to this power.
        cells: how many cells it is of.
        source: what sizes are from, in words; empty where none is needed.
        probability: with which estimates keep it, of as many cells as must; None where unknown.
        reach: the factor by which all errors of estimates may grow until it is just kept: at least
            1 where it is kept; None where unknown, infinite where there are no errors.
        settled: of whole counts, which are within w where they are off by less than ⌊w⌋ + 1: the
            factor by which these must grow for them to be proved to keep it, or w itself that is a
            part. At most 1 where they are, 1 where they keep whatever estimates keep; None where
            nothing is proved.
        why: why nothing is known, or errors are none, in a sentence; else empty.
        slack: by how much whole counts may be off further than estimates, and yet keep it.
        is_narrow: whether noise is so narrow that a wider law stands for its own.
        law: of what must be at most 1 (`hedgerow.plan.criteria.law`).

    Example:
        >>> tree = hr.Tree([hr.Ranges.equal_width("age", 0, 80, 8).axis([2, 4])])
        >>> plan = hr.make_plan(tree, budget=hr.Rho("1/8"), accept=[hr.Criterion("total", 9)])
        >>> (verdict,) = hr.verdicts(plan)
        >>> verdict.kept, verdict.budget_factor < 1
        ('yes', True)
    """

    criterion: Criterion
    power: int
    cells: int = 0
    source: str = ""
    probability: float | None = None
    reach: float | None = None
    settled: float | None = None
    why: str = ""
    slack: float = field(default=1.0, compare=False, repr=False)
    is_narrow: bool = field(default=False, compare=False, repr=False)
    law: Law | None = field(default=None, compare=False, repr=False)

    @property
    def is_bound(self) -> bool:
        """Whether probability and reach are proved to be at least these, and may be more."""
        of_crossing = isinstance(self.criterion.within, OfQuantile)  # enough, not necessary
        return self.law is not None and (self.law.is_bound or of_crossing or self.is_narrow)

    @property
    def of_estimates(self) -> str:
        """Whether estimates keep it: yes, no or unknown."""
        if self.reach is None or (self.reach < 1 and self.is_bound):
            return "unknown"
        return "yes" if self.reach >= 1 else "no"

    @property
    def kept(self) -> str:
        """Whether released counts keep it, whatever the true ones are: yes, no or unknown.

        Where counts are large, whole counts are estimates that were rounded. So they do not keep
        what estimates miss by more than rounding can mend: they are within w where they are off by
        less than ⌊w⌋ + 1.
        """
        told = self.of_estimates
        if told == "yes":
            is_open = self.settled is None or self.settled > 1
        else:
            is_open = self.reach is not None and self.reach * self.slack >= 1
        return "unknown" if is_open else told

    @property
    def within(self) -> float | None:
        """The bound of counts that estimates would keep: in records, or a part of these."""
        if self.reach is None or not self.criterion.is_of_counts:
            return None
        return float(self.criterion.amount) / self.reach

    @property
    def budget_factor(self) -> float | None:
        """What the budget, ρ or ε, must be multiplied with for estimates to just keep it."""
        return None if self.reach is None else self.reach ** (-2 / self.power)

    def probability_at(self, factor: float) -> float | None:
        """Return the probability if all errors are multiplied with a factor.

        Errors of wide noise are in proportion to the root of 1/ρ, or to 1/ε.
        """
        return self.probability if self.law is None else self.law.probability(factor)

    def to_dict(self) -> Json:
        """Return what it says as JSON."""
        names = ("cells", "source", "probability", "is_bound", "kept", "of_estimates", "sentence")
        return self.criterion.to_dict() | {name: getattr(self, name) for name in names}

    @property
    def sentence(self) -> str:
        """What it says, in a few sentences."""
        if self.law is None or self.reach is None or self.probability is None:
            return self.why
        bound = self.criterion.bound
        settled = self.settled
        within = self.within
        own = float(self.criterion.amount)
        chance = f"{'at least ' if self.is_bound else ''}{min(self.probability, 0.9999):.4g}"
        times = "any errors" if isinf(self.reach) else f"errors {self.reach:.4g} times as large"
        would = f"do with {times}" if within is None else f"keep {bound(within)}"
        said = f"Estimates keep it with probability {chance}, and would {would}"
        if self.reach < 1:
            said += f"; it takes {self.budget_factor:.4g} times the budget"
        counts = "made to add up, they may be off by more than estimates, and no bound is known"
        if settled is not None and settled > 1:
            off = own * settled
            if isinstance(self.criterion.within, Fraction):
                off = floor(settled * (floor(own) + 1))
            counts = f"they are proved to keep {bound(off)}"
        elif settled is not None:
            counts = "they keep it, too" if self.reach >= 1 else "they keep what estimates keep"
        sizes = f" Sizes: {self.source}." if self.source else ""
        return f"{said}. Of whole counts: {counts}.{sizes}"


def verdicts(
    plan: Plan,
    *,
    sizes: SizesOf | None = None,
    estimator: Estimator | None = None,
    whole: bool = True,
) -> tuple[Verdict, ...]:
    """Return for each criterion of a plan whether it is kept, from public facts alone.

    Args:
        plan: with criteria (`make_plan`, ``accept``).
        sizes: how large the counts of a cuboid are (`hedgerow.plan.criteria.sizes.Sizes`); from the
            public sources of criteria and plan unless given. A check gives released counts.
        estimator: what makes counts whole; the plan's usual one unless given.
        whole: whether to look for what is proved of whole counts, too.

    Returns:
        One an entry of ``plan.accept``, in its order. Probabilities are of the joint normal law of
        the estimates, or of the noise's own (`hedgerow.plan.criteria.joint`); those that are drawn
        are on the safe side by two standard errors of the draws.

    Example:
        >>> tree = hr.Tree([hr.Ranges.equal_width("age", 0, 80, 8).axis([2, 4])])
        >>> criterion = hr.Criterion("bin", 5, cells="3/4", probability="0.9")
        >>> plan = hr.make_plan(tree, budget=hr.Rho("1/2"), accept=[criterion])
        >>> [(each.of_estimates, each.kept) for each in hr.verdicts(plan)]
        [('yes', 'unknown')]
    """
    settler = (estimator or plan.design.usual) if whole else None
    return tuple(_verdict(plan, each, sizes, settler) for each in plan.accept)


def _verdict(
    plan: Plan, criterion: Criterion, sizes: SizesOf | None, settler: Estimator | None
) -> Verdict:
    table = table_of(plan, criterion)
    power = plan.mechanism.price.power
    try:
        errors = errors_of(plan, table)
        items, source = sized_items(plan, criterion, table, errors.numbers, sizes)
        is_public = not errors.variances.any()
        law = None if is_public else _law(errors, items, criterion)
    except NoVerdictError as reason:
        return Verdict(criterion, power, why=f"No budget is known to keep it: {reason}.")
    of_cells = len(items.within), source
    if law is None:
        return Verdict(criterion, power, *of_cells, 1.0, inf, 1.0, "Its counts are public.")
    just = law.quantile(float(criterion.probability))
    reach = 1 / just if just else inf
    settled, slack = None, inf
    if criterion.is_of_cells:
        slack = float(((np.floor(items.within) + 1) / items.within).max())
        if settler is not None and (isinstance(settler, Euclidean) or not any(table)):
            settled = _settled_factor(plan, table, errors, items, criterion)
    told = law.probability(), reach, settled
    is_narrow = errors.widening > NARROW
    return Verdict(criterion, power, *of_cells, *told, slack=slack, is_narrow=is_narrow, law=law)


def _law(errors: Errors, items: Items, criterion: Criterion) -> Law:
    """Return the law of T of the errors of some items, or raise a NoVerdictError."""
    widest = np.sqrt(errors.widening)
    within = items.within

    def each(tables: Tables) -> Float64:
        return items.largest(widest * [*tables.values()][-1])

    many = len(within)
    envelope = errors.noise.envelope
    every = errors.variances
    least = criterion.least(many)
    if criterion.is_of_cells:
        every = every if len(every) == 1 else every[items.sums.indices]
        with np.errstate(divide="ignore"):
            ratios = np.minimum(within / widest / np.sqrt(every), SURELY)
        values, times = np.unique(ratios, return_counts=True)
        is_one = errors.is_alone or (many == 1 and errors.is_normal)
        if is_one and errors.is_exact and len(values) == 1:
            return Alike(many, least, envelope, float(values[0]))
    if (law := _drawn(errors, each, criterion, many)) is not None:
        return law
    if criterion.is_of_cells:
        return Bounded(least, envelope, values, times)
    raise NoVerdictError(
        f"the errors of all {len(errors.numbers):,} cells that it is made of are not known "
        "together, but of each alone"
    )


def _drawn(
    errors: Errors,
    largest: Callable[[Tables], Float64],
    criterion: Criterion,
    items: int,
    enough: float = ENOUGH,
) -> Law | None:
    """Return the law of the k-th smallest of what is made of drawn errors, of each item."""
    draws = errors.draws
    last = criterion.least(items) - 1
    if draws is None:
        return None

    def ratios(many: int, block: int) -> Float64:
        each = largest(draws(many, block))
        return np.asarray(np.maximum(np.partition(each, last, axis=0)[last], 0.0))

    drawn = max(errors.drawn, len(errors.numbers))
    return drawn_law(ratios, drawn, float(criterion.probability), enough)


# --- whole counts -------------------------------------------------------------------------------


def _settled_factor(
    plan: Plan, levels: Levels, errors: Errors, items: Items, criterion: Criterion
) -> float | None:
    """Return by what the bound must grow for whole counts to keep it; None where unknown."""
    together = plan.is_chain or plan.whole.issuperset(plan.levels)
    if (
        not any(levels)
        and not plan.facts
        and together
        and not isinstance(plan.measure, RunningSums)
    ):
        return 1.0
    if errors.chain is None or not errors.is_normal:
        return None
    squares, level = errors.chain
    exact = None if plan.public is None else squares.shape.given[sum(plan.public)]
    within = items.within
    widest = np.sqrt(errors.widening)
    beyond = np.floor(within) + 1

    def off(errors: Tables) -> Float64:
        wide = {cuboid: widest * table for cuboid, table in errors.items()}
        settled = _settled(squares, level, wide, exact)[items.sums.indices]
        return np.asarray(settled / beyond[:, None])

    law = _drawn(errors, off, criterion, len(within), 3 * ENOUGH)
    if law is None:
        return None
    factor = law.quantile(float(criterion.probability))
    if factor > 1 and not isinstance(criterion.within, Fraction):  # of the bounds themselves
        factor *= float((beyond / within).max())
    return factor


def _settled(squares: AxisSquares, level: int, errors: Tables, exact: int | None) -> Float64:
    """Return bounds of how far settled counts of a depth are off: float64 (nodes, runs), records.

    Args:
        squares: of the chain.
        level: the depth.
        errors: of the estimates of each depth.
        exact: the deepest public depth, if any is.
    """
    first, half = (0, 0.5) if exact is None else (exact, 0.0)
    here = errors[first,]
    above = np.full((squares.shape.sizes[first], 1), half)
    low = np.maximum(-here, 0.0) + half
    high = np.maximum(here, 0.0) + half
    for k in range(first + 1, level + 1):
        up = squares.shape.parents(k)
        start = squares.shape.child_start[k - 1]
        here = errors[k,]
        u = squares.combined[k][:, None]
        many = np.diff(start)[up][:, None]
        most = np.maximum.reduceat(here / u, start[:-1], axis=0)[up]
        shift = u * (above[up] + many / 2) / squares.family[k - 1][up][:, None]
        low = low[up] + np.where(many == 1, 0.0, most * u - here + 0.5)
        high = np.where(many == 1, high[up], np.maximum(here + shift, 0.0) + 0.5)
        above = np.where(many == 1, above[up], shift + 0.5)
    return np.maximum(low, high)
