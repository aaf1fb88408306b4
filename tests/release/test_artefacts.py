"""Release directories: staging, resumption, manifest, check."""

import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.noise.bits import ReleaseKey
from hedgerow.release.descent.jobs import Progress
from hedgerow.release.directory import output as places
from hedgerow.release.directory import staging
from hedgerow.release.directory.manifest import FORMAT, MANIFEST_KEYS
from hedgerow.release.execution import in_memory
from tests.made import plain_plan, random_counts, random_tree
from tests.refused import refused, told
from tests.release.forged import reseal


@pytest.fixture
def made():
    rng = np.random.default_rng(11)
    tree = random_tree(rng, axes=2, depth=3)
    plan = plain_plan(tree, budget=hr.Rho("1/2"))
    return random_counts(rng, tree), plan


@pytest.fixture
def release(made, out):
    """Release the table of the plan into a directory."""
    return partial(hr.release, *made, directory=out)


@pytest.fixture
def resume(release):
    """Finish that release."""
    return partial(release, unfinished=hr.Unfinished.RESUME)


def failures(directory):
    return [finding for finding in hr.check(directory) if finding.failure]


def frames(release, plan):
    return [release.level(depth=t) for t in range(plan.tree.depth + 1)]


def test_a_release_on_disk_passes_its_own_check(made, tmp_path, out):
    counts, plan = made
    hr.release(counts, plan, directory=out)
    assert failures(out) == []
    names = {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()}
    assert "out/counts/cuboid=3-3.parquet" in names
    assert not any("key" in name or "staging" in name for name in names)


def test_levels_and_cuboids_speak_the_tables_words(made):
    counts, plan = made
    release = hr.release(counts, plan)
    by_name = release.level("a0.level1 × a1.level1")
    assert by_name.equals(release.level(depth=2))
    assert by_name.columns == [
        "a0_level1", "a1_level1", "count", "estimate", "standard_error", "low", "high",
        "contradicted",
    ]  # fmt: skip
    marginal = release.cuboid(None, a1="level2")
    leaves = release.level(depth=6)
    expected = leaves.group_by("a1_level1", "a1_level2").agg(pl.col("count").sum())
    assert marginal.equals(expected.sort("a1_level1", "a1_level2"))
    assert release.cuboid(None).item() == release.level(depth=0)["count"].item()


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda r: r.level("county"), "no cuboid 'county'; there are 0"),
        (lambda r: r.level("level2"), r'other axes call release\.cuboid\(a0="level2"\)'),
        (lambda r: r.level("a1.level2"), r'release\.cuboid\(a1="level2"\)'),
        (lambda r: r.level("hospital"), r"no cuboid 'hospital'; there are .*\)$"),
        (lambda r: r.level(depth=9), "no depth 9"),
        (lambda r: r.level(), "name one cuboid"),
        (lambda r: r.cuboid(age="band"), "no axis is called 'age'"),
        (lambda r: r.cuboid(a0="city"), "no level of axis 'a0' is called 'city'"),
    ],
)
def test_what_is_not_in_a_release_is_said_in_a_sentence(made, ask, message):
    with pytest.raises(hr.ReleaseError, match=message):
        ask(hr.release(*made))


def test_nothing_confidential_leaves_the_staging_folder(made, tmp_path, out, monkeypatch):
    counts, plan = made
    kept = {}
    publish = staging.Staging.publish

    def spy(self):
        kept.update({p.name: p.read_bytes() for p in self.folder.iterdir() if p.is_file()})
        publish(self)

    monkeypatch.setattr(staging.Staging, "publish", spy)
    hr.release(counts, plan, directory=out)
    secrets = [kept["release.key"], kept["release.key"].hex().encode()]
    secrets += [json.loads(kept["staging.json"])["seal"].encode()]
    for path in out.rglob("*"):
        if path.is_file():
            assert not any(secret in path.read_bytes() for secret in secrets), path
    assert not (tmp_path / "out.staging").exists()


