"""Joint errors of the estimates of all cells of a cuboid: least squares run on noise alone.

Least squares is linear, so its errors are what it makes of noise, whatever the true counts. Of the
levels below the cuboid only what they say of its cells matters: there the noise of the cuboid's own
counts is drawn exactly, and that of the many counts below from a normal law of the same variance
(docs/proofs.md, "Intervals of shares"). Where cuboids are named, or stand
beside attributes, all noise is drawn exactly.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from typing import Protocol, cast

import numpy as np
from numpy.random import Generator

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
from hedgerow.noise.bits import ReleaseKey, Stream
from hedgerow.noise.mechanisms import Mechanism
from hedgerow.plan.cuboids import Measured
from hedgerow.plan.plan import Plan
from hedgerow.plan.tables import PlannedTables
from hedgerow.release.answers.tables import JointAnswers
from hedgerow.release.answers.ways import answers_of
from hedgerow.release.descent.source import Drawn
from hedgerow.tables.counts import Counts

Tables = dict[Levels, Float64]


@dataclass(frozen=True, slots=True, eq=False)
class Law:
    """What a table of noise is drawn from: h η + ζ of docs/proofs.md.

    Attributes:
        levels: the cuboid of the tree that has the noise η.
        mechanism: that of η; None where there is none.
        weight: h, in the shape of the table.
        rest: the variance of ζ, in the shape of the table, records².
    """

    levels: Levels
    mechanism: Mechanism | None
    weight: Float64
    rest: Float64

    @classmethod
    def exact(cls, levels: Levels, mechanism: Mechanism | None, shape: Sequence[int]) -> "Law":
        """Return the law of η alone."""
        return cls(levels, mechanism, np.ones(shape), np.zeros(shape))

    def drawn(self, stream: Stream, run: int, rng: Generator) -> Float64:
        """Return the noise of a run."""
        whole = np.zeros(self.weight.size, dtype=np.int64)
        if self.mechanism is not None:
            self.mechanism.draw(stream, run * len(whole), whole)
        noise: Float64 = self.weight * whole.reshape(self.weight.shape)
        if self.rest.any():
            noise += np.sqrt(self.rest) * rng.standard_normal(self.rest.shape)
        return noise


class JointErrors(Protocol):
    """What the errors of a cuboid's estimates are made of."""

    def draw(self, pairs: int, seed: int) -> Float64:
        """Return joint errors: float64 (pairs, cells), records."""


@dataclass(frozen=True, slots=True, eq=False)
class LawErrors:
    """Of least squares over a few tables, each with a law of its noise.

    Attributes:
        laws: of the noise of each table.
        estimate: what least squares makes of tables of noise: float64 (cells).
        cells: how many the cuboid has.
    """

    laws: Mapping[Levels, Law]
    estimate: Callable[[Tables], Float64]
    cells: int

    def draw(self, pairs: int, seed: int) -> Float64:
        """Return joint errors: float64 (pairs, cells), records."""
        key = _key(seed)
        streams = {levels: key.stream(*law.levels) for levels, law in self.laws.items()}
        rng, errors = np.random.default_rng(seed), np.empty((pairs, self.cells))
        for run in range(pairs):
            tables = {
                levels: law.drawn(streams[levels], run, rng) for levels, law in self.laws.items()
            }
            errors[run] = self.estimate(tables)
        return errors


def raw_errors(levels: Levels, mechanism: Mechanism, cells: int) -> LawErrors:
    """Return the errors of noisy counts as they are."""
    law = Law.exact(levels, mechanism, (cells,))
    return LawErrors({levels: law}, lambda tables: tables[levels], cells)


def chain_errors(
    layers: Sequence[Layer], cuboids: Sequence[Levels], noise: Sequence[Mechanism | None]
) -> LawErrors:
    """Return the errors of a cuboid of a chain.

    Args:
        layers: from the root to the cuboid, the last with the estimates from each node's own
            subtree.
        cuboids: of each layer.
        noise: of each layer, None where it has none of its own.
    """
    laws = {
        levels: Law.exact(levels, mechanism, (layer.nodes,))
        for levels, layer, mechanism in zip(cuboids, layers, noise, strict=True)
    }
    laws[cuboids[-1]] = _law_of_subtrees(cuboids[-1], layers[-1], noise[-1])

    def estimate(tables: Tables) -> Float64:
        made = [
            Layer(
                None if layer.noisy is None else tables[levels], layer.variance, layer.family_start
            )
            for levels, layer in zip(cuboids, layers, strict=True)
        ]
        return least_squares(made)[-1].estimate

    return LawErrors(laws, estimate, layers[-1].nodes)


