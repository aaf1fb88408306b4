"""What a plan decides for cuboids along a spine: which groups its nodes have, and the model.

A tree with attribute axes has one *spine*, along which a release is cut into jobs. Beside each of
its nodes stand the groups that public facts leave it, and below these their cells
(`hedgerow.estimate.spine.support`). A cube of the spine and one attribute whose shares are a
product is estimated by `hedgerow.estimate.spine.nested.nested`, any other cuboids by
`hedgerow.estimate.spine.marginals.marginals`. Nothing here is confidential.

*Where the spine is cut.* At the deepest level whose cells, with all above, are few enough to be
held at once; consecutive nodes of it are one job, with at least `WORTH_A_JOB` cells. Public
facts alone decide it, so a resumed release has the same jobs and the same noise.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import floor, prod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Codes, Float64, Int32, Int64, Levels
from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.variances import Product
from hedgerow.estimate.intervals import Steps
from hedgerow.estimate.spine.cells import Cells
from hedgerow.estimate.spine.marginals.marginals import Marginals
from hedgerow.estimate.spine.model import Forms, Model
from hedgerow.estimate.spine.nested.nested import Nested
from hedgerow.estimate.spine.part import Part
from hedgerow.estimate.workload.observed import are_two_chains
from hedgerow.kernels import core_count
from hedgerow.limits import MOST_ABOVE_THE_CUT
from hedgerow.plan.design import Work, kept_in_jobs
from hedgerow.plan.joint import TARGETS, Joint, Variances
from hedgerow.plan.placed import Flags

WORTH_A_JOB = 1 << 19
"""Cells of a job, at least: beside them its overhead is small."""
BYTES_A_CELL = 64
"""Of a cell that is held: noise, estimates on the way and made, counts, and as many again."""
SECONDS_A_CELL = 0.6e-6
"""Core seconds of a measured cell: it is drawn twice, estimated and settled."""
UNCUT = 1 << 20
"""Cells of the finest level up to which a spine is not cut."""


@dataclass(frozen=True, eq=False)
class PlannedSpine(Joint):
    """What a plan decides for cuboids along the spine, the first axis.

    Attributes:
        model: what estimates and settles a part of the spine.
        leaves: int32 (detail cells): of each the attribute leaf, all attributes row by row.
        is_free: bool (detail cells): whether no public rule says that nobody is there.
        own_levels: for each cuboid of the workload the levels of the tree's axes, coarse to fine.
        excess: the largest ratio of the variance of wide noise to that of a measured cuboid's.
    """

    seconds_a_cell: ClassVar[float] = SECONDS_A_CELL
    model: Model
    leaves: Int32
    is_free: Flags
    own_levels: Mapping[Levels, Levels]
    excess: float

    @property
    def cuboids(self) -> tuple[Levels, ...]:
        """The cuboids of the workload, each after all that are coarser."""
        return tuple(self.own_levels)

    def levels(self, cuboid: Levels) -> Levels:
        """Return the levels of the tree's axes that a cuboid has: the coarsest of equal ones."""
        return self.own_levels.get(cuboid) or self.shape.first(cuboid)

    # --- jobs -----------------------------------------------------------------------------------

    @cached_property
    def cut(self) -> int:
        """The level of the spine whose nodes are the roots of jobs; its depth where it is uncut."""
        deepest = self.shape.axes[0].depth
        if self.held[-1] <= UNCUT:
            return deepest
        return max(
            (k for k in range(deepest) if sum(self.held[: k + 1]) <= MOST_ABOVE_THE_CUT), default=0
        )

    @cached_property
    def held(self) -> tuple[int, ...]:
        """The number of detail cells at each level of the spine that facts do not rule out."""
        return tuple(int(start[-1]) for start in self.model.support.cell)

    @property
    def bytes_held(self) -> int:
        """The memory that the top and a job a core take."""
        largest = max((self._cells_in(part) for part in self.jobs), default=0)
        at_once = min(len(self.jobs), core_count())
        return BYTES_A_CELL * (sum(self.held[: self.cut + 1]) + at_once * largest)

    @property
    def bytes_read(self) -> int:
        """The memory that all noisy counts of a release take once they are read back."""
        return 8 * sum(map(self.size, self.noise))

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
        own, support = self.shape.axes[0], self.model.support
        if self.cut == own.depth:
            return ()
        below = own.descendant_start(self.cut, own.depth)
        rows = support.start[own.depth][below]
        cells = support.cell_start(own.depth)[rows]
        cuts, begin = [0], 0
        for node in range(1, len(cells) - 1):
            if cells[node] - cells[begin] >= WORTH_A_JOB:
                cuts.append(node)
                begin = node
        nodes = [*cuts, len(cells) - 1]
        return tuple(Part(self.cut, range(a, b), own.depth) for a, b in pairwise(nodes))

    @property
    def cut_at(self) -> Levels | None:
        """The cut of the spine, beside all that is finest."""
        if not self.jobs:
            return None
        return (self.level_of_cut, *self.tree.chain[-1][1:])

    @property
    def level_of_cut(self) -> int:
        """The tree's level of the spine at which it is cut."""
        return self.shape.first((self.cut, *self.shape.total[1:]))[0]

    def job_of(self, part: Part) -> tuple[int, ...]:
        """Return what tells the noise of a part from that of others: nothing, or its first root."""
        return () if part.root < 0 else (part.nodes.start,)

    def ancestors(self, level: int) -> Int32:
        """Return the node of a level above each finest node of the spine: int32 (nodes)."""
        if level not in self._ancestors:
            own = self.shape.axes[0]
            self._ancestors[level] = own.ancestors(own.depth, level).astype(np.int32)
        return self._ancestors[level]

    @cached_property
    def _ancestors(self) -> dict[int, Int32]:
        return {}

    # --- cells ----------------------------------------------------------------------------------

    @cached_property
    def detail_of(self) -> Int32:
        """For each attribute leaf, row by row, the detail cell that it is; -1 for none."""
        finest = prod(axis.sizes[-1] for axis in self.shape.axes[1:])
        found = np.full(finest, -1, dtype=np.int32)
        found[self.leaves] = np.arange(len(self.leaves), dtype=np.int32)
        return found

    def cells(self, cuboid: Levels) -> Cells:
        """Return where the cells of a cuboid lie that public facts do not rule out."""
        return self.model.cells(cuboid)

    def start(self, cuboid: Levels, node: int) -> int:
        """Return how many cells of a cuboid lie before a node's."""
        if cuboid not in self._starts:
            nodes = range(self.shape.axes[0].sizes[cuboid[0]])
            self._starts[cuboid] = self.cells(cuboid).start(nodes)
        return int(self._starts[cuboid][node])

    @cached_property
    def _starts(self) -> dict[Levels, Int64]:
        return {}

    def size(self, cuboid: Levels) -> int:
        """Return how many cells of a cuboid are measured: all that stand in `Cells`.

        Not measured are those of groups that a node does not have. A rule that couples attributes
        empties some of the others, which are measured as marginals need them (`is_open`).
        """
        return self.start(cuboid, self.shape.axes[0].sizes[cuboid[0]])

    def open_cells(self, levels: Levels) -> int:
        """Return how many cells of a cuboid may hold records."""
        cuboid = self.shape.given(levels)
        _, numbers = self.attribute_cells(cuboid)
        reaches = self._reaches(numbers, int(numbers.max(initial=-1)) + 1)
        return self.model.support.count_pairs(cuboid[0], reaches)

    def codes_of(self, cuboid: Levels) -> tuple[Codes, Int64]:
        """Return the cells of a cuboid that public facts do not rule out, row by row.

        Returns:
            For each axis int32 (cells): the node; and int64 (cells): the place of each in the
            order of `Cells`.
        """
        cells, nodes = self.cells(cuboid), range(self.shape.axes[0].sizes[cuboid[0]])
        node, number = cells.located(np.arange(cells.count(nodes)), nodes)
        beside, numbers = self.attribute_cells(cuboid)
        place = np.flatnonzero(self.is_open(cuboid[0], numbers, node, number))
        node, number = node[place], number[place]
        codes = (node.astype(np.int32), *(code[number] for code in beside))
        order = np.lexsort(codes[::-1])
        return tuple(code[order] for code in codes), place[order]

    def is_open(self, level: int, numbers: NDArray[np.integer], node: Int64, sums: Int64) -> Flags:
        """Return of sums of detail cells at nodes whether public facts let anybody be there.

        Args:
            level: of the spine.
            numbers: integers (detail cells): the sum that each belongs to, -1 for none.
            node: int64 (pairs): the node of each sum.
            sums: int64 (pairs): its number.

        Returns:
            bool (pairs).
        """
        support = self.model.support
        reaches = self._reaches(
            numbers, int(max(numbers.max(initial=-1), sums.max(initial=-1))) + 1
        )
        start, found = support.start[level], np.zeros(len(node), dtype=np.bool_)
        owner = np.repeat(np.arange(len(start) - 1), np.diff(start))
        for group in np.flatnonzero(support.widths):
            has = np.zeros(len(start) - 1, dtype=np.bool_)
            has[owner[support.group[level] == group]] = True
            found |= has[node] & reaches[sums, group]
        return found

    def _reaches(self, numbers: NDArray[np.integer], many: int) -> Flags:
        """Return in which groups each sum has a cell that may hold records: (sums, groups)."""
        support, taken = self.model.support, self.is_free & (numbers >= 0)
        group = np.repeat(np.arange(support.groups), support.widths)
        found = np.zeros((many, support.groups), dtype=np.bool_)
        found[numbers[taken], group[taken]] = True
        return found

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
        beside = cuboid[1:]
        if beside not in self._numbered:
            self._numbered[beside] = self._number(cuboid)
        return self._numbered[beside]

    def _number(self, cuboid: Levels) -> tuple[Codes, Int32]:
        cells, support = self.cells(cuboid), self.model.support
        above = support.tree.ancestors(support.tree.depth, cells.coarse)
        first = np.append(0, np.cumsum(cells.width))
        group = np.repeat(np.arange(len(support.widths)), support.widths)
        numbers = np.where(cells.place < 0, -1, first[above[group]] + cells.place).astype(np.int32)
        sizes = [axis.sizes[-1] for axis in self.shape.axes[1:]]
        codes = np.unravel_index(self.leaves, sizes)
        found = []
        for axis, level, code in zip(self.shape.axes[1:], cuboid[1:], codes, strict=True):
            nodes = np.zeros(int(first[-1]), dtype=np.int32)
            nodes[numbers] = axis.ancestors(axis.depth, level)[code]
            found.append(nodes)
        return tuple(found), numbers

    # --- variances ------------------------------------------------------------------------------

    @cached_property
    def _forms(self) -> dict[Levels, "SpineVariances"]:
        return {}

    def variances_of(self, cuboid: Levels) -> "SpineVariances":
        """Return the variances of the cuboids with the attribute levels of one."""
        beside = cuboid[1:]
        if beside not in self._forms:
            codes, numbers = self.attribute_cells(cuboid)
            sizes = [a.sizes[k] for a, k in zip(self.shape.axes[1:], beside, strict=True)]
            number = np.full(prod(sizes), -1, dtype=np.int64)
            used = np.unique(numbers[numbers >= 0])  # others have no detail cell, and no code
            number[np.ravel_multi_index(tuple(code[used] for code in codes), sizes)] = used
            forms = self.model.variances(numbers)
            self._forms[beside] = SpineVariances(forms, number, tuple(sizes))
        return self._forms[beside]

    def wide_mean(self, cuboid: Levels) -> float:
        """Return the mean variance if noise were wide, or a little more (records²).

        Estimates vary the more, the more noise does, and by no more than its largest excess.
        """
        return self.mean(cuboid) * self.excess

    def is_own_noise(self, cuboid: Levels) -> bool:
        """Return whether the estimates of a cuboid are its own noisy counts alone."""
        own = self.noise.get(cuboid)
        return own is not None and self.mean(cuboid) >= own * (1 - 1e-9)

    def is_known(self, cuboid: Levels) -> bool:
        """Return whether a cuboid is a sum of cells that are all measured: every one is."""
        return len(cuboid) == len(self.shape.axes)

    def steps(self, cuboid: Levels) -> Steps | None:
        """Return what bounds the coefficients of estimates; None where none is above 1 - h.

        That is proved of a cube whose nodes all have the same groups, and of the cuboids of two
        chains whoever has which groups (docs/proofs.md, "Intervals").
        """
        known = () if self.public is None else (self.public,)
        if not self._is_whole_cube and not are_two_chains({*self.noise, *known, cuboid}):
            return self.steps_of_sums
        return None if self.is_best else Steps(0.0, is_exact=False)

    @property
    def steps_of_sums(self) -> Steps:
        """What bounds the coefficients of the estimates of any sums of cells."""
        return Steps(min(self.noise.values()), self.is_best)

    @cached_property
    def _is_whole_cube(self) -> bool:
        """Whether shares are a product and every node has every group that any node has."""
        group = self.model.support.group[-1]
        nodes = self.shape.axes[0].sizes[-1]
        return isinstance(self.model, Nested) and len(group) == nodes * len(np.unique(group))

    @property
    def is_best(self) -> bool:
        """Whether the noise has the variances of its weights: stated ones are then exact."""
        return not isinstance(self.model, Nested) or self.model.is_exact

    @property
    def ways(self) -> str:
        """How cuboids are estimated, and what the stated errors are, in a sentence."""
        errors = "exact"
        if isinstance(self.model, Nested) and not self.is_best:
            least = 100 * float(self.model.ratios.min() / self.model.excess) ** 0.5
            errors = f"at most those stated, and at least {floor(least)} % of them"
        return f"Cuboids are estimated together along the spine, and their errors are {errors}."

    @property
    def kept(self) -> str:
        """What is held in memory at once, and in how many jobs, in a sentence."""
        if not self.jobs:
            return super().kept
        level = self.level_of_cut
        below = self.tree.axes[0].levels[level - 1] if level else "the total"
        return kept_in_jobs(len(self.jobs), below, "one for each core")

    @property
    def remarks(self) -> str:
        """That some settled sums are kept nearly: those of marginals that do not nest."""
        return TARGETS if isinstance(self.model, Marginals) else ""

    def each(self, cuboid: Levels) -> Float64:
        """Return the variances of all cells of a cuboid that public facts do not rule out."""
        return self.variances_at(cuboid, self.codes_of(cuboid)[0])

    def below_margins(self, cuboid: Levels, alive: Mapping[Levels, int]) -> int:
        """Return all cells: none is measured at survivors."""
        del alive
        return self.size(cuboid)

    def rows(self, records: int, expected: Work) -> int:
        """Return how many rows are read: cells with records are about as rare in the release."""
        return min(records, self.open_cells(self.tree.chain[-1]), expected.survivors[-1])


