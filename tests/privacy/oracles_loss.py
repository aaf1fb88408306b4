"""Judges of the accountants: δ and the trade-off of small compositions, by direct convolution.

Nothing here is shared with the package but the three loss records. One use is listed atom by atom
from its definition (the noise's law and the ratio of two masses), not from the closed forms of
`loss.py`. Masses are integers, multiples of 2^-BITS rounded down; the convolution is exact integer
arithmetic, so what an atom lacks is known: `enclosure` returns proved bounds.
"""

import math
from collections import defaultdict
from fractions import Fraction
from functools import cache

import numpy as np
from mpmath import MPContext

from hedgerow.noise.loss import GaussianLoss, PairLoss

BITS = 420
ONE = 1 << BITS
RESOLUTION = 1e-120
"""Far above what all roundings of a small composition lose together."""

mp = MPContext()  # of its own: other tests keep their precision
mp.prec = BITS + 60
mpf = mp.mpf


@cache
def atoms(loss):
    """Finite loss → its mass times 2^BITS rounded down, and the mass at ∞ likewise."""
    if isinstance(loss, PairLoss):
        return pair_atoms(loss)
    weights = {x: noise_weight(loss, x) for x in support(loss)}
    normaliser = mp.fsum(weights.values()) if isinstance(loss, GaussianLoss) else whole(loss)
    found = defaultdict(int)
    for x, weight in weights.items():
        found[log_ratio(loss, x)] += scaled(weight / normaliser)
    return dict(found), 0


def noise_weight(loss, x):
    if isinstance(loss, GaussianLoss):
        return mp.exp(-number(x * x / (2 * loss.sigma2)))
    return mp.exp(-number(abs(x) / loss.scale))


def log_ratio(loss, x):
    """ln P(x)/Q(x), Q being P moved by -shift: P(x) ∝ w(x), Q(x) ∝ w(x + shift)."""
    moved = x + loss.shift
    if isinstance(loss, GaussianLoss):
        return Fraction(moved * moved - x * x) / (2 * loss.sigma2)
    return (abs(moved) - abs(x)) / loss.scale


def support(loss):
    """All x whose mass reaches 2^-BITS, and some more."""
    if isinstance(loss, GaussianLoss):
        reach = int(mp.sqrt(2 * number(loss.sigma2) * BITS)) + 2
    else:
        reach = int(number(loss.scale) * BITS) + loss.shift + 2
    return range(-reach, reach + 1)


def whole(loss):
    """Σ_x e^(-|x|/scale) over all integers."""
    q = mp.exp(-number(1 / loss.scale))
    return (1 + q) / (1 - q)


def pair_atoms(loss):
    up = mp.exp(number(loss.epsilon))
    finite = number(1 - loss.delta)
    found = defaultdict(int)
    found[loss.epsilon] += scaled(finite * up / (1 + up))
    found[-loss.epsilon] += scaled(finite / (1 + up))
    return dict(found), scaled(number(loss.delta))


@cache
def composed(losses):
    """The composition's finite atoms and the mass at ∞ (all times 2^BITS, rounded down)."""
    listed = [(atoms(loss)[0], times) for loss, times in losses]
    parts = math.lcm(*(atom.denominator for one, _ in listed for atom in one))
    total = {0: ONE}  # whole numbers of 1/parts, which Python adds faster than fractions
    for one, times in listed:
        whole_numbers = {int(atom * parts): mass for atom, mass in one.items()}
        for _ in range(times):
            total = convolved(total, whole_numbers)
    finite = mpf(1)
    for loss, times in losses:
        finite *= number(1 - loss.delta) ** times if isinstance(loss, PairLoss) else 1
    return {Fraction(place, parts): mass for place, mass in total.items()}, scaled(1 - finite)


def convolved(left, right):
    found = defaultdict(int)
    for one, p in left.items():
        for other, q in right.items():
            found[one + other] += p * q
    return {place: mass >> BITS for place, mass in found.items() if mass >> BITS}


