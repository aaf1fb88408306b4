"""How a workload is estimated: in closed form where there is one, by iteration where not."""

from hedgerow.estimate.workload.general import GeneralSolver
from hedgerow.estimate.workload.observed import Observed, Solver
from hedgerow.estimate.workload.product import ProductSolver
from hedgerow.estimate.workload.spine import SpineSolver


def solver_of(observed: Observed) -> Solver:
    """Return the solver of a workload, which follows from public facts alone.

    Raises:
        EstimateError: the workload is too large for iteration, and nothing else does.
    """
    if SpineSolver.fits(observed):
        return SpineSolver(observed)
    if ProductSolver.fits(observed):
        return ProductSolver(observed)
    return GeneralSolver.of(observed)
