"""Where compiled kernels are kept while several workers run the tests.

Numba's cache mixes kernels up where two processes save different signatures of one at the same
moment: each takes the first free file, so the index of the one names the code of the other, and
whoever loads it next reads integers as floating-point numbers. Hence each worker, with all that it
starts, has a cache of its own. It is called after the sources: Numba does not notice a change of
what a kernel calls.
"""

import hashlib
import os
import shutil
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
EVERY = ROOT / ".pytest_cache" / "kernels"
SECONDS_KEPT = 86_400


def digest() -> str:
    """Of all modules of the package."""
    whole = hashlib.sha256()
    for path in sorted((ROOT / "src").rglob("*.py")):
        whole.update(path.read_bytes())
    return whole.hexdigest()[:16]


def forget() -> None:
    """Throw away the kernels of sources that nobody has tested for a day."""
    for folder in EVERY.glob("*"):
        if time.time() - folder.stat().st_mtime > SECONDS_KEPT:
            shutil.rmtree(folder, ignore_errors=True)


WORKER = os.environ.get("PYTEST_XDIST_WORKER")
if WORKER is not None:
    OWN = EVERY / digest() / WORKER
    OWN.mkdir(parents=True, exist_ok=True)
    os.utime(OWN.parent)
    os.environ["NUMBA_CACHE_DIR"] = str(OWN)
