"""``report.html``: one page that says what a release is, for those who did not make it.

It is made from the public files of a release directory and its plan alone, and the same directory
gives the same page. It asks for nothing from any network, and a policy within it forbids that.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from string import Template
from typing import Any

from hedgerow.arrays import Levels
from hedgerow.errors import ReleaseError
from hedgerow.estimate.estimator import Estimator
from hedgerow.pages import markup
from hedgerow.pages.markup import BLOCK, Document, document, part, shown, spoken
from hedgerow.plan.plan import Plan
from hedgerow.release.descent.nodes import Nodes
from hedgerow.release.directory.manifest import OTHER_PAGE, REPORT, check_plain
from hedgerow.release.directory.measurements import counts_file
from hedgerow.release.directory.stored import OnDisk
from hedgerow.release.page import levels, words
from hedgerow.release.page.carried import Carried, area_labels, carry, parts_of
from hedgerow.release.page.cube import carry_cuboids
from hedgerow.release.page.described import (
    axis_facts,
    between,
    counted,
    counted_units,
    described,
    first_table,
    in_its_language,
    publisher,
    unit_facts,
    words_of,
)
from hedgerow.release.page.levels import CuboidFacts, cuboid_facts
from hedgerow.release.page.map import carry_maps
from hedgerow.release.page.promise import Priced, curves
from hedgerow.release.page.words import distribution, is_numeric
from hedgerow.text import format_rounded_up, raised, visible

# What the picture of the hierarchy starts from: the shape of the tree, and a first table.

MOST_ROWS = 60


def first_shape(plan: Plan, carried: Carried, *, numeric: bool) -> dict[str, Any]:
    """Return the tree as the page's script reads it, and the total with its interval."""
    tree = plan.tree
    root = carried.nodes[0].counts.tolist() if carried.nodes else []
    first = carried.intervals[0] if root else None
    pairs = [(first.low, first.high), *first.others] if first else []
    return {
        **unit_facts(plan),
        "axes": [axis_facts(plan, axis) for axis in tree.axes],
        "steps": tree.steps,
        "depths": [visible(plan.label_of(levels)) for levels in tree.chain],
        "files": [counts_file(levels) for levels in tree.chain],
        "last": carried.last,
        "numeric": numeric,
        "total": [*root, *(int(end[0]) for pair in pairs for end in pair)],
    }


def first_counts(plan: Plan, carried: Carried) -> str:
    """Return the coarsest level of several counts as a table, for readers without scripts."""
    tree = plan.tree
    depth = next((t for t in range(carried.last + 1) if tree.nodes(t) > 1), None)
    if depth is None:
        return f"<p>{words_of(plan)('release.in_files')}</p>"
    nodes, interval = _first(carried.nodes[depth]), carried.intervals[depth]
    say = words_of(plan)
    codes = [
        area_labels(axis, level, code)
        for axis, level, code in zip(tree.axes, tree.cuboid(depth), nodes.codes, strict=True)
        if level
    ]
    estimates = interval.contradictions()
    rows = [
        [
            " › ".join(shown(code) for code in path),
            counted(say, int(count), estimates.get(i)),
            between(say, int(low), int(high)),
        ]
        for i, (path, count, low, high) in enumerate(
            zip(zip(*codes, strict=True), nodes.counts, interval.low, interval.high, strict=False)
        )
    ]
    name, every = shown(plan.label_of(tree.cuboid(depth))), len(carried.nodes[depth])
    return first_table(say, name, ["interval"], rows, every)


def _first(nodes: Nodes) -> Nodes:
    return nodes.take(slice(MOST_ROWS))


MOST_LETTERS = 12
"""Of a fraction at the head of the page."""
PAGE_ROOM = 1 << 20
"""Bytes by which another machine's page may be larger, twice as large aside."""
CHAIN_SCRIPTS = (
    "blocks.js", "nodes.js", "sentences.js", "pictures.js", "grid.js", "matrix.js", "keys.js",
    "search.js", "download.js", "listing.js", "explore.js",
)  # fmt: skip
CUBE_SCRIPTS = (
    "blocks.js", "places.js", "sentences.js", "pictures.js", "grid.js", "keys.js", "search.js",
    "download.js", "listing.js", "cube.js",
)  # fmt: skip


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
    facts, numeric = cuboid_facts(folder, plan), is_numeric(plan.tree)
    seen = EXPLORED[plan.design.key](folder, plan, [each.listed for each in facts])
    maps = carry_maps(plan)
    say, total, priced = words_of(plan), facts[0].total or 0, Priced.of(plan.guarantee)
    title = words.title(plan)
    shape = distribution(OnDisk(folder, plan, estimator)) if numeric else None
    body = Template(spoken(_part("page.html"), say)).substitute(
        heading=in_its_language(plan, title),
        publisher=publisher(plan),
        lead=words.lead(plan, total),
        described=described(plan),
        made_by=say("release.foot.made_by", version=markup.attribute(made_by)),
        overview=_overview(plan, facts),
        released=words.released(plan, total),
        promised=words.promised(plan, estimator),
        hundred=words.in_a_hundred(plan),
        map=maps.section(say),
        map_link=maps.link(say),
        explore=seen.first,
        carried=levels.carried_words(seen.levels, plan),
        distribution=""
        if shape is None
        else _DISTRIBUTION.format(say("release.distribution.heading"), shape),
        levels=levels.level_table(plan, facts),
        sizes=levels.size_table(plan, facts),
        contradicted=levels.contradicted_words(plan, facts),
        curves=curves(plan, priced),
        checks=levels.checks(plan, facts, seen.levels),
        cite=words.cited(plan, total, made_by),
    )
    script = maps.vendor + "".join(map(_part, (*seen.scripts, *maps.scripts)))
    style = "".join(map(_part, ("page.css", *maps.styles)))
    shown_facts, blocks = seen.facts | maps.facts(say), [*seen.blocks, *maps.blocks]
    made = Document(title, body, style, script, shown_facts, blocks, made_by)
    return document(made, say)


