"""What is refused before a release: a table, a plan and an estimator that do not fit together.

All of it is refused before a release is charged and before any noise is drawn.
"""

from hedgerow.errors import EstimateError, PlanError, kind_of
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.families.nearest_cdf import Isotonic
from hedgerow.plan.depths import All, Measured, RunningSums, Summed
from hedgerow.plan.kinds import refuse_kind
from hedgerow.plan.plan import Plan
from hedgerow.plan.prior import refuse_own_table
from hedgerow.release.descent.outline import Outline
from hedgerow.tables.counts import Counts
from hedgerow.tables.whole import LARGEST_LEAF

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
    if None not in {counts.unit, plan.neighbours.unit} and counts.unit != plan.neighbours.unit:
        raise PlanError(
            f"the plan protects each {plan.neighbours.unit!r}, but the table keeps so many records "
            f"of each {counts.unit!r}; read it with unit={plan.neighbours.unit!r}"
        )
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
    if widest > (LARGEST_NOISE * scale) ** 2 and Outline.of(plan).needs_reals(estimator):
        raise EstimateError(
            "the noise of this plan is above 2**30 records, which real-valued estimates do not "
            "hold: give it a larger budget"
        )


def check_public_total(total: float, plan: Plan) -> None:
    """Refuse a table too large to be counted whole, where its size is public.

    Elsewhere how large it is decides nothing: of a leaf `LARGEST_LEAF` records are counted, and
    real-valued estimates stop at `hedgerow.estimate.families.real_projection.LARGEST_REAL_COUNT`.

    Args:
        total: the number of records, as `Counts.unwrapped_total` has it.
        plan: the plan.

    Raises:
        PlanError: the total is public and not below 2⁴⁰.
    """
    if plan.public_depth >= 0 and total >= LARGEST_LEAF:
        raise PlanError(
            "the number of records is public under this plan, and a table whose number is public "
            "must have fewer than 2**40; use add-remove neighbours, which measure it"
        )
