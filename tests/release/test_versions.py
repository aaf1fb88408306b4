"""Releases that another version of the estimation made: what is not verified, and what fails."""

import json
import shutil
from contextlib import ExitStack, contextmanager
from functools import partial
from unittest import mock

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.release.directory import manifest as manifests
from hedgerow.release.directory import staging
from hedgerow.release.directory.manifest import sha256
from hedgerow.release.passes import ESTIMATION
from tests.made import plain_plan
from tests.oracle.plans import CASES
from tests.oracle.recording import fixed_key

LATER = "99.0"
OTHER = {
    name: name in {"chain, survivors", "chain, all", "cube, all", "cube, survivors"}
    for name in (
        "chain, survivors", "chain, all", "chain, all, an invariant", "cube, all",
        "flows, survivors, a gap, in jobs", "cube, survivors", "nested, public facts",
        "column, running sums, total measured",
    )
}  # fmt: skip
"""Plans of the oracle, and whether the other version has other counts than this one."""
MADE_AGAIN = "the counts and intervals are the estimate from the noisy counts"


@contextmanager
def other_counts(plan):
    """Counts are made of other numbers than the estimates, as another version may make them."""
    project = hr.Euclidean.project

    def moved(values):
        turns = (100 if plan.is_chain else 4) * (np.arange(values.size) % 3 - 1)
        return values + turns.reshape(values.shape).astype(values.dtype)

    with ExitStack() as held:
        if plan.is_chain:
            given = lambda own, noisy, *rest: project(own, moved(noisy), *rest)  # noqa: E731
            held.enter_context(mock.patch.object(hr.Euclidean, "project", given))
        else:
            kind = type(plan.design)
            settled = kind.settled

            def settle(own, *given):
                tables, estimates = ({c: moved(e) for c, e in each.items()} for each in given[:2])
                return settled(own, tables, estimates, given[2])

            held.enter_context(mock.patch.object(kind, "settled", settle))
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Releases of plans of the oracle, each made once: by their names."""
    folder, found = tmp_path_factory.mktemp("made"), {}

    def make(name):
        if name not in found:
            case, place = CASES[name](), folder / str(len(found))
            with case.limits(), fixed_key(name), ExitStack() as held:
                if OTHER[name]:
                    held.enter_context(other_counts(case.plan))
                hr.release(case.counts, case.plan, estimator=case.estimator, directory=place)
            found[name] = place, case.plan
        return found[name]

    return make


def claim(folder, **said):
    """Let a manifest say something else, and its digests fit the files."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    if "hedgerow" in said:
        page, maker = folder / "report.html", manifest["software"]["hedgerow"]
        named = page.read_text().replace(f"Hedgerow {maker}", f"Hedgerow {said['hedgerow']}")
        page.write_text(named)
        manifest["software"]["hedgerow"] = said.pop("hedgerow")
    manifest |= said
    manifest["files"] = {name: sha256(folder / name) for name in manifest["files"]}
    path.write_text(json.dumps(manifest))


@pytest.fixture
def out(made, tmp_path):
    """A copy of a release, which a later Hedgerow made by another version of the estimation."""

    def copied(name):
        place, plan = made(name)
        shutil.copytree(place, tmp_path / "out")
        claim(tmp_path / "out", estimation=ESTIMATION + 1, hedgerow=LATER)
        return tmp_path / "out", plan

    return copied


def test_a_manifest_names_the_version_of_the_estimation(made, tmp_path):
    place, plan = made("chain, all, an invariant")
    assert json.loads((place / "manifest.json").read_text())["estimation"] == ESTIMATION
    release = hr.read_release(place)
    assert release.content.estimation == ESTIMATION
    counts = CASES["chain, all, an invariant"]().counts
    hr.release(counts, plan).write(tmp_path / "written")
    assert hr.read_release(tmp_path / "written").content.estimation == ESTIMATION


