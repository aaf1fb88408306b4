"""Releases whose system calls are found with strace and struck one by one.

A call is struck by SIGKILL as it begins, by an error in its place, or by SIGSTOP until another run
has come and gone. Between two calls that change a file nothing on the disk changes, so the states
that strikes leave are all states there are. Python's own hooks would miss what Parquet and SQLite
write. Each release runs in a process beside the tests', which is kept while its releases end well.
"""

import ctypes
import json
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.errors import HedgerowError
from hedgerow.noise.bits import ReleaseKey
from hedgerow.plan import chain as planned_chain
from hedgerow.plan import spine as planned_spine
from hedgerow.plan import tables
from hedgerow.privacy.ledger.ledger import Ledger, create_ledger
from hedgerow.release.descent import block, jobs
from hedgerow.release.directory.keys import KEY_FILE, STATE_FILE, Charging
from hedgerow.release.directory.manifest import read_manifest
from hedgerow.release.directory.output import is_unfinished
from hedgerow.release.execution import in_memory
from tests.made import fixed_axis, plain_plan

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.release.strikes"])
REFUSE, RESUME, DISCARD = hr.Unfinished.REFUSE, hr.Unfinished.RESUME, hr.Unfinished.DISCARD
DATASET = "trips"
CHANGING = (
    "chmod,fchmod,fchmodat,copy_file_range,fallocate,fdatasync,flock,fsync,ftruncate,link,linkat,"
    "mkdir,mkdirat,openat,pwrite64,pwritev,rename,renameat,renameat2,rmdir,sendfile,symlink,"
    "symlinkat,truncate,unlink,unlinkat,utimensat,write,writev"
)
"""Every call by which a release could change a file, its name or its lock."""

FAULTS = dict.fromkeys(("rmdir", "unlink", "unlinkat"), "EBUSY") | dict.fromkeys(
    ("flock", "chmod", "utimensat"), "EIO"
)
"""Errors of calls that need no room; the others get ENOSPC."""

TRIES = 20
"""Runs at most until a call is struck: its number differs a little from run to run."""

PTRACE_ANYONE = 0x59616D61, ctypes.c_ulong(-1)
LINE = re.compile(r"(?:\[pid +(\d+)\] |(\d+) +)?(\w+)\((.*)")
DIGEST = re.compile("[0-9a-f]{32}")
"""In the names of a release's own jobs."""


@dataclass(frozen=True)
class Call:
    """A system call of a release: what it is about, and which it is.

    Attributes:
        name: of the system call.
        about: the file, within the release's folder.
        which: of those of its name about that file, from 0.
        number: among all calls of its name in the run that was recorded, from 1.
    """

    name: str
    about: str
    which: int
    number: int

    def is_like(self, other):
        """Whether it is the same call of another run, under whatever number."""
        own = self.name, self.about, self.which
        return own == (other.name, other.about, other.which)


class NotReachedError(Exception):
    """A call that many runs did not come to under the number of the run before."""


WORKLOAD = "workload.txt"
"""The file of a release's folder that says what is released there."""
MARGINS = hr.Cuboids(["o.level2", "d.level2"], chain=True)
WORKLOADS = {
    "chain": {},
    "survivors": {"measure": hr.Survivors()},
    "cube": {"workload": hr.Cube()},
    "a chain and margins": {"workload": MARGINS},
    "attributes": {"workload": hr.Cube()},
    "running sums": {"measure": hr.RunningSums(), "allocation": hr.ForDistribution()},
}
"""All but the margins and the sums are cut into jobs."""


@cache
def table(workload="chain"):
    """Counts over two axes, or one, and a plan."""
    rng = np.random.default_rng(1)
    if workload == "running sums":
        tree = hr.Tree([hr.Ranges.equal_width("o", 0, 30, 30).axis([30])])
    else:
        columns = {name: [f"{name}{k}" for k in range(2)] for name in "od"}
        tree = hr.Tree([
            fixed_axis("o", 2, 3, columns=columns["o"]),
            fixed_axis("d", 2, 3, columns=columns["d"], attribute=workload == "attributes"),
        ])  # fmt: skip
    codes = tuple(rng.integers(0, 6, 40).astype(np.int32) for _ in tree.axes)
    counts = hr.Counts.from_leaves(tree, codes, rng.integers(1, 200, 40))
    options = {"measure": hr.All(), **WORKLOADS[workload]}
    return counts, plain_plan(tree, budget=hr.Rho("1/2"), **options)


def workload_of(folder):
    """The name of what is released in a folder."""
    return (folder / WORKLOAD).read_text()


def table_of(folder):
    """What is released in a folder."""
    return table(workload_of(folder))