def delta(losses, epsilon):
    """P[L = ∞] + Σ_{l > ε} p(l) (1 - e^(ε - l)), to about 100 digits after the point."""
    finite, infinite = composed(losses)
    at = Fraction(epsilon)
    terms = [mass * -mp.expm1(number(at - atom)) for atom, mass in finite.items() if atom > at]
    return (infinite + mp.fsum(terms)) / ONE


@cache
def enclosure(losses, epsilon):
    """Proved bounds of δ(ε).

    Every term is rounded down, so the sum is a lower bound up to the working precision; what is
    missing is at most the mass that all roundings lost, each loss factor being at most 1.
    """
    finite, infinite = composed(losses)
    lost = (ONE - sum(finite.values()) - infinite + 1) / mpf(ONE)
    value = delta(losses, epsilon)
    slack = mpf(2) ** -(BITS - 10)
    return value - slack, min(mpf(1), value + lost + slack)


def tradeoff(losses, alpha):
    """The least type II error at type I error α, Q being the null hypothesis, by Neyman-Pearson.

    Reject where the loss is large: first ∞, which Q never takes, then atom by atom from above.
    """
    finite, infinite = composed(losses)
    spent, caught = mpf(0), mpf(infinite) / ONE
    for atom in sorted(finite, reverse=True):
        p = mpf(finite[atom]) / ONE
        q = p * mp.exp(-number(atom))
        if spent + q >= number(alpha):
            return 1 - caught - p * (number(alpha) - spent) / q
        spent, caught = spent + q, caught + p
    return mpf(0)


def number(value):
    exact = Fraction(value)
    return mpf(exact.numerator) / exact.denominator


def scaled(mass):
    """The mass times 2^BITS, rounded down (and a little more, so that it never rounds up)."""
    return max(0, int(mp.floor(mass * ONE * (1 - mpf(2) ** -(BITS + 40)))))


def transformed(losses, epsilon):
    """Judge: δ(ε) by FFT of the tilted masses on the common lattice."""
    parts = math.lcm(*(loss.sigma2.numerator for loss, _ in losses))
    unit = math.gcd(*(int(loss.step * parts) for loss, _ in losses)) / parts
    rho = sum(times * float(loss.offset) for loss, times in losses)
    tilt = max((epsilon - rho) / (2 * rho), 0.1)
    spread = math.sqrt(2 * rho)
    mean = rho * (1 + 2 * tilt)
    size = 1 << math.ceil(math.log2(26 * spread / unit))
    spectrum, log_moment, origin = np.ones(size // 2 + 1, dtype=complex), 0.0, Fraction(0)
    for loss, times in losses:
        sigma2, step = float(loss.sigma2), float(loss.step)
        middle = round(tilt * loss.shift)
        reach = math.ceil(13 * math.sqrt(sigma2)) + 3
        x = np.arange(middle - reach, middle + reach + 1)
        exponents = -x * x / (2 * sigma2) + tilt * step * x
        weights = np.exp(exponents - exponents.max())
        plain = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * sigma2))
        log_moment += times * (math.log(weights.sum() / plain.sum()) + exponents.max())
        masses = np.zeros(size)
        np.add.at(masses, (x - middle) * round(step / unit) % size, weights / weights.sum())
        spectrum *= np.fft.rfft(masses) ** times
        origin += times * (loss.offset + middle * loss.step)
    masses = np.maximum(np.fft.irfft(spectrum), 0)
    log_moment += tilt * float(sum(times * loss.offset for loss, times in losses))
    start = round((mean - float(origin)) / unit) - size // 2
    places = start + np.arange(size)
    above = float(origin - Fraction(epsilon)) + places * unit
    terms = np.where(above > 0, np.exp(-tilt * above) * -np.expm1(-np.maximum(above, 0)), 0.0)
    return math.fsum(terms * masses[places % size]) * math.exp(log_moment - tilt * epsilon)
