"""A release that is killed at any instant is finished by resuming: same noise, one charge."""

import pytest

import hedgerow as hr
from hedgerow.noise.bits import ReleaseKey
from hedgerow.privacy.ledger.ledger import create_ledger
from hedgerow.release.descent import block, outline
from hedgerow.release.execution import in_memory
from tests.release import killing

MEASURES = {"survivors": hr.Survivors(), "all": hr.All()}


def key_of(staging):
    """The key of an unfinished release; None before it was drawn and after it was erased."""
    path = staging / "release.key"
    try:
        return path.read_bytes() if (staging / "staging.json").exists() else None
    except FileNotFoundError:
        return None


def kill_and_resume(folder, measure, instants):
    """What is left of a release that is killed at some instants: the keys that were seen."""
    output, staging = folder / "out", folder / "out.staging"
    ledger = create_ledger(folder / "ledger.sqlite")
    plan = killing.table(measure)[1]
    ledger.open_account(killing.DATASET, plan.protection, hr.Rho(10))
    keys = set()
    for after in [*instants, None]:
        if output.exists() and not staging.exists():
            break
        unfinished = hr.Unfinished.RESUME if staging.exists() else hr.Unfinished.REFUSE
        code = killing.killed(output, measure, unfinished, after)
        assert code in ({0} if after is None else {0, -9}), f"exit code {code}"
        keys.add(key_of(staging))
    return keys - {None, bytes(32)}


def assert_one_release(folder, measure, keys):
    """It passes `check`, is charged once, and has the noise of the only key there was."""
    assert [f for f in hr.check(folder / "out") if f.failure] == []
    assert not (folder / "out.staging").exists()
    counts, plan = killing.table(measure)
    ledger = killing.Ledger(folder / "ledger.sqlite")
    standing = ledger.standing(ledger.account(killing.DATASET, plan.protection))
    assert len(standing.charges) == 1
    assert len(keys) <= 1
    for key in keys:
        expected = in_memory(counts, plan, estimator=hr.Euclidean(), bits=ReleaseKey(key))
        found = hr.read_release(folder / "out")
        for depth in range(1, plan.tree.depth + 1):
            assert found.measurements(depth=depth).equals(expected.measurements(depth=depth))
            assert found.level(depth=depth).equals(expected.level(depth=depth))


@pytest.fixture
def cut(monkeypatch):
    for name in ("UNCUT_LEAVES", "UNCUT_LEAVES_OF_ALL"):
        monkeypatch.setattr(outline, name, 0)
    monkeypatch.setattr(outline, "MIN_JOBS", 30)
    monkeypatch.setattr(block, "CHUNK_CELLS", 1000)


@pytest.mark.usefixtures("cut")
@pytest.mark.parametrize("measure", MEASURES)
def test_a_release_that_is_killed_three_times_is_finished_with_one_noise(tmp_path, measure):
    keys = kill_and_resume(tmp_path, MEASURES[measure], [0.45, 0.6, 0.8])
    assert_one_release(tmp_path, MEASURES[measure], keys)
