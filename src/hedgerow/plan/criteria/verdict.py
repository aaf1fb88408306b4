"""Whether a plan keeps its criteria, by how much, and why not.

*Of estimates* a criterion is judged by the law of all errors of a cuboid together
(`hedgerow.plan.criteria.law`). `within` is meant of *released counts*: whole, from 0 on, and in sum
what coarser ones are. What follows for them is proved, whatever the true counts N ≥ 0 are:

1. *The coarsest cuboid* has no sum to keep: its count is the nearest whole number from 0 on to the
   estimate y. Then |max(0, y) - N| ≤ |y - N|, and rounding stays within ⌊w⌋ of N where |y - N| <
   ⌊w⌋ + 1/2: it keeps a bound whenever the estimate keeps min(w, ⌊w⌋ + 1/2), which is what the law
   of estimates is asked.
2. *Down a chain* counts can be off by more than estimates, and by how much at most is known for
   each draw of the errors (`_settled`).
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

from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, floor, inf

import numpy as np

from hedgerow.arrays import Float64, Levels, Tables
from hedgerow.estimate.cube.axis_squares import AxisSquares
from hedgerow.plan.criteria.criterion import Criterion
from hedgerow.plan.criteria.joint import Errors, NoVerdictError, errors_of
from hedgerow.plan.criteria.law import Alike, Bounded, Law, drawn_law
from hedgerow.plan.criteria.sizes import Bounds, SizesOf, bounds_of
from hedgerow.plan.cuboids import RunningSums
from hedgerow.plan.plan import Plan
from hedgerow.plan.tables import PlannedTables
from hedgerow.text import Json

ENOUGH_OF_A_BOUND = 0.005
"""The standard error of what is proved of whole counts, relative to it."""
SURELY = 1e9
"""Bounds over standard deviations that no error reaches."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a plan keeps a criterion.

    Attributes:
        criterion: which one.
        cells: how many cells it is of.
        source: what sizes are from, in words; empty where none is needed.
        probability: with which estimates keep it, of as many cells as must; None where unknown.
        reach: the factor by which all errors of estimates may grow until it is just kept: at least
            1 where it is kept; None where unknown, infinite where there are no errors.
        is_bound: whether both are proved to be at least these, and may be more.
        at_most: a bound of the probability from above; 1 where none is known.
        settled: of whole counts, which are within w where they are off by less than ⌊w⌋ + 1: the
            factor by which these must grow for them to be proved to keep it. At most 1 where they
            are, 1 where they keep whatever estimates keep; None where nothing is proved.
        power: variances fall with the budget to this power.
        why: why nothing is known, or why not more, in a sentence; empty where nothing is to say.

    Example:
        >>> tree = hr.Tree([hr.Ranges.equal_width("age", 0, 80, 8).axis([2, 4])])
        >>> plan = hr.make_plan(tree, budget=hr.Rho("1/8"), accept=[hr.Criterion("total", 9)])
        >>> (verdict,) = hr.verdicts(plan)
        >>> verdict.kept, verdict.budget_factor < 1
        ('yes', True)
    """

    criterion: Criterion
    cells: int = 0
    source: str = ""
    probability: float | None = None
    reach: float | None = None
    is_bound: bool = False
    at_most: float = 1.0
    settled: float | None = None
    power: int = 1
    why: str = ""
    law: Law | None = field(default=None, compare=False, repr=False)

    @property
    def of_estimates(self) -> str:
        """Whether estimates keep it: yes, no or unknown."""
        if self.reach is None:
            return "unknown"
        if self.reach >= 1:
            return "yes"
        return "unknown" if self.at_most >= self.criterion.probability else "no"

    @property
    def kept(self) -> str:
        """Whether released counts keep it, whatever the true ones are: yes, no or unknown.

        Where counts are large, whole counts are estimates that were rounded: so they do not keep
        what estimates do not.
        """
        if self.of_estimates == "yes" and (self.settled is None or self.settled > 1):
            return "unknown"
        return self.of_estimates

    def to_dict(self) -> Json:
        """Return what it says as JSON."""
        names = ("cells", "source", "probability", "is_bound", "kept", "of_estimates", "sentence")
        return self.criterion.to_dict() | {name: getattr(self, name) for name in names}

    @property
    def within(self) -> float | None:
        """The bound that estimates would keep: in records, or a part of the count or records."""
        if self.reach is None:
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
        if self.law is None:
            return self.probability
        return self.law.probability(factor)

    @property
    def sentence(self) -> str:
        """What it says, in a few sentences."""
        return sentence_of(self)


def verdicts(plan: Plan, *, sizes: SizesOf | None = None) -> tuple[Verdict, ...]:
    """Return for each criterion of a plan whether it is kept, from public facts alone.

    Args:
        plan: with criteria (`make_plan`, ``accept``).
        sizes: how large the counts of a cuboid are (`hedgerow.plan.criteria.sizes.Sizes`); from the
            public sources of criteria and plan unless given. A check gives released counts.

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
    return tuple(_verdict(plan, each, sizes) for each in plan.accept)


