"""Sums over areas of a user's own: counts, and errors equal to those of dense matrices."""

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.estimate.workload import general
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.plan.planned_spine import PlannedSpine
from hedgerow.release.answers import answers
from hedgerow.release.answers import sums as made_sums
from hedgerow.release.answers.questions import area_forecast
from hedgerow.release.answers.sums import Sums
from hedgerow.release.execution import in_memory
from hedgerow.tables.lists.lookup import Lookup
from tests.made import plain_plan, random_axis
from tests.release.spine.made_spines import dense_estimates, incidence

PLACES = {"town": ["p1", "p2", "p3", "q1", "q2", "r1"], "county": ["p", "p", "p", "q", "q", "r"]}
AGES = {"age": ["0", "1", "2", "3"], "band": ["x", "x", "y", "y"]}
SEXES = {"sex": ["f", "m"]}
FIXED = {"neighbours": hr.Replace()}
FINEST = "place.town × age.age × sex.sex"
WORKLOADS = {
    "chain": {"measure": hr.All()},
    "chain, fixed": {"measure": hr.All(), **FIXED},
    "cube": {"workload": hr.Cube()},
    "cube, fixed": {"workload": hr.Cube(), **FIXED},
    "named": {"workload": hr.Cuboids(["place.town × age.band", "sex.sex × age.age", FINEST])},
    "named, fixed": {"workload": hr.Cuboids(["place.county", "sex.sex", FINEST]), **FIXED},
    "spine": {"workload": hr.Cuboids(["place.town × age.band", "sex.sex × age.age", FINEST])},
    "spine, fixed": {
        "workload": hr.Cuboids(["place.county × age.band", "sex.sex", FINEST]), **FIXED,
    },
    "spine, zeros": {
        "workload": hr.Cuboids(["place.county × age.band", "place.town", FINEST]),
    },
    "spine cube": {"workload": hr.Cube()},
    "spine cube, fixed": {"workload": hr.Cube(), **FIXED},
}  # fmt: skip
CASES = {
    "towns": ({"town": ["p1", "q1", "r1", "q1", "p2", "p1"], "area": list("aabbcc")}, {}),
    "towns by band": ({"town": ["p1", "q1", "r1", "q1"], "area": list("aabb")}, {"age": "band"}),
    "towns by both": (
        {"town": ["p3", "q2", "q1", "p3"], "area": list("aabb")},
        {"age": "age", "sex": "sex"},
    ),
    "counties": ({"county": ["p", "r", "q", "r"], "area": list("aabb")}, {"sex": "sex"}),
    "ages": ({"age": ["0", "3", "3", "1"], "area": list("aabb")}, {"place": "county"}),
    "sexes": ({"sex": ["f", "m"], "area": ["all", "all"]}, {}),
}


def made(kind):
    """A release of a small table, and which leaves can hold records."""
    beside = kind.startswith("spine")
    levels = (["county", "town"], ["band", "age"], ["sex"])
    frames = (PLACES, AGES, SEXES)
    axes = [
        hr.Axis.from_frame(own[-1] if own[0] != "county" else "place", frame, own,
                           attribute=beside and own[0] != "county")
        for frame, own in zip(frames, levels, strict=True)
    ]  # fmt: skip
    if kind.startswith("spine cube"):
        axes = axes[:2]
    if kind == "spine, zeros":  # so that cells of a node are not row by row
        axes = [axes[0], axes[2], axes[1]]
    tree = hr.Tree(axes)
    allowed = np.ones([axis.size(axis.depth) for axis in axes], dtype=bool)
    more = {}
    if kind == "spine, zeros":
        rows = {"town": ["p1", "p1", "p3", "q1", "q2"], "band": ["x", "y", "x", "y", "x"]}
        more["public"] = [hr.PublicTable(rows, zeros="unlisted")]
        allowed[:] = False
        for town, band in zip(*rows.values(), strict=True):
            ages = [AGES["band"].index(band), AGES["band"].index(band) + 1]
            allowed[PLACES["town"].index(town), :, ages] = True
    plan = plain_plan(tree, budget=hr.Rho("1/40"), **WORKLOADS[kind], **more)
    codes = np.nonzero(allowed)
    values = np.arange(1, len(codes[0]) + 1) * 7 % 23
    counts = hr.Counts.from_leaves(tree, tuple(code.astype(np.int32) for code in codes), values)
    release = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(2))
    return release, allowed


