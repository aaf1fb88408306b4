"""``[[axis]]``: one axis of a release file, and the public lists that it is made from."""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, NamedTuple, cast

from pydantic import Field

from hedgerow.declared import With
from hedgerow.distribution.branching import numeric_axis
from hedgerow.distribution.ranges import BINS, OutOfBounds, Ranges
from hedgerow.errors import SpecError, TableError
from hedgerow.noise.mechanisms import Mechanism
from hedgerow.spec.toml_file import Section
from hedgerow.tables.axis import Axis
from hedgerow.tables.axis_names import check_names
from hedgerow.tables.codes.rule import Rule
from hedgerow.tables.codes.rules import Division, Parents, Prefix
from hedgerow.tables.lists.areas import name_columns
from hedgerow.tables.read import Query, read_areas
from hedgerow.text import exact

AREAS_OF_TABLE = "table"

Bound = int | Annotated[Decimal, Field(allow_inf_nan=True)] | str
"""A number; infinity and NaN are refused later, with their own message."""


class Kind(NamedTuple):
    """A kind of axes, by the keys of its section.

    Attributes:
        own: keys that such an axis alone has; any of them makes it one.
        others: keys that other axes have too.
        has_no: the sentence about a key that it does not have.
        needed: keys that it needs.
        needs: the end of the sentence about one that is missing.
    """

    own: frozenset[str]
    others: str
    has_no: str
    needed: tuple[str, ...] = ()
    needs: str = ""

    @property
    def keys(self) -> frozenset[str]:
        """All keys that it may have."""
        return self.own | {"name", "attribute", *self.others.split()}


NUMERIC = Kind(
    frozenset({"low", "high", "bins", "edges", "out_of_bounds", "branching"}),
    "columns",
    "a numeric axis has bins, and no {}",
)
PRODUCT = Kind(
    frozenset({"product", "lists"}),
    "",
    "an axis with product and lists has no {}; its levels are those of product, its columns those "
    "of lists",
    ("product", "lists"),
    ": an axis has product and lists, or neither",
)
LISTED = Kind(
    frozenset(),
    "levels columns areas prefix parent divide code names not_stated shapes shapes_key",
    "",
    ("levels", "areas"),
)
RULES = ("prefix", "parent", "divide")


class AxisSection(Section):
    """``[[axis]]``: one hierarchy and its public list of areas, or a numeric column in bins."""

    name: str
    levels: list[str] = Field(default_factory=list)
    columns: list[str] | None = None
    areas: str = Field(default="", min_length=1)
    prefix: list[int] | None = None
    parent: str | None = Field(None, min_length=1)
    divide: list[int] | None = None
    code: Annotated[str | list[str] | None, With(RULES)] = None
    names: str | dict[str, str] | None = None
    not_stated: str | None = None
    shapes: str | None = Field(None, min_length=1)
    shapes_key: Annotated[
        str | None, With(("shapes",), advice=", the file that has this column")
    ] = Field(None, min_length=1)
    attribute: bool = False
    product: list[str] | None = None
    lists: list[Annotated[str, Field(min_length=1)]] | None = None
    low: Bound | None = None
    high: Bound | None = None
    bins: Annotated[int | None, BINS] = None
    edges: list[Bound] | None = None
    out_of_bounds: OutOfBounds | None = None
    branching: list[int] | None = None

    @property
    def kind(self) -> Kind:
        """Which kind of axis it is, by its keys."""
        of = (kind for kind in (PRODUCT, NUMERIC) if kind.own & self.model_fields_set)
        return next(of, LISTED)

    def check(self) -> None:
        """Raise a SpecError for keys that do not go together."""
        self.check_together()
        given = self.model_fields_set
        kind = self.kind
        odd = [key for key in type(self).model_fields if key in given - kind.keys]
        if odd:
            raise SpecError(kind.has_no.format(odd[0]))
        missing = [key for key in kind.needed if key not in given]
        if missing:
            raise SpecError(f"{missing[0]} is missing{kind.needs}")

    @property
    def rule(self) -> Rule | None:
        """How codes of the list tell their levels, where it has no column for each."""
        keys = [key for key in RULES if getattr(self, key) is not None]
        if len(keys) > 1:
            raise SpecError(f"give one of prefix, parent and divide, got {' and '.join(keys)}")
        if self.divide is not None:
            return Division(self.divide, self.code)
        if isinstance(self.code, list):
            raise SpecError('code is one column, such as "GEOID"; only divide takes several')
        if self.prefix is not None:
            return Prefix(self.prefix, self.code)
        return None if self.parent is None else Parents(self.parent, self.code)

    @property
    def column(self) -> str:
        """The one column of the table that holds a numeric axis."""
        columns = [self.name] if self.columns is None else self.columns
        if len(columns) != 1:
            raise SpecError(f"columns: a numeric axis has one column, got {len(columns)}")
        return columns[0]

    @property
    def ranges(self) -> Ranges:
        """The bins of a numeric axis."""
        self.check()
        outside = self.out_of_bounds or "clamp"
        bounds = {given is not None for given in (self.low, self.high, self.bins)}
        if bounds != {self.edges is None}:
            raise SpecError("a numeric axis needs low, high and bins, or edges, not both")
        if self.edges is not None:
            edges = [float(_number(edge, f"edge {i}")) for i, edge in enumerate(self.edges)]
            return Ranges(self.name, edges, outside)
        low = _number(self.low, "low")
        high = _number(self.high, "high")
        bins = cast("int", self.bins)
        return Ranges.equal_width(self.name, low, high, bins, out_of_bounds=outside)


