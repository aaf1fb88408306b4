"""A TOML file as checked sections: unknown keys are refused, errors are one sentence."""

import re
import tomllib
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from hedgerow.errors import (
    BudgetError,
    EstimateError,
    HedgerowError,
    NoiseError,
    PlanError,
    SpecError,
    TableError,
    did_you_mean,
    shorten,
)
from hedgerow.machine import read_small_file
from hedgerow.text import PLACES, Exact, exact

Number = int | Decimal | str

MOST_BYTES = 1 << 21
MOST_VALUES = 1 << 17
LONGEST_TEXT, LONGEST_KEY, LONGEST_PATH = 200, 1_000, 1 << 14
DEEPEST = 32
WORD = 64
"""What a file of settings has at most: bytes and values; letters of a text (a name or a number), of
a key (the name of a cuboid) and of a path or query; parts of a key, and bits of a whole number."""

_LONG = {"source", "areas", "query", "database", "directory", "release", "master"}
_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"{_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{DEEPEST}}}")
_TO_FILL_IN = re.compile(r"<[^>]* [^>]*>")
"""Words in <…>, at least two: a column may be called <i>."""

_PLAIN = {
    "number": "a number",
    "int_type": "a whole number",
    "string_type": "text in quotes",
    "bool_type": "true or false",
}
"""Errors of types in plain words; of a `Number` the first of several alternatives is told."""

T = TypeVar("T")
F = TypeVar("F", bound="Section")


