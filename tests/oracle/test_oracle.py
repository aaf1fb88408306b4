"""Every kind of plan gives the release that was recorded: the contract of all workloads.

Where a change is meant, `python -m tests.oracle record` keeps what is now and says what changed.
"""

import hashlib
import inspect
import json
from contextlib import ExitStack
from unittest import mock

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.noise.bits import ReleaseKey
from hedgerow.noise.mechanisms import MECHANISMS
from hedgerow.plan.workload import WORKLOADS
from hedgerow.release.passes import ESTIMATION
from tests.oracle import recording
from tests.oracle.draws import open_door
from tests.oracle.plans import CASES, COUNTED
from tests.oracle.recording import (
    RUNS,
    TOLERANCES,
    Recording,
    changes,
    fixed_key,
    kept_names,
    path_of,
    recorded_case,
)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.sweep(6)
def test_a_release_is_what_was_recorded(name):
    case, fresh = recorded_case(name)
    found = list(changes(Recording.read(name), fresh, case.left_out))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", CASES)
def test_a_recording_holds_something_of_all_that_is_compared(name):
    kept = Recording.read(name)
    digests, numbers = (
        {q.split()[0].rstrip(",") for q in each} for each in (kept.digests, kept.numbers)
    )
    assert {"plan", "noise", "counts", "intervals", "file", "check", "forecast"} <= digests
    assert {"estimate", "standard_error", "forecast", "guarantee", "error"} <= numbers
    assert numbers <= set(TOLERANCES)
    folders = {quantity for quantity in kept.digests if quantity.startswith("file ")}
    assert folders >= {f"file {n}" for n in ("counts", "domain", "measurements", "manifest.json")}
    assert sum(many for many, _ in kept.numbers.values()) > 100
    assert sum(np.abs(values).sum() for _, values in kept.numbers.values()) > 100


def test_every_plan_has_a_recording_and_every_recording_a_plan():
    assert kept_names() == {path_of(name).name for name in CASES}
    assert len(kept_names()) == len(CASES)


COUNTS = {5: "e20c01519e60722a82d96e11c2d4d7ad782f3a97748672fcd2acfb2c5c544172"}
"""Of each version of the estimation the released counts that are recorded, as a digest."""


def test_the_version_of_the_estimation_rises_with_recorded_counts():
    """Or `hedgerow check` calls releases of before forged.

    If this fails after counts were recorded anew, raise `ESTIMATION` and write the new digest here;
    after a plan joined or left, write the new digest alone.
    """
    counts = {
        name: {
            q: digest for q, digest in Recording.read(name).digests.items() if q[:7] == "counts "
        }
        for name in CASES
    }
    assert all(counts.values())
    digest = hashlib.sha256(json.dumps(counts, sort_keys=True).encode()).hexdigest()
    assert {ESTIMATION: digest} == COUNTS


def kinds_of(case):
    """What is special about a case, in words."""
    plan, tree = case.plan, case.plan.tree
    measured = [what for what in plan.by_levels.values() if isinstance(what, hr.Measured)]
    noise = [what.mechanism for what in measured]
    name, axes = plan.workload.name, len(tree.axes)
    yield from (name, f"{name} of {axes}", plan.measure.name, plan.mechanism.name)
    yield f"{name}, {plan.measure.name}, {plan.mechanism.name}"
    yield f"{plan.neighbours.name}, total public: {plan.neighbours.total_is_public}"
    yield "several contributions" if plan.neighbours.contributions > 1 else "one contribution"
    yield "σ² below 1" if any(0 < each.noise_variance < 1 for each in noise) else "noise"
    yield from ("an invariant" for _ in plan.invariants)
    yield from ("only children" for _ in plan.repeats)
    yield from (
        f"{name}, a gap" for share in plan.shares[1:] if share is None and not plan.invariants
    )
    yield from (f"attributes: {axes - 1}" for _ in [0] if tree.spine is not None)
    yield from ("public facts" for _ in plan.facts)
    yield from (f"in jobs, {name}, {plan.measure.name}" for _ in [0] if case.in_jobs)
    yield from ("several tables" for _ in plan.tables[1:])
    yield case.estimator.name


EVERY_KIND = {
    "chain of 1", "chain of 2", "cube of 2", "cube of 3", "named of 2", "named of 3",
    "survivors", "all", "running-sums", "σ² below 1", "an invariant", "only children",
    "chain, a gap", "cube, a gap", "several contributions", "one contribution", "several tables",
    "public facts", "attributes: 1", "attributes: 2", "add-remove, total public: False",
    "replace, total public: True", "replace, total public: False", "in jobs, chain, survivors",
    "in jobs, chain, all", "in jobs, cube, all", "in jobs, named, all", "chebyshev", "euclidean",
    "sparse", "isotonic", *MECHANISMS,
    *(f"{workload}, {measure}, {noise}" for workload in ("chain", "cube", "named")
      for measure in ("survivors", "all") for noise in ("discrete-gaussian", "discrete-laplace")),
}  # fmt: skip


def test_the_list_has_plans_of_every_kind():
    found = {kind for make in CASES.values() for kind in kinds_of(make())}
    assert EVERY_KIND - found == set()


@pytest.mark.parametrize("workload", WORKLOADS)
def test_each_registered_workload_has_a_plan_in_the_list_that_begins_with_its_name(workload):
    """A plan keeps no name of it."""
    assert any(name.startswith(f"{workload},") for name in CASES)


