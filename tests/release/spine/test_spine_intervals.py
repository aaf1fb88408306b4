"""Intervals along a spine hold as often as they say; what bounds the coefficients of estimates."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

import hedgerow as hr
from hedgerow.estimate.intervals import Steps, interval
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.plan.planned_spine import PlannedSpine
from hedgerow.release.descent.layouts import leaves_between
from hedgerow.release.descent.source import Drawn
from hedgerow.release.descent.spine import SpineFlow
from hedgerow.release.directory.cuboid_errors import USUAL, CuboidErrors
from hedgerow.release.passes import Pass
from tests.made import plain_plan
from tests.release import pairs
from tests.release.dense import Dense
from tests.release.spine.made_spines import kinds_of_blocks, people, spine_tree

RELEASES = 200
MONTE_CARLO = 4.9 * (0.05 * 0.95 / RELEASES) ** 0.5
"""α = 5e-7 one-sided for one cell; the mean over cells of a cuboid varies no more."""
ALL_AT_ONCE = hr.Confidence(USUAL.coverage, simultaneous=True)
MOST_ALARMS = int(binom.isf(1e-6, RELEASES, 0.05))

NAMED = hr.Cuboids([
    "place.level1", "person.kind", "place.level2 × person.band", "place.level3 × person.kind",
    "place.level3 × person.cell", "person.cell",
])  # fmt: skip
WORKLOADS = {"cube": hr.Cube(), "marginals": NAMED}


def planned(workload, *, facts=True, seed=3, **options):
    rng = np.random.default_rng(seed)
    tree = spine_tree(rng)
    kinds = kinds_of_blocks(rng, tree)
    least = "least" if isinstance(workload, hr.Cube) else None  # a kind is several cells
    public = [hr.PublicTable(kinds, zeros="unlisted", at_least=least)] if facts else ()
    options = {"budget": hr.Rho("1/4"), "neighbours": hr.Replace(), "public": public, **options}
    plan = plain_plan(tree, workload=workload, measure=hr.All(), **options)
    assert isinstance(plan.design, PlannedSpine)
    return plan, people(rng, tree, kinds, mean=2), kinds


def errors_of_releases(plan, counts):
    """For each measured cuboid the true counts and the variances of all cells, and estimates.

    int64 (cells), float64 (cells), float64 (releases, cells).
    """
    joint = plan.design
    spine = joint.shape.axes[0]
    leaves = leaves_between(counts, joint.detail_of, 0, spine.sizes[-1])
    each_level = {level: range(size) for level, size in enumerate(spine.sizes)}
    estimates = {cuboid: [] for cuboid in joint.noise}
    for seed in range(RELEASES):
        run = SpineFlow(plan, Drawn(counts, plan, seeded_bits(seed)))
        for level, every in each_level.items():
            ((_, nodes, found),) = run.estimates_at([level], Pass(run).told())
            assert nodes == every
            for cuboid in joint.noise:
                if cuboid[0] == level:
                    estimates[cuboid].append(joint.cells(cuboid).sums(found, nodes))
    for cuboid, found in estimates.items():
        level, cells = cuboid[0], joint.cells(cuboid)
        nodes = each_level[level]
        truth = np.zeros(cells.count(nodes), dtype=np.int64)
        above = joint.ancestors(level)[leaves.nodes]
        cells.add(truth, nodes, above, leaves.cells, leaves.values)
        place = cells.located(np.arange(len(truth)), nodes)
        yield cuboid, truth, joint.variances_of(cuboid).forms.at(level, *place), np.array(found)


@pytest.mark.slow
@pytest.mark.parametrize("budget", ["1/40", "2"], ids=["wide noise", "narrow noise"])
@pytest.mark.parametrize("workload", WORKLOADS)
def test_intervals_of_every_cuboid_hold_as_often_as_they_say(workload, budget):
    plan, counts, _ = planned(WORKLOADS[workload], budget=hr.Rho(budget))
    cuboids = set()
    for cuboid, truth, variance, estimates in errors_of_releases(plan, counts):
        cuboids.add(cuboid)
        errors = CuboidErrors.of(plan, plan.design.levels(cuboid), counts.total)
        every, each = np.tile(truth, RELEASES), np.tile(variance, RELEASES)
        low, high = errors.interval(estimates.ravel(), each, USUAL)
        assert ((low <= every) & (every <= high)).mean() >= 0.95 - MONTE_CARLO, cuboid
        width = errors.half_width(each, USUAL)
        low, high = interval(estimates.ravel() + 10.0**6, width, None)
        unclipped = ((low <= every + 10**6) & (every + 10**6 <= high)).mean()
        assert unclipped >= 0.95 - MONTE_CARLO, cuboid
        if variance.min() >= 25:
            assert unclipped <= 0.97 + MONTE_CARLO, cuboid
        low, high = errors.interval(estimates.ravel(), each, ALL_AT_ONCE)
        is_out = ((every < low) | (every > high)).reshape(RELEASES, -1)
        assert is_out.any(axis=1).sum() <= MOST_ALARMS, cuboid
    assert cuboids == set(plan.design.noise)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_counts_outside_the_intervals_for_all_cells_are_flagged(workload):
    flagged = 0
    for seed in range(6):
        plan, counts, _ = planned(WORKLOADS[workload], seed=seed, budget=hr.Rho("1/2000"))
        release = pairs.released(counts, plan, seed)
        for name in plan.cuboids:
            frame = release.level(name, confidence=hr.Confidence(0.2))
            sure = release.level(name, confidence=hr.Confidence(0.2, simultaneous=True))
            outside = (sure["count"] < sure["low"]) | (sure["count"] > sure["high"])
            assert frame["contradicted"].to_list() == outside.to_list()
            flagged += outside.sum()
    assert flagged > 0


# --- what bounds coefficients ------------------------------------------------------------------


def coefficients(release):
    """For each cuboid h = V/v of each cell, and the largest coefficient of another draw."""
    plan, dense = release.plan, Dense(release)
    measured = {
        levels: dense.sums(release.measurements(plan.tree.name_of(levels)))
        for levels, what in plan.by_levels.items()
        if what.kind == "measured"
    }
    variance = {k: plan.by_levels[k].mechanism.noise_variance for k in measured}
    for levels, matrix in measured.items():
        largest = np.zeros(len(matrix))
        for other, draws in measured.items():
            found = np.abs(matrix @ dense.covariance @ draws.T) / variance[other]
            if other == levels:
                np.fill_diagonal(found, 0.0)
            largest = np.maximum(largest, found.max(axis=1))
        own = np.einsum("ij,jk,ik->i", matrix, dense.covariance, matrix)
        yield levels, own / variance[levels], largest


TWO_CHAINS = hr.Cuboids([
    "place.level1", "place.level2", "place.level3", "person.kind", "person.band",
    "place.level3 × person.cell",
])  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("workload", "facts", "is_bounded"),
    [(hr.Cube(), False, True), (hr.Cube(), True, False), (TWO_CHAINS, True, True),
     (NAMED, True, False)],
    ids=["whole cube", "cube", "two chains", "marginals"],
)  # fmt: skip
def test_no_other_draw_counts_more_than_is_said_of_it(workload, facts, is_bounded, seed):
    plan, counts, _ = planned(workload, facts=facts, seed=seed)
    found = set()
    for levels, h, largest in coefficients(pairs.released(counts, plan)):
        steps = plan.design.steps(plan.design.shape.given(levels))
        if steps is None:
            assert (largest <= 1 - h + 1e-9).all()
        else:
            own = plan.by_levels[levels].mechanism.noise_variance
            assert steps == Steps(min(plan.design.noise.values()), is_exact=True)
            assert (largest <= np.sqrt(h * (1 - h) * own / steps.least) + 1e-9).all()
        found.add(steps is None)
    assert found == {is_bounded} or seed == 3  # there an only child leaves out a level


def test_every_node_must_have_the_same_groups_not_as_many():
    """Two kinds a block, but not the same two."""
    plan, _, kinds = planned(hr.Cube())
    blocks = plan.tree.axes[0].labels[-1].to_list()
    pairs = ("home", "prison"), ("home", "nursing")
    rows = [(b, kind, 0) for i, b in enumerate(blocks) for kind in pairs[i % 2]]
    swapped = kinds.clear().vstack(type(kinds)(rows, schema=kinds.schema, orient="row"))
    facts = [hr.PublicTable(swapped, zeros="unlisted", at_least="least")]
    plan, *_ = planned(hr.Cube(), public=facts)
    assert plan.design.steps(plan.design.shape.finest) is not None
    same = swapped.filter(swapped["kind"] == "home")
    facts = [hr.PublicTable(same, zeros="unlisted", at_least="least")]
    plan, *_ = planned(hr.Cube(), public=facts)
    assert plan.design.steps(plan.design.shape.finest) is None


def test_variances_that_are_bounds_are_said_to_be():
    """Noise that is nearly always 0 is told by weights of wide noise."""
    for facts in (False, True):
        plan, *_ = planned(hr.Cube(), facts=facts, seed=0)
        parts = [Fraction(n, 20) for n in (1, 1, 3, 15)]
        named = {plan.tree.name_of(k): parts[k[0]] * parts[k[1]] for k in plan.measured}
        shares = hr.Shares({name: share / sum(named.values()) for name, share in named.items()})
        plan, *_ = planned(hr.Cube(), facts=facts, seed=0, budget=hr.Rho(60), allocation=shares)
        ratios = plan.design.model.ratios
        assert ratios.min() < 0.9 * ratios.max()
        assert not plan.design.steps(plan.design.shape.finest).is_exact
        assert not plan.design.steps_of_sums.is_exact
