"""What holds for every test: a run repeats exactly, in any order and on any machine.

Releases draw their keys from the operating system, so what noise does to a small table would
differ from run to run. Here each test and each fixture gets keys of its own name instead, a new one
each time it asks; `keys_of_the_system` gives a test the real ones. Hypothesis tries the same inputs
in every run, unless HEDGEROW_FUZZ asks for new ones (see `tests/hostile/test_fuzz.py`).

`make quick` runs what is not slow; the rest has the marker `slow` by its place (`SLOW`) or its own.

Of a sweep, `make test` runs some cases, always the same, and `make hostile` the others: of cases
that differ in their seed alone one in `SEEDS`, of a test with the marker `sweep` one in its number,
and of one that attacks, kills or damages what it tries, by its place (`HOSTILE`), one in `ATTACKS`.
"""

import gc
import hashlib
import os
import re
import sys
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from rich.cells import cell_len

from hedgerow import cli
from hedgerow.columns import WIDTH
from hedgerow.noise import bits
from hedgerow.plan.page import points
from hedgerow.privacy.budget import EpsilonDelta, Rho
from hedgerow.release.directory import keys
from tests import skips
from tests.browser import chromium

# No deadline: machines differ and kernels compile on first use; benchmarks tell the time.
settings.register_profile(
    "hedgerow",
    deadline=None,
    derandomize="HEDGEROW_FUZZ" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("hedgerow")
gc.disable()  # until all tests are collected: none of them is garbage
# Nor numbers found in the modules that happen to be imported so far: the order of tests decides.
setattr(providers, "_get_local_constants", Constants)  # noqa: B010 - a private name


class KnownSystem:
    """`os` with random bytes that follow from who asks for them and how often they have before.

    It does not wait for the disk either: no test outlives its machine.
    """

    def __init__(self):
        self.who, self.asked = "nobody", 0

    def __getattr__(self, name):
        return getattr(os, name)

    def urandom(self, size):
        self.asked += 1
        return hashlib.shake_256(f"{self.who} asks, {self.asked}".encode()).digest(size)

    def fsync(self, handle):
        pass

    @contextmanager
    def asked_by(self, who):
        before = self.who, self.asked
        self.who, self.asked = who, 0
        try:
            yield
        finally:
            self.who, self.asked = before


pytest_configure = skips.pytest_configure

HERE = Path(__file__).parent
SLOW = (
    "audit",
    "benchmarks",
    "cli/test_commands.py",
    "cli/test_contradicted.py",
    "cli/test_distribution.py",
    "cli/test_newcomer.py",
    "cli/test_plan.py",
    "cli/test_promise.py",
    "cli/test_simulate.py",
    "estimate/test_covering.py",
    "estimate/test_variances.py",
    "evaluate/test_forecast.py",
    "evaluate/test_funds_intervals.py",
    "evaluate/test_simulate.py",
    "examples",
    "hostile",
    "noise/test_cell_error.py",
    "noise/test_inversion.py",
    "noise/test_laws.py",
    "oracle",
    "plan/test_branching.py",
    "plan/test_released.py",
    "privacy/test_calibrate.py",
    "privacy/test_compose.py",
    "privacy/test_contour.py",
    "privacy/test_lattice.py",
    "privacy/test_ledger_processes.py",
    "privacy/test_profile.py",
    "privacy/test_zcdp.py",
    "release/test_artefacts.py",
    "release/test_contract.py",
    "release/test_contradicted.py",
    "release/test_cuboid.py",
    "release/test_distribution.py",
    "release/test_estimate.py",
    "release/test_every_call.py",
    "release/test_lost_charge.py",
    "release/test_page.py",
    "release/test_page_cube.py",
    "release/test_page_cube_in_browser.py",
    "release/test_page_distribution.py",
    "release/test_page_prices.py",
    "release/test_page_tables.py",
    "release/test_report.py",
    "release/test_report_in_browser.py",
    "release/test_running_sums.py",
    "release/test_shapes.py",
    "release/test_windows.py",
    "spark",
    "tables/test_bounding.py",
    "tables/test_ordered.py",
    "tables/test_stable.py",
    "test_command.py",
    "test_docs.py",
    "test_examples.py",
    "test_kernels.py",
    "test_skips.py",
)
"""Other processes, a browser, Spark, kills, sweeps of hostile input, pages, large statistics.

And whatever else takes many seconds; a folder or a file.
"""


@cache
def is_in(path, places):
    """Whether a file is one of some places, or in a folder of them."""
    if not path.is_relative_to(HERE):
        return False
    place = path.relative_to(HERE).as_posix()
    return place in places or place.startswith(tuple(f"{part}/" for part in places))


HOSTILE = (
    "audit",
    "hostile",
    "release/test_every_call.py",
    "spark/test_spark_killed.py",
)
"""Attacks, kills, damage, and what an audit finds."""

REST = "HEDGEROW_REST_OF_SWEEPS"
"""Set where the cases of sweeps run that are left out where it is not; "all" where all run."""
SEEDS, ATTACKS = 4, 6
"""One in so many seeds of random input, and one in so many attacks of a kind."""


def sweep_of(item):
    """The sweep that a case belongs to, and one in how many of its cases runs; or nothing."""
    marker = item.get_closest_marker("sweep")
    if marker is not None:
        return item.nodeid.partition("[")[0], marker.args[0]
    if is_in(item.path, HOSTILE):  # of tests of one case each, one in so many of a file
        function, has_cases, _ = item.nodeid.partition("[")
        return function if has_cases else item.path, ATTACKS
    given = dict(item.callspec.params) if hasattr(item, "callspec") else {}
    if type(given.pop("seed", None)) is not int:
        return None
    return (item.nodeid.partition("[")[0], repr(sorted(given.items()))), SEEDS


def cases_left_out(items):
    """The cases of sweeps that `make test` leaves out: all but the first ones by their hashes."""
    sweeps = {}
    for item in items:
        found = sweep_of(item)
        if found is not None:
            sweeps.setdefault(found, []).append(item)
    left_out = set()
    for (_, one_in), cases in sweeps.items():
        cases.sort(key=lambda item: hashlib.sha256(name_of(item).encode()).digest())
        left_out.update(cases[-(-len(cases) // one_in) :])
    return left_out


def pytest_itemcollected(item):
    """Let one worker run a file as a whole: it makes what its tests share, kernels above all."""
    if item.get_closest_marker("xdist_group") is None:
        item.add_marker(pytest.mark.xdist_group(item.path.stem))


def pytest_collection_modifyitems(config, items):
    """Leave cases of sweeps out. Mark what is slow and run it first: workers then end together."""
    if os.environ.get(REST) != "all":
        is_rest, left_out = REST in os.environ, cases_left_out(items)
        config.hook.pytest_deselected(items=[x for x in items if (x in left_out) != is_rest])
        items[:] = [x for x in items if (x in left_out) == is_rest]
    for item in items:
        if is_in(item.path, SLOW):
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
    gc.freeze()  # nor will any be, and looking through them takes long
    gc.enable()


def pytest_make_parametrize_id(val):
    """Name what is very long by its beginning: workers send each other the names of all tests."""
    if isinstance(val, str | bytes) and len(val) > 1000:
        return f"{val[:50]!a} and {len(val) - 50} more"
    return None


def pytest_unconfigure():
    gc.unfreeze()  # or modules warn of what they leave


def name_of(item):
    """The id of a test, without the group that pytest-xdist adds where there are workers."""
    name, _, group = item.nodeid.rpartition("@")
    return name if name and "]" not in group else item.nodeid


SYSTEM = KnownSystem()
MODULES_WITH_KEYS = (bits, keys)
for module in MODULES_WITH_KEYS:
    setattr(module, "os", SYSTEM)  # noqa: B010 - mypy knows what `os` is


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    with SYSTEM.asked_by(name_of(item)):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef):
    """A fixture of a module is made for whichever test comes first."""
    with SYSTEM.asked_by(f"the fixture {fixturedef.argname}"):
        return (yield)


@pytest.fixture
def keys_of_the_system(monkeypatch):
    """Keys are drawn as users draw them."""
    for module in MODULES_WITH_KEYS:
        monkeypatch.setattr(module, "os", os)


@pytest.fixture
def run(capsys):
    """Run a command in this process: exit code, standard output, standard error.

    Whatever the plan, its tables fit a terminal.
    """

    def command(*arguments):
        code = cli.run([str(a) for a in arguments])
        said = capsys.readouterr()
        if not {"--wide", "--json"} & set(arguments):
            too_wide = [x for x in rows_of_tables(said.out) if cell_len(x) > WIDTH]
            assert too_wide == [], "every table fits a terminal"
        return code, said.out, said.err

    return command


def rows_of_tables(shown):
    """The lines with columns: no sentence has two spaces together."""
    lines = [line.removeprefix("ok   ") for line in shown.splitlines()]  # of checks
    return [line for line in lines if re.search(r"\S {2,}\S", line)]


@pytest.fixture
def run_on_terminal(run, monkeypatch):
    """Run a command as if a person saw its standard error."""

    def command(*arguments):
        with monkeypatch.context() as here:
            here.setattr(sys.stderr, "isatty", lambda: True)
            return run(*arguments)

    return command


@pytest.fixture
def few_budgets(monkeypatch):
    """Planning pages have few budgets, which are soon computed."""
    monkeypatch.setattr(points, "MANTISSAS", ("1",))
    monkeypatch.setattr(points, "FEW_MANTISSAS", ("1",))
    for kind, usual in ((EpsilonDelta, ("0.1", "1")), (Rho, ("0.01", "0.5"))):
        monkeypatch.setitem(points.USUAL, kind, usual)  # narrow noise takes long


@pytest.fixture
def own_division_alone(monkeypatch):
    """Planning pages offer the plan's own division of the budget, and look for no others."""
    monkeypatch.setattr(points, "_others", lambda: ())


@pytest.fixture(scope="module")
def browser():
    """Chromium, for one module: while it is open, its driver's loop is the one of the process."""
    with chromium() as opened:
        yield opened
