"""Public tables that say exactly what the confidential one does: a sentence for a terminal alone.

Whether they do, the confidential table decides, so no refusal, log or file may depend on it
(`docs/privacy.md`, "What public files say").
"""

import numpy as np
import polars as pl

from hedgerow.plan.plan import Plan
from hedgerow.plan.public_rows import PublicRows, attribute_axes, spine_axis
from hedgerow.tables.counts import Counts

TRUE = " "  # no column of codes is called so


def like_the_table(counts: Counts, plan: Plan) -> list[str]:
    """Return what public tables say exactly as the confidential one has it, a clause each."""
    rows = [fact for fact in plan.facts if isinstance(fact, PublicRows)]
    return [clause for each in rows for clause in _alike(each, _true_cells(counts, each), counts)]


def _alike(rows: PublicRows, true: pl.DataFrame, counts: Counts) -> list[str]:
    names = list(rows.columns)
    codes = rows.frame.select(names)
    listed = codes.join(true, on=names, how="left", maintain_order="left")[TRUE].fill_null(0)
    found = [
        f"{rows.subject}: {name} is exactly what the table counts"
        for name, bound in ((rows.at_least, rows.low), (rows.at_most, rows.high))
        if name is not None and (listed > 0).any() and np.array_equal(listed.to_numpy(), bound)
    ]
    cells = len(true)
    if rows.zeros == "listed":
        cells = _places(rows, counts) - len(true)
    held = (listed > 0) if rows.zeros == "unlisted" else (listed == 0)
    if rows.zeros is not None and len(rows.frame) == cells and held.all():
        found.append(f"{rows.subject} leaves exactly the cells in which the table has records")
    return found


def _true_cells(counts: Counts, rows: PublicRows) -> pl.DataFrame:
    """Return the non-empty cells that a public table's columns tell apart, with their counts."""
    tree, columns = counts.tree, list[pl.Series]()
    for number, (axis, codes) in enumerate(zip(tree.axes, counts.codes, strict=True)):
        if number == tree.spine and rows.level:
            level = axis.columns.index(rows.level[0]) + 1
            nodes = codes if level == axis.depth else axis.ancestors(level)[codes]
            columns.append(axis.labels[level - 1].gather(nodes).alias(rows.level[0]))
        elif number != tree.spine:
            leaves = axis.leaf_frame()
            columns += [leaves[c].gather(codes) for c in leaves.columns if c in rows.attributes]
    frame = pl.DataFrame([*columns, pl.Series(TRUE, counts.values)])
    return frame.group_by(*rows.columns).agg(pl.col(TRUE).sum())


def _places(rows: PublicRows, counts: Counts) -> int:
    """Return how many cells a public table's columns tell apart."""
    spine, cells = spine_axis(counts.tree), 1
    if rows.level:
        cells = spine.size(spine.columns.index(rows.level[0]) + 1)
    for number in attribute_axes(counts.tree):
        leaves = counts.tree.axes[number].leaf_frame()
        own = [name for name in leaves.columns if name in rows.attributes]
        cells *= leaves.select(own).n_unique() if own else 1
    return cells
