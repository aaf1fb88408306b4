"""The one door to Numba: how a kernel is compiled, and how kernels run in parallel over families.

A kernel is a plain loop over the families ``first..last`` that holds no Python object, so it runs
without the interpreter's lock; `over_families` cuts the families into as many runs as there are
cores, of about equal numbers of cells, and runs them on threads. No kernel has a parallel loop of
its own.
"""

import os
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba
import numpy as np
from filelock import FileLock

from hedgerow.arrays import Int64

P = ParamSpec("P")
R = TypeVar("R")

CELLS_WORTH_A_THREAD = 1 << 15


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Return the compiled function: no Python inside, no interpreter lock, cached on disk."""
    return _compiled(function, {})


def inner_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Return the compiled function of a kernel that makes no array, and returns none.

    It is called for every family, and goes without Numba's counts of references to the arrays that
    it is given: they would take longer than the work on a few cells.
    """
    return _compiled(function, {"_nrt": False})


def _compiled(function: Callable[P, R], own: dict[str, Any]) -> Callable[P, R]:
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", **own}
    try:
        compiled: Any = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # nowhere to keep it: a read-only installation without a home
        return cast("Callable[P, R]", numba.njit(**options)(function))
    files = compiled._cache._cache_file  # noqa: SLF001 - Numba offers no other way in
    files._source_stamp = source_digest(Path(function.__code__.co_filename))  # noqa: SLF001
    files.save = _in_turn(files.save, Path(f"{files._index_path}.lock"))  # noqa: SLF001
    files.load = _in_turn(files.load, Path(f"{files._index_path}.lock"))  # noqa: SLF001
    return cast("Callable[P, R]", compiled)


IMPORT = re.compile(
    r"^ *(?:from|import) +(hedgerow[\w.]*)(?: +import +(\([^)]*\)|[^\n]*))?", re.MULTILINE
)


def source_digest(file: Path) -> str:
    """Return a digest of a module's text and of all modules of Hedgerow that it imports, in turn.

    A compiled kernel holds the kernels that it calls and the constants that it names, wherever they
    are defined, but Numba asks only whether the kernel's own file has the same age and size: it
    would keep the old code of an unchanged file, and compile again after every checkout.
    """
    pending, seen = [file], set[Path]()
    while pending:
        module = pending.pop()
        if module not in seen:
            seen.add(module)
            pending += _read_module(module)[1]
    texts = [(path.name, _read_module(path)[0]) for path in sorted(seen)]
    return sha256(repr(texts).encode()).hexdigest()


@cache
def _read_module(file: Path) -> tuple[str, tuple[Path, ...]]:
    """Return the digest of a module's text, and the files of Hedgerow that it imports from."""
    text = file.read_bytes()
    root, imported = Path(__file__).parent, list[Path]()
    for package, names in IMPORT.findall(text.decode(errors="replace")):
        place = root.joinpath(*package.split(".")[1:])
        below = [place / name for name in re.findall(r"\w+", names)]
        for path in (place, *below):
            imported += [f for f in (path.with_suffix(".py"), path / "__init__.py") if f.is_file()]
    return sha256(text).hexdigest(), tuple(f for f in imported if f != root / "__init__.py")


def _in_turn(task: Callable[P, R], lock: Path) -> Callable[P, R]:
    """Return the task, run by one process at a time.

    Two processes that save kernels for different types at once both take the next free file, and
    the index of one then names the code of the other: it would read integers as floats.
    """

    def run(*given: P.args, **named: P.kwargs) -> R:
        try:
            held: AbstractContextManager[object] = FileLock(lock).acquire()
        except OSError:  # not there yet, or read-only: nothing will be saved
            held = nullcontext()
        with held:
            return task(*given, **named)

    return run


def core_count() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(core_count(), thread_name_prefix="hedgerow")


def over_families(task: Callable[[int, int], None], family_start: Int64) -> None:
    """Run ``task(first, last)`` over runs of families that cover all of them once.

    Args:
        task: calls a kernel for the families ``first <= f < last``; runs on several threads.
        family_start: int64 (families + 1): where each family's cells begin, and the end.
    """
    families = len(family_start) - 1
    cells = int(family_start[-1] - family_start[0]) if families > 0 else 0
    runs = min(core_count(), families, 1 + cells // CELLS_WORTH_A_THREAD)
    if runs <= 1:
        task(0, max(families, 0))
        return
    targets = family_start[0] + np.arange(1, runs) * (cells // runs)
    cuts = [0, *np.searchsorted(family_start, targets).tolist(), families]
    waiting = [_threads().submit(task, a, b) for a, b in pairwise(cuts) if b > a]
    for future in waiting:
        future.result()