def of_estimates(plan: Plan, criterion: Criterion, sizes: SizesOf | None = None) -> Verdict:
    """Return the verdict on a criterion, without what is proved of whole counts."""
    return _judged(plan, criterion, sizes)[0]


def _verdict(plan: Plan, criterion: Criterion, sizes: SizesOf | None) -> Verdict:
    verdict, errors, bounds = _judged(plan, criterion, sizes)
    if errors is None or bounds is None or verdict.law is None:
        return verdict
    settled = _settled_factor(plan, criterion, errors, bounds)
    return replace(verdict, settled=settled)


def _judged(
    plan: Plan, criterion: Criterion, sizes: SizesOf | None
) -> tuple[Verdict, Errors | None, Bounds | None]:
    levels = criterion.levels(plan.tree)
    power = plan.mechanism.price.power
    try:
        errors = errors_of(plan, levels)
        bounds = bounds_of(plan, criterion, errors.numbers, sizes)
    except NoVerdictError as reason:
        return Verdict(criterion, power=power, why=f"{reason}."), None, None
    cells, source = len(bounds.cells), bounds.source
    if not errors.variances.any():
        public = "Its counts are public, and have no error."
        sure = Verdict(criterion, cells, source, 1.0, inf, settled=1.0, power=power, why=public)
        return sure, errors, bounds
    law = law_of(errors, bounds, criterion)
    reach = 1 / law.quantile(float(criterion.probability))
    told = law.probability(), reach, law.is_bound, law.at_most()
    return Verdict(criterion, cells, source, *told, power=power, law=law), errors, bounds


def law_of(errors: Errors, bounds: Bounds, criterion: Criterion) -> Law:
    """Return the law of T of the errors of some cells."""
    cells, within = len(bounds.cells), bounds.of_estimates
    least, asked = ceil(criterion.cells * cells), float(criterion.probability)
    every = errors.variances if len(errors.variances) == 1 else errors.variances[bounds.cells]
    assert errors.noise is not None  # noqa: S101 - of public counts no law is asked
    envelope = errors.noise.envelope
    one_law = len(every) == 1 and len(within) == 1
    if one_law and errors.is_exact and (errors.is_alone or (cells == 1 and errors.is_normal)):
        return Alike(cells, least, envelope, float(within[0] / np.sqrt(every[0])))
    draws = errors.draws
    if draws is not None:
        own = draws  # for the closure

        def ratios(many: int, block: int) -> Float64:
            here = list(own(many, block).values())[-1]
            return kth(np.abs(here[bounds.cells]) / within[:, None], least)

        drawn = drawn_law(ratios, errors.cells, asked)
        if drawn is not None:
            return drawn
    widening = envelope.variance / errors.noise.noise_variance
    with np.errstate(divide="ignore"):
        ratio = np.broadcast_to(within / np.sqrt(every * widening), (cells,))
    values, times = np.unique(np.minimum(ratio, SURELY), return_counts=True)
    return Bounded(least, envelope, values, times.astype(np.float64), errors.is_exact)


def kth(ratios: Float64, least: int) -> Float64:
    """Return the k-th smallest number of each column."""
    return np.asarray(np.partition(ratios, least - 1, axis=0)[least - 1])


