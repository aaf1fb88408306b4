"""The depths that a page carries: from the coarsest on, as long as they stay small."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from hedgerow.plan.plan import Plan
from hedgerow.release.descent.families import family_starts
from hedgerow.release.descent.nodes import Nodes
from hedgerow.release.directory.depth_errors import Certainty, certainty
from hedgerow.release.directory.measurements import (
    COUNT,
    ESTIMATE,
    HIGH,
    LOW,
    STANDARD_ERROR,
    Shape,
    read_counts,
)
from hedgerow.release.directory.stored import read_nodes
from hedgerow.release.page.blocks import (
    LARGEST_SCRIPT_NUMBER,
    Interval,
    UsedCodes,
    contradicted_block,
    depth_block,
    level_block,
    local_places,
)
from hedgerow.tables.tree import Tree

MOST_NODES = 1_500_000
"""Listed counts that are read for a page at most."""

MOST_CHARACTERS = 4_600_000
"""Of a page's counts and codes, so that the whole page is below 5 MB."""

ROOT = np.zeros(1, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Carried:
    """Depths 0 … `last` of a release, in memory and as blocks of text.

    Attributes:
        nodes: for each depth its listed counts.
        intervals: and their intervals.
        blocks: names and texts, see `hedgerow.release.page.blocks`.
    """

    nodes: list[Nodes] = field(default_factory=list)
    intervals: list[Interval] = field(default_factory=list)
    blocks: list[tuple[str, str]] = field(default_factory=list)

    @property
    def last(self) -> int:
        """The deepest depth; -1 where not even the total is carried."""
        return len(self.nodes) - 1


def carry(folder: Path, plan: Plan, rows: Sequence[int], *, numeric: bool) -> Carried:
    """The depths that fit, their families proved to add up.

    Args:
        folder: of the release.
        plan: of the release.
        rows: how many counts each depth lists.
        numeric: whether the tree is of one numeric axis, whose empty ranges are carried too.

    Raises:
        ReleaseError: codes that are not in the domain, or families that do not add up.
    """
    made, room, tree = Carried(), MOST_CHARACTERS, plan.tree
    described = plan.to_dict()
    used = {(a, 0): UsedCodes(ROOT, ROOT) for a in range(len(tree.axes))}
    for t, total in enumerate(np.cumsum(rows).tolist()):
        if total > MOST_NODES or (numeric and tree.nodes(t) > MOST_NODES):
            break
        nodes = read_nodes(folder, tree, t)
        whole = int((made.nodes[0] if made.nodes else nodes).counts.sum())
        interval = _interval(folder, Shape.of(tree, t), certainty(described, t, whole))
        if max(interval.high.max(initial=0), nodes.counts.max(initial=0)) >= LARGEST_SCRIPT_NUMBER:
            break
        if t > 0:
            blocks = _blocks(tree, t, (made.nodes[-1], nodes), interval, used, numeric=numeric)
            room -= sum(len(text) for _, text in blocks)
            if room < 0:
                break
            made.blocks.extend(blocks)
        made.nodes.append(nodes)
        made.intervals.append(interval)
    return made


def _blocks(
    tree: Tree,
    depth: int,
    nodes: tuple[Nodes, Nodes],
    interval: Interval,
    used: dict[tuple[int, int], UsedCodes],
    *,
    numeric: bool,
) -> list[tuple[str, str]]:
    number, level = tree.steps[depth - 1]
    axis, above = tree.axes[number], used[number, level - 1].codes
    size = axis.size(level)
    listed = np.bincount(nodes[1].codes[number], minlength=size) > 0
    codes = np.arange(size) if numeric else np.flatnonzero(listed)
    known = UsedCodes.of(axis, level, codes, above)
    used[number, level] = known
    start = family_starts(tree, depth, *nodes)
    local = local_places(tree, depth, nodes[1], known, above)
    blocks = [
        (f"level-{number}-{level}", level_block(axis, level, known, above, numeric=numeric)),
        (f"depth-{depth}", depth_block(local, start, nodes[1], interval)),
    ]
    if len(interval.contradicted):
        blocks.append((f"contradicted-{depth}", contradicted_block(interval)))
    return blocks


def _interval(folder: Path, shape: Shape, known: Certainty) -> Interval:
    table = read_counts(folder, shape)
    estimate, variance = table[ESTIMATE].to_numpy(), table[STANDARD_ERROR].to_numpy() ** 2
    flags = known.contradicted(table[COUNT].to_numpy(), estimate, variance)
    places = np.flatnonzero(flags)
    exact = LARGEST_SCRIPT_NUMBER - 1
    rounded = np.clip(np.rint(estimate[places]), -exact, exact).astype(np.int64)
    return Interval(table[LOW].to_numpy(), table[HIGH].to_numpy(), places, rounded)
