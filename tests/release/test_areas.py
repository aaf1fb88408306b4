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
from tests.made import all_leaves, plain_plan
from tests.release.dense import Dense

PLACES = {"town": ["p1", "p2", "p3", "q1", "q2", "r1"], "county": ["p", "p", "p", "q", "q", "r"]}
AGES = {"age": ["0", "1", "2", "3"], "band": ["x", "x", "y", "y"]}
SEXES = {"sex": ["f", "m"]}
FIXED = {"neighbours": hr.Replace()}
FINEST = "place.town × age.age × sex.sex"
OVERLAP = hr.Cuboids(["place.town × age.band", "sex.sex × age.age", FINEST])
WORKLOADS = {
    "chain": {"measure": hr.All()},
    "cube": {"workload": hr.Cube()},
    "named": {"workload": OVERLAP},
    "spine": {"workload": OVERLAP},
    "spine cube": {"workload": hr.Cube()},
}
TOWNS = {"town": ["p1", "q1", "r1", "q1", "p2", "p1"], "area": list("aabbcc")}
BY_BAND = {"town": ["p1", "q1", "r1", "q1"], "area": list("aabb")}


def tree_of(kind):
    """Places, ages and sexes; beside a spine the others are attributes, of a cube of it one."""
    beside = kind.startswith("spine")
    axes = [
        hr.Axis.from_frame("place", PLACES, ["county", "town"]),
        hr.Axis.from_frame("age", AGES, ["band", "age"], attribute=beside),
        hr.Axis.from_frame("sex", SEXES, ["sex"], attribute=beside),
    ]
    return hr.Tree(axes[:2] if kind == "spine cube" else axes)


def released(plan, seed=2):
    """A release of a small table, its records and itself."""
    tree = plan.tree
    codes = np.indices([axis.size(axis.depth) for axis in tree.axes]).reshape(len(tree.axes), -1)
    values = np.arange(1, codes.shape[1] + 1) * 7 % 23
    counts = hr.Counts.from_leaves(tree, tuple(codes.astype(np.int32)), values)
    return in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(seed)), counts


def made(kind, **options):
    """A release of a kind of workload."""
    options = {"budget": hr.Rho("1/40"), **(WORKLOADS.get(kind) or {}), **options}
    return released(plain_plan(tree_of(kind), **options))[0]


def errors_of(sums):
    """The errors from public facts."""
    return area_forecast(sums)["standard_error_of_estimate"].to_numpy()


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
@pytest.mark.sweep(4)
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
    counts = all_leaves(tree, np.arange(30, 36))
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
@pytest.mark.sweep(4)
def test_areas_by_columns_of_attributes_are_those_of_dense_least_squares(workload, total, case):
    rows, by = BY_COLUMNS[case]
    place = hr.Axis.from_frame("place", PLACES, ["county", "town"])
    person = hr.Axis.from_product("person", LISTS, ["hhgq", "sex", "detail"], attribute=True)
    names = ["place.county × person.hhgq", "place.town × person.sex", "place.town × person.detail"]
    kind = hr.Cube() if workload == "cube" else hr.Cuboids(names)
    more = {} if total == "measured" else FIXED
    plan = plain_plan(hr.Tree([place, person]), budget=hr.Rho("1/40"), workload=kind, **more)
    check_areas(released(plan)[0], rows, by)


def check_areas(release, rows, by):
    """Areas are those of dense matrices, in order, and the plan has told their errors."""
    lookup = pl.DataFrame(rows)
    found = release.areas(lookup, by=by)
    codes = found.columns[: found.columns.index("count")]
    assert found.equals(found.sort(codes))
    Dense(release).agrees(found, lookup)
    planned = errors_of(Sums(release.plan, by, Lookup.of(release.plan.tree, rows)))
    assert np.allclose(planned, found["standard_error"], rtol=1e-6)


def test_areas_by_columns_of_attributes_that_are_held_as_tables_are_those_of_dense_least_squares():
    place = hr.Axis.from_frame("place", PLACES, ["county", "town"])
    person = hr.Axis.from_product("person", LISTS[1:], ["sex", "detail"], attribute=True)
    ages = hr.Axis.from_frame("age", AGES, ["band", "age"], attribute=True)
    names = ["place.town × person.sex × age.band", "place.county × person.detail × age.band"]
    names += ["place.town × person.detail × age.age", "place.county × age.age"]
    tree = hr.Tree([place, person, ages])
    plan = plain_plan(tree, budget=hr.Rho("1/40"), workload=hr.Cuboids(names))
    assert not isinstance(plan.design, PlannedSpine)
    turned = {"person": "race × sex"}  # one group a node, in another order
    for by in ({"person": "race"}, {"person": "kind", "age": "band"}, turned):
        check_areas(released(plan)[0], BY_COLUMNS["one"][0], by)


def test_errors_by_iteration_are_those_of_dense_least_squares(monkeypatch):
    """Workloads that conjugate gradients solve have exact errors of sums, one solution each."""
    names = ["place.county × age.age", "place.town × age.band", "sex.sex", FINEST]
    for more in ({}, FIXED):
        options = {"workload": hr.Cuboids(names), **more}
        exact = made("two axes", **options).areas(BY_BAND, by={"age": "band"})
        with monkeypatch.context() as patched:
            patched.setattr(general, "MOST_DENSE", 0)
            release = made("two axes", **options)
            assert not release.plan.design.solver.is_exact
            assert not release.plan.design.solver.has_covariances
            found = release.areas(BY_BAND, by={"age": "band"})
        assert np.allclose(found["standard_error"], exact["standard_error"], rtol=1e-7)
        assert np.allclose(found["estimate"], exact["estimate"], rtol=1e-7)
        assert found.select("low", "high").equals(exact.select("low", "high"))


def test_intervals_hold_the_truth_as_often_as_they_say():
    """95 % of 5 × 36 intervals; α = 1e-6: fewer than 154 with that probability (binomial)."""
    held, tried, lookup = 0, 0, pl.DataFrame(TOWNS).unique()
    for kind in WORKLOADS:
        plan = made(kind).plan
        for seed in range(12):
            release, counts = released(plan, seed)
            people = counts.level(plan.tree.depth).join(lookup, on="town")
            true = people.group_by("area").agg(pl.col("count").sum()).sort("area")["count"]
            found = release.areas(TOWNS)
            held += ((found["low"] <= true) & (true <= found["high"])).sum()
            tried += len(true)
    assert tried == 180
    assert held >= 154


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
    counts = all_leaves(tree, np.arange(24) + 10**7)
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
    rows = TOWNS
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
    release = made("chain")
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
    release = made("chain")
    with pytest.raises(hr.HedgerowError, match=message):
        release.areas(pl.DataFrame(rows, schema=dict.fromkeys(rows, pl.String)), by=by)


def test_more_sums_than_can_be_had_are_refused_before_anything_is_read(monkeypatch):
    release = made("spine")
    rows = TOWNS
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
