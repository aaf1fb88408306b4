"""What a notebook shows: HTML that needs no script, no style sheet and no network."""

import base64
import html
from collections.abc import Container, Sequence

_TITLE = "margin-bottom:0;overflow-wrap:anywhere"
_TABLE = "border-collapse:collapse;font-variant-numeric:tabular-nums;margin:0.6em 0"
_PICTURE = "width:100%;min-width:560px;max-width:800px;height:auto"
_WIDE, _LINE = "overflow-x:auto", "white-space:nowrap"
_BOX = "padding:2px 12px 2px 0;vertical-align:bottom;border-bottom:1px solid "
_HEAD, _CELL = f"{_BOX}currentColor;font-weight:700", f"{_BOX}rgba(127,127,127,0.3);{_LINE}"


def block(*parts: str) -> str:
    """Return parts of HTML as one block; empty ones are left out."""
    return f"<div>{''.join(parts)}</div>"


def heading(title: str, below: str = "") -> str:
    """Return a title, with a line below it."""
    small = f"<br><small>{html.escape(below)}</small>" if below else ""
    return f'<p style="{_TITLE}"><strong>{html.escape(title)}</strong>{small}</p>'


def paragraph(text: str) -> str:
    """Return a text as paragraphs, which blank lines part."""
    parts = (html.escape(part) for part in text.split("\n\n") if part)
    return "".join(f"<p>{part}</p>" for part in parts)


def text_table(text: str) -> str:
    """Return a table that is text already."""
    return f'<pre style="{_WIDE}">{html.escape(text)}</pre>' if text else ""


def html_table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], left: Container[int] = ()
) -> str:
    """Return a table; columns of ``left`` are to the left, all others to the right."""
    sides = ["left" if i in left else "right" for i in range(len(headings))]
    head = "".join(
        f'<th style="text-align:{side};{_HEAD}">{html.escape(word)}</th>'
        for word, side in zip(headings, sides, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="text-align:{side};{_CELL}">{html.escape(word)}</td>'
            for word, side in zip(row, sides, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    table = f'<table class="hedgerow" style="{_TABLE}"><thead><tr>{head}</tr></thead>'
    return f'<div style="{_WIDE}">{table}<tbody>{body}</tbody></table></div>'


def html_picture(svg: bytes | None, described: str) -> str:
    """Return a picture with what it shows in words; nothing where there is none."""
    if svg is None:
        return ""
    data = base64.b64encode(svg).decode()
    return (
        f'<div style="{_WIDE}"><img alt="{html.escape(described)}" style="{_PICTURE}" '
        f'src="data:image/svg+xml;base64,{data}"></div>'
    )
