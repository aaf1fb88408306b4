"""Small tables along a spine, with public facts."""

import numpy as np
import polars as pl

import hedgerow as hr
from tests.made import random_axis

KINDS = ["home", "nursing", "prison", "college"]


def person_axis(rng, widest=3):
    """A tree of kinds, bands and cells, uneven."""
    paths = [
        (kind, f"{kind}.{band}", f"{kind}.{band}.{cell}")
        for kind in KINDS
        for band in range(rng.integers(1, 3))
        for cell in range(rng.integers(1, widest + 1))
    ]
    frame = pl.DataFrame(paths, schema=["kind", "band", "cell"], orient="row")
    return hr.Axis.from_frame("person", frame, ["kind", "band", "cell"], attribute=True)


def spine_tree(rng, depth=3, widest=4):
    """A spine of ``depth`` levels and one attribute tree."""
    return hr.Tree([random_axis(rng, "place", depth, widest), person_axis(rng)])


def kinds_of_blocks(rng, tree):
    """A public table: which kinds each finest node has, and how many people at least."""
    blocks = tree.axes[0].labels[-1].to_list()
    rows = [
        (block, kind, int(rng.integers(0, 3)))
        for block in blocks
        for kind in KINDS
        if rng.random() < (0.8 if kind == "home" else 0.3)
    ]
    rows = rows or [(blocks[0], "home", 0)]
    column = tree.axes[0].columns[-1]
    return pl.DataFrame(rows, schema=[column, "kind", "least"], orient="row")


def people(rng, tree, kinds, mean=15):
    """Counts that keep the public facts."""
    place, person = tree.axes
    block = place.labels[-1].to_list()
    cell = person.labels[-1].to_list()
    codes, values = ([], []), []
    for b, kind, least in kinds.iter_rows():
        cells = [i for i, code in enumerate(cell) if code.startswith(f"{kind}.")]
        codes[0].append(block.index(b))
        codes[1].append(cells[0])
        values.append(least + int(rng.poisson(mean * rng.random() ** 3)))
        for i in cells[1:]:
            codes[0].append(block.index(b))
            codes[1].append(i)
            values.append(int(rng.poisson(mean * rng.random() ** 4)))
    arrays = tuple(np.array(code, dtype=np.int32) for code in codes)
    return hr.Counts.from_leaves(tree, arrays, np.array(values, dtype=np.int64))
