"""A ledger's file: whose it is, who may change it, and what happens when the machine fails."""

import hashlib
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hedgerow.errors import BudgetError, MachineError
from hedgerow.noise.mechanisms import DiscreteGaussian
from hedgerow.privacy.budget import Epsilon, Rho
from hedgerow.privacy.ledger.file import _FORM, VERSION, open_ledger_file
from hedgerow.privacy.ledger.ledger import Ledger, create_ledger
from hedgerow.privacy.ledger.records import Account, Charge, charge_row, read_charge, seal_row
from hedgerow.privacy.neighbours import AddRemove
from hedgerow.privacy.profile import Profile, compose
from hedgerow.privacy.promise import Protection
from hedgerow.privacy.use import Use

ACCOUNT = Account("census", Protection(AddRemove()), Rho(10))
PROFILE = compose([(DiscreteGaussian(2), 1)])


def charge(number, filling=""):
    return Charge(f"r{number}{filling}", PROFILE, "a" * 64, datetime(2026, 5, 4, tzinfo=UTC))


@pytest.fixture
def ledger(tmp_path):
    """A ledger with two charges."""
    made = create_ledger(tmp_path / "ledger.sqlite", patience=0.05)
    made.open_account(ACCOUNT.dataset, ACCOUNT.protection, ACCOUNT.cap)
    for number in (1, 2):
        made.charge(ACCOUNT, charge(number))
    return made


def altered(path, *statements):
    """Behind the ledger's back."""
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def test_a_ledger_is_not_made_by_the_way(tmp_path):
    with pytest.raises(BudgetError, match="there is no ledger at"):
        Ledger(tmp_path / "ledger.sqlite")
    assert list(tmp_path.iterdir()) == []


def test_a_ledger_that_was_removed_is_not_made_anew(ledger):
    ledger.path.unlink()
    with pytest.raises(BudgetError, match="there is no ledger at"):
        ledger.charge(ACCOUNT, charge(3))
    assert not ledger.path.exists()


def test_to_create_a_ledger_again_leaves_it_as_it_is(ledger):
    before = ledger.path.read_bytes()
    assert create_ledger(ledger.path).standing(ACCOUNT) == ledger.standing(ACCOUNT)
    assert ledger.path.read_bytes() == before


def test_a_ledger_whose_making_was_cut_short_is_made(tmp_path):
    path = tmp_path / "ledger.sqlite"
    path.touch()
    with pytest.raises(BudgetError, match="no Hedgerow ledger"):
        Ledger(path)
    assert create_ledger(path).accounts() == ()


def other_database(path):
    altered(path, "CREATE TABLE account (id INTEGER)", "PRAGMA user_version = 1")


@pytest.mark.parametrize(
    "make",
    [
        lambda path: path.write_text("A text that somebody would miss. " * 100),
        lambda path: path.write_bytes(bytes(5000)),
        other_database,
    ],
    ids=["text", "zeros", "database"],
)
def test_a_file_that_is_no_ledger_is_refused_and_left_alone(tmp_path, make):
    path = tmp_path / "ledger.sqlite"
    make(path)
    before = path.read_bytes()
    for attempt in (Ledger, create_ledger):
        with pytest.raises(BudgetError, match="no Hedgerow ledger"):
            attempt(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("version", "way"), [(VERSION + 1, "or a newer one"), (VERSION - 1, "or begin a new ledger")]
)
def test_a_ledger_of_another_version_is_refused(ledger, version, way):
    altered(ledger.path, f"PRAGMA user_version = {version}")
    said = f"format {version}, .* reads format {VERSION}; use the version that wrote it, {way}"
    for attempt in (Ledger, create_ledger):
        with pytest.raises(BudgetError, match=said):
            attempt(ledger.path)


def test_the_form_of_a_version_never_changes():
    """Ledgers outlive programs: another form needs another version."""
    form = hashlib.sha256("\n".join(_FORM).encode()).hexdigest()
    assert (VERSION, form) == (
        3,
        "3ffda52173a67cc7c47baff2308426d20cf128485be0f903bcb133485f458021",
    )
    profile = (
        '{"is_worst":true,"uses":[{"mechanism":"discrete-gaussian","shifts":[1,-1],"sigma2":"5/2",'
        '"times":3},{"epsilon":"1/2","mechanism":"guarantee","times":1}]}'
    )
    row = ("r1", "2026-11-21T03:18:41.454367+00:00", "0" * 64, profile)
    uses = (Use(DiscreteGaussian("5/2"), 3, ((1, -1),)), Use(Epsilon("1/2"), 1, ((1,),)))
    at = datetime(2026, 11, 21, 3, 18, 41, 454367, tzinfo=UTC)
    assert read_charge(*row) == Charge("r1", Profile(uses), "0" * 64, at)
    assert charge_row(read_charge(*row)) == row
    assert seal_row("", row) == "e7440dd1de28894b7b0bad4fd9df5676c2b48d807f1b71fac086aa0200455259"


