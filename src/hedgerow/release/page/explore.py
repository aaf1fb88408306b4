"""What the picture of the hierarchy starts from: the shape of the tree, and a first table."""

from typing import Any

import numpy as np

from hedgerow.release.descent.nodes import Nodes
from hedgerow.release.page.blocks import visible_labels
from hedgerow.release.page.carried import Carried
from hedgerow.release.page.markup import shown, table
from hedgerow.tables.tree import Tree
from hedgerow.text import visible

MOST_ROWS = 60


def shape(tree: Tree, carried: Carried, *, numeric: bool) -> dict[str, Any]:
    """The tree as the page's script reads it, and the total with its interval."""
    root = carried.nodes[0].counts.tolist() if carried.nodes else []
    ends = [carried.intervals[0].low.tolist(), carried.intervals[0].high.tolist()] if root else []
    return {
        "axes": [
            {"name": visible(axis.name), "levels": [visible(level) for level in axis.levels]}
            for axis in tree.axes
        ],
        "steps": tree.steps,
        "depths": [visible(tree.cuboid_name(t)) for t in range(tree.depth + 1)],
        "last": carried.last,
        "numeric": numeric,
        "total": [*root, *(end for pair in ends for end in pair)],
    }


def first_counts(tree: Tree, carried: Carried) -> str:
    """The coarsest level with several possible counts as a table, for readers without scripts."""
    depth = next((t for t in range(carried.last + 1) if tree.nodes(t) > 1), None)
    if depth is None:
        return "<p>The counts are in the Parquet files of this release.</p>"
    nodes, interval = _first(carried.nodes[depth]), carried.intervals[depth]
    codes = [
        visible_labels(axis.labels[level - 1].gather(code)).to_list()
        for axis, level, code in zip(tree.axes, tree.cuboid(depth), nodes.codes, strict=True)
        if level
    ]
    told = interval.told()
    rows = [
        [
            " › ".join(shown(code) for code in path),
            f"{count:,}{_contradiction(told.get(i))}",
            f"{low:,} to {high:,}",
        ]
        for i, (path, count, low, high) in enumerate(
            zip(zip(*codes, strict=True), nodes.counts, interval.low, interval.high, strict=False)
        )
    ]
    name, every = shown(tree.cuboid_name(depth)), len(carried.nodes[depth])
    more = "" if len(rows) == every else f"; the first {len(rows)} of {every:,}"
    return table(f"Counts by {name}{more}", [name, "Count", "95 % interval"], rows)


def _contradiction(estimate: int | None) -> str:
    """What stands below a count that its own measurements contradict."""
    if estimate is None:
        return ""
    return f'<small class="doubt">≠ contradicted; unbiased estimate {estimate:,}</small>'


def _first(nodes: Nodes) -> Nodes:
    return nodes.taken(np.arange(min(len(nodes), MOST_ROWS)))
