"""What was charged is never lost: every way in which a release can end before it appears."""

import errno
import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.errors import BudgetError, MachineError
from hedgerow.noise.bits import ReleaseKey
from hedgerow.privacy.ledger.ledger import Ledger, create_ledger
from hedgerow.privacy.ledger.records import Charge
from hedgerow.privacy.profile import Profile
from hedgerow.release import execution
from hedgerow.release.directory import output, staging
from hedgerow.release.directory.keys import Charging
from hedgerow.release.execution import in_memory
from tests.made import plain_plan, random_counts, random_tree
from tests.refused import refused

DATASET = "trips"
RESUME, DISCARD = hr.Unfinished.RESUME, hr.Unfinished.DISCARD


@pytest.fixture(scope="module")
def made():
    rng = np.random.default_rng(11)
    tree = random_tree(rng, axes=2, depth=2)
    return random_counts(rng, tree), plain_plan(tree, budget=hr.Rho("1/2"))


@pytest.fixture
def ledger(made, tmp_path):
    return opened(tmp_path / "ledger.sqlite", made[1])


def opened(path, plan, cap="3/4", dataset=DATASET):
    """A ledger with an account that holds one release of the plan, and not two."""
    ledger = create_ledger(path)
    ledger.open_account(dataset, plan.protection, hr.Rho(cap))
    return ledger


def released(made, ledger, unfinished=hr.Unfinished.REFUSE, dataset=DATASET, **options):
    charging = None if ledger is None else Charging(ledger, dataset)
    folder = options.pop("directory")
    return hr.release(*made, directory=folder, charging=charging, unfinished=unfinished, **options)


class KilledError(BaseException):
    pass


def killed(
    made, ledger, output, monkeypatch, where=(execution, "write_report"), staged="out.staging"
):
    """A charged release that dies before it appears: its key."""

    def die(*_args, **_options):
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(*where, die)
        with pytest.raises(KilledError):
            released(made, ledger, directory=output)
    return (output.with_name(staged) / "release.key").read_bytes()


def charges(ledger, plan, dataset=DATASET):
    return ledger.standing(ledger.account(dataset, plan.protection)).charges


def assert_finished(made, ledger, output, key):
    """The release is there, charged once, with the noise of the key that it was begun under."""
    counts, plan = made
    assert [finding for finding in hr.check(output) if not finding.passed] == []
    assert not output.with_name("out.staging").exists()
    (charge,) = charges(ledger, plan)
    stated = json.loads((output / "manifest.json").read_text())["ledger"]
    assert stated == {"dataset": DATASET, "release_id": charge.release_id}
    expected = in_memory(counts, plan, estimator=hr.Euclidean(), bits=ReleaseKey(key))
    leaves = plan.tree.depth
    found = hr.read_release(output).measurements(depth=leaves)
    assert found.equals(expected.measurements(depth=leaves))


