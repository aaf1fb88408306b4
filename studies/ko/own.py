"""Releases of Ko's tables at one ε: the paper's two, and Hedgerow's own of all nodes."""

from dataclasses import dataclass
from fractions import Fraction

from numpy.random import Generator

import hedgerow as hr
from hedgerow.arrays import Float64, Int64
from studies.ko.releasing import Moments, moments, released
from studies.ko.tables import Case, uniform
from studies.releases import plan_of, seeded
from studies.tables import released_counts


@dataclass(frozen=True)
class Point:
    """All releases at one ε.

    Attributes:
        epsilon: theirs.
        clipped: as `Case.clipped`.
        hier: with consistency: uniform shares, the optimum, Hedgerow's own.
    """

    epsilon: float
    clipped: Float64
    hier: tuple[Moments, ...]

    @classmethod
    def of(cls, case: Case, epsilon: float, rng: Generator, runs: int, own_runs: int) -> "Point":
        """Closed forms, and simulations of so many releases."""
        hier = [
            moments(case, (released(case, shares, rng) for _ in range(runs)), runs)
            for shares in (uniform(epsilon), case.optimum(epsilon))
        ]
        own = moments(case, own_releases(case, epsilon, own_runs), own_runs)
        return cls(epsilon, case.clipped(epsilon), (*hier, own))

    @property
    def cells(self) -> list[object]:
        """With consistency: both bias² and variances, and their ratios."""
        u, b, _ = self.hier
        ratio = u.bias2 / b.bias2 if b.bias2 > 4 * b.error else "below Monte Carlo error"
        pairs = (u.bias2, u.error), u.variance, (b.bias2, b.error), b.variance
        return [*pairs, ratio, u.variance / b.variance]

    @property
    def kept(self) -> tuple[float, float]:
        """The bias² of uniform shares over that without consistency, and its error."""
        return self.hier[0].bias2 / self.clipped[0], self.hier[0].error / self.clipped[0]

    @property
    def gain(self) -> float:
        """Hedgerow's error over that of the paper's optimum, consistent."""
        return self.hier[2].mse / self.hier[1].mse


def own_releases(case: Case, epsilon: float, runs: int) -> list[list[Int64]]:
    """The released counts of each level, in tree order, of so many releases.

    Discrete Laplace noise on all nodes, shares that make the error after least squares least, and
    the nearest whole counts that are not negative and add up.
    """
    plan = plan_of(
        case.counts.tree,
        hr.Epsilon(Fraction(str(epsilon))),
        hr.All(),
        hr.Optimal(objective="released"),
    )
    return [
        released_counts(seeded(case.counts, plan, hr.Euclidean(), seed)) for seed in range(runs)
    ]
