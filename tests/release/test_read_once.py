"""What is read of a release in a directory: each file once, when it is asked for, and no other."""

import time

import pytest

import hedgerow as hr
from hedgerow.release.descent.jobs import LocalEngine
from hedgerow.release.directory import stored
from hedgerow.release.directory.stored import ReadOnce
from tests.oracle.plans import CASES

IN_JOBS = "marginals, public facts, in jobs"
GAP = "chain, survivors, a gap"


@pytest.fixture
def asked(monkeypatch):
    """Of which cuboids noisy counts are read, and of which listed ones."""
    found = {"read_noisy": [], "read_nodes": []}
    for name, place in (("read_noisy", 1), ("read_nodes", 2)):
        read = getattr(stored, name)

        def slowly(*given, read=read, name=name, place=place):
            found[name].append(given[place])
            time.sleep(0.05)  # for other threads to come
            return read(*given)

        monkeypatch.setattr(stored, name, slowly)
    return found


def released(name, folder):
    """The directory of a plan of the oracle."""
    case = CASES[name]()
    with case.limits():
        hr.release(case.counts, case.plan, estimator=case.estimator, directory=folder)
    return folder


@pytest.fixture(scope="module")
def in_jobs(tmp_path_factory):
    """The directory of a plan that is cut into jobs."""
    return released(IN_JOBS, tmp_path_factory.mktemp("jobs") / "out")


@pytest.mark.parametrize("ask", ["check", "areas", "again"])
def test_jobs_on_threads_read_each_file_of_noisy_counts_once(ask, in_jobs, asked, monkeypatch):
    run, case = LocalEngine.run, CASES[IN_JOBS]()
    monkeypatch.setattr(LocalEngine, "run", lambda _, *given: run(LocalEngine(8), *given))
    with case.limits():
        release = hr.read_release(in_jobs)
        assert len(release.plan.design.along.jobs) > 4
        if ask == "check":
            assert all(finding.passed for finding in hr.check(in_jobs))
        elif ask == "areas":
            release.areas(case.lookup(), by=case.areas[1])
        else:
            hr.reestimate(release, hr.LeastSquares())
    assert sorted(asked["read_noisy"]) == sorted(release.plan.measured)


def test_cells_that_have_no_estimates_are_refused_before_counts_are_read(asked, out):
    release = hr.read_release(released(GAP, out))
    with pytest.raises(hr.ReleaseError, match=r"is unmeasured, so cells .* have no estimates"):
        release.level(depth=2, all=True)
    assert asked == {"read_noisy": [], "read_nodes": [(0,)]}, "nothing but the total"


def test_which_cuboids_there_are_is_told_without_reading_them():
    def read(levels):
        raise KeyError(levels)

    every = ReadOnce([(0,), (1,)], read)
    assert (1,) in every, "an error of what is read must not stand for nothing to read"
    assert (2,) not in every
    assert list(every) == [(0,), (1,)]
    with pytest.raises(KeyError):
        every[1,]


def test_whatever_breaks_where_counts_are_read_again_is_one_sentence(out, monkeypatch):
    folder, read = released("chain, all", out), stored.read_nodes

    def breaking(place, tree, levels):
        if levels == (3,):
            raise ValueError
        return read(place, tree, levels)

    monkeypatch.setattr(stored, "read_nodes", breaking)
    with pytest.raises(hr.ReleaseError, match=r"is damaged \(ValueError\): run hedgerow check"):
        hr.reestimate(folder, hr.Euclidean())