def noisy_row_by_row(release):
    """The noisy counts of each measured cuboid, its cells by number."""
    tree, found = release.plan.tree, {}
    for levels, what in release.plan.by_levels.items():
        if what.kind == "measured":
            frame = release.measurements(tree.name_of(levels))
            number = np.zeros(len(frame), dtype=np.int64)
            for axis, level in zip(tree.axes, levels, strict=True):
                number *= axis.size(level)
                if level:
                    keys = axis.keys(level).with_row_index("at")
                    joined = frame.join(keys, on=keys.columns[1:], maintain_order="left")
                    number += joined["at"].to_numpy()
            found[levels] = frame["noisy_count"].to_numpy()[np.argsort(number)].astype(float)
    return found


def errors_of(sums):
    """The errors from public facts."""
    return area_forecast(sums)["standard_error_of_estimate"].to_numpy()


def weights_of(release, allowed, rows, by):
    """A row of 0 and 1 over the leaves that can hold records, for each sum, and their names."""
    tree = release.plan.tree
    table = pl.concat(
        [
            axis.leaf_frame()[code]
            for axis, code in zip(tree.axes, np.nonzero(allowed), strict=True)
        ],
        how="horizontal",
    )
    given = next(name for name in rows if name != "area")
    beside = [
        axis.keys(axis.level_number(by[axis.name]))
        if by[axis.name] in axis.levels
        else axis.leaf_frame().select(by[axis.name].split(" × ")).unique().sort(pl.all())
        for axis in tree.axes
        if axis.name in by
    ]
    combinations = pl.DataFrame({"area": sorted(set(rows["area"]))})
    for frame in beside:
        combinations = combinations.join(frame, how="cross", maintain_order="left_right")
    weights = []
    for row in combinations.iter_rows(named=True):
        members = {c for c, area in zip(rows[given], rows["area"], strict=True)
                   if area == row["area"]}  # fmt: skip
        inside = table[given].is_in(list(members))
        for name, code in row.items():
            if name != "area":
                inside &= table[name] == code
        weights.append(inside.to_numpy().astype(float))
    return np.array(weights), combinations


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", WORKLOADS)
def test_estimates_and_errors_of_any_areas_are_those_of_dense_least_squares(kind, case):
    rows, by = CASES[case]
    release, allowed = made(kind)
    if "sex" in {*by, *rows} and len(release.plan.tree.axes) == 2:
        return
    total = release.level("total")["count"].item() if "fixed" in kind else None
    x, covariance = dense_estimates(release.plan, allowed, noisy_row_by_row(release), total)
    weights, names = weights_of(release, allowed, rows, by)
    found = release.areas(rows, by=by)
    assert found.select(names.columns).equals(names)
    assert np.allclose(found["estimate"], weights @ x, rtol=1e-7, atol=1e-6)
    exact = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", weights, covariance, weights), 0))
    assert np.allclose(found["standard_error"], exact, rtol=1e-6, atol=1e-5)
    leaves = incidence(release.plan.tree, release.plan.tables[0], allowed)[1]
    counts = np.zeros(allowed.size)
    nodes = release.content.nodes[release.plan.tables[0]]
    counts[np.ravel_multi_index(nodes.codes, allowed.shape)] = nodes.counts
    assert found["count"].to_list() == (weights @ counts[leaves]).astype(int).tolist()
    wide = found["high"] - found["low"] >= found["standard_error"]
    assert (wide | (found["low"] == 0) | (found["standard_error"] == 0)).all()
    lookup = Lookup.of(release.plan.tree, rows)
    forecast = errors_of(Sums(release.plan, by, lookup))
    assert np.allclose(forecast, exact, rtol=1e-6, atol=1e-5)


NAMED = ["place.county × age.band", "sex.sex", FINEST]
EXACT = {
    "chain": {"measure": hr.All()},
    "cube": {"workload": hr.Cube()},
    "named": {"workload": hr.Cuboids(["place.county", "sex.sex", FINEST])},
    "dense": {"workload": hr.Cuboids(["sex.sex × age.age", *NAMED])},
    "spine": {"workload": hr.Cuboids(NAMED)},
    "spine, crossed": {"workload": hr.Cuboids(["sex.sex × age.age", *NAMED])},
    "spine cube": {"workload": hr.Cube()},
}


def random_places(rng, name, counties):
    """Places of some counties, one to four each."""
    of = np.repeat(np.arange(counties), rng.integers(1, 5, counties))
    return {f"{name}s": [f"{name}{i}" for i in range(len(of))], name: [f"{i}" for i in of]}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", EXACT)
