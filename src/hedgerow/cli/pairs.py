"""Options that are given as NAME=VALUE, and may be repeated."""

from collections.abc import Sequence

from hedgerow.errors import SpecError


def pairs(words: Sequence[str], option: str, example: str) -> dict[str, str]:
    """Name → value, in the order in which they were given.

    Args:
        words: what was given for the option.
        option: its name, for the error's sentence.
        example: a word that it takes.

    Raises:
        SpecError: a word without its name or value, or a name that is given twice.
    """
    found: dict[str, str] = {}
    for word in words:
        name, _, value = word.partition("=")
        if not (name and value):
            raise SpecError(f"{option} takes words such as {example}, got {word!r}")
        if name in found:
            raise SpecError(f"{option} gives {name!r} twice; give it once")
        found[name] = value
    return found
