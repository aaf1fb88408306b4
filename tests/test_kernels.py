"""Compiled kernels are the ones that were asked for, however many processes compile them."""

import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import FunctionType

import numba
import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

import benchmarks
import hedgerow
import studies
from hedgerow import arrays, kernels
from hedgerow.kernels import kernel_digest

KERNEL = """
from hedgerow.kernels import kernel

@kernel
def total(x):
    found = x[0]
    for i in range(1, len(x)):
        found += x[i]
    return found
"""
SLOWLY = """
import sys, time
import numpy as np
from numba.core.caching import IndexDataCacheFile

def late(save, seconds):
    def saved(*given):
        time.sleep(seconds)
        save(*given)
    return saved

IndexDataCacheFile._save_index = late(IndexDataCacheFile._save_index, float(sys.argv[2]))
IndexDataCacheFile._save_data = late(IndexDataCacheFile._save_data, float(sys.argv[3]))
from summed import total
print(total(np.array([1, 2, 3], dtype=sys.argv[1])))
print(sum(total.stats.cache_misses.values()), file=sys.stderr)
"""


@pytest.fixture
def begun(tmp_path):
    """Begins a process that compiles a sum for a type; index and code are saved after seconds."""
    (tmp_path / "summed.py").write_text(KERNEL)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path)}

    def begin(*arguments):
        return subprocess.Popen(
            [sys.executable, "-c", SLOWLY, *arguments], cwd=tmp_path, env=environment,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    return begin


def test_two_processes_that_need_a_kernel_at_once_compile_it_once(begun):
    at_once = [begun("int64", "1", "1") for _ in range(2)]
    said = [process.communicate(timeout=600) for process in at_once]
    assert [out for out, _ in said] == ["6\n", "6\n"]
    assert sorted(misses for _, misses in said) == ["0\n", "1\n"]


def test_two_processes_that_compile_at_once_do_not_mix_their_kernels_up(begun):
    """Without the lock the last sum of floats is of the integers' code."""
    at_once = [begun("int64", "1", "2"), begun("float64", "2", "0")]
    assert [process.communicate(timeout=600)[0] for process in at_once] == ["6\n", "6.0\n"]
    for kind, sum_ in (("float64", "6.0\n"), ("int64", "6\n")):
        assert begun(kind, "0", "0").communicate(timeout=600)[0] == sum_


COUNTED = """
from hedgerow.outer import twice
print(twice(6), sum(twice.stats.cache_misses.values()))
"""


def test_a_kernel_is_compiled_again_when_what_it_holds_has_changed_and_not_otherwise(tmp_path):
    """Numba by itself looks at the kernel's own file alone, and would go on with the old code."""
    package = tmp_path / "hedgerow"
    package.mkdir()
    for module in (kernels, arrays):
        shutil.copy(module.__file__, package)
    (package / "__init__.py").touch()
    start = "from hedgerow.kernels import kernel\n"
    (package / "outer.py").write_text(
        f"{start}from hedgerow.inner import (\n    half,\n)\n\n"
        "@kernel\ndef twice(x):\n    return 4 * half(x)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path)}
    for divisor, term, beside, printed in (
        (2, "", "", "12.0 1"),
        (20, "", "", "1.2 1"),  # a constant of another module
        (20, " + 1", "", "5.2 1"),  # a kernel of another module that is called
        # what no kernel names, and the same value in other words
        ("(20, 20)[0]", " + 1", "ANOTHER = 3\n\n\ndef unnamed():\n    return 1\n", "5.2 0"),
    ):
        (package / "numbers.py").write_text(f"DIVISOR = {divisor}\n{beside}")
        (package / "inner.py").write_text(
            f"{start}from hedgerow.numbers import DIVISOR\n\n"
            f"@kernel\ndef half(x):\n    return x / DIVISOR{term}\n\n{beside}"
        )
        done = subprocess.run(
            [sys.executable, "-c", COUNTED],
            cwd=tmp_path, env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout.strip() == printed


LIMIT, TABLE, PAIR = 2, np.array([1.0, 2.0]), (1, 2.0)


def named_values(shift=0, limit=LIMIT, table=TABLE, pair=PAIR):
    """The digest of a kernel that names a number, an array, a tuple and what its closure holds."""
    names = {"LIMIT": limit, "TABLE": table, "PAIR": pair, "np": np, "__builtins__": __builtins__}

    def template(x):
        total = sum([LIMIT * t for t in TABLE])
        return total + PAIR[0] + shift + np.sqrt(x)

    function = FunctionType(template.__code__, names, "template", None, template.__closure__)
    function.__module__ = __name__
    return kernel_digest(numba.njit(function))


@pytest.mark.parametrize(
    "other",
    [
        {"shift": 1},
        {"limit": 3},
        {"limit": 2.0},
        {"table": np.array([1.0, 3.0])},
        {"table": np.array([1, 2])},
        {"pair": (1, 3.0)},
        {"pair": (1, 2)},
    ],
    ids=["closure", "number", "type", "array", "dtype", "tuple", "type in a tuple"],
)
def test_a_digest_tells_every_value_that_a_kernel_names(other):
    assert named_values() == named_values(table=TABLE.copy(), pair=(1, 2.0))
    assert named_values(**other) != named_values()


@pytest.mark.parametrize(
    "value",
    [[1, 2], {"a": 1}, named_values, pytest, kernels],
    ids=["list", "dict", "function", "module", "own"],
)
def test_what_has_no_digest_is_no_name_for_a_kernel(value):
    with pytest.raises(TypeError, match="of which no digest can be made"):
        named_values(limit=value)


def test_every_kernel_has_a_digest_and_no_two_the_same():
    found = {}
    for package in (hedgerow, studies, benchmarks):
        root = Path(package.__path__[0])
        for file in sorted(root.rglob("*.py")):
            if "kernel\ndef " in file.read_text(encoding="utf-8"):
                name = ".".join((package.__name__, *file.relative_to(root).with_suffix("").parts))
                for value in vars(import_module(name)).values():
                    if isinstance(value, Dispatcher) and value.py_func.__module__ == name:
                        found[value] = kernel_digest(value)
    places = [value.py_func.__module__.split(".")[0] for value in found]
    assert places.count("hedgerow") > 150
    assert "studies" in places
    assert len(set(found.values())) == len(found)
