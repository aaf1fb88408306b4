"""``report.html``: one page that says what a release is, for those who did not make it.

It is made from the public files of a release directory and its plan alone, and the same directory
gives the same page. It asks for nothing from any network, and a policy within it forbids that.
"""

import base64
import hashlib
from fractions import Fraction
from importlib.metadata import version
from importlib.resources import files as package_files
from pathlib import Path
from string import Template

from hedgerow.errors import ReleaseError
from hedgerow.estimate.estimator import Estimator
from hedgerow.plan.plan import Plan
from hedgerow.release.page import explore, levels, markup, words
from hedgerow.release.page.blocks import parts_of
from hedgerow.release.page.carried import carry
from hedgerow.release.page.facts import DepthFacts, depth_facts
from hedgerow.release.page.numeric import distribution, is_numeric
from hedgerow.release.page.promise import Priced, curves

REPORT = "report.html"
SCRIPTS = ("blocks.js", "nodes.js", "words.js", "pictures.js", "explore.js")


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

    Args:
        folder: of the release.
        plan: that it states.
        estimator: that it states.
        made_by: the version of Hedgerow that it states.

    Raises:
        ReleaseError: it is another page.
    """
    given = (folder / REPORT).read_text(encoding="utf-8")
    if _inflated(given) != _inflated(page(folder, plan, estimator, made_by)):
        raise ReleaseError(f"{REPORT} is not what the files of the release make")


def page(folder: Path, plan: Plan, estimator: Estimator, made_by: str) -> str:
    """The page of a release as HTML.

    Args:
        folder: of the release; reads ``counts/`` and, of numeric releases, ``measurements/``.
        plan: of the release.
        estimator: that made its counts.
        made_by: the version of Hedgerow that did.

    Raises:
        ReleaseError: the counts do not add up, or are no counts.
    """
    facts, numeric = depth_facts(folder, plan), is_numeric(plan.tree)
    rows = [depth.listed for depth in facts]
    carried = carry(folder, plan, rows, numeric=numeric)
    style, script = _part("page.css"), _script()
    total, priced = facts[0].total or 0, Priced.of(plan.guarantee)
    title = words.title(plan)
    shape = distribution(folder, plan) if numeric else None
    return Template(_part("page.html")).substitute(
        title=markup.attribute(title),
        heading=markup.shown(title),
        version=markup.attribute(made_by),
        style=style,
        style_hash=_hash(style),
        script=script,
        script_hash=_hash(script),
        overview=_overview(plan, facts),
        released=words.released(plan, total),
        promised=words.promised(plan, estimator, priced),
        explore=explore.first_counts(plan.tree, carried),
        carried=levels.carried_words(carried.last, len(facts)),
        distribution="" if shape is None else _DISTRIBUTION.format(shape),
        levels=levels.level_table(plan, facts),
        sizes=levels.size_table(plan, facts),
        contradicted=levels.contradicted_words(plan, facts),
        curves=curves(plan, priced),
        checks=levels.checks(plan, facts, carried.last),
        cite=words.cited(plan, total, made_by),
        facts=markup.data(explore.shape(plan.tree, carried, numeric=numeric)),
        blocks="\n".join(_block(name, text) for name, text in carried.blocks),
    )


_DISTRIBUTION = '<section id="distribution">\n<h2>The distribution</h2>\n{}\n</section>'
_BLOCK = ('<script type="text/plain" id="', '">', "</script>")


def _block(name: str, text: str) -> str:
    return f"{_BLOCK[0]}{name}{_BLOCK[1]}{text}{_BLOCK[2]}"


def _overview(plan: Plan, facts: list[DepthFacts]) -> str:
    """The four facts at the head of the page, and where the promise is restricted, to what."""
    budget = plan.budget
    letters = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}
    promise = ", ".join(
        f"{letter} = {_short(getattr(budget, name))}"
        for name, letter in letters.items()
        if name in budget.__slots__
    )
    listed = sum(depth.listed for depth in facts)
    return markup.items(
        [
            ("Records", f"{facts[0].total or 0:,}"),
            ("Counts listed", f"{listed:,}"),
            ("Levels", f"{len(facts)}"),
            ("Promise", markup.attribute(promise)),
            *words.restricted(plan),
        ],
        "overview",
    )


def _inflated(text: str) -> list[str]:
    """The page, its blocks as what they hold."""
    first, *others = text.split(_BLOCK[0])
    found = [first]
    for other in others:
        name, _, rest = other.partition(_BLOCK[1])
        inner, _, tail = rest.partition(_BLOCK[2])
        found += [name, *(part.hex() for part in parts_of(inner)), tail]
    return found


def _script() -> str:
    """The page's script: its parts share one scope, which nothing else sees."""
    parts = (_part(name) for name in SCRIPTS)
    return f'"use strict";\n(() => {{\n{"".join(parts)}}})();\n'


def _part(name: str) -> str:
    return package_files("hedgerow.release.page").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """The hash by which the page's policy knows its own style and script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _short(value: Fraction) -> str:
    exact = f"{float(value):.6g}"
    return exact if Fraction(exact) == value else str(value)
