"""A small release along a spine with its page, read back as the pages of cubes are."""

from types import SimpleNamespace

import polars as pl

import hedgerow as hr
from hedgerow import cli
from hedgerow.tables.lists.product import BETWEEN_CODES
from tests.release.drawn_page import read
from tests.release.spine.made_files import write_files


class Labelled:
    """A release whose columns of a product's levels hold the labels that a page shows."""

    def __init__(self, release, axis):
        self.release, self.axis = release, axis

    def level(self, name):
        frame = self.release.level(name)
        told = {k: self.axis.columns_of(k) for k in range(1, self.axis.depth + 1)}
        labels = {
            self.axis.columns[k - 1]: pl.concat_str(columns, separator=BETWEEN_CODES)
            for k, columns in told.items()
            if set(columns) <= set(frame.columns)
        }
        return frame.with_columns(**labels)


def released(folder):
    """The release of `tests.release.spine.made_files`, over a spine and an axis of columns."""
    file = write_files(folder)
    assert cli.run(["release", str(file)]) == 0
    release = hr.read_release(folder / "out")
    path = folder / "out" / "report.html"
    text = path.read_text(encoding="utf-8")
    plan, tree = release.plan, release.plan.tree
    return SimpleNamespace(
        release=Labelled(release, tree.axes[1]), folder=folder, plan=plan, tree=tree, path=path,
        text=text, seen=read(text),
    )  # fmt: skip