@pytest.mark.usefixtures("keys_of_the_system")
def test_keys_come_from_the_operating_system(made, out, monkeypatch):
    counts, plan = made
    urandom, asked = os.urandom, []
    monkeypatch.setattr(os, "urandom", lambda size: asked.append(urandom(size)) or asked[-1])
    assert killed_release(counts, plan, out) in asked
    asked.clear()
    release = hr.release(counts, plan)
    (key,) = asked
    expected = in_memory(counts, plan, estimator=hr.Euclidean(), bits=ReleaseKey(key))
    assert release.measurements(depth=2).equals(expected.measurements(depth=2))


class KilledError(Exception):
    pass


def killed_release(counts, plan, output, after=3):
    """A release that dies while measuring; what its staging folder holds."""
    seen = []

    def die(cells):
        seen.append(cells)
        if len(seen) == after:
            raise KilledError

    with pytest.raises(KilledError):
        hr.release(counts, plan, directory=output, progress=Progress(on_cells=die))
    return (output.with_name(f"{output.name}.staging") / "release.key").read_bytes()


def test_a_discarded_release_starts_with_a_fresh_key(made, out):
    counts, plan = made
    key = killed_release(counts, plan, out)
    discard = hr.Unfinished.DISCARD
    release = hr.release(counts, plan, directory=out, unfinished=discard)
    before = in_memory(counts, plan, estimator=hr.Euclidean(), bits=ReleaseKey(key))
    assert not release.measurements(depth=2).equals(before.measurements(depth=2))
    assert failures(out) == []


def test_the_same_noise_is_never_put_on_another_table_plan_or_estimator(made, out):
    counts, plan = made
    killed_release(counts, plan, out)
    values = counts.values.copy()
    values[0] += 1
    other_table = hr.Counts.from_leaves(plan.tree, counts.codes, values)
    other_plan = plain_plan(plan.tree, budget=hr.Rho("1/3"))
    for changed, what in (
        ((other_table, plan, hr.Euclidean()), "table"),
        ((counts, other_plan, hr.Euclidean()), "plan"),
        ((counts, plan, hr.Chebyshev()), "estimator"),
    ):
        with (
            refused("the table differs")
            if what == "table"
            else pytest.raises(hr.ReleaseError, match=f"the {what} differs")
        ):
            hr.release(
                *changed[:2],
                estimator=changed[2],
                directory=out,
                unfinished=hr.Unfinished.RESUME,
            )
    assert not out.exists()


def test_a_release_killed_while_publishing_is_published_by_resuming(
    tmp_path, out, monkeypatch, release, resume
):
    def die(*_):
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(staging, "_publish", die)
        with pytest.raises(KilledError):
            release()
    (tmp_path / "out.staging" / "release.key").unlink()  # the worst moment: key gone, not renamed
    resume()
    assert failures(out) == []
    assert not (tmp_path / "out.staging").exists()


def test_a_key_that_was_erased_or_changed_is_never_used(made, tmp_path, out, resume):
    key = killed_release(*made, out)
    path = tmp_path / "out.staging" / "release.key"
    for spoiled in (bytes(32), b"", key[:-1], bytes([key[0] ^ 1]) + key[1:]):
        path.write_bytes(spoiled)
        with pytest.raises(hr.HedgerowError) as caught:
            resume()
        assert re.search("no usable release key|the table differs", told(caught.value))
    path.unlink()
    with pytest.raises(hr.ReleaseError, match="no usable release key"):
        resume()
    (tmp_path / "out.staging" / "staging.json").write_text("[]")
    with pytest.raises(hr.ReleaseError, match="nothing that could be continued"):
        resume()
    assert not out.exists()


def test_the_key_is_overwritten_before_it_goes(made, tmp_path, monkeypatch):
    last_words = []
    unlink = Path.unlink

    def spy(path, **options):
        if path.name == "release.key":
            last_words.append(path.read_bytes())
        unlink(path, **options)

    monkeypatch.setattr(Path, "unlink", spy)
    hr.release(*made, directory=tmp_path / "out")
    killed_release(*made, tmp_path / "other")
    hr.release(*made, directory=tmp_path / "other", unfinished=hr.Unfinished.DISCARD)
    assert last_words == [bytes(32)] * 3


