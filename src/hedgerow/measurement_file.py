"""The measurement file: somebody else's noisy counts, level by level, to be estimated."""

from pathlib import Path

import polars as pl
from pydantic import Field

from hedgerow.axis_section import AxisSection, listed_axis
from hedgerow.errors import TableError
from hedgerow.release.foreign import Measurements
from hedgerow.release.measurements import read_parquet
from hedgerow.spec import AREAS_OF_TABLE, TreeSection
from hedgerow.tables.axis import Axis
from hedgerow.tables.tree import Tree
from hedgerow.toml_file import Section, parse, within


class MeasurementSection(Section):
    """``[[measurement]]``: the noisy counts of one level of the tree."""

    level: str
    source: str = Field(min_length=1)


class MeasurementFile(Section):
    """The whole file."""

    axis: list[AxisSection] = Field(min_length=1)
    tree: TreeSection = TreeSection()
    total: int | None = None
    measurement: list[MeasurementSection] = Field(min_length=1)


def read_measurements(path: Path) -> Measurements:
    """The measurements that a TOML file describes; relative paths in it are relative to it.

    Raises:
        SpecError: the file does not fit.
        TableError: a list of areas or a table of noisy counts does not.
    """
    file = parse(path, MeasurementFile)
    axes = [within(f"[[axis]] {axis.name!r}", _axis, axis, path.parent) for axis in file.axis]
    tree = within("[tree]", Tree, axes, file.tree.refine)
    frames = {}
    for given in file.measurement:
        where = f"[[measurement]] {given.level!r}"
        depth = within(where, tree.depth_of, given.level)
        frames[depth] = within(where, _table, path.parent / given.source)
    return within("[[measurement]]", Measurements.from_frames, tree, frames, file.total)


def _axis(axis: AxisSection, folder: Path) -> Axis:
    if axis.areas == AREAS_OF_TABLE:
        raise TableError("areas: there is no table here; name the public list of areas")
    return listed_axis(axis, folder / axis.areas)


def _table(path: Path) -> pl.DataFrame:
    """A CSV or Parquet file, its codes as text."""
    try:
        if path.suffix == ".parquet":
            return read_parquet(path)
        return pl.read_csv(path, infer_schema=False)
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "no table"
        raise TableError(f"cannot read {str(path)!r}: {reason}") from None
