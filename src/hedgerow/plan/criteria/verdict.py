"""Whether a plan keeps its criteria, by how much, and why not.

*Of estimates* a criterion is judged by the law of all errors of a cuboid together
(`hedgerow.plan.criteria.law`). `within` is meant of *released counts*: whole, from 0 on, and in sum
what coarser ones are. What follows for them is proved, whatever the true counts N ≥ 0 are:

1. *The total* has no sum to keep: its count is the nearest whole number from 0 on to the estimate
   y, but where public facts bound it, or survivors let it be settled from less than it is estimated
   from. Then |max(0, y) - N| ≤ |y - N|, and rounding stays within ⌊w⌋ of N where |y - N| <
   ⌊w⌋ + 1/2: it keeps a bound whenever the estimate keeps min(w, ⌊w⌋ + 1/2), which is what the law
   of estimates is asked.
2. *Down a chain* that the usual estimator settles, `Euclidean`, counts can be off by more than
   estimates, and by how much at most is known for each draw of the errors (`_settled`).
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
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor, inf

import numpy as np

from hedgerow.arrays import Float64, Int64, Levels, Tables
from hedgerow.estimate.cube.axis_squares import AxisSquares
from hedgerow.plan.criteria.criterion import Criterion
from hedgerow.plan.criteria.joint import Errors, NoVerdictError, errors_of
from hedgerow.plan.criteria.law import ENOUGH, Alike, Bounded, Law, drawn_law
from hedgerow.plan.criteria.sizes import Bounds, SizesOf, bounds_of
from hedgerow.plan.cuboids import RunningSums
from hedgerow.plan.plan import Plan
from hedgerow.text import Json

SURELY = 1e9
"""Bounds over standard deviations that no error reaches."""


@dataclass(frozen=True, slots=True)
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
            factor by which these must grow for them to be proved to keep it. At most 1 where they
            are, 1 where they keep whatever estimates keep; None where nothing is proved.
        why: why nothing is known, or errors are none, in a sentence; else empty.
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
    law: Law | None = field(default=None, compare=False, repr=False)

    @property
    def is_bound(self) -> bool:
        """Whether probability and reach are proved to be at least these, and may be more."""
        return self.law is not None and self.law.is_bound

    @property
    def of_estimates(self) -> str:
        """Whether estimates keep it: yes, no or unknown."""
        if self.reach is None or (self.reach < 1 and self.is_bound):
            return "unknown"
        return "yes" if self.reach >= 1 else "no"

    @property
    def kept(self) -> str:
        """Whether released counts keep it, whatever the true ones are: yes, no or unknown.

        Where counts are large, whole counts are estimates that were rounded: so they do not keep
        what estimates do not.
        """
        is_proved = self.settled is not None and self.settled <= 1
        return self.of_estimates if self.of_estimates != "yes" or is_proved else "unknown"

    @property
    def within(self) -> float | None:
        """The bound that estimates would keep: in records, or a part of the count or records."""
        return None if self.reach is None else float(self.criterion.amount) / self.reach

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
        bound, settled = self.criterion.bound, self.settled
        own = float(self.criterion.amount)
        chance = f"{'at least ' if self.is_bound else ''}{min(self.probability, 0.9999):.4g}"
        would = bound(own / self.reach)
        said = f"Estimates keep it with probability {chance}, and would keep {would}"
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
    plan: Plan, *, sizes: SizesOf | None = None, whole: bool = True
) -> tuple[Verdict, ...]:
    """Return for each criterion of a plan whether it is kept, from public facts alone.

    Args:
        plan: with criteria (`make_plan`, ``accept``).
        sizes: how large the counts of a cuboid are (`hedgerow.plan.criteria.sizes.Sizes`); from the
            public sources of criteria and plan unless given. A check gives released counts.
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
    return tuple(_verdict(plan, each, sizes, whole=whole) for each in plan.accept)