def test_a_complete_release_is_published_for_its_own_plan_alone(made, out, monkeypatch):
    counts, plan = made

    def die(*_):
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(staging, "_publish", die)
        with pytest.raises(KilledError):
            hr.release(counts, plan, directory=out)
    stronger = plain_plan(plan.tree, budget=hr.Rho("1/1000"))
    with pytest.raises(hr.ReleaseError, match="the plan differs"):
        hr.release(counts, stronger, directory=out, unfinished=hr.Unfinished.RESUME)
    assert not out.exists()


@pytest.mark.parametrize("unfinished", [hr.Unfinished.RESUME, hr.Unfinished.DISCARD])
def test_a_second_run_cannot_touch_what_a_first_one_is_writing(made, out, unfinished):
    refused = []

    def intrude(_cells):
        if not refused:
            with pytest.raises(hr.ReleaseError, match="another run is at work"):
                hr.release(*made, directory=out, unfinished=unfinished)
            refused.append(True)

    progress = Progress(on_cells=intrude)
    hr.release(*made, directory=out, progress=progress)
    assert refused
    assert failures(out) == []


def test_a_staging_folder_is_readable_by_its_owner_alone(made, tmp_path):
    killed_release(*made, tmp_path / "out")
    folder = tmp_path / "out.staging"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "release.key").stat().st_mode & 0o777 == 0o600


def test_an_existing_directory_is_never_touched(made, tmp_path, out, release):
    out.mkdir()
    with pytest.raises(hr.ReleaseError, match="exists already"):
        release()
    with pytest.raises(hr.ReleaseError, match="exists already"):
        hr.release(*made).write(out)
    assert list(tmp_path.iterdir()) == [out]


def test_no_release_is_made_within_a_release(made, tmp_path, out, release):
    first = release()
    before = sorted(out.rglob("*"))
    (tmp_path / "link").symlink_to(out)
    for place in ("out/inner", "out/counts/new/inner", "link/inner"):
        with pytest.raises(hr.ReleaseError, match=r"directory .* lies within the release .*out'"):
            first.write(tmp_path / place)
        for unfinished in (hr.Unfinished.REFUSE, hr.Unfinished.DISCARD):
            with pytest.raises(hr.ReleaseError, match="lies within the release"):
                hr.release(*made, directory=tmp_path / place, unfinished=unfinished)
    assert sorted(out.rglob("*")) == before
    assert failures(out) == []


def test_the_manifest_of_another_program_is_not_in_the_way(tmp_path, out, release):
    (tmp_path / "manifest.json").write_text('{"name": "a page"}')
    release()
    assert failures(out) == []


