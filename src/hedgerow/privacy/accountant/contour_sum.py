"""The trapezoidal sum over chosen nodes of a contour, with a bound of its round-off."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np

from hedgerow.arrays import (
    Bool,
    Complex128,
    Float64,
    FloatPair,
    FloatTriple,
    Int64,
    float64,
    int64,
    int64_zeros,
    runs,
)
from hedgerow.declared import frozen
from hedgerow.kernels import kernel as compiled
from hedgerow.privacy.accountant.contour_nodes import Folded, Smoothed
from hedgerow.privacy.accountant.cumulant import UNIT_ROUNDOFF, TiltedLoss

# The few places on a vertical line where a product of periodic characteristic functions is large.
#
# The transform of a composition is Π φ_i(t · step_i)^times_i with |φ_i(v)| ≤ exp(-2B_i sin²(v/2)).
# Each factor revives at every multiple of its period 2π/step_i, but the product is above e^-Λ only
# where Σ 2 times_i B_i sin²(t step_i/2) < Λ: where all revive at once. The sieve first cuts the
# line down to the neighbourhoods of the revivals of each factor that is decisive alone, the one of
# the longest period first; then short pieces, and at last single nodes, by the whole sum.

Wave = tuple[float, float]
"""Of one factor: |step| and times · sharpness."""

Intervals = FloatPair
"""Their lower and their upper ends."""
Block = tuple[int, int]
"""The first node, and the one after the last."""

# What bounds memory (pieces at a time) and time (blocks).
_LARGEST_SIEVE = 1 << 17
_MOST_BLOCKS = 150
_SMALLEST_BLOCK = 1 << 14
_FIRST_BLOCK = 64
_CHUNK = 1 << 14
# Terms that are added in any order; their sums are added exactly.
_BLOCK = 64
# What stands for an error that no float holds: such bounds are far too wide to be reported.
HOPELESS = 1e300
# 2π in two parts, so that an angle loses nothing beyond its own rounding when turns are taken off.
_TURN, _TURN_REST = math.tau, 2.4492935982947064e-16
# Of an angle, where it is compared.
_SLACK, _SLACK_OF_ANGLE = 1e-9, 4e-15
# Of an angle: its own rounding, and that of its turns.
_TURNING = 7 * UNIT_ROUNDOFF
# Far below any bound of an error, so that nothing is divided by 0.
_VANISHED = 1e-300


def surviving_nodes(
    waves: Sequence[Wave], spacing: float, last: int, room: Callable[[int, int], float], most: int
) -> Int64 | None:
    """Return the nodes m in 0..last at which the product may be above what the room allows.

    Returns:
        Int64 in ascending order; None if they are more than ``most``, or too hard to find.
    """
    ordered = sorted((step, strength) for step, strength in waves if step * strength > 0)
    surviving: list[Int64] = [int64_zeros(0)]
    count = visited = 0
    waiting = [(block, room(*block)) for block in reversed(node_blocks(last))]
    while waiting and count <= most and visited < _MOST_BLOCKS:
        visited += 1
        (start, stop), allowed = waiting.pop()
        nodes = _block(ordered, spacing, (start, stop), allowed) if allowed > 0 else surviving[0]
        if nodes is None:
            middle = (start + stop) // 2
            waiting += [((middle, stop), allowed), ((start, middle), allowed)]
        else:
            surviving.append(nodes)
            count += nodes.size
    return None if waiting or count > most else np.concatenate(surviving)


def node_blocks(last: int) -> list[Block]:
    """Cut 0..last at 64, 128, 256, …: within a block the rest of the integrand varies little."""
    edges = [0]
    while edges[-1] <= last:
        edges.append(min(max(2 * edges[-1], _FIRST_BLOCK), last + 1))
    return list(pairwise(edges))


def _block(waves: list[Wave], spacing: float, block: Block, room: float) -> Int64 | None:
    """Return the nodes of one block; None if it should be halved first, to save memory."""
    pieces = _decisive_pieces(waves, (block[0] * spacing, (block[1] - 1) * spacing), room)
    if pieces is not None:
        nodes = _between(*_within_room(*pieces, waves, room), spacing, block)
    elif block[1] - block[0] <= _SMALLEST_BLOCK:
        nodes = np.arange(*block)
    else:
        return None
    if nodes.size > _LARGEST_SIEVE:
        return None
    times = np.asarray(nodes * spacing, dtype=np.float64)
    kept, _ = _within_room(times, times, waves, room)
    return int64(np.rint(kept / spacing))


def _decisive_pieces(waves: list[Wave], ends: tuple[float, float], room: float) -> Intervals | None:
    """Return short intervals near the revivals of every factor that alone exceeds the room."""
    decisive = [wave for wave in waves if 2 * wave[1] > room]
    steps = np.array([step for step, _ in decisive])
    radii = np.array([2 * math.asin(math.sqrt(room / (2 * each))) for _, each in decisive])
    low, high, next_low, next_high = np.empty((4, 2 * _LARGEST_SIEVE))
    low[0], high[0] = ends
    many = _sieve(steps, radii, low, high, next_low, next_high)
    if many < 0:
        return None
    low, high = low[:many], high[:many]
    count = _pieces(low, high, waves)
    if count.sum() > _LARGEST_SIEVE:
        return None
    source = np.repeat(np.arange(low.size), count)
    length = ((high - low) / count)[source]
    start = low[source] + runs(0, count) * length
    return start, start + length


@compiled
def _sieve(
    steps: Float64,
    radii: Float64,
    low: Float64,
    high: Float64,
    next_low: Float64,
    next_high: Float64,
) -> int:
    """Cut an interval down to where each t · step is within its radius of a multiple of 2π.

    Returns:
        How many intervals there are, at the beginning of ``low`` and ``high``; -1 if too many.
    """
    count = 1
    for j in range(len(steps)):
        step = steps[j]
        kept = 0
        revivals = 0.0
        for i in range(count):
            revivals += _revivals(low[i] * step, high[i] * step, radii[j])
        if revivals > _LARGEST_SIEVE:
            return -1
        for i in range(count):
            # more than the round-off of an angle, so that bounds do not hang on the last digit
            wide = min(radii[j] + (_SLACK + _SLACK_OF_ANGLE * (high[i] * step)), math.pi)
            first = np.ceil((low[i] * step - wide) / _TURN)
            for turn in range(int(_revivals(low[i] * step, high[i] * step, wide))):
                middle = _TURN * (first + turn)
                start = max(low[i], (middle - wide) / step)
                stop = min(high[i], (middle + wide) / step)
                if start <= stop:
                    if kept == len(next_low):
                        return -1
                    next_low[kept] = start
                    next_high[kept] = stop
                    kept += 1
        low[:kept] = next_low[:kept]
        high[:kept] = next_high[:kept]
        count = kept
    return count


@compiled
def _revivals(low: float, high: float, radius: float) -> float:
    """Return how many multiples of 2π lie within ``radius`` of an interval of angles."""
    turns: float = np.floor((high + radius) / _TURN) - np.ceil((low - radius) / _TURN) + 1
    return max(turns, 0.0)


def _pieces(low: Float64, high: Float64, waves: list[Wave]) -> Int64:
    """Return how many pieces to cut each interval into, so that most factors turn little."""
    weight = sum(strength for _, strength in waves)
    turning = sum(strength * step * step for step, strength in waves)
    shortest = math.sqrt(weight / turning) if turning > 0 else math.inf
    return int64(np.maximum(np.ceil((high - low) / shortest), 1))


def _within_room(low: Float64, high: Float64, waves: list[Wave], room: float) -> Intervals:
    """Return the intervals in which Σ 2 times_i B_i sin²(t step_i/2) can be at most ``room``."""
    steps, strengths = float64(waves).reshape(-1, 2).T.copy()
    keep = np.empty(low.size, dtype=np.bool_)
    _mark_within_room(low, high, steps, strengths, room, keep)
    return low[keep], high[keep]


@compiled
def _mark_within_room(
    low: Float64,
    high: Float64,
    steps: Float64,
    strengths: Float64,
    room: float,
    keep: Bool,
) -> None:
    for i in range(len(low)):
        spent = 0.0
        for j in range(len(steps)):
            step = steps[j]
            middle = _TURN * np.rint((low[i] + high[i]) * (step / 2 / _TURN))
            away = max(low[i] * step - middle, middle - high[i] * step)
            away = min(max(away - (_SLACK + _SLACK_OF_ANGLE * high[i] * step), 0.0), math.pi)
            # sin y ≥ y - y³/3! + y⁵/5! - y⁷/7!, which is short of it by 2e-4 at most up to π/2
            half = away / 2
            square = half * half
            sine = half * (1 - square / 6 * (1 - square / 20 * (1 - square / 42)))
            spent += 2 * strengths[j] * sine * sine
            if spent > room:
                break
        keep[i] = spent <= room


def _between(low: Float64, high: Float64, spacing: float, block: Block) -> Int64:
    """Return the nodes in ascending, slightly widened intervals, each once."""
    start, stop = block
    first = int64(np.clip(np.ceil(low / spacing - 1e-6), start, stop))
    end = int64(np.clip(np.floor(high / spacing + 1e-6) + 1, start, stop))
    before = np.concatenate([np.full(1, start), np.maximum.accumulate(end)])[: end.size]
    fresh = np.maximum(first, before)
    return runs(fresh, np.maximum(end - fresh, 0))


@frozen
class Product:
    """Π φ_i(t · step_i)^times_i e^(it·lag): the transform on the line, 1 at t = 0.

    Attributes:
        factors: each tilted loss with its times.
        lag: the loss where all X = 0, less the point at which δ is asked.
    """

    factors: tuple[tuple[TiltedLoss, int], ...]
    lag: Fraction


def weighted_sums(
    product: Product, kernel: Folded | Smoothed, tilt: float, spacing: float, nodes: Int64
) -> tuple[Float64, float]:
    """Return (h/2π) Σ over ±nodes of the product times each weight, and a bound of its error.

    Returns:
        The sums (3), and a bound of the absolute error of each.
    """
    sums = []
    errors = []
    for start in range(0, nodes.size, _CHUNK):
        chunk = nodes[start : start + _CHUNK]
        height = np.asarray(chunk * spacing, dtype=np.float64)
        share = np.where(chunk == 0, 1.0, 2.0) * (spacing / math.tau)
        with np.errstate(over="ignore", invalid="ignore"):
            modulus, angle, error = _polar(product, height)
        values = (modulus * np.exp(1j * angle) * kernel.weights(tilt, height)).real * share
        sums.append([_sum(row) for row in values])
        # A weight is right to 200 units (sums and products of a few elementary functions), a sum of
        # _BLOCK terms, in any order, to _BLOCK units of its terms.
        units = (200 + _BLOCK) * UNIT_ROUNDOFF
        bound = kernel.envelope(tilt, height) * share * (error + units * modulus)
        errors.append(_sum(np.fmin(bound, HOPELESS)))
    total = np.array([math.fsum(column) for column in zip(*sums, strict=True)])
    return total, math.fsum(errors) * (1 + 1e-6)


def _sum(terms: Float64) -> float:
    return math.fsum(np.add.reduceat(terms, np.arange(0, terms.size, _BLOCK)))


def _polar(product: Product, height: Float64) -> FloatTriple:
    """Return modulus and angle of the product at each height, and a bound of its error.

    With u the unit round-off, the angle t · step, less its turns, is right to 7u|t · step|. It
    enters φ by its centre (an angle) and by φ₀, whose error adds up to q relative to |φ₀|; the
    power times of (1+q), less 1, is the relative error of the modulus. Sums of k terms err by at
    most k + 10 units of the sum of their moduli.
    """
    lag = float(product.lag)
    coins, reach = _coins(product, height)
    log_sum = np.zeros(height.shape, dtype=np.complex128)
    angle = height * lag
    turned = np.abs(height * lag)
    blurred = np.zeros_like(height)
    logs = np.zeros_like(height)
    inflated = np.log(reach / np.maximum(np.abs(coins), _VANISHED))
    for factor, times in product.factors:
        if factor.chance is not None:
            continue
        full = height * factor.step
        reduced = _reduced(full)
        doubt = _TURNING * np.abs(full)
        log_factor = factor.log_characteristic(reduced)
        log_sum += times * log_factor
        logs += times * np.abs(log_factor)
        angle += times * factor.centre * reduced
        turned += times * abs(factor.centre) * np.abs(reduced)
        blurred += times * abs(factor.centre) * doubt
        error = factor.error * UNIT_ROUNDOFF + factor.spread * doubt
        inflated += times * np.log1p(error * np.exp(-log_factor.real))
    modulus = np.exp(log_sum.real) * np.maximum(np.abs(coins), _VANISHED)
    units = (len(product.factors) + 10) * (turned + logs) + 20
    blurred += units * UNIT_ROUNDOFF
    error = modulus * (np.expm1(inflated) + np.exp(inflated) * blurred)
    return modulus, angle + log_sum.imag + np.angle(coins), error


def _coins(product: Product, height: Float64) -> tuple[Complex128, Float64]:
    """Return the product of all φ₀^times of losses with two atoms, and Π (|φ₀| + error)^times."""
    coins = [(factor, times) for factor, times in product.factors if factor.chance is not None]
    steps = np.array([factor.step for factor, _ in coins])
    chances = float64([factor.chance for factor, _ in coins])
    errors = np.array([factor.error for factor, _ in coins]) * UNIT_ROUNDOFF
    often = int64([times for _, times in coins])
    value = np.empty(height.shape, dtype=np.complex128)
    reach = np.empty_like(height)
    _multiply_coins(height, steps, chances, errors, often, value, reach)
    # 3u a product of complex numbers, u and a rounded sum in the other, for each of Σ times
    reach *= 1 + (8 * float(often.sum()) + 20) * UNIT_ROUNDOFF
    return value, np.maximum(reach, _VANISHED)


@compiled
def _multiply_coins(
    height: Float64,
    steps: Float64,
    chances: Float64,
    errors: Float64,
    often: Int64,
    value: Complex128,
    reach: Float64,
) -> None:
    for node in range(len(height)):
        product = 1.0 + 0.0j
        farthest = 1.0
        for i in range(len(steps)):
            full = height[node] * steps[i]
            turns = np.rint(full / _TURN)
            reduced = (full - turns * _TURN) - turns * _TURN_REST
            chance = chances[i]
            times = often[i]
            factor = complex(1 - chance + chance * np.cos(reduced), chance * np.sin(reduced))
            far = np.sqrt(factor.real**2 + factor.imag**2) + errors[i] + _TURNING * abs(full)
            while times:  # powers by squaring
                if times & 1:
                    product, farthest = product * factor, farthest * far
                times >>= 1
                if times:
                    factor, far = factor * factor, far * far
        value[node] = product
        reach[node] = farthest


def _reduced(angle: Float64) -> Float64:
    """Return the angle less the nearest multiple of 2π."""
    turns = np.rint(angle / math.tau)
    return (angle - turns * math.tau) - turns * _TURN_REST
