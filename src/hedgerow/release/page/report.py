"""``report.html``: one page that says what a release is, for those who did not make it.

It is made from the public files of a release directory and its plan alone, and the same directory
gives the same page. It asks for nothing from any network, and a policy within it forbids that.
"""

import re
from importlib.metadata import version
from pathlib import Path
from string import Template

from hedgerow.errors import ReleaseError
from hedgerow.estimate.estimator import Estimator
from hedgerow.pages.markup import BLOCK, Document, attribute, document, part, spoken
from hedgerow.pages.markup import shown as shown_text
from hedgerow.plan.page.protected import publisher, words_of
from hedgerow.plan.plan import Plan
from hedgerow.release.accepted import accepted
from hedgerow.release.directory.manifest import OTHER_PAGE, REPORT, check_plain
from hedgerow.release.directory.stored import OnDisk
from hedgerow.release.distribution import cumulative
from hedgerow.release.page import levels, words
from hedgerow.release.page.answer import first_answer
from hedgerow.release.page.carried import carry_maps, parts_of
from hedgerow.release.page.cuboids import carry
from hedgerow.release.page.levels import cuboid_facts
from hedgerow.release.page.price import curves, in_a_hundred

PAGE_ROOM = 1 << 20
"""Bytes by which another machine's page may be larger, twice as large aside."""
SHARED = (
    "blocks.js", "places.js", "sentences.js", "spread.js", "answer.js", "pictures.js", "bars.js",
    "grid.js", "keys.js", "search.js", "download.js", "listing.js",
)  # fmt: skip
_BLOCKS = re.compile(f"(?<={BLOCK[1]})([A-Za-z0-9+/=]+)(?={BLOCK[2]})")
"""What blocks of a page hold, which splits it into pieces beside them and these."""
EXPLORE = "explore.js"
"""The part that shows counts, behind all others."""
MAPS = ("map_shapes.js", "map_scale.js", "map_colours.js", "map.js")
"""The parts that draw maps, with what d3-geo and topojson-client give to them."""


def write_report(folder: Path, plan: Plan, estimator: Estimator) -> None:
    """Write ``report.html`` beside the Parquet files of a release, which are closed.

    Raises:
        ReleaseError: the counts do not add up, or are no counts.
    """
    text = page(folder, plan, estimator, version("hedgerow"))
    (folder / REPORT).write_text(text, encoding="utf-8", newline="\n")


def check_report(folder: Path, plan: Plan, estimator: Estimator, made_by: str) -> None:
    """Refuse a page that is not the one that the files make.

    Compressed counts are compared as what they hold, for another machine may deflate otherwise.

    Raises:
        ReleaseError: it is another page.
    """
    made = page(folder, plan, estimator, made_by)
    most = 2 * len(made.encode()) + PAGE_ROOM
    check_plain(folder, folder / REPORT)
    with (folder / REPORT).open("rb") as file:
        given = file.read(most + 1)
    if len(given) > most or not _same_page(made, given.decode("utf-8")):
        raise ReleaseError(OTHER_PAGE)


def page(folder: Path, plan: Plan, estimator: Estimator, made_by: str) -> str:
    """Return the page of a release as HTML.

    Raises:
        ReleaseError: the counts do not add up, or are no counts.
    """
    facts = cuboid_facts(folder, plan)
    say = words_of(plan)
    is_column = plan.is_chain and words.is_numeric(plan.tree)
    numeric = words.numeric_axis(plan.tree) if is_column or len(plan.tree.axes) > 1 else None
    release = OnDisk(folder, plan, estimator)
    seen = carry(release, [each.listed for each in facts], numeric=numeric)
    carried = list(seen.cells)
    total = facts[0].total or 0
    title = words.title(plan)
    maps, shapes = carry_maps(plan)
    column = cumulative.shown_in(release) if is_column else None
    shown = [*seen.whole, *([column] if column else [])]
    body = Template(spoken(_part("page.html"), say)).substitute(
        heading=words.in_its_language(plan, title),
        publisher=publisher(plan),
        by=words.dated(plan),
        answer=first_answer(seen, total, column),
        counts=seen.first_counts(),
        distribution="".join(each.section() for each in shown),
        sure=levels.sure_table(plan, facts),
        contradicted=levels.contradicted_words(plan, facts),
        criteria=words.criteria(plan, accepted(release)),
        consistent=levels.consistent_words(plan, facts),
        promise=words.promise(plan),
        promise_heading=words.promise_heading(plan),
        hundred=in_a_hundred(plan),
        protected=words.promised(plan),
        released=words.released(plan, total),
        made=words.made(plan, estimator),
        levels=levels.level_table(plan, facts),
        sizes=levels.size_table(plan, facts),
        stated=words.stated_in_full(plan),
        curves=curves(plan),
        carried=levels.carried_words(carried, plan),
        checks=levels.checks(plan, facts, carried),
        cite=words.cited(plan, total, made_by),
        source=shown_text(words.source(plan)),
        made_by=say("release.foot.made_by", version=attribute(made_by)),
    )
    style = _part("page.css")
    starts_from = seen.facts()
    script = "".join(map(_part, SHARED))
    if maps:
        vendor = part("hedgerow.pages.vendor", "cartography.js")
        script = "".join([vendor, script, *map(_part, MAPS)])
        style += _part("map.css")
        starts_from["maps"] = maps
    script += _part(EXPLORE)
    blocks = [*seen.blocks, *shapes]
    return document(Document(title, body, style, script, starts_from, blocks, made_by), say)


def _same_page(made: str, given: str) -> bool:
    """Return whether two pages are the same, their blocks compared as what they hold."""
    ours = _BLOCKS.split(made)
    theirs = _BLOCKS.split(given)
    if ours[::2] != theirs[::2]:
        return False
    for one, other in zip(ours[1::2], theirs[1::2], strict=True):
        if one == other:
            continue
        parts = parts_of(one)
        room = 4 * (1 + len(parts)) + sum(map(len, parts))
        if parts_of(other, room) != parts:
            return False
    return True


def _part(name: str) -> str:
    return part("hedgerow.release.page", name)
