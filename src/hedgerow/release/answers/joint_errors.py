"""Errors of the estimates of all cells of a cuboid together: least squares run on noise alone.

Least squares is linear, so its errors are what it makes of noise, whatever the true counts. Of the
levels below the cuboid only what they say of its cells matters: there the noise of the cuboid's own
counts is drawn exactly, and that of the many counts below from a normal law of the same variance
(docs/proofs/trials.md, "Intervals of shares"). Where cuboids are named, or stand beside attributes,
all noise is drawn exactly.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any, cast

import numpy as np
from scipy.special import ndtri

from hedgerow.arrays import Float64, Levels, Tables, float64, int64_zeros
from hedgerow.declared import frozen
from hedgerow.errors import ReleaseError
from hedgerow.estimate.tree.layers import Layer, start_of
from hedgerow.estimate.tree.least_squares import least_squares, upward
from hedgerow.limits import MOST_DRAWN
from hedgerow.noise.bits import Stream, key_of
from hedgerow.noise.mechanisms import Mechanism
from hedgerow.plan.chain import chain_of
from hedgerow.plan.cuboids import RunningSums
from hedgerow.plan.plan import Plan
from hedgerow.release.answers.measured_nodes import measured_nodes
from hedgerow.release.answers.questions import answers_of
from hedgerow.release.answers.tables import JointAnswers
from hedgerow.release.descent.nodes import Nodes
from hedgerow.release.descent.source import Drawn
from hedgerow.release.directory.stored import Content
from hedgerow.tables.counts import Counts

NORMAL = 1
"""The branch of a stream that normal numbers are made from."""


@frozen(eq=False)
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

    def drawn(self, stream: Stream, run: int) -> Float64:
        """Return the noise of a run."""
        whole = int64_zeros(self.weight.size)
        if self.mechanism is not None:
            self.mechanism.draw(stream, run * len(whole), whole)
        noise: Float64 = self.weight * whole.reshape(self.weight.shape)
        if self.rest.any():
            words = stream.branch(NORMAL).words(run * len(whole), len(whole))
            uniform = (float64(words >> np.uint64(11)) + 0.5) / 2**53
            noise += np.sqrt(self.rest) * ndtri(uniform).reshape(self.rest.shape)
        return noise


JointErrors = Callable[[int, str], Float64]
"""Of a number of pairs and the words of a key, joint errors of a cuboid's estimates: float64
(pairs, cells), records."""


def _errors_by_law(
    laws: Mapping[Levels, Law], estimate: Callable[[Tables], Float64], pairs: int, words: str
) -> Float64:
    """Return the errors of least squares over a few tables, each with a law of its noise."""
    key = key_of(words)
    streams = {levels: key.stream(*law.levels) for levels, law in laws.items()}
    runs = (
        {levels: law.drawn(streams[levels], run) for levels, law in laws.items()}
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
    laws = {}
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
    answers: JointAnswers[Any], levels: Levels, pairs: int, words: str
) -> Float64:
    """Return the estimates of a table without records: noise alone, drawn exactly for every cell.

    Returns:
        float64 (pairs, cells that public facts do not rule out, row by row), records.

    Raises:
        ReleaseError: it would take minutes.
    """
    plan = answers.plan
    joint = answers.design
    cells = sum(joint.size(c) for c in joint.noise if c in joint.whole)
    if cells * pairs > MOST_DRAWN:
        raise ReleaseError(
            f"joint errors draw the {cells:,} noisy counts of this release {pairs:,} times, and "
            f"{MOST_DRAWN:,} in all can be drawn; ask for fewer draws"
        )
    nobody = tuple(np.empty(0, dtype=np.int32) for _ in plan.tree.axes)
    empty = Counts.from_leaves(plan.tree, nobody, int64_zeros(0))
    sources = (Drawn(empty, plan, key_of(f"{words}/{run}")) for run in range(pairs))
    return np.array([answers.whole_estimates(each, [levels])[levels] for each in sources])


def errors_of(plan: Plan, levels: Levels) -> JointErrors:
    """Return what the errors are made of of a cuboid that is estimated together with others."""
    answers = cast("JointAnswers[Any]", answers_of(plan))
    joint = answers.design
    reduced = joint.reduced(joint.shape.given(levels))
    if reduced is None:
        return partial(_errors_of_an_empty_table, answers, levels)
    laws = {}
    for cuboid, law in reduced.laws.items():
        own = joint.levels(cuboid)
        laws[cuboid] = Law(own, plan.noise.get(own), *law)
    return partial(_errors_by_law, laws, reduced.estimates)


CellsWithErrors = tuple[Nodes, JointErrors | None, bool]
"""The cells of a cuboid with their released counts and unbiased estimates; what their errors are
made of, None where counts are public; and whether the estimates are noisy counts as they are."""


def cells_with_errors(content: Content, levels: Levels) -> CellsWithErrors:
    """Return the measured cells of a cuboid of the plan, and what their errors are made of.

    Raises:
        ReleaseError: running sums were measured, or nothing tells of the cuboid.
    """
    plan = content.plan
    noise = content.plan.design.carried_noise(levels)
    depth = plan.design.depth_of(levels)
    if isinstance(plan.measure, RunningSums) and not plan.is_public(levels):
        raise ReleaseError(
            f"of {plan.tree.name_of(levels)} weighted running sums were measured, and joint "
            f"errors are not made from these; ask a release that measured counts"
        )
    if depth is not None:
        if plan.design.is_answerable(levels) or plan.public_depth >= depth - 1:
            return _along_chain(content, depth)
        if levels not in plan.noise:
            name = plan.tree.cuboid_name(depth)
            raise ReleaseError(f"{name} was not measured; name a level that was")
    here = answers_of(plan).cells(content.stored, [levels])[levels]
    errors: JointErrors | None = None
    if noise.raw and noise.mechanism is not None and len(here):
        errors = raw_errors(levels, noise.mechanism, len(here))
    elif here.variance.any():
        errors = errors_of(plan, levels)
    return here, errors, noise.raw


def _along_chain(content: Content, depth: int) -> CellsWithErrors:
    """Return the nodes of a depth of a chain that combines others, or is public."""
    plan = content.plan
    outline = chain_of(content.plan).outline
    nodes, layers = measured_nodes(content.stored, outline)
    here = nodes[depth]
    if not len(here) or depth <= outline.public_depth:
        return Nodes.exact(here.codes, here.counts), None, False
    own_subtree = upward(layers if outline.everything else layers[: depth + 1])[depth]
    top = (*layers[:depth], Layer(*own_subtree, start_of(layers[depth])))
    final = least_squares(top)[depth]
    if not np.isfinite(final.variance).all():
        raise ReleaseError(
            f"the measurements do not determine {plan.tree.cuboid_name(depth)}; name a level that "
            f"was measured"
        )
    here = replace(here, estimate=final.estimate, variance=final.variance)
    return here, chain_errors(plan, top), False
