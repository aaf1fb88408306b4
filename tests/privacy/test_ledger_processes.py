"""A ledger under kill -9 and under eight processes at once.

Run as a script, this file is the *nursery*: it imports the ledger once and then forks children in
milliseconds, each of which charges one release after the other until it is refused or killed.
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import pytest

from hedgerow.errors import BudgetError, HedgerowError
from hedgerow.noise.mechanisms import DiscreteGaussian
from hedgerow.privacy.budget import Rho
from hedgerow.privacy.ledger.ledger import Ledger, create_ledger
from hedgerow.privacy.ledger.records import Charge
from hedgerow.privacy.neighbours import AddRemove
from hedgerow.privacy.profile import Profile
from hedgerow.privacy.promise import Protection
from hedgerow.privacy.use import Use

VARIANCES: list[int | str] = [10, 11, "25/2", 13, 17, "53/3"]
CAP = Rho("7/10")  # some 20 charges
KILLS = 200
PLAN = "5" * 64
ANY_TIME = datetime(2026, 1, 1, tzinfo=UTC)


def variance_of(release_id):
    """What a release costs follows from its id, as a resumed run's does."""
    return Fraction(VARIANCES[int(release_id.partition("-")[2]) % len(VARIANCES)])


def cost_of(releases):
    """ρ = 1/(2σ²) each."""
    return sum((1 / (2 * variance_of(release)) for release in releases), Fraction(0))


def charge_of(release_id):
    uses = (Use(DiscreteGaussian(variance_of(release_id)), 1, ((1,),)),)
    return Charge(release_id, Profile(uses), PLAN, ANY_TIME)


def tell(word, what):
    """One line to the nursery's output, in one write."""
    os.write(sys.stdout.fileno(), f"{word} {what}\n".encode())


def keep_charging(path, releases):
    """Charge these releases in turn; say so before and after."""
    ledger = create_ledger(path)
    account = ledger.open_account("census", Protection(AddRemove()), CAP)
    for release_id in releases:
        tell("tried", release_id)
        try:
            ledger.charge(account, charge_of(release_id))
        except BudgetError:
            tell("refused", release_id)
            return
        tell("charged", release_id)


def nursery():
    """For each line of input, which names a ledger and each child's releases, fork the children.

    It kills them itself, before it asks for their end: until then their numbers are theirs.
    """
    for line in sys.stdin:
        order = json.loads(line)
        children = [forked(Path(order["path"]), releases) for releases in order["children"]]
        if order["kill_after"] is not None:
            time.sleep(order["kill_after"])
            for child in children:
                os.kill(child, signal.SIGKILL)
        for child in children:
            os.waitpid(child, 0)
        tell("dead", "all")


def forked(path, releases):
    child = os.fork()
    if child == 0:
        try:
            keep_charging(path, releases)
        except HedgerowError as error:
            tell("failed", str(error))
        finally:
            os._exit(0)
    return child


class Nursery:
    """The other end of the nursery's pipes."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )

    def raise_children(self, path, children, kill_after=None):
        """What the children told, {word: releases}; with ``kill_after``, killed (seconds)."""
        order = json.dumps({"path": str(path), "children": children, "kill_after": kill_after})
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{order}\n".encode())
        self.process.stdin.flush()
        told: dict[str, list[str]] = {"tried": [], "charged": [], "refused": [], "failed": []}
        for line in self.process.stdout:
            word, _, what = line.decode().strip().partition(" ")
            if word == "dead":
                return told
            told[word].append(what)
        raise AssertionError("the nursery closed")


@pytest.fixture
def nursed():
    made = Nursery()
    with made.process:
        yield made
        assert made.process.stdin is not None
        made.process.stdin.close()


@pytest.fixture
def folder():
    """Not pytest's own: a disk, not a RAM disk, wherever /tmp is one."""
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


def charged_releases(path):
    """The ids that the ledger holds, after every check that the ledger makes."""
    try:
        ledger = Ledger(path)
        standing = ledger.standing(ledger.account("census", Protection(AddRemove())))
    except BudgetError:  # killed before the file, its form or the account was there
        return []
    releases = [charge.release_id for charge in standing.charges]
    assert standing.spent == cost_of(releases) <= CAP.rho
    assert all(charge == charge_of(charge.release_id) for charge in standing.charges)
    return releases


@pytest.mark.slow
def test_200_kills_lose_no_charge_and_charge_no_release_twice(nursed, folder):
    """Each child first charges the release again at which the one before it was killed.

    The instants follow the machine's pace, which other work may change at any moment: a child that
    was through is killed sooner next time, one that had not begun later.
    """
    nursed.raise_children(folder / "unharmed.sqlite", [[]])  # the nursery has woken up
    began = time.monotonic()
    nursed.raise_children(folder / "unharmed.sqlite", [[f"r-{n}" for n in range(40)]])
    longest = (time.monotonic() - began) / 4  # some five charges
    instants = random.Random(20260101)
    cut_short = journals = 0
    path, known, pending, fresh = folder / "0.sqlite", [], [], 0
    for kill in range(10 * KILLS):
        if kill >= KILLS and cut_short >= KILLS / 4 and journals >= KILLS / 20:
            break
        releases = [*pending, *(f"r-{fresh + n}" for n in range(40))]
        fresh += 40
        told = nursed.raise_children(path, [releases], kill_after=instants.uniform(0, longest))
        journals += path.with_name(path.name + "-journal").exists()
        assert not told["failed"], told["failed"]
        found = charged_releases(path)
        assert len(set(found)) == len(found)
        assert found[: len(known)] == known
        # Only the one that was under way may be in without having been reported.
        new = [release for release in told["charged"] if release not in known]
        assert found[len(known) :] in (new, [*new, *told["tried"][-1:]])
        done = {*told["charged"], *told["refused"]}
        pending = [release for release in told["tried"] if release not in done]
        cut_short += len(pending)
        known = found
        if told["refused"]:
            path, known, pending = folder / f"{kill + 1}.sqlite", [], []
            longest *= 0.8
        elif not told["tried"]:
            longest *= 1.25
    # The instants were where it hurts: within a charge, and within its writing.
    assert cut_short >= KILLS / 4
    assert journals >= KILLS / 20


@pytest.mark.slow
def test_eight_processes_at_once_never_exceed_the_cap(nursed, folder):
    """They even make the ledger and its account at once."""
    path = folder / "ledger.sqlite"
    children = [[f"c{child}-{child + n}" for n in range(100)] for child in range(8)]
    told = nursed.raise_children(path, children)
    assert not told["failed"], told["failed"]
    assert len(told["refused"]) == 8
    found = charged_releases(path)
    assert sorted(found) == sorted(told["charged"])
    for release in told["refused"]:
        assert cost_of([*found, release]) > CAP.rho


@pytest.mark.slow
def test_eight_processes_that_charge_the_same_releases_charge_each_once(nursed, folder):
    path = folder / "ledger.sqlite"
    same = [f"shared-{n}" for n in range(12)]
    told = nursed.raise_children(path, [same] * 8)
    assert not told["failed"], told["failed"]
    assert sorted(told["charged"]) == sorted(same * 8)
    assert sorted(charged_releases(path)) == sorted(same)


if __name__ == "__main__":
    nursery()
