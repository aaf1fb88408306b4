"""Ko, Appendix B and Figure 7: the bias of clipping grows with how unequal the counts are."""

from itertools import product

import numpy as np
from numpy.random import Generator

from hedgerow.noise.cell_error import CellError, DiscreteGaussianError, LaplaceError
from studies.page import Row, Study, drawn, markdown
from studies.showing import panels, save
from studies.zhu.skewness import bias_of_clipping, least_bias_of_clipping

TOTAL = 100
TWO = ((50, 50), (60, 40), (75, 25), (90, 10), (100, 0))
THREE = ((34, 33, 33), (50, 25, 25), (60, 30, 10), (80, 10, 10), (100, 0, 0))
EPSILONS = np.geomspace(0.01, 2, 60)
SHOWN = (0.02, 0.05, 0.1, 0.5)
PAIRS = 20_000
COLOURS = ("#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00")
TEXT = """The bias of max(0, N + noise), summed over two or three regions with 100 people in all.

What holds: the bias is least where regions are equal (Theorem 4), and more unequal counts, in
the sense of majorisation, have more of it. Checked on {pairs:,} random pairs of which one
majorises the other, with Laplace noise and, beyond the paper, with discrete Gaussian noise of
ρ = ε²/2. The proof's objective Σ e^(-Nᵢ) is that of ε = 1; its argument needs convexity of the bias
in N alone and so holds for any ε and for both kinds of noise.

The size of the effect depends on ε: with ε well below 1/N all regions behave like empty ones and
skew changes little; with ε above 1/N the bias of equal regions is negligible, and all bias comes
from small ones.

"""


def main() -> Study:
    """Draw the figure and write the page."""
    rng = np.random.default_rng(7)
    kinds = {"Laplace": LaplaceError(), "discrete Gaussian": DiscreteGaussianError()}
    rows = [
        Row(f"pairs ordered as majorisation says, {name} noise (share)", 1.0, _ordered(rng, error))
        for name, error in kinds.items()
    ]
    rows.append(Row("least bias is that of equal regions (1: yes)", 1.0, _least_is_even()))
    rows += [
        drawn(f"bias of {skewed} / {even} at ε = 0.1", _bias(0.1, skewed) / _bias(0.1, even),
              "it falls with equality, and so does ours")
        for skewed, even in ((TWO[3], TWO[0]), (THREE[3], THREE[0]))
    ]  # fmt: skip
    text = TEXT.format(pairs=PAIRS) + markdown(
        ["counts", *(f"bias at ε = {e:g}" for e in SHOWN)],
        [[str(counts), *(_bias(e, counts) for e in SHOWN)] for counts in (*TWO, *THREE)],
    )
    return Study("Ko, Appendix B", "skewed counts, more bias", text, rows, [_picture()])


def _bias(epsilon: float, counts: tuple[int, ...]) -> float:
    return bias_of_clipping(LaplaceError(), epsilon, np.array(counts, dtype=np.float64))


def _least_is_even() -> float:
    """Whether no split of the total into two or three has less bias than the even one."""
    splits = {
        n: [each for each in product(range(TOTAL + 1), repeat=n) if sum(each) == TOTAL]
        for n in (2, 3)
    }
    least = [least_bias_of_clipping(LaplaceError(), e, TOTAL, n) for e in SHOWN for n in splits]
    found = [min(_bias(e, split) for split in every) for e in SHOWN for every in splits.values()]
    return float(np.allclose(least, found, rtol=1e-12))


def _ordered(rng: Generator, error: CellError) -> float:
    """The share of random pairs whose bias is ordered as majorisation says.

    A step from rich to poor (Robin Hood) makes the majorised one of each pair.
    """
    right = []
    for epsilon in SHOWN:
        parameter = epsilon if isinstance(error, LaplaceError) else epsilon**2 / 2
        for n in rng.integers(2, 6, PAIRS // len(SHOWN)):
            skewed = rng.multinomial(TOTAL, rng.dirichlet(np.full(n, 0.5))).astype(np.float64)
            even = skewed.copy()
            rich, poor = even.argmax(), even.argmin()
            moved = rng.integers(0, (even[rich] - even[poor]) // 2 + 1)
            even[rich] -= moved
            even[poor] += moved
            less, more = (bias_of_clipping(error, parameter, each) for each in (even, skewed))
            right.append(more >= less * (1 - 1e-12))
    return float(np.mean(right))


def _picture() -> str:
    figure, both = panels(2, colours=COLOURS)
    for axes, cases in zip(both, (TWO, THREE), strict=True):
        values = [[_bias(float(e), counts) for counts in cases] for e in EPSILONS]
        axes.plot(EPSILONS, values, label=[f"{counts} (ours)" for counts in cases])
        axes.set(xscale="log", yscale="log", ylim=(1e-3, 300), xlabel="ε", ylabel="bias (records)")
        axes.legend()
    return save(figure, "ko-appendix_b")
