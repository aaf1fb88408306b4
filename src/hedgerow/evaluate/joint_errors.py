"""Joint errors of the estimates of all cells of a cuboid: least squares run on noise alone.

Least squares is linear, so its errors are what it makes of noise, whatever the true counts. Of the
levels below the cuboid only what they say of its cells matters: there the noise of the cuboid's own
counts is drawn exactly, and that of the many counts below from a normal law of the same variance
(docs/proofs.md, "Intervals of shares"). Where cuboids are named, or go along a
spine, all noise is drawn exactly.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import product
from typing import Protocol, cast

import numpy as np

from hedgerow.arrays import Float64, Levels
from hedgerow.errors import ReleaseError
from hedgerow.estimate.cube.coefficients import subtree_coefficients
from hedgerow.estimate.cube.estimates import least_squares as cube_least_squares
from hedgerow.estimate.cube.estimates import shape_of
from hedgerow.estimate.cube.shape import meet
from hedgerow.estimate.spine.part import Part
from hedgerow.estimate.tree.layers import Layer
from hedgerow.estimate.tree.least_squares import least_squares
from hedgerow.estimate.workload.product import ProductSolver
from hedgerow.limits import MOST_DRAWN
from hedgerow.noise.bits import ReleaseKey, Stream
from hedgerow.noise.mechanisms import Mechanism
from hedgerow.plan.cuboids import Measured
from hedgerow.plan.plan import Plan
from hedgerow.plan.planned_spine import PlannedSpine
from hedgerow.plan.tables import PlannedTables, as_tables


class JointErrors(Protocol):
    """What the errors of a cuboid's estimates are made of."""

    def draw(self, pairs: int, seed: int) -> Float64:
        """Return joint errors: float64 (pairs, cells), records."""


@dataclass(frozen=True, slots=True, eq=False)
class RawErrors:
    """Of noisy counts as they are.

    Attributes:
        levels: the cuboid.
        mechanism: its noise.
        cells: how many there are.
    """

    levels: Levels
    mechanism: Mechanism
    cells: int

    def draw(self, pairs: int, seed: int) -> Float64:
        """Return noise."""
        whole = np.empty(pairs * self.cells, dtype=np.int64)
        self.mechanism.draw(_key(seed).stream(*self.levels), 0, whole)
        return whole.reshape(pairs, self.cells).astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class ChainErrors:
    """Along a chain.

    Attributes:
        layers: from the root to the cuboid, the last with the estimates from each node's own
            subtree.
        cuboids: of each layer.
        noise: of each layer, None where it has none of its own.
    """

    layers: tuple[Layer, ...]
    cuboids: tuple[Levels, ...]
    noise: tuple[Mechanism | None, ...]

    def draw(self, pairs: int, seed: int) -> Float64:
        """Return errors of least squares over the layers."""
        key, drawn = _key(seed), []
        for levels, layer, mechanism in zip(self.cuboids, self.layers, self.noise, strict=True):
            noise = np.zeros((pairs, layer.nodes))
            if mechanism is not None:
                whole = np.empty(noise.size, dtype=np.int64)
                mechanism.draw(key.stream(*levels), 0, whole)
                noise += whole.reshape(noise.shape)
            drawn.append(noise)
        drawn[-1] = _of_subtrees(self.layers[-1], self.noise[-1], drawn[-1], seed)
        errors = np.empty((pairs, self.layers[-1].nodes))
        for run in range(pairs):
            made = [
                Layer(
                    None if layer.noisy is None else noise[run], layer.variance, layer.family_start
                )
                for noise, layer in zip(drawn, self.layers, strict=True)
            ]
            errors[run] = least_squares(made)[-1].estimate
        return errors


def _of_subtrees(layer: Layer, own: Mechanism | None, noise: Float64, seed: int) -> Float64:
    """Return errors of estimates from their own subtrees: h η + ζ of docs/proofs.md."""
    variance = np.full(layer.nodes, layer.variance, dtype=np.float64)
    weight, rest = np.ones(layer.nodes), variance
    if own is not None and own.noise_variance > 0:
        weight = np.minimum(variance / own.noise_variance, 1.0)
        rest = variance - weight**2 * own.noise_variance
    rest = np.where(rest > 1e-12 * variance, rest, 0.0)
    noise *= weight
    if rest.any():
        noise += np.sqrt(rest) * np.random.default_rng(seed).standard_normal(noise.shape)
    return noise


