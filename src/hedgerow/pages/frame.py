"""One HTML document that asks for nothing from any network, and forbids itself to.

Its content policy lets run the one script and the one style that are its own, by their hashes.
"""

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from string import Template
from typing import Any

from hedgerow.pages.catalogue import Catalogue
from hedgerow.pages.markup import attribute, data

STYLES = ("base.css",)
SCRIPTS = ("words.js", "numbers.js", "reliability.js")
"""Of every page, before its own."""

BLOCK = ('<script type="text/plain" id="', '">', "</script>")
"""What stands before the name of a block of text, between the two, and behind them."""

_KEY = re.compile(r"\{\{([\w.]+)\}\}")


@dataclass(frozen=True, slots=True)
class Document:
    """What a page is made of.

    Attributes:
        title: of the window; plain text.
        body: HTML.
        style: CSS, behind `STYLES`.
        script: JavaScript, behind `SCRIPTS`; all of it shares one scope, which nothing else sees.
        facts: JSON that the script starts from.
        blocks: names and texts that the script reads when it needs them; base64.
        made_by: the version of Hedgerow.
    """

    title: str
    body: str
    style: str
    script: str
    facts: dict[str, Any]
    blocks: Sequence[tuple[str, str]]
    made_by: str


def document(made: Document, say: Catalogue) -> str:
    """Return a page as HTML."""
    style = "".join(part("hedgerow.pages", name) for name in STYLES) + made.style
    scripts = "".join(part("hedgerow.pages", name) for name in SCRIPTS) + made.script
    script = f'"use strict";\n(() => {{\n{scripts}}})();\n'
    return Template(part("hedgerow.pages", "frame.html")).substitute(
        language=say.language,
        title=attribute(made.title),
        version=attribute(made.made_by),
        style=style,
        style_hash=_hash(style),
        script=script,
        script_hash=_hash(script),
        body=made.body,
        facts=data(made.facts),
        blocks="\n".join(
            f"{BLOCK[0]}{name}{BLOCK[1]}{text}{BLOCK[2]}" for name, text in made.blocks
        ),
    )


def part(package: str, name: str) -> str:
    """Return a file of a package of pages."""
    return files(package).joinpath(name).read_text(encoding="utf-8")


def spoken(template: str, say: Catalogue) -> str:
    """Return a template with the texts of the catalogue in place of ``{{their.keys}}``."""
    return _KEY.sub(lambda key: say(key[1]), template)


def _hash(text: str) -> str:
    """Return the hash by which the page's policy knows its own style and script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
