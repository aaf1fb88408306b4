"""Every combination of levels of real trips: the authors' InfTDA package beside a cube.

Their package takes most of a minute on the larger table, so it runs three times there.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import hedgerow as hr
from benchmarks.clock import fastest
from benchmarks.inf_tda import EPSILONS, PEER, RUNS, compared, planned
from benchmarks.inf_tda_peer import EPSILON, Peer, peer_release
from benchmarks.page import Benchmark, Ratio, clock
from hedgerow.evaluate.simulate import Tally
from hedgerow.plan.cuboids import Measure
from hedgerow.plan.joint import shape_of_tree
from studies.cube import CASES, CUBE, SURVIVORS, Case, errors_by_cuboid, rates_of, rmse_of
from studies.page import DATA, markdown
from studies.releases import DELTA, trips_plan, within
from studies.tables import trips_between

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
        errors: by method.
        seconds: of one release, by method, the fastest.
    """

    case: Case
    errors: dict[str, Tally]
    seconds: dict[str, float]


def plan_at(tree: hr.Tree, case: Case, measure: Measure, epsilon: Fraction) -> hr.Plan:
    """The plan of a cube."""
    return trips_plan(tree, within(epsilon), measure, case.allocation, hr.Cube())


def on_table(case: Case, release: Peer) -> Found:
    """Both on one table."""
    counts = trips_between(DATA / case.folder)
    tasks = {
        name: planned(counts, partial(plan_at, counts.tree, case, measure))
        for name, measure in MEASURES.items()
    }
    times, cuboids = fastest(tasks, EPSILONS), [*shape_of_tree(counts.tree).cuboids()]
    times[PEER], errors = compared(counts, release, PEER_RUNS[case.name], tasks, cuboids)
    seconds = {name: times[name].wall for name in errors}
    print(case.name, *(f"{name}: {clock(s)}" for name, s in seconds.items()), flush=True)
    return Found(case, errors, seconds)


def measured() -> Benchmark:
    """Both tables."""
    release = peer_release()
    found = [on_table(case, release) for case in CASES if case.name in PEER_RUNS]
    ratios = [
        Ratio(f"{one.case.name}: {name}", PEER, one.seconds[name], one.seconds[PEER])
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
    kept = {one.case.name: {name: figures(one, name) for name in one.errors} for one in found}
    return Benchmark("Origins and destinations: a cube", text, ratios, figures=kept)


def figures(one: Found, name: str) -> dict[str, object]:
    """For the JSON file."""
    errors = one.errors[name]
    discovered, missed = rates_of(errors)
    return {
        "rmse": {"-".join(map(str, c)): each for c, each in rmse_of(errors).items()},
        "false_discoveries": discovered,
        "misses": missed,
        "seconds": one.seconds[name],
        "runs": len(errors.seconds),
    }


def errors_of(one: Found) -> str:
    """A table's errors: a row a combination of levels."""
    peer, cube, *_ = map(rmse_of, one.errors.values())
    told = errors_by_cuboid(one.case, one.errors.values())
    over = [cube[c] / peer[c] for c in peer if any(c)]
    rows = (
        [what, *shown, last]
        for (what, shown), last in zip(told.items(), (*over, "", ""), strict=True)
    )
    return markdown([one.case.name, *one.errors, f"{CUBE} / {PEER}"], rows, ".2f")
