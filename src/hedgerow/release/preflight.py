"""What is looked at before a release: a limit on memory, public totals, copies of the table.

With ``--memory 4GB`` the database sorts the table in half of that and spills the rest to temporary
files, and the leaf counts lie in temporary files too, of which the system keeps in memory what it
has room for. Subtree jobs are written to the staging folder as they finish, whatever the limit. It
does not bound the lists of areas, which are held in memory, nor what an estimator must see at once:
one family, and where all nodes are measured one subtree job; so a plan that needs more for these
is refused before anything is read. It is an aim and no guarantee: Python, the compiled kernels and
the system's own cache come on top.

Whether a public table says exactly what the confidential one does, the confidential table decides,
so no refusal, log or file may depend on it (`docs/public-files.md`, "Is a public file the table?"):
a sentence for a terminal alone says so.
"""

import re
from math import prod
from pathlib import Path

import numpy as np
import polars as pl

from hedgerow.arrays import int64
from hedgerow.errors import EstimateError, MachineError, PlanError, SpecError, kind_of
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.spine.support import UNBOUNDED
from hedgerow.limits import LARGEST_LEAF
from hedgerow.machine import usable_memory
from hedgerow.plan.cuboids import refuse_kind
from hedgerow.plan.facts.fixed import fixed_counts, refuse_fixed
from hedgerow.plan.facts.public_rows import PublicRows
from hedgerow.plan.plan import Plan
from hedgerow.tables.counts import Counts

# What is refused before a release: a table, a plan and an estimator that do not fit together.
#
# All of it is refused before a release is charged and before any noise is drawn.

LARGEST_NOISE = 1 << 30
"""Standard deviation or scale of noise (records) that real-valued estimates hold for certain."""


def check_match(counts: Counts, plan: Plan) -> None:
    """Refuse a table that is not what the plan was made for.

    Raises:
        PlanError: no counts or no plan, another domain, contributions that were bounded otherwise.
    """
    if not isinstance(counts, Counts):
        refuse_kind("the table of a release", "Counts.from_frame(tree, …)", counts)
    if not isinstance(plan, Plan):
        refuse_kind("the plan of a release", "make_plan(…)", plan)
    if counts.tree.digest != plan.tree.digest:
        raise PlanError("the plan was made for another tree than the table's; make it anew")
    bound = counts.contributions
    promised = plan.neighbours.contributions
    if bound is None and plan.neighbours.unit is not None:
        raise PlanError(
            f"the plan protects each {plan.neighbours.unit!r}, but the table's contributions were "
            f"not bounded: read it with unit={plan.neighbours.unit!r}"
        )
    if bound is None:
        return
    if None not in {counts.unit, plan.neighbours.unit} and counts.unit != plan.neighbours.unit:
        raise PlanError(
            f"the plan protects each {plan.neighbours.unit!r}, but the table keeps so many records "
            f"of each {counts.unit!r}; read it with unit={plan.neighbours.unit!r}"
        )
    if bound > promised:
        raise PlanError(
            f"the table keeps up to {bound} records a unit, but the plan protects {promised}"
        )
    if bound > 1 and plan.neighbours.total_is_public:
        raise PlanError(
            "the plan holds the total public, which needs units with exactly as many records as "
            "contributions says; a table bounded by its unit column keeps at most that many: use "
            "Replace(contributions, exactly=False), which measures the total"
        )


def check_estimator(estimator: Estimator, plan: Plan) -> None:
    """Refuse an estimator that cannot use what a plan measures.

    Raises:
        EstimateError: it is a name or a class; the plan's design cannot use it; or it works on real
            numbers, and the noise is out of their reach.
    """
    if isinstance(estimator, type) or not hasattr(estimator, "project"):
        raise EstimateError(
            f"an estimator must be Chebyshev(), Euclidean(), …, got {kind_of(estimator)}"
        )
    design = plan.design
    design.check_estimator(estimator)
    widest = max((noise.envelope.variance for noise in plan.noise.values()), default=0.0)
    if widest > (LARGEST_NOISE * design.scale) ** 2 and design.needs_reals(estimator):
        raise EstimateError(
            "the noise of this plan is above 2**30 records, which real-valued estimates do not "
            "hold: give it a larger budget"
        )


def check_public_total(total: float, plan: Plan) -> None:
    """Refuse a table of a size that no release can have, where its size is public.

    Elsewhere how large it is decides nothing: of a leaf `LARGEST_LEAF` records are counted, and
    real-valued estimates stop at `hedgerow.limits.LARGEST_REAL_COUNT`.

    Args:
        total: the number of records, as `Counts.unwrapped_total` has it.
        plan: the plan.

    Raises:
        PlanError: the total is public and not below 2⁴⁰, or not what public facts allow for; or
            these allow for one table alone with so many records.
    """
    if plan.public is not None and total >= LARGEST_LEAF:
        raise PlanError(
            "the number of records is public under this plan, and a table whose number is public "
            "must have fewer than 2**40; use add-remove neighbours, which measure it"
        )
    constraints = plan.constraints
    if (
        constraints is not None
        and plan.public is not None
        and not constraints.least <= total <= constraints.most
    ):
        most = (
            f"and at most {constraints.most:,}" if constraints.most < UNBOUNDED else "and any more"
        )
        raise PlanError(
            f"the table has {total:,.0f} records, a number that is public under this plan, and "
            f"[[public]] bounds ask for at least {constraints.least:,} {most}; correct one of them"
        )
    if (
        constraints is not None
        and plan.public is not None
        and total in {constraints.least, constraints.most}
    ):
        why = f" for {total:,.0f} records, a number that is public under this plan"
        fixed = fixed_counts(
            plan.tree, constraints, plan.tables, total_is_public=True, total=int(total)
        )
        refuse_fixed(plan.tree, fixed if total else {}, plan.tables, why)


UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20}
UNITS |= {"GIB": 2**30, "TIB": 2**40}
LEAST = 500_000_000

BYTES_AN_AREA = 60
"""Of a list of areas, once it has been read."""
BYTES_OF_PROGRAM = 400_000_000
PART_OF_MEMORY = 0.6
"""Of what is there: what is read is laid out once more on its way."""


def available_memory() -> int | None:
    """Return how many bytes of memory a file of a release may take: most of what is free.

    A limit of this process alone (``ulimit -v``) counts too, less what it has taken already. None
    where the system does not tell.
    """
    limit = _memory_limit()
    return None if limit is None else int(limit * PART_OF_MEMORY)


def _memory_limit() -> int | None:
    """Return how many bytes of memory this process may take; None where nobody tells."""
    limits = (limit for limit in (usable_memory(), _address_space()) if limit is not None)
    return min(limits, default=None)


def _address_space() -> int | None:
    """Return what is left of the addresses that this process may use; None without a limit."""
    try:
        import resource  # noqa: PLC0415 - POSIX alone has it
    except ImportError:
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    try:
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except (OSError, ValueError):
        taken = 0
    return max(0, limit - taken)


def read_memory(text: str) -> int:
    """Parse a number of bytes: ``4GB``, ``500 MB``, ``1.5GiB``.

    Raises:
        SpecError: it is no size, or below 500 MB, which the program takes itself.
    """
    parsed = re.fullmatch(r"([0-9]{1,9})(?:\.([0-9]{1,3}))?\s*([A-Za-z]{0,3})", text.strip())
    if parsed is None or parsed[3].upper() not in UNITS:
        raise SpecError(f'--memory must be a size such as "4GB" or "800MB", got {text[:50]!r}')
    thousandths = int(parsed[1]) * 1000 + int((parsed[2] or "").ljust(3, "0"))
    size = thousandths * UNITS[parsed[3].upper()] // 1000
    if size < LEAST:
        raise SpecError(f"--memory must be at least {LEAST // 10**6} MB, got {text[:50]}")
    return size


def needed_memory(plan: Plan) -> int:
    """Return the bytes that no limit reduces: the areas, and the largest family or job."""
    tree = plan.tree
    areas = sum(sum(axis.sizes[1:]) for axis in tree.axes)
    return BYTES_OF_PROGRAM + areas * BYTES_AN_AREA + plan.design.bytes_held


def check_memory(plan: Plan, memory: int | None) -> None:
    """Refuse a plan that cannot be executed in some memory, before anything is read.

    Raises:
        PlanError: a family, or a subtree that is measured whole, is too large.
    """
    needed = needed_memory(plan)
    memory = usable_memory() if memory is None else memory
    if memory is not None and needed > memory:
        raise PlanError(
            f"this plan needs about {needed / 1e9:,.1f} GB, and only {memory / 1e9:,.1f} GB are "
            f"available: its areas, and {plan.design.memory_words}, or use a larger machine"
        )


def check_tables(plan: Plan) -> None:
    """Refuse to hold tables of cuboids estimated together that are too large for this machine.

    Files do not tell: those of a cuboid that is not measured are empty, and equal noisy counts take
    no room, so a small directory may state a plan of any size.

    Raises:
        MachineError: they are too large.
    """
    read = plan.design.bytes_read
    free = _memory_limit()
    if read is None or free is None:
        return
    needed = needed_memory(plan) + read
    if needed > free:
        raise MachineError(
            f"to estimate these cuboids again takes about {needed / 1e9:,.1f} GB of memory, and "
            f"only {free / 1e9:,.1f} GB are available: use a larger machine"
        )


TRUE = " "  # no column of codes is called so


def copies_of_the_table(counts: Counts, plan: Plan) -> list[str]:
    """Return a clause for each public table with exactly the content of the confidential one."""
    rows = [fact for fact in plan.facts if isinstance(fact, PublicRows)]
    return [clause for each in rows for clause in _alike(each, *_true_cells(counts, each))]


def _alike(rows: PublicRows, true: pl.DataFrame, cells: int) -> list[str]:
    codes = rows.frame.select(rows.columns)
    there = codes.join(true, on=rows.columns, how="left", maintain_order="left")
    listed = there[TRUE].fill_null(0).to_numpy()
    warnings = [
        f"{rows.subject}: {name} is exactly what the table counts"
        for name, bound in ((rows.at_least, rows.low), (rows.at_most, rows.high))
        if name is not None and listed.any() and np.array_equal(listed, bound)
    ]
    leaves_empty = rows.zeros == "listed"
    held = cells - len(codes) if leaves_empty else len(codes)
    if rows.zeros is not None and held == len(true) and ((listed == 0) == leaves_empty).all():
        warnings.append(f"{rows.subject} leaves exactly the cells in which the table has records")
    return warnings


def _true_cells(counts: Counts, rows: PublicRows) -> tuple[pl.DataFrame, int]:
    """Return the non-empty cells that a public table tells apart; and how many all are."""
    numbers = []
    labels = []
    for axis, codes in zip(counts.tree.axes, counts.codes, strict=True):
        names = axis.columns_in(rows.columns)
        if names:
            apart, number = axis.parts(names)
            numbers.append(int64(number[codes]))
            labels.append(apart)
    sizes = [len(apart) for apart in labels]
    cell, which = np.unique(np.ravel_multi_index(tuple(numbers), sizes), return_inverse=True)
    true = int64(np.bincount(which, counts.values, len(cell)))
    each = zip(labels, np.unravel_index(cell, sizes), strict=True)
    named = [column for apart, number in each for column in apart[number].get_columns()]
    return pl.DataFrame([*named, pl.Series(TRUE, true)]), prod(sizes)