def estimator_of(plan):
    """The estimator that a plan's measure goes with."""
    return hr.Isotonic() if isinstance(plan.measure, hr.RunningSums) else hr.Euclidean()


@contextmanager
def cut():
    """A small tree is cut, and its jobs are done in the thread that waits for them."""
    wanted = {(planned_chain, "UNCUT_LEAVES"): 0, (planned_chain, "UNCUT_LEAVES_OF_ALL"): 0}
    wanted |= {(planned_chain, "MIN_JOBS"): 2, (block, "CHUNK_CELLS"): 1000, (jobs, "RUNS"): 2}
    wanted |= {(planned_spine, "UNCUT"): 0, (planned_spine, "MOST_ABOVE_THE_CUT"): 40}
    wanted |= {(planned_spine, "WORTH_A_JOB"): 1, (tables, "LEAST_SAVED"): 0}
    wanted |= {(jobs.LocalEngine, "run"): lambda _engine, found, work: map(work, found)}
    before = {place: getattr(*place) for place in wanted}
    for (where, name), value in wanted.items():
        setattr(where, name, value)
    try:
        yield
    finally:
        for (where, name), value in before.items():
            setattr(where, name, value)


def release(folder, unfinished, patience=0.2):
    """Make the release, charged to the ledger beside it."""
    counts, plan = table_of(folder)
    charging = Charging(Ledger(folder / "ledger.sqlite", patience), DATASET)
    with cut():
        hr.release(
            counts, plan, directory=folder / "out", charging=charging, unfinished=unfinished,
            estimator=estimator_of(plan),
        )  # fmt: skip


def prepared(folder, workload="chain"):
    """A folder with an open account."""
    folder.mkdir()
    (folder / WORKLOAD).write_text(workload)
    ledger = create_ledger(folder / "ledger.sqlite")
    ledger.open_account(DATASET, table(workload)[1].protection, hr.Rho(10))
    return folder


def _serve(go, workload):
    """Make the releases that are asked for; answer with exit code and sentence.

    The first one, of its own, loads all kernels, so few calls of the others are left to be traced.
    """
    ctypes.CDLL(None).prctl(*PTRACE_ANYONE, 0, 0, 0)
    with TemporaryDirectory() as place:
        release(prepared(Path(place) / "first", workload), REFUSE)
    go.send("ready")
    while True:
        folder, unfinished = go.recv()
        try:
            release(folder, unfinished)
        except HedgerowError as error:
            go.send((error.exit_code, str(error)))
        except Exception as error:
            go.send((70, repr(error)))
            raise
        else:
            go.send((0, ""))


class Server:
    """A process that releases a workload when told to, and again if that ended well."""

    idle: ClassVar[dict[str, list["Server"]]] = defaultdict(list)

    def __init__(self, workload):
        self.workload = workload
        self.end, go = PROCESSES.Pipe()
        self.process = PROCESSES.Process(target=_serve, args=(go, workload), daemon=True)
        self.process.start()
        go.close()
        assert self.end.recv() == "ready"

    @classmethod
    def ready(cls, workload):
        idle = cls.idle[workload]
        return idle.pop() if idle else cls(workload)

    def answer(self):
        """Exit code and sentence of the release; if it was killed, the negative signal and none."""
        try:
            code, said = self.end.recv()
        except EOFError:
            self.process.join()
            return self.process.exitcode, ""
        if code == 0:
            self.idle[self.workload].append(self)
        else:  # what it still holds open ends with it
            self.process.terminate()
        return code, said


class Traced:
    """A release under strace."""

    def __init__(self, folder, unfinished, *options):
        self.server = Server.ready(workload_of(folder))
        self.pid = self.server.process.pid
        self.log = folder / "strace.log"
        what = ["-y", "-e", f"trace={CHANGING}", "-o", self.log, "-p", str(self.pid)]
        self.tracer = subprocess.Popen(
            ["strace", *what, *options], stderr=subprocess.PIPE, text=True
        )
        assert "attached" in self.tracer.stderr.readline()
        self.server.end.send((folder, unfinished))

    def is_stopped(self):
        """Whether it was stopped before it ended."""
        while not self.server.end.poll():
            if "--- stopped by SIGSTOP" in self.log.read_text(errors="replace"):
                return True
            time.sleep(0.005)
        return False

    def proceed(self):
        """Let it go on: a signal is lost that comes while other threads are being stopped."""
        stopped = True
        while stopped:
            os.kill(self.pid, signal.SIGCONT)
            time.sleep(0.01)
            state = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
            stopped = state in "tT"

    def ended(self):
        """The exit code and the sentence."""
        ended = self.server.answer()
        self.tracer.terminate()  # it lets the process go
        self.tracer.communicate()
        return ended