def _verdict(plan: Plan, criterion: Criterion, sizes: SizesOf | None, *, whole: bool) -> Verdict:
    levels, power = criterion.levels(plan.tree), plan.mechanism.price.power
    try:
        errors = errors_of(plan, levels)
        bounds = bounds_of(plan, criterion, errors.numbers, sizes)
    except NoVerdictError as reason:
        return Verdict(criterion, power, why=f"No budget is known to keep it: {reason}.")
    cells = len(bounds.cells), bounds.source
    if not errors.variances.any():
        return Verdict(criterion, power, *cells, 1.0, inf, 1.0, "Its counts are public.")
    law = _law(errors, bounds, criterion)
    reach = 1 / law.quantile(float(criterion.probability))
    settled = _settled_factor(plan, levels, errors, bounds, criterion) if whole else None
    return Verdict(criterion, power, *cells, law.probability(), reach, settled, law=law)


def _law(errors: Errors, bounds: Bounds, criterion: Criterion) -> Law:
    """Return the law of T of the errors of some cells."""
    cells, within, envelope = len(bounds.cells), bounds.of_estimates, errors.noise.envelope
    least, every = ceil(Fraction(criterion.cells) * cells), errors.variances
    every = every if len(every) == 1 else every[bounds.cells]
    with np.errstate(divide="ignore"):
        ratios = np.minimum(within / np.sqrt(every), SURELY)
    is_one = errors.is_alone or (cells == 1 and errors.is_normal)
    if is_one and errors.is_exact and len(ratios) == 1:
        return Alike(cells, least, envelope, float(ratios[0]))
    law = _drawn(errors, lambda tables: [*tables.values()][-1], bounds.cells, within, criterion)
    if law is not None:
        return law
    ratios *= np.sqrt(errors.noise.noise_variance / envelope.variance)
    values, times = np.unique(np.broadcast_to(ratios, cells), return_counts=True)
    return Bounded(least, envelope, values, times)


def _drawn(
    errors: Errors,
    made: Callable[[Tables], Float64],
    cells: Int64,
    within: Float64,
    criterion: Criterion,
    enough: float = ENOUGH,
) -> Law | None:
    """Return the law of the k-th smallest ratio of what is made of drawn errors to bounds."""
    draws, least = errors.draws, ceil(Fraction(criterion.cells) * len(cells))
    if draws is None:
        return None

    def ratios(many: int, block: int) -> Float64:
        off = np.abs(made(draws(many, block))[cells]) / within[:, None]
        return np.asarray(np.partition(off, least - 1, axis=0)[least - 1])

    return drawn_law(ratios, len(errors.numbers), float(criterion.probability), enough)


# --- whole counts -------------------------------------------------------------------------------


def _settled_factor(
    plan: Plan, levels: Levels, errors: Errors, bounds: Bounds, criterion: Criterion
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
    beyond = np.floor(bounds.within) + 1
    law = _drawn(errors, lambda tables: _settled(squares, level, tables, exact), bounds.cells,
                 beyond, criterion, 3 * ENOUGH)  # fmt: skip
    return None if law is None else law.quantile(float(criterion.probability))


def _settled(squares: AxisSquares, level: int, errors: Tables, exact: int | None) -> Float64:
    """Return bounds of how far settled counts of a depth are off: float64 (nodes, runs), records.

    Args:
        squares: of the chain.
        level: the depth.
        errors: of the estimates of each depth.
        exact: the deepest public depth, if any is.
    """
    first, half = (0, 0.5) if exact is None else (exact, 0.0)
    here, above = errors[first,], np.full((squares.shape.sizes[first], 1), half)
    low, high = np.maximum(-here, 0.0) + half, np.maximum(here, 0.0) + half
    for k in range(first + 1, level + 1):
        up, start = squares.shape.parents(k), squares.shape.child_start[k - 1]
        here, u, many = errors[k,], squares.combined[k][:, None], np.diff(start)[up][:, None]
        most = np.maximum.reduceat(here / u, start[:-1], axis=0)[up]
        shift = u * (above[up] + many / 2) / squares.family[k - 1][up][:, None]
        low = low[up] + np.where(many == 1, 0.0, most * u - here + 0.5)
        high = np.where(many == 1, high[up], np.maximum(here + shift, 0.0) + 0.5)
        above = np.where(many == 1, above[up], shift + 0.5)
    return np.maximum(low, high)
