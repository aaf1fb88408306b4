"""What areas of a cuboid of a cube or of a named one are due, and the joint errors behind that."""

from functools import cache
from itertools import repeat
from typing import Any

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.errors import ReleaseError
from hedgerow.evaluate.funds import Above, Proportional, Quadratic, Seats
from hedgerow.evaluate.share_intervals import share_intervals
from hedgerow.release.answers import joint_errors
from hedgerow.release.answers.joint_errors import errors_of, raw_errors
from hedgerow.spec.release_spec import ReleaseSpec
from tests.made import random_tree
from tests.release.dense import Dense
from tests.release.pairs import (
    MEASURES,
    PAIRS,
    WORKLOADS,
    cube,
    named,
    released,
    table_of,
    tables,
    true_table,
)
from tests.release.spine.made_files import write_files

DRAWS = 4_000
LAPLACE: dict[str, Any] = {"mechanism": hr.DiscreteLaplace, "budget": hr.Epsilon(6)}
RANDOM = random_tree(np.random.default_rng(3), axes=2, depth=2, widest=3)
OPTIONS: dict[str, dict[str, object]] = {
    "public total": {},
    "measured total": {"neighbours": hr.AddRemove()},
    "laplace": {"neighbours": hr.AddRemove(), **LAPLACE},
}
PLANS = {
    "public total": cube(RANDOM),
    "measured total": cube(RANDOM, neighbours=hr.AddRemove()),
    "laplace": cube(RANDOM, neighbours=hr.AddRemove(), **LAPLACE),
    "public level": cube(RANDOM, invariants=[hr.Invariant("a0", "level1")]),
    **{
        f"{name}, {words}": named(WORKLOADS[name], **options)
        for name in ("margins that overlap", "a chain with margins")
        for words, options in OPTIONS.items()
    },
}


def each_alone(monkeypatch, plan, levels):
    """The errors where one noisy count has a noise of 1 and all others none, for each in turn.

    Least squares is linear, so the errors of any noise follow from these.

    Returns:
        float64 (noisy counts, cells), records a record; float64 (noisy counts): the variances.
    """
    drawn = list[float]()
    turn = iter(())

    def draw(mechanism, stream, start, noise):
        del stream, start
        drawn.extend([mechanism.noise_variance] * len(noise))
        noise[:] = [next(turn) for _ in noise]

    with monkeypatch.context() as patch:
        for mechanism in (hr.DiscreteGaussian, hr.DiscreteLaplace):
            patch.setattr(mechanism, "draw", draw)
        turn = repeat(0)
        assert not errors_of(plan, levels)(1, 0).any()
        variances = np.array(drawn)
        turn = iter(np.eye(len(variances), dtype=np.int64).ravel())
        alone = errors_of(plan, levels)(len(variances), 0)
    assert next(turn, None) is None
    assert np.array_equal(drawn, np.tile(variances, len(variances) + 1))
    return alone, variances


def assert_of_law(drawn, exact):
    """Independent draws of normal errors have a covariance, in all directions and in each cell.

    Of D draws in r dimensions the mean of eᵀΣ⁺e is r, with the standard error √(2r/D): 5 of these
    are 11 % of r = 12 and D = 300. So a test of level 6e-7 sees noise of another variance, noise
    that is drawn twice, and two cuboids with the same noise.
    """
    draws, rank = len(drawn), np.linalg.matrix_rank(exact, tol=1e-9, hermitian=True)
    inverse = np.linalg.pinv(exact, rcond=1e-9, hermitian=True)
    found = np.einsum("di,ij,dj->d", drawn, inverse, drawn)
    assert abs(found.mean() - rank) < 5 * np.sqrt(2 * rank / draws)
    own = np.diag(exact)
    assert (np.abs((drawn**2).mean(axis=0) - own) < 6 * own * np.sqrt(2 / draws)).all()
    assert (np.abs(drawn.mean(axis=0)) < 6 * np.sqrt(own / draws)).all()


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@pytest.mark.sweep(3)
def test_joint_errors_have_the_covariance_of_a_dense_solver(plan, monkeypatch):
    """Of named cuboids exactly, whatever the noise; of cubes, some of whose noise is normal, in
    4,000 independent draws: each entry within 6 standard errors (α below 1e-6)."""
    dense = Dense(released(table_of(tree=plan.tree, filled=2.0), plan))

    def sums_of(levels):
        cells = dense.leaves.select(plan.tree.columns_of(levels) or pl.lit(0))
        return dense.sums(cells.unique(maintain_order=True))

    is_cube = isinstance(plan.workload, hr.Cube)
    for levels in plan.levels if is_cube else [(1, 0), plan.tables[-1]]:
        if plan.is_public(levels) or levels in plan.repeats:
            continue
        sums = sums_of(levels)
        exact = sums @ dense.covariance @ sums.T
        if is_cube:
            drawn = errors_of(plan, levels)(DRAWS, "share intervals/1")
            own = np.diag(exact)
            error = np.sqrt(2.5 * (np.outer(own, own) + exact**2) / DRAWS)  # 2.5: of Laplace noise
            found = drawn.T @ drawn / DRAWS
            assert (np.abs(found - exact) <= 6 * error + 1e-9).all(), levels
            assert np.abs(drawn.mean(axis=0)).max() <= 6 * np.sqrt(own.max() / DRAWS)
        else:
            drawn, variances = each_alone(monkeypatch, plan, levels)
            assert np.allclose((drawn.T * variances) @ drawn, exact, rtol=1e-7, atol=1e-7), levels
            if all(isinstance(noise, hr.DiscreteGaussian) for noise in plan.noise.values()):
                assert_of_law(errors_of(plan, levels)(300, 1), exact)
        if plan.public is not None:  # what is known exactly has no error
            known = sums_of(plan.public)
            shares = np.linalg.pinv(sums.T) @ known.T  # the sums that are public, of these cells
            within = np.abs(sums.T @ shares - known.T).max(axis=0) < 1e-9
            assert np.abs(drawn @ shares[:, within]).max(initial=0) < 1e-6


