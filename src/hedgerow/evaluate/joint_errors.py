"""Errors of the estimates of all cells of a cuboid together: least squares run on noise alone.

Least squares is linear, so its errors are what it makes of noise, whatever the true counts. Of the
levels below the cuboid only what they say of its cells matters: there the noise of the cuboid's own
counts is drawn exactly, and that of the many counts below from a normal law of the same variance
(docs/proofs.md, "Intervals of shares"). Where cuboids are named, or stand beside attributes, all
noise is drawn exactly.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

import numpy as np
from numpy.random import Generator

from hedgerow.arrays import Float64, Levels
from hedgerow.errors import ReleaseError
from hedgerow.estimate.tree.layers import Layer
from hedgerow.estimate.tree.least_squares import least_squares
from hedgerow.limits import MOST_DRAWN
from hedgerow.noise.bits import ReleaseKey, Stream
from hedgerow.noise.mechanisms import Mechanism
from hedgerow.plan.cuboids import Measured
from hedgerow.plan.plan import Plan
from hedgerow.release.answers.questions import answers_of
from hedgerow.release.answers.tables import JointAnswers
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
    law = Law(levels, mechanism, np.ones(cells), np.zeros(cells))
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
        levels: Law(levels, mechanism, np.ones(layer.nodes), np.zeros(layer.nodes))
        for levels, layer, mechanism in zip(cuboids, layers, noise, strict=True)
    }
    last, own = laws[cuboids[-1]], noise[-1]
    variance = layers[-1].variance * last.weight  # of what each node's own subtree says of it
    known = own.noise_variance if own is not None else 0.0
    weight = np.minimum(variance / known, 1.0) if known > 0 else last.weight
    rest = variance - weight**2 * known
    rest = np.where(rest > 1e-12 * variance, rest, 0.0)
    laws[cuboids[-1]] = replace(last, weight=weight, rest=rest)

    def estimate(tables: Tables) -> Float64:
        made = [
            Layer(
                None if layer.noisy is None else tables[levels], layer.variance, layer.family_start
            )
            for levels, layer in zip(cuboids, layers, strict=True)
        ]
        return least_squares(made)[-1].estimate

    return LawErrors(laws, estimate, layers[-1].nodes)


@dataclass(frozen=True, slots=True, eq=False)
class EmptyTableErrors:
    """Of a cuboid that is estimated together with others: the estimates of a table without records.

    Attributes:
        answers: of the plan.
        levels: the cuboid.
    """

    answers: JointAnswers[Any]
    levels: Levels

    def draw(self, pairs: int, seed: int) -> Float64:
        """Return errors of least squares over noise alone, drawn exactly for every cell.

        Returns:
            float64 (pairs, cells that public facts do not rule out, row by row), records.

        Raises:
            ReleaseError: it would take minutes.
        """
        plan, joint = self.answers.plan, self.answers.design
        cells = sum(joint.size(c) for c in joint.noise if c in joint.whole)
        if cells * pairs > MOST_DRAWN:
            raise ReleaseError(
                f"intervals of shares draw the {cells:,} noisy counts of this release {pairs:,} "
                f"times, and {MOST_DRAWN:,} in all can be drawn; ask for fewer draws"
            )
        nobody = tuple(np.empty(0, dtype=np.int32) for _ in plan.tree.axes)
        empty = Counts.from_leaves(plan.tree, nobody, np.empty(0, dtype=np.int64))
        sources = (Drawn(empty, plan, _key(f"{seed}/{run}")) for run in range(pairs))
        known = (self.answers.whole_estimates(source, [self.levels]) for source in sources)
        return np.array([estimates[self.levels] for estimates in known])


def errors_of(plan: Plan, levels: Levels) -> JointErrors:
    """Return what the errors are made of of a cuboid that is estimated together with others."""
    answers = cast("JointAnswers[Any]", answers_of(plan))
    joint = answers.design
    reduced = joint.reduced(joint.shape.given(levels))
    if reduced is None:
        return EmptyTableErrors(answers, levels)
    laws = dict[Levels, Law]()
    for cuboid, law in reduced.laws.items():
        what = plan.by_levels[joint.levels(cuboid)]
        own = what.mechanism if isinstance(what, Measured) else None
        laws[cuboid] = Law(joint.levels(cuboid), own, *law)
    return LawErrors(laws, reduced.estimates, laws[reduced.cuboid].weight.size)


def _key(seed: int | str) -> ReleaseKey:
    return ReleaseKey(hashlib.sha256(f"hedgerow/share intervals/{seed}".encode()).digest())