def test_a_directory_without_a_manifest_is_no_release(tmp_path):
    with pytest.raises(hr.ReleaseError, match="no release directory"):
        hr.check(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(hr.ReleaseError, match="cannot be read as JSON"):
        hr.check(tmp_path)
    (tmp_path / "manifest.json").write_text("[]")
    with pytest.raises(hr.ReleaseError, match="no manifest of a release"):
        hr.check(tmp_path)


PLACE = ["county", "town"]
ROWS = {"county": ["a", "a", "b", "b"], "town": ["a1", "a2", "b1", "b2"]}
KIND = hr.Axis.from_frame("kind", {"kind": ["x", "y"]}, levels=["kind"], attribute=True)
FIXED = {"county": ["a", "b"], "town": ["a1", "b1"], "kind": ["x", "x"], "n": [0, 3]}
PROMISES = {
    "rho": {"budget": hr.Rho("1/2")},
    "epsilon": {"budget": hr.Epsilon(1), "mechanism": hr.DiscreteLaplace},
    "both": {
        "budget": hr.EpsilonDelta(1, "1e-8"),
        "neighbours": hr.Replace(),
        "allocation": hr.Shares(["1/2", "1/2"]),
    },
    "people": {
        "budget": hr.EpsilonDelta(1, "1e-8"),
        "neighbours": hr.AddRemove(contributions=3, unit="person"),
        "allocation": hr.Shares(["1/2", "1/4", "1/4"]),
    },
    "come or go": {
        "budget": hr.EpsilonDelta(1, "1e-8"),
        "neighbours": hr.Replace(contributions=2, exactly=False),
        "allocation": hr.Shares(["1/2", "1/4", "1/4"]),
    },
    "invariant": {
        "budget": hr.Rho("1/2"),
        "neighbours": hr.Replace(),
        "invariants": [hr.Invariant("place", "county")],
    },
    "own list": {"budget": hr.Rho("1/2"), "from_table": True},
    "fixed": {
        "budget": hr.Rho("1/2"),
        "workload": hr.Cube(),
        "public": [hr.PublicTable(FIXED, at_least="n", at_most="n")],
    },
}
"""Plans of every kind of promise."""
SAID = {"hedgerow-release-6": "6b7fff5ad2a3b359ec9bdd8e89e915e02f38d9c036148c9fba5f3cc68d0e9c7a"}
"""Of each format what the manifests of these plans say, as a digest."""


def said_by(given):
    """What a manifest says that a reader compares with words of its own."""
    own = given.get("from_table", False)
    axis = hr.Axis.from_frame("place", ROWS, levels=PLACE, from_table=own)
    tree = hr.Tree([axis, KIND] if "public" in given else [axis])
    plan = hr.make_plan(tree, **{key: each for key, each in given.items() if key != "from_table"})
    return str(plan.promise), plan.protection.restriction


def test_the_format_of_a_release_rises_with_what_its_manifest_says():
    """Or releases of before are refused for a promise that somebody forged.

    If this fails, raise the number of `FORMAT`, and write the new digest here.
    """
    said = [said_by(given) for given in PROMISES.values()]
    digest = hashlib.sha256(json.dumps([*said, *sorted(MANIFEST_KEYS)]).encode()).hexdigest()
    assert {FORMAT: digest} == SAID, said


def test_a_release_of_another_format_is_named_as_that(out, release):
    release()
    path = out / "manifest.json"
    path.write_text(path.read_text().replace(FORMAT, "hedgerow-release-3"))
    for read in (hr.check, hr.read_release):
        with pytest.raises(hr.ReleaseError) as caught:
            read(out)
        assert str(caught.value) == (
            f"{str(path)!r} has the format 'hedgerow-release-3', and this version of Hedgerow "
            f"reads {FORMAT!r}; read the release with the version that made it"
        )


def test_a_plan_for_another_domain_is_refused(made):
    counts, _ = made
    other = random_tree(np.random.default_rng(12), axes=2, depth=3)
    with pytest.raises(hr.PlanError, match="another tree"):
        hr.release(counts, plain_plan(other, budget=hr.Rho(1)))


def test_a_table_that_was_bounded_for_other_units_is_refused():
    axis = hr.Axis.from_frame("a", {"a": ["x", "y"]}, levels=["a"])
    tree, table = hr.Tree([axis]), {"a": ["x", "y"], "visit": [1, 2], "patient": [1, 1]}
    counts = hr.Counts.from_frame(tree, table, unit="visit")
    for unit in ("patient", "visit"):
        neighbours = hr.AddRemove(unit=unit)
        plan = plain_plan(tree, budget=hr.Rho(1), neighbours=neighbours)
        if unit == "patient":
            with pytest.raises(hr.PlanError, match="so many records of each 'visit'"):
                hr.release(counts, plan)
        else:
            hr.release(counts, plan)


def test_a_plan_that_promises_less_than_the_table_needs_is_refused(made):
    counts, plan = made
    tree, leaves = plan.tree, (counts.codes, counts.values)
    bounded = hr.Counts.from_leaves(tree, *leaves, contributions=3)
    with pytest.raises(hr.PlanError, match="keeps up to 3 records a unit, but the plan protects 2"):
        hr.release(bounded, plain_plan(tree, budget=hr.Rho(1), neighbours=hr.AddRemove(2)))
    with pytest.raises(hr.PlanError, match="exactly=False"):
        hr.release(bounded, plain_plan(tree, budget=hr.Rho(1), neighbours=hr.Replace(3)))
    at_most = hr.Replace(3, exactly=False)
    hr.release(bounded, plain_plan(tree, budget=hr.Rho(1), neighbours=at_most))


@pytest.mark.parametrize("forged", [1.0, True])
def test_a_number_of_the_plan_is_no_other_that_python_calls_equal(out, forged):
    tree = hr.Tree([hr.Axis.from_frame("g", pl.DataFrame({"a": ["x", "y"]}), ["a"])])
    counts = hr.Counts.from_frame(tree, pl.DataFrame({"a": ["x"]}))
    hr.release(counts, plain_plan(tree, budget=hr.Rho(1)), directory=out)
    reseal(out, lambda manifest: manifest["plan"]["cuboids"][0].update(cells=forged))
    with pytest.raises(hr.ReleaseError, match="contradicts itself"):
        hr.read_release(out)
    assert failures(out)


def edit(name, change):
    def spoil(folder):
        path = folder / name
        change(pl.read_parquet(path)).write_parquet(path)
        reseal(folder)

    return spoil


def add_to_first(amount):
    first = pl.int_range(pl.len()) == 0
    return lambda f: f.with_columns(
        count=pl.col("count") + pl.when(first).then(amount).otherwise(0)
    )


def twice(column):
    return lambda f: f.with_columns(pl.col(column) * 2)


def list_another(folder):
    """A file more, which the manifest knows."""
    (folder / "counts/more.parquet").touch()
    rewrite(lambda m: m["files"].update({"counts/more.parquet": ""}))(folder)


def rewrite(change):
    return partial(reseal, change=change)


def promise_more(manifest):
    manifest["promise"] = manifest["promise"].replace("ρ = 0.5", "ρ = 0.000001")


def cheaper_budget(manifest):
    manifest["plan"]["budget"]["rho"] = manifest["plan"]["guarantee"]["rho"] = "1/1000000"


SPOILED = [
    (rewrite(promise_more), "not what the plan guarantees"),
    (rewrite(lambda m: m.update(restriction="none")), "not what the plan guarantees"),
    (
        rewrite(lambda m: m["estimator"].update(method="simplex")),
        "an estimator's method must be one of",
    ),
    (rewrite(lambda m: m["estimator"].update(method="chebyshev")), "not what chebyshev makes"),
    (rewrite(cheaper_budget), "contradicts itself"),
    (rewrite(lambda m: m["plan"]["cuboids"][6].update(parameter="1")), "contradicts itself"),
    (rewrite(lambda m: m["plan"]["cuboids"][6].pop("share")), "shares can be given for"),
    (
        edit("measurements/cuboid=3-3.parquet", lambda f: f.with_columns(-pl.col("noisy_count"))),
        "not what euclidean makes",
    ),
    (lambda f: (f / "counts/cuboid=1-1.parquet").write_bytes(b"PAR1"), "was changed after"),
    (lambda f: (f / "counts/cuboid=1-1.parquet").unlink(), "is missing"),
    (lambda f: (f / "counts/more.parquet").touch(), "is not in the manifest"),
    (edit("counts/cuboid=3-3.parquet", add_to_first(1)), "do not add up"),
    (edit("counts/cuboid=3-3.parquet", lambda f: f.slice(1)), "do not add up"),
    (edit("counts/cuboid=3-3.parquet", lambda f: f.reverse()), "not in tree order"),
    (edit("counts/cuboid=3-3.parquet", add_to_first(-(10**9))), "not above 0"),
    (edit("counts/cuboid=3-3.parquet", lambda f: f.cast({"count": pl.Float64})), "its columns are"),
    (
        edit("counts/cuboid=3-3.parquet", lambda f: f.with_columns(a0_level3=pl.lit("nowhere"))),
        "is not in the domain",
    ),
    (
        edit("counts/cuboid=3-3.parquet", lambda f: f.with_columns(a0_level1=pl.lit("a0.9"))),
        "is not the parent in the domain",
    ),
    (edit("measurements/cuboid=3-3.parquet", lambda f: f.slice(1)), "more or fewer"),
    (edit("domain/a0.parquet", lambda f: f.slice(1)), "not those of the plan"),
    (rewrite(lambda m: m["software"].pop("hedgerow")), "does not say which version"),
    (rewrite(lambda m: m["software"].update(hedgerow=[1])), "more than names and versions"),
    (rewrite(lambda m: m["software"].update(numpy="2.0 or so")), "more than names and versions"),
    (rewrite(lambda m: m["software"].update({"a note": "1"})), "more than names and versions"),
    (rewrite(lambda m: m.update(software="hedgerow")), "does not say which version"),
    (rewrite(lambda m: m.update(note="x")), "other keys than a release's: note"),
    (list_another, "more.parquet is no file of this plan's release"),
    (edit("counts/cuboid=3-3.parquet", twice("standard_error")), "column standard_error does not"),
    (edit("counts/cuboid=3-3.parquet", twice("estimate")), "column estimate does not"),
    (edit("counts/cuboid=3-3.parquet", twice("high")), "column high does not"),
]


@pytest.mark.parametrize(("spoil", "message"), SPOILED, ids=[message for _, message in SPOILED])
@pytest.mark.sweep(4)
def test_check_finds_what_was_spoiled(out, spoil, message, release):
    release()
    spoil(out)
    found = failures(out)
    assert any(message in finding.failure for finding in found), found


def test_check_finds_a_plan_that_was_not_the_one_signed(out, release):
    release()
    path = out / "manifest.json"
    path.write_text(path.read_text().replace('"rho": "1/2"', '"rho": "1/20"'))
    assert "not the one that was hashed" in failures(out)[0].failure


def test_a_moved_release_still_checks(tmp_path, out, release):
    release()
    shutil.move(out, tmp_path / "elsewhere")
    assert failures(tmp_path / "elsewhere") == []


def test_a_table_does_not_show_its_counts_when_printed(made):
    counts, _ = made
    assert repr(counts) == "Counts(confidential)"


def test_a_lock_on_a_folder_that_was_replaced_is_no_lock(made, tmp_path, out, monkeypatch):
    """Between opening and locking, another run threw the folder away and began its own."""
    killed_release(*made, out)
    folder = tmp_path / "out.staging"
    flock = fcntl.flock

    def replaced(lock, how):
        shutil.rmtree(folder)
        folder.mkdir()
        (folder / "lock").touch()
        flock(lock, how)

    monkeypatch.setattr(fcntl, "flock", replaced)
    with pytest.raises(hr.ReleaseError, match="another run is at work"):
        hr.release(*made, directory=out, unfinished=hr.Unfinished.DISCARD)
    assert folder.exists()


def test_no_release_begins_where_the_file_system_has_no_locks(tmp_path, out, monkeypatch, release):
    """A marker file in a lock's place would not exclude runs on other machines."""

    def none_here(_handle, **_options):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(places, "lock_descriptor", none_here)
    with pytest.raises(hr.MachineError, match=os.strerror(errno.ENOSYS)):
        release()
    assert not out.exists()
    assert not (tmp_path / "out.staging" / "release.key").exists()


def test_resuming_where_the_folder_has_gone_begins_no_new_release(
    made, tmp_path, out, monkeypatch, resume
):
    """Another run may finish or discard it between the look and the lock."""
    killed_release(*made, out)
    look = staging.check_output

    def look_and_lose(output, unfinished):
        look(output, unfinished)
        shutil.rmtree(tmp_path / "out.staging")

    monkeypatch.setattr(staging, "check_output", look_and_lose)
    with pytest.raises(hr.ReleaseError, match="there is nothing to resume"):
        resume()
    assert list(tmp_path.iterdir()) == []


def test_a_lock_that_is_a_link_is_not_followed(made, tmp_path, out, resume):
    killed_release(*made, out)
    (tmp_path / "out.staging" / "lock").unlink()
    (tmp_path / "out.staging" / "lock").symlink_to(tmp_path / "another")
    with pytest.raises(hr.MachineError, match="symbolic links"):
        resume()
    assert not (tmp_path / "another").exists()


def test_a_failed_release_can_be_resumed_while_its_error_is_kept(made, out, resume):
    """As a notebook does, which keeps the last traceback and all that it refers to."""

    def die(_cells):
        raise KilledError

    with pytest.raises(KilledError) as kept:
        hr.release(*made, directory=out, progress=Progress(on_cells=die))
    resume()
    assert failures(out) == []
    assert kept.value is not None


def test_a_release_that_appeared_keeps_its_own_estimator(made, tmp_path, out):
    """An earlier run let it appear and died: a resumed one adds nothing, whatever it asks for."""
    hr.release(*made, directory=out, estimator=hr.Euclidean())
    (tmp_path / "out.staging").mkdir()
    release = hr.release(
        *made,
        directory=out,
        estimator=hr.Chebyshev(),
        unfinished=hr.Unfinished.RESUME,
    )
    assert release.content.estimator == hr.Euclidean()


@pytest.mark.usefixtures("keys_of_the_system")
def test_key_and_files_have_reached_the_disk_before_a_release_appears(
    tmp_path, out, monkeypatch, release
):
    synced, fsync = set(), os.fsync

    def seen(handle):
        synced.add(Path(f"/proc/self/fd/{handle}").readlink().name)
        fsync(handle)

    monkeypatch.setattr(os, "fsync", seen)
    release()
    state = {"release.key", "out.staging", "content", tmp_path.name}
    files = {path.name for path in out.rglob("*") if path.is_file()}
    assert state | files <= synced


def test_a_release_of_another_version_is_not_resumed(made, out, monkeypatch, resume):
    killed_release(*made, out)
    monkeypatch.setattr(staging, "version", lambda _: "0.0.0")
    with pytest.raises(hr.ReleaseError, match="Hedgerow version differs"):
        resume()


def test_a_complete_release_of_another_table_is_not_passed_off(made, out, monkeypatch):
    counts, plan = made

    def die(*_):
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(staging, "_publish", die)
        with pytest.raises(KilledError):
            hr.release(counts, plan, directory=out)
    other = hr.Counts.from_leaves(plan.tree, counts.codes, counts.values + 1)
    with refused("the table differs"):
        hr.release(other, plan, directory=out, unfinished=hr.Unfinished.RESUME)


def test_erasing_a_key_follows_no_link(made, tmp_path, out):
    killed_release(*made, out)
    precious = tmp_path / "precious"
    precious.write_text("precious")
    key = tmp_path / "out.staging" / "release.key"
    key.unlink()
    key.symlink_to(precious)
    with pytest.raises(hr.MachineError):
        hr.release(*made, directory=out, unfinished=hr.Unfinished.DISCARD)
    assert precious.read_text() == "precious"


@pytest.mark.parametrize("name", ["out[1]", "out?", "o*t", "œuvre 🌳"])
def test_a_directory_may_have_any_name(made, tmp_path, name):
    release = hr.release(*made, directory=tmp_path / name)
    assert release.level(depth=0).height == 1
    assert failures(tmp_path / name) == []


@pytest.mark.parametrize("name", ["a/..", "x" * 250, "nul\0", "file/out"])
def test_a_directory_that_cannot_be_is_refused_before_anything_is_drawn(made, tmp_path, name):
    (tmp_path / "file").touch()
    with pytest.raises(hr.ReleaseError, match="directory"):
        hr.release(*made, directory=tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_check_survives_any_damage(out, release):
    """Bytes changed at random and digests made to fit: a finding or nothing, never a crash."""
    release()
    rng = np.random.default_rng(0)
    path = out / "counts" / "cuboid=3-3.parquet"
    whole = path.read_bytes()
    found = 0
    for _ in range(30):
        spoiled = bytearray(whole)
        spoiled[rng.integers(len(whole))] = rng.integers(256)
        path.write_bytes(spoiled)
        reseal(out)
        found += bool(failures(out))
    assert found > 10


def test_check_takes_links_and_folders_for_failures(out, release):
    release()
    (out / "link").symlink_to("/dev/zero")
    assert "link is not in the manifest" in failures(out)[0].failure
    manifest = out / "manifest.json"
    manifest.write_text("[" * 100_000)
    with pytest.raises(hr.ReleaseError, match="cannot be read as JSON"):
        hr.check(out)


def test_files_tell_no_time_but_the_day(out):
    """How long a release took at each depth tells of the table."""
    rng = np.random.default_rng(3)
    tree = random_tree(rng, axes=1)
    plan = plain_plan(tree, budget=hr.Rho(1))
    hr.release(random_counts(rng, tree), plan, directory=out)
    times = {path.stat().st_mtime_ns for path in out.rglob("*")}
    assert len(times) == 1
    assert min(times) % (86_400 * 10**9) == 0
