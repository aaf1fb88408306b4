"""The lines of a release file that say what a plan says: its budget and its shares."""

from dataclasses import fields
from decimal import Decimal
from fractions import Fraction

from hedgerow.plan.measurable import measurable_depths
from hedgerow.plan.plan import Plan

BUDGETS = ("rho", "epsilon", "delta")


def lines_of(plan: Plan) -> str:
    """``[privacy]`` and ``[allocation]`` with the exact budget and shares of a plan.

    A file with these lines, and all else as the plan has it, plans with the same noise; its
    allocation is called ``shares``.
    """
    budget = {f.name: getattr(plan.budget, f.name) for f in fields(plan.budget)}
    others = " and ".join(name for name in BUDGETS if name not in budget)
    depths = measurable_depths(plan.tree, plan.neighbours, plan.invariants)
    shares = ", ".join(f'"{plan.shares[t] or 0}"' for t in depths)
    given = "\n".join(f'{name} = "{_number(value)}"' for name, value in budget.items())
    return (
        f"[privacy]  # the other lines stay, without {others}\n{given}\n\n"
        f'[allocation]  # these two lines alone\nmethod = "shares"\nshares = [{shares}]'
    )


def _number(value: Fraction) -> str:
    """As a decimal number where that is exact, as a fraction elsewhere."""
    decimal = Decimal(value.numerator) / Decimal(value.denominator)
    return f"{decimal:f}" if Fraction(decimal) == value else str(value)
