"""The contract of releases: what holds whatever a plan measures, each theme for every workload.

Of every plan of the oracle's list (`tests.oracle.plans`), and of random ones. Nothing is computed
as the package computes it: sums are of the listed counts, estimates are those of dense matrices.
"""

import itertools
from collections import Counter
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.estimate.cube.shape import is_within
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.release.answers.questions import area_forecast
from hedgerow.release.answers.sums import Sums
from hedgerow.release.descent.nodes import Found
from hedgerow.release.descent.source import Drawn
from hedgerow.release.execution import in_memory
from hedgerow.release.passes import Pass
from hedgerow.tables.lists.lookup import Lookup
from tests.oracle.plans import CASES
from tests.release.dense import Dense, leaves_of
from tests.release.pairs import summed, tables, true_table
from tests.release.random_plans import RANDOM, random_workload
from tests.release.test_draws import Recorder

EVERY = [
    *((name, None) for name in CASES),
    *((kind, seed) for kind, (_, seeds) in RANDOM.items() for seed in range(seeds)),
]
WRITTEN = [(name, seed) for name, seed in EVERY if seed is None or seed < RANDOM[name][1] // 6]
"""Those of which a directory is made: files, page and check follow from the kind of a plan."""
NEARLY_EXACT = {hr.DiscreteGaussian: hr.Rho(10**6), hr.DiscreteLaplace: hr.Epsilon(10**4)}


@cache
def case_of(name, seed):
    return CASES[name]() if seed is None else RANDOM[name][0](seed)


@cache
def made(name, seed):
    """A case, and its release in memory."""
    case = case_of(name, seed)
    with case.limits():
        release = released(case, case.plan, seeded_bits(seed or 1))
    return SimpleNamespace(
        case=case, counts=case.counts, plan=case.plan, tree=case.plan.tree, release=release
    )


@cache
def dense_of(name, seed):
    """Least squares of all that this release measured whole."""
    return Dense(made(name, seed).release)


def released(case, plan, bits):
    return in_memory(case.counts, plan, estimator=case.estimator, bits=bits)


def true_counts(counts, columns):
    """The positive true counts by some columns, in a column of their own."""
    axes = zip(counts.tree.axes, counts.codes, strict=True)
    codes = [column for axis, code in axes for column in axis.path(axis.depth, code)]
    leaves = pl.DataFrame([*codes, pl.Series("true", counts.values)])
    found = leaves.group_by(columns or pl.lit(0).alias("all")).agg(pl.col("true").sum())
    return found.select(*columns, "true").filter(pl.col("true") > 0)


def beside(frame, other, columns):
    """A frame of codes, each once, with what another has beside them, or 0."""
    if not columns:
        return frame.join(other, how="cross") if len(other) else frame.with_columns(true=0)
    assert frame.select(columns).is_unique().all()
    return frame.join(other, on=columns, how="left", maintain_order="left").fill_null(0)


def every_workload(test):
    return pytest.mark.parametrize(("name", "seed"), EVERY)(test)


def combinations(tree):
    """Every combination of levels of the axes, as a user asks for it."""
    for levels in itertools.product(*(range(axis.depth + 1) for axis in tree.axes)):
        pairs = zip(tree.axes, levels, strict=True)
        yield levels, {axis.name: axis.levels[k - 1] for axis, k in pairs if k}


def sums_of_table(this, codes):
    """The positive sums by some columns of the first released table that tells them."""
    leaves = leaves_of(this.plan)
    for table in this.plan.tables:
        own, frame = this.tree.columns_of(table), this.release.level(this.tree.name_of(table))
        more = leaves.select(
            list(dict.fromkeys([*own, *codes]))
        ).unique()  # of levels of only children
        if not codes:
            return frame.select(pl.col("count").sum()).filter(pl.col("count") > 0)
        if own and len(more) == leaves.select(own).n_unique():
            sums = frame.join(more, on=own).group_by(codes).agg(pl.col("count").sum())
            return sums.filter(pl.col("count") > 0).sort(codes)
    raise AssertionError(f"no table tells {codes}")


def estimated_together(plan):
    """The cuboids whose estimates are least squares of all that was measured whole.

    None where the noise is so narrow that its weights are not the best, of running sums, and of
    survivors along a chain; nor of those of a cube, whose margins are estimated box by box; nor
    where a rule over several attributes empties cells, which are measured even so.
    """
    if any(isinstance(fact, hr.Zeros) for fact in plan.facts):
        return ()
    if plan.is_chain:
        return frozenset(plan.levels) if isinstance(plan.measure, hr.All) else ()
    by_box = isinstance(plan.measure, hr.Survivors) and getattr(plan.design, "squares", None)
    return plan.whole if plan.design.is_best and not by_box else ()


@every_workload
def test_counts_add_up_in_all_tables_and_keep_what_is_public(name, seed):
    this = made(name, seed)
    found, leaves = tables(this.release), leaves_of(this.plan)
    for levels, table in found.items():
        nodes = this.release.content.nodes[levels]
        assert (nodes.counts > 0).all(), "what is 0 is not listed"
        assert nodes.counts.dtype == np.int64
        for finer in this.plan.tables:
            if is_within(levels, finer):
                assert np.array_equal(summed(this.tree, found[finer], finer, levels), table)
        frame = this.release.level(this.tree.name_of(levels))
        if not this.plan.is_chain:
            assert np.array_equal(np.stack(nodes.codes, 1), np.argwhere(table)), "row by row"
        if this.plan.is_public(levels):
            assert np.array_equal(table, true_table(this.counts, levels))
            assert all(frame["count"].equals(frame[end].rename("count")) for end in ("low", "high"))
            assert (frame["standard_error"] == 0).all()
        codes = this.tree.columns_of(levels)
        assert not codes or not len(frame.join(leaves, on=codes, how="anti")), "facts"
    for fact in this.plan.facts:
        if not isinstance(fact, hr.Zeros) and fact.at_least:
            listed = fact.frame
            codes = [column for column in listed.columns if column in leaves.columns]
            both = listed.join(sums_of_table(this, codes), on=codes, how="left").fill_null(0)
            assert (both["count"] >= both[fact.at_least]).all()


@every_workload
@pytest.mark.sweep(4)
def test_estimates_and_errors_are_those_of_dense_least_squares(name, seed):
    this = made(name, seed)
    plan, known = this.plan, estimated_together(this.plan)
    dense = dense_of(name, seed) if known else None
    again = hr.reestimate(this.release, hr.LeastSquares()) if known else None
    forecast = dict(hr.forecast(plan).select("cuboid", "rmse").iter_rows())
    rows = []
    for levels, what in plan.by_levels.items():
        cuboid = this.tree.name_of(levels)
        if isinstance(plan.measure, hr.Survivors) and what.kind == "unmeasured" and not known:
            continue  # such cells have no estimates of their own
        every, listed = this.release.level(cuboid, all=True), this.release.level(cuboid)
        assert every.columns == listed.columns
        positive = every.filter(pl.col("count") > 0)
        assert positive.select(pl.exclude(pl.Float64)).equals(listed.select(pl.exclude(pl.Float64)))
        for column in ("estimate", "standard_error"):
            assert np.allclose(positive[column], listed[column], atol=1e-9)
        if levels not in known:
            continue
        variance, frame = dense.agrees(every), again.frames[levels]
        dense.agrees(frame)
        assert frame["released"].equals(every["count"].rename("released"))
        assert frame.select("low", "high").equals(every.select("low", "high"))
        assert (every["low"] <= every["high"]).all()
        if not plan.invariants:
            assert forecast[cuboid] ** 2 == pytest.approx(variance.mean(), rel=1e-5, abs=1e-7)
        both = {0, len(frame) - 1}  # of other cuboids one, so that pairs remain few
        chosen = both if levels in plan.tables else {max(both) * (len(rows) % 2)}
        rows += [(cuboid, row, dense.sums(frame[row])) for row in chosen]
    if known and this.tree.spine is None:
        weights = np.concatenate([each for *_, each in rows])
        found = again.covariance([(cuboid, row) for cuboid, row, _ in rows])
        exact = weights @ dense.covariance @ weights.T
        np.testing.assert_allclose(found, exact, rtol=1e-6, atol=1e-5)


@every_workload
@pytest.mark.sweep(5)
def test_any_sum_is_that_of_a_table_with_the_errors_of_dense_least_squares(name, seed):
    this = made(name, seed)
    known = estimated_together(this.plan)
    dense = dense_of(name, seed) if known else None
    asked = [*combinations(this.tree), *((None, each) for each in this.case.sums)]
    surer = [hr.Confidence(0.999), hr.Confidence(0.95, simultaneous=True)]
    by_turns = itertools.cycle(surer if (seed or len(name)) % 2 else surer[::-1])
    for levels, names in asked:
        if levels is not None and this.plan.table_of(levels) is None:
            for confidence in (hr.Confidence(), None):
                with pytest.raises(hr.ReleaseError, match="is no sum of what was released"):
                    this.release.cuboid(confidence, **names)
            continue
        alone = this.release.cuboid(None, **names)
        codes = alone.columns[:-1]
        assert alone.equals(sums_of_table(this, codes).select(alone.columns))
        if dense is None or (levels and not this.plan.design.is_answerable(levels)):
            continue
        found = this.release.cuboid(**names)
        assert found.select(alone.columns).equals(alone)
        dense.agrees(found)
        assert found["contradicted"].null_count() == 0
        wide = this.release.cuboid(next(by_turns), **names)
        assert (wide["low"] <= found["low"]).all()
        assert (wide["high"] >= found["high"]).all()


def lookups(tree):
    """Overlapping areas of the nodes of every level that one column tells; levels beside them."""
    for axis in tree.axes:
        others = {other.name: other.levels[0] for other in tree.axes if other is not axis}
        for level in range(1, axis.depth + 1):
            codes = axis.keys(level)
            if codes.width == 1:
                turns = codes.with_columns(area=pl.Series([f"{i % 3}" for i in range(len(codes))]))
                first = codes[:2].with_columns(area=pl.lit("the first"))
                yield pl.concat([turns, first]), others


@every_workload
@pytest.mark.sweep(5)
def test_areas_have_the_estimates_and_errors_of_dense_least_squares(name, seed):
    this = made(name, seed)
    finest = tuple(axis.depth for axis in this.tree.axes)
    if finest not in estimated_together(this.plan):
        return
    dense = dense_of(name, seed)
    leaves = this.release.level(this.tree.name_of(finest))
    alone_and_beside = (
        (lookup, read, by)
        for lookup, others in lookups(this.tree)
        for read in [Lookup.of(this.tree, lookup, "area")]
        for by in ({}, others)[: 1 + bool(others)]
    )
    for lookup, read, by in alone_and_beside:
        found = this.release.areas(lookup, column="area", by=by)
        dense.agrees(found, lookup)
        column, codes = lookup.columns[0], found.columns[: found.columns.index("count")]
        counts = leaves.join(lookup, on=column).group_by(codes).agg(pl.col("count").sum())
        both = found.select(*codes, "count").join(counts, on=codes, how="left").fill_null(0)
        assert both["count"].equals(both["count_right"].rename("count"))
        assert found.select(codes).equals(found.select(codes).sort(codes))
        planned = area_forecast(Sums(this.plan, by, read))
        told = planned["standard_error_of_estimate"].to_numpy()
        if not any(this.plan.public or ()):  # else zeros below what is public are not foreseen
            np.testing.assert_allclose(found["standard_error"], told, rtol=1e-6, atol=1e-5)


def answers(release):
    """Everything that a release tells, or the words of its refusals."""

    def ask(question):
        try:
            return question()
        except hr.ReleaseError as refused:
            return pl.DataFrame({"refused": [str(refused)]})

    for cuboid in release.plan.cuboids:
        yield release.level(cuboid)
        yield ask(lambda cuboid=cuboid: release.level(cuboid, all=True))
        yield ask(lambda cuboid=cuboid: release.measurements(cuboid))
    for _, names in combinations(release.plan.tree):
        yield ask(lambda names=names: release.cuboid(**names))
        yield ask(lambda names=names: release.cuboid(None, **names))
    lookup, others = next(lookups(release.plan.tree), (None, {}))
    for by in () if lookup is None else ({}, others):
        yield ask(lambda by=by: release.areas(lookup, column="area", by=by))


@pytest.mark.parametrize(("name", "seed"), WRITTEN)
@pytest.mark.sweep(8)
def test_a_directory_passes_the_check_and_says_the_same(name, seed, out):
    this = made(name, seed)
    with this.case.limits():  # jobs are cut alike
        this.release.write(out)
        assert [each.what for each in hr.check(out) if not each.passed] == []
        again = hr.read_release(out)
        assert again.plan.hash == this.plan.hash
        for here, there in zip(answers(this.release), answers(again), strict=True):
            assert here.equals(there)
        own = hr.reestimate(out, this.case.estimator)
        for frame in own.frames.values():
            assert frame["count"].equals(frame["released"].rename("count"))
        if not isinstance(this.plan.measure, hr.RunningSums):
            here, there = (hr.reestimate(each, hr.LeastSquares()) for each in (this.release, out))
            assert here.described == there.described
            assert all(there.frames[levels].equals(frame) for levels, frame in here.frames.items())


UNCUT = [(name, seed) for name, seed in EVERY if "in jobs" not in name and "of several" not in name]


@pytest.mark.parametrize(("name", "seed"), UNCUT)
def test_no_two_cells_share_a_draw_and_a_place_that_lacks_a_level_is_found(name, seed):
    """Where a tree is cut into jobs: `test_draws` and `spine/test_noise_places`."""
    case = case_of(name, seed)
    axes = len(case.plan.tree.axes)

    def drawn(drop=None):
        bits = Recorder(drop)
        return bits, in_memory(case.counts, case.plan, estimator=case.estimator, bits=bits)

    bits, release = drawn()
    assert len(case.plan.guarantee.uses) >= len(release.content.measured)
    assert bits.shared() == []
    cells = {place: sum(b - a for a, b in ranges) for place, ranges in bits.by_place().items()}
    assert cells == {k: len(noisy) for k, noisy in release.content.measured.items() if len(noisy)}
    assert len(bits.words()) == release.content.noisy_cells
    for drop in range(axes):
        fault, again = drawn(drop)
        there = (levels for levels, noisy in again.content.measured.items() if len(noisy))
        short = Counter(levels[:drop] + levels[drop + 1 :] for levels in there)
        assert bool(fault.shared()) == (max(short.values()) > 1)


@pytest.mark.parametrize("name", [name for name in CASES if not name.endswith(", Laplace")])
@pytest.mark.sweep(8)
def test_a_run_that_was_killed_is_finished_with_the_same_noise(out, monkeypatch, name):
    case, keys, own = case_of(name, None), [], Pass._results
    given = {"estimator": case.estimator, "directory": out}

    def dies(run):
        keys.append(run.flow.source.bits)
        for found in own(run):
            if isinstance(found, Found) and found.levels == case.plan.levels[-1]:
                raise OSError(28, "No space left on device")
            yield found

    with case.limits():
        with monkeypatch.context() as patch:
            patch.setattr(Pass, "_results", dies)
            with pytest.raises(hr.MachineError, match="No space left"):
                hr.release(case.counts, case.plan, **given)
        assert not out.exists()
        with pytest.raises(hr.ReleaseError, match=r"--resume .* --discard"):
            hr.release(case.counts, case.plan, **given)
        release = hr.release(case.counts, case.plan, unfinished=hr.Unfinished.RESUME, **given)
        expected = in_memory(case.counts, case.plan, estimator=case.estimator, bits=keys[0])
    for cuboid in case.plan.cuboids:
        assert release.level(cuboid).equals(expected.level(cuboid)), cuboid
    for levels, noisy in expected.content.measured.items():
        assert np.array_equal(release.content.measured[levels], noisy), levels
    assert list(out.parent.iterdir()) == [out], "nothing is left beside it"
    with case.limits():
        assert all(finding.passed for finding in hr.check(out))


@every_workload
@pytest.mark.sweep(4)
def test_with_hardly_any_noise_counts_and_noisy_counts_are_the_truth(name, seed):
    """Each beside the codes of the records that it counts."""
    case = case_of(name, seed)
    plan = replace(case.plan, budget=NEARLY_EXACT[case.plan.mechanism], inverse_two_rho=None)
    with case.limits():
        release = released(case, plan, seeded_bits(1))
    for levels, what in plan.by_levels.items():
        columns, cuboid = plan.tree.columns_of(levels), plan.tree.name_of(levels)
        frames = {"count": release.level(cuboid)}
        if isinstance(what, hr.Measured):
            frames["noisy_count"] = noisy = release.measurements(cuboid)
            assert noisy.columns == [*columns, "noisy_count", "variance"]
            assert len(noisy) <= len(release.content.measured[levels]), "but what a rule empties"
            assert (noisy["variance"] == what.mechanism.noise_variance).all()
        for value, frame in frames.items():
            both = beside(frame, true_counts(case.counts, columns), columns)
            assert both[value].equals(both["true"].rename(value)), cuboid
            assert both["true"].sum() == case.counts.total, "no cell is missing"


@every_workload
@pytest.mark.sweep(4)
def test_noisy_counts_are_unbiased_with_the_variance_that_they_state(name, seed):
    """α = 1e-6 each for the mean and the variance, both sides.

    Of 500 counts, the fewest of a recorded plan, a mean off by 0.22 deviations and a variance of
    1.31 times the stated one (Gaussian) are found as often as not.

    Also below survivors, whose own noise has no part in whether they are measured. Of running sums
    there is no noisy count; see `test_running_sums`.
    """
    case = case_of(name, seed)
    kurtosis = 6 if case.plan.mechanism is hr.DiscreteLaplace else 3
    total, squares, many, least = 0.0, 0.0, 0, np.inf
    for bits in map(seeded_bits, range(8 if seed is None else 2)):
        with case.limits():
            release = released(case, case.plan, bits)
        for levels, what in case.plan.by_levels.items():
            if isinstance(what, hr.Measured):
                columns = case.plan.tree.columns_of(levels)
                noisy = release.measurements(case.plan.tree.name_of(levels))
                both = beside(noisy, true_counts(case.counts, columns), columns)
                gap = (both["noisy_count"] - both["true"]).to_numpy()
                scaled = gap / np.sqrt(noisy["variance"].to_numpy())
                total, squares = total + scaled.sum(), squares + (scaled**2).sum()
                many, least = many + len(scaled), min(least, what.mechanism.noise_variance)
    assert many > 500 or isinstance(case.plan.measure, hr.RunningSums) or seed is not None
    assert abs(total) <= 4.9 * many**0.5
    assert abs(squares - many) <= 4.9 * ((kurtosis - 1 + 1 / least) * many) ** 0.5


@every_workload
def test_true_counts_are_given_of_public_cuboids_alone(name, seed):
    case = case_of(name, seed)
    source = Drawn(case.counts, case.plan, seeded_bits(0))
    for levels in case.plan.levels:
        if case.plan.is_public(levels):
            exact = true_table(case.counts, levels)
            found = source.exact(levels)
            assert np.sort(found).tolist() == np.sort(exact[exact > 0]).tolist() or np.array_equal(
                found, exact.ravel()
            )
        else:
            with pytest.raises(ValueError, match="true counts of a cuboid that is not public"):
                source.exact(levels)


HUGE = [1 << 39, 1 << 38, 3]
WITHOUT_FACTS = [name for name in CASES if "facts" not in name and name != "nested, little noise"]
"""Facts, of which some are bounds, contradict such tables."""
ONE_OF_A_KIND = {
    "chain, survivors", "chain, all", "flows, survivors", "cube, all", "cube, survivors, Laplace",
    "named, a spine", "named, general", "named, survivors", "nested", "marginals",
    "column, running sums", "column, a tree",
}  # fmt: skip
"""Of these a directory is made; each is of another estimator or of another page."""


@pytest.mark.parametrize("name", WITHOUT_FACTS)
@pytest.mark.parametrize("values", [[], HUGE], ids=["empty", "enormous"])
@pytest.mark.sweep(3)
def test_a_table_of_nothing_and_one_of_enormous_counts_are_released_like_any_other(
    name, values, out
):
    case = case_of(name, None)
    leaves = [
        np.linspace(0, axis.size(axis.depth) - 1, 3).astype(np.int32)[: len(values)]
        for axis in case.plan.tree.axes
    ]
    counts = hr.Counts.from_leaves(case.plan.tree, tuple(leaves), np.array(values, dtype=np.int64))
    with case.limits():
        release = in_memory(counts, case.plan, estimator=case.estimator, bits=seeded_bits(1))
        if name in ONE_OF_A_KIND:
            release.write(out)
            assert [each.what for each in hr.check(out) if not each.passed] == []
    total = {int(found.sum()) for found in tables(release).values()}
    assert len(total) == 1
    assert abs(total.pop() - counts.total) < 2000


def test_random_workloads_are_of_all_kinds():
    plans = [case_of("random named", seed).plan for seed in range(RANDOM["random named"][1])]
    assert all(isinstance(plan.workload, hr.Cuboids) for plan in plans)
    assert 10 < sum(len(plan.tables) > 1 for plan in plans) < 20
    assert sum(isinstance(plan.measure, hr.Survivors) for plan in plans) >= 4
    assert sum(plan.mechanism is hr.DiscreteLaplace for plan in plans) >= 6
    assert sum(plan.public is not None and any(plan.public) for plan in plans) >= 3
    assert sum(plan.public is None for plan in plans) >= 10


@pytest.mark.parametrize("seed", range(24))
def test_a_workload_has_one_hash_however_it_is_spelled(seed):
    plan, other = random_workload(seed)
    assert other.hash == plan.hash
    assert other.by_levels == plan.by_levels
