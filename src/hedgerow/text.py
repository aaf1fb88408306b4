"""Text that anyone may have written, and what of it can be seen.

A control character moves the cursor of a terminal or ends a line; others turn the direction of what
follows, or show nothing at all. So a *name* must hold none of them, wherever it comes from; a
*code* of a list or table may hold anything, and is shown with escapes in their place, which keep
codes apart that would look alike.
"""

import re

from hedgerow.errors import HedgerowError

UNSEEN = (
    ("\0", "\x1f"), ("\x7f", "\x9f"), ("\xad", "\xad"), ("\u061c", "\u061c"), ("\u180e", "\u180e"),
    ("\u200b", "\u200f"), ("\u2028", "\u202e"), ("\u2060", "\u206f"), ("\ud800", "\udfff"),
    ("\ufeff", "\ufeff"), ("\ufff9", "\ufffb"), ("\U00013430", "\U0001343f"),
    ("\U0001bca0", "\U0001bca3"), ("\U0001d173", "\U0001d17a"), ("\U000e0000", "\U000e007f"),
)  # fmt: skip
"""First and last of each range: controls, surrogates, separators of lines and paragraphs, and
formats that show nothing (Unicode's Cc, Cs, Zl, Zp and Cf, but for the few signs of Cf that are
seen)."""

_UNSEEN = re.compile(f"[{''.join(f'{first}-{last}' for first, last in UNSEEN)}]")
_UNSEEN_IN_LINES = re.compile(_UNSEEN.pattern.replace("\0-\x1f", "\0-\x09\x0b-\x1f"))
LONGEST_LINE = 1500


def visible(text: str, *, lines: bool = False) -> str:
    r"""Text with escapes such as ``\x1b`` in the place of what cannot be seen.

    Args:
        text: any.
        lines: whether it may have several lines.
    """
    unseen = _UNSEEN_IN_LINES if lines else _UNSEEN
    return unseen.sub(lambda found: repr(found[0])[1:-1], text)


def one_line(text: str) -> str:
    """Text as one visible line of at most `LONGEST_LINE` characters."""
    shown = visible(text[: LONGEST_LINE + 1])
    return shown if len(shown) <= LONGEST_LINE else f"{shown[:LONGEST_LINE]}…"


def is_visible(text: str) -> bool:
    """Whether nothing in a text is unseen."""
    return _UNSEEN.search(text) is None


def check_name(name: object, what: str, longest: int, error: type[HedgerowError]) -> None:
    """Refuse what cannot be the name of anything.

    Args:
        name: of something.
        what: that is, for the error's sentence.
        longest: how many bytes it may have.
        error: the kind of error to raise.

    Raises:
        HedgerowError: of the given kind: no text, empty, too long, or with something unseen in it.
    """
    if not isinstance(name, str) or not name:
        raise error(f"{what} must be a name, got {str(name)[:100]!r}")
    if not is_visible(name):
        raise error(
            f"{what} must have no control characters and nothing else that is not seen, got "
            f"{name[:100]!r}; rename it"
        )
    if len(name.encode()) > longest:
        raise error(
            f"{what} has at most {longest} bytes, got {len(name):,} letters ({name[:40]!r}…)"
        )