def test_a_folder_is_no_ledger(tmp_path):
    for attempt in (Ledger, create_ledger):
        with pytest.raises(BudgetError, match="is a directory; name a file"):
            attempt(tmp_path)


LIKE_SECOND = "charged_at, plan_hash, profile, digest FROM charge WHERE number = 2"


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM charge WHERE number = 2",
        "UPDATE charge SET release_id = 'x'",
        "UPDATE account SET cap = '1000'",
        "DELETE FROM account",
        "UPDATE identity SET id = lower(hex(randomblob(16)))",
        "DELETE FROM identity",
        "INSERT INTO identity (one, id) VALUES (1, lower(hex(randomblob(16))))",
        "REPLACE INTO identity (one, id) VALUES (1, lower(hex(randomblob(16))))",
        f"REPLACE INTO charge SELECT 1, 2, 'r3', {LIKE_SECOND}",
        f"REPLACE INTO charge SELECT 1, 3, 'r2', {LIKE_SECOND}",
        f"INSERT INTO charge SELECT 1, 7, 'r7', {LIKE_SECOND}",
        "REPLACE INTO account SELECT 1, dataset, protection, measure, '99', digest FROM account",
        "REPLACE INTO account SELECT 9, dataset, protection, measure, '99', digest FROM account",
    ],
)
def test_a_ledger_only_grows(ledger, statement):
    with closing(sqlite3.connect(ledger.path)) as connection:
        connection.execute("PRAGMA recursive_triggers = OFF")
        with pytest.raises(sqlite3.IntegrityError, match="only grows"):
            connection.execute(statement)
    assert len(ledger.standing(ACCOUNT).charges) == 2


def unguarded(path, statement):
    """Without the triggers, which come back afterwards."""
    with closing(sqlite3.connect(path)) as connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        guards = triggers.fetchall()
        for name, _ in guards:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(statement)
        for _, sql in guards:
            connection.execute(sql)
        connection.commit()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE account SET cap = '1000'",
        "UPDATE account SET measure = 'epsilon'",
        "UPDATE identity SET id = lower(hex(randomblob(16)))",
        "UPDATE charge SET profile = replace(profile, '\"2\"', '\"2000\"') WHERE number = 1",
        "UPDATE charge SET release_id = 'r9' WHERE number = 2",
        "UPDATE account SET protection = replace(protection, '[]', '[[\"home\",null,\"\"]]')",
        "UPDATE charge SET charged_at = '2020-01-01T00:00:00+00:00' WHERE number = 1",
        "DELETE FROM charge WHERE number = 1",
        "UPDATE charge SET number = 3 - number + 10",
        "UPDATE charge SET digest = replace(digest, substr(digest, 1, 1), 'x') WHERE number = 1",
    ],
)
def test_an_entry_that_was_changed_stops_the_ledger(ledger, statement):
    unguarded(ledger.path, statement)
    for use in (ledger.standing, lambda account: ledger.charge(account, charge(3))):
        with pytest.raises(MachineError, match=r"damaged \(an entry is not as it was written"):
            use(ACCOUNT)


def test_a_ledger_without_its_name_is_damaged(ledger):
    unguarded(ledger.path, "DELETE FROM identity")
    with pytest.raises(MachineError, match="it has lost its name"):
        ledger.standing(ACCOUNT)


def test_the_last_charge_taken_away_shows_in_the_digest_alone(ledger):
    """The limit of a chain of digests: keep the last one elsewhere."""
    noted = ledger.standing(ACCOUNT).digest
    unguarded(ledger.path, "DELETE FROM charge WHERE number = 2")
    assert ledger.standing(ACCOUNT).digest != noted
    ledger.charge(ACCOUNT, charge(2))
    assert ledger.standing(ACCOUNT).digest == noted