def calls_of(folder, unfinished):
    """The calls of a whole run that change something in its folder, all of one thread."""
    traced = Traced(folder, unfinished, "-f")
    main = traced.pid
    code, said = traced.ended()
    assert code == 0, said
    found, numbers, same = [], Counter(), Counter()
    for line in traced.log.read_text(errors="replace").splitlines():
        match = LINE.match(line)
        if match is None:
            continue
        pid, name, rest = int(match[1] or match[2] or main), match[3], match[4]
        numbers[pid, name] += 1
        place = re.search(re.escape(str(folder)) + r'/?([^">]*)', rest)
        if place is None or (name == "openat" and "O_CREAT" not in rest):
            continue
        if place[1] == traced.log.name:
            continue
        assert pid == main, f"another thread changes files: {line}"
        about = DIGEST.sub("*", place[1])
        found.append(Call(name, about, same[name, about], numbers[pid, name]))
        same[name, about] += 1
    traced.log.unlink()
    return found


def struck(folder, unfinished, call, how):
    """A release of which one call is struck: its exit code and sentence, None if it was another."""
    traced = Traced(folder, unfinished, "-e", f"inject={call.name}:{how}:when={call.number}")
    ended = traced.ended()
    return ended if is_call(call, traced) else None


def is_call(call, traced):
    """Whether the call of that number was the one that was meant; its log is gone then.

    Fresh noise may take fewer writes, and libraries read what the machine is once a while.
    """
    lines = map(LINE.match, traced.log.read_text(errors="replace").splitlines())
    named = [line[4] for line in lines if line is not None and line[3] == call.name]
    traced.log.unlink()
    return len(named) >= call.number and call.about in DIGEST.sub("*", named[call.number - 1])


def charges(folder):
    ledger = Ledger(folder / "ledger.sqlite")
    plan = table_of(folder)[1]
    return [c.release_id for c in ledger.standing(ledger.account(DATASET, plan.protection)).charges]


def key_of(folder):
    try:
        return (folder / "out.staging" / KEY_FILE).read_bytes()
    except FileNotFoundError:
        return b""


def assert_finished(folder, key):
    """The release is whole, in its place alone, charged once, and of the key if there was one."""
    output, (counts, plan) = folder / "out", table_of(folder)
    with cut():
        assert [finding for finding in hr.check(output) if not finding.passed] == []
    assert not (folder / "out.staging").exists()
    assert charges(folder).count(read_manifest(output)["ledger"]["release_id"]) == 1
    if any(key):
        found = hr.read_release(output)
        with cut():
            bits = ReleaseKey(key)
            made = in_memory(counts, plan, estimator=estimator_of(plan), bits=bits)
        for cuboid in plan.cuboids:
            assert found.level(cuboid).equals(made.level(cuboid)), cuboid
        for levels in plan.measured:
            assert np.array_equal(found.content.measured[levels], made.content.measured[levels]), (
                levels
            )


def assert_no_second_after_it_was_moved(folder):
    """Resuming draws no other noise because the release is no longer where it appeared."""
    before = charges(folder)
    (folder / "out").rename(folder / "published")
    with pytest.raises(hr.ReleaseError, match="nothing to resume"):
        release(folder, RESUME)
    assert charges(folder) == before
    assert not (folder / "out").exists()


def settled(folder, before):
    """What a strike left, after the next run has finished it: one noise and one charge.

    Args:
        folder: of the release.
        before: its charges before the run that was struck.
    """
    output, staging, key = folder / "out", folder / "out.staging", key_of(folder)
    after = charges(folder)
    if output.exists():
        state = "complete" if not staging.exists() else "complete, staging left over"
        expected = after
        assert len(after) <= len(before) + 1
        if staging.exists():
            assert_no_second_after_it_was_moved(shutil.copytree(folder, folder / "moved"))
            shutil.rmtree(folder / "moved")
            release(folder, RESUME)
    elif is_unfinished(staging):
        state = "resumable, charged" if after else "resumable, not yet charged"
        begun = json.loads((staging / STATE_FILE).read_text())["release"]
        expected = after if begun in after else [*after, begun]
        assert len(expected) <= len(before) + 1
        release(folder, RESUME)
        assert read_manifest(output)["ledger"]["release_id"] == begun
    else:
        state, key = "nothing begun, nothing charged", b""
        assert after == before
        with pytest.raises(hr.ReleaseError, match="nothing to resume"):
            release(folder, RESUME)
        release(folder, REFUSE)
        expected = charges(folder)
        assert len(expected) == len(before) + 1
    assert charges(folder) == expected
    assert_finished(folder, key)
    return state


@dataclass(frozen=True)
class Scenario:
    """A run whose calls are struck, and the last call of a run that was killed before it."""

    unfinished: hr.Unfinished
    killed_at: str = ""
    workload: str = "chain"


