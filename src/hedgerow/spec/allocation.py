"""``[allocation]`` of a release file as types, with the public prior that it may follow."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from decimal import Decimal
from fractions import Fraction
from typing import cast

from hedgerow.distribution.branching import AllRanges, Cdf, Objective, Quantiles
from hedgerow.distribution.plan import ForDistribution
from hedgerow.errors import HedgerowError, PlanError, SpecError, shorten
from hedgerow.plan.allocation.allocation import (
    Allocation,
    Importance,
    PerLevel,
    Relative,
    Uniform,
)
from hedgerow.plan.allocation.fair import Fair
from hedgerow.plan.allocation.optimal import Optimal
from hedgerow.plan.allocation.shares import QueryShares, Shares
from hedgerow.plan.cuboids import Measured
from hedgerow.plan.plan import Plan
from hedgerow.plan.prior import Prior, has_counts_of
from hedgerow.spec.release_file import AllocationSection, Numbers
from hedgerow.spec.table import TableSpec
from hedgerow.spec.toml_file import Number, as_float
from hedgerow.tables.counts import Counts
from hedgerow.tables.lists.public_table import as_called, columns_in
from hedgerow.tables.tree import Tree
from hedgerow.text import exact


@dataclass(frozen=True, slots=True)
class AllocationSpec:
    """The allocation of a release file.

    Attributes:
        section: what the file says.
        table: the confidential table, which a prior must not be; it says where the file lies.
    """

    section: AllocationSection
    table: TableSpec

    def allocation(self, tree: Tree) -> Allocation | None:
        """Return the allocation of the section, or None; raise for keys that do not go together."""
        given = self.section
        self._check_shares()
        if (given.ratio is not None) != (given.method == "fair"):
            raise SpecError('ratio goes with method = "fair", which needs it')
        if given.quantiles is not None and given.method != "distribution":
            raise SpecError('quantiles = [...] goes with method = "distribution"')
        if given.method == "optimal":
            return self.optimal(tree)
        if given.ratio is not None:
            return _fair(given, given.ratio)
        if (given.importance, given.prior) != (None, None):
            raise SpecError('importance and prior go with method = "optimal"')
        if given.method == "distribution":
            return ForDistribution(designed_for(given))
        if given.objective is not None:
            raise SpecError('objective goes with method = "optimal" or "distribution"')
        if given.levels is not None and given.queries is not None:
            return QueryShares(given.levels, given.queries)
        if given.shares is not None:
            return Shares(given.shares)
        return None if given.method is None else Uniform()

    def _check_shares(self) -> None:
        """Raise a SpecError unless shares are given once, and with the method that takes them."""
        given = self.section
        if (given.levels is None) != (given.queries is None):
            raise SpecError(
                'levels and queries go together: levels = {county = "1/4", ...}, and for each '
                "level a table [allocation.queries.county]"
            )
        if given.shares is not None and given.levels is not None:
            raise SpecError("give shares, or levels and queries, not both")
        either = given.shares is not None or given.levels is not None
        if either != (given.method == "shares"):
            raise SpecError(
                'shares = [...], or levels and queries, go with method = "shares", and only with it'
            )

    def optimal(self, tree: Tree) -> Optimal:
        """Return the optimal allocation with the importance, prior and objective of the section."""
        given = self.section
        objective = given.objective
        if objective == "cdf" or objective == "ranges" or objective == "quantiles":  # noqa: PLR1714 - narrows
            raise SpecError(f'objective = "{objective}" goes with method = "distribution"')
        return Optimal(
            importance=_importance(given.importance),
            prior=self.prior(tree),
            objective=objective,
        )

    def prior(self, tree: Tree) -> Prior | None:
        """Return the public table of the section, or raise if it is the confidential one."""
        given = self.section.prior
        if given is None:
            return None
        path = self.table.folder / given.source
        if self.table.shares_files(path):
            raise SpecError(
                "the prior is the confidential table itself, or a part of it: shares computed from "
                "it would reveal it; name a public table, such as an earlier release"
            )
        return Prior.read(tree, path, count=given.count, columns=given.columns, public=given.public)

    def is_own_prior(self, tree: Tree, counts: Counts) -> bool:
        """Return whether the prior's file, read as the table is, has the table's counts.

        The answer is confidential: it is for a terminal alone.
        """
        given, table = self.section.prior, self.table
        if given is None:
            return False
        path = table.folder / given.source
        for bounded in {table.file.table.unit is not None, False}:
            with suppress(HedgerowError):  # not such a table, so not a copy
                names = columns_in(path, "the prior")
                called = as_called(tree.axes, names, "the prior", given=given.columns)
                copy = table.counts_of(path, tree.with_axes(called), bounded=bounded)
                if has_counts_of(copy, counts):
                    return True
        return False

    def check_target(self, target: str, *, of_estimates: bool = False) -> None:
        """Raise unless it is a number above 0 and the section plans for what a target is of.

        That is single noisy counts along a chain, and estimates of other workloads.
        """
        wanted, what = ("cells", "single noisy counts")
        if of_estimates:
            wanted, what = ("released", "estimates")
        if self.section.method == "optimal" and self.section.objective not in {None, wanted}:
            raise SpecError(f'--target-mse needs objective = "{wanted}": it is for {what}')
        if self.section.method == "distribution":
            raise SpecError(
                '--target-mse is for single noisy counts, and method = "distribution" plans for '
                "cumulative ones: give a budget, and see their error in the plan"
            )
        try:
            is_target = exact(target, "--target-mse", PlanError) > 0
        except PlanError:
            is_target = False
        if not is_target:
            raise PlanError(f"--target-mse must be a number above 0, got {target[:40]!r}")
        as_float(target, "--target-mse", PlanError)


def designed_for(given: AllocationSection) -> Objective:
    """Return the objective of the tree of a distribution."""
    if (given.quantiles is not None) != (given.objective == "quantiles"):
        raise SpecError('quantiles = [...] goes with objective = "quantiles", and only with it')
    if given.quantiles is not None:
        return Quantiles(given.quantiles)
    if given.objective not in {None, "cdf", "ranges"}:
        raise SpecError(
            f'objective = "{given.objective}" goes with method = "optimal"; a distribution is '
            'designed for "cdf", "ranges" or "quantiles"'
        )
    return AllRanges() if given.objective == "ranges" else Cdf()


def _fair(given: AllocationSection, ratio: Number) -> Fair:
    if isinstance(given.importance, dict | str) or given.prior or given.objective:
        raise SpecError('method = "fair" takes ratio, and importance as a list')
    most = as_float(ratio, "ratio", PlanError)
    return Fair(most, None if given.importance is None else tuple(_floats(given.importance)))


def _importance(given: Numbers | str | None) -> Importance:
    """Return the importances as floats: no privacy depends on their last digits."""
    if isinstance(given, str):
        return Relative() if given == Relative.name else PerLevel()
    if not isinstance(given, dict):
        return None if given is None else _floats(given)
    lists = {name: _floats(w) for name, w in given.items() if isinstance(w, list)}
    single = {
        name: as_float(w, f"importance of {shorten(name)}", PlanError)
        for name, w in given.items()
        if not isinstance(w, list)
    }
    return cast("Importance", lists | single)  # of both kinds they are refused


def _floats(numbers: list[Number]) -> list[float]:
    return [as_float(number, "importance", PlanError) for number in numbers]


BUDGETS = ("rho", "epsilon", "delta")


def release_file_lines(plan: Plan) -> str:
    """Return ``[privacy]`` and ``[allocation]`` with the exact budget and shares of a plan.

    A file with these lines, and otherwise the plan's settings, plans with the same noise; its
    allocation is called ``shares``.
    """
    budget = {f.name: getattr(plan.budget, f.name) for f in fields(plan.budget)}
    others = " and ".join(name for name in BUDGETS if name not in budget)
    if plan.is_chain:
        # the shares as a TOML list, one for each depth that can be measured
        shares = _listed(list(plan.possible_shares.values()))
    elif plan.axis_shares is not None:
        lists = zip(plan.tree.axes, plan.axis_shares, strict=True)
        by_axis = (f"{json.dumps(axis.name)} = {_listed(each)}" for axis, each in lists)
        shares = f"{{{', '.join(by_axis)}}}"
    else:
        # the shares as an inline TOML table, one for each measured cuboid
        named = (
            f"{json.dumps(name, ensure_ascii=False)} = {_quoted(what.share)}"
            for name, what in plan.cuboids.items()
            if isinstance(what, Measured)
        )
        shares = f"{{{', '.join(named)}}}"
    given = "\n".join(f'{name} = "{_number(value)}"' for name, value in budget.items())
    return (
        f"[privacy]  # the other lines stay, without {others}\n{given}\n\n"
        f'[allocation]  # these two lines alone\nmethod = "shares"\nshares = {shares}'
    )


def _listed(shares: Sequence[Fraction]) -> str:
    return f"[{', '.join(map(_quoted, shares))}]"


def _quoted(share: Fraction) -> str:
    return f'"{share}"'


def _number(value: Fraction) -> str:
    """Return an exact decimal number where there is one, else a fraction."""
    decimal = Decimal(value.numerator) / Decimal(value.denominator)
    return f"{decimal:f}" if Fraction(decimal) == value else str(value)
