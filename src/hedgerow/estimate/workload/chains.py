"""Least squares along one chain of nested cuboids that ends in a table, and their covariance.

A chain is c_0 < c_1 < … < c_p = T, each a coarsening of the next, cuboid k measured with variance
v_k; c_0 may be public, v_0 = 0. A cell of cuboid k is the parent of the cells of cuboid k + 1 that
lie in it, and each cell of c_0 is a root: a forest, solved by two passes. Write, for a cell and
from its own subtree alone, z for its best estimate, u for the variance of z and S = Σ u over its
children:

    up:    u = 1 / (1/v + 1/S),  z = (u/v) x + (u/S) Σ z_child        (in the table u = v, z = x)
    down:  y_child = z_child + (u_child / S) (y_parent - Σ z)         (at a root y = z)

*The table is never touched.* Its u is the number v_p, so the last step down moves all n cells of a
family by the same (y_parent - Σ x) / n: the estimates are x + S_{p-1}ᵀ g, with g a table of c_{p-1}
that follows from the sums Σ x alone. With C the covariance of the estimates, C b is what least
squares makes of the measurements x_T = v_p b and 0 elsewhere, so

    C Σ_d S_dᵀ w_d  =  Σ_d S_dᵀ (v_p w_d)  +  S_{p-1}ᵀ g :

C takes vectors of this form, a few tables of coarser cuboids, to vectors of this form.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from hedgerow.arrays import ByCuboid, CuboidList, Float64, FloatArrays, Levels
from hedgerow.declared import frozen
from hedgerow.estimate.cube.shape import (
    CubeShape,
    cells_below,
    fineness,
    is_within,
    join,
    meet,
    spread,
    summed,
)
from hedgerow.estimate.workload.observed import Observed
from hedgerow.estimate.workload.overlap import Layers


@frozen(eq=False)
class Chain:
    """The least squares of nested cuboids, each measured; the first may be public.

    Attributes:
        shape: how the levels nest.
        cuboids: c_0 … c_p, the last is the table.
        variances: v_0 … v_p; v_0 = 0 where c_0 is public.
        combined: for each cuboid but the last float64 (cells along each axis): u.
        family: for each cuboid but the last float64 (cells along each axis): S.
    """

    shape: CubeShape
    cuboids: CuboidList
    variances: tuple[float, ...]
    combined: FloatArrays
    family: FloatArrays

    @classmethod
    def of(cls, shape: CubeShape, cuboids: Sequence[Levels], variances: Sequence[float]) -> "Chain":
        """Return the least squares of nested cuboids, coarse to fine, from their variances."""
        combined = list[Float64]()
        family = list[Float64]()
        for k in range(len(cuboids) - 2, -1, -1):
            if combined:
                within = summed(shape, combined[0], cuboids[k + 1], cuboids[k])
            else:
                within = variances[-1] * cells_below(shape, cuboids[k], cuboids[-1])
            family.insert(0, within)
            combined.insert(0, variances[k] * within / (variances[k] + within))
        return cls(shape, tuple(cuboids), tuple(variances), tuple(combined), tuple(family))

    @property
    def table(self) -> Levels:
        """The cuboid in which the chain ends."""
        return self.cuboids[-1]

    @property
    def last(self) -> Levels | None:
        """The cuboid before the table, c_{p-1}, if there is one."""
        return self.cuboids[-2] if self.combined else None

    def estimates(self, noisy: Layers, measured: ByCuboid) -> Layers:
        """Return the table's estimates: its measurements, and by what each family's cells move.

        Args:
            noisy: the table's measurements.
            measured: of the cuboids before the table the measurements or true counts: float64
                (cells along each axis, vectors); 0 where it has none.
        """
        if self.last is None or not noisy.parts:
            return noisy
        sums = noisy.sums(self.last)
        steps = len(self.combined)
        gaps = list[Float64]()
        for k in range(steps - 1, -1, -1):  # up: z - Σ z_child is u/v times x - Σ z_child
            own = measured.get(self.cuboids[k])
            weight = self.family[k] / (self.variances[k] + self.family[k])
            gaps.insert(0, (-sums if own is None else own - sums) * weight[..., None])
            if k:
                best = gaps[0] + sums
                sums = summed(self.shape, best, self.cuboids[k], self.cuboids[k - 1])
        for k in range(1, steps):  # down: y - Σ z_child, of which y_parent moves its children's
            above = gaps[k - 1] / self.family[k - 1][..., None]
            share = spread(self.shape, above, self.cuboids[k - 1], self.cuboids[k])
            gaps[k] += share * self.combined[k][..., None]
        moved = gaps[-1] * (self.variances[-1] / self.family[-1])[..., None]
        return noisy.plus({self.last: moved})

    def covariance(self, vectors: Layers) -> Layers:
        """Return C Σ_d S_dᵀ w_d of such vectors."""
        parts = {d: self.variances[-1] * weights for d, weights in vectors.parts.items()}
        return self.estimates(Layers(self.shape, self.table, parts), {})

    def own_variances(self, cuboid: Levels) -> Float64:
        """Return the variance of a cuboid's cells from this chain alone: float64 (its cells).

        In O(cells of the common refinements of the cuboid with those before the table). Let f be
        the expectation, per unit of a cell's own estimate y, of the part of it that lies in a cell
        of the cuboid, and g the variance of that part given y. Then, over the children,
        f = Σ u f / S and g = Σ (g + u f²) - (Σ u f)² / S.
        """
        if self.last is None:
            return self.variances[-1] * cells_below(self.shape, cuboid, self.table)
        at = join(self.last, cuboid)
        part = cells_below(self.shape, at, self.table)
        whole = spread(self.shape, self.family[-1] / self.variances[-1], self.last, at)
        share = part / whole
        own = self.variances[-1] * (part - part * part / whole)
        for k in range(len(self.combined) - 1, 0, -1):
            before = join(self.cuboids[k - 1], cuboid)
            mixed = share * spread(self.shape, self.combined[k], self.cuboids[k], at)
            own = summed(self.shape, own + share * mixed, at, before)
            mixed = summed(self.shape, mixed, at, before)
            share = mixed / spread(self.shape, self.family[k - 1], self.cuboids[k - 1], before)
            own, at = own - mixed * share, before
        own = own + spread(self.shape, self.combined[0], self.cuboids[0], at) * share * share
        return summed(self.shape, own, at, cuboid)

    def variances_of(self, cuboid: Levels) -> tuple[Levels, Float64]:
        """Return variances from this chain alone that are alike below the cells of a cuboid.

        Returns:
            That cuboid, the one before the table if the table's are asked for; and the variance
            below each of its cells: float64 (cells along each axis).
        """
        if cuboid != self.table:
            return cuboid, self.own_variances(cuboid)
        last = self.last
        variance = self.variances[-1]
        if last is None:
            return self.shape.total, np.full((1,) * len(self.table), variance)
        size = self.family[-1] / variance
        return last, variance * (1 - 1 / size) + self.own_variances(last) / size**2


def chains_of(observed: Observed) -> tuple[Chain, ...]:
    """Return for each table a chain that ends in it; no measurement is in two of them.

    Each takes, among the nested cuboids within its table that are left, those of the most cells,
    so that few rows are left beside the chains; below them what is public within the table.
    """
    left = set(observed.variances)
    chains = []
    for table in observed.tables:
        chains.append(heaviest(observed, left, table))
        left -= set(chains[-1].cuboids)
    return tuple(chains)


def heaviest(observed: Observed, among: Iterable[Levels], table: Levels) -> Chain:
    """Return the chain of the most cells that ends in a table, from what is public within it on.

    Args:
        observed: what is measured.
        among: the measured cuboids that may be on the chain, the table among them.
        table: where it ends.
    """
    public = None if observed.public is None else meet(observed.public, table)
    best = dict[Levels, tuple[int, list[Levels]]]()
    for cuboid in sorted(among, key=fineness):
        if is_within(cuboid, table) and (public is None or is_within(public, cuboid)):
            before = [best[d] for d in best if is_within(d, cuboid)]
            cells, nested = max(before, key=lambda chain: chain[0], default=(0, []))
            best[cuboid] = cells + observed.shape.cells(cuboid), [*nested, cuboid]
    cuboids = best[table][1]
    variances = [observed.variances[c] for c in cuboids]
    if public is not None:
        cuboids, variances = [public, *cuboids], [0.0, *variances]
    return Chain.of(observed.shape, cuboids, variances)