SCENARIOS = {
    "release": Scenario(REFUSE),
    "resume": Scenario(RESUME, "openat out.staging/content/report.html"),
    "resume what is complete": Scenario(RESUME, "rename out.staging/content"),
    "resume what has appeared": Scenario(RESUME, "unlink out.staging/staging.json"),
    "discard": Scenario(DISCARD, "openat out.staging/content/report.html"),
    **{name: Scenario(REFUSE, workload=name) for name in WORKLOADS if name != "chain"},
}


def renumbered(call, folder, unfinished):
    """The call under its number in one more run, unless that run did without it."""
    again = calls_of(folder, unfinished)
    return next((other for other in again if other.is_like(call)), call)


class Strikes:
    """All strikes on one scenario, from a copy of the same folder each."""

    def __init__(self, scenario, place):
        self.place, self.unfinished = place, REFUSE
        self.template = prepared(place / "template", scenario.workload)
        if scenario.killed_at:
            whole = {f"{call.name} {call.about}": call for call in calls_of(self.folder(), REFUSE)}
            killed, code, _ = self.strike(whole[scenario.killed_at], "signal=KILL")
            assert code == -signal.SIGKILL
            self.template = killed.rename(place / "killed")
        self.unfinished = scenario.unfinished
        self.before = charges(self.template)
        self.calls = calls_of(self.folder(), self.unfinished)

    def folder(self):
        """A fresh copy; one made before is gone."""
        shutil.rmtree(self.place / "struck", ignore_errors=True)
        return shutil.copytree(self.template, self.place / "struck")

    def strike(self, call, how):
        """A folder in which the call was struck, and the exit code and sentence of that run."""
        for _ in range(TRIES):
            folder = self.folder()
            ended = struck(folder, self.unfinished, call, how)
            if ended is not None:
                return folder, *ended
            call = renumbered(call, self.folder(), self.unfinished)
        raise NotReachedError(call)

    def kill(self, call):
        """The state that is left by a kill."""
        folder, code, said = self.strike(call, "signal=KILL")
        assert code == -signal.SIGKILL, (call, code, said)
        return settled(folder, self.before)

    def fail(self, call):
        """The state that is left where the call fails."""
        folder, code, said = self.strike(call, f"error={FAULTS.get(call.name, 'ENOSPC')}")
        assert code in {0, 1}, (call, code, said)
        assert (code == 0) == (said == ""), (call, said)
        return f"exit code {code}: {settled(folder, self.before)}"

    def overtake(self, call, unfinished):
        """The state that is left where another run comes and goes at this call."""
        for _ in range(TRIES):
            folder = self.folder()
            inject = f"inject={call.name}:signal=STOP:when={call.number}"
            stopped = Traced(folder, self.unfinished, "-e", inject)
            if not stopped.is_stopped():
                stopped.ended()
                call = renumbered(call, self.folder(), self.unfinished)
                continue
            try:
                release(folder, unfinished)
                other = "the other released"
            except hr.errors.HedgerowError as error:
                other = f"the other was refused ({type(error).__name__})"
            stopped.proceed()
            code, said = stopped.ended()
            if is_call(call, stopped):
                assert code in {0, 1, 2}, (call, code, said)
                return f"{other}, exit code {code}: {settled(folder, self.before)}"
            call = renumbered(call, self.folder(), self.unfinished)
        raise NotReachedError(call)


def sample(calls, most):
    """So many calls, evenly spread over the files and what is done with them."""
    first = list({(call.name, call.about): call for call in reversed(calls)}.values())[::-1]
    if len(first) <= most:
        return first
    return [first[int((k + 0.5) * len(first) / most)] for k in range(most)]


def main(*wanted):
    """Strike every call of every scenario (or of those named), and print what was left: hours.

    ``python -c "from tests.release import strikes; strikes.main()"``.
    """
    for name, scenario in SCENARIOS.items():
        for way, strike in WAYS.items():
            if wanted and f"{name}, {way}" not in wanted:
                continue
            states = Counter()
            with TemporaryDirectory() as place:
                strikes = Strikes(scenario, Path(place))
                for call in strikes.calls:
                    try:
                        states[strike(strikes, call)] += 1
                    except NotReachedError:
                        states[f"not reached in {TRIES} runs"] += 1
            sys.stdout.write(f"{name}, {way}: {len(strikes.calls)} calls\n")
            for state, times in states.most_common():
                sys.stdout.write(f"  {times:5} {state}\n")
            sys.stdout.flush()


WAYS = {
    "kill": Strikes.kill,
    "fail": Strikes.fail,
    "another release": lambda strikes, call: strikes.overtake(call, REFUSE),
    "another resume": lambda strikes, call: strikes.overtake(call, RESUME),
}
