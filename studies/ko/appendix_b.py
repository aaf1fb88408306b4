"""Ko, Appendix B and Figure 7: the bias of clipping grows with how unequal the counts are."""

import numpy as np

from hedgerow.noise.cell_error import CellError, DiscreteGaussianError, LaplaceError
from studies.page import Row, Study, markdown
from studies.showing import panels, save
from studies.zhu.skewness import bias_of_clipping, least_bias_of_clipping, majorises

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
    laplace, gaussian = LaplaceError(), DiscreteGaussianError()
    curve = "curve, no number printed: it falls with equality, and so does ours"
    rows = (
        Row("pairs ordered as majorisation says, Laplace noise (share)", 1.0,
            _ordered(rng, laplace)),
        Row("pairs ordered as majorisation says, discrete Gaussian noise (share)", 1.0,
            _ordered(rng, gaussian)),
        Row("least bias is that of equal regions (1: yes)", 1.0, _least_is_even()),
        Row("bias of (90, 10) / (50, 50) at ε = 0.1", None,
            _bias(0.1, (90, 10)) / _bias(0.1, (50, 50)), reason=curve),
        Row("bias of (80, 10, 10) / (34, 33, 33) at ε = 0.1", None,
            _bias(0.1, (80, 10, 10)) / _bias(0.1, (34, 33, 33)), reason=curve),
    )  # fmt: skip
    text = TEXT.format(pairs=PAIRS) + markdown(
        ["counts", *(f"bias at ε = {e:g}" for e in SHOWN)],
        [[str(counts), *(_bias(e, counts) for e in SHOWN)] for counts in (*TWO, *THREE)],
    )
    return Study("Ko, Appendix B", "skewed counts, more bias", text, rows, (_picture(),))


def _bias(epsilon: float, counts: tuple[int, ...]) -> float:
    return bias_of_clipping(LaplaceError(), epsilon, np.array(counts, dtype=np.float64))


def _least_is_even() -> float:
    """Whether no split of the total into two or three has less bias than the even one."""
    least = [least_bias_of_clipping(LaplaceError(), e, TOTAL, n) for e in SHOWN for n in (2, 3)]
    twos: list[tuple[int, ...]] = [(a, TOTAL - a) for a in range(TOTAL + 1)]
    threes: list[tuple[int, ...]] = [(a, *rest) for a in range(TOTAL + 1) for rest in _splits(a)]
    found = [min(_bias(e, split) for split in every) for e in SHOWN for every in (twos, threes)]
    return float(np.allclose(least, found, rtol=1e-12))


def _splits(first: int) -> list[tuple[int, int]]:
    """What two regions can have beside one with so many."""
    return [(b, TOTAL - first - b) for b in range(TOTAL + 1 - first)]


def _ordered(rng: np.random.Generator, error: CellError) -> float:
    """The share of random pairs whose bias is ordered as majorisation says.

    A step from rich to poor (Robin Hood) makes the majorised one of each pair.
    """
    right = checked = 0
    for epsilon in SHOWN:
        parameter = epsilon if isinstance(error, LaplaceError) else epsilon**2 / 2
        cells = rng.integers(2, 6, PAIRS // len(SHOWN))
        for n in cells:
            skewed = rng.multinomial(TOTAL, rng.dirichlet(np.full(n, 0.5))).astype(np.float64)
            even = skewed.copy()
            rich, poor = int(even.argmax()), int(even.argmin())
            moved = rng.integers(0, (even[rich] - even[poor]) // 2 + 1)
            even[rich] -= moved
            even[poor] += moved
            if not majorises(skewed, even):
                continue
            checked += 1
            more = bias_of_clipping(error, parameter, skewed)
            less = bias_of_clipping(error, parameter, even)
            right += more >= less * (1 - 1e-12)
    return right / checked


def _picture() -> str:
    figure, both = panels(2)
    for axes, cases in zip(both, (TWO, THREE), strict=True):
        for counts, colour in zip(cases, COLOURS, strict=True):
            values = [_bias(float(e), counts) for e in EPSILONS]
            axes.plot(EPSILONS, values, color=colour, label=f"{counts} (ours)")
        axes.set(xscale="log", yscale="log", ylim=(1e-3, 300), xlabel="ε", ylabel="bias (records)")
        axes.legend(fontsize=7, frameon=False)
    return save(figure, "ko-appendix_b")
