"""A run in which every test must run, but for the skips that are written down.

Where HEDGEROW_EVERY_TEST is set, as `.ci/run` does, a test or file that was skipped, or that was
expected to fail, ends the run with exit code 1 unless a line of `allowed_skips.txt` names it and
the reason that it gives. Elsewhere a machine without Java or Chromium skips what needs them.
"""

import os
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

STRICT = "HEDGEROW_EVERY_TEST"
ALLOWED = Path(__file__).with_name("allowed_skips.txt")
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
        return [one for one in self.found if not any(_matches(one, line) for line in self.allowed)]

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
        if self.unexpected:
            terminalreporter.section(f"skipped, and not in {ALLOWED.name}", red=True)
            for one in self.unexpected:
                terminalreporter.line(f"{one.place}  {one.reason}")


def read_allowed(path):
    """The lines of a list: the id of a test or file, two spaces, the reason; * is anything."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            place, _, reason = line.partition("  ")
            assert reason.strip(), f"{path.name}: {line!r} says no reason"
            found.append(Skip(place, reason.strip()))
    return found


def pytest_configure(config):
    """Workers only report; the process that they report to counts."""
    if os.environ.get(STRICT) and not hasattr(config, "workerinput"):
        allowed = Path(os.environ.get(f"{STRICT}_BUT", ALLOWED))
        config.pluginmanager.register(Skips(read_allowed(allowed)), "skips")


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