def _law_of_subtrees(levels: Levels, layer: Layer, own: Mechanism | None) -> Law:
    """Return the law of the errors of estimates from their own subtrees."""
    variance = np.full(layer.nodes, layer.variance, dtype=np.float64)
    weight, rest = np.ones(layer.nodes), variance
    if own is not None and own.noise_variance > 0:
        weight = np.minimum(variance / own.noise_variance, 1.0)
        rest = variance - weight**2 * own.noise_variance
    return Law(levels, own, weight, np.where(rest > 1e-12 * variance, rest, 0.0))


def _cube_errors(cube: PlannedTables, solver: ProductSolver, cuboid: Levels) -> LawErrors:
    """Return the errors of a cuboid that a cube measures whole.

    Along each axis the levels below the cuboid's are summed up to it first; with k of the axes at
    the cuboid's own level a table then holds h η + ζ, η being its own noise, h the product of k
    weights u/v, and ζ what the finer cuboids add.
    """
    box = solver.box_of(cuboid)
    squares = [own.summed_up(k) for own, k in zip(box.squares, cuboid, strict=True)]
    exact = None if box.public is None else meet(box.public, cuboid)

    def estimate(tables: Tables) -> Float64:
        cube_least_squares(squares, tables, exact)
        return tables[cuboid].ravel()

    laws = dict(_cube_laws(cube, solver, cuboid, exact))
    return LawErrors(laws, estimate, laws[cuboid].weight.size)


def _cube_laws(
    cube: PlannedTables, solver: ProductSolver, cuboid: Levels, exact: Levels | None
) -> Iterator[tuple[Levels, Law]]:
    """Yield for a cuboid and each coarsening the law of its noise.

    Public ones have no error: what else is measured of them changes nothing.
    """
    squares = solver.box_of(cuboid).squares
    shape = shape_of(squares)
    below = [subtree_coefficients(own)[k] for own, k in zip(squares, cuboid, strict=True)]
    known = shape.within(exact)
    for each in product(*(range(k + 1) for k in cuboid)):
        weight, rest = np.zeros(shape.shape(each)), np.zeros(shape.shape(each))
        levels = cube.levels(each)
        if each in known:
            yield each, Law(levels, None, weight, rest)
            continue
        what = cube.plan.by_levels[levels]
        own = what.mechanism if isinstance(what, Measured) else None
        at = [k == level for k, level in zip(cuboid, each, strict=True)]
        deepest = [s.depth if here else k for k, s, here in zip(each, squares, at, strict=True)]
        for finer in product(*(range(k, last + 1) for k, last in zip(each, deepest, strict=True))):
            squared = reduce(np.multiply.outer, [
                part[:, k] if here else np.ones(size)
                for part, k, here, size in zip(below, finer, at, weight.shape, strict=True)
            ])  # fmt: skip
            if finer == each:
                weight = np.sqrt(squared)
            else:
                rest += cube.noise.get(finer, 0.0) * squared
        yield each, Law(levels, own, weight, rest)


@dataclass(frozen=True, slots=True, eq=False)
class EmptyTableErrors:
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
        cells = sum(joint.size(c) for c in joint.noise if c in joint.whole)
        if cells * pairs > MOST_DRAWN:
            raise ReleaseError(
                f"intervals of shares draw the {cells:,} noisy counts of this release {pairs:,} "
                f"times, and {MOST_DRAWN:,} in all can be drawn; ask for fewer draws"
            )
        nobody = tuple(np.empty(0, dtype=np.int32) for _ in plan.tree.axes)
        empty = Counts.from_leaves(plan.tree, nobody, np.empty(0, dtype=np.int64))
        sources = (Drawn(empty, plan, _key(f"{seed}/{run}")) for run in range(pairs))
        return np.array([self.answers.estimates(source, self.levels) for source in sources])


def errors_of(plan: Plan, levels: Levels) -> JointErrors:
    """Return what the errors are made of of a cuboid that is estimated together with others."""
    design = plan.design
    if isinstance(design, PlannedTables) and design.is_cube and design.product is not None:
        return _cube_errors(design, design.product, design.shape.given(levels))
    return EmptyTableErrors(cast("JointAnswers", answers_of(plan)), levels)


def _key(seed: int | str) -> ReleaseKey:
    return ReleaseKey(hashlib.sha256(f"hedgerow/share intervals/{seed}".encode()).digest())
