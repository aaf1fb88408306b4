"""Judges of the accountants: δ and the trade-off of small compositions, by direct convolution.

Nothing here is shared with the package but the three loss records. One use is listed atom by atom
from its definition (the noise's law and the ratio of two masses), not from the closed forms of
`loss.py`. Masses are integers, multiples of 2^-BITS rounded down; the convolution is exact integer
arithmetic, so what an atom lacks is known: `enclosure` returns proved bounds.
"""

from collections import defaultdict
from fractions import Fraction

import mpmath
from mpmath import mp, mpf

from hedgerow.privacy.loss import GaussianLoss, LaplaceLoss, Loss, Losses, PairLoss

BITS = 420
ONE = 1 << BITS
mp.prec = BITS + 60

Atoms = dict[Fraction, int]


def atoms(loss: Loss) -> tuple[Atoms, int]:
    """Finite loss → its mass times 2^BITS rounded down, and the mass at ∞ likewise."""
    if isinstance(loss, PairLoss):
        return pair_atoms(loss)
    weights = {x: noise_weight(loss, x) for x in support(loss)}
    normaliser = mpmath.fsum(weights.values()) if isinstance(loss, GaussianLoss) else whole(loss)
    found: Atoms = defaultdict(int)
    for x, weight in weights.items():
        found[log_ratio(loss, x)] += scaled(weight / normaliser)
    return dict(found), 0


def noise_weight(loss: GaussianLoss | LaplaceLoss, x: int) -> mpf:
    if isinstance(loss, GaussianLoss):
        return mpmath.exp(-number(x * x / (2 * loss.sigma2)))
    return mpmath.exp(-number(abs(x) / loss.scale))


def log_ratio(loss: GaussianLoss | LaplaceLoss, x: int) -> Fraction:
    """ln P(x)/Q(x), Q being P moved by -shift: P(x) ∝ w(x), Q(x) ∝ w(x + shift)."""
    moved = x + loss.shift
    if isinstance(loss, GaussianLoss):
        return Fraction(moved * moved - x * x) / (2 * loss.sigma2)
    return (abs(moved) - abs(x)) / loss.scale


def support(loss: GaussianLoss | LaplaceLoss) -> range:
    """All x whose mass reaches 2^-BITS, and some more."""
    if isinstance(loss, GaussianLoss):
        reach = int(mpmath.sqrt(2 * number(loss.sigma2) * BITS)) + 2
    else:
        reach = int(number(loss.scale) * BITS) + loss.shift + 2
    return range(-reach, reach + 1)


def whole(loss: LaplaceLoss) -> mpf:
    """Σ_x e^(-|x|/scale) over all integers."""
    q = mpmath.exp(-number(1 / loss.scale))
    return (1 + q) / (1 - q)


def pair_atoms(loss: PairLoss) -> tuple[Atoms, int]:
    up = mpmath.exp(number(loss.epsilon))
    finite = number(1 - loss.delta)
    found: Atoms = defaultdict(int)
    found[loss.epsilon] += scaled(finite * up / (1 + up))
    found[-loss.epsilon] += scaled(finite / (1 + up))
    return dict(found), scaled(number(loss.delta))


def composed(losses: Losses) -> tuple[Atoms, int]:
    """The composition's finite atoms and the mass at ∞ (all times 2^BITS, rounded down)."""
    total: Atoms = {Fraction(0): ONE}
    finite = mpf(1)
    for loss, times in losses:
        one, _ = atoms(loss)
        finite *= number(1 - loss.delta) ** times if isinstance(loss, PairLoss) else 1
        for _ in range(times):
            total = convolved(total, one)
    return total, scaled(1 - finite)


def convolved(left: Atoms, right: Atoms) -> Atoms:
    found: Atoms = defaultdict(int)
    for l, p in left.items():
        for r, q in right.items():
            found[l + r] += p * q
    return {l: mass >> BITS for l, mass in found.items() if mass >> BITS}


def delta(losses: Losses, epsilon: float | Fraction) -> mpf:
    """P[L = ∞] + Σ_{l > ε} p(l) (1 - e^(ε - l)), to about 100 digits after the point."""
    finite, infinite = composed(losses)
    at = Fraction(epsilon)
    terms = [mass * -mpmath.expm1(number(at - l)) for l, mass in finite.items() if l > at]
    return (infinite + mpmath.fsum(terms)) / ONE


def enclosure(losses: Losses, epsilon: float | Fraction) -> tuple[mpf, mpf]:
    """Proved bounds of δ(ε).

    Every term is rounded down, so the sum is a lower bound up to the working precision; what is
    missing is at most the mass that all roundings lost, each loss factor being at most 1.
    """
    finite, infinite = composed(losses)
    lost = (ONE - sum(finite.values()) - infinite + 1) / mpf(ONE)
    value = delta(losses, epsilon)
    slack = mpf(2) ** -(BITS - 10)
    return value - slack, value + lost + slack


def tradeoff(losses: Losses, alpha: Fraction) -> mpf:
    """The least type II error at type I error α, Q being the null hypothesis, by Neyman-Pearson.

    Reject where the loss is large: first ∞, which Q never takes, then atom by atom from above.
    """
    finite, infinite = composed(losses)
    spent, caught = mpf(0), mpf(infinite) / ONE
    for l in sorted(finite, reverse=True):
        p = mpf(finite[l]) / ONE
        q = p * mpmath.exp(-number(l))
        if spent + q >= number(alpha):
            return 1 - caught - p * (number(alpha) - spent) / q
        spent, caught = spent + q, caught + p
    return mpf(0)


def number(value: Fraction | int) -> mpf:
    exact = Fraction(value)
    return mpf(exact.numerator) / exact.denominator


def scaled(mass: mpf) -> int:
    """The mass times 2^BITS, rounded down (and a little more, so that it never rounds up)."""
    return max(0, int(mpmath.floor(mass * ONE * (1 - mpf(2) ** -(BITS + 40)))))
