"""Draws a second on one core: Hedgerow's exact noise beside OpenDP's, in the same run.

Run as ``taskset -c 0 python benchmarks/noise.py``. Both samplers are exact and take their bits from
a cryptographic generator; keys, bits and arrays are inside the timed part of either.
"""

import json
import platform
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import opendp.prelude as dp

from hedgerow.kernels import core_count
from hedgerow.noise.bits import ReleaseKey
from hedgerow.noise.mechanisms import DiscreteGaussian, DiscreteLaplace, Mechanism

DRAWS = 20_000_000
PEER_DRAWS = 20_000
REPEATS = 5
MECHANISMS: list[Mechanism] = [
    *map(DiscreteGaussian, ["1", "5", "456.62", "10000", "1000000", "1000000000000"]),
    *map(DiscreteLaplace, ["1", "20", "1000000"]),
]


def best_rate(task: Callable[[], object], draws: int) -> float:
    """The best of several rates: other work on the machine can only slow a run down."""
    seconds = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        task()
        seconds.append(time.perf_counter() - begin)
    return draws / min(seconds)


def peer_measurement(mechanism: Mechanism) -> dp.Measurement:
    """OpenDP's exact sampler of the same law, on a vector of integers."""
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    if isinstance(mechanism, DiscreteGaussian):
        scale = float(mechanism.sigma2) ** 0.5
        return dp.m.make_gaussian(domain, dp.l2_distance(T="f64"), scale=scale)
    return dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=float(mechanism.parameter))


def rates(mechanism: Mechanism) -> tuple[float, float]:
    """Draws a second, ours and OpenDP's."""
    peer, zeros = peer_measurement(mechanism), [0] * PEER_DRAWS
    mechanism.sample(1)
    ours = best_rate(lambda: mechanism.sample(DRAWS), DRAWS)
    theirs = best_rate(lambda: peer(zeros), PEER_DRAWS)
    return ours, theirs


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(": ")[1] for line in lines if line.startswith("model name")), "?")


def main() -> None:
    dp.enable_features("contrib")
    machine = f"{processor()}, {core_count()} core(s), {platform.system()}"
    print(f"{machine}; OpenDP {version('opendp')}")
    stream = ReleaseKey.fresh().stream()
    bits = best_rate(lambda: stream.words(0, 1 << 14), 8 << 14) / 1e9  # bytes
    print(f"random bits: {bits:.1f} GB/s")
    print(f"{'million draws a second':40} {'Hedgerow':>9} {'OpenDP':>8} {'ratio':>7}")
    results = []
    for mechanism in MECHANISMS:
        ours, theirs = rates(mechanism)
        results.append({"mechanism": repr(mechanism), "hedgerow": ours, "opendp": theirs})
        print(f"{mechanism!r:40} {ours / 1e6:9.1f} {theirs / 1e6:8.3f} {ours / theirs:7.0f}")
    summary = {"benchmark": "noise", "machine": machine, "gigabytes_of_bits": bits}
    print(json.dumps({**summary, "draws_a_second": results}))


if __name__ == "__main__":
    main()
