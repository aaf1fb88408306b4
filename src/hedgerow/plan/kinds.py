"""What the parts of a plan must be: objects such as ``All()``, not names or classes of them."""

from hedgerow.errors import PlanError, kind_of
from hedgerow.noise.mechanisms import check_registered
from hedgerow.plan.depths import Measure
from hedgerow.privacy.neighbours import Neighbours
from hedgerow.tables.tree import Tree


def check_parts(tree: object, neighbours: object, mechanism: object, measure: object) -> None:
    """Refuse what is no part of a plan: ``measure="all"`` would pass for survivors.

    Raises:
        PlanError: another kind of thing; the message names one that fits.
        NoiseError: a mechanism that is not complete, or by whose name no plan could be read.
    """
    if not isinstance(tree, Tree):
        refuse_kind("a plan's tree", "Tree([axis, …])", tree)
    if not isinstance(neighbours, Neighbours):
        refuse_kind("neighbours", "AddRemove() or Replace()", neighbours)
    if isinstance(mechanism, type) and hasattr(mechanism, "draw"):
        check_registered(mechanism)
    else:
        refuse_kind("a mechanism", "the class DiscreteGaussian or DiscreteLaplace", mechanism)
    if not isinstance(measure, Measure):
        refuse_kind("measure", "All(), Survivors() or RunningSums()", measure)


def check_allocation(allocation: object) -> None:
    """Refuse a name or a class in place of an allocation.

    Raises:
        PlanError: it is one, or something else without shares.
    """
    if isinstance(allocation, type) or not hasattr(allocation, "shares"):
        refuse_kind("an allocation", "Uniform() or Optimal()", allocation)


def refuse_kind(what: str, fitting: str, given: object) -> None:
    """Say what would fit, and what was given.

    Raises:
        PlanError: always.
    """
    raise PlanError(f"{what} must be {fitting}, got {kind_of(given)}")
