"""Section V: the best whole factors and heights at equal budgets."""

import numpy as np

from hedgerow.distribution.branching import best_branching
from hedgerow.noise.mechanisms import DiscreteLaplace
from studies.page import Row, Study, markdown
from studies.rameshwar.covering import covering_error
from studies.rameshwar.trees import trimmed_error

PRIMES = (11, 13, 17, 19, 23)

TEXT = """At equal budgets the error of a tree with factors n_1 … n_m is c m² Σ (n_i - 1), one c for
all trees of a product K̄. Here by brute force over all ways to write K̄ as a product.

**Reproduced.** Theorem V.1 (exponents as equal as can be) in all {checked} cases tried of K̄ = p^t
and a height; the bounds on the best height; Lemma V.2, where a quarter is nearer than a third.

**Hedgerow.** The paper pads K to a power of a prime, keeps equal budgets, and sums coverings.
Hedgerow uses any K̄ ≥ K, any integer factors, the best share for each level, and least squares.

{table}
"""


def exponents(t: int, height: int, least: int = 1) -> list[tuple[int, ...]]:
    """All ascending ways to write t as a sum of so many whole numbers, none below the least."""
    if height == 1:
        return [(t,)] if t >= least else []
    return [
        (first, *others)
        for first in range(least, t // height + 1)
        for others in exponents(t - first, height - 1, first)
    ]


def cost(factors: tuple[int, ...]) -> int:
    """``m² Σ (n_i - 1)``."""
    return len(factors) ** 2 * sum(n - 1 for n in factors)


def best_tree(p: int, t: int) -> tuple[int, ...]:
    """The factors of least error whose product is p^t."""
    trees = [
        tuple(p**e for e in chosen) for height in range(1, t + 1) for chosen in exponents(t, height)
    ]
    return min(trees, key=cost)


def best_equal(p: int, t: int) -> int:
    """The least cost of a tree of equal factors whose product is p^t."""
    return min(
        cost((p ** (t // height),) * height) for height in range(1, t + 1) if t % height == 0
    )


def as_the_theorem(p: int, t: int, height: int) -> bool:
    """Whether the best exponents of a height are ⌊t/m⌋ and ⌈t/m⌉ (Theorem V.1)."""
    best = min(exponents(t, height), key=lambda chosen: sum(p**e for e in chosen))
    low, more = divmod(t, height)
    return best == (low,) * (height - more) + (low + 1,) * more


def main() -> Study:
    """Search all trees, and write the page."""
    checked = [(p, t, m) for p in (2, 3, 5, 17) for t in range(2, 15) for m in range(2, t + 1)]
    agreeing = sum(as_the_theorem(*case) for case in checked)
    rows = [
        Row("Theorem V.1: part of the cases where it holds", 1, agreeing / len(checked)),
        Row("K̄ = 2^20: best height, at least (Corollary V.2)", 4, height := len(best_tree(2, 20)),
            reason=f"the bounds are 4 and 5; the optimum is {height}"),
        Row("K̄ = 2^20: best height, at most (Corollary V.2)", 5, height),
    ]  # fmt: skip
    for t in (1, 2, 3):
        height = len(best_tree(3, 6 * t))
        what = f"K̄ = 3^{6 * t}: best height, {2 * t} to {3 * t} (Corollary V.2)"
        reason = f"a bound: {2 * t} to {3 * t} holds the optimum"
        if not 2 * t <= height <= 3 * t:
            reason = "the bound does not hold"
        rows.append(Row(what, 2 * t, height, reason=reason))
    for t in PRIMES:
        found = cost(best_tree(2, t)) / best_equal(2, t)
        what = f"K̄ = 2^{t}: best tree over best of equal factors (Lemma V.2)"
        holds = "below the bound of a third" if found < 1 / 3 else "the bound does not hold"
        rows.append(Row(what, 1 / 3, found, reason=holds))
    rows += [
        Row(f"K = {p}: best height at K̄ = K (Corollary V.1)", 1, len(best_tree(p, 1)))
        for p in (17, 97, 997)
    ]
    head = "K | the paper's best tree | N² E₂ at ε = 1 | ours | N² E₂ | ratio"
    table = markdown(head, map(beaten, (100, 256, 997, 2048)), "| | ,.0f | | ,.0f | .2f")
    text = TEXT.format(checked=len(checked), table=table)
    return Study("Rameshwar, Section V", "whole factors and heights at equal budgets", text, rows)


def beaten(bins: int) -> tuple[object, ...]:
    """A line of the table: the paper's best padding to a power of a prime, and ours."""
    primes = [p for p in range(2, bins + 1) if all(p % q for q in range(2, int(p**0.5) + 1))]
    padded = ((p, int(np.ceil(np.log(bins) / np.log(p) - 1e-9))) for p in primes)
    trees = [best_tree(p, t) for p, t in padded if p**t < 4 * bins]
    theirs, paper = min((covering_error(tree, [1 / len(tree)] * len(tree)), tree) for tree in trees)
    design = best_branching(bins, mechanism=DiscreteLaplace)
    ours = 8 * bins * trimmed_error(design, mechanism=DiscreteLaplace)
    paper_named, own_named = (" × ".join(map(str, tree)) for tree in (paper, design.branching))
    return bins, paper_named, theirs, own_named, ours, ours / theirs
