"""Figure 1 and Lemmas III.1, III.2, IV.3, IV.4: errors of CDFs of 256 bins."""

from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from scipy.optimize import brentq

from hedgerow.arrays import Float64
from hedgerow.distribution.branching import best_branching
from hedgerow.noise.mechanisms import DiscreteLaplace
from studies.page import Row, Study, mean_of
from studies.rameshwar.covering import (
    covering_error,
    covering_sums,
    equal_factors_error,
    range_queries_error,
    refined_covering_sums,
    refined_error,
)
from studies.rameshwar.trees import TreeRelease, trimmed_error
from studies.showing import panels, save

BINS = 256
TOTAL = 100_000
RUNS = 10_000
SEED = 20240521
TREES = {"binary tree (Theorem IV.1)": (2,) * 8, "4-ary tree": (4,) * 4, "16-ary tree": (16, 16)}

TEXT = """K = 256 bins, replace-one neighbours, N public; N² E₂, the expected squared ℓ2 error of
the cumulative counts (records²). The paper draws the curves over ε and prints no number; all are
constants over ε², so ε = 1 is enough. *Paper* is the value of its formula there, *ours* the mean of
{runs:,} simulated releases with Laplace noise, through the library's covering sums.

**Reproduced.** All formulas, within Monte Carlo error, and both claims of the text: the histogram
is better than the binary tree at this K, and of the curves the 16-ary tree is the lowest. The best
equal factor is {beta:.3f}; the paper's "roughly 16.79" is a little low.

**Hedgerow.** Least squares over the whole tree with the public total, integer noise, tree
and shares designed for it ({branching}, shares {shares}): {gain:.2f} times less than the lowest of
the figure, {refined:.2f} times less than the two-step refinement of Appendix B.
"""


def simulated(release: Callable[[Generator], Float64]) -> tuple[float, float]:
    """The mean squared error of cumulative counts over releases of an empty table, and its error.

    All these estimates are linear, so the table does not matter; the last count is known.
    """
    rng = np.random.default_rng(SEED)
    return mean_of(np.array([np.square(release(rng)[:-1]).sum() for _ in range(RUNS)]))


def tree(branching: tuple[int, ...], *, refined: bool = False) -> Callable[..., Float64]:
    """Covering sums, or the refined ones, of a tree with equal budgets at ε = 1."""
    sizes = np.cumprod(branching)
    scale = 2.0 * len(branching)

    def release(rng: Generator) -> Float64:
        levels = [rng.laplace(0, scale, size) for size in sizes]
        if refined:
            return refined_covering_sums(levels, branching, BINS, 0, [2 * scale**2] * len(sizes))
        return covering_sums(levels, branching, BINS, 0)

    return release


def main() -> Study:
    """Compare formulas and simulations, and write the page and the picture."""
    design = best_branching(BINS, mechanism=DiscreteLaplace)
    own = TreeRelease(design, 1.0)
    empty = np.zeros(BINS, dtype=np.int64)
    methods: dict[str, tuple[float, Callable[..., Float64]]] = {
        "noise on every cumulative count (Lemma III.1)": (
            range_queries_error(BINS, 1),
            lambda rng: rng.laplace(0, BINS - 1, BINS),
        ),
        "histogram (Lemma III.2)": (
            covering_error((BINS,), [1]),
            lambda rng: np.cumsum(rng.laplace(0, 2, BINS)),
        ),
        **{
            name: (covering_error(factors, [1 / len(factors)] * len(factors)), tree(factors))
            for name, factors in TREES.items()
        },
        "16-ary tree, refined (Lemma IV.4)": (
            refined_error(16, 2, 1),
            tree((16, 16), refined=True),
        ),
    }
    rows = []
    curves = {}
    for name, (formula, release) in methods.items():
        mean, error = simulated(release)
        rows.append(Row(f"{name}: N² E₂ at ε = 1", formula, mean, error))
        curves[name] = (formula, mean)
    best = curves["16-ary tree"][0]
    refined = curves["16-ary tree, refined (Lemma IV.4)"][0]
    ours = 8.0 * BINS * trimmed_error(design, mechanism=DiscreteLaplace)
    mean, error = simulated(lambda rng: own.least_squares(own.measure(empty, rng), 0))
    reason = "ours: least squares over a designed tree, beside the paper's best of the figure"
    beta = brentq(lambda b: np.log(b) - 3 * (b - 1) / b, 3, 100)
    whole = min(range(2, 200), key=lambda b: equal_factors_error(BINS, b, 1))
    rows += [
        Row("Hedgerow: N² E₂ at ε = 1, its formula beside the simulation", ours, mean, error),
        Row("Hedgerow: N² E₂ at ε = 1", best, ours, reason=reason),
        Row("best equal factor β, a real number (Lemma IV.3)", 16.79, beta),
        Row("best equal factor β, a whole number (Lemma IV.3)", 17, whole),
    ]
    text = TEXT.format(
        runs=RUNS,
        beta=beta,
        branching=" × ".join(map(str, design.branching)),
        shares=", ".join(f"{float(share):.2f}" for share in design.shares),
        gain=best / ours,
        refined=refined / ours,
    )
    pictures = [picture(curves, ours)]
    return Study("Rameshwar, Figure 1", "error of CDFs of 256 bins", text, rows, pictures)


def picture(curves: dict[str, tuple[float, float]], ours: float) -> str:
    """The error over ε on a logarithmic scale: the paper's formulas as lines, ours as marks."""
    figure, (axes,) = panels(size=(8, 4.4))
    epsilons = np.linspace(0.1, 2, 60)
    marks = np.array([0.25, 0.5, 1.0, 1.5, 2.0])
    colours = ("#999999", "#e69f00", "#56b4e9", "#009e73", "#0072b2", "#cc79a7")
    for colour, (name, (formula, mean)) in zip(colours, curves.items(), strict=True):
        axes.plot(epsilons, formula / epsilons**2, color=colour, lw=1.3, label=f"paper: {name}")
        label = "ours, simulated" if colour == colours[-1] else None
        axes.plot(marks, mean / marks**2, "o", color=colour, ms=5, mfc="none", label=label)
    axes.plot(epsilons, ours / epsilons**2, "k--", lw=1.5, label="ours: Hedgerow")
    axes.set(yscale="log", xlabel="ε", ylabel="N² E₂ (records²)")
    axes.legend(fontsize=7, loc="upper right")
    return save(figure, "rameshwar-figure_1", dpi=90)
