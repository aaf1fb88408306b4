"""The one door to Numba: how a kernel is compiled, and how kernels run in parallel over families.

A kernel is a plain loop over the families ``first..last`` that holds no Python object, so it runs
without the interpreter's lock; `over_families` cuts the families into as many runs as there are
cores, of about equal numbers of cells, and runs them on threads. No kernel has a parallel loop of
its own.
"""

import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dis import get_instructions
from functools import cache
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, ParamSpec, TypeVar, cast

import numba
import numpy as np
from filelock import FileLock
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

from hedgerow.arrays import Int64

P = ParamSpec("P")
R = TypeVar("R")

CELLS_WORTH_A_THREAD = 1 << 15
PATIENCE = 300
"""Seconds to wait for another process that compiles the same kernel."""


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
    load = files.load

    def load_if_current(key: object) -> object:
        files._source_stamp = kernel_digest(compiled)  # noqa: SLF001
        return load(key)

    files.load = load_if_current
    compiled.compile = _in_turn(compiled.compile, files)
    return cast("Callable[P, R]", compiled)


VALUES = bool | int | float | complex | str | bytes | np.generic | BuiltinFunctionType | None
"""What a kernel may name as it is: `repr` says all of it, in every process alike."""


OTHERS = sys.stdlib_module_names | {"numpy"}
"""Modules that a kernel may name: Numba has its own code for what they hold."""


def kernel_digest(compiled: Any) -> str:
    """Return a digest of all that a kernel is compiled from, read when it is first called.

    That is its own code and options, the values that it names, and the same of every kernel that it
    calls, wherever these are defined. Numba asks only whether the kernel's own file has the same
    age and size: it would keep the old code of an unchanged file, and compile again after every
    checkout.

    Raises:
        TypeError: the kernel names something of which no digest can be made.
    """
    pending = [compiled]
    texts = {}
    while pending:
        one = pending.pop()
        if one not in texts:
            texts[one], called = _read(one)
            pending += called
    return sha256(repr(sorted(texts.values())).encode()).hexdigest()


@cache
def _read(compiled: Any) -> tuple[str, list[object]]:
    """Return what stands for a kernel by itself in a digest, and the kernels that it calls."""
    function = compiled.py_func
    options = sorted(compiled.targetoptions.items())
    named = _named(function)
    texts = {name: _text(value) for name, value in sorted(named.items())}
    own = _text(compiled), _text(function.__code__), options, function.__defaults__, texts
    return repr(own), [value for value in named.values() if isinstance(value, Dispatcher)]


def _named(function: FunctionType) -> dict[str, object]:
    """Return the values of all names that a function takes from outside, but for built-in ones."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    values = {name: cell.cell_contents for name, cell in cells}
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        codes += [const for const in code.co_consts if isinstance(const, CodeType)]
        names = {i.argval for i in get_instructions(code) if i.opname == "LOAD_GLOBAL"}
        values |= {name: function.__globals__[name] for name in names & function.__globals__.keys()}
    return values


def _text(value: object) -> str:
    """Return what stands for a value in a digest: the same in every process."""
    if isinstance(value, Dispatcher):
        return f"{value.py_func.__module__}.{value.py_func.__qualname__}"
    if isinstance(value, tuple):
        return repr(tuple(map(_text, value)))
    if isinstance(value, CodeType):
        return _text((value.co_code, value.co_names, *value.co_consts))
    if isinstance(value, np.ndarray):
        return _text((value.dtype.str, value.shape, value.tobytes()))
    if isinstance(value, ModuleType) and value.__name__.split(".")[0] in OTHERS:
        return value.__name__
    if isinstance(value, VALUES):
        return f"{type(value).__name__} {value!r}"
    raise TypeError(
        f"a kernel names {value!r}, of which no digest can be made: let it name numbers, arrays, "
        f"tuples of them, modules of Python, numpy and other kernels alone"
    )


def _in_turn(compile_for: Callable[P, R], files: Any) -> Callable[P, R]:
    """Return what compiles a kernel for some types, or loads it, in one process at a time.

    Of several processes that need it at once one compiles it, and the others load that. And two
    that saved it for different types at once would both take the next free file, and the index of
    one then name the code of the other: it would read integers as floats. So whoever does not get
    the lock (of a read-only folder, or held by a process that was stopped) saves nothing.

    Numba's own lock comes first, as a kernel is compiled within another one: so no thread waits for
    the file of one that waits for this thread.
    """
    lock = Path(f"{files._index_path}.lock")  # noqa: SLF001

    def run(*given: P.args, **named: P.kwargs) -> R:
        with global_compiler_lock:
            try:
                lock.parent.mkdir(parents=True, exist_ok=True)
                held = FileLock(lock).acquire(timeout=PATIENCE)
            except OSError:  # a timeout is one
                save, files.save = files.save, lambda *_: None
                try:
                    return compile_for(*given, **named)
                finally:
                    files.save = save
            with held:
                return compile_for(*given, **named)

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


@inner_kernel
def run_ends(start: Int64, number: int) -> tuple[int, int]:
    """Return where a run begins, of those that begin at places one behind the other, and ends."""
    return start[number], start[number + 1]


@inner_kernel
def run_range(start: Int64, number: int) -> range:
    """Return the places of a run."""
    return range(start[number], start[number + 1])


@inner_kernel
def run_size(start: Int64, number: int) -> int:
    """Return how many places a run has."""
    size: int = start[number + 1] - start[number]
    return size
