"""Every combination of levels of real trips: the authors' InfTDA package beside a cube.

Their package takes most of a minute on the larger table, so it runs three times there.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import hedgerow as hr
from benchmarks.clock import Clock, fastest
from benchmarks.inf_tda import EPSILONS, planned
from benchmarks.inf_tda_peer import EPSILON, Peer, counts_of, peer_release, series_of
from benchmarks.page import Benchmark, Ratio, clock
from hedgerow.plan.cuboids import Measure
from studies.cube import (
    CASES,
    CUBE,
    SURVIVORS,
    Case,
    Errors,
    Truth,
    errors_by_cuboid,
    figures,
)
from studies.page import DATA, markdown
from studies.releases import DELTA, trips_plan, within
from studies.tables import every_count, leaves_of, trips_between

RUNS = 10
PEER = "inf-tda 0.1"
PEER_RUNS = {"Italy, provinces": 10, "UK, districts": 3}
MEASURES: dict[str, Measure] = {CUBE: hr.All(), SURVIVORS: hr.Survivors()}

TEXT = """The same tables, ε = {epsilon} and δ = {delta} as in the study of [errors of a
cube](cube_errors.md), replacing one trip per person. {peer} is the authors' package on PyPI; it
releases one chain. The times are from counts in memory to counts in memory. RMSE over all cells of
every combination of levels, in trips, over {runs} releases of a cube and {peer_runs} of the peer.

{tables}"""


@dataclass(frozen=True, slots=True)
class Found:
    """What was found on one table.

    Attributes:
        case: the table.
        truth: its counts.
        errors: by method, with seconds.
    """

    case: Case
    truth: Truth
    errors: dict[str, Errors]


def plan_at(tree: hr.Tree, case: Case, measure: Measure, epsilon: Fraction) -> hr.Plan:
    """The plan of a cube."""
    return trips_plan(tree, within(epsilon), measure, hr.Shares(case.axis_shares()), hr.Cube())


def on_table(case: Case, release: Peer) -> Found:
    """Both on one table."""
    truth = Truth(trips_between(DATA / case.folder, case.levels))
    watch = Clock()
    tasks = {
        name: planned(truth.counts, partial(plan_at, truth.counts.tree, case, measure))
        for name, measure in MEASURES.items()
    }
    seconds = fastest(tasks, EPSILONS)
    errors = {name: Errors() for name in (PEER, *tasks)}
    for name, task in tasks.items():
        for epsilon in EPSILONS[:RUNS]:
            errors[name].add(truth, leaves_of(task(epsilon)), seconds[name].wall)
    task = partial(release, series_of(truth.counts))
    for epsilon in EPSILONS[: PEER_RUNS[case.name]]:
        time, released = watch.timed(PEER, task, epsilon)
        shown = counts_of(truth.counts.tree, released)
        errors[PEER].add(truth, every_count(shown, shown.tree.chain[-1]), time.wall)
    print(case.name, *(f"{name}: {clock(e.seconds)}" for name, e in errors.items()), flush=True)
    return Found(case, truth, errors)


def measured() -> Benchmark:
    """Both tables."""
    release = peer_release()
    found = [on_table(case, release) for case in CASES if case.name in PEER_RUNS]
    ratios = [
        Ratio(f"{one.case.name}: {name}", PEER, one.errors[name].seconds, one.errors[PEER].seconds)
        for one in found
        for name in MEASURES
    ]
    text = TEXT.format(
        epsilon=EPSILON,
        delta=DELTA,
        peer=PEER,
        runs=RUNS,
        peer_runs=" or ".join(map(str, sorted(PEER_RUNS.values()))),
        tables="\n\n".join(map(errors_of, found)),
    )
    kept = {
        one.case.name: {name: figures(errors) for name, errors in one.errors.items()}
        for one in found
    }
    return Benchmark("Origins and destinations: a cube", text, ratios, figures=kept)


def errors_of(one: Found) -> str:
    """A table's errors: a row a combination of levels."""
    shape, (peer, cube, *_) = one.truth.shape, one.errors.values()
    told = errors_by_cuboid(shape, one.case, one.errors.values())
    over = [cube.rmse(c) / peer.rmse(c) for c in shape.cuboids() if any(c)]
    rows = (
        [what, *shown, last]
        for (what, shown), last in zip(told.items(), (*over, "", ""), strict=True)
    )
    return markdown([one.case.name, *one.errors, f"{CUBE} / {PEER}"], rows, ".2f")