def test_a_sum_of_all_that_has_a_public_total_has_no_error_at_all(kind, seed):
    """Not the root of a rounding error either, whatever the order that a processor adds in."""
    rng = np.random.default_rng(seed)
    towns, ages = (random_places(rng, name, int(rng.integers(2, 6))) for name in ("p", "a"))
    lists = (
        {"town": towns["ps"], "county": towns["p"]},
        {"age": ages["as"], "band": ages["a"]},
        {"sex": [f"s{i}" for i in range(int(rng.integers(2, 8)))]},
    )
    beside = kind.startswith("spine")
    axes = [
        hr.Axis.from_frame("place", lists[0], ["county", "town"]),
        hr.Axis.from_frame("age", lists[1], ["band", "age"], attribute=beside),
        hr.Axis.from_frame("sex", lists[2], ["sex"], attribute=beside),
    ]
    tree = hr.Tree(axes[:2] if kind == "spine cube" else axes)
    budget = hr.Rho(hr.Rho("1/40").rho / int(rng.integers(1, 50)))
    plan = plain_plan(tree, budget=budget, **EXACT[kind], **FIXED)
    for rows in lists[: len(tree.axes)]:
        for column, codes in rows.items():
            every = sorted(set(codes))
            area = {column: every, "area": ["all"] * len(every)}
            assert errors_of(Sums(plan, {}, Lookup.of(tree, area))).tolist() == [0.0]
    part = {"town": towns["ps"][1:], "area": ["all but one"] * (len(towns["ps"]) - 1)}
    assert errors_of(Sums(plan, {}, Lookup.of(tree, part))).item() > 0.1


@pytest.mark.parametrize("seed", range(6))
def test_the_only_town_of_a_public_county_has_no_error_at_all(seed):
    """Also where noise is narrow, and variances are sums over the levels of the noise."""
    rng = np.random.default_rng(seed)
    towns = random_places(rng, "p", 7)
    place = {"town": towns["ps"], "county": towns["p"]}
    axes = [
        hr.Axis.from_frame("place", place, ["county", "town"]),
        hr.Axis.from_frame("sex", SEXES, ["sex"]),
    ]
    for budget, mechanism in [
        (hr.Epsilon(8), hr.DiscreteLaplace),
        (hr.Rho("1/40"), hr.DiscreteGaussian),
    ]:
        more = {"budget": budget, "mechanism": mechanism, "workload": hr.Cube(), **FIXED}
        fixed = [hr.Invariant("place", "county")]
        design = plain_plan(hr.Tree(axes), invariants=fixed, **more).design
        alone = np.array([towns["p"].count(county) == 1 for county in towns["p"]])
        codes = np.arange(len(alone), dtype=np.int32), np.zeros(len(alone), dtype=np.int32)
        for found in (design.variances_at((2, 0), codes), design.each((2, 0)).ravel()):
            assert not found[alone].any()
            assert (found[~alone] > 0.01).all()


def test_areas_below_counts_that_are_public_by_declaration_have_the_errors_that_were_planned():
    tree = hr.Tree([hr.Axis.from_frame("place", PLACES, ["county", "town"])])
    counts = hr.Counts.from_leaves(tree, (np.arange(6, dtype=np.int32),), np.arange(30, 36))
    fixed = [hr.Invariant("place", "county")]
    plan = plain_plan(tree, budget=hr.Rho("1/40"), invariants=fixed, measure=hr.All(), **FIXED)
    release = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(3))
    rows = {"town": ["p1", "p2", "q1", "q2", "r1"], "area": ["a", "b", "b", "c", "c"]}
    planned = errors_of(Sums(plan, {}, Lookup.of(tree, rows)))
    assert np.allclose(release.areas(rows)["standard_error"], planned, rtol=1e-9)
    assert (planned > 0).all()


LISTS = [{"hhgq": ["h", "g"]}, {"sex": ["f", "m"]}, {"race": ["1", "2", "3"], "kind": list("aab")}]
BY_COLUMNS = {
    "one": ({"town": ["p1", "q1", "r1", "q1"], "area": list("aabb")}, {"person": "race"}),
    "two": ({"county": ["p", "r", "r"], "area": list("aab")}, {"person": "sex × kind"}),
    "level": ({"town": ["p1", "q1"], "area": list("ab")}, {"person": "hhgq"}),
}