def test_errors_of_survivors_are_those_of_their_noisy_counts():
    noise = hr.DiscreteGaussian("30")
    drawn = raw_errors((2, 2), noise, 7)(DRAWS, "share intervals/2")
    found = drawn.T @ drawn / DRAWS
    assert np.abs(found - 30 * np.eye(7)).max() <= 6 * np.sqrt(2 * 30**2 / DRAWS)


def test_errors_along_a_spine_are_those_of_the_estimates(monkeypatch, tmp_path):
    """Attributes that nest, where public files and a rule leave cells to nobody."""
    spec = ReleaseSpec(write_files(tmp_path / "files"))
    plan = spec.plan(spec.tree())
    for cuboid in [(3, 1), (1, 4)]:
        alone, variances = each_alone(monkeypatch, plan, plan.design.levels(cuboid))
        expected = plan.design.variances_at(cuboid, plan.design.codes_of(cuboid)[0])
        assert (alone**2).T @ variances == pytest.approx(expected, rel=1e-9)


def test_errors_are_row_by_row_where_a_node_holds_its_groups_one_after_another(monkeypatch):
    """Groups are of the last axis here: the cells of a node are not in the order of its codes."""
    blocks = pl.DataFrame({"county": ["a", "a", "b"], "block": ["a1", "a2", "b1"]})
    kinds = pl.DataFrame({"block": ["a1", "a1", "a2", "b1"], "kind": ["x", "y", "x", "y"]})
    tree = hr.Tree([
        hr.Axis.from_frame("place", blocks, ["county", "block"]),
        hr.Axis.from_frame("age", pl.DataFrame({"age": ["m", "w"]}), ["age"], attribute=True),
        hr.Axis.from_frame("kind", kinds.select("kind").unique(), ["kind"], attribute=True),
    ])  # fmt: skip
    shares = {"place": ["1/5", "2/5", "2/5"], "age": ["1/3", "2/3"], "kind": ["1/4", "3/4"]}
    plan = hr.make_plan(
        tree, budget=hr.Rho(2), neighbours=hr.Replace(), workload=hr.Cube(),
        allocation=hr.Shares(shares), public=[hr.PublicTable(kinds, zeros="unlisted")],
    )  # fmt: skip
    joint, found = plan.design, {}
    assert not joint.is_row_by_row((2, 1, 1))
    for cuboid in [(2, 0, 0), (2, 0, 1), (2, 1, 1)]:
        codes, order = joint.codes_of(cuboid)
        alone, variances = each_alone(monkeypatch, plan, cuboid)
        expected = joint.variances_at(cuboid, codes)
        assert (alone**2).T @ variances == pytest.approx(expected, rel=1e-9)
        found[cuboid] = alone
    assert not np.array_equal(order, np.sort(order))
    assert_of_law(errors_of(plan, cuboid)(300, 1), (alone.T * variances) @ alone)
    # the ages of a block that has one kind have errors of one law; so has a block's sum of ages
    for i, (block, _, kind) in enumerate(zip(*joint.codes_of((2, 0, 1))[0], strict=True)):
        own = (codes[0] == block) & (codes[2] == kind)
        assert own.sum() == 2
        assert np.allclose(alone[:, own].sum(axis=1), found[2, 0, 1][:, i], atol=1e-9)