@dataclass(frozen=True, slots=True, eq=False)
class CubeErrors:
    """Of a cuboid that a cube measures whole.

    Along each axis the levels below the cuboid's are summed up to it first; with k of the axes at
    the cuboid's own level a table then holds h η + ζ, η being its own noise, h the product of k
    weights u/v, and ζ what the finer cuboids add.

    Attributes:
        cube: what its plan decides.
        solver: of its estimates.
        cuboid: without levels of only children.
    """

    cube: PlannedTables
    solver: ProductSolver
    cuboid: Levels

    def draw(self, pairs: int, seed: int) -> Float64:
        """Return errors of least squares over the cuboid and its coarsenings."""
        cube, rng = self.cube, np.random.default_rng(seed)
        box = self.solver.box_of(self.cuboid)
        squares = [own.summed_up(k) for own, k in zip(box.squares, self.cuboid, strict=True)]
        exact = None if box.public is None else meet(box.public, self.cuboid)
        laws, key = list(self._laws(exact)), _key(seed)
        streams = {each: key.stream(*cube.levels(each)) for each, *_ in laws}
        errors = np.empty((pairs, *shape_of(squares).shape(self.cuboid)))
        for run in range(pairs):
            tables = {}
            for each, own, weight, rest in laws:
                whole = np.zeros(weight.size, dtype=np.int64)
                if own is not None:
                    own.draw(streams[each], run * weight.size, whole)
                noise = weight * whole.reshape(weight.shape)
                if rest.any():
                    noise += np.sqrt(rest) * rng.standard_normal(rest.shape)
                tables[each] = noise
            cube_least_squares(squares, tables, exact)
            errors[run] = tables[self.cuboid]
        return errors.reshape(pairs, -1)

    def _laws(
        self, exact: Levels | None
    ) -> Iterator[tuple[Levels, Mechanism | None, Float64, Float64]]:
        """Yield for the cuboid and each coarsening η's law, the weights h, and the variance of ζ.

        Public ones have no error: what else is measured of them changes nothing.
        """
        cube = self.cube
        squares = self.solver.box_of(self.cuboid).squares
        shape = shape_of(squares)
        below = [subtree_coefficients(own)[k] for own, k in zip(squares, self.cuboid, strict=True)]
        known = shape.within(exact)
        for each in product(*(range(k + 1) for k in self.cuboid)):
            weight, rest = np.zeros(shape.shape(each)), np.zeros(shape.shape(each))
            if each in known:
                yield each, None, weight, rest
                continue
            what = cube.plan.by_levels[cube.levels(each)]
            own = what.mechanism if isinstance(what, Measured) else None
            at = [k == level for k, level in zip(self.cuboid, each, strict=True)]
            deepest = [s.depth if here else k for k, s, here in zip(each, squares, at, strict=True)]
            levels = (range(k, last + 1) for k, last in zip(each, deepest, strict=True))
            for finer in product(*levels):
                squared = reduce(np.multiply.outer, [
                    part[:, k] if here else np.ones(size)
                    for part, k, here, size in zip(below, finer, at, weight.shape, strict=True)
                ])  # fmt: skip
                if finer == each:
                    weight = np.sqrt(squared)
                else:
                    rest += cube.noise.get(finer, 0.0) * squared
            yield each, own, weight, rest