@pytest.mark.parametrize("name", CASES)
def test_no_plan_of_the_list_rests_on_a_default(name):
    functions = {"make_plan": hr.make_plan, "plan_distribution": hr.plan_distribution}
    with ExitStack() as held:
        calls = {
            function: held.enter_context(mock.patch.object(hr, name, wraps=function))
            for name, function in functions.items()
        }
        CASES[name]()
    asked = [(inspect.signature(f), call) for f, made in calls.items() for call in made.mock_calls]
    ((signature, call),) = asked
    given = signature.bind(*call.args, **call.kwargs).arguments
    assert set(given) == set(signature.parameters)


# --- what is compared can differ ------------------------------------------------------------------


def recorded(**numbers):
    """A recording of a made release."""
    found = Recording()
    found.digest("counts place", [3, 0, 5])
    found.digest("noisy counts place", [2, -1, 6])
    found.digest("file report.html", "page")
    found.number("error by cuboid", [1.0, 2.0])
    for quantity, values in numbers.items():
        found.number(quantity, values)
    return found


VALUES = np.concatenate([np.linspace(-40, 300, 10 * RUNS - 3), [0.0, 1e-3]])


@pytest.mark.parametrize("place", [0, 5, 77, 10 * RUNS - 4])
def test_one_real_number_of_many_that_changes_by_a_ten_millionth_is_told(place):
    other = VALUES.copy()
    other[place] *= 1 + 1e-7
    told = list(changes(recorded(estimate=VALUES), recorded(estimate=other)))
    assert len(told) == 1
    assert told[0].startswith(f"estimate: 1 of {RUNS} numbers are off")
    other[place] = VALUES[place] * (1 + 1e-11)
    assert not list(changes(recorded(estimate=VALUES), recorded(estimate=other)))


def test_real_numbers_that_change_places_are_told():
    other = VALUES.copy()
    other[[40, 41]] = other[[41, 40]]
    assert list(changes(recorded(estimate=VALUES), recorded(estimate=other)))


def test_real_numbers_that_are_missing_more_or_fewer_are_told():
    known = recorded(estimate=[1.0, np.nan, np.inf])
    for given in ([1.0, np.nan, 2.0], [1.0, np.inf, np.nan], [1.0, np.nan, np.inf, 0.0]):
        assert list(changes(known, recorded(estimate=given)))
    assert not list(changes(known, recorded(estimate=[1.0, np.nan, np.inf])))


def test_a_quantity_that_is_new_or_gone_is_told():
    more, fewer = recorded(estimate=[1.0]), recorded()
    assert list(changes(fewer, more)) == ["estimate: is new"]
    assert list(changes(more, fewer)) == ["estimate: is gone"]
    assert list(changes(Recording(), fewer))


@pytest.mark.parametrize("quantity", ["counts place", "file report.html"])
def test_whole_counts_are_left_out_where_ties_are_marked_and_nowhere_else(quantity):
    other = recorded()
    other.digests[quantity] = "another"
    assert len(list(changes(recorded(), other))) == 1
    assert not list(changes(recorded(), other, COUNTED))


def test_noisy_counts_and_errors_are_compared_where_ties_are_marked():
    other = recorded()
    other.digests["noisy counts place"] = "another"
    assert len(list(changes(recorded(), other, COUNTED))) == 1
    near, far = recorded(), recorded()
    near.number("error of it", [1.01]), far.number("error of it", [1.2])
    known = recorded()
    known.number("error of it", [1.0])
    assert len(list(changes(known, near))) == 1
    assert not list(changes(known, near, COUNTED))
    assert len(list(changes(known, far, COUNTED))) == 1


def test_what_hangs_on_ties_is_named_of_marked_plans_alone():
    assert CASES["cube, all"]().left_out == ()
    assert CASES["named, general"]().left_out == COUNTED
    below = CASES["named, general, survivors"]().left_out
    assert "noise place.level2 × kind.level2" in below
    assert not any("place.level1" in quantity for quantity in below)


def test_a_recording_is_read_as_it_was_written(tmp_path, monkeypatch):
    monkeypatch.setattr(recording, "RECORDED", tmp_path)
    made = recorded(estimate=VALUES, forecast=[np.nan, 2 / 3])
    made.write("a plan, of ε")
    assert kept_names() == {path_of("a plan, of ε").name}
    assert not list(changes(Recording.read("a plan, of ε"), made))
    made.digests["counts place"] = "another"
    assert len(list(changes(Recording.read("a plan, of ε"), made))) == 1


# --- the door -------------------------------------------------------------------------------------


def test_true_counts_and_noise_of_every_draw_are_told_apart(tmp_path):
    name = "marginals, public facts, in jobs"
    case = CASES[name]()
    with case.limits(), open_door() as door, fixed_key(name):
        hr.release(case.counts, case.plan, estimator=case.estimator, directory=tmp_path / "release")
    tree, noise = case.plan.tree, door.noise_of(len(case.plan.tree.axes))
    measured = {k: w for k, w in case.plan.by_levels.items() if isinstance(w, hr.Measured)}
    assert set(noise) == set(measured)
    for levels in measured:
        once = {draw.asked: draw for draw in door.draws if draw.place[: len(tree.axes)] == levels}
        assert sum(int(draw.true.sum()) for draw in once.values()) == case.counts.total
        assert all(np.array_equal(d.true + d.noise, d.noisy) for d in once.values())


def test_noise_that_goes_another_way_is_found():
    stream = ReleaseKey(bytes(32))
    with pytest.raises(AssertionError, match="no count was added"), open_door():
        hr.DiscreteGaussian(2).draw(stream.stream(1), 0, np.empty(3, dtype=np.int64))
