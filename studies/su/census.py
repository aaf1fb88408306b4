"""The noise of the 2020 census (DHC file, allocation of 2022-08-25), and how it is priced.

Su et al., Section 3 and Table 3: ρ = 3.65 in all, ten queries a level, level i of share a_i with
discrete Gaussian noise of σ_i² = 10 / (2 a_i ρ); one person is in one count of each query.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

import numpy as np
from scipy.optimize import brentq

import hedgerow as hr
from hedgerow.arrays import Float64, FloatTriple
from hedgerow.noise.loss import Losses
from hedgerow.privacy.accountant.lattice import exp_of_fraction
from hedgerow.privacy.accountant.lattice_convolution import compose_law
from hedgerow.privacy.calibrate import matching_factor

Numbers = TypeVar("Numbers", float, Float64)
Folds = list[tuple[Fraction, int]]
"""σ² of queries, and how many have it."""

RHO = Fraction(365, 100)
QUERIES = 10
POPULATION = 331_449_281
"""Of the United States on 1 April 2020; 1e-10 is below one in so many."""


@dataclass(frozen=True, slots=True)
class Level:
    """One geographical level.

    Attributes:
        name: as in Table 1 of the paper.
        share: a_i, thousandths of ρ.
        printed: the Bureau's σ², the paper's σ² and the reduction in percent, as Table 1 has them.
    """

    name: str
    share: int
    printed: tuple[float, float, float]

    @property
    def sigma2(self) -> Fraction:
        """The Bureau's σ², unrounded."""
        return QUERIES / (2 * self.rho)

    @property
    def rho(self) -> Fraction:
        """What the ten queries cost."""
        return Fraction(self.share, 1000) * RHO

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
        return promised(uses(factor, [self]))


LEVELS = (
    Level("US", 20, (68.49, 54.19, 20.88)),
    Level("State", 274, (5.00, 4.25, 15.08)),
    Level("County", 85, (16.12, 13.28, 17.58)),
    Level("PEPG", 131, (10.46, 8.72, 16.62)),
    Level("Tract subset group", 131, (10.46, 8.72, 16.62)),
    Level("Tract subset", 238, (5.76, 4.87, 15.33)),
    Level("Optimized block group", 118, (11.61, 9.65, 16.89)),
    Level("Block", 3, (456.62, 343.27, 24.82)),
)
LEVEL = {level.name: level for level in LEVELS}


def uses(factor: Fraction = Fraction(1), levels: Sequence[Level] = LEVELS) -> Folds:
    """All 80 queries, or those of some levels, with ``factor`` of the noise variance."""
    return [(level.sigma2 * factor, QUERIES) for level in levels]


def promised(folds: Folds) -> hr.Profile:
    """The exact promise of queries together."""
    return hr.compose((hr.DiscreteGaussian(sigma2), n) for sigma2, n in folds)


def whole(factor: Fraction = Fraction(1)) -> hr.Profile:
    """The exact promise of all 80 queries together."""
    return promised(uses(factor))


def both(profile: hr.Profile, delta: str) -> tuple[float, float]:
    """The ε that the Bureau states, and the exact one."""
    return profile.bureau_epsilon(delta), profile.epsilon(delta)


def gained(stated: Numbers, exact: Numbers) -> tuple[Numbers, Numbers]:
    """By how much the exact ε is smaller, and that in percent."""
    return stated - exact, 100 * (1 - exact / stated)


def deltas(profile: hr.Profile, epsilon: Float64) -> Float64:
    """The exact δ(ε) at each ε."""
    return np.array([*map(profile.delta, epsilon.tolist())])


def power(epsilon: Float64, delta: Float64, alphas: Float64) -> Float64:
    """1 - T(α) that δ(ε) allows, min over ε of δ + e^ε α: what the best test of each α finds."""
    return np.asarray((delta + np.multiply.outer(alphas, np.exp(epsilon))).min(axis=1))


def bureau_delta(rho: float | Fraction, epsilon: Float64) -> Float64:
    """δ(ε) as the Bureau states it, the inverse of ε = ρ + 2√(ρ ln(1/δ)); 1 for ε ≤ ρ."""
    rho = float(rho)
    return np.asarray(np.exp(-(np.maximum(epsilon - rho, 0) ** 2) / (4 * rho)))


def bureau_tradeoff(rho: Fraction, alphas: Float64) -> Float64:
    """T(α) that the Bureau's δ(ε) promises: the highest of its lines (Dong, Roth & Su 2022).

    Each (ε, δ) promises T(α) ≥ max(0, 1 - δ - e^ε α, e^(-ε)(1 - δ - α)) (their Equation 5).
    """
    epsilon = float(rho) + np.geomspace(1e-6, 1, 4000) * (2 * math.sqrt(float(rho) * 80))
    delta = bureau_delta(rho, epsilon)
    flat = np.subtract.outer(-alphas, delta - 1) / np.exp(epsilon)
    return np.asarray(np.maximum(1 - power(epsilon, delta, alphas), flat.max(axis=1, initial=0)))


def exact_tradeoff(profile: hr.Profile) -> tuple[Float64, Float64]:
    """The knots (α, T(α)) of the exact trade-off curve, α rising: Theorem A.7 and (A.5), (A.6)."""
    _, masses, other_masses = halfway(profile.losses[0])
    alphas = np.concatenate(([0.0], np.cumsum(other_masses[::-1])))
    missed = np.concatenate((np.cumsum(masses)[::-1], [0.0]))
    return np.minimum(alphas, 1), np.minimum(missed, 1)


def halfway(losses: Losses) -> FloatTriple:
    """All finite losses that matter to P or to Q, ascending, and their masses P and Q.

    They come from the tilt -1/2, halfway from P to Q: absolute errors are about 1e-16 e^(ρ/4) for
    Gaussian noise of total ρ. `tradeoff` has the tails.
    """
    law = compose_law(losses, Fraction(-1, 2))
    places = float(law.first) + float(law.unit) * np.arange(len(law.masses), dtype=float)
    half = law.masses * exp_of_fraction(law.exponent)
    steep = np.clip(places / 2, -700, 700)
    return places, half * np.exp(steep), half * np.exp(-steep)


def crossing(exact_rho: Fraction, profile: hr.Profile, depth: float = 60.0) -> tuple[float, float]:
    """The largest δ, and the largest α, at which the exact curve promises less than the Bureau's.

    Where the `power` that it allows is larger than by the Bureau's δ(ε), the exact promise is the
    weaker. The curve is symmetric: it is also the weaker where T is that small. δ is looked at down
    to e^-depth.
    """
    rho = float(exact_rho)
    epsilon = np.linspace(0, rho + 2 * math.sqrt(rho * depth), 600)
    curves = deltas(profile, epsilon), bureau_delta(rho, epsilon)
    first = np.argmax(np.greater(*curves))
    root = brentq(
        lambda e: math.log(profile.delta(e) / bureau_delta(rho, e)), *epsilon[first - 1 : first + 1]
    )
    alphas = np.geomspace(math.exp(-depth), 0.3, 2000)
    weaker = np.greater(*(power(epsilon, delta, alphas) for delta in curves))
    return profile.delta(root), alphas[weaker][-1]
