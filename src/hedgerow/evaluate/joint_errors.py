"""Errors of the estimates of all cells of a cuboid together: least squares run on noise alone.

Least squares is linear, so its errors are what it makes of noise, whatever the true counts. Of the
levels below the cuboid only what they say of its cells matters: there the noise of the cuboid's own
counts is drawn exactly, and that of the many counts below from a normal law of the same variance
(docs/proofs/trials.md, "Intervals of shares"). Where cuboids are named, or stand beside attributes,
all noise is drawn exactly.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import Any, cast

import numpy as np
from numpy.random import Generator

from hedgerow.arrays import Float64, Levels, Tables
from hedgerow.errors import ReleaseError
from hedgerow.estimate.tree.layers import Layer
from hedgerow.estimate.tree.least_squares import least_squares
from hedgerow.evaluate.simulate import key_of
from hedgerow.limits import MOST_DRAWN
from hedgerow.noise.bits import Stream
from hedgerow.noise.mechanisms import Mechanism
from hedgerow.plan.plan import Plan
from hedgerow.release.answers.questions import answers_of
from hedgerow.release.answers.tables import JointAnswers
from hedgerow.release.descent.source import Drawn
from hedgerow.tables.counts import Counts


@dataclass(frozen=True, slots=True, eq=False)
class Law:
    """What a table of noise is drawn from: h η + ζ of docs/proofs/trials.md.

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


JointErrors = Callable[[int, int], Float64]
"""Of a number of pairs and a seed, joint errors of a cuboid's estimates: float64 (pairs, cells),
records."""


def _errors_by_law(
    laws: Mapping[Levels, Law], estimate: Callable[[Tables], Float64], pairs: int, seed: int
) -> Float64:
    """Return the errors of least squares over a few tables, each with a law of its noise."""
    key, rng = key_of(f"share intervals/{seed}"), np.random.default_rng(seed)
    streams = {levels: key.stream(*law.levels) for levels, law in laws.items()}
    runs = (
        {levels: law.drawn(streams[levels], run, rng) for levels, law in laws.items()}
        for run in range(pairs)
    )
    return np.array([estimate(tables) for tables in runs])


def raw_errors(levels: Levels, mechanism: Mechanism, cells: int) -> JointErrors:
    """Return the errors of noisy counts as they are."""
    law = Law(levels, mechanism, np.ones(cells), np.zeros(cells))
    return partial(_errors_by_law, {levels: law}, itemgetter(levels))


def chain_errors(plan: Plan, layers: Sequence[Layer]) -> JointErrors:
    """Return the errors of a cuboid of a chain.

    Args:
        plan: of the release.
        layers: from the root to the cuboid, the last with the estimates from each node's own
            subtree.
    """
    laws = dict[Levels, Law]()
    for levels, layer in zip(plan.levels, layers, strict=False):
        own = plan.noise.get(levels)
        noise = own.noise_variance if own is not None else 0.0
        variance = np.broadcast_to(layer.variance, layer.nodes)  # as the node's own subtree has it
        weight = np.minimum(variance / noise, 1.0) if noise > 0 else np.ones(layer.nodes)
        rest = variance - weight**2 * noise
        rest = np.where(np.isfinite(rest) & (rest > 1e-12 * variance), rest, 0.0)
        laws[levels] = Law(levels, own, weight, rest)

    def estimate(tables: Tables) -> Float64:
        made = [
            layer if layer.noisy is None else replace(layer, noisy=tables[levels])
            for levels, layer in zip(laws, layers, strict=True)
        ]
        return least_squares(made)[-1].estimate

    return partial(_errors_by_law, laws, estimate)


def _errors_of_an_empty_table(
    answers: JointAnswers[Any], levels: Levels, pairs: int, seed: int
) -> Float64:
    """Return the estimates of a table without records: noise alone, drawn exactly for every cell.

    Returns:
        float64 (pairs, cells that public facts do not rule out, row by row), records.

    Raises:
        ReleaseError: it would take minutes.
    """
    plan, joint = answers.plan, answers.design
    cells = sum(joint.size(c) for c in joint.noise if c in joint.whole)
    if cells * pairs > MOST_DRAWN:
        raise ReleaseError(
            f"intervals of shares draw the {cells:,} noisy counts of this release {pairs:,} "
            f"times, and {MOST_DRAWN:,} in all can be drawn; ask for fewer draws"
        )
    nobody = tuple(np.empty(0, dtype=np.int32) for _ in plan.tree.axes)
    empty = Counts.from_leaves(plan.tree, nobody, np.empty(0, dtype=np.int64))
    sources = (Drawn(empty, plan, key_of(f"share intervals/{seed}/{run}")) for run in range(pairs))
    return np.array([answers.whole_estimates(each, [levels])[levels] for each in sources])


def errors_of(plan: Plan, levels: Levels) -> JointErrors:
    """Return what the errors are made of of a cuboid that is estimated together with others."""
    answers = cast("JointAnswers[Any]", answers_of(plan))
    joint = answers.design
    reduced = joint.reduced(joint.shape.given(levels))
    if reduced is None:
        return partial(_errors_of_an_empty_table, answers, levels)
    laws = dict[Levels, Law]()
    for cuboid, law in reduced.laws.items():
        own = joint.levels(cuboid)
        laws[cuboid] = Law(own, plan.noise.get(own), *law)
    return partial(_errors_by_law, laws, reduced.estimates)