DUE = [
    *((hr.Cube(), measure, levels) for measure in MEASURES for levels in [(2, 0), (1, 2), (1, 1)]),
    (WORKLOADS["margins alone"], hr.All(), (2, 0)),
]


@pytest.mark.parametrize(("workload", "measure", "levels"), DUE)
def test_intervals_cover_what_is_due_as_often_as_they_say(monkeypatch, workload, measure, levels):
    """20 releases of 6 to 30 areas each, by each rule: below 86 % is a fault.

    Errors are drawn once for all releases and rules. Of 400 draws the ends of an interval may be
    off by a chance of 1 % of an area's (standard error), which the areas average out.
    """
    plan = named(workload, measure=measure, neighbours=hr.AddRemove(), budget=hr.Rho("1/20"))
    drawn = cache(errors_of(plan, levels))
    monkeypatch.setattr(joint_errors, "errors_of", lambda *_: drawn)
    counts = table_of(filled=0.9)
    truth = true_table(counts, levels).ravel()
    releases = [released(counts, plan, seed) for seed in range(20)]
    for rule in (Proportional(), Quadratic(), Seats()):
        due, covered = rule.allocate(truth, 60), []
        for release in releases:
            found = share_intervals(release, PAIRS.name_of(levels), rule, 60, draws=400)
            assert len(found) == len(truth), "row by row, listed or not"
            low, high = found["low"].to_numpy(), found["high"].to_numpy()
            covered.append(((low <= due + 1e-9) & (due <= high + 1e-9)).mean())
        assert np.mean(covered) >= 0.86, rule.name
        assert isinstance(rule, Seats) or np.mean(covered) <= 0.995, rule.name


def test_amounts_follow_the_released_counts_and_estimates_stand_beside_them():
    release = released(table_of(), cube())
    found = share_intervals(release, "d.level2", Proportional(), 1000.0, draws=100)
    table = tables(release)[0, 2].ravel()
    assert found["count"].to_list() == table.tolist()
    assert np.allclose(found["amount"], 1000 * table / table.sum())
    again = hr.reestimate(release, hr.LeastSquares()).level("d.level2")
    assert np.allclose(found["estimate"], again["estimate"])


def test_public_counts_are_shared_without_a_doubt():
    plan = cube(neighbours=hr.Replace(), invariants=[hr.Invariant("o", "level1")])
    found = share_intervals(released(table_of(), plan), "o.level1", Proportional(), 90.0)
    assert found["low"].equals(found["amount"].rename("low"))
    assert found["high"].equals(found["amount"].rename("high"))


@pytest.mark.parametrize("workload", [hr.Cube(), WORKLOADS["margins and leaves"]], ids=repr)
def test_survivors_share_by_their_noisy_counts(workload):
    release = released(table_of(filled=0.1), named(workload, measure=hr.Survivors()))
    found = share_intervals(release, PAIRS.name_of((2, 2)), Proportional(), 5.0, draws=100)
    again = hr.reestimate(release, hr.LeastSquares()).frames[2, 2]
    assert found["estimate"].equals(again["estimate"])
    assert len(found) < PAIRS.leaves
    equal = share_intervals(release, "o.level2", Above(5, equally=True), 3.0)
    assert (equal["low"] <= equal["high"]).all()


def test_a_name_that_is_no_cuboid_is_refused():
    release = released(table_of(), cube())
    with pytest.raises(ReleaseError, match=r"no level is called 'o.level7'; there are total, d.le"):
        share_intervals(release, "o.level7", Proportional(), 1.0)


def test_areas_of_no_cuboid_of_the_workload_are_refused():
    release = released(table_of(), named(WORKLOADS["margins alone"]))
    with pytest.raises(ReleaseError, match=r"the plan has no cuboid 'o\.level1' .*by cuboids of"):
        share_intervals(release, "o.level1", Proportional(), 1.0)


def test_so_many_draws_that_they_take_minutes_are_refused(monkeypatch):
    release = released(table_of(), named(WORKLOADS["margins alone"]))
    monkeypatch.setattr(joint_errors, "MOST_DRAWN", 1000)
    with pytest.raises(ReleaseError, match=r"22 noisy counts of this release 50 times, and 1,000"):
        share_intervals(release, "o.level2", Proportional(), 1.0, draws=100)
