"""The answer that a page opens with: the whole table's count, or the median of a distribution."""

from hedgerow.pages.markup import shown
from hedgerow.plan.page.protected import units, words_of
from hedgerow.release.directory.cuboid_errors import USUAL
from hedgerow.release.distribution.cumulative import Shown
from hedgerow.release.page.cuboids import Carried, percent
from hedgerow.release.page.levels import RELIABILITY, reliability


def first_answer(seen: Carried, total: int, distribution: Shown | None) -> str:
    """Return what is said above the counts before anybody asks: HTML.

    Args:
        seen: what the page carries.
        total: of the table, records.
        distribution: of the release over a numeric column, if it has one.
    """
    if distribution is not None:
        return distribution.quartiles()
    plan = seen.plan
    say = words_of(seen.plan)
    whole = (0,) * len(plan.tree.axes)
    cells = seen.cells.get(whole)
    quartiles = seen.quartiles.get(whole)
    told = ""
    if cells is not None and len(cells):
        ends = cells.counts, cells.low, cells.high
        word = say(f"script.{RELIABILITY[int(reliability(*ends)[0])]}")
        _, interval, _ = cells.sentence(say, 0)
        is_exact = bool(cells.exact[0])
        sure = say("script.interval", sure=percent(USUAL))
        told = f'<span class="told">{interval}</span>' + ("" if is_exact else f" {sure}, {word}")
    return (
        f"<div>\n<h2>{say('script.everything')}</h2>\n"
        f'<p class="figure"><strong>{say.number(total)}</strong> {shown(units(plan))}</p>\n'
        f'<p class="interval">{told}</p>\n</div>'
        f"{'' if quartiles is None else quartiles.terms(say)}"
    )
