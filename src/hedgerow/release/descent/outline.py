"""The outline of a pass: which depths are measured, in which blocks, and where the tree is cut."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from hedgerow.arrays import Int64, Levels
from hedgerow.estimate.estimator import Estimator
from hedgerow.plan.chain import chain_of, needs_reals
from hedgerow.plan.plan import Plan
from hedgerow.release.descent.nodes import Nodes
from hedgerow.release.descent.source import Noisy
from hedgerow.release.descent.steps import Refinement
from hedgerow.tables.tree import Tree


@dataclass(frozen=True, slots=True)
class Outline:
    """What a pass needs to know of a plan.

    Attributes:
        tree: the tree.
        public_depth: the deepest public depth, -1 if none is.
        measured: the measured depths.
        everything: whether all nodes of a measured depth are, not survivors' children alone.
        cut: where the tree is cut into jobs.
    """

    tree: Tree
    public_depth: int
    measured: frozenset[int]
    everything: bool
    cut: int

    @classmethod
    def of(cls, plan: Plan) -> "Outline":
        """Return the outline of a plan."""
        chain = chain_of(plan)
        return cls(plan.tree, chain.public_depth, chain.measured, chain.everything, chain.cut)

    @property
    def first(self) -> int:
        """The depth that the pass starts below."""
        return max(self.public_depth, 0)

    @property
    def is_cut(self) -> bool:
        """Whether there are subtree jobs, and not one pass from the first depth to the last."""
        return self.cut not in {self.first, self.tree.depth}

    @property
    def uncut(self) -> "Outline":
        """The same without jobs."""
        return replace(self, cut=self.first)

    def needs_reals(self, estimator: Estimator) -> bool:
        """Return whether the estimator is given combined, real-valued counts, or makes such."""
        below = range(self.public_depth + 1, self.tree.depth + 1)
        return needs_reals(estimator, self.measured, below, everything=self.everything)

    def blocks(self, above: int, last: int) -> list[list[Refinement]]:
        """Return the steps from a depth down to another, by block."""
        blocks: list[list[Refinement]] = []
        waiting: list[Refinement] = []
        deepest = max(self.measured)
        # Single children take their parent's count, where it has one: an unmeasured total has none.
        has_parent_count = above > 0 or self.public_depth >= 0 or 0 in self.measured
        for t in range(above + 1, last + 1):
            step = Refinement.of(self.tree, t)
            waiting.append(step)
            ends = t in self.measured and not (self.everything and t < min(deepest, last))
            alone = (
                step.single and len(waiting) == 1 and t not in self.measured and has_parent_count
            )
            if ends or t > deepest or (alone and not self.everything):
                blocks.append(waiting)
                waiting, has_parent_count = [], True
        return [*blocks, waiting] if waiting else blocks


@dataclass(frozen=True, slots=True)
class Found:
    """What a pass or a job of it releases of one cuboid, in tree order.

    Attributes:
        levels: the cuboid.
        nodes: the survivors with their released counts and unbiased estimates.
        noisy: int64 (measured cells): the noisy counts, families end to end, of surviving parents
            or (`All`) of all; None where nothing was measured.
        seconds: of work; confidential, for the terminal alone. 0 where the result had been kept.
    """

    levels: Levels
    nodes: Nodes
    noisy: Noisy | None
    seconds: float = 0.0

    @staticmethod
    def concatenate(parts: Sequence["Found"]) -> "Found":
        """Return the results of one cuboid from chunks or jobs that follow each other."""
        noisy = [part.noisy for part in parts if part.noisy is not None]
        nodes = Nodes.concatenate([part.nodes for part in parts])
        seconds = sum(part.seconds for part in parts)
        return Found(parts[0].levels, nodes, _end_to_end(noisy) if noisy else None, seconds)


def _end_to_end(parts: list[Noisy]) -> Noisy:
    return parts[0] if len(parts) == 1 else cast("Noisy", np.concatenate(parts))


@dataclass(frozen=True, slots=True)
class NoisyCuboid:
    """The noisy counts of a cuboid whose counts are found later, together with others.

    Attributes:
        levels: the cuboid.
        noisy: int64 (cells): of all its cells, row by row.
        seconds: of work; confidential, as of `Found`.
    """

    levels: Levels
    noisy: Int64
    seconds: float = 0.0


def by_cuboid(
    results: Iterable[Found | NoisyCuboid],
) -> tuple[dict[Levels, Nodes], dict[Levels, Noisy]]:
    """Return all survivors and all noisy counts by cuboid."""
    parts: dict[Levels, list[Found]] = {}
    measured: dict[Levels, Noisy] = {}
    for result in results:
        if isinstance(result, NoisyCuboid):
            measured[result.levels] = result.noisy
        else:
            parts.setdefault(result.levels, []).append(result)
    whole = {levels: Found.concatenate(each) for levels, each in parts.items()}
    noisy = {levels: result.noisy for levels, result in whole.items() if result.noisy is not None}
    return {levels: result.nodes for levels, result in whole.items()}, measured | noisy
