"""What a plan decides for cuboids along a spine: which groups its nodes have, and the model.

A tree with attribute axes has one *spine*, along which a release is cut into jobs; that of a large
cube is its first axis. Beside each of its nodes stand the groups that public facts leave it, and
below these their cells (`hedgerow.estimate.spine.support`). A cube of the spine and one attribute
whose shares are a product is estimated by `hedgerow.estimate.spine.nested.nested`, any other
cuboids by `hedgerow.estimate.spine.marginals`. Nothing here is confidential.

*Where the spine is cut.* At the deepest level whose cells, with all above, are few enough to be
held at once; consecutive nodes of it are one job, with at least `WORTH_A_JOB` cells. Public
facts alone decide it, so a resumed release has the same jobs and the same noise.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod

import numpy as np

from hedgerow.arrays import Codes, Int32, Levels, Sizes, int32
from hedgerow.estimate.cube.shape import CubeShape
from hedgerow.estimate.spine.cells import Cells
from hedgerow.estimate.spine.model import Model
from hedgerow.estimate.spine.support import Part
from hedgerow.kernels import core_count
from hedgerow.limits import MOST_ABOVE_THE_CUT

WORTH_A_JOB = 1 << 19
"""Cells of a job, at least: beside them its overhead is small."""
BYTES_A_CELL = 64
"""Of a cell that is held: noise, estimates on the way and made, counts, and as many again."""
UNCUT = 1 << 20
"""Cells of the finest level up to which a spine is not cut."""


def is_cut(cells: int) -> bool:
    """Return whether a spine with so many finest cells is cut into jobs."""
    return cells > UNCUT


@dataclass(frozen=True, eq=False)
class Spine:
    """How cuboids go along the spine, the first axis: in which jobs, and where their cells are.

    Attributes:
        shape: how the levels of all axes nest.
        model: what estimates and settles a part of the spine.
    """

    shape: CubeShape
    model: Model

    # --- jobs -----------------------------------------------------------------------------------

    @cached_property
    def cut(self) -> int:
        """The level of the spine whose nodes are the roots of jobs; its depth where it is uncut."""
        deepest = self.shape.axes[0].depth
        if not is_cut(self.held[-1]):
            return deepest
        return max(
            (k for k in range(deepest) if sum(self.held[: k + 1]) <= MOST_ABOVE_THE_CUT), default=0
        )

    @cached_property
    def held(self) -> Sizes:
        """The number of detail cells at each level of the spine that facts do not rule out."""
        return tuple(int(start[-1]) for start in self.model.support.cell)

    @property
    def bytes_held(self) -> int:
        """The memory that the top and a job a core take."""
        top, largest = self._cells_held
        return BYTES_A_CELL * (top + min(len(self.jobs), core_count()) * largest)

    @property
    def largest_held(self) -> int:
        """The cells of the top and of the largest job: what is held at once, of one job."""
        return sum(self._cells_held)

    @property
    def _cells_held(self) -> tuple[int, int]:
        """The cells of the top, and of the largest job."""
        top = sum(self.held[: self.cut + 1])
        return top, max(map(self._cells_in, self.jobs), default=0)

    def _cells_in(self, part: Part) -> int:
        support = self.model.support
        return sum(support.cells(level, support.nodes(part, level)) for level in part.levels)

    @property
    def top(self) -> Part:
        """The part of the spine from its root to the cut."""
        return Part.top(self.cut)

    @cached_property
    def jobs(self) -> tuple[Part, ...]:
        """The parts below the cut, in order."""
        own = self.shape.axes[0]
        support = self.model.support
        if self.cut == own.depth:
            return ()
        below = own.descendant_start(self.cut, own.depth)
        rows = support.start[own.depth][below]
        cells = support.cell[own.depth][rows]
        cuts, begin = [0], 0
        for node in range(1, len(cells) - 1):
            if cells[node] - cells[begin] >= WORTH_A_JOB:
                cuts.append(node)
                begin = node
        nodes = [*cuts, len(cells) - 1]
        return tuple(Part(self.cut, range(a, b), own.depth) for a, b in pairwise(nodes))

    @property
    def level_of_cut(self) -> int:
        """The tree's level of the spine at which it is cut."""
        return self.shape.first((self.cut, *self.shape.total[1:]))[0]

    def ancestors(self, level: int) -> Int32:
        """Return the node of a level above each finest node of the spine: int32 (nodes)."""
        if level not in self._ancestors:
            own = self.shape.axes[0]
            self._ancestors[level] = int32(own.ancestors(own.depth, level))
        return self._ancestors[level]

    @cached_property
    def _ancestors(self) -> dict[int, Int32]:
        return {}

    # --- cells ----------------------------------------------------------------------------------

    @cached_property
    def leaves(self) -> Int32:
        """Of each detail cell the attribute leaf, all attributes row by row: int32."""
        return self.model.leaves

    @cached_property
    def detail_of(self) -> Int32:
        """For each attribute leaf, row by row, the detail cell that it is; -1 for none."""
        finest = prod(axis.sizes[-1] for axis in self.shape.axes[1:])
        numbers = np.full(finest, -1, dtype=np.int32)
        numbers[self.leaves] = np.arange(len(self.leaves), dtype=np.int32)
        return numbers

    def job_of(self, part: Part) -> Sizes:
        """Return what tells the noise of a part from that of others of the same cuboid.

        Nothing: a part's cells are a stretch of the cuboid's, and of its stream.
        """
        del part
        return ()

    def cells(self, cuboid: Levels) -> Cells:
        """Return where the cells of a cuboid lie that public facts do not rule out."""
        return self.model.cells(cuboid)

    def start(self, cuboid: Levels, node: int) -> int:
        """Return how many cells of a cuboid lie before a node's."""
        return int(self.cells(cuboid).starts[node])

    def is_row_by_row(self, cuboid: Levels) -> bool:
        """Return whether `Cells` has the cells of a node in the order of the attributes' nodes."""
        codes, _ = self.attribute_cells(cuboid)
        sizes = [a.sizes[k] for a, k in zip(self.shape.axes[1:], cuboid[1:], strict=True)]
        return bool((np.diff(np.ravel_multi_index(codes, sizes)) > 0).all())

    @cached_property
    def _numbered(self) -> dict[Levels, tuple[Codes, Int32]]:
        return {}

    def attribute_cells(self, cuboid: Levels) -> tuple[Codes, Int32]:
        """Return the attribute cells of a cuboid in the order of `Cells`, and each detail cell's.

        Returns:
            For each attribute int32 (attribute cells): the node; and int32 (detail cells): the
            number of the attribute cell, -1 for none.
        """
        levels = cuboid[1:]
        if levels not in self._numbered:
            self._numbered[levels] = self._number(cuboid)
        return self._numbered[levels]

    def codes_of_leaves(self, cuboid: Levels) -> Codes:
        """Return for each attribute the node of a cuboid's level that every detail cell is below.

        Returns:
            For each attribute int32 (detail cells).
        """
        axes = self.shape.axes[1:]
        codes = np.unravel_index(self.leaves, [axis.sizes[-1] for axis in axes])
        each = zip(axes, cuboid[1:], codes, strict=True)
        return tuple(int32(axis.ancestors(axis.depth, k)[code]) for axis, k, code in each)

    def _number(self, cuboid: Levels) -> tuple[Codes, Int32]:
        cells = self.cells(cuboid)
        codes = []
        numbers = cells.numbers
        for code in self.codes_of_leaves(cuboid):
            codes.append(np.zeros(int(cells.width.sum()), dtype=np.int32))
            codes[-1][numbers] = code
        return tuple(codes), numbers
