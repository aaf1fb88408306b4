"""What is refused before a release: a table, a plan and an estimator that do not fit together.

All of it is refused before a release is charged and before any noise is drawn.
"""

from hedgerow.errors import EstimateError, PlanError
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.known import LARGEST_REAL_COUNT
from hedgerow.estimate.nearest_cdf import Isotonic
from hedgerow.estimate.sparse import Sparse
from hedgerow.plan.depths import All, Measured, RunningSums, Summed, Unmeasured
from hedgerow.plan.kinds import kind_of, refuse_kind
from hedgerow.plan.plan import Plan
from hedgerow.plan.prior import refuse_own_table
from hedgerow.tables.counts import Counts

LARGEST_NOISE = 1 << 30
"""Standard deviation or scale of noise (records) that real-valued estimates hold for certain."""


def check_match(counts: Counts, plan: Plan) -> None:
    """Refuse a table that is not what the plan was made for.

    Raises:
        PlanError: no counts or no plan, another domain, contributions that were bounded otherwise,
            or a prior that is the table itself.
    """
    if not isinstance(counts, Counts):
        refuse_kind("the table of a release", "Counts.from_frame(tree, …)", counts)
    if not isinstance(plan, Plan):
        refuse_kind("the plan of a release", "make_plan(…)", plan)
    if counts.tree.digest != plan.tree.digest:
        raise PlanError("the plan was made for another tree than the table's; make it anew")
    if plan.prior is not None:
        refuse_own_table(plan.prior, counts)
    bound, promised = counts.contributions, plan.neighbours.contributions
    if bound is None and plan.neighbours.unit is not None:
        raise PlanError(
            f"the plan protects each {plan.neighbours.unit!r}, but the table's contributions were "
            f"not bounded: read it with unit={plan.neighbours.unit!r}"
        )
    if bound is None:
        return
    if bound > promised:
        raise PlanError(
            f"the table keeps up to {bound} records a unit, but the plan protects {promised}"
        )
    if bound > 1 and plan.neighbours.total_is_public:
        raise PlanError(
            "the plan holds the total public, which needs units with exactly as many records as "
            "contributions says; a table bounded by its unit column keeps at most that many: use "
            "Replace(contributions, exactly=False), which measures the total"
        )


def check_combines(estimator: Estimator, plan: Plan) -> None:
    """Refuse an estimator that cannot use what a plan measures.

    Raises:
        EstimateError: it is a name or a class; it wants to combine depths, and the plan measures
            survivors alone; or it works on real numbers, and the noise is out of their reach.
    """
    if isinstance(estimator, type) or not hasattr(estimator, "project"):
        raise EstimateError(
            f"an estimator must be Chebyshev(), Euclidean(), …, got {kind_of(estimator)}"
        )
    summed = isinstance(plan.measure, RunningSums)
    if summed and not isinstance(estimator, Isotonic):
        raise EstimateError(
            f'running sums are estimated by method = "isotonic" alone, got "{estimator.name}"; to '
            'use another, measure all nodes of a tree (measure = "all")'
        )
    if estimator.combine and not isinstance(plan.measure, All):
        raise EstimateError(
            f"{estimator.name} with combine = true needs a plan that measures all nodes "
            '(measure = "all"): what is measured below survivors is biased by their survival'
        )
    scale = plan.strategy.scale if summed else 1
    drawn = (what.mechanism for what in plan.depths if isinstance(what, Measured | Summed))
    widest = max((noise.envelope.variance for noise in drawn), default=0.0)
    if widest > (LARGEST_NOISE * scale) ** 2 and _is_real(estimator, plan):
        raise EstimateError(
            "the noise of this plan is above 2**30 records, which real-valued estimates do not "
            "hold: give it a larger budget"
        )


def check_range(total: int, estimator: Estimator, plan: Plan) -> None:
    """Refuse a table too large for the estimator, before its noise is drawn or charged.

    Raises:
        EstimateError: more than 2³⁹ records where estimates are real numbers.
    """
    if total > LARGEST_REAL_COUNT // 2 and _is_real(estimator, plan):
        raise EstimateError(
            "the table has more than 2**39 records, which real-valued estimates do not hold: use "
            'method = "chebyshev" or "euclidean" with measure = "survivors"'
        )


def _is_real(estimator: Estimator, plan: Plan) -> bool:
    """Whether the estimator is given combined, real-valued counts, or makes such."""
    combines = isinstance(plan.measure, All) and estimator.combine is not False
    gaps = any(isinstance(what, Unmeasured) for what in plan.depths)
    return combines or gaps or isinstance(estimator, Sparse | Isotonic)
