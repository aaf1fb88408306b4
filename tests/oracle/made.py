"""Small public trees and tables that follow from their names alone: no generator is asked."""

import hashlib
from itertools import count, cycle

import numpy as np
import polars as pl

import hedgerow as hr
from hedgerow.noise.bits import ReleaseKey


def axis(name, *families, attribute=False):
    """An axis; ``families[k]`` are the numbers of children of the nodes of level k, in turn."""
    paths = [()]
    for pattern in families:
        paths = [
            (*path, f"{path[-1] if path else name[0]}{child:02}")
            for path, children in zip(paths, cycle(pattern), strict=False)
            for child in range(children)
        ]
    levels = [f"level{k}" for k in range(1, len(families) + 1)]
    frame = pl.DataFrame(paths, schema=levels, orient="row")
    columns = [f"{name}_{level}" for level in levels]
    return hr.Axis.from_frame(name, frame, levels, columns=columns, attribute=attribute)


def words(name, number):
    """So many 64-bit words that look random: uint64 (number)."""
    return np.frombuffer(hashlib.shake_256(name.encode()).digest(8 * number), dtype="<u8")


def table(tree, name, *, filled=60, largest=400):
    """A heavy-tailed table on about so many of a hundred leaves."""
    sizes = [axis.size(axis.depth) for axis in tree.axes]
    codes = tuple(code.ravel().astype(np.int32) for code in np.indices(sizes))
    drawn = words(name, len(codes[0]))
    there = drawn % np.uint64(100) < filled
    size = (drawn >> np.uint64(8)) % np.uint64(largest)
    values = (size >> ((drawn >> np.uint64(40)) % np.uint64(8))) + np.uint64(1)
    return hr.Counts.from_leaves(tree, codes, np.where(there, values, 0).astype(np.int64))


def key_of(name):
    """The release key of a plan of this name."""
    return ReleaseKey(hashlib.sha256(f"hedgerow/oracle/{name}".encode()).digest())


def kinds_of_nodes(tree, *, column):
    """A public table: which codes of an attribute column the finest nodes of the spine have.

    Each has the first; others where they happen to, with as many records at least as it says.
    """
    place, person = tree.axes[0], next(a for a in tree.axes[1:] if column in a.columns)
    nodes = place.labels[-1].to_list()
    codes = person.labels[person.columns.index(column)].to_list()
    drawn = iter(words(f"kinds of {place.name}", len(nodes) * len(codes)).tolist())
    rows = [
        (node, code, 0 if place_of == 0 else word // 7 % 3)
        for node in nodes
        for place_of, code, word in zip(count(), codes, drawn, strict=False)
        if place_of == 0 or word % 10 < 3
    ]
    return pl.DataFrame(rows, schema=[place.columns[-1], column, "least"], orient="row")


def keeping(tree, counts, kinds, forbidden=()):
    """A table without the records that public facts rule out, and with those that they promise.

    Args:
        kinds: as `kinds_of_nodes` returns them.
        forbidden: pairs of codes of two attribute columns that nobody has.
    """
    column = kinds.columns[1]
    frame = counts.level(tree.depth)
    frame = frame.join(kinds, on=kinds.columns[:2], how="semi")
    for rule in forbidden:
        frame = frame.filter(
            ~pl.all_horizontal(pl.col(name) == code for name, code in rule.items())
        )
    person = next(a for a in tree.axes[1:] if column in a.columns)
    leaves = person.leaf_frame().unique(column, keep="last", maintain_order=True)
    promised = kinds.filter(least=pl.col("least")).filter(pl.col("least") > 0)
    for other in tree.axes[1:]:
        beside = leaves if other is person else other.leaf_frame().head(1)
        on = {"on": column} if other is person else {"how": "cross"}
        promised = promised.join(beside, **on)
    place = tree.axes[0].leaf_frame()
    promised = promised.join(place, on=tree.axes[0].columns[-1])
    promised = promised.rename({"least": "count"}).select(frame.columns)
    both = pl.concat([frame, promised.cast({"count": frame["count"].dtype})])
    return hr.Counts.from_frame(tree, both, count="count")