def public_axis(
    section: AxisSection,
    folder: Path,
    mechanism: type[Mechanism] | None = None,
    *,
    flat: bool = False,
) -> Axis:
    """Return the axis of public files or bounds; without a mechanism it has no bins.

    Without branching, bins have one level if ``flat``, else the levels of least error.
    """
    if section.kind is PRODUCT:
        section.check()
        lists = [folder / each for each in section.lists or ()]
        order = section.product or ()
        return Axis.from_product(section.name, lists, order, attribute=section.attribute)
    if section.kind is NUMERIC and mechanism is not None:
        ranges = section.ranges
        branching = section.branching
        _ = section.column
        if branching is None and flat:
            branching = [ranges.bins]
        return numeric_axis(ranges, branching, mechanism=mechanism, attribute=section.attribute)
    return listed_axis(section, folder / section.areas)


def with_shapes(axis: Axis, section: AxisSection, folder: Path) -> Axis:
    """Return an axis with the shapes of its section, if any; their path is relative to a folder."""
    if section.shapes is None:
        return axis
    return axis.with_shapes(folder / section.shapes, section.shapes_key)


def listed_axis(axis: AxisSection, source: Path | Query, *, of_table: bool = False) -> Axis:
    """Return the axis of a section from its list of areas, or from the table's own codes."""
    if axis.kind is NUMERIC:
        raise SpecError(
            "low, high, bins and edges are for tables of numbers, and noisy counts are not"
        )
    axis.check()
    rule = axis.rule
    levels = tuple(axis.levels)
    check_names(axis.name, levels, levels)
    if of_table:
        if rule is not None or axis.names is not None:
            raise SpecError(
                'areas = "table" takes one column a level from the table; prefix, parent, divide '
                "and names need a public list"
            )
        columns = axis.columns or axis.levels
        check_names(axis.name, levels, tuple(columns))
        areas = read_areas(source, columns, repeated=True)
        areas = areas.rename(dict(zip(columns, levels, strict=True)))
    else:
        subject = "the list of areas"
        named = name_columns(axis.names, levels, subject).values()

        def chosen(header: Sequence[str]) -> list[str]:
            codes = levels if rule is None else rule.list_columns(header, levels, subject)
            return list(dict.fromkeys([*codes, *named]))

        areas = read_areas(source, chosen, numbers=isinstance(rule, Division))
    return Axis.from_frame(
        axis.name,
        areas,
        levels,
        columns=axis.columns,
        rule=rule,
        names=axis.names,
        not_stated=axis.not_stated,
        from_table=of_table,
        attribute=axis.attribute,
    )


def _number(given: Any, name: str) -> Fraction:
    """Return the exact number, or raise if it is too large for a double."""
    number = exact(given, name, TableError)
    try:
        float(number)
    except OverflowError:
        raise TableError(f"{name} is too large for a number with 53 bits") from None
    return number
