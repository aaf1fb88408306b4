"""What estimates along a spine: separable models, which the pass and the plan work with.

A model knows which cuboids are measured with what noise, and turns the noisy tables of one part of
the spine after the other into estimates and whole counts. Parts below a level of the spine are
asked first what they say of their roots (`Upward.root_sums`); these tables, one behind the other
in the order of the nodes, are what the top is told of its last level; and what the top settles
there is what each part below is given.

*Separable.* A transform takes the cells of a row (a node and one of its groups) to coordinates that
fall into components, each independent of the others at all nodes: so each is estimated by itself
(`hedgerow.estimate.spine.component`), and the transform taken back. Nothing is summed over what a
node does not have, so zeros along the groups cost nothing.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import (
    ByCuboid,
    ByLevel,
    Float64,
    Int32,
    Int64,
    Levels,
    OfCuboids,
    run_starts,
    run_sums,
    runs,
    starts_within,
)
from hedgerow.declared import frozen
from hedgerow.errors import EstimateError
from hedgerow.estimate.spine.cells import Cells
from hedgerow.estimate.spine.component import Component
from hedgerow.estimate.spine.forms import Forms
from hedgerow.estimate.spine.support import Part, Support

EQUAL = 1e-6
"""How far ratios of variances may be apart, relative, that count as one."""

Number = TypeVar("Number", np.int64, np.float64)


@frozen(eq=False)
class Upward:
    """What the noisy tables of a part say.

    Attributes:
        said: for each component and each level of the part float64: z of its rows.
        root_sums: float64: all that the part says of its roots, row by row the sums over their
            children, of each component in turn, so that tables of neighbouring parts may be put one
            behind the other; empty for the top.
    """

    said: tuple[Mapping[int, Float64], ...]
    root_sums: Float64


@dataclass(frozen=True, eq=False)
class Model(ABC):
    """Best linear unbiased estimates and whole counts along a spine.

    Attributes:
        support: which nodes have which groups, and the detail layout.
        measured: the noise variance of each measured cuboid, records².
        total_known: whether the number of records at the root is public.
        components: those into which the coordinates of a row fall.
    """

    support: Support
    measured: OfCuboids
    total_known: bool
    components: tuple[Component, ...]

    @property
    @abstractmethod
    def leaves(self) -> Int32:
        """Of each detail cell the attribute leaf, all attributes row by row: int32."""

    @property
    def ratios(self) -> Float64:
        """Of each measured cuboid its noise variance over the one that is its weight."""
        return np.ones(len(self.measured))

    @property
    def excess(self) -> float:
        """The largest ratio of a true noise variance to the one that is its weight."""
        return float(self.ratios.max())

    @property
    def is_exact(self) -> bool:
        """Whether these ratios are all one, so that variances are exact and no bounds."""
        return float(self.ratios.min()) >= self.excess * (1 - EQUAL)

    def cells(self, key: Levels) -> Cells:
        """Return the cells of a cuboid, measured or not."""
        if key not in self._cache:
            self._cache[key] = self._made_cells(key)
        return self._cache[key]

    @cached_property
    def _cache(self) -> dict[Levels, Cells]:
        return {}

    # --- the transform --------------------------------------------------------------------------

    @abstractmethod
    def _made_cells(self, key: Levels) -> Cells:
        """Return the cells of a cuboid."""

    @abstractmethod
    def _weighted(self, level: int, nodes: range, noisy: ByCuboid) -> Sequence[Float64]:
        """Return h of some nodes of a measured level, of each component."""

    @abstractmethod
    def _apart(self, group: Int32, detail: Float64) -> Sequence[Float64]:
        """Return the coordinates of rows of some groups, of each component."""

    @abstractmethod
    def _together(self, group: Int32, coordinates: Sequence[Float64]) -> Float64:
        """Return the cells of rows of some groups; the coordinates may be overwritten."""

    @abstractmethod
    def _weights(self, labels: Int32) -> tuple[Int64, Sequence[Float64]]:
        """Return what sums of cells weigh of each component; see `Forms.of`."""

    @abstractmethod
    def settler(self, key: Levels) -> str:
        """Return which way makes the counts of a cuboid whole: families, blocks or fit."""

    @abstractmethod
    def _settled_root(self, upward: Upward, total: int | None) -> Int64:
        """Return the whole counts of the spine's root."""

    @abstractmethod
    def _settled(self, part: Part, level: int, upward: Upward, above: Int64) -> Int64:
        """Return the whole counts of a level of a part, given those of the level above it."""

    # --- estimates ------------------------------------------------------------------------------

    def up(self, part: Part, noisy: ByCuboid, below: Float64 | None = None) -> Upward:
        """Return what the noisy tables of a part say.

        Args:
            part: a part of the spine.
            noisy: for each measured cuboid of the part's levels float64 (cells of `Cells.start`).
            below: for a part that does not reach the deepest level what the parts below it say of
                the nodes of its last level.

        Raises:
            EstimateError: a table is missing, of another type or length, or not finite.
        """
        measured = {key[0] for key in self.measured}
        own = {
            level: self._weighted(level, self.support.nodes(part, level), noisy)
            for level in part.levels
            if level in measured
        }
        under: list[Float64 | None] = [None] * len(self.components)
        if part.last < self.support.spine.depth:
            places = self._places(part, part.last)
            expected = sum(map(len, places))
            if below is None or below.shape != (expected,):
                raise EstimateError(
                    f"what parts below say must be {expected} numbers here, got "
                    f"{'none' if below is None else below.shape}"
                )
            under = [below[place] for place in places]
        said = tuple(
            component.up(part, {level: tables[i] for level, tables in own.items()}, under[i])
            for i, component in enumerate(self.components)
        )
        if part.is_top:
            return Upward(said, np.zeros(0))
        places = self._places(part, part.root)
        root_sums = np.empty(sum(map(len, places)))
        for component, place, z in zip(self.components, places, said, strict=True):
            root_sums[place] = component.root_sums(part, z)
        return Upward(said, root_sums)

    def _places(self, part: Part, level: int) -> list[Int64]:
        """Return where the coordinates of each component stand in what is told of a level."""
        group = self.support.group[level][self.support.part_rows(part, level)]
        widths = [component.width[group] for component in self.components]
        first = run_starts(np.sum(widths, axis=0))[:-1]
        return [
            runs(first + before, width)
            for before, width in zip(
                np.cumsum([0 * first, *widths[:-1]], axis=0), widths, strict=True
            )
        ]

    def estimates(
        self, part: Part, upward: Upward, above: Float64 | None, total: float | None = None
    ) -> ByLevel:
        """Return the best linear unbiased estimates of every level of a part.

        Args:
            part: a part of the spine.
            upward: what its noisy tables say, as `up` of the same model returned it.
            above: the estimates of its roots, detail layout; None for the top.
            total: for the top the number of records, where it is public.

        Returns:
            For each level float64, detail layout, records.

        Raises:
            EstimateError: the estimates of the roots are missing or of another length; a total is
                given that is not known, or not given although it is.
        """
        roots: Sequence[Float64 | None] = [None] * len(self.components)
        if (given := self._roots(part, above, total, np.float64)) is not None:
            rows = self.support.part_rows(part, part.root)
            roots = self._apart(self.support.group[part.root][rows], given)
        every = zip(self.components, upward.said, roots, strict=True)
        coordinates = [component.down(part, z, root, total) for component, z, root in every]
        return {
            level: self._together(
                self.support.group[level][self.support.part_rows(part, level)],
                [x.pop(level) for x in coordinates],
            )
            for level in part.levels
        }

    def settle(
        self, part: Part, upward: Upward, above: Int64 | None, total: int | None = None
    ) -> dict[int, Int64]:
        """Return whole counts of every level of a part.

        Args:
            part: a part of the spine.
            upward: what its noisy tables say, as `up` of the same model returned it.
            above: the counts of its roots, int64, detail layout; None for the top.
            total: for the top the number of records, where it is public.

        Returns:
            For each level int64, detail layout, records: every cell's sum over the children is the
            parent's, every group is within its bounds.

        Raises:
            EstimateError: as `estimates`; counts or a total outside public bounds.
        """
        by_level = {}
        counts = self._roots(part, above, total, np.int64)
        if counts is not None:
            here = self.support
            root = part.root
            rows = here.part_rows(part, root)
            sums = run_sums(counts, starts_within(here.cell[root], rows))
            low = here.low[root][rows]
            high = here.high[root][rows]
            if (counts < 0).any() or (sums < low).any() or (sums > high).any():
                raise EstimateError("the counts of a part's roots must not break public bounds")
        for level in part.levels:
            if counts is None:
                counts = self._settled_root(upward, total)
            else:
                counts = self._settled(part, level, upward, counts)
            by_level[level] = counts
        return by_level

    def _roots(
        self, part: Part, above: NDArray[Number] | None, total: float | None, kind: type[Number]
    ) -> NDArray[Number] | None:
        """Return what is given of a part's roots; None for the top, whose root has none above.

        Raises:
            EstimateError: a total is not given exactly where it is known, or cells are missing.
        """
        if part.is_top:
            if (total is not None) != self.total_known:
                raise EstimateError("a total must be given where, and only where, it is public")
            return None
        expected = self.support.cells(part.root, part.nodes)
        if above is None or above.shape != (expected,) or above.dtype != kind:
            raise EstimateError(f"a part below the top needs the {expected} cells of its roots")
        return above

    def variances(self, labels: Int32) -> Forms:
        """Return the variances of the estimates of sums of detail cells.

        Args:
            labels: int32 (detail cells of all groups): the number of the sum that each detail cell
                belongs to, -1 for none; any partial partition.

        Returns:
            Exact variances where the noise has the variances that are the weights; else upper
            bounds, larger by a factor of at most the spread of their ratios. Of a sum of all cells
            there are, at nodes that have them all, 0 exactly where the total is known.

        Raises:
            EstimateError: another number of labels, or none from 0 on.
        """
        if len(labels) != (cells := int(self.support.widths.sum())) or not (labels >= 0).any():
            raise EstimateError(f"each of {cells} detail cells needs a label, one from 0")
        keys, weights = self._weights(labels)
        parts = list(zip(self.components, weights, strict=True))
        return Forms.of(self.support, keys, parts, self.excess, self._whole(labels))

    def _whole(self, labels: Int32) -> int:
        """Return the label of all cells there are, if they have one and the total is known."""
        support = self.support
        used = self.support.group[0]
        own = labels[runs(support.offset[used], support.widths[used])]
        return int(own[0]) if self.total_known and (own == own[0]).all() else -1

    def table(self, key: Levels, nodes: range, noisy: ByCuboid) -> Float64:
        """Return the noisy table of a cuboid at some nodes.

        Raises:
            EstimateError: it is missing, of another type or length, or not finite.
        """
        size = self.cells(key).count(nodes)
        table = noisy.get(key)
        if table is None or table.shape != (size,) or table.dtype != np.float64:
            raise EstimateError(
                f"cuboid {key} needs a float64 table of {size} cells, got "
                f"{'none' if table is None else f'{table.dtype} of the shape {table.shape}'}"
            )
        if not np.isfinite(table).all():
            raise EstimateError(f"the noisy table of cuboid {key} must be finite")
        return table
