"""HTML from text that anyone may have written: everything passes through `shown` or `attribute`."""

import json
from collections.abc import Sequence
from html import escape
from typing import Any

from hedgerow.text import visible


def shown(words: str) -> str:
    """Text as HTML, isolated so that its direction does not turn what stands around it."""
    return f"<bdi>{attribute(words)}</bdi>"


def attribute(words: str) -> str:
    """Text as HTML or as the value of an attribute in quotes."""
    return escape(visible(words), quote=True)


def data(value: Any) -> str:
    """JSON that may stand within a script element."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def table(
    caption: str, headings: Sequence[str], rows: Sequence[Sequence[str]], *, words: int = 1
) -> str:
    """A table with a caption, whose first column heads its rows; it scrolls where it is too wide.

    Args:
        caption: HTML.
        headings: of the columns, HTML.
        rows: of cells, HTML.
        words: how many of the first columns hold words, which stand to the left.
    """
    head = "".join(
        f'<th scope="col"{"" if i < words else _NUMBER}>{cell}</th>'
        for i, cell in enumerate(headings)
    )
    body = "\n".join(f"<tr>{_row(row, words)}</tr>" for row in rows)
    return (
        '<div class="scroll" tabindex="0" role="group" aria-label="Table, may scroll sideways">\n'
        f"<table><caption><span>{caption}</span></caption>\n<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def items(pairs: Sequence[tuple[str, str]], kind: str) -> str:
    """A list of terms and what is said of them, both HTML."""
    inner = "\n".join(f"<div><dt>{term}</dt><dd>{said}</dd></div>" for term, said in pairs)
    return f'<dl class="{kind}">\n{inner}\n</dl>'


def joined(words: Sequence[str]) -> str:
    """``a, b and c``."""
    return " and ".join(part for part in (", ".join(words[:-1]), *words[-1:]) if part)


_NUMBER = ' class="n"'


def _row(row: Sequence[str], words: int) -> str:
    first, *others = row
    cells = (
        f"<td{'' if i < words else _NUMBER}>{cell}</td>" for i, cell in enumerate(others, start=1)
    )
    return f'<th scope="row">{first}</th>{"".join(cells)}'