@pytest.mark.parametrize("name", OTHER)
def test_counts_of_another_version_are_not_verified_and_all_else_is(name, out):
    folder, plan = out(name)
    found = hr.check(folder)
    assert [finding for finding in found if finding.failure] == []
    unverified = [finding.what for finding in found if not finding.passed]
    names = {finding.what.removesuffix(f": {MADE_AGAIN}") for finding in found} - {
        finding.what for finding in found
    }
    public = sum(map(plan.is_public, plan.levels))
    assert len(names) == len(plan.levels)
    assert len(unverified) == len(plan.levels) - public > 0
    assert all(what.endswith(MADE_AGAIN) for what in unverified)
    (told,) = {finding.unverified for finding in found if finding.unverified}
    assert told == (
        f"the manifest says that Hedgerow {LATER!r} made the counts, by version {ESTIMATION + 1} "
        f"of the estimation, and this is Hedgerow {hr.__version__!r}, which has version "
        f"{ESTIMATION}; check with the one that made them"
    )


@pytest.mark.parametrize("name", [name for name, others in OTHER.items() if others])
def test_other_counts_that_this_version_is_said_to_have_made_fail(name, out):
    folder, _ = out(name)
    claim(folder, estimation=ESTIMATION)
    found = hr.check(folder)
    assert any(finding.failure for finding in found)
    assert not any(finding.unverified for finding in found)


def test_an_earlier_version_is_another_one_whatever_hedgerow_is_called(made, monkeypatch):
    """Between two of its releases Hedgerow has one name and may have several versions."""
    place, plan = made("chain, all, an invariant")
    monkeypatch.setattr(manifests, "ESTIMATION", ESTIMATION + 1)
    found = hr.check(place)
    assert not any(finding.failure for finding in found)
    own = len(plan.levels) - sum(map(plan.is_public, plan.levels))
    assert sum(bool(finding.unverified) for finding in found) == own


# --- who edits the number to have less verified ---------------------------------------------------


@pytest.mark.parametrize(
    ("number", "maker"),
    [
        *((number, LATER) for number in (None, 0, -1, True, 1.0, "1", [1], 10_000, 10**4000)),
        (ESTIMATION + 1, hr.__version__),
        (ESTIMATION + 1, "0.0.9"),
        (ESTIMATION + 1, f"{hr.__version__}.dev3"),
        (ESTIMATION + 1, f"{hr.__version__}rc1"),
        (9999, f"{hr.__version__}+"),
    ],
)
def test_a_version_that_there_never_was_is_a_failure(number, maker, out):
    folder, _ = out("chain, all, an invariant")
    claim(folder, estimation=number, hedgerow=maker)
    found = hr.check(folder)
    assert len(found) == 2, "nothing else is checked"
    words = (
        "has had none after version" if type(number) is int and 1 <= number <= 9999 else "not say"
    )
    assert words in found[0].failure
    assert len(found[0].failure) < 300
    with pytest.raises(hr.ReleaseError, match=f"is not verified: .* {words}"):
        hr.read_release(folder)


def test_a_manifest_without_a_version_of_the_estimation_is_a_failure(out):
    folder, _ = out("chain, all, an invariant")
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["estimation"]
    path.write_text(json.dumps(manifest))
    assert "other keys than a release's: estimation" in hr.check(folder)[0].failure


def edited(file, change):
    """An edit of a file, and digests to go with it."""

    def edit(folder):
        change_in = folder / file
        change(pl.read_parquet(change_in)).write_parquet(change_in)
        claim(folder)

    return edit


def more(column, by):
    """Another value in one row."""
    first = pl.int_range(pl.len()) == 1
    return lambda f: f.with_columns(pl.col(column) + pl.when(first).then(by).otherwise(0))


def more_of_all(column):
    """Other values in all rows."""
    return lambda f: f.with_columns(pl.col(column) + 0.5)


def unclaimed(folder):
    """A file that the manifest has another digest of."""
    (folder / "domain/place.parquet").write_bytes(b"PAR1")


def promising(folder):
    """A promise that the plan does not keep."""
    said = json.loads((folder / "manifest.json").read_text())["promise"]
    claim(folder, promise=said.replace("0", "9"))


def of_another_page(folder):
    """A page that the files do not make."""
    page = folder / "report.html"
    page.write_text(page.read_text().replace("</main>", "<h1>all is well</h1></main>"))
    claim(folder)


