"""Public tables that say exactly what the confidential one does: a sentence for a terminal alone.

Whether they do, the confidential table decides, so no refusal, log or file may depend on it
(`docs/privacy.md`, "Is a public file the table?").
"""

from math import prod

import numpy as np
import polars as pl

from hedgerow.arrays import Int64
from hedgerow.plan.plan import Plan
from hedgerow.plan.public_rows import PublicRows
from hedgerow.tables.counts import Counts

TRUE = " "  # no column of codes is called so


def copies_of_the_table(counts: Counts, plan: Plan) -> list[str]:
    """Return a clause for each public table with exactly the content of the confidential one."""
    rows = [fact for fact in plan.facts if isinstance(fact, PublicRows)]
    return [clause for each in rows for clause in _alike(each, *_true_cells(counts, each))]


def _alike(rows: PublicRows, true: pl.DataFrame, cells: int) -> list[str]:
    codes = rows.frame.select(rows.columns)
    there = codes.join(true, on=rows.columns, how="left", maintain_order="left")
    listed = there[TRUE].fill_null(0).to_numpy()
    found = [
        f"{rows.subject}: {name} is exactly what the table counts"
        for name, bound in ((rows.at_least, rows.low), (rows.at_most, rows.high))
        if name is not None and listed.any() and np.array_equal(listed, bound)
    ]
    leaves_empty = rows.zeros == "listed"
    held = cells - len(codes) if leaves_empty else len(codes)
    if rows.zeros is not None and held == len(true) and ((listed == 0) == leaves_empty).all():
        found.append(f"{rows.subject} leaves exactly the cells in which the table has records")
    return found


def _true_cells(counts: Counts, rows: PublicRows) -> tuple[pl.DataFrame, int]:
    """Return the non-empty cells that a public table tells apart; and how many all are."""
    numbers, labels = list[Int64](), list[pl.DataFrame]()
    for axis, codes in zip(counts.tree.axes, counts.codes, strict=True):
        names = [name for name in axis.columns if name in rows.columns]
        if names:
            apart, number = axis.parts(names)
            numbers.append(number[codes].astype(np.int64))
            labels.append(apart)
    sizes = [len(apart) for apart in labels]
    cell, which = np.unique(np.ravel_multi_index(tuple(numbers), sizes), return_inverse=True)
    true = np.bincount(which, counts.values, len(cell)).astype(np.int64)
    each = zip(labels, np.unravel_index(cell, sizes), strict=True)
    named = [column for apart, number in each for column in apart[number].get_columns()]
    return pl.DataFrame([*named, pl.Series(TRUE, true)]), prod(sizes)
