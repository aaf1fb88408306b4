"""The pass over a cube: measure whole cuboids, settle them, and measure survivors below them.

1. Every cuboid that is measured whole is one dense table, in row-major order of its axes' nodes,
   with noise of its own stream.
2. They are summed up from fine to coarse (`hedgerow.estimate.cube.estimates.upward`) and settled
   from coarse to fine to whole counts that add up (`hedgerow.estimate.cube.settle`).
3. Of the other cuboids, which have too many cells, those cells are measured all of whose settled
   margins are positive (`hedgerow.estimate.workload.sparse`), and settled below these margins.
   Only released counts decide which cells these are, so the composition is adaptive, and sound.
4. Unbiased estimates stand beside the counts: least squares over each box of cuboids that are
   measured whole (`hedgerow.plan.cube.Box`), and the noisy counts as they are of survivors.

Everything after the noise is post-processing. The tables are held in memory whole; a run that was
killed starts again with the same key and draws the same noise.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np

from hedgerow.arrays import Float64
from hedgerow.estimate.cube.blocks import Counts
from hedgerow.estimate.cube.estimates import least_squares, upward
from hedgerow.estimate.cube.settle import settle
from hedgerow.estimate.cube.shape import Cuboid, coarser, is_within
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.workload.sparse import Listed, survivors_below
from hedgerow.plan.cube import PlannedCube
from hedgerow.plan.plan import Plan
from hedgerow.release.descent.jobs import Progress
from hedgerow.release.descent.nodes import Nodes
from hedgerow.release.descent.outline import Found, NoisyCuboid
from hedgerow.release.descent.source import Drawn, Stored
from hedgerow.tables.tree import Levels

Tables = dict[Cuboid, Float64]

NOTHING = Nodes.exact((), np.empty(0, dtype=np.int64))
MEASURED, SETTLED = 0.5, 0.75
"""Parts of the work that are done once all is measured, and once all is settled."""


@dataclass(frozen=True, eq=False)
class CubePass:
    """One run of the pass over a cube.

    Attributes:
        plan: what to measure.
        source: the table and the bits, or noisy counts that were written down.
        estimator: named in the manifest; a cube is settled by `hedgerow.estimate.cube.settle`.
        progress: callbacks.
    """

    plan: Plan
    source: Drawn | Stored
    estimator: Estimator
    progress: Progress = field(default_factory=Progress)

    @property
    def _cube(self) -> PlannedCube:
        return self.plan.cube

    def results(self) -> Iterator[Found | NoisyCuboid]:
        """Yield noisy counts of whole cuboids as they are measured, then every cuboid's counts."""
        tables: Tables = {}
        exact: dict[Cuboid, Counts] = {}
        yield from self._measured(tables, exact)
        self.progress.on_fraction(MEASURED)
        began = perf_counter()
        estimates = self._estimates(tables)
        counts = self._settled(tables, exact)
        tables.clear()
        seconds = (perf_counter() - began) / len(counts)
        self.progress.on_fraction(SETTLED)
        sparse: dict[Cuboid, Listed] = {}
        again: dict[Levels, Nodes] = dict.fromkeys(self.plan.repeats.values(), NOTHING)
        for levels in self.plan.levels:
            cuboid = self._cube.shape.given(levels)
            if levels in self.plan.repeats:
                found = Found(levels, again[self.plan.repeats[levels]], None)
            elif cuboid in self._cube.whole:
                nodes = self._nodes(cuboid, counts[cuboid], estimates.pop(cuboid))
                found = Found(levels, nodes, None, seconds)
            else:
                found = self._survivors(cuboid, counts, sparse)
            if levels in again:
                again[levels] = found.nodes
            yield self._told(found)
        self.progress.on_fraction(1.0)

    def estimates(self) -> Tables:
        """Return the unbiased estimates of all cells of the cuboids that are measured whole."""
        tables: Tables = {}
        for _ in self._measured(tables, {}):
            pass
        return self._estimates(tables)

    def _told(self, found: Found) -> Found:
        cells = 0 if found.noisy is None else len(found.noisy)
        name = self.plan.tree.name_of(found.levels)
        self.progress.on_cuboid(name, cells, len(found.nodes), found.seconds)
        return found

    def _measured(self, tables: Tables, exact: dict[Cuboid, Counts]) -> Iterator[NoisyCuboid]:
        """Yield the noisy counts of each whole cuboid, and fill both kinds of tables."""
        cube = self._cube
        cells = {c: cube.shape.cells(c) for c in cube.shape.cuboids() if c in cube.whole}
        whole, done = sum(cells.values()), 0
        for cuboid, size in cells.items():
            levels, began = cube.levels(cuboid), perf_counter()
            if self.plan.is_public(levels):
                exact[cuboid] = self.source.exact(levels).reshape(cube.shape.shape(cuboid))
                tables[cuboid] = exact[cuboid].astype(np.float64)
            elif cuboid in cube.noise:
                noisy = self.source.table(levels)
                self.progress.on_cells(size)
                seconds = perf_counter() - began
                self.progress.on_cuboid(self.plan.tree.name_of(levels), size, 0, seconds)
                yield NoisyCuboid(levels, noisy)
                tables[cuboid] = noisy.astype(np.float64).reshape(cube.shape.shape(cuboid))
            else:
                tables[cuboid] = np.zeros(cube.shape.shape(cuboid))
            done += size
            self.progress.on_fraction(MEASURED * done / whole)

    def _settled(self, tables: Tables, exact: Mapping[Cuboid, Counts]) -> dict[Cuboid, Counts]:
        """Return the whole counts of the cuboids that are measured whole; overwrites the tables."""
        cube = self._cube
        upward(cube.squares, tables)
        return settle(cube.squares, tables, exact)

    def _estimates(self, tables: Tables) -> Tables:
        """Return the unbiased estimates of the cuboids that are measured whole."""
        cube, found = self._cube, Tables()
        for box in cube.boxes:
            inside = {c: table.copy() for c, table in tables.items() if is_within(c, box.finest)}
            least_squares(box.squares, inside, box.public)
            found |= {c: table for c, table in inside.items() if cube.box_of[c] is box}
            inside.clear()
        return found

    def _nodes(self, cuboid: Cuboid, counts: Counts, estimates: Float64) -> Nodes:
        """Return the cells with a positive count, row by row, with their estimates."""
        codes = tuple(each.astype(np.int32) for each in np.nonzero(counts > 0))
        if self.plan.is_public(self._cube.levels(cuboid)):
            return Nodes.exact(codes, counts[codes])
        variance = self._cube.variances_at(cuboid, codes)
        return Nodes(codes, counts[codes], estimates[codes], variance)

    def _survivors(
        self, cuboid: Cuboid, counts: Mapping[Cuboid, Counts], sparse: dict[Cuboid, Listed]
    ) -> Found:
        """Return the cuboid's noisy counts below positive margins, and its counts."""
        cube, began = self._cube, perf_counter()
        covers = coarser(cuboid, 0), coarser(cuboid, 1)
        margins = {c: sparse[c] if c in sparse else counts[c] for c in covers}
        survivors = survivors_below(cube.shape, cuboid, covers, margins)
        levels = cube.levels(cuboid)
        noisy = self.source.cells(levels, survivors)
        self.progress.on_cells(survivors.cells)
        settled = survivors.settle(noisy.astype(np.float64))
        kept = np.flatnonzero(settled)
        codes = survivors.nodes(kept)
        order = np.lexsort(codes[::-1])
        codes, kept = tuple(code[order] for code in codes), kept[order]
        sparse[cuboid] = codes, settled[kept]
        variance = np.full(len(kept), cube.noise[cuboid])
        nodes = Nodes(codes, settled[kept], noisy[kept].astype(np.float64), variance)
        return Found(levels, nodes, noisy, perf_counter() - began)
