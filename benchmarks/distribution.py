"""The distribution of a column under pure differential privacy: OpenDP's b-ary tree beside ours."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

import hedgerow as hr
from benchmarks.clock import Clock, Timed, fastest, near
from benchmarks.machine import needed
from benchmarks.page import Benchmark, Ratio, clock
from hedgerow.arrays import Float64
from hedgerow.noise.bits import ReleaseKey
from hedgerow.release.distribution.release import column_counts, distribution_in_memory
from studies.page import markdown

EPSILON = Fraction(1)
STEP = Fraction(1, 1000)
"""By how much ε differs from question to question."""
RECORDS = 20_000
LARGEST = 200_000
BINS = (100, 1_000, 10_000, 100_000)
RUNS = 5

TEXT = """{records:,} log-normal records in K bins, one record replaced, ε = {epsilon}. OpenDP:
`make_b_ary_tree` with `choose_branching_factor`, discrete Laplace noise priced by its own map,
`make_consistent_b_ary_tree`, running sums. Hedgerow: a tree with optimised factors and shares,
discrete Laplace noise, least squares, non-negative integers. A release goes from the bins' counts
in memory to cumulative counts; the plan is made beforehand, from public facts alone, and its time
is listed separately. Each run has a plan with a new ε, larger by a thousandth, so that its time
includes the preparation of the noise. Below ten thousand bins ours takes longer: a release has a
fixed cost of about ten milliseconds, for keys, jobs, data frames and the certified tables of its
noise.

Root mean squared error of the cumulative counts over {runs} releases, in records:

{errors}"""


@dataclass(frozen=True, slots=True)
class Found:
    """What was found for one number of bins; ours and theirs.

    Attributes:
        bins: K.
        plan, release: seconds.
        error: root mean squared, records.
    """

    bins: int
    plan: list[float]
    release: list[Timed]
    error: list[float]


def with_bins(tree: Any, values: Float64, bins: int) -> Found:
    """Both for one number of bins."""
    ranges = hr.Ranges.equal_width("value", 0, LARGEST, bins)
    leaves = np.bincount(ranges.bin(values), minlength=bins).astype(np.int64)
    truth = np.cumsum(leaves)
    hr.plan_distribution(hr.Ranges.equal_width("value", 0, 1, 2), budget=hr.Epsilon(EPSILON))

    def planned(epsilon: Fraction) -> hr.Plan:
        return hr.plan_distribution(ranges, budget=hr.Epsilon(epsilon))

    asked = near(EPSILON, RUNS + 1, STEP)
    plans = {e: planned(e) for e in asked}
    peers = {e: tree(bins, e) for e in asked}
    counts = column_counts(plans[EPSILON], ranges, values)

    def ours(epsilon: Fraction) -> Float64:
        made = distribution_in_memory(counts, plans[epsilon], bits=ReleaseKey.fresh())
        return made.cumulative.released[1:].astype(np.float64)

    def theirs(epsilon: Fraction) -> Float64:
        return np.asarray(peers[epsilon][1](leaves))

    tasks = {"ours": ours, "theirs": theirs}
    found = fastest(tasks, asked)
    errors = [
        float(np.sqrt(np.mean([np.mean((run(EPSILON) - truth) ** 2) for _ in range(RUNS)])))
        for run in tasks.values()
    ]
    print(f"{bins} bins: {clock(found['ours'].wall)}, {clock(found['theirs'].wall)}", flush=True)
    own = Clock()
    new = EPSILON - STEP
    makers = {"ours": planned, "theirs": lambda e: tree(bins, e)}
    plan = [own.timed(name, make, new)[0].wall for name, make in makers.items()]
    return Found(bins, plan, [*found.values()], errors)


def measured() -> Benchmark:
    """All numbers of bins."""
    tree = needed("studies.opendp_tree", "opendp").opendp_tree
    rng = np.random.default_rng(20240521)
    values = np.minimum(rng.lognormal(10.3, 0.7, RECORDS), LARGEST - 1.0)
    found = [with_bins(tree, values, bins) for bins in BINS]
    rows = [
        (one.bins, *one.error, one.error[1] / one.error[0], *map(clock, one.plan)) for one in found
    ]
    heads = "K | Hedgerow | OpenDP | OpenDP / ours | our plan | OpenDP's plan"
    errors = markdown(heads, rows, ", | ,.1f | ,.1f | .1f")
    text = TEXT.format(records=RECORDS, epsilon=EPSILON, runs=RUNS, errors=errors)
    ratios = [
        Ratio(f"release of {one.bins:,} bins", "OpenDP", *(time.wall for time in one.release))
        for one in found
    ]
    return Benchmark("Distributions", text, ratios, figures=found)