@dataclass(frozen=True, slots=True)
class Explored:
    """What a reader can explore on a page.

    Attributes:
        levels: the cuboids that the page carries.
        first: the first counts as HTML, for readers without scripts.
        facts: what the script starts from.
        blocks: names and texts of the counts.
        scripts: the parts of the page that show them.
    """

    levels: Sequence[Levels]
    first: str
    facts: dict[str, Any]
    blocks: list[tuple[str, str]]
    scripts: tuple[str, ...]


def _chain(folder: Path, plan: Plan, listed: Sequence[int]) -> Explored:
    """Return the tree, to open depth by depth."""
    tree, numeric = plan.tree, is_numeric(plan.tree)
    carried = carry(folder, plan, listed, numeric=numeric)
    first, shape = first_counts(plan, carried), first_shape(plan, carried, numeric=numeric)
    depths = tree.chain[: carried.last + 1]
    return Explored(depths, first, shape, carried.blocks, CHAIN_SCRIPTS)


def _cuboids(folder: Path, plan: Plan, listed: Sequence[int]) -> Explored:
    """Return the combinations of levels, to choose from."""
    carried = carry_cuboids(folder, plan, dict(zip(plan.levels, listed, strict=True)))
    facts, blocks = carried.facts(), carried.blocks
    return Explored(list(carried.cells), carried.first_counts(), facts, blocks, CUBE_SCRIPTS)


EXPLORED = {"chain": _chain, "cuboids": _cuboids}
"""How counts are explored, by the key of the design."""

_DISTRIBUTION = '<section id="distribution">\n<h2>{}</h2>\n{}\n</section>'


def _overview(plan: Plan, facts: list[CuboidFacts]) -> str:
    """Return the four facts at the head of the page, and the promise's restriction if any."""
    say, budget = words_of(plan), plan.budget
    letters = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}
    promise = ", ".join(
        f"{letter} = {raised(say.numeral(_short(getattr(budget, name))))}"
        for name, letter in letters.items()
        if name in budget.__slots__
    )
    listed = sum(each.listed for each in facts)
    tables = [(say("release.head.tables"), f"{len(plan.tables)}")] if len(plan.tables) > 1 else []
    return markup.items(
        [
            (counted_units(plan), say.number(facts[0].total or 0)),
            (say("release.head.listed"), say.number(listed)),
            (say(f"release.head.levels_{plan.design.key}"), f"{len(facts)}"),
            *tables,
            (say("release.head.promise"), markup.attribute(promise)),
            *words.restricted(plan),
        ],
        "overview",
    )


def _same_page(made: str, given: str) -> bool:
    """Return whether two pages are the same, their blocks compared as what they hold."""
    ours, theirs = _pieces(made), _pieces(given)
    if [piece[::2] for piece in ours] != [piece[::2] for piece in theirs]:
        return False
    for (_, one, _), (_, other, _) in zip(ours, theirs, strict=True):
        if one == other:
            continue
        parts = parts_of(one)
        room = 4 * (1 + len(parts)) + sum(map(len, parts))
        if parts_of(other, room) != parts:
            return False
    return True


def _pieces(text: str) -> list[tuple[str, str, str]]:
    """Return a page cut at its blocks: the name of each, what it holds, and what follows it."""
    first, *others = text.split(BLOCK[0])
    pieces = [("", "", first)]
    for other in others:
        name, _, rest = other.partition(BLOCK[1])
        inner, _, tail = rest.partition(BLOCK[2])
        pieces.append((name, inner, tail))
    return pieces


def _part(name: str) -> str:
    return part("hedgerow.release.page", name)


def _short(value: Fraction) -> str:
    """Return a number exactly, or six digits rounded up where that would be long."""
    exact = f"{float(value):.6g}"
    if Fraction(exact) == value:
        return exact
    return str(value) if len(str(value)) <= MOST_LETTERS else format_rounded_up(value)
