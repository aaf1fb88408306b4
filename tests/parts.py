"""What a test may need of the machine that `make setup` cannot bring; without it the test skips.

Each reason names the part, and `allowed_skips.txt` has each reason. A package of the lock is no
such part: tests import it, and fail without it.
"""

import ctypes
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Part:
    """A program, library or database, and where Debian has it."""

    name: str
    package: str
    there: bool

    @property
    def reason(self):
        return f"needs {self.name}, in Debian the package {self.package}"

    @property
    def needed(self):
        """The marker of tests that need it."""
        return pytest.mark.skipif(not self.there, reason=self.reason)

    def require(self):
        """Skip the test that asks, unless it is there."""
        if not self.there:
            pytest.skip(self.reason)


def first_command(*names):
    """The path of the first of some commands that is there."""
    return next(filter(None, map(shutil.which, names)), None)


def java_version():
    """The first number of Java's version; 0 where there is none."""
    if shutil.which("java") is None:
        return 0
    said = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', said)
    return int(found[1]) if found else 0


def loads(library):
    """Whether the system finds a library."""
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


SERVER_URL = os.environ.get("HEDGEROW_TEST_POSTGRES", "")
BROWSER = first_command("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""Without windows where there is such a one: it takes a third of the processor time, or less."""
DRIVERS_OF_SQLITE = sorted(Path("/usr/lib").glob("*/odbc/libsqlite3odbc.so"))
DRIVERS_OF_POSTGRESQL = sorted(Path("/usr/lib").glob("*/odbc/psqlodbcw.so"))

MAKE = Part("make", "make", shutil.which("make") is not None)
CHROMIUM = Part("Chromium", "chromium", BROWSER is not None)
LIGHT_JAVA = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""Java compiles little and collects on one thread: a test is over before more would pay."""
JAVA = Part("Java 17 or later", "openjdk-17-jre-headless", java_version() >= 17)
ODBC = Part("the library libodbc.so.2", "unixodbc", loads("libodbc.so.2"))
ODBC_OF_SQLITE = Part(
    "SQLite's driver for ODBC", "libsqliteodbc", ODBC.there and bool(DRIVERS_OF_SQLITE)
)
ODBC_OF_POSTGRESQL = Part(
    "PostgreSQL's driver for ODBC", "odbc-postgresql", ODBC.there and bool(DRIVERS_OF_POSTGRESQL)
)
STRACE = Part("strace", "strace", shutil.which("strace") is not None)
SERVER = Part(
    "a server whose URL is in HEDGEROW_TEST_POSTGRES", "postgresql (.ci/run starts one)",
    bool(SERVER_URL),
)  # fmt: skip
PROC = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="needs the folder /proc of Linux"
)


def require_tracing():
    """Skip the test that asks, unless system calls can be traced."""
    STRACE.require()
    if subprocess.run(["strace", "-o", os.devnull, "true"], check=False).returncode:
        pytest.skip("tracing is not permitted here")
