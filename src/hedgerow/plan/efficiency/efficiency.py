"""How good a plan is: the least squared error that anyone could have at its price, over its own."""

from dataclasses import field
from fractions import Fraction
from math import isfinite, sqrt

from hedgerow.columns import aligned
from hedgerow.declared import frozen
from hedgerow.errors import PlanError
from hedgerow.plan.allocation.allocation import Importance, Problem, importances
from hedgerow.plan.cuboids import RunningSums
from hedgerow.plan.design import Design
from hedgerow.plan.efficiency.least_total import least_total
from hedgerow.plan.efficiency.traces import COME, MOVE, Pairs
from hedgerow.plan.prior import Prior
from hedgerow.privacy.neighbours import Replace
from hedgerow.text import Json

WORTH_SAYING = 0.03
"""By how much an error must be above that of the least total for the plan to say so."""

SMALL = 0.97
"""The efficiency below which a plan says how far the bound may be from the least possible."""

EITHER = tuple(Pairs(single=k / 8, moved=1 - k / 8) for k in (0, 1, 2, 4, 6, 8))
"""What is weighed where records may come, go or move."""


@frozen
class Efficiency:
    """The least total squared error of any unbiased estimates at a plan's price, over the plan's.

    The estimates may be of whatever is measured with continuous Gaussian noise; the price is what
    the plan costs its worst pair of neighbours; errors are weighted by importance, the plan's own
    rule's or, where it has none, so that each cuboid's mean counts alike. The least is bounded from
    below (`hedgerow.plan.efficiency.least_total`), so no plan has a larger value: *exact* but for
    what ``slack`` says where all families of each level have one size, and where records come or
    go; elsewhere a *bound*, which may be a fifth low for cubes of axes of two or three nodes.

    Attributes:
        value: from 0 to 1; None where the notion does not hold, or no bound is known.
        reason: why there is none.
        errors: for each cuboid its RMSE in the plan, and where the total is least (records);
            the latter None where it is not known.
        slack: how much larger than the bound the least possible can be, relatively; None where that
            is not known.
        least: the bound of the total at ρ = 1/2.
        weights: of the mean variance of each cuboid in that total; the largest importance is 1.
        is_plain: whether the shares are equal, or were given, and not chosen for their errors.
    """

    value: float | None
    reason: str = ""
    errors: dict[str, tuple[float, float | None]] = field(default_factory=dict)
    slack: float | None = None
    least: float = 0.0
    weights: dict[str, float] = field(default_factory=dict)
    is_plain: bool = False

    @property
    def better(self) -> dict[str, tuple[float, float]]:
        """The cuboids whose errors are at least 3 % larger than where the total is least."""
        return {
            name: (own, least)
            for name, (own, least) in self.errors.items()
            if least is not None and own >= least * (1 + WORTH_SAYING)
        }

    def __str__(self) -> str:
        """Return it in sentences, with the cuboids that could be better."""
        return self.text()

    def text(self, *, wide: bool = False) -> str:
        """Return the same; the table of cuboids whole, or as it fits a terminal."""
        if self.value is None:
            return f"Efficiency: not known, because {self.reason}."
        said = (
            f"Efficiency: {self.value:.3f}. Whatever else is measured at this price, with Gaussian "
            f"noise, no unbiased estimates have less than {self.value:.3f} of this plan's total "
            "squared error (weighted by importance)."
        )
        if self.value < SMALL:
            said += (
                " The least possible may lie further above that bound: how far is not known."
                if self.slack is None
                else f" That bound is at most {max(self.slack, 1e-3):.1%} below the least possible."
            )
        if self.value > 1 - WORTH_SAYING or not self.better:
            return said
        rows = [("cuboid", "RMSE", "where the total is least")]
        rows += [
            (name, f"{own:,.4g}", f"{least:,.4g}") for name, (own, least) in self.better.items()
        ]
        advice = " Without [allocation] shares of least error are chosen." if self.is_plain else ""
        return (
            f"{said} These cuboids could be at least 3 % better, others being worse.{advice}\n\n"
            f"{aligned(rows, left=(0,), wide=wide)}"
        )

    def to_dict(self) -> Json:
        """Return it as JSON."""
        errors = [
            {"cuboid": name, "rmse": own, "rmse_at_least_total": least}
            for name, (own, least) in self.errors.items()
        ]
        return {
            "value": self.value,
            "reason": self.reason or None,
            "slack": self.slack,
            "cuboids": errors,
        }


def efficiency_of(
    problem: Problem, importance: Importance, prior: Prior | None, design: Design, rho: Fraction
) -> Efficiency:
    """Return how good a plan is, from public facts alone.

    Args:
        problem: that its shares are an answer to.
        importance: what a squared error costs.
        prior: what relative errors are relative to.
        design: of the plan.
        rho: what it costs its worst pair of neighbours.
    """
    if reason := _not_held(problem, design):
        return Efficiency(None, reason)
    tree = problem.tree
    neighbours = problem.neighbours
    pairs: tuple[Pairs, ...] = (COME,)
    if isinstance(neighbours, Replace):
        pairs = (MOVE,) if neighbours.exactly else EITHER
    try:
        given = importances(problem, importance, prior)
        weights = dict(zip(problem.cuboids, (given / given.max()).tolist(), strict=True))
        least = least_total(tree, weights, pairs)
        cells = {levels: float(tree.cells(levels)) for levels in weights}
    except PlanError as error:
        return Efficiency(None, str(error))
    except OverflowError:
        return Efficiency(None, "there are more cells than a floating-point number can count")
    price = 2 * float(rho) / neighbours.contributions**2
    total = 0.0
    errors = {}
    by_name = {}
    for levels, each in weights.items():
        name = tree.name_of(levels)
        variance = design.mean_variance(levels)
        other = least.by_cuboid
        there = sqrt(other[levels] / price / cells[levels]) if levels in other else None
        errors[name] = sqrt(variance), there
        by_name[name] = each * cells[levels]
        total += by_name[name] * variance
    if not (isfinite(total) and isfinite(least.total)):
        return Efficiency(None, "the errors of the plan itself are not known")
    value = least.total / price / total
    at_half = least.total * neighbours.contributions**2
    return Efficiency(min(1.0, value), "", errors, least.slack, at_half, by_name)


def _not_held(problem: Problem, design: Design) -> str:
    """Return why a plan cannot be compared with the least error; nothing where it can."""
    plan = design.plan
    narrowest = min((each.noise_variance for each in plan.noise.values()), default=1.0)
    reasons = {
        "running sums are for counts below an edge, which importances do not weigh": isinstance(
            problem.measure, RunningSums
        ),
        "the least error is known of Gaussian noise alone": problem.mechanism.price.norm == 1,
        "noise of a standard deviation below 1 is not like continuous noise": narrowest < 1,
        "counts that are public change what the others cost": any(plan.public or ()),
        "public facts change which cells there are": plan.constraints is not None,
        "which cells survivors leave unmeasured is not known before the release": not (
            set(problem.cuboids) <= plan.whole
        ),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")