@pytest.mark.parametrize("case", BY_COLUMNS)
@pytest.mark.parametrize("total", ["measured", "public"])
@pytest.mark.parametrize("workload", ["cube", "named"])
def test_areas_by_columns_of_attributes_are_those_of_dense_least_squares(workload, total, case):
    rows, by = BY_COLUMNS[case]
    place = hr.Axis.from_frame("place", PLACES, ["county", "town"])
    person = hr.Axis.from_product("person", LISTS, ["hhgq", "sex", "detail"], attribute=True)
    tree = hr.Tree([place, person])
    names = ["place.county × person.hhgq", "place.town × person.sex", "place.town × person.detail"]
    kind = hr.Cube() if workload == "cube" else hr.Cuboids(names)
    more = {} if total == "measured" else FIXED
    plan = plain_plan(tree, budget=hr.Rho("1/40"), workload=kind, **more)
    allowed = np.ones([6, 12], dtype=bool)
    codes = tuple(code.astype(np.int32) for code in np.nonzero(allowed))
    counts = hr.Counts.from_leaves(tree, codes, np.arange(1, 73) * 7 % 23)
    release = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(3))
    known = None if total == "measured" else int(release.level("total")["count"].item())
    x, covariance = dense_estimates(plan, allowed, noisy_row_by_row(release), known)
    weights, labels = weights_of(release, allowed, rows, by)
    found = release.areas(rows, by=by)
    assert found.select(labels.columns).equals(labels)
    assert np.allclose(found["estimate"], weights @ x, rtol=1e-7, atol=1e-6)
    exact = np.sqrt(np.einsum("ij,jk,ik->i", weights, covariance, weights))
    assert np.allclose(found["standard_error"], exact, rtol=1e-6)
    lookup = Lookup.of(tree, rows)
    assert np.allclose(errors_of(Sums(plan, by, lookup)), exact, rtol=1e-6)


def test_areas_by_columns_of_attributes_that_are_held_as_tables_are_those_of_dense_least_squares():
    place = hr.Axis.from_frame("place", PLACES, ["county", "town"])
    person = hr.Axis.from_product("person", LISTS[1:], ["sex", "detail"], attribute=True)
    ages = hr.Axis.from_frame("age", AGES, ["band", "age"], attribute=True)
    tree = hr.Tree([place, person, ages])
    names = ["place.town × person.sex × age.band", "place.county × person.detail × age.band"]
    names += ["place.town × person.detail × age.age", "place.county × age.age"]
    plan = plain_plan(tree, budget=hr.Rho("1/40"), workload=hr.Cuboids(names))
    assert not isinstance(plan.design, PlannedSpine)
    allowed = np.ones([6, 6, 4], dtype=bool)
    codes = tuple(code.astype(np.int32) for code in np.nonzero(allowed))
    counts = hr.Counts.from_leaves(tree, codes, np.arange(1, 145) * 7 % 23)
    release = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(3))
    x, covariance = dense_estimates(plan, allowed, noisy_row_by_row(release), None)
    turned = {"person": "race × sex"}  # one group a node, in another order
    for by in ({"person": "race"}, {"person": "kind", "age": "band"}, turned):
        rows = BY_COLUMNS["one"][0]
        weights, labels = weights_of(release, allowed, rows, by)
        found = release.areas(rows, by=by)
        assert found.select(labels.columns).equals(labels)
        assert np.allclose(found["estimate"], weights @ x, rtol=1e-7, atol=1e-6)
        exact = np.sqrt(np.einsum("ij,jk,ik->i", weights, covariance, weights))
        assert np.allclose(found["standard_error"], exact, rtol=1e-6)


def test_errors_by_iteration_are_those_of_dense_least_squares(monkeypatch):
    """Workloads that conjugate gradients solve have exact errors of sums, one solution each."""
    rows, by = CASES["towns by band"]
    for more in ({}, FIXED):
        names = ["place.county × age.age", "place.town × age.band", "sex.sex", FINEST]
        monkeypatch.setitem(WORKLOADS, "two axes", {"workload": hr.Cuboids(names), **more})
        exact = made("two axes")[0].areas(rows, by=by)
        with monkeypatch.context() as patched:
            patched.setattr(general, "MOST_DENSE", 0)
            plan = made("two axes")[0].plan
            assert not plan.design.solver.is_exact
            assert not plan.design.solver.has_covariances
            found = made("two axes")[0].areas(rows, by=by)
        assert np.allclose(found["standard_error"], exact["standard_error"], rtol=1e-7)
        assert np.allclose(found["estimate"], exact["estimate"], rtol=1e-7)
        assert found.select("low", "high").equals(exact.select("low", "high"))


