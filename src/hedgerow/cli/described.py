"""What the publisher says of a table, beside what a terminal shows of it.

Names of axes, levels and columns stay as they are typed; what readers call them stands below.
"""

from collections.abc import Sequence
from contextlib import suppress

import polars as pl

from hedgerow.cli.terminal import escape, say, stdout
from hedgerow.errors import TableError
from hedgerow.plan.describe import aligned
from hedgerow.plan.plan import Plan
from hedgerow.tables.lists.lookup import Lookup
from hedgerow.tables.tree import Tree


def show_heading(plan: Plan) -> None:
    """Print title, unit and period, where any is said."""
    said = plan.description
    about = ", ".join(filter(None, [f"counts of {said.unit}" if said.unit else "", said.period]))
    words = f"{said.title} ({about})" if said.title and about else said.title or about
    if words:
        stdout.print(f"[bold]{escape(words[:1].upper() + words[1:])}[/bold]\n")


def show_levels(plan: Plan) -> None:
    """Print what readers call the levels, where the publisher gives labels."""
    tree, axes = plan.tree, range(len(plan.tree.axes))
    pairs = []
    for a, axis in enumerate(tree.axes):
        if plan.description.labels_of(tree, axis) is None:
            continue
        for k in range(1, axis.depth + 1):
            alone = tuple(k if b == a else 0 for b in axes)
            pairs.append((tree.name_of(alone), plan.label_of(alone)))
    _show(pairs)


def show_columns(plan: Plan, columns: Sequence[str]) -> None:
    """Print what readers call the columns of codes of a table, where the publisher says so."""
    known = [
        column
        for axis in plan.tree.axes
        if plan.description.labels_of(plan.tree, axis) is not None
        for column in axis.columns
    ]
    labels = plan.description.column_labels(plan.tree)
    _show([(column, labels[column]) for column in columns if column in known])


def with_names(tree: Tree, frame: pl.DataFrame, lookup: Lookup | None = None) -> pl.DataFrame:
    """Return a table with names of areas; as it is where a column is called like one of names."""
    with suppress(TableError):  # codes are enough
        return tree.with_names(frame if lookup is None else lookup.with_names(frame))
    return frame


def _show(pairs: Sequence[tuple[str, str]]) -> None:
    """Print names and what readers call them, unless that is nothing new."""
    new = [(f"  {name}", label) for name, label in pairs if name != label]
    if new:
        say(f"In the publisher's words:\n{aligned(new, left={0, 1})}\n")
