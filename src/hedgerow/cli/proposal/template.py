"""The text of a new release file, section by section."""

from collections.abc import Sequence
from math import prod

from hedgerow.cli.proposal.proposed_axis import toml
from hedgerow.limits import MOST_CELLS_PROPOSED
from hedgerow.plan.cuboids import All
from hedgerow.plan.defaults import FEW_LEAVES, USUAL_ALLOCATION, USUAL_IMPORTANCE, measure_of

UNKNOWN_AXIS = ("<a name, such as geography>", ("<coarsest column>", "<finest column>"))

Sizes = Sequence[list[int] | None]


def table_section(
    source: str, count: str | None, unit: str | None, *, may_be: str | None = None
) -> str:
    """Return ``[table]``.

    Args:
        source: the path of the table.
        count: the column of counts.
        unit: the column that tells who is protected.
        may_be: a column that is called like one that does.
    """
    lines = ["[table]", f"source = {toml(source)}   # confidential"]
    if count is not None:
        lines.append(f"count  = {toml(count)}   # the number of records of a row")
    elif unit is not None:
        lines.append(f"unit   = {toml(unit)}   # who is protected, with all their records")
    else:
        column = toml("<a column>" if may_be is None else may_be)
        lines += [
            '# count = "<a column>"   # the number of records of a row; default: 1',
            f"# unit  = {column}   # who is protected, if one person may have several records",
        ]
    return "\n".join(lines) + "\n"


def number_hint(column: str) -> str:
    """Return the comment for a column that is called like a number."""
    return (
        f"# {column} is a number? As an axis of bins between public bounds:\n"
        f"# [[axis]]\n# name = {toml(column)}\n# low  = 0\n# high = 100\n# bins = 100\n"
    )


def workload_sections(sizes: Sizes) -> list[str]:
    """Return ``[workload]`` with a cube over several axes, where its cells fit."""
    known = [size for size in sizes if size is not None]
    if len(sizes) < 2:
        return []
    if len(known) < len(sizes):
        why = 'every combination of levels; "chain" where the lists of areas are too long for it'
    elif _fits(known):
        why = 'every combination of levels; "chain": the axes in turns; or a list of those wanted'
    else:
        return []
    return [f'[workload]\ncuboids = "cube"   # {why}\n']


def _fits(sizes: Sequence[Sequence[int]]) -> bool:
    """Return whether the cells that a cube measures whole are few enough."""
    whole, leaves = prod(map(sum, sizes)), prod(size[-1] for size in sizes)
    if len(sizes) == 2 and leaves > FEW_LEAVES:
        whole -= leaves  # survivors alone
    return whole <= MOST_CELLS_PROPOSED


def _measure(sizes: Sizes) -> str:
    """Return what is measured: all cells unless there are known to be too many.

    A cube over three axes and more measures all cells.
    """
    known = [size for size in sizes if size is not None]
    if len(known) == len(sizes) > 2 and _fits(known):
        return All.name
    return measure_of(prod(size[-1] for size in known)).name


def privacy_section(epsilon: str | None, delta: str, unit: str | None, most: int | None) -> str:
    """Return ``[privacy]``."""
    given = "<smaller is more private; 1 is usual>" if epsilon is None else epsilon
    kept = toml(f"<most records of one {unit}>") if most is None else str(most)
    if unit is None:
        who, meant = "a record", "the most records of one person; 1 protects each record by itself"
    else:
        who, meant = "a unit, with its records,", "the most records to keep of each of them"
    return (
        f"[privacy]\n"
        f'neighbours    = "add-remove"   # hides whether {who} is in the table; "replace": '
        f"what is said of it\n"
        f"contributions = {kept}   # {meant}\n"
        f'mechanism     = "discrete-gaussian"\n'
        f"epsilon       = {toml(given)}   # the promise\n"
        f"delta         = {toml(delta)}   # well below 1 over the number of records\n"
    )


def last_sections(sizes: Sizes, *, is_distribution: bool, has_attributes: bool) -> str:
    """Return ``[allocation]``, ``[estimate]``, ``[output]`` and a comment on ``[describe]``."""
    if is_distribution:
        return _DISTRIBUTION + _OUTPUT
    usual, measure = USUAL_ALLOCATION, All.name if has_attributes else _measure(sizes)
    given = {"objective": usual.objective, "importance": USUAL_IMPORTANCE.name}
    return _COUNTS.format(method=usual.name, measure=measure, **given) + _OUTPUT


_DISTRIBUTION = """\
[allocation]
method = "distribution"   # minimises the error of cumulative counts

"""
_COUNTS = """\
[allocation]
method     = "{method}"
objective  = "{objective}"   # minimises the error after estimation
importance = "{importance}"     # all levels alike; without it all counts, so mostly the finest

[estimate]
method  = "euclidean"
measure = "{measure}"   # "all": every possible cell; "survivors" where there are too many

"""
_OUTPUT = """\
[output]
directory = "out"        # is created when the release is complete; must not exist

# [describe]             # for readers: shown on the page and in exports
# title = "…"            # what the table shows
# unit  = "…"            # what is counted, such as workers
"""