def noisy_beyond(frame):
    """A noisy count that no release writes."""
    return frame.with_columns(pl.lit(2**62).alias("noisy_count"))


SPOILED = {
    "a digest": (unclaimed, "was changed after"),
    "the promise": (promising, "not what the plan guarantees"),
    "a file more": (lambda folder: (folder / "more").touch(), "is not in the manifest"),
    "sums": ("counts", more("count", 1), "not add up|not the sums"),
    "counts": ("counts", lambda f: f.with_columns(pl.col("count") * 0), "not above 0"),
    "an estimate": ("counts", more("estimate", 0.01), "column estimate does not"),
    "an error": ("counts", more("standard_error", 0.01), "column standard_error does not"),
    "an end": ("counts", more("low", -2), "column low does not"),
    "the other end": ("counts", more("high", 2), "column high does not"),
    "no estimate": (
        "counts",
        lambda f: f.with_columns(estimate=pl.lit(float("nan"))),
        "column estimate does not",
    ),
    "fewer noisy counts": ("measurements", lambda f: f.slice(1), "more or fewer"),
    "other noisy counts": (
        "measurements",
        lambda f: f.with_columns(pl.col("noisy_count") + pl.int_range(pl.len()) % 2),
        "column estimate does not",
    ),
    "noisy counts that there are not": ("measurements", noisy_beyond, "between"),
}


@pytest.mark.parametrize("spoiled", SPOILED)
@pytest.mark.parametrize("name", ["chain, survivors", "chain, all", "cube, all", "cube, survivors"])
@pytest.mark.sweep(4)
def test_what_was_spoiled_fails_whichever_version_is_claimed(name, spoiled, out):
    folder, plan = out(name)
    *where, spoil, words = SPOILED[spoiled]
    if where:
        spoil = edited(f"{where[0]}/cuboid={'-'.join(map(str, plan.levels[-1]))}.parquet", spoil)
    spoil(folder)
    found = [finding for finding in hr.check(folder) if finding.failure]
    assert pl.Series([finding.failure for finding in found]).str.contains(words).any(), found
    assert not any(finding.unverified for finding in found)


@pytest.mark.parametrize(
    ("file", "change", "words"),
    [
        ("counts/cuboid=0", more_of_all("estimate"), "column estimate does not"),
        ("counts/cuboid=1", more_of_all("estimate"), "column estimate does not"),
        ("counts/cuboid=1", more_of_all("standard_error"), "column standard_error does not"),
        ("measurements/cuboid=1", lambda f: f.slice(1), "more or fewer"),
    ],
)
def test_running_sums_of_another_version_give_the_estimates(file, change, words, out):
    folder, _ = out("column, running sums, total measured")
    edited(f"{file}.parquet", change)(folder)
    failed = [finding.failure for finding in hr.check(folder) if finding.failure]
    assert any(words in failure for failure in failed), failed


@pytest.mark.parametrize("measure", [hr.All(), hr.Survivors(), hr.RunningSums()])
def test_a_table_that_is_publicly_empty_is_so_in_every_version(measure, tmp_path):
    areas = pl.DataFrame({"area": ["a", "b", "c"]})
    tree = hr.Tree([hr.Axis.from_frame("place", areas, levels=["area"])])
    counts = hr.Counts.from_frame(tree, areas.with_columns(n=0), count="n")
    estimator = hr.Isotonic() if isinstance(measure, hr.RunningSums) else hr.Euclidean()
    plan = plain_plan(tree, budget=hr.Rho(1), neighbours=hr.Replace(), measure=measure)
    hr.release(counts, plan, estimator=estimator, directory=tmp_path / "out")
    claim(tmp_path / "out", estimation=ESTIMATION + 1, hedgerow=LATER)
    assert not any(finding.failure for finding in hr.check(tmp_path / "out"))
    more = pl.DataFrame({"noisy_count": [1]})
    edited("measurements/cuboid=1.parquet", lambda f: f.vstack(more.cast(f.schema)))(
        tmp_path / "out"
    )
    failed = [finding.failure for finding in hr.check(tmp_path / "out") if finding.failure]
    assert any("more or fewer" in each or "room for 0" in each for each in failed), failed


