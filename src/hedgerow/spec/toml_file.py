"""A TOML file as checked sections: unknown keys are refused, errors are one sentence."""

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from hedgerow.declared import With
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
from hedgerow.limits import MOST_BYTES_OF_A_FILE, MOST_VALUES_OF_A_FILE
from hedgerow.machine import read_small_file
from hedgerow.text import PLACES, Exact, Json, Texts, as_double, exact

Number = int | Decimal | str

LONGEST_TEXT, LONGEST_KEY, LONGEST_PATH = 200, 1_000, 1 << 14
DEEPEST = 32
WORD = 64
"""Limits of a file of settings: bytes and values; letters of a text (a name or a number), of a key
(the name of a cuboid) and of a path or query; parts of a key, and bits of a whole number."""

_LONG = {"source", "areas", "query", "database", "directory", "release", "master", "notes"}
_PART = r"""(?:(?<![\w-])[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
"""Bare parts begin at no letter within a word: a search takes a long word once, not letterwise."""
_LONG_KEY = re.compile(rf"{_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{DEEPEST}}}")
_TO_FILL_IN = re.compile(r"<[^>]* [^>]*>")
"""A placeholder has at least two words in <…>: a column may be called <i>."""

_PLAIN = {
    "number": "a number",
    "int_type": "a whole number",
    "string_type": "text in quotes",
    "bool_type": "true or false",
}
"""Errors of types in plain words; for a `Number` the first of several alternatives is reported."""

T = TypeVar("T")
F = TypeVar("F", bound="Section")
Keys = list[str | int]
"""Where a value stands in a file: keys, and places in lists."""


class Section(BaseModel):
    """A section of the file: unknown keys are refused, nothing is converted silently."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, arbitrary_types_allowed=True
    )

    def check_together(self) -> None:
        """Raise a SpecError for a key that is given without another that it goes with."""
        for key, declared in type(self).model_fields.items():
            for rule in declared.metadata:
                if isinstance(rule, With):
                    rule.check(key, self.__dict__, SpecError)

    @field_validator("*", mode="before")
    @classmethod
    def _without_nul(cls, given: object) -> object:
        """Refuse a zero character: paths and databases end there."""
        texts = given if isinstance(given, list) else [given]
        if any(isinstance(text, str) and "\0" in text for text in texts):
            raise PydanticCustomError("nul", "a text must not contain a zero character (\\u0000)")
        return given


def fitting(sentence: str, *names: str) -> WrapValidator:
    """Say in one sentence what a key may be, in place of what each alternative lacks.

    Args:
        sentence: of what it must be.
        names: that it may be, of which the nearest is suggested.
    """

    def checked(given: object, check: ValidatorFunctionWrapHandler) -> object:
        try:
            return check(given)
        except ValidationError:
            expected = {"expected": ", ".join(map(repr, names))}
            raise PydanticCustomError("fitting", sentence, expected) from None

    return WrapValidator(checked)


def called_by(key: str) -> BeforeValidator:
    """Let a name, or a list of them, stand for a section that has this key alone."""
    return BeforeValidator(lambda given: {key: given} if isinstance(given, str | list) else given)


def made_of(
    section: Section, keys: set[str], kinds: Mapping[Texts, Callable[..., T]], rule: str
) -> T:
    """Return what is made of those keys of a section that are given, or raise a SpecError.

    Args:
        section: of the file.
        keys: that tell the kind, all together.
        kinds: what is made of which of them, in the order of the section.
        rule: the sentence for others.
    """
    given = section.model_dump(include=keys, exclude_none=True)
    if tuple(given) not in kinds:
        raise SpecError(f"{rule} got {' and '.join(sorted(given)) or 'none'}")
    return kinds[tuple(given)](*given.values())


def as_float(given: Exact, name: str, error: type[HedgerowError]) -> float:
    """Return an exact number as a float, or raise ``error`` if 53 bits cannot hold its size."""
    return as_double(exact(given, name, error), name, error)


def within(where: str, make: Callable[..., T], *given: Any) -> T:
    """Call ``make``; the sentences of its errors begin with the section of the file."""
    try:
        return make(*given)
    except (TableError, NoiseError, BudgetError, PlanError, EstimateError, SpecError) as error:
        if str(error).startswith("["):
            raise
        raise error.within(f"{where} ") from error


def check_there(path: Path) -> None:
    """Raise a SpecError unless there is a file or directory at a path."""
    if not path.exists():
        raise SpecError(f"there is neither a directory nor a file {str(path)!r}")


