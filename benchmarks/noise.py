"""Draws a second on one core: Hedgerow's exact noise beside OpenDP's, in the same run.

Both samplers are exact and take their bits from a cryptographic generator; keys, bits and arrays
are inside the timed part of either.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.clock import fastest, near
from benchmarks.machine import cores, needed
from benchmarks.page import Benchmark, Ratio
from benchmarks.picture import OTHER, OURS, panels, save
from hedgerow.noise.bits import ReleaseKey
from hedgerow.noise.mechanisms import DiscreteGaussian, DiscreteLaplace, Mechanism
from studies.page import markdown

DRAWS = 10_000_000
PEER_DRAWS = 20_000
QUESTIONS = 6
STEP = Fraction(1, 1000)
"""By how much parameters differ, relatively, from question to question."""
MILLION = 1e6
MECHANISMS: list[Mechanism] = [
    *map(DiscreteGaussian, ["1", "5", "456.62", "10000", "1000000", "1000000000000"]),
    *map(DiscreteLaplace, ["1", "20", "1000000"]),
]

TEXT = """One core. Both sample the distribution exactly from cryptographic random bits; ours are
generated at {bits:.1f} GB a second. Times are for a million draws; OpenDP's from vectors of
{peer_draws:,} zeros, ours from vectors of {draws:,}. The Laplace noise is OpenDP's for integers,
with the same parameter. Each run has a parameter that was not asked before, a thousandth further
on, so that whatever a sampler prepares for a law is within its time.

{rates}"""


def peer_measurement(dp: Any, mechanism: Mechanism) -> Callable[[list[int]], object]:
    """OpenDP's exact sampler of the same law, on a vector of integers."""
    make = dp.m.make_laplace
    metric = dp.l1_distance(T="i64")
    scale = float(mechanism.parameter)
    if isinstance(mechanism, DiscreteGaussian):
        make, metric, scale = dp.m.make_gaussian, dp.l2_distance(T="f64"), scale**0.5
    made: Callable[[list[int]], object] = make(
        dp.vector_domain(dp.atom_domain(T="i64")), metric, scale=scale
    )
    return made


def a_million(dp: Any, mechanism: Mechanism) -> Ratio:
    """Seconds for a million draws on either side."""
    zeros = [0] * PEER_DRAWS
    tasks = {
        "ours": lambda law: law.sample(DRAWS),
        "theirs": lambda law: peer_measurement(dp, law)(zeros),
    }
    found = fastest(tasks, [*map(type(mechanism), near(mechanism.parameter, QUESTIONS, STEP))])
    ours = found["ours"].wall * MILLION / DRAWS
    return Ratio(told(mechanism), "OpenDP", ours, found["theirs"].wall * MILLION / PEER_DRAWS)


def told(mechanism: Mechanism) -> str:
    """The law in words."""
    size = float(mechanism.parameter)
    shown = f"{size:g}" if size < MILLION else f"1e{len(str(int(size))) - 1}"
    symbol = "σ²" if isinstance(mechanism, DiscreteGaussian) else "b"
    return f"{mechanism.name}, {symbol} = {shown}"


def measured() -> Benchmark:
    """All laws."""
    dp = needed("opendp.prelude", "opendp")
    dp.enable_features("contrib")
    with cores(1):
        stream = ReleaseKey.fresh().stream()
        words = 1 << 14
        tasks = {"bits": lambda start: stream.words(start, words)}
        drawn = fastest(tasks, range(0, 50 * words, words))["bits"].wall
        ratios = tuple(a_million(dp, mechanism) for mechanism in MECHANISMS)
    bits = 8 * words / drawn / 1e9
    rates = [[r.what, 1 / r.ours, 1 / r.theirs] for r in ratios]
    heads = "million draws a second | Hedgerow | OpenDP"
    text = TEXT.format(
        bits=bits, draws=DRAWS, peer_draws=PEER_DRAWS, rates=markdown(heads, rates, " | ,.0f | .2g")
    )
    figures = {"gigabytes_of_bits_a_second": bits}
    return Benchmark("Exact noise", text, ratios, (figure(ratios),), figures)


def figure(ratios: Sequence[Ratio]) -> str:
    """Million draws a second, logarithmic."""
    drawn, (axes,) = panels(size=(7.5, 3.4))
    places = np.arange(len(ratios))
    for shift, name, colour, side in (
        (-0.2, "Hedgerow", OURS, "ours"),
        (0.2, "OpenDP", OTHER, "theirs"),
    ):
        speeds = [1 / getattr(r, side) for r in ratios]
        axes.barh(places + shift, speeds, 0.4, color=colour, label=name)
    axes.set_yticks(places, [r.what for r in ratios], fontsize=8)
    axes.invert_yaxis()
    axes.set(xscale="log", xlabel="million draws a second, one core")
    axes.legend(loc="upper left", bbox_to_anchor=(0, 1.14), ncols=2)
    return save(drawn, "noise")