# --- whole counts -------------------------------------------------------------------------------


def _settled_factor(
    plan: Plan, criterion: Criterion, errors: Errors, bounds: Bounds
) -> float | None:
    """Return by what the bound must grow for whole counts to keep it; None where unknown."""
    if _is_free(plan, criterion.levels(plan.tree)):
        return 1.0
    if errors.chain is None or errors.draws is None or not errors.is_normal:
        return None
    squares, level = errors.chain
    draws, least = errors.draws, ceil(criterion.cells * len(bounds.cells))
    beyond = np.floor(bounds.within) + 1  # which whole numbers within the bound are below
    exact = -1 if plan.public is None else squares.shape.given[sum(plan.public)]

    def ratios(many: int, block: int) -> Float64:
        off = _settled(squares, level, draws(many, block), exact)
        return kth(off[bounds.cells] / beyond[:, None], least)

    asked = float(criterion.probability)
    drawn = drawn_law(ratios, errors.cells, asked, ENOUGH_OF_A_BOUND)
    return None if drawn is None else drawn.quantile(asked)


def _is_free(plan: Plan, levels: Levels) -> bool:
    """Return whether whole counts of a cuboid have no sum to keep, whatever else is settled."""
    design = plan.design
    if isinstance(design, PlannedTables) and design.along is None:
        return not design.lattice.exact.get(design.shape.given(levels))
    return plan.tree.cells(levels) == 1 and not isinstance(plan.measure, RunningSums)


def _settled(squares: AxisSquares, level: int, errors: Tables, exact: int) -> Float64:
    """Return bounds of how far settled counts of a depth are off: float64 (nodes, runs), records.

    Args:
        squares: of the chain.
        level: the depth.
        errors: of the estimates of each depth.
        exact: the deepest public depth, -1 if none is.
    """
    first = max(exact, 0)
    half = 0.0 if exact >= 0 else 0.5
    here = errors[first,]
    low, high = np.maximum(-here, 0.0) + half, np.maximum(here, 0.0) + half
    above = np.full((len(here), 1), half)
    for k in range(first + 1, level + 1):
        up, start = squares.shape.parents(k), squares.shape.child_start[k - 1]
        here, u, many = errors[k,], squares.combined[k][:, None], np.diff(start)[up][:, None]
        scaled = np.divide(here, u, out=np.zeros_like(here), where=u > 0)
        most = np.maximum.reduceat(scaled, start[:-1], axis=0)[up]
        family = squares.family[k - 1][up][:, None]
        shift = np.divide(u * (above[up] + many / 2), family, out=0 * u, where=family > 0)
        alone = many == 1
        low = low[up] + np.where(alone, 0.0, most * u - here + 0.5)
        high = np.where(alone, high[up], np.maximum(here + shift, 0.0) + 0.5)
        above = np.where(alone, above[up], shift + 0.5)
    return np.maximum(low, high)


# --- words --------------------------------------------------------------------------------------


def sentence_of(verdict: Verdict) -> str:
    """Return what a verdict says, in a few sentences."""
    if verdict.law is None or verdict.reach is None or verdict.probability is None:
        return verdict.why
    bound, own = verdict.criterion.bound, verdict.criterion.amount
    chance = f"{'at least ' if verdict.is_bound else ''}{verdict.probability:.4g}"
    said = (
        f"Estimates keep it with probability {chance}, and would keep {bound(own / verdict.reach)}"
    )
    if verdict.reach < 1:
        said += f"; it takes {verdict.budget_factor:.4g} times the budget"
    counts = "made to add up, they may be off by more than estimates, and no bound is known"
    if verdict.settled is not None:
        off = own * verdict.settled
        if isinstance(verdict.criterion.within, Fraction):
            off = floor(verdict.settled * (floor(own) + 1))
        counts = (
            "they keep it, too" if verdict.settled <= 1 else f"they are proved to keep {bound(off)}"
        )
    sizes = f" Sizes: {verdict.source}." if verdict.source else ""
    return f"{said}. Of whole counts: {counts}.{sizes}"
