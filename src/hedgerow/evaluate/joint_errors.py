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
from hedgerow.estimate.tree.layers import Layer
from hedgerow.estimate.tree.least_squares import least_squares
from hedgerow.estimate.workload.product import ProductSolver
from hedgerow.limits import MOST_DRAWN
from hedgerow.noise.bits import ReleaseKey
from hedgerow.noise.mechanisms import Mechanism
from hedgerow.plan.cuboids import Measured
from hedgerow.plan.plan import Plan
from hedgerow.plan.tables import PlannedTables
from hedgerow.release.answers.tables import JointAnswers
from hedgerow.release.answers.ways import answers_of
from hedgerow.release.descent.source import Drawn
from hedgerow.tables.counts import Counts


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
class AloneErrors:
    """Of a cuboid that is estimated together with others: the estimates of a table without records.

    Attributes:
        answers: of the plan.
        levels: the cuboid.
    """

    answers: JointAnswers
    levels: Levels

    def draw(self, pairs: int, seed: int) -> Float64:
        """Return errors of least squares over noise alone, drawn exactly for every cell.

        Returns:
            float64 (pairs, cells that public facts do not rule out, row by row), records.

        Raises:
            ReleaseError: it would take minutes.
        """
        joint, plan = self.answers.joint, self.answers.plan
        _check_drawn(sum(joint.size(c) for c in joint.noise if c in joint.whole), pairs)
        nobody = tuple(np.empty(0, dtype=np.int32) for _ in plan.tree.axes)
        empty = Counts.from_leaves(plan.tree, nobody, np.empty(0, dtype=np.int64))
        sources = (Drawn(empty, plan, _key(f"{seed}/{run}")) for run in range(pairs))
        return np.array([self.answers.estimates(source, self.levels) for source in sources])


def errors_of(plan: Plan, levels: Levels) -> JointErrors:
    """Return what the errors are made of of a cuboid that is estimated together with others."""
    design = plan.design
    if isinstance(design, PlannedTables) and design.is_cube and design.product is not None:
        return CubeErrors(design, design.product, design.shape.given(levels))
    return AloneErrors(cast("JointAnswers", answers_of(plan)), levels)


def _check_drawn(cells: int, pairs: int) -> None:
    """Raise a ReleaseError if drawing the noise of so many cells takes minutes."""
    if cells * pairs > MOST_DRAWN:
        raise ReleaseError(
            f"intervals of shares draw the {cells:,} noisy counts of this release {pairs:,} "
            f"times, and {MOST_DRAWN:,} in all can be drawn; ask for fewer draws"
        )


def _key(seed: int | str) -> ReleaseKey:
    return ReleaseKey(hashlib.sha256(f"hedgerow/share intervals/{seed}".encode()).digest())
