"""Which tests may skip: those that `allowed_skips.txt` names, with the reason that they give.

A machine may lack a part that `make setup` cannot bring: a browser, Java, a database. Tests that
need it skip, and the run prints which. Any other test or file that was skipped, or that was
expected to fail, ends the run with exit code 1: a package of the lock that is not there, say. So
does, where HEDGEROW_EVERY_TEST is set as `.ci/run` does, the lack of a part that it installs.
"""

import os
from collections import Counter
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path

import pytest

STRICT = "HEDGEROW_EVERY_TEST"
LIST = "HEDGEROW_ALLOWED_SKIPS"
ALLOWED = Path(__file__).with_name("allowed_skips.txt")
EVERYWHERE = "[everywhere]"
PASSED, FAILED = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED), 1


@dataclass(frozen=True)
class Skip:
    """A test or file that did not run, or was not expected to pass, and why."""

    place: str
    reason: str


@dataclass(eq=False)
class Skips:
    """All of a run; of workers, in the process that they report to."""

    allowed: list[Skip]
    found: dict[Skip, None] = field(default_factory=dict)

    @property
    def unexpected(self):
        return [one for one in self.found if not self.is_allowed(one)]

    def is_allowed(self, one):
        return any(_matches(one, line) for line in self.allowed)

    def pytest_runtest_logreport(self, report):
        if hasattr(report, "wasxfail"):
            kind = "expected to fail" if report.skipped else "passed, though expected to fail"
            self.found[Skip(report.nodeid, f"{kind}: {report.wasxfail}")] = None
        elif report.skipped:
            self.found[Skip(report.nodeid, _reason(report))] = None

    def pytest_collectreport(self, report):
        if report.skipped:
            self.found[Skip(report.nodeid, _reason(report))] = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session):
        if self.unexpected and session.exitstatus in PASSED:
            session.exitstatus = FAILED

    def pytest_terminal_summary(self, terminalreporter):
        allowed = Counter(one.reason for one in self.found if self.is_allowed(one))
        if allowed:
            terminalreporter.section(f"skipped, as {ALLOWED.name} allows")
            for reason, times in sorted(allowed.items()):
                terminalreporter.line(f"{times:5}  {reason}")
        if self.unexpected:
            terminalreporter.section(f"skipped, and not in {ALLOWED.name}", red=True)
            for one in self.unexpected:
                terminalreporter.line(f"{one.place}  {one.reason}")


def read_allowed(path):
    """The lines of each part of a list: the id of a test or file, two spaces, the reason."""
    parts = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            lines = parts.setdefault(line, [])
        elif line and not line.startswith("#"):
            place, _, reason = line.partition("  ")
            assert reason.strip(), f"{path.name}: {line!r} says no reason"
            lines.append(Skip(place, reason.strip()))
    return parts


def pytest_configure(config):
    """Workers only report; the process that they report to counts."""
    if not hasattr(config, "workerinput"):
        parts = read_allowed(Path(os.environ.get(LIST, ALLOWED)))
        chosen = [parts[EVERYWHERE]] if os.environ.get(STRICT) else parts.values()
        config.pluginmanager.register(Skips([*chain.from_iterable(chosen)]), "skips")


def _reason(report):
    _, _, reason = report.longrepr
    return reason.removeprefix("Skipped: ")


def _matches(one, line):
    return fnmatchcase(one.place, _literal(line.place)) and fnmatchcase(
        one.reason, _literal(line.reason)
    )


def _literal(pattern):
    """Brackets in a test's id are no set of letters."""
    return pattern.replace("[", "[[]")