def test_a_ledger_without_its_guards_is_refused(ledger):
    altered(ledger.path, "DROP TRIGGER no_delete_of_charge")
    with pytest.raises(MachineError, match="tables or their guards were changed"):
        ledger.charge(ACCOUNT, charge(3))


def test_damage_anywhere_in_the_file_never_makes_room(ledger):
    """A piece at a time is wiped: an error, or the ledger as it was."""
    whole = ledger.path.read_bytes()
    stood = ledger.standing(ACCOUNT)
    outcomes = set()
    for start in range(0, len(whole), 512):
        ledger.path.write_bytes(whole[:start] + bytes(512) + whole[start + 512 :])
        try:
            found = ledger.standing(ACCOUNT)
        except (BudgetError, MachineError):
            outcomes.add("refused")
        else:
            outcomes.add("intact")
            assert found == stood
    assert outcomes == {"refused", "intact"}


def test_a_file_cut_short_is_refused(ledger):
    whole = ledger.path.read_bytes()
    for pages in range(1, len(whole) // 4096):
        ledger.path.write_bytes(whole[: pages * 4096])
        with pytest.raises((BudgetError, MachineError)):
            ledger.standing(ACCOUNT)


def test_a_charge_is_on_the_disk_when_it_is_made(ledger):
    """Also after somebody gave the file a write-ahead log."""
    with closing(sqlite3.connect(ledger.path)) as connection:
        assert connection.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    with open_ledger_file(ledger.path, 1) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (3,)  # EXTRA
    ledger.charge(ACCOUNT, charge(3))
    assert [path.name for path in ledger.path.parent.iterdir()] == [ledger.path.name]


def test_a_ledger_that_stays_locked_is_given_up(ledger):
    with closing(sqlite3.connect(ledger.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(MachineError, match=r"locked by other runs for 0\.05 seconds"):
            ledger.charge(ACCOUNT, charge(3))
        assert len(ledger.standing(ACCOUNT).charges) == 2  # others may look
    ledger.charge(ACCOUNT, charge(3))


def test_a_reader_only_delays_a_charge(ledger):
    with closing(sqlite3.connect(ledger.path, isolation_level=None)) as other:
        other.execute("BEGIN")
        other.execute("SELECT * FROM charge").fetchall()
        with pytest.raises(MachineError, match="locked by other runs"):
            ledger.charge(ACCOUNT, charge(3))
    assert len(ledger.standing(ACCOUNT).charges) == 2


def fill(ledger):
    for number in range(3, 40):
        ledger.charge(ACCOUNT, charge(number, "x" * 400))


def test_a_full_disk_charges_nothing(ledger):
    """As far as a test can fill one: no file may grow beyond the ledger's size."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ledger.path.stat().st_size, before[1]))
    try:
        with pytest.raises(MachineError, match="cannot use the ledger"):
            fill(ledger)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    held = len(ledger.standing(ACCOUNT).charges)
    assert 2 <= held < 39
    ledger.charge(ACCOUNT, charge(held + 1, "x" * 400))
    assert len(ledger.standing(ACCOUNT).charges) == held + 1


READ_ONLY = """
import os, sys
from pathlib import Path
from hedgerow.errors import MachineError
from hedgerow.privacy.ledger.ledger import Ledger, create_ledger
sys.path.insert(0, sys.argv[2])
from tests.privacy.test_ledger_file import ACCOUNT, charge
if os.getuid() == 0:
    os.setuid(65534)
folder = Path(sys.argv[1])
ledger = Ledger(folder / "ledger.sqlite")
print(len(ledger.standing(ACCOUNT).charges))
for attempt in (lambda: ledger.charge(ACCOUNT, charge(3)), lambda: create_ledger(folder / "new")):
    try:
        attempt()
    except MachineError as error:
        print(error)
"""


def test_a_folder_that_cannot_be_written_lets_a_ledger_be_read(ledger):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(ledger.path, folder)
        (folder / ledger.path.name).chmod(0o444)
        folder.chmod(0o555)
        told = subprocess.run(
            [sys.executable, "-c", READ_ONLY, name, str(Path(__file__).parents[2])],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        ).stdout.splitlines()
        folder.chmod(0o755)
    assert told[0] == "2"
    assert told[1].startswith("cannot use the ledger")
    assert told[2].startswith("cannot create the ledger")
    assert told[2].endswith("Permission denied")