@pytest.mark.parametrize("seed", [0, 1, 2, 4])
def test_random_areas_of_random_trees_are_those_of_dense_least_squares(seed):
    rng = np.random.default_rng(seed)
    tree = hr.Tree([random_axis(rng, "place", 3, 4)])
    allowed = np.ones(tree.leaves, dtype=bool)
    shares = hr.Shares(["1/3", 0, "1/3", "1/3"])
    plan = hr.make_plan(tree, budget=hr.Rho("1/9"), measure=hr.All(), allocation=shares)
    codes = (np.arange(tree.leaves, dtype=np.int32),)
    counts = hr.Counts.from_leaves(tree, codes, rng.integers(1, 30, tree.leaves))
    release = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(seed))
    level = int(rng.integers(1, 4))
    column, labels = tree.axes[0].columns[level - 1], tree.axes[0].labels[level - 1]
    pairs = [(code, f"area {a}") for a in range(6) for code in labels if rng.random() < 0.4]
    rows = {column: [code for code, _ in pairs], "area": [area for _, area in pairs]}
    x, covariance = dense_estimates(plan, allowed, noisy_row_by_row(release), None)
    weights, _ = weights_of(release, allowed, rows, {})
    found = release.areas(rows)
    assert np.allclose(found["estimate"], weights @ x)
    assert np.allclose(
        found["standard_error"] ** 2, np.einsum("ij,jk,ik->i", weights, covariance, weights)
    )


def test_intervals_hold_the_truth_as_often_as_they_say():
    """95 % of 5 × 120 intervals; α = 1e-6: fewer than 535 with that probability (binomial)."""
    rows, _ = CASES["towns"]
    held, tried = 0, 0
    for kind in ("chain", "cube", "named", "spine", "spine cube"):
        release, allowed = made(kind)
        plan, codes = release.plan, np.nonzero(allowed)
        values = np.arange(1, len(codes[0]) + 1) * 7 % 23
        codes = tuple(code.astype(np.int32) for code in codes)
        counts = hr.Counts.from_leaves(plan.tree, codes, values)
        weights, _ = weights_of(release, allowed, rows, {})
        for seed in range(40):
            drawn = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(seed))
            found, true = drawn.areas(rows), weights @ values
            low, high = found["low"].to_numpy(), found["high"].to_numpy()
            held += int(((low <= true) & (true <= high)).sum())
            tried += len(true)
    assert tried == 600
    assert held >= 535


@pytest.mark.parametrize("epsilon", ["8", "1/1000"])
def test_areas_that_are_levels_have_the_errors_of_these(epsilon):
    """Also where noise is narrow, so that its variances are no product and errors are bounds."""
    place = hr.Axis.from_frame("place", PLACES, ["county", "town"])
    ages = hr.Axis.from_frame("age", AGES, ["band", "age"], attribute=True)
    tree = hr.Tree([place, ages])
    shares = hr.Shares({"place": ["1/6", "1/3", "1/2"], "age": ["1/2", "1/4", "1/4"]})
    budget, more = hr.Epsilon(epsilon), {"workload": hr.Cube(), "allocation": shares}
    plan = plain_plan(tree, budget=budget, mechanism=hr.DiscreteLaplace, **more)
    assert plan.design.is_best == (epsilon != "8")
    codes = tuple(code.astype(np.int32) for code in np.nonzero(np.ones((6, 4))))
    counts = hr.Counts.from_leaves(tree, codes, np.arange(24) + 10**7)
    release = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(4))
    same = {"town": PLACES["town"], "area": PLACES["county"]}
    for by in ({}, {"age": "band"}, {"age": "age"}):
        found = release.areas(same, by=by).rename({"area": "county"})
        level = release.cuboid(place="county", **by)
        assert found["count"].equals(level["count"])
        for name in ("estimate", "standard_error"):
            assert np.allclose(found[name], level[name], rtol=1e-9)


