"""``[[axis]]``: one axis of a release file, and the public lists that it is made from."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Literal, cast

from pydantic import Field

from hedgerow.distribution.bins import coded_axis
from hedgerow.distribution.plan import ForDistribution
from hedgerow.distribution.ranges import Ranges
from hedgerow.errors import SpecError, TableError
from hedgerow.noise.mechanisms import Mechanism
from hedgerow.spec.toml_file import Section
from hedgerow.tables.axis import Axis
from hedgerow.tables.axis_names import check_names
from hedgerow.tables.codes.rule import Rule
from hedgerow.tables.codes.rules import Division, Parents, Prefix
from hedgerow.tables.lists.areas import name_columns
from hedgerow.tables.read import Query, read_areas
from hedgerow.text import TextByName, exact

AREAS_OF_TABLE = "table"

Bound = int | Annotated[Decimal, Field(allow_inf_nan=True)] | str
"""A number; infinity and NaN are refused later, with their own message."""


class AxisSection(Section):
    """``[[axis]]``: one hierarchy and its public list of areas, or a numeric column in bins."""

    name: str
    levels: list[str] = Field(default_factory=list)
    columns: list[str] | None = None
    areas: str = Field(default="", min_length=1)
    prefix: list[int] | None = None
    parent: str | None = Field(None, min_length=1)
    divide: list[int] | None = None
    code: str | list[str] | None = None
    names: str | TextByName | None = None
    not_stated: str | None = None
    shapes: str | None = Field(None, min_length=1)
    shapes_key: str | None = Field(None, min_length=1)
    attribute: bool = False
    product: list[str] | None = None
    lists: list[Annotated[str, Field(min_length=1)]] | None = None
    low: Bound | None = None
    high: Bound | None = None
    bins: int | None = None
    edges: list[Bound] | None = None
    out_of_bounds: Literal["clamp", "refuse"] | None = None

    @property
    def is_product(self) -> bool:
        """Whether it is made of several columns."""
        return self.product is not None or self.lists is not None

    @property
    def is_numeric(self) -> bool:
        """Whether it is a numeric column, not a hierarchy."""
        given = (self.low, self.high, self.bins, self.edges, self.out_of_bounds)
        return any(value is not None for value in given)

    @property
    def rule(self) -> Rule | None:
        """How codes of the list tell their levels, where it has no column for each."""
        keys = [key for key in ("prefix", "parent", "divide") if getattr(self, key) is not None]
        if len(keys) > 1:
            raise SpecError(f"give one of prefix, parent and divide, got {' and '.join(keys)}")
        if self.divide is not None:
            return Division(self.divide, self.code)
        if keys and self.code is not None and not isinstance(self.code, str):
            raise SpecError('code is one column, such as "GEOID"; only divide takes several')
        if self.prefix is not None:
            return Prefix(self.prefix, cast("str | None", self.code))
        if self.parent is not None:
            return Parents(self.parent, cast("str | None", self.code))
        if self.code is not None:
            raise SpecError("code goes with prefix, parent or divide")
        return None

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
        if self.levels or self.areas or self.not_stated is not None:
            raise SpecError("a numeric axis has bins, and no levels, areas or not_stated")
        if self.is_product:
            raise SpecError("a numeric axis has bins, and no product or lists")
        if self.rule is not None or self.names is not None:
            raise SpecError("a numeric axis has bins, and no prefix, parent, divide or names")
        if self.shapes is not None or self.shapes_key is not None:
            raise SpecError("a numeric axis has bins, and no shapes")
        outside, width = self.out_of_bounds or "clamp", (self.low, self.high, self.bins)
        if self.edges is not None:
            if width != (None, None, None):
                raise SpecError("give low, high and bins, or edges, not both")
            edges = [float(_number(edge, f"edge {i}")) for i, edge in enumerate(self.edges)]
            return Ranges(self.name, edges, outside)
        if self.low is None or self.high is None or self.bins is None:
            raise SpecError("a numeric axis needs low, high and bins, or edges")
        low, high = _number(self.low, "low"), _number(self.high, "high")
        return Ranges.equal_width(self.name, low, high, self.bins, out_of_bounds=outside)


def numeric_axis(section: AxisSection, mechanism: type[Mechanism]) -> Axis:
    """Return the axis of a numeric column: the best tree over its bins for cumulative counts."""
    ranges, _ = section.ranges, section.column
    axis = coded_axis(ranges, ForDistribution().design(ranges.bins, mechanism).branching)
    return replace(axis, attribute=section.attribute)


def product_axis(axis: AxisSection, folder: Path) -> Axis:
    """Return the axis of a section from its lists; their paths are relative to a folder."""
    others = (
        *("levels", "columns", "areas", "not_stated"),
        *("prefix", "parent", "divide", "code", "names", "shapes", "shapes_key"),
    )
    given = [key for key in others if key in axis.model_fields_set]
    if given or axis.is_numeric:
        raise SpecError(
            f"an axis with product and lists has no {given[0] if given else 'bins'}; its levels "
            f"are those of product, its columns those of lists"
        )
    if axis.product is None or axis.lists is None:
        missing = "lists" if axis.lists is None else "product"
        raise SpecError(f"{missing} is missing: an axis has product and lists, or neither")
    lists = [folder / each for each in axis.lists]
    return Axis.from_product(axis.name, lists, axis.product, attribute=axis.attribute)


def public_axis(
    section: AxisSection, folder: Path, mechanism: type[Mechanism] | None = None
) -> Axis:
    """Return the axis of public files or bounds; without a mechanism it has no bins."""
    if section.is_product:
        return product_axis(section, folder)
    if section.is_numeric and mechanism is not None:
        return numeric_axis(section, mechanism)
    return listed_axis(section, folder / section.areas)


def with_shapes(axis: Axis, section: AxisSection, folder: Path) -> Axis:
    """Return an axis with the shapes of its section, if any; their path is relative to a folder."""
    if section.shapes is None:
        if section.shapes_key is not None:
            raise SpecError("shapes_key goes with shapes, the file that has this column")
        return axis
    return axis.with_shapes(folder / section.shapes, section.shapes_key)


def listed_axis(axis: AxisSection, source: Path | Query, *, of_table: bool = False) -> Axis:
    """Return the axis of a section from its list of areas, or from the table's own codes."""
    if axis.is_numeric:
        raise SpecError(
            "low, high, bins and edges are for tables of numbers, and noisy counts are not"
        )
    for key in ("levels", "areas"):
        if key not in axis.model_fields_set:
            raise SpecError(f"{key} is missing")
    rule, levels = axis.rule, tuple(axis.levels)
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


def _number(given: Bound, name: str) -> Fraction:
    """Return the exact number, or raise if it is too large for a double."""
    number = exact(given, name, TableError)
    try:
        float(number)
    except OverflowError:
        raise TableError(f"{name} is too large for a number with 53 bits") from None
    return number
