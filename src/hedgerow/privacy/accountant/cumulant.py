"""Transforms of privacy losses on a vertical line: E[e^(cL)] for real c, and how it turns beyond.

With L = origin + step · X for an integer X, and φ the characteristic function of X under the law of
L tilted by c (reweighed with e^(cL)), which has period 2π and φ(0) = 1,

    E[e^((c+it)L); L < ∞] = E[e^(cL); L < ∞] · e^(it·origin) · φ(t·step).

The formulas for each kind of loss: `docs/proofs/accounting.md`, "Transforms of privacy losses".
"""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from hedgerow.arrays import Complex128, Float64
from hedgerow.declared import frozen
from hedgerow.noise.loss import GaussianLoss, LaplaceLoss, Loss, Losses, PairLoss

UNIT_ROUNDOFF = 2.0**-53

# From σ² = 1 on Poisson's side needs k = -1, 0, 1 only: the others are below 1e-18 of φ(0).
# Below, the atoms within 9 of the largest are all but e^-45 of the sum.
_POISSON_SIGMA2 = 1.0
_ATOMS = np.arange(-9.0, 10.0)
# From σ² = 9 on k = 0 alone is φ, to 2 e^(-π²σ²/2) < 2e-19.
_ONE_TERM_SIGMA2 = 9.0


@frozen
class TiltedLoss:
    """One loss under its law tilted by c: its φ(v) = e^(i·centre·v) φ₀(v), and bounds for it.

    Attributes:
        step: of the lattice of the loss, positive or negative.
        origin: the loss where X = 0, exact.
        centre: near the mean of X, so that φ₀ turns little about v = 0.
        spread: at least E|X - centre|, hence at least |φ₀'|.
        sharpness: B with |φ(v)| ≤ exp(-2B sin²(v/2)) for all v, rounded down.
        error: of the computed φ₀, absolute, in units of round-off.
        log_characteristic: a logarithm of φ₀ at angles in [-π, π].
        chance: P(X = 1) where X is 0 or 1, and centre is 0; else None.
    """

    step: float
    origin: Fraction
    centre: float
    spread: float
    sharpness: float
    error: float
    log_characteristic: Callable[[Float64], Complex128]
    chance: float | None = None


def cumulant(losses: Losses, tilt: Float64) -> Float64:
    """Return K(c) = Σ times · log E[e^(cL); L < ∞] for each real c > -1/2 in ``tilt``."""
    total = np.zeros_like(tilt)
    for loss, times in losses:
        total += times * _log_moment(loss, tilt)
    return total


def cumulant_error(losses: Losses, tilt: float) -> float:
    """Return a bound of the absolute round-off of K(c).

    The two parts of each log-moment, each right to 8 units of itself (products, a quotient, a
    logarithm) and 60 units of 1 (a sum of at most 19 positive terms, each an exponential).
    """
    units = 0.0
    for loss, times in losses:
        outer = abs(float(_exponent(loss, np.array([tilt]))[0]))
        whole = abs(float(_log_moment(loss, np.array([tilt]))[0]))
        units += times * (60 + (8 + len(losses)) * (2 * outer + whole))
    return units * UNIT_ROUNDOFF


def tilt_loss(loss: Loss, tilt: float) -> TiltedLoss:
    """Return the loss under its law tilted by ``tilt`` > 0."""
    if isinstance(loss, GaussianLoss):
        wide = loss.sigma2 >= _POISSON_SIGMA2
        return _wide_gaussian(loss, tilt) if wide else _narrow_gaussian(loss, tilt)
    return _geometric(loss, tilt)


def _log_moment(loss: Loss, tilt: Float64) -> Float64:
    if isinstance(loss, GaussianLoss):
        correction = _log_theta_ratio(float(loss.sigma2), tilt * loss.shift)
    else:
        rate, shift, log_mass = _geometric_parts(loss)
        correction = log_mass + np.log(_geometric_sum(rate, shift, (1 + 2 * tilt) * rate).real)
    return _exponent(loss, tilt) + correction


def _exponent(loss: Loss, tilt: Float64) -> Float64:
    """Return what stands before the logarithm of a sum in the log-moment."""
    if isinstance(loss, GaussianLoss):
        return (tilt * tilt + tilt) * float(loss.offset)
    return tilt * float(-loss.offset)


def _log_theta_ratio(sigma2: float, centre: Float64) -> Float64:
    """Return log R(a)/R(0) at each a; it depends on a mod 1 only."""
    fraction = centre - np.rint(centre)
    if sigma2 >= _POISSON_SIGMA2:
        first = 2 * math.exp(-2 * math.pi**2 * sigma2)
        return np.log1p(first * np.cos(2 * math.pi * fraction)) - math.log1p(first)
    weights = _narrow_weights(sigma2, fraction[..., None])
    at_zero = _narrow_weights(sigma2, np.zeros(1)).sum()
    return np.asarray(
        np.log(weights.sum(axis=-1)) - np.log(at_zero) - fraction * fraction / (2 * sigma2)
    )


def _narrow_weights(sigma2: float, fraction: Float64) -> Float64:
    """Return e^(-((y-f)²-f²)/2σ²) at y = -9..9: tilted masses about the integer nearest to a."""
    return np.exp(_ATOMS * (2 * fraction - _ATOMS) / (2 * sigma2))


