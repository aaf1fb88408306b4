"""Compiled kernels are the ones that were asked for, however many processes compile them."""

import os
import shutil
import subprocess
import sys

from hedgerow import arrays, kernels

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
"""


def test_two_processes_that_compile_at_once_do_not_mix_their_kernels_up(tmp_path):
    """Without the lock the last sum of floats is of the integers' code."""
    (tmp_path / "summed.py").write_text(KERNEL)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path)}

    def begun(*arguments):
        return subprocess.Popen(
            [sys.executable, "-c", SLOWLY, *arguments],
            cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

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
    (package / "inner.py").write_text(
        f"{start}from hedgerow.numbers import DIVISOR\n\n"
        "@kernel\ndef half(x):\n    return x / DIVISOR\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path)}
    for divisor, printed in ((2, "12.0 1"), (20, "1.2 1"), (20, "1.2 0")):
        (package / "numbers.py").write_text(f"DIVISOR = {divisor}\n")
        (package / "another.py").write_text(f"from hedgerow.outer import twice  # {printed}\n")
        done = subprocess.run(
            [sys.executable, "-c", COUNTED],
            cwd=tmp_path, env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout.strip() == printed
