"""The noise of the 2020 census (DHC file, allocation of 2022-08-25), and how it is priced.

Su et al., Section 3 and Table 3: ρ = 3.65 in all, ten queries a level, level i of share a_i with
discrete Gaussian noise of σ_i² = 10 / (2 a_i ρ); one person is in one count of each query.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.optimize import brentq

import hedgerow as hr
from hedgerow.arrays import Float64
from hedgerow.privacy.accountant.lattice import atoms
from hedgerow.privacy.calibrate import matching_factor

RHO = Fraction(365, 100)
QUERIES = 10
POPULATION = 331_449_281
"""Of the United States on 1 April 2020; 1e-10 is below one in so many."""


@dataclass(frozen=True, slots=True)
class Level:
    """One geographical level.

    Attributes:
        name: as in Table 1 of the paper.
        share: a_i, of ρ.
        printed: the Bureau's σ², the paper's σ² and the reduction in percent, as Table 1 has them.
    """

    name: str
    share: Fraction
    printed: tuple[float, float, float]

    @property
    def sigma2(self) -> Fraction:
        """The Bureau's σ², unrounded."""
        return QUERIES / (2 * self.share * RHO)

    @property
    def rho(self) -> Fraction:
        """What the ten queries cost."""
        return self.share * RHO

    @property
    def factor(self) -> Fraction:
        """The factor on σ² at which the exact ε at δ = 1e-11 is the Bureau's of the whole noise."""
        return matching_factor(self.profile(), "1e-11")

    @property
    def noises(self) -> tuple[hr.DiscreteGaussian, hr.DiscreteGaussian]:
        """The Bureau's and the reduced noise."""
        return hr.DiscreteGaussian(self.sigma2), hr.DiscreteGaussian(self.sigma2 * self.factor)

    def profile(self, factor: Fraction = Fraction(1)) -> hr.Profile:
        """The exact promise of the ten queries with ``factor`` of the noise variance."""
        return hr.compose([(hr.DiscreteGaussian(self.sigma2 * factor), QUERIES)])


LEVELS = (
    Level("US", Fraction(20, 1000), (68.49, 54.19, 20.88)),
    Level("State", Fraction(274, 1000), (5.00, 4.25, 15.08)),
    Level("County", Fraction(85, 1000), (16.12, 13.28, 17.58)),
    Level("PEPG", Fraction(131, 1000), (10.46, 8.72, 16.62)),
    Level("Tract subset group", Fraction(131, 1000), (10.46, 8.72, 16.62)),
    Level("Tract subset", Fraction(238, 1000), (5.76, 4.87, 15.33)),
    Level("Optimized block group", Fraction(118, 1000), (11.61, 9.65, 16.89)),
    Level("Block", Fraction(3, 1000), (456.62, 343.27, 24.82)),
)
LEVEL = {level.name: level for level in LEVELS}


def uses(factor: Fraction = Fraction(1)) -> list[tuple[Fraction, int]]:
    """σ² and folds of all 80 queries, with ``factor`` of the noise variance."""
    return [(level.sigma2 * factor, QUERIES) for level in LEVELS]


def whole(factor: Fraction = Fraction(1)) -> hr.Profile:
    """The exact promise of all 80 queries together."""
    return hr.compose([(hr.DiscreteGaussian(sigma2), n) for sigma2, n in uses(factor)])


def both(profile: hr.Profile, delta: str) -> tuple[float, float]:
    """The ε that the Bureau states, and the exact one."""
    return profile.bureau_epsilon(delta), profile.epsilon(delta)


def deltas(profile: hr.Profile, epsilon: Float64) -> Float64:
    """The exact δ(ε) at each ε."""
    return np.array([profile.delta(float(e)) for e in epsilon])


def bureau_delta(rho: float | Fraction, epsilon: Float64) -> Float64:
    """δ(ε) as the Bureau states it, the inverse of ε = ρ + 2√(ρ ln(1/δ)); 1 for ε ≤ ρ."""
    rho = float(rho)
    return np.asarray(np.exp(-(np.maximum(epsilon - rho, 0) ** 2) / (4 * rho)), dtype=float)


def bureau_tradeoff(rho: Fraction, alphas: Float64) -> Float64:
    """T(α) that the Bureau's δ(ε) promises: the highest of its lines (Dong, Roth & Su 2022).

    Each (ε, δ) promises T(α) ≥ max(0, 1 - δ - e^ε α, e^(-ε)(1 - δ - α)) (their Equation 5).
    """
    epsilon = float(rho) + np.geomspace(1e-6, 1, 4000) * (2 * math.sqrt(float(rho) * 80))
    delta, steep = bureau_delta(rho, epsilon), np.exp(epsilon)
    best = [
        max(0.0, (1 - delta - steep * a).max(), ((1 - delta - a) / steep).max()) for a in alphas
    ]
    return np.array(best)


def exact_tradeoff(profile: hr.Profile) -> tuple[Float64, Float64]:
    """The knots (α, T(α)) of the exact trade-off curve, α rising: Theorem A.7 and (A.5), (A.6)."""
    law = atoms(profile.losses[0])
    alphas = np.concatenate(([0.0], np.cumsum(law.other_masses[::-1])))
    missed = np.concatenate((np.cumsum(law.masses)[::-1], [0.0]))
    return np.minimum(alphas, 1), np.minimum(missed, 1)


def crossing(exact_rho: Fraction, profile: hr.Profile, depth: float = 60.0) -> tuple[float, float]:
    """The largest δ, and the largest α, at which the exact curve promises less than the Bureau's.

    A test of type I error α finds at most min over ε of δ(ε) + e^ε α; where that is larger than
    with the Bureau's δ(ε), the exact promise is the weaker. The curve is symmetric: it is also the
    weaker where T is that small. δ is looked at down to e^-depth.
    """
    rho = float(exact_rho)

    def excess(epsilon: float) -> float:
        return math.log(profile.delta(epsilon)) + max(epsilon - rho, 0) ** 2 / (4 * rho)

    epsilon = np.linspace(0, rho + 2 * math.sqrt(rho * depth), 600)
    exact = deltas(profile, epsilon)
    bureau = bureau_delta(rho, epsilon)
    first = int(np.flatnonzero(exact > bureau)[0])
    root = brentq(excess, epsilon[first - 1], epsilon[first])
    alphas, steep = np.geomspace(math.exp(-depth), 0.3, 2000), np.exp(epsilon)
    weaker = [(exact + steep * a).min() > (bureau + steep * a).min() for a in alphas]
    return profile.delta(root), alphas[np.flatnonzero(weaker)[-1]]