@dataclass(frozen=True, slots=True, eq=False)
class NamedErrors:
    """Of a cuboid of a workload that names cuboids: least squares over all that it measures whole.

    Attributes:
        tables: what their plan decides.
        cuboid: without levels of only children.
    """

    tables: PlannedTables
    cuboid: Levels

    def draw(self, pairs: int, seed: int) -> Float64:
        """Return errors of least squares over noise alone, drawn exactly for every cell.

        Raises:
            ReleaseError: it would take minutes.
        """
        joint, key = self.tables, _key(seed)
        noise = {}
        for levels, what in joint.plan.by_levels.items():
            if isinstance(what, Measured) and levels in joint.plan.whole:
                noise[joint.shape.given(levels)] = what.mechanism, key.stream(*levels)
        _check_drawn(sum(map(joint.shape.cells, noise)), pairs)
        errors = np.empty((pairs, joint.shape.cells(self.cuboid)))
        for run in range(pairs):
            tables = {}
            for cuboid, (mechanism, stream) in noise.items():
                whole = np.empty(joint.shape.cells(cuboid), dtype=np.int64)
                mechanism.draw(stream, run * len(whole), whole)
                tables[cuboid] = whole.astype(np.float64).reshape(joint.shape.shape(cuboid))
            if joint.public is not None:
                tables[joint.public] = np.zeros(joint.shape.shape(joint.public))
            errors[run] = joint.estimates(tables, [self.cuboid])[self.cuboid].ravel()
        return errors


@dataclass(frozen=True, slots=True, eq=False)
class SpineErrors:
    """Of a cuboid along a spine: least squares of all that is measured, from the root down.

    Attributes:
        joint: what their plan decides.
        cuboid: without levels of only children.
    """

    joint: PlannedSpine
    cuboid: Levels

    def draw(self, pairs: int, seed: int) -> Float64:
        """Return errors of least squares over noise alone, drawn exactly for every cell.

        Returns:
            float64 (pairs, cells that public facts do not rule out, row by row), records.

        Raises:
            ReleaseError: it would take minutes.
        """
        joint, key = self.joint, _key(seed)
        model, part = joint.model, Part.top(joint.shape.axes[0].depth)
        noise = {cuboid: self._noise(cuboid, key) for cuboid in joint.noise}
        _check_drawn(sum(cells for *_, cells in noise.values()), pairs)
        own, nodes = joint.cells(self.cuboid), model.support.nodes(part, self.cuboid[0])
        total = None if joint.public is None else 0.0
        _, order = joint.codes_of(self.cuboid)
        errors = np.empty((pairs, len(order)))
        for run in range(pairs):
            noisy = {}
            for cuboid, (mechanism, stream, cells) in noise.items():
                whole = np.empty(cells, dtype=np.int64)
                mechanism.draw(stream, run * cells, whole)
                noisy[cuboid] = whole.astype(np.float64)
            estimates = model.estimates(part, model.up(part, noisy), None, total)
            errors[run] = own.sums(estimates[self.cuboid[0]], nodes)[order]
        return errors

    def _noise(self, cuboid: Levels, key: ReleaseKey) -> tuple[Mechanism, Stream, int]:
        """Return the law of a cuboid's noise, its stream, and how many cells are measured."""
        levels = self.joint.levels(cuboid)
        mechanism = cast("Measured", self.joint.plan.by_levels[levels]).mechanism
        return mechanism, key.stream(*levels), self.joint.size(cuboid)


def errors_of(plan: Plan, levels: Levels) -> JointErrors:
    """Return what the errors are made of of a cuboid that is estimated together with others."""
    if isinstance(plan.design, PlannedSpine):
        return SpineErrors(plan.design, plan.design.shape.given(levels))
    tables = as_tables(plan.design)
    cuboid = tables.shape.given(levels)
    if tables.product is None or not tables.is_cube:
        return NamedErrors(tables, cuboid)
    return CubeErrors(tables, tables.product, cuboid)


def _check_drawn(cells: int, pairs: int) -> None:
    """Raise a ReleaseError if drawing the noise of so many cells takes minutes."""
    if cells * pairs > MOST_DRAWN:
        raise ReleaseError(
            f"intervals of shares draw the {cells:,} noisy counts of this release {pairs:,} "
            f"times, and {MOST_DRAWN:,} in all can be drawn; ask for fewer draws"
        )


def _key(seed: int) -> ReleaseKey:
    return ReleaseKey(hashlib.sha256(f"hedgerow/share intervals/{seed}".encode()).digest())
