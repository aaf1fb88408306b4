"""How cuboids are estimated whose variances are no product over axes.

In closed form where there is one, by iteration where not.
"""

from hedgerow.estimate.workload.general import GeneralSolver
from hedgerow.estimate.workload.observed import Observed, Solver
from hedgerow.estimate.workload.spine import SpineSolver


def bytes_of_solver(solver: Solver) -> int:
    """Return the memory that a solver's dense factor takes, if it has one."""
    dense = solver.dense if isinstance(solver, GeneralSolver) else None
    if dense is None:
        return 0
    return dense.factor.nbytes + sum(t.nbytes for half in dense.halves for t in half.parts.values())


def solver_of(observed: Observed) -> Solver:
    """Return the solver of a workload, which follows from public facts alone.

    Raises:
        EstimateError: the workload is too large for iteration, and nothing else does.
    """
    if SpineSolver.fits(observed):
        return SpineSolver(observed)
    return GeneralSolver.of(observed)