class Section(BaseModel):
    """A section of the file: unknown keys are refused, nothing is converted silently."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, arbitrary_types_allowed=True
    )

    @field_validator("*", mode="before")
    @classmethod
    def _without_nul(cls, given: object) -> object:
        """Return the value: paths, and databases, end at NUL or refuse it."""
        texts = given if isinstance(given, list) else [given]
        if any(isinstance(text, str) and "\0" in text for text in texts):
            raise PydanticCustomError("nul", "a text must not contain a zero character (\\u0000)")
        return given


def as_float(given: Exact, what: str, error: type[HedgerowError]) -> float:
    """Return an exact number where 53 bits are enough.

    Args:
        given: as `exact` takes it.
        what: the name of the quantity, for the error's sentence.
        error: the kind of error to raise.

    Raises:
        HedgerowError: of the given kind: no number, beyond 1.8e308, or nearer to 0 than 4.9e-324.
    """
    number = exact(given, what, error)
    try:
        found = float(number)
    except OverflowError:
        raise error(f"{what} is too large for a number with 53 bits; give less") from None
    if number and not found:
        raise error(f"{what} is too near 0 for a number with 53 bits; give 0 or more than that")
    return found


def within(where: str, make: Callable[..., T], *given: Any) -> T:
    """Return what ``make`` gives; an error says in which section of the file it arose."""
    try:
        return make(*given)
    except (TableError, NoiseError, BudgetError, PlanError, EstimateError, SpecError) as error:
        if str(error).startswith("["):
            raise
        raise error.within(where) from error


def check_there(path: Path) -> None:
    """Refuse a path at which nothing is, where a directory would do as well as a file.

    Raises:
        SpecError: nothing is there.
    """
    if not path.exists():
        raise SpecError(f"there is neither a directory nor a file {str(path)!r}")


def parse(path: Path, kind: type[F]) -> F:
    """Return the file, checked.

    Raises:
        SpecError: it cannot be read, is not TOML, is larger than any such file, does not fit, or is
            still to be filled in.
    """
    data = read_small_file(path, MOST_BYTES, f"the file {str(path)!r}", SpecError)
    try:
        text = data.decode("utf-8-sig")  # Notepad's mark is no part of TOML
    except UnicodeDecodeError:
        raise SpecError(f"cannot read the file {str(path)!r}: it is not UTF-8 text") from None
    if _LONG_KEY.search(text):  # the parser's memory grows with the square of a key's parts
        raise SpecError(f"{str(path)!r} has a key of more than {DEEPEST} parts")
    try:
        given = tomllib.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else error
        raise SpecError(f"{str(path)!r} is not TOML: {reason}") from None
    if sum(1 for _ in _bounded(given, [])) > MOST_VALUES:
        raise SpecError(f"{str(path)!r} has more than {MOST_VALUES:,} values, as no such file has")
    left = _to_fill_in(given)
    if left:
        raise SpecError(f"fill in what stands in <…>: {', '.join(left)}")
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        raise SpecError(_first_error(error.errors(), kind)) from None


def _bounded(given: object, path: list[str]) -> Iterator[object]:
    """Return all values of a file, none of which is larger than it can have to be.

    Raises:
        SpecError: one is.
    """
    if len(path) > DEEPEST:
        raise SpecError(f"[{shorten(path[0])}] is nested too deeply")
    yield given
    if isinstance(given, dict | list):
        inner = given.items() if isinstance(given, dict) else enumerate(given)
        for key, value in inner:
            if isinstance(key, str) and len(key) > LONGEST_KEY:
                raise SpecError(
                    f"{_place([*path, ''])[0]}a key has {len(key):,} letters, and none has more "
                    f"than {LONGEST_KEY:,}: {shorten(key, 40)!r}"
                )
            yield from _bounded(value, [*path, str(key)])
        return
    where, key = _place(path)
    most = LONGEST_PATH if path[-1] in _LONG else LONGEST_TEXT
    if isinstance(given, str) and len(given) > most:
        raise SpecError(
            f"{where}{shorten(key)} has {len(given):,} letters, and at most {most:,} are allowed"
        )
    if isinstance(given, int) and given.bit_length() > WORD:
        raise SpecError(f"{where}{shorten(key)} is a whole number of more than {WORD} bits")
    if isinstance(given, Decimal) and len(given.as_tuple().digits) > PLACES:
        raise SpecError(f"{where}{shorten(key)} has more than {PLACES:,} digits; round it")


def _to_fill_in(given: dict[str, Any]) -> list[str]:
    """Return the keys at which something still stands for what `hedgerow new` cannot know."""
    left = ["".join(_place(path)) for path, text in _texts(given, []) if _TO_FILL_IN.match(text)]
    return list(dict.fromkeys(left))


def _texts(given: object, path: list[str]) -> Iterator[tuple[list[str], str]]:
    """Return all texts of a file but codes of records, each with where it stands."""
    if isinstance(given, str):
        yield path, given
    elif isinstance(given, dict | list):
        inner = given.items() if isinstance(given, dict) else enumerate(given)
        for key, value in inner:
            if key != "not_stated":
                yield from _texts(value, [*path, str(key)])


def _first_error(errors: list[ErrorDetails], kind: type[BaseModel]) -> str:
    """One sentence for the first thing that is wrong, unknown keys first: they explain others."""
    error = min(errors, key=lambda e: e["type"] != "extra_forbidden")
    path = [
        str(part) for part in error["loc"] if part not in {"int", "str", "is-instance[Decimal]"}
    ]
    where, key = _place(path)
    if error["type"] == "extra_forbidden":
        return f"{where}unknown key {shorten(key, 80)!r}{_nearest(path, kind)}"
    if error["type"] == "missing":
        return f"{where}{key} is missing" if where else f"[{key}] is missing"
    given = error["input"]
    if isinstance(given, Decimal) and not given.is_finite():
        return f"{where}{key} must be a finite number, got {str(given).lower()}"
    short = isinstance(given, str | int | Decimal) and len(str(given)) < 80
    written = str(given) if isinstance(given, Decimal) else repr(given)
    shown = f", got {written}" if short and "://" not in str(given) else ""
    known = re.findall("'([^']*)'", str(error.get("ctx", {}).get("expected", "")))
    plain = _PLAIN.get("number" if error["loc"][-1:] == ("int",) else error["type"])
    rule = f" must be {plain}" if plain else f": {error['msg'].lower()}"
    return f"{where}{key}{rule}{shown}{did_you_mean(given, known) if shown else ''}"


def _place(path: list[str]) -> tuple[str, str]:
    """``[section] `` and the key within it."""
    if len(path) < 2:
        return "", path[0] if path else "the file"
    number = f" {int(path[1]) + 1}" if path[1].isdigit() else ""
    name = f"[[{path[0]}]]{number}" if number else f"[{path[0]}]"
    keys = path[2:] if number else path[1:]
    return f"{name} ", keys[0] if keys else "the section"


def _nearest(path: list[str], section: type[BaseModel]) -> str:
    for part in path[:-1]:
        field = section.model_fields.get(part)
        if field is None:
            continue
        inner = getattr(field.annotation, "__args__", (field.annotation,))[0]
        section = inner if isinstance(inner, type) and issubclass(inner, BaseModel) else section
    known = list(section.model_fields)
    return did_you_mean(path[-1], known, 0.5) or f"; there are {', '.join(known)}"
