"""Record and replay: what a release tells beside its noisy counts, and what these cost.

Noisy counts are recorded on one table and replayed on a neighbour, at the door through which all
noise is drawn (`tests.oracle.draws`). Not the noise: that would change who survives. Given the same
noisy counts, all else must be the same, since nothing else may depend on the table: what is drawn,
where, in which order and how often; files, messages, sizes. And what the tables differ by under
the draws, over all of them together, must cost no more than the plan states: Σ‖Δ‖²/2σ² of Gaussian
noise is at most ρ, Σ|Δ|/b of Laplace noise at most ε (each place of the key counts once: a job that
is done again draws the same noise).

The page is left out: it is made of the other files and the plan, and nothing else is given to what
makes it (`tests/oracle` checks that for each plan).

The method is that of Re:cord-play (arXiv 2602.17454).
"""

import hashlib
import io
import warnings
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

import hedgerow as hr
from hedgerow.privacy.neighbours import l1, l2_squared
from hedgerow.release import execution
from hedgerow.release.descent.jobs import LocalEngine, Progress
from tests.oracle.draws import Draw, open_door
from tests.oracle.plans import Case
from tests.oracle.recording import fixed_key

Int64 = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Run:
    """A release, as those inside see it.

    Attributes:
        draws: in their order.
        said: all that progress was told, and all that was printed.
        files: digests by name; of a release in memory its counts.
    """

    draws: list[Draw]
    said: list[Any]
    files: dict[str, str]


def _serial(_engine: LocalEngine, jobs: Any, work: Any) -> Iterator[Any]:
    """Jobs one after the other, so that their order is known."""
    for job in jobs:
        yield work(job)


def run(case: Case, counts: hr.Counts, folder: Path, given: list[Draw] | None = None) -> Run:
    """Release a table, with noisy counts that are given if there are any."""
    said: list[Any] = []
    progress = Progress(
        on_cells=said.append,
        on_fraction=said.append,
        on_cuboid=lambda name, cells, kept, _: said.append((name, cells, kept)),
    )
    printed = io.StringIO()
    with (
        case.limits(),
        fixed_key("replay"),
        mock.patch.object(LocalEngine, "run", _serial),
        mock.patch.object(execution, "write_report"),
        warnings.catch_warnings(record=True) as warned,
        redirect_stdout(printed),
        redirect_stderr(printed),
        open_door(given or ()) as door,
    ):
        hr.release(counts, case.plan, estimator=case.estimator, directory=folder, progress=progress)
    said += [printed.getvalue(), *(str(each.message) for each in warned)]
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    files = {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in paths
    }
    return Run(door.draws, said, files)


def leaks(one: Run, other: Run) -> Iterator[str]:
    """Yield what two runs with the same noisy counts differ in, in words."""
    first, second = ([draw.asked for draw in each.draws] for each in (one, other))
    if first != second:
        same = sorted(first) == sorted(second)
        how = "in another order" if same else f"{len(first)} and {len(second)}, not the same"
        yield f"draws: {how}"
    elif any(
        not np.array_equal(a.noise, b.noise) for a, b in zip(one.draws, other.draws, strict=True)
    ):
        yield "noise: it follows from the table"
    if _shares(one.draws):
        yield "noise: one draw is added to two counts"
    if one.said != other.said:
        yield "messages: progress or print tells the tables apart"
    yield from (
        f"file {name}: another"
        for name in sorted({*one.files, *other.files})
        if one.files.get(name) != other.files.get(name)
    )


def _shares(draws: list[Draw]) -> bool:
    """Whether a draw is added to other counts than before: a job that is done again has its own."""
    known: dict[Any, Int64] = {}
    for draw in draws:
        before = known.setdefault((draw.place, draw.start), draw.true)
        many = min(len(before), len(draw.true))
        if not np.array_equal(before[:many], draw.true[:many]):
            return True
    return False


def spent(one: Run, other: Run) -> Fraction:
    """What the draws of two tables cost together: ρ, or ε of Laplace noise."""
    cost, seen = Fraction(0), set()
    for a, b in zip(one.draws, other.draws, strict=True):
        if (a.place, a.start) in seen:
            continue
        seen.add((a.place, a.start))
        change = a.true - b.true
        shifts = tuple(int(shift) for shift in change[change != 0])
        price = a.mechanism.price
        cost += price.cost(a.mechanism, l2_squared(shifts) if price.norm == 2 else l1(shifts))
    return cost


def stated(plan: hr.Plan) -> Fraction:
    """What the plan says that its draws cost together."""
    cost = plan.guarantee.rho if plan.mechanism.price.norm == 2 else plan.guarantee.pure_epsilon
    assert cost is not None
    return cost


# --- neighbours ----------------------------------------------------------------------------------


def neighbours_of(case: Case) -> dict[str, hr.Counts]:
    """Tables that differ in one unit, of each kind that the plan's neighbours may be."""
    plan, counts = case.plan, case.counts
    tree, relation, m = plan.tree, plan.neighbours, plan.neighbours.contributions
    leaves = np.zeros([axis.size(axis.depth) for axis in tree.axes], dtype=np.int64)
    leaves[counts.codes] = counts.values
    flat = leaves.ravel()
    full, cells = int(flat.argmax()), _public_cells(plan)
    assert flat[full] > m
    alike = np.flatnonzero(cells == cells[full])  # where the unit may be, as invariants say
    far = int(alike[np.lexsort((flat[alike], -_levels_apart(tree, full)[alike]))[0]])
    near = int(alike[(np.searchsorted(alike, full) + 1) % len(alike)])
    few = np.resize(np.delete(alike, np.searchsorted(alike, full)), m)

    def changed(*moves: tuple[Any, int]) -> hr.Counts:
        other = flat.copy()
        for place, by in moves:
            np.add.at(other, place, by)
        codes = tuple(code.ravel().astype(np.int32) for code in np.indices(leaves.shape))
        return hr.Counts.from_leaves(tree, codes, other)

    found: dict[str, hr.Counts] = {}
    if isinstance(relation, hr.Replace):
        found |= {
            "all records moved far away": changed((full, -m), (far, m)),
            "all records moved next door": changed((full, -m), (near, m)),
            "records moved to several leaves": changed((full, -m), (few, 1)),
        }
    if not relation.total_is_public:
        found |= {
            "a unit added at one leaf": changed((far, m)),
            "a unit added at several leaves": changed((few, 1)),
            "a unit removed": changed((full, -m)),
        }
    if isinstance(relation, hr.Replace) and not relation.exactly:
        found["all but one moved, and one came"] = changed((full, 1 - m), (far, m))
    return found


def _levels_apart(tree: hr.Tree, leaf: int) -> Int64:
    """For each leaf how many levels of all axes tell it from one leaf: int64 (leaves)."""
    numbers: Any = 0
    own = np.unravel_index(leaf, [axis.size(axis.depth) for axis in tree.axes])
    for axis, code in zip(tree.axes, own, strict=True):
        above = [axis.ancestors(level) for level in range(1, axis.depth + 1)]
        numbers = np.add.outer(numbers, sum((each != each[code]).astype(int) for each in above))
    return np.asarray(numbers).ravel()


def _public_cells(plan: hr.Plan) -> Int64:
    """For each leaf the number of its cell in the finest public cuboid: int64 (leaves)."""
    levels = plan.public or tuple(0 for _ in plan.tree.axes)
    numbers: Any = 0
    for axis, level in zip(plan.tree.axes, levels, strict=True):
        numbers = np.add.outer(numbers * axis.size(level), axis.ancestors(level).astype(np.int64))
    return np.asarray(numbers).ravel()