@dataclass(frozen=True, slots=True, eq=False)
class SpineVariances(Variances):
    """The variances of the cuboids that have some attribute levels, at every level of the spine.

    Attributes:
        forms: of the model.
        number: int64 (attribute cells, row by row): the number of each, -1 where nobody can be.
        sizes: of the attributes at these levels.
    """

    has_covariances: ClassVar[bool] = False
    forms: Forms
    number: Int64
    sizes: tuple[int, ...]

    def mean(self, cuboid: Levels) -> float:
        """Return the mean over the cells that public facts do not rule out."""
        return self.forms.mean(cuboid[0])

    def largest(self, cuboid: Levels) -> float:
        """Return the largest one."""
        return self.forms.largest(cuboid[0])

    def of_cells(self, cuboid: Levels) -> Float64:
        """Raise: most cells of so large a table are ruled out."""
        del cuboid
        raise EstimateError("variances along a spine are those of listed cells")

    def at(self, cuboid: Levels, codes: Codes) -> Float64:  # type: ignore[override]
        """Return those of listed cells: float64 (cells); 0 where nobody can be."""
        flat = np.ravel_multi_index(tuple(c.astype(np.int64) for c in codes[1:]), self.sizes)
        number = self.number[flat]
        there = number >= 0
        found = np.zeros(len(number))
        found[there] = self.forms.at(cuboid[0], codes[0][there].astype(np.int64), number[there])
        return found

    def covariance(self, first: Product, second: Product) -> float:
        """Raise: covariances between nodes of a spine are not kept."""
        del first, second
        raise EstimateError("covariances of estimates along a spine are not kept")
