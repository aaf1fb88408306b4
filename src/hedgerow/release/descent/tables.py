"""The pass over cuboids that are estimated together: all of a cube, or those that are named.

1. Every cuboid that is measured whole is one dense table, in row-major order of its axes' nodes,
   with noise of its own stream.
2. They are estimated together by least squares, and settled from coarse to fine to whole counts
   that add up (`hedgerow.plan.tables` says how).
3. Of the other cuboids, which have too many cells, those cells are measured all of whose settled
   margins are positive (`hedgerow.estimate.workload.sparse`), and settled below these margins.
   Only released counts decide which cells these are, so the composition is adaptive, and sound.
4. Unbiased estimates stand beside the counts: those of least squares, and the noisy counts as they
   are of survivors.

Everything after the noise is post-processing. The tables are held in memory whole; a run that was
killed starts again with the same key and draws the same noise.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import cast

import numpy as np

from hedgerow.arrays import Int64, IntTables, Levels, Tables, float64, int32, row_by_row
from hedgerow.estimate.cube.shape import is_within, summed
from hedgerow.estimate.workload.sparse import Listed, survivors_below
from hedgerow.plan.tables import PlannedTables
from hedgerow.release.descent.jobs import PlannedFlow, Told, Top
from hedgerow.release.descent.layouts import Below, EveryCell
from hedgerow.release.descent.nodes import Found, Nodes, NoisyCuboid
from hedgerow.release.descent.source import Stored

MEASURED, SETTLED = 0.5, 0.75
"""Parts of the work that are done once all is measured, and once all is settled."""


@dataclass(frozen=True, eq=False)
class TablesFlow(PlannedFlow[PlannedTables]):
    """What tables do with noisy counts, at once."""

    def top(self, from_below: Told) -> Top:
        """Yield noisy counts of whole cuboids as they are measured, then every cuboid's counts."""
        del from_below
        joint = self.design
        tables = Tables()
        exact: IntTables = {}
        yield from self._measured(tables, exact)
        self.progress.on_fraction(MEASURED)
        began = perf_counter()
        estimates = joint.estimates(tables)
        counts = joint.settled(tables, estimates, exact)
        tables.clear()
        seconds = (perf_counter() - began) / len(counts)
        self.progress.on_fraction(SETTLED)
        sparse: dict[Levels, Listed] = {}

        def found(levels: Levels) -> Found:
            cuboid = joint.shape.given(levels)
            if cuboid not in joint.whole:
                return self._survivors(levels, counts, sparse)
            settled = counts[cuboid]
            estimate = estimates.pop(cuboid)
            codes = tuple(int32(each) for each in np.nonzero(settled > 0))
            variance = joint.variances_at(cuboid, codes)
            return Found(
                levels, Nodes(codes, settled[codes], estimate[codes], variance), None, seconds
            )

        yield from self.each_found(self.plan.levels, found)
        return None

    def estimates(self, wanted: Iterable[Levels]) -> Tables:
        """Return the unbiased estimates of all cells of some cuboids.

        Stored counts keep those of all that is settled, solved once; what else is asked of them is
        summed from these.

        Args:
            wanted: which, each of them a sum of cells that are all measured.
        """
        shape = self.design.shape
        estimates = Tables()
        solved = self.source.solved if isinstance(self.source, Stored) else Tables()
        if not solved:
            tables = Tables()
            for _ in self._measured(tables, {}):
                pass
            solved |= self.design.estimates(tables)
        for cuboid in wanted:
            finer = min((c for c in solved if is_within(cuboid, c)), key=shape.cells)
            estimates[cuboid] = summed(shape, solved[finer], finer, cuboid)
        return estimates

    def _measured(self, tables: Tables, exact: IntTables) -> Iterator[NoisyCuboid]:
        """Yield the noisy counts of each whole cuboid, and fill both kinds of tables."""
        joint = self.design
        cells = {c: joint.shape.cells(c) for c in joint.cuboids if c in joint.whole}
        whole = sum(cells.values())
        done = 0
        for cuboid, size in cells.items():
            levels = joint.levels(cuboid)
            began = perf_counter()
            if self.plan.is_public(levels):
                exact[cuboid] = self.source.exact(levels).reshape(joint.shape.shape(cuboid))
                tables[cuboid] = float64(exact[cuboid])
            elif cuboid in joint.noise:
                noisy = cast("Int64", self.source.noisy(levels, EveryCell(self.plan.tree, levels)))
                self.progress.on_cells(size)
                yield NoisyCuboid(levels, noisy, perf_counter() - began)
                tables[cuboid] = float64(noisy).reshape(joint.shape.shape(cuboid))
            done += size
            self.progress.on_fraction(MEASURED * done / whole)

    def _survivors(self, levels: Levels, counts: IntTables, sparse: dict[Levels, Listed]) -> Found:
        """Return a cuboid's noisy counts below positive margins, and its counts."""
        joint = self.design
        began = perf_counter()
        cuboid = joint.shape.given(levels)
        margins = {
            cover: sparse[cover] if cover in sparse else counts[cover]
            for cover in joint.margins[cuboid]
        }
        survivors = survivors_below(joint.shape, cuboid, joint.margins[cuboid], margins)
        noisy = cast("Int64", self.source.noisy(levels, Below(levels, survivors)))
        self.progress.on_cells(survivors.cells)
        settled = survivors.settle(float64(noisy))
        kept = np.flatnonzero(settled)
        codes, order = row_by_row(survivors.nodes(kept))
        kept = kept[order]
        sparse[cuboid] = codes, settled[kept]
        variance = joint.variances_at(cuboid, codes)
        nodes = Nodes(codes, settled[kept], float64(noisy[kept]), variance)
        return Found(levels, nodes, noisy, perf_counter() - began)