def test_estimates_of_another_version_may_be_added_up_in_another_order(tmp_path):
    """Beside many records estimates of few may differ by what doubles cannot hold."""
    areas = pl.DataFrame({"area": ["a", "b"]})
    tree = hr.Tree([hr.Axis.from_frame("place", areas, levels=["area"])])
    counts = hr.Counts.from_frame(tree, areas.with_columns(n=pl.Series([2 * 10**9, 50])), count="n")
    plan = plain_plan(tree, budget=hr.Rho(1), measure=hr.All())
    hr.release(counts, plan, directory=tmp_path / "out")
    for number, by, failures in ((1, 1e-3, 0), (0, 0.0, 1), (1, 0.1, 1)):
        change = more("estimate", by)
        edited("counts/cuboid=1.parquet", change)(tmp_path / "out")
        maker = LATER if number else hr.__version__
        claim(tmp_path / "out", estimation=ESTIMATION + number, hedgerow=maker)
        found = [finding.failure for finding in hr.check(tmp_path / "out") if finding.failure]
        assert len(found) == failures, (number, by, found)


def test_where_no_estimate_is_known_its_interval_must_follow_from_it(out):
    """Of an unmeasured depth above survivors: a gap."""
    folder, plan = out("flows, survivors, a gap, in jobs")
    (gap,) = [levels for levels, what in plan.by_levels.items() if what.kind == "unmeasured"]
    file = f"counts/cuboid={'-'.join(map(str, gap))}.parquet"
    edited(file, lambda f: f.with_columns(pl.col("high") + 50))(folder)
    failed = [finding.failure for finding in hr.check(folder) if finding.failure]
    assert failed == ["column high does not follow from the noisy counts"]


# --- what else makes counts again -----------------------------------------------------------------


def test_noisy_counts_below_survivors_of_another_version_are_read_by_its_survivors(out):
    """Those of this version are others, and would be given the noisy counts of other cells."""
    folder, plan = out("chain, survivors")
    again = hr.reestimate(folder, hr.read_release(folder).content.estimator)
    leaves = again.frames[plan.levels[-1]]
    listed = hr.read_release(folder).content.nodes[plan.levels[-1]]
    assert leaves["released"].sum() == listed.counts.sum()
    noisy = hr.read_release(folder).measurements(depth=len(plan.levels) - 1)
    codes = noisy.columns[:-2]
    both = leaves.filter(pl.col("count") > 0).join(noisy, on=codes, how="left")
    assert (both["estimate"] == both["noisy_count"]).all()
    assert (both["count"] != both["released"]).any()


def test_a_cube_of_survivors_of_another_version_is_estimated_by_least_squares_alone(out):
    folder, plan = out("cube, survivors")
    refused = rf"version {ESTIMATION + 1} of the estimation .*by least squares, or"
    with pytest.raises(hr.ReleaseError, match=refused):
        hr.reestimate(folder, hr.Euclidean())
    assert set(hr.reestimate(folder, hr.LeastSquares()).frames) == set(plan.levels)


def test_a_whole_cube_of_another_version_is_estimated_by_this_one(out):
    folder, plan = out("cube, all")
    again = hr.reestimate(folder, hr.Euclidean()).frames[plan.levels[-1]]
    assert (again["count"] != again["released"]).any()


def test_a_copy_of_a_release_keeps_the_version_of_its_counts(out, tmp_path):
    folder, _ = out("chain, all, an invariant")
    hr.read_release(folder).write(tmp_path / "copy")
    assert hr.read_release(tmp_path / "copy").content.estimation == ESTIMATION + 1


def test_a_release_that_another_version_of_the_estimation_began_is_not_resumed(
    tmp_path, monkeypatch
):
    case = CASES["chain, all, an invariant"]()
    release = partial(hr.release, case.counts, case.plan, directory=tmp_path / "out")
    with monkeypatch.context() as patch:
        patch.setattr(staging, "_publish", mock.Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            release()
    monkeypatch.setattr(staging, "ESTIMATION", ESTIMATION + 1)
    with pytest.raises(hr.ReleaseError, match="version of the estimation differs"):
        release(unfinished=hr.Unfinished.RESUME)
