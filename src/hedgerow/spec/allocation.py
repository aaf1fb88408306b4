"""``[allocation]`` of a release file as types, with the public prior that it may follow."""

from contextlib import suppress
from dataclasses import fields
from decimal import Decimal
from fractions import Fraction
from math import inf
from typing import Any, cast

from hedgerow.declared import Rational, frozen
from hedgerow.distribution.branching import AllRanges, Cdf, Objective, Quantiles
from hedgerow.distribution.plan import ForDistribution
from hedgerow.errors import HedgerowError, PlanError, SpecError, of_public_table, shorten
from hedgerow.plan.allocation.allocation import (
    Allocation,
    Importance,
    PerLevel,
    Relative,
    Uniform,
)
from hedgerow.plan.allocation.fair import Fair
from hedgerow.plan.allocation.optimal import ObjectiveName, Optimal
from hedgerow.plan.allocation.shares import QueryShares, Shares
from hedgerow.plan.cuboids import Measured
from hedgerow.plan.plan import Plan
from hedgerow.plan.prior import Prior, has_counts_of
from hedgerow.privacy.budget import Budget
from hedgerow.spec.release_file import AllocationSection, Numbers, PriorSection
from hedgerow.spec.table import TableSpec
from hedgerow.spec.toml_file import as_float, toml
from hedgerow.tables.counts import Counts
from hedgerow.tables.lists.public_table import as_called, columns_in
from hedgerow.tables.tree import Tree
from hedgerow.text import as_double

TARGET = Rational("--target-mse", 0, inf, PlanError, ends="()")


@frozen
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
        given.check()
        if given.method == "optimal":
            return self.optimal(tree)
        if given.method == "distribution":
            return ForDistribution(designed_for(given))
        if given.ratio is not None:
            importance = cast("list[float] | None", _importance(given.importance))
            ratio = as_float(given.ratio, "ratio", PlanError)
            return Fair(ratio, None if importance is None else tuple(importance))
        if given.levels is not None and given.queries is not None:
            return QueryShares(given.levels, given.queries)
        if given.shares is not None:
            return Shares(given.shares)
        return None if given.method is None else Uniform()

    def optimal(self, tree: Tree) -> Optimal:
        """Return the optimal allocation with the importance, prior and objective of the section."""
        given = self.section
        return Optimal(
            importance=_importance(given.importance),
            prior=self.prior(tree),
            objective=cast("ObjectiveName | None", given.objective),
        )

    def prior(self, tree: Tree) -> Prior | None:
        """Return the public table of the section, or raise if it is the confidential one."""
        given = self.section.prior
        if given is None:
            return None
        return read_prior(
            given,
            self.table,
            tree,
            "the prior",
            "shares computed from it would reveal it: name a public table, such as an earlier "
            "release",
        )

    def is_own_prior(self, tree: Tree, counts: Counts) -> bool:
        """Return whether the prior's file, read as the table is, has the table's counts.

        The answer is confidential: it is for a terminal alone.
        """
        return is_copy(self.section.prior, self.table, tree, counts, "the prior")

    def check_target(self, target: str, *, of_estimates: bool = False) -> None:
        """Raise unless it is a number above 0 and the section plans for what a target is of.

        That is single noisy counts along a chain, and estimates of other workloads.
        """
        wanted = "cells"
        what = "single noisy counts"
        if of_estimates:
            wanted = "released"
            what = "estimates"
        if self.section.method == "optimal" and self.section.objective not in {None, wanted}:
            raise SpecError(f'--target-mse needs objective = "{wanted}": it is for {what}')
        if self.section.method == "distribution":
            raise SpecError(
                '--target-mse is for single noisy counts, and method = "distribution" plans for '
                "cumulative ones: give a budget, and see their error in the plan"
            )
        as_double(TARGET(target), TARGET.name, PlanError)


def read_prior(given: PriorSection, table: TableSpec, tree: Tree, what: str, advice: str) -> Prior:
    """Return a public table of a section, or raise if it is the confidential one."""
    table.check_public(given.source, what, advice)
    source = table.folder / given.source
    if given.public:
        with of_public_table("the prior: "):
            source = table.with_codes(given, tree)
    return Prior.read(tree, source, count=given.count, columns=given.columns, public=given.public)


def is_copy(
    given: PriorSection | None, table: TableSpec, tree: Tree, counts: Counts, what: str
) -> bool:
    """Return whether a public table of a section, read as the confidential one is, has its counts.

    The answer is confidential: it is for a terminal alone.
    """
    if given is None:
        return False
    with suppress(HedgerowError):  # not such a table, so not a copy
        source = table.with_codes(given, tree, as_table=True)
        called = as_called(tree.axes, columns_in(source, what), what, given=given.columns)
        own = tree.with_axes(called)
        for bounded in {table.file.table.unit is not None, False}:
            with suppress(HedgerowError):
                copy = table.counts_of(source, own, bounded=bounded)
                if has_counts_of(copy, counts):
                    return True
    return False


def designed_for(given: AllocationSection) -> Objective:
    """Return the objective of the tree of a distribution."""
    given.check()
    if given.quantiles is not None:
        return Quantiles(given.quantiles)
    return AllRanges() if given.objective == "ranges" else Cdf()


def _importance(given: Numbers | str | None) -> Importance:
    """Return the importances as floats: no privacy depends on their last digits."""
    if isinstance(given, str):
        return Relative() if given == Relative.name else PerLevel()
    return None if given is None else cast("Importance", _floats(given, "importance"))


def _floats(given: Any, name: str) -> Any:
    """Return numbers as floats, in lists and tables as they are given in."""
    if isinstance(given, dict):
        return {key: _floats(one, f"importance of {shorten(key)}") for key, one in given.items()}
    if isinstance(given, list):
        return [_floats(one, name) for one in given]
    return as_float(given, name, PlanError)


BUDGETS = ("rho", "epsilon", "delta")


def budget_lines(budget: Budget) -> str:
    """Return the keys of an exact budget, a line each."""
    given = {f.name: getattr(budget, f.name) for f in fields(budget)}
    return "\n".join(f'{name} = "{_number(value)}"' for name, value in given.items())


def privacy_lines(budget: Budget) -> str:
    """Return ``[privacy]`` with an exact budget."""
    others = " and ".join(name for name in BUDGETS if not hasattr(budget, name))
    return f"[privacy]  # the other lines stay, without {others}\n{budget_lines(budget)}"


def release_file_lines(plan: Plan) -> str:
    """Return ``[privacy]`` and ``[allocation]`` with the exact budget and shares of a plan.

    A file with these lines, and otherwise the plan's settings, plans with the same noise; its
    allocation is called ``shares``.
    """
    shares: Any  # by depth that can be measured, by axis, or by measured cuboid
    if plan.is_chain:
        shares = list(map(str, plan.possible_shares.values()))
    elif plan.axis_shares is not None:
        lists = zip(plan.tree.axes, plan.axis_shares, strict=True)
        shares = {axis.name: list(map(str, each)) for axis, each in lists}
    else:
        named = plan.cuboids.items()
        shares = {name: str(one.share) for name, one in named if isinstance(one, Measured)}
    return (
        f"{privacy_lines(plan.budget)}\n\n"
        f'[allocation]  # these two lines alone\nmethod = "shares"\nshares = {toml(shares)}'
    )


def _number(value: Fraction) -> str:
    """Return an exact decimal number where there is one, else a fraction."""
    decimal = Decimal(value.numerator) / Decimal(value.denominator)
    return f"{decimal:f}" if Fraction(decimal) == value else str(value)
