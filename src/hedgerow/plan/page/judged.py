"""What becomes of a plan's criteria at other budgets."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from math import inf, sqrt
from operator import truediv

from hedgerow.errors import PlanError
from hedgerow.estimate.estimator import Estimator
from hedgerow.plan.criteria.least import least_budget
from hedgerow.plan.criteria.verdict import Verdict, verdicts
from hedgerow.plan.plan import Plan
from hedgerow.privacy.budget import Budget

TINY = 1e-300  # below the variance of any noise that is told from none


def least_of(plan: Plan) -> Budget | None:
    """Return the budget from which on a plan's estimates, with its shares, keep all its criteria.

    None where there are no criteria, or no budget keeps all.
    """
    try:
        return least_budget(replace(plan, rule=None)) if plan.accept else None
    except PlanError:
        return None


def judged_at(
    plans: Sequence[Plan], own: int, least: int | None, estimator: Estimator | None = None
) -> list[Sequence[Verdict]]:
    """Return of each criterion of a plan what becomes of it at other budgets, with its shares.

    The same sums of noise are the errors at all of them: so these grow by no more than the noise
    that grows most, and no law is drawn again for it.

    Args:
        plans: by budget, ascending.
        own: the place of the one whose law of errors is taken.
        least: the place of another one that is judged by its own, if any.
        estimator: what makes counts whole; the plans' usual one unless given.
    """
    exact = {i: verdicts(plans[i], estimator=estimator) for i in (own, least) if i is not None}
    every = (
        [exact[i][k] if i in exact else _grown(first, plans[own], p) for i, p in enumerate(plans)]
        for k, first in enumerate(exact[own])
    )
    return [_settled(plans, each, estimator) for each in every]


def _grown(verdict: Verdict, own: Plan, other: Plan) -> Verdict:
    """Return a verdict on a plan with the noise of another one, but of whole counts."""
    if verdict.law is None or verdict.reach is None:
        return verdict
    there, here = (
        [max(noise.envelope.variance, TINY) for noise in plan.noise.values()]
        for plan in (other, own)
    )
    factor = sqrt(max(map(truediv, there, here)))
    told = verdict.probability_at(factor)
    return replace(verdict, probability=told, reach=verdict.reach / factor)


def _settled(
    plans: Sequence[Plan], judged: Sequence[Verdict], estimator: Estimator | None
) -> Sequence[Verdict]:
    """Return verdicts on a criterion at each budget with what is proved of whole counts there."""
    if judged[0].settled in {None, 1.0}:
        return judged

    def proved(place: int) -> bool:
        """Whole counts are proved to keep it from some budget on, which is sought."""
        plan = replace(plans[place], accept=(judged[place].criterion,))
        if judged[place].of_estimates != "yes":
            return False
        return verdicts(plan, estimator=estimator)[0].kept == "yes"

    first = bisect_left(range(len(plans)), True, key=proved)
    return [replace(each, settled=1.0 if i >= first else inf) for i, each in enumerate(judged)]
