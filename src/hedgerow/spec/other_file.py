"""Files that are no release files: the uses of `account`, the noisy counts of `estimate`."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

import pyarrow as pa
from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from hedgerow.declared import Whole
from hedgerow.errors import BudgetError, TableError
from hedgerow.noise.mechanisms import MECHANISMS
from hedgerow.privacy.budget import LARGEST, Epsilon, EpsilonDelta
from hedgerow.privacy.profile import Profile, compose
from hedgerow.privacy.use import Guarantee, Use
from hedgerow.release.reestimate.external import Measurements
from hedgerow.spec.axis_section import (
    AREAS_OF_TABLE,
    LISTED,
    AxisSection,
    public_axis,
    with_shapes,
)
from hedgerow.spec.release_file import TreeSection
from hedgerow.spec.toml_file import Number, Section, check_there, made_of, parse, within
from hedgerow.tables.axis import Axis
from hedgerow.tables.sources.database import translate_duckdb_errors
from hedgerow.tables.sources.source import check_fits, load, open_table
from hedgerow.tables.tree import Tree
from hedgerow.text import Texts

TIMES = Whole("times", 1, 10**9, BudgetError, ends="[]")

if TYPE_CHECKING:
    UseName = str
else:
    UseName = Literal[(*MECHANISMS, "guarantee")]
"""A registered mechanism by its name, or a guarantee."""


class OtherFile(Section):
    """A file of another kind, which a release file is not."""

    expected: ClassVar[str]

    @model_validator(mode="before")
    @classmethod
    def _is_no_release_file(cls, given: object) -> object:
        """Refuse a release file, and say what is expected."""
        if isinstance(given, dict) and {"table", "privacy"} <= set(given):
            raise PydanticCustomError("release-file", "this is a release file; " + cls.expected)
        return given


class UseSection(Section):
    """``[[use]]``: a mechanism, or a guarantee, and how often it is used."""

    mechanism: UseName
    sigma2: Number | None = None
    scale: Number | None = None
    epsilon: Number | None = None
    delta: Number | None = None
    times: int = 1
    shift: int = 1


class AccountFile(OtherFile):
    """A list of mechanisms to account for."""

    expected = (
        "account takes a list of [[use]], or a release directory; hedgerow plan shows the cost of "
        "a release file"
    )
    use: list[UseSection] = Field(min_length=1)


def read_account(path: Path) -> Profile:
    """Return the profile of a TOML list of mechanisms."""
    check_there(path)
    uses = list(enumerate(parse(path, AccountFile).use, start=1))
    profile = compose([within(f"[[use]] {i}", _use, use) for i, use in uses])
    for i, use in enumerate(profile.uses, start=1):
        within(f"[[use]] {i}", _check_size, use)
    return profile


def _check_size(use: Use) -> None:
    """Raise a BudgetError if floats cannot account for so many uses, or so much loss."""
    TIMES(use.times)
    cost = use.rho if use.pure_epsilon is None else use.pure_epsilon
    if isinstance(use.mechanism, EpsilonDelta):
        cost = use.times * use.mechanism.epsilon
    if cost is not None and cost > LARGEST:
        raise BudgetError(
            f"costs more than {LARGEST:,} (ρ, or pure ε), where nothing is protected; use more "
            f"noise, fewer times or a smaller shift"
        )


def _use(use: UseSection) -> tuple[Guarantee, int, int]:
    kinds: dict[Texts, Callable[..., Guarantee]] = {
        ("epsilon",): Epsilon,
        ("epsilon", "delta"): EpsilonDelta,
    }
    if use.mechanism in MECHANISMS:
        kind = MECHANISMS[use.mechanism]
        kinds = {(kind.key,): kind}
    names = " or ".join(" and ".join(sorted(names)) for names in kinds)
    own = set(UseSection.model_fields) - {"mechanism", "times", "shift"}
    return made_of(use, own, kinds, f"{use.mechanism} takes {names},"), use.times, use.shift


class MeasurementSection(Section):
    """``[[measurement]]``: the noisy counts of one level of the tree."""

    level: str
    source: str = Field(min_length=1)


class MeasurementFile(OtherFile):
    """The whole file."""

    expected = "estimate takes a file with [[measurement]], or the directory of a release"
    axis: list[AxisSection] = Field(min_length=1)
    tree: TreeSection = TreeSection()
    total: int | None = None
    measurement: list[MeasurementSection] = Field(min_length=1)


def read_measurements(path: Path) -> Measurements:
    """Return the measurements of a TOML file; relative paths in it are relative to it."""
    check_there(path)
    file = parse(path, MeasurementFile)
    axes = [within(f"[[axis]] {axis.name!r}", _axis, axis, path.parent) for axis in file.axis]
    tree = within("[tree]", Tree, axes, file.tree.refine)
    frames = {}
    for given in file.measurement:
        where = f"[[measurement]] {given.level!r}"
        depth = within(where, _depth, tree, given.level)
        if depth in frames:
            raise TableError(f"{where} is given twice; put its noisy counts into one table")
        frames[depth] = within(where, _table, path.parent / given.source)
    return within("[[measurement]]", Measurements.from_frames, tree, frames, file.total)


def _depth(tree: Tree, level: str) -> int:
    """Return the depth of a level; refuse a cuboid that is none of the tree's chain."""
    levels = tree.named(level)
    if levels is not None and levels not in tree.chain:
        raise TableError(
            f"it is no depth of the tree, and noisy counts from elsewhere are estimated along one "
            f"chain of cuboids: {', '.join(map(tree.name_of, tree.chain))}; choose another chain "
            f"with [tree] refine, or leave it out"
        )
    return tree.depth_of(level)


def _axis(axis: AxisSection, folder: Path) -> Axis:
    if axis.areas == AREAS_OF_TABLE and axis.kind is LISTED:
        raise TableError("areas: there is no table here; name the public list of areas")
    return with_shapes(public_axis(axis, folder), axis, folder)


def _table(path: Path) -> pa.Table:
    """Return a CSV file, all text, or a Parquet file, with the names of its columns."""
    name = f"the table {path}"
    with open_table(path, name, public=True) as (db, table):
        check_fits(db, load(db, table, table.names), name)
        with translate_duckdb_errors(name, "is no table that can be read to its end"):
            read = db.sql("FROM loaded").to_arrow_table()
    return read.rename_columns(list(table.names))