def parse(path: Path, kind: type[F]) -> F:
    """Return the checked content of a file."""
    data = read_small_file(path, MOST_BYTES_OF_A_FILE, f"the file {str(path)!r}", SpecError)
    try:
        text = data.decode("utf-8-sig")  # Notepad writes a byte order mark
    except UnicodeDecodeError:
        raise SpecError(f"cannot read the file {str(path)!r}: it is not UTF-8 text") from None
    if _LONG_KEY.search(text):  # the parser's memory grows with the square of a key's parts
        raise SpecError(f"{str(path)!r} has a key of more than {DEEPEST} parts")
    try:
        given = tomllib.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else error
        raise SpecError(f"{str(path)!r} is not TOML: {reason}") from None
    if sum(1 for _ in _bounded(given, [])) > MOST_VALUES_OF_A_FILE:
        raise SpecError(
            f"{str(path)!r} has more than {MOST_VALUES_OF_A_FILE:,} "
            "values, too many for such a file"
        )
    left = to_fill_in(given)
    if left:
        raise SpecError(f"replace the placeholders in <…>: {', '.join(left)}")
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        raise SpecError(_first_error(error.errors(), kind)) from None


def toml(value: Any) -> str:
    """Return a text, number, list or table as TOML."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{toml(key)} = {toml(one)}' for key, one in value.items())} }}"
    if isinstance(value, Decimal):
        return format(value, "f")
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _bounded(given: object, path: Keys) -> Iterator[tuple[Keys, object]]:
    """Yield all values of a file, each with its path, or raise a SpecError if one is too large."""
    if len(path) > DEEPEST:
        raise SpecError(f"[{shorten(str(path[0]))}] is nested too deeply")
    yield path, given
    if isinstance(given, dict | list):
        inner = given.items() if isinstance(given, dict) else enumerate(given)
        for key, value in inner:
            if isinstance(key, str) and len(key) > LONGEST_KEY:
                raise SpecError(
                    f"{_place([*path, ''])[0]}a key has {len(key):,} letters, and at most "
                    f"{LONGEST_KEY:,} are allowed: {shorten(key, 40)!r}"
                )
            yield from _bounded(value, [*path, key])
        return
    size = 0
    most = 0
    unit = "letters"
    if isinstance(given, str):
        size = len(given)
        most = LONGEST_PATH if path[-1] in _LONG else LONGEST_TEXT
    elif isinstance(given, int):
        size = given.bit_length()
        most = WORD
        unit = "bits"
    elif isinstance(given, Decimal):
        size = len(given.as_tuple().digits)
        most = PLACES
        unit = "digits"
    if size > most:
        where, key = _place(path)
        raise SpecError(
            f"{where}{shorten(key)} has {size:,} {unit}, and at most {most:,} are allowed"
        )


def to_fill_in(given: Json) -> list[str]:
    """Return the keys that still hold placeholders of `hedgerow new`."""
    paths = (  # codes of records may look like placeholders
        path
        for path, text in _bounded(given, [])
        if isinstance(text, str) and _TO_FILL_IN.match(text) and "not_stated" not in path
    )
    keys = (
        "".join(_place(path[: 2 + (len(path) > 1 and isinstance(path[1], int))])) for path in paths
    )
    return list(dict.fromkeys(keys))


def _first_error(errors: list[ErrorDetails], kind: type[BaseModel]) -> str:
    """Return one sentence for the first error, unknown keys first, as they explain others."""
    error = min(errors, key=lambda e: e["type"] != "extra_forbidden")
    path: Keys = [
        part for part in error["loc"] if part not in {"int", "str", "is-instance[Decimal]"}
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
    got = f", got {written}" if short and "://" not in str(given) else ""
    names = re.findall("'([^']*)'", str(error.get("ctx", {}).get("expected", "")))
    plain = _PLAIN.get("number" if error["loc"][-1:] == ("int",) else error["type"])
    rule = f" must be {plain}" if plain else f": {error['msg'].lower()}"
    return f"{where}{key}{rule}{got}{did_you_mean(given, names) if got else ''}"


def _place(path: Keys) -> tuple[str, str]:
    """Return where a key stands, as ``[section] `` or ``[[section]] 1 list: entry 2: ``, and it."""
    if len(path) < 2:
        return "", str(path[0]) if path else "the file"
    where = f"[{path[0]}] "
    keys = path[1:]
    if isinstance(keys[0], int):
        where, keys = f"[[{path[0]}]] {keys[0] + 1} ", keys[1:]
    if len(keys) > 1 and isinstance(keys[1], int):
        where, entry = f"{where}{keys[0]}: ", f"entry {keys[1] + 1}"
        return (f"{where}{entry}: ", str(keys[2])) if len(keys) > 2 else (where, entry)
    return where, str(keys[0]) if keys else "the section"


def _nearest(path: Keys, section: type[BaseModel]) -> str:
    """Return a suggestion for an unknown key, the last of a path."""
    for part in path[:-1]:
        if part in section.model_fields:
            section = _section_in(section.model_fields[part].annotation) or section
    names = [field.alias or name for name, field in section.model_fields.items()]
    return did_you_mean(str(path[-1]), names, 0.5) or f"; there are {', '.join(names)}"


def _section_in(annotation: Any) -> type[BaseModel] | None:
    """Return the section that a field holds, or a list of it."""
    inner = get_args(annotation)
    if inner:
        return next(filter(None, map(_section_in, inner)), None)
    is_section = isinstance(annotation, type) and issubclass(annotation, BaseModel)
    return annotation if is_section else None
