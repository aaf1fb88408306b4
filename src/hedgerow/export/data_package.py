"""A Frictionless data package: CSV files and ``datapackage.json``, with keys into code lists."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from hedgerow.arrays import Levels
from hedgerow.declared import frozen
from hedgerow.errors import ReleaseError
from hedgerow.export.released import (
    labels_of,
    one_table,
    plain_names,
    shared,
    statements,
)
from hedgerow.machine import library
from hedgerow.release.directory.manifest import sha256
from hedgerow.release.directory.measurements import cuboid_slug
from hedgerow.release.directory.output import whole_or_not
from hedgerow.release.page.words import title
from hedgerow.release.release import Release
from hedgerow.tables.axis import Axis
from hedgerow.text import Json, TextByName

DESCRIPTOR = "datapackage.json"
LONGEST_NAME = 60


@frozen
class DataPackage:
    """A directory of CSV files with ``datapackage.json``, as Frictionless Data describes them.

    ``domain/`` has one list a level: its codes, those above them, and a key to these; where the
    public list names areas also their names, with keys to the codes. ``counts/`` has every table of
    the release, with keys into the lists.

    Attributes:
        share: axis = level of the cells that each count is a share of, {} for the total: columns
            ``share``, ``share_low``, ``share_high`` and ``share_contradicted`` (`Release.ratio`) of
            the tables within them.

    Example:
        >>> hr.DataPackage()
        DataPackage(share=None)
    """

    share: TextByName | None = None

    def write(self, release: Release, output: Path) -> None:
        """Write the directory, whole or not at all.

        Raises:
            ReleaseError: it exists, or the release is damaged.
            MachineError: frictionless is missing, or the disk is full.
        """
        frictionless = library("frictionless", "datapackage")
        with whole_or_not(output) as folder:
            files = _Files(folder, release, self.share)
            described = _described(release, self.share) | {
                "resources": [*files.lists(), *files.tables()]
            }
            try:
                package = frictionless.Package.from_descriptor(described)
            except frictionless.FrictionlessException as error:
                raise ReleaseError(f"no data package can be made: {error}"[:500]) from None
            package.to_json(str(folder / DESCRIPTOR))


@frozen
class _Files:
    """The CSV files of a package, written below a folder."""

    folder: Path
    release: Release
    share: TextByName | None

    def lists(self) -> list[Json]:
        """Write the list of each level of each axis, and its names; return what describes them."""
        (self.folder / "domain").mkdir()
        lists, names = [], []
        for axis, level in ((a, level) for a in self._axes for level in range(1, a.depth + 1)):
            name = self._name(axis, level)
            codes = axis.keys(level)
            words = self._words(axis, level)
            path = f"domain/{name}.csv"
            own = codes.columns
            keys = [self._reference(axis, level - 1)] if level > 1 else []
            lists.append(self._resource(axis.paths(level), name, path, words, own, keys))
            if axis.names_of(level) is not None:
                frame = axis.with_names(codes).drop_nulls()
                path = f"domain/{name}.names.csv"
                key, words = [self._reference(axis, level)], f"{words}: names"
                names.append(self._resource(frame, f"{name}.names", path, words, own, key))
        return lists + names

    @property
    def _axes(self) -> Sequence[Axis]:
        return self.release.plan.tree.axes

    def _name(self, axis: Axis, level: int) -> str:
        """Return the name of the list of a level."""
        of_axes = plain_names(self.release.plan.tree.axis_names, LONGEST_NAME)
        plain = plain_names(axis.levels, LONGEST_NAME)[axis.levels[level - 1]]
        return f"{of_axes[axis.name]}.{plain}".lower()

    def _words(self, axis: Axis, level: int) -> str:
        plan = self.release.plan
        return plan.description.level_words(plan.tree, axis, axis.levels[level - 1])

    def _reference(self, axis: Axis, level: int) -> Json:
        """Return the key into the list of a level."""
        fields = axis.keys(level).columns
        return {
            "fields": fields,
            "reference": {"resource": self._name(axis, level), "fields": fields},
        }

    def tables(self) -> list[Json]:
        """Write all tables of counts; return what describes them."""
        (self.folder / "counts").mkdir()
        plan = self.release.plan
        has = shared(plan, plan.cuboids, self.share)
        return [
            self._table(levels, self.share if has[plan.tree.name_of(levels)] else None)
            for levels in plan.levels
        ]

    def _table(self, levels: Levels, share: TextByName | None) -> Json:
        plan = self.release.plan
        frame = one_table(self.release, plan.tree.name_of(levels), share=share)
        here = [(axis, level) for axis, level in zip(self._axes, levels, strict=True) if level]
        keys = [self._reference(axis, level) for axis, level in here]
        primary = [column for key in keys for column in key["fields"]]
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
        labels = labels_of(self.release.plan, frame, self.share)
        needed = {"constraints": {"required": True}}
        fields = [
            {"name": column, "type": _TYPES[kind.base_type()], "title": labels[column]}
            | (needed if column in primary else {})
            for column, kind in frame.schema.items()
        ]
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


def _described(release: Release, share: TextByName | None) -> Json:
    """Return what a package says of itself."""
    plan = release.plan
    said = release.plan.description
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
        "description": "\n\n".join(statements(plan, share)),
        "plan_sha256": plan.hash,
        **{name: value for name, value in optional.items() if value},
    }