def snapshot(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("other", ["dataset", "ledger", "none"])
def test_a_resume_that_would_be_charged_elsewhere_is_refused_and_keeps_what_was_begun(
    made, ledger, tmp_path, out, monkeypatch, other
):
    key = killed(made, ledger, out, monkeypatch)
    before = snapshot(tmp_path / "out.staging")
    ledger.open_account("walks", made[1].protection, hr.Rho("1/1000"))
    elsewhere = opened(tmp_path / "other.sqlite", made[1])
    given, message = {
        "dataset": ((ledger, RESUME, "walks"), "dataset 'trips' of a ledger.* dataset 'walks'"),
        "ledger": ((elsewhere, RESUME), "dataset 'trips' of a ledger.* another ledger"),
        "none": ((None, RESUME), "dataset 'trips' of a ledger.* no ledger is named"),
    }[other]
    with pytest.raises(hr.ReleaseError, match=f"{message}.*to finish it, or .*--discard"):
        released(made, *given, directory=out)
    assert snapshot(tmp_path / "out.staging") == before
    assert charges(elsewhere, made[1]) == ()
    released(made, ledger, RESUME, directory=out)
    assert_finished(made, ledger, out, key)


def test_nothing_is_charged_where_an_attacker_s_figure_cannot_be_had(
    made, ledger, out, monkeypatch
):
    def out_of_reach(*_):
        raise BudgetError("out of reach")

    with monkeypatch.context() as patch:
        patch.setattr(Profile, "power", out_of_reach)
        with pytest.raises(BudgetError, match="out of reach"):
            released(made, ledger, directory=out)
    assert charges(ledger, made[1]) == ()
    assert not out.exists()
    released(made, ledger, RESUME, directory=out)
    assert len(charges(ledger, made[1])) == 1


def test_what_was_begun_without_a_ledger_is_not_finished_with_one(made, ledger, out, monkeypatch):
    killed(made, None, out, monkeypatch)
    with pytest.raises(hr.ReleaseError, match="begun without a ledger; leave"):
        released(made, ledger, RESUME, directory=out)
    released(made, None, RESUME, directory=out)
    assert charges(ledger, made[1]) == ()


def test_the_seal_holds_the_ledger(made, ledger, tmp_path, out, monkeypatch):
    """Whoever edits what the folder says of its ledger has a seal that no longer fits."""
    killed(made, ledger, out, monkeypatch)
    state = tmp_path / "out.staging" / "staging.json"
    facts = json.loads(state.read_text())
    state.write_text(json.dumps(facts | {"ledger": "none kept", "dataset": ""}))
    with refused("the table differs"):
        released(made, None, RESUME, directory=out)
    assert not out.exists()


def older_copy(made, ledger, monkeypatch, output, where, room):
    """The key of a killed release, and a ledger from before its charge where it fits, or not."""
    copy = shutil.copy(ledger.path, ledger.path.with_name("older.sqlite"))
    key = killed(made, ledger, output, monkeypatch, where)
    older = Ledger(copy)
    if not room:
        account = older.account(DATASET, made[1].protection)
        spent = Charge("another", made[1].guarantee, "0" * 64, datetime.now(UTC))
        older.charge(account, spent)
    return older, key


PUBLISHING = (staging, "_publish")


@pytest.mark.parametrize("where", [(execution, "write_report"), PUBLISHING])
def test_an_older_ledger_is_charged_for_the_same_release_where_it_fits(
    made, ledger, out, monkeypatch, where
):
    older, key = older_copy(made, ledger, monkeypatch, out, where, room=True)
    released(made, older, RESUME, directory=out)
    assert_finished(made, older, out, key)
    assert charges(older, made[1])[0].release_id == charges(ledger, made[1])[0].release_id


@pytest.mark.parametrize("where", [(execution, "write_report"), PUBLISHING])
def test_an_older_ledger_without_room_is_refused_and_what_was_begun_stays(
    made, ledger, out, monkeypatch, where
):
    older, key = older_copy(made, ledger, monkeypatch, out, where, room=False)
    with pytest.raises(BudgetError, match=r"older copy.*more than is left.*kept in.*--resume"):
        released(made, older, RESUME, directory=out)
    assert not out.exists()
    released(made, ledger, RESUME, directory=out)
    assert_finished(made, ledger, out, key)


def test_a_ledger_from_before_its_account_keeps_what_was_begun(made, tmp_path, out, monkeypatch):
    empty = create_ledger(tmp_path / "ledger.sqlite")
    older = Ledger(shutil.copy(empty.path, tmp_path / "older.sqlite"))
    ledger = opened(empty.path, made[1])
    key = killed(made, ledger, out, monkeypatch)
    with pytest.raises(BudgetError, match=r"has no account.*kept in"):
        released(made, older, RESUME, directory=out)
    released(made, ledger, RESUME, directory=out)
    assert_finished(made, ledger, out, key)


PLACES = {
    "before the charge": (Charging, "charge"),
    "the source": (execution, "Drawn"),
    "the pass": (execution, "pass_of"),
    "the files": (execution, "ReleaseFiles"),
    "the page": (execution, "write_report"),
    "the manifest": (execution, "write_manifest"),
    "times": (staging, "without_times"),
    "the disk": (staging, "sync_all"),
    "publishing": PUBLISHING,
}
FAILURES = {
    "Ctrl-C": KeyboardInterrupt(),
    "SIGTERM": SystemExit(143),
    "full": OSError(errno.ENOSPC, "No space left on device"),
    "memory": MemoryError(),
    "refusal": hr.ReleaseError("refused"),
    "budget": BudgetError("refused"),
    "locked": MachineError("the ledger was locked"),
    "bug": RuntimeError(),
}


ENDS = [(place, failure) for place in PLACES for failure in FAILURES]
ENDS.remove(("before the charge", "budget"))  # that costs nothing and leaves nothing: see below


@pytest.mark.parametrize(("place", "failure"), ENDS)
@pytest.mark.sweep(4)
def test_whatever_ends_a_release_the_next_run_finishes_it(
    made, ledger, tmp_path, out, monkeypatch, place, failure
):
    error = FAILURES[failure]
    with monkeypatch.context() as patch:

        def fail(*_args, **_options):
            raise error

        patch.setattr(*PLACES[place], fail)
        with pytest.raises((type(error), MachineError)) as ended:
            released(made, ledger, directory=out)
    if isinstance(ended.value, hr.errors.HedgerowError):
        assert "out.staging': finish it with --resume" in str(ended.value)
    key = (tmp_path / "out.staging" / "release.key").read_bytes()
    assert any(key)
    with pytest.raises(hr.ReleaseError, match="finish it with --resume"):
        released(made, opened(tmp_path / "roomy.sqlite", made[1]), directory=out)
    released(made, ledger, RESUME, directory=out)
    assert_finished(made, ledger, out, key)


def test_a_new_release_that_the_ledger_refuses_costs_nothing_and_leaves_nothing(
    made, tmp_path, monkeypatch
):
    tight = opened(tmp_path / "ledger.sqlite", made[1], cap="1/1000")
    monkeypatch.setattr(Charging, "check", lambda *_: None)
    with pytest.raises(BudgetError, match="more than is left") as refused:
        released(made, tight, directory=tmp_path / "out")
    assert "resume" not in str(refused.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ledger.sqlite"]


def test_nothing_is_discarded_for_a_release_that_the_ledger_refuses(made, ledger, out, monkeypatch):
    key = killed(made, ledger, out, monkeypatch)
    with pytest.raises(BudgetError, match="more than is left"):
        released(made, ledger, DISCARD, directory=out)
    released(made, ledger, RESUME, directory=out)
    assert_finished(made, ledger, out, key)


@pytest.mark.parametrize("changed", ["estimator", "plan", "table", "Hedgerow version"])
def test_what_no_longer_fits_is_refused_and_what_was_begun_stays(
    made, ledger, tmp_path, out, monkeypatch, changed
):
    counts, plan = made
    key = killed(made, ledger, out, monkeypatch)
    before = snapshot(tmp_path / "out.staging")
    given, options = made, {}
    with monkeypatch.context() as patch:
        if changed == "estimator":
            options = {"estimator": hr.Chebyshev()}
        elif changed == "plan":
            given = counts, plain_plan(plan.tree, budget=hr.Rho("1/4"))
        elif changed == "table":
            given = hr.Counts.from_leaves(plan.tree, counts.codes, counts.values + 1), plan
        else:
            patch.setattr(staging, "version", lambda _: "0.0.0")
        with (
            refused("the table differs")
            if changed == "table"
            else pytest.raises(hr.ReleaseError, match=f"the {changed} differs")
        ):
            released(given, ledger, RESUME, directory=out, **options)
    assert snapshot(tmp_path / "out.staging") == before
    released(made, ledger, RESUME, directory=out)
    assert_finished(made, ledger, out, key)


def test_a_release_that_has_appeared_is_not_passed_off_as_one_of_another_plan(
    made, tmp_path, out, monkeypatch
):
    counts, plan = made

    def die(_folder):
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(staging, "remove", die)
        with pytest.raises(KilledError):
            released(made, None, directory=out)
    assert out.exists()
    assert (tmp_path / "out.staging").exists()
    other = counts, plain_plan(plan.tree, budget=hr.Rho("1/4"))
    with pytest.raises(hr.ReleaseError, match="complete and of another plan"):
        released(other, None, RESUME, directory=out)
    released(made, None, RESUME, directory=out)
    assert not (tmp_path / "out.staging").exists()


def test_a_mark_that_a_discarded_release_left_completes_no_other(made, tmp_path, out, monkeypatch):
    """Discarding a complete release is broken off; what begins there anew is killed half-way."""
    killed(made, None, out, monkeypatch, PUBLISHING)
    folder = tmp_path / "out.staging"
    assert (folder / "complete").exists()
    (folder / "staging.json").unlink()
    with pytest.raises(hr.ReleaseError, match="nothing to resume"):
        released(made, None, RESUME, directory=out)
    killed(made, None, out, monkeypatch)
    released(made, None, RESUME, directory=out)
    assert [finding for finding in hr.check(out) if not finding.passed] == []


def test_a_complete_release_with_a_damaged_file_is_made_again_with_its_own_noise(
    made, ledger, tmp_path, out, monkeypatch
):
    key = killed(made, ledger, out, monkeypatch, PUBLISHING)
    (tmp_path / "out.staging" / "content" / "report.html").write_text("torn")
    released(made, ledger, RESUME, directory=out)
    assert_finished(made, ledger, out, key)


def test_a_complete_release_with_a_damaged_file_and_no_key_is_not_published(
    made, ledger, tmp_path, out, monkeypatch
):
    killed(made, ledger, out, monkeypatch, PUBLISHING)
    (tmp_path / "out.staging" / "release.key").unlink()
    page = tmp_path / "out.staging" / "content" / "report.html"
    whole = page.read_text()
    page.write_text("torn")
    with pytest.raises(hr.ReleaseError, match="has been damaged; begin anew with --discard"):
        released(made, ledger, RESUME, directory=out)
    assert not out.exists()
    page.write_text(whole)
    released(made, ledger, RESUME, directory=out)
    assert hr.check(out)[0].passed


def test_what_is_left_of_a_release_that_appeared_and_was_moved_away_begins_no_other(
    made, ledger, tmp_path, out, monkeypatch
):
    """A second one would draw other noise, and be charged."""

    def die(folder):
        (folder / "staging.json").unlink()
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(staging, "remove", die)
        with pytest.raises(KilledError):
            released(made, ledger, directory=out)
    out.rename(tmp_path / "published")
    with pytest.raises(hr.ReleaseError, match="nothing to resume"):
        released(made, ledger, RESUME, directory=out)
    assert len(charges(ledger, made[1])) == 1


def test_a_copy_of_a_ledger_is_the_same_ledger_and_no_other_is(made, ledger, tmp_path):
    copy = Ledger(shutil.copy(ledger.path, tmp_path / "copy.sqlite"))
    assert copy.id == ledger.id
    assert len(ledger.id) == 32
    other = opened(tmp_path / "other.sqlite", made[1])
    assert other.id != ledger.id


OTHERS = {
    "a folder": lambda place: (place / "photos").mkdir(parents=True),
    "a folder with a lock": lambda place: [
        (place / "work").mkdir(parents=True), (place / "lock").touch(),
    ],
    "a link to an unfinished release": lambda place: place.symlink_to("real.staging"),
    "a file": lambda place: place.touch(),
}  # fmt: skip


@pytest.mark.parametrize("there", ["nothing", "the release"])
@pytest.mark.parametrize("unfinished", hr.Unfinished)
@pytest.mark.parametrize("other", OTHERS)
def test_what_is_not_ours_in_the_place_of_a_staging_folder_stays(
    made, tmp_path, out, monkeypatch, other, unfinished, there
):
    killed(made, None, tmp_path / "real", monkeypatch, staged="real.staging")
    if there == "the release":
        released(made, None, directory=out)
    OTHERS[other](tmp_path / "out.staging")
    before = sorted(tmp_path.rglob("*")), snapshot(tmp_path)
    with pytest.raises(hr.ReleaseError, match=r"out\.staging' is in the way; move it"):
        released(made, None, unfinished, directory=out)
    assert (sorted(tmp_path.rglob("*")), snapshot(tmp_path)) == before


def test_a_staging_folder_that_goes_while_it_is_looked_at_is_in_nobodys_way(
    made, tmp_path, out, monkeypatch
):
    """Another run may tidy up just then."""
    folder, look = tmp_path / "out.staging", Path.iterdir
    folder.mkdir()

    def gone(path):
        if path == folder and folder.exists():
            folder.rmdir()
        return look(path)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "iterdir", gone)
        output.check_output(out)
    released(made, None, directory=out)
    assert [finding for finding in hr.check(out) if not finding.passed] == []


def test_a_folder_that_cannot_be_listed_ends_in_one_sentence(made, tmp_path, monkeypatch):
    (tmp_path / "out.staging").mkdir()

    def fails(folder):
        raise OSError(errno.EIO, "Input/output error", str(folder))

    monkeypatch.setattr(Path, "iterdir", fails)
    with pytest.raises(MachineError, match=r"^cannot look at .*out': Input/output error$"):
        released(made, None, directory=tmp_path / "out")
