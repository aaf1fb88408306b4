"""Which way leads to answers: the one place that asks which design a plan has."""

from hedgerow.plan.chain import PlannedSums
from hedgerow.plan.plan import Plan
from hedgerow.plan.planned_spine import PlannedSpine
from hedgerow.plan.tables import PlannedTables
from hedgerow.release.answers.answers import Answers
from hedgerow.release.answers.chain import ChainAnswers, SumsAnswers
from hedgerow.release.answers.spine import SpineAnswers
from hedgerow.release.answers.tables import TablesAnswers


def answers_of(plan: Plan) -> Answers:
    """Return what tells of any cells of a plan's releases."""
    match plan.design:
        case PlannedSpine() as design:
            return SpineAnswers(plan, design)
        case PlannedTables() as design:
            return TablesAnswers(plan, design)
        case PlannedSums():
            return SumsAnswers(plan)
    return ChainAnswers(plan)
