"""Best linear unbiased estimates of a named workload: SciPy's sparse solvers beside ours.

Compare: UK commuting, the chain and both district margins. SciPy is given the measured cuboids as
one sparse matrix over the pairs of districts, made beforehand.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array, kron, vstack
from scipy.sparse.linalg import LinearOperator, cg, lsqr

import hedgerow as hr
from benchmarks.clock import fastest
from benchmarks.page import Benchmark, Ratio
from hedgerow.arrays import Float64, Tables
from hedgerow.estimate.workload.general import solver_of
from hedgerow.estimate.workload.observed import Observed
from hedgerow.plan.tables import as_tables
from studies.cube import CASES
from studies.page import DATA, markdown
from studies.releases import DELTA, plan_of, within
from studies.tables import every_count, trips_between

RUNS = 2
RESIDUAL = 1e-9
OURS, LSQR, CG = "Hedgerow", "SciPy, lsqr", "SciPy, cg"
MARGINS = ("origin.lad", "destination.lad")
WORKLOAD = "chain and two margins"

TEXT = """The estimates of all pairs of 380 districts from noisy counts of every cuboid that a plan
measures, ε = 1, δ = {delta}, one trip added or removed. Each solver is made anew for each table of
noise. SciPy's have the cuboids as one sparse matrix, which is made before: `lsqr` of the weighted
least squares, `cg` of their normal equations, both to a residual of 1e-9. *Farthest*: how
far an estimate of a pair is from ours, in records.

{apart}"""


@dataclass(frozen=True, eq=False)
class System:
    """A workload of a real table, and its noisy counts.

    Attributes:
        observed: what is measured.
        counts: the true ones.
    """

    observed: Observed
    counts: hr.Counts

    @cached_property
    def matrix(self) -> csr_array:
        """The measured cuboids by precision: sparse (noisy counts, pairs)."""
        parts = []
        for cuboid, variance in self.observed.variances.items():
            one, other = (
                csr_array(
                    (
                        np.ones(axis.sizes[-1]),
                        axis.ancestors(axis.depth, k),
                        range(axis.sizes[-1] + 1),
                    )
                ).T
                for axis, k in zip(self.observed.shape.axes, cuboid, strict=True)
            )
            parts.append(kron(one, other) / np.sqrt(variance))
        return csr_array(vstack(parts))

    def noisy(self, seed: int) -> Tables:
        """Counts with Gaussian noise of the plan's variances."""
        rng = np.random.default_rng(seed)
        return {
            cuboid: rng.normal(every_count(self.counts, cuboid), np.sqrt(variance))
            for cuboid, variance in self.observed.variances.items()
        }

    def stacked(self, tables: Tables) -> Float64:
        """The noisy counts by precision, in the order of the matrix."""
        each = self.observed.variances.items()
        return np.concatenate([tables[c].ravel() / np.sqrt(v) for c, v in each])

    def ours(self, tables: Tables) -> Float64:
        """By Hedgerow, the solver made anew."""
        finest = self.observed.shape.finest
        return solver_of(self.observed).estimates(tables, [finest])[finest].ravel()

    def by_lsqr(self, tables: Tables) -> Float64:
        """By least squares of the stacked system."""
        return np.asarray(lsqr(self.matrix, self.stacked(tables), atol=RESIDUAL, btol=RESIDUAL)[0])

    def by_cg(self, tables: Tables) -> Float64:
        """By conjugate gradients of the normal equations."""
        across = csr_array(self.matrix.T)
        pairs = self.matrix.shape[1]
        normal = LinearOperator((pairs, pairs), lambda x: across @ (self.matrix @ x), dtype=float)
        found, failed = cg(normal, across @ self.stacked(tables), rtol=RESIDUAL)
        if failed:
            raise ArithmeticError("conjugate gradients did not settle")
        return np.asarray(found)


def measured() -> Benchmark:
    """The workload."""
    counts = trips_between(DATA / CASES[0].folder)
    workload = hr.Cuboids(MARGINS, chain=True)
    plan = plan_of(counts.tree, within("1"), hr.All(), workload=workload)
    system = System(as_tables(plan.design).observed, counts)
    solvers = {OURS: system.ours, LSQR: system.by_lsqr, CG: system.by_cg}
    tables = [system.noisy(seed) for seed in range(RUNS + 1)]
    found = [solve(tables[0]) for solve in solvers.values()]  # the code is loaded
    apart = [np.abs(each - found[0]).max() for each in found[1:]]
    row = [WORKLOAD, len(system.observed.variances), *apart]
    heads = ["workload", "cuboids", f"farthest: {LSQR}", f"farthest: {CG}"]
    seconds = fastest(solvers, tables[1:])
    ratios = [Ratio(WORKLOAD, peer, seconds[OURS].wall, seconds[peer].wall) for peer in (LSQR, CG)]
    text = TEXT.format(delta=DELTA, apart=markdown(heads, [row], " |  | .1g"))
    return Benchmark("Estimates of named workloads", text, ratios)
