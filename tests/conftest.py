"""What holds for every test: a run repeats exactly, in any order and on any machine.

Releases draw their keys from the operating system, so what noise does to a small table would
differ from run to run. Here each test and each fixture gets keys of its own name instead, a new one
each time it asks; `keys_of_the_system` gives a test the real ones. Hypothesis tries the same inputs
in every run, unless HEDGEROW_FUZZ asks for new ones (see `tests/hostile/test_fuzz.py`).
"""

import hashlib
import os
import sys
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

from hedgerow import cli
from hedgerow.noise import bits
from hedgerow.release.directory import keys
from tests import skips

# No deadline: machines differ and kernels compile on first use; benchmarks tell the time.
settings.register_profile(
    "hedgerow",
    deadline=None,
    derandomize="HEDGEROW_FUZZ" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("hedgerow")
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

SYSTEM = KnownSystem()
MODULES_WITH_KEYS = (bits, keys)
for module in MODULES_WITH_KEYS:
    setattr(module, "os", SYSTEM)  # noqa: B010 - mypy knows what `os` is


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    with SYSTEM.asked_by(item.nodeid):
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
    """Run a command in this process: exit code, standard output, standard error."""

    def command(*arguments):
        code = cli.run([str(a) for a in arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return command


@pytest.fixture
def run_on_terminal(run, monkeypatch):
    """Run a command as if a person saw its standard error."""

    def command(*arguments):
        with monkeypatch.context() as here:
            here.setattr(sys.stderr, "isatty", lambda: True)
            return run(*arguments)

    return command