def test_survivors_have_counts_and_no_errors():
    place = hr.Axis.from_frame("place", PLACES, ["county", "town"])
    plan = plain_plan(hr.Tree([place]), budget=hr.Rho(1))
    table = {"town": ["p1", "q1"], "people": [500, 900]}
    counts = hr.Counts.from_frame(plan.tree, table, count="people")
    release = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(1))
    rows = CASES["towns"][0]
    with pytest.raises(hr.ReleaseError, match=r"ask for counts alone: areas\(…, confidence=None\)"):
        release.areas(rows)
    with pytest.raises(hr.ReleaseError, match='measure = "all" has errors of any areas') as planned:
        area_forecast(Sums(plan, {}, Lookup.of(plan.tree, rows)))
    assert "counts alone" not in str(planned.value), "a plan has no counts"
    found = release.areas(rows, confidence=None)
    towns = dict(release.level("town").select("town", "count").iter_rows())
    wanted = {"a": ["p1", "q1"], "b": ["r1", "q1"], "c": ["p2", "p1"]}
    assert found.columns == ["area", "count"]
    assert dict(found.iter_rows()) == {
        area: sum(towns.get(town, 0) for town in members) for area, members in wanted.items()
    }


def test_a_lookup_is_read_from_a_file_and_may_have_other_columns(tmp_path):
    release, _ = made("chain")
    frame = pl.DataFrame({
        "town": ["p1", "q1", "r1", "q1", "p2"],
        "name": ["one", "two", "three", "two", "four"],
        "seat": ["007", "007", "12", "12", None],
        "size": [1.5, 2.5, 3.5, 4.5, 5.5],
        "county": ["p", "q", "r", "q", "p"],
    })  # fmt: skip
    frame.write_csv(tmp_path / "seats.csv")
    found = release.areas(tmp_path / "seats.csv", column="seat")
    assert found["seat"].to_list() == ["007", "12"], "text, sorted; no area for a missing one"
    assert found.equals(release.areas(pl.concat([frame, frame[:1]]), column="seat"))
    with pytest.raises(hr.TableError, match=r"3 columns beside .*name, seat, size.*say which"):
        release.areas(frame)
    with pytest.raises(hr.TableError, match=r"no column of areas 'seet'.*did you mean 'seat'"):
        release.areas(frame, column="seet")


REFUSED = {
    "unknown": ({"town": ["p1", "zz", "yy"], "area": ["a", "a", "b"]}, {}, "1 of its 3 rows have"),
    "no axis": ({"village": ["p1"], "area": ["a"]}, {}, "has no column of an axis's codes"),
    "two axes": ({"town": ["p1"], "age": ["0"], "area": ["a"]}, {}, "codes of the axes 'place'"),
    "no area": ({"town": ["p1"]}, {}, "0 columns beside those of the axis; it needs one"),
    "taken": ({"town": ["p1"], "count": ["a"]}, {}, "areas cannot be called 'count'"),
    "empty": ({"town": ["p1"], "area": [None]}, {}, "no row with an area"),
    "its axis": ({"town": ["p1"], "area": ["a"]}, {"place": "county"}, "made of axis 'place'"),
    "no level": ({"town": ["p1"], "area": ["a"]}, {"age": "bnad"}, "did you mean 'band'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_lookup_of_the_release_is_refused(name):
    rows, by, message = REFUSED[name]
    release, _ = made("chain")
    with pytest.raises(hr.HedgerowError, match=message):
        release.areas(pl.DataFrame(rows, schema=dict.fromkeys(rows, pl.String)), by=by)


def test_more_sums_than_can_be_had_are_refused_before_anything_is_read(monkeypatch):
    release, _ = made("spine")
    rows = CASES["towns"][0]
    by = {"sex": "sex"}
    planned = Sums(release.plan, by, Lookup.of(release.plan.tree, rows))
    with monkeypatch.context() as patched:
        patched.setattr(answers.Answers, "most_noisy", 3)
        with pytest.raises(
            hr.ReleaseError, match=r"would take too long, with .* noisy counts; name"
        ):
            release.areas(rows, by=by)
        assert len(errors_of(planned)) == 6, "the plan reads no noisy counts"
    monkeypatch.setattr(answers, "MOST_WORK_OF_SUMS", 3)
    with pytest.raises(
        hr.ReleaseError, match=r"would take too long, with .*; name fewer areas or coarser"
    ):
        release.areas(rows)
    assert len(release.areas(rows, confidence=None)) == 3
    monkeypatch.setattr(made_sums, "MOST_SUMS", 5)
    with pytest.raises(hr.ReleaseError, match="by 2 combinations are too many"):
        release.areas(rows, by={"sex": "sex"}, confidence=None)
