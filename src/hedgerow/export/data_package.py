"""A Frictionless data package: CSV files and ``datapackage.json``, with keys into code lists."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from hedgerow.arrays import Levels
from hedgerow.errors import ReleaseError
from hedgerow.export.released import (
    column_labels,
    plain_names,
    statements,
    with_names_labelled,
)
from hedgerow.machine import library
from hedgerow.release.directory.manifest import sha256
from hedgerow.release.directory.measurements import cuboid_slug
from hedgerow.release.directory.output import whole_or_not
from hedgerow.release.page.words import title
from hedgerow.release.release import Release
from hedgerow.tables.axis import Axis
from hedgerow.text import Json

DESCRIPTOR = "datapackage.json"
LONGEST_NAME = 60


@dataclass(frozen=True, slots=True)
class DataPackage:
    """A directory of CSV files with ``datapackage.json``, as Frictionless Data describes them.

    ``domain/`` has one list a level: its codes, those above them, and a key to these; where the
    public list names areas also their names, with keys to the codes. ``counts/`` has every table of
    the release, with keys into the lists.

    Example:
        >>> hr.DataPackage()
        DataPackage()
    """

    def write(self, release: Release, output: Path) -> None:
        """Write the directory, whole or not at all.

        Raises:
            ReleaseError: it exists, or the release is damaged.
            MachineError: frictionless is missing, or the disk is full.
        """
        frictionless = library("frictionless", "datapackage")
        with whole_or_not(output) as folder:
            files = _Files(folder, release)
            resources = [*files.lists(), *files.tables()]
            described = _described(release) | {"resources": resources}
            try:
                package = frictionless.Package.from_descriptor(described)
            except frictionless.FrictionlessException as error:
                raise ReleaseError(f"no data package can be made: {error}"[:500]) from None
            package.to_json(str(folder / DESCRIPTOR))


@dataclass(frozen=True, slots=True)
class _Files:
    """The CSV files of a package, written below a folder."""

    folder: Path
    release: Release

    def lists(self) -> list[Json]:
        """Write the list of each level of each axis; return what describes them."""
        (self.folder / "domain").mkdir()
        names = self.names
        every = [(axis, level) for axis in self._axes for level in _levels(axis)]
        lists = [self._list(axis, level, names) for axis, level in every]
        named = [(axis, level) for axis, level in every if axis.names_of(level) is not None]
        return lists + [self._names(axis, level, names) for axis, level in named]

    @property
    def _axes(self) -> Sequence[Axis]:
        return self.release.plan.tree.axes

    @property
    def names(self) -> dict[str, str]:
        """For each level, by axis and number, the name of its list."""
        of_axes = plain_names([axis.name for axis in self._axes], LONGEST_NAME)
        names: dict[str, str] = {}
        for axis in self._axes:
            of_levels = plain_names(axis.levels, LONGEST_NAME)
            for level, plain in zip(_levels(axis), of_levels.values(), strict=True):
                names[_key(axis, level)] = f"{of_axes[axis.name]}.{plain}".lower()
        return names

    def _list(self, axis: Axis, level: int, names: dict[str, str]) -> Json:
        name = names[_key(axis, level)]
        nodes = np.arange(axis.size(level), dtype=np.int32)
        frame, keys = pl.DataFrame(axis.path(level, nodes)), []
        if level > 1:
            above = list(axis.keys(level - 1).columns)
            keys = [_reference(above, names[_key(axis, level - 1)])]
        said = self.release.plan.description
        words = said.level_words(self.release.plan.tree, axis, axis.levels[level - 1])
        path = f"domain/{name}.csv"
        return self._resource(frame, name, path, words, list(axis.keys(level).columns), keys)

    def _names(self, axis: Axis, level: int, names: dict[str, str]) -> Json:
        """Write the names of a level's areas; return what describes them."""
        name, codes = names[_key(axis, level)], axis.keys(level)
        (column,) = codes.columns
        frame = axis.with_names(codes).drop_nulls()
        said = self.release.plan.description
        words = said.level_words(self.release.plan.tree, axis, axis.levels[level - 1])
        return self._resource(
            frame,
            f"{name}.names",
            f"domain/{name}.names.csv",
            f"{words}: names",
            [column],
            [_reference([column], name)],
        )

    def tables(self) -> list[Json]:
        """Write all tables of counts; return what describes them."""
        (self.folder / "counts").mkdir()
        names = self.names
        return [self._table(levels, names) for levels in self.release.plan.levels]

    def _table(self, levels: Levels, names: dict[str, str]) -> Json:
        plan = self.release.plan
        frame = self.release.level(plan.tree.name_of(levels))
        keys, primary = [], list[str]()
        for axis, level in zip(self._axes, levels, strict=True):
            if level:
                own = list(axis.keys(level).columns)
                keys.append(_reference(own, names[_key(axis, level)]))
                primary += own
        name = f"counts-{'-'.join(map(str, levels))}"
        path = f"counts/{cuboid_slug(levels)}.csv"
        return self._resource(frame, name, path, plan.label_of(levels), primary, keys)

    def _resource(
        self,
        frame: pl.DataFrame,
        name: str,
        path: str,
        words: str,
        primary: list[str],
        keys: list[Json],
    ) -> Json:
        place = self.folder / path
        frame.write_csv(place)
        labels = with_names_labelled(column_labels(self.release.plan), frame)
        fields = [
            {"name": column, "type": _TYPES[kind.base_type()], "title": labels[column]}
            for column, kind in frame.schema.items()
        ]
        for field in fields:
            if field["name"] in primary:
                field["constraints"] = {"required": True}  # type: ignore[assignment]
        schema: Json = {"fields": fields, "missingValues": []}
        schema |= {"primaryKey": primary} if primary else {}
        schema |= {"foreignKeys": keys} if keys else {}
        return {
            "name": name,
            "type": "table",
            "title": words,
            "path": path,
            "scheme": "file",
            "format": "csv",
            "mediatype": "text/csv",
            "encoding": "utf-8",
            "hash": f"sha256:{sha256(place)}",
            "bytes": place.stat().st_size,
            "schema": schema,
        }


_TYPES: dict[Any, str] = {
    pl.String: "string",
    pl.Int64: "integer",
    pl.Float64: "number",
    pl.Boolean: "boolean",
}


def _levels(axis: Axis) -> range:
    return range(1, axis.depth + 1)


def _key(axis: Axis, level: int) -> str:
    return f"{axis.name}/{level}"


def _reference(fields: list[str], resource: str) -> Json:
    return {"fields": fields, "reference": {"resource": resource, "fields": fields}}


def _described(release: Release) -> Json:
    """Return what a package says of itself."""
    plan, said = release.plan, release.plan.description
    licence = {"name": re.sub(r"[^-A-Za-z0-9._]+", "-", said.licence), "title": said.licence}
    if re.match(r"https?://\S+$", said.licence):
        licence = {"path": said.licence, "title": said.licence}
    optional = {
        "licenses": [licence] if said.licence else [],
        "contributors": [{"title": said.publisher, "role": "publisher"}] if said.publisher else [],
        "period": said.period,
        "unit": said.unit,
        "language": said.language,
    }
    return {
        "name": f"hedgerow-{plan.hash[:12]}",
        "title": title(plan),
        "description": "\n\n".join(statements(plan)),
        "plan_sha256": plan.hash,
        **{name: value for name, value in optional.items() if value},
    }