def _wide_gaussian(loss: GaussianLoss, tilt: float) -> TiltedLoss:
    """Use Poisson summation: φ₀(v) = Σ_k e^(-σ²(v-2πk)²/2 - 2πika) / Σ_k cos(2πka) e^(-2π²σ²k²)."""
    sigma2 = float(loss.sigma2)
    centre = tilt * loss.shift
    turn = 2j * math.pi * (centre - round(centre))
    total = 1 + 2 * math.exp(-2 * math.pi**2 * sigma2) * math.cos(turn.imag)

    def log_characteristic(angle: Float64) -> Complex128:
        if sigma2 >= _ONE_TERM_SIGMA2:
            return np.asarray(-sigma2 / 2 * angle * angle, dtype=np.complex128)
        terms = sum(
            np.exp(-sigma2 / 2 * (angle - 2 * math.pi * k) ** 2 - k * turn) for k in (-1, 0, 1)
        )
        return _safe_log(terms / total)

    few = sigma2 < _ONE_TERM_SIGMA2
    return TiltedLoss(
        step=float(loss.step),
        origin=loss.offset,
        centre=centre,
        spread=1.01 * math.sqrt(sigma2),
        sharpness=sigma2 * (1 - 1e-6),
        error=60 + (centre if few else 0.0),  # a·round-off in a turns k = ±1, less than 0.1 of φ
        log_characteristic=log_characteristic,
    )


def _narrow_gaussian(loss: GaussianLoss, tilt: float) -> TiltedLoss:
    """Sum over the atoms; the bounds are those of `_wide_gaussian`.

    The round-off of a moves each weight by |y|/σ² of it, hence φ₀ by at most 2 E|y|/σ².
    """
    sigma2 = float(loss.sigma2)
    whole = round(tilt * loss.shift)
    weights = _narrow_weights(sigma2, np.array([tilt * loss.shift - whole]))
    masses = weights / weights.sum()
    mean = float(masses @ _ATOMS)
    spread = 1.01 * float(masses @ np.abs(_ATOMS))

    def log_characteristic(angle: Float64) -> Complex128:
        turn = np.exp(1j * angle)
        return _safe_log(np.polynomial.polynomial.polyval(turn, masses) / turn**9)

    return TiltedLoss(
        step=float(loss.step),
        origin=loss.offset,
        centre=float(whole),
        spread=spread,
        sharpness=float(masses @ (_ATOMS - mean) ** 2) * (1 - 1e-6),
        error=250 + 3 * spread / sigma2 * abs(tilt * loss.shift),
        log_characteristic=log_characteristic,
    )


def _geometric_parts(loss: LaplaceLoss | PairLoss) -> tuple[float, int, float]:
    """Return 1/scale, s and log P[L < ∞]; a pair is a Laplace loss of shift 1 and scale 1/ε."""
    if isinstance(loss, LaplaceLoss):
        return float(1 / loss.scale), loss.shift, 0.0
    return float(loss.epsilon), 1, log_finite(loss)


def log_finite(loss: Loss) -> float:
    """Return log P[L < ∞], to 4 units of round-off of itself."""
    if not isinstance(loss, PairLoss):
        return 0.0
    if loss.delta < Fraction(1, 2):
        return math.log1p(-float(loss.delta))
    return math.log(1 - loss.delta)


def _geometric_sum(rate: float, shift: int, exponent: Float64 | Complex128) -> Complex128:
    """Return Σ_x P(x) r^x / q^x over x = 0..s for r = e^-exponent and q = e^-rate.

    P(0) = 1/(1+q), P(x) = (1-q)/(1+q) q^x, P(s) = q^s/(1+q): noise at or below 0, x, or at least s.
    The inner sum is r (1 - r^(s-1))/(1 - r).
    """
    total = 1 + np.exp(-shift * exponent)
    if shift > 1:
        inner = np.exp(-exponent) * np.expm1(-(shift - 1) * exponent) / np.expm1(-exponent)
        total = total - math.expm1(-rate) * inner
    return np.asarray(total / (1 + math.exp(-rate)), dtype=np.complex128)


def _geometric(loss: LaplaceLoss | PairLoss, tilt: float) -> TiltedLoss:
    """Tilt L = s/scale - (2/scale) X with the geometric law of `_geometric_sum`."""
    rate, shift, _ = _geometric_parts(loss)
    falling = (1 + 2 * tilt) * rate
    total = float(_geometric_sum(rate, shift, np.array(falling)).real)

    def log_characteristic(angle: Float64) -> Complex128:
        # X counts downwards from the largest loss; the step below is negative instead.
        point = np.asarray(falling + 1j * -angle, dtype=np.complex128)
        return _safe_log(_geometric_sum(rate, shift, point) / total)

    return TiltedLoss(
        step=-float(loss.step),
        origin=-loss.offset,
        centre=0.0,
        spread=float(shift),
        sharpness=_neighbouring(rate, shift, falling) / total**2 * (1 - 1e-9),
        error=200 + 30 * shift,
        log_characteristic=log_characteristic,
        chance=math.exp(-falling) / (1 + math.exp(-falling)) if shift == 1 else None,
    )


def _neighbouring(rate: float, shift: int, falling: float) -> float:
    """Return Σ_x P(x) P(x+1) of the law in `_geometric_sum` before it is divided by its total."""
    end = 1 / (1 + math.exp(-rate))
    inner = -math.expm1(-rate) / (1 + math.exp(-rate))
    if shift == 1:
        return end * end * math.exp(-falling)
    ends = end * inner * (math.exp(-falling) + math.exp(-(2 * shift - 1) * falling))
    pairs = math.expm1(-2 * (shift - 2) * falling) / math.expm1(-2 * falling)
    return ends + inner * inner * math.exp(-3 * falling) * pairs


def _safe_log(values: Complex128) -> Complex128:
    """Return the logarithm, of 1e-30 where there is less: far below every bound of the error."""
    return np.log(np.where(np.abs(values) < 1e-30, 1e-30, values))
