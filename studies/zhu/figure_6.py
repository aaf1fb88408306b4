"""Zhu, Figure 6: the error after projection converges to the noise."""

from collections.abc import Mapping

import numpy as np

from hedgerow.arrays import Float64
from studies.page import Row, Study, drawn, markdown
from studies.showing import panels, save
from studies.zhu.projection_error import LaplaceProjection, projected_variance

SIZES = (2, 5, 15, 254)
COLOURS = ("#D55E00", "#E69F00", "#56B4E9", "#0072B2")
REACH = np.linspace(0, 6, 601)
RUNS = 200_000
TEXT = """Program (P_S) with Laplace noise (λ = 1): the distribution of one cell's error, for n
cells. By Theorem 12 it is that of ((n-1) η₁ - Σ η_j)/n; here its tail is computed in closed form,
and its density is the tail's difference.

Reproduced: the density develops a peak like that of the noise, and the largest distance between the
two distribution functions falls to 0 (Theorem 14). Variances are 1 - 1/n of the noise's (Theorem
13).

"""


def main() -> Study:
    """Draw the figure and write the page."""
    rng = np.random.default_rng(6)
    one = np.array([1.0])
    tails = {n: LaplaceProjection(n, 1.0).tail(REACH) for n in SIZES}
    gaps = {n: np.abs(tail - np.exp(-REACH) / 2).max() for n, tail in tails.items()}
    beyond = {n: LaplaceProjection(n, 1.0).tail(one)[0] for n in SIZES}
    what = "greatest distance of distribution functions"
    claim = "it falls to 0, and so does ours"
    rows = [
        Row(f"{what} falls with n (1: yes)", 1.0, float(np.all(np.diff([*gaps.values()]) < 0))),
        *(drawn(f"{what}, n = {n}", gap, claim) for n, gap in gaps.items()),
    ]
    for n in SIZES[:3]:
        noise = rng.laplace(size=(RUNS, n))
        seen = (np.abs(noise[:, 0] - noise.mean(axis=1)) > 1).mean() / 2
        words = f"P(error > λ), n = {n}: {RUNS:,} runs beside the closed form"
        rows.append(Row(words, beyond[n], seen, np.sqrt(seen * (1 - 2 * seen) / 2 / RUNS)))
    text = TEXT + markdown(
        "n | variance / λ² | greatest distance | P(error > λ) | of the noise",
        ([n, projected_variance(2.0, n), gaps[n], beyond[n], np.exp(-1) / 2] for n in SIZES),
    )
    return Study("Zhu, Figure 6", "convergence to the noise", text, rows, [_picture(tails)])


def _picture(tails: Mapping[int, Float64]) -> str:
    figure, (left, right) = panels(2, colours=COLOURS)
    middles = (REACH[1:] + REACH[:-1]) / 2
    values = np.array([*tails.values()]).T
    density = -np.diff(values, axis=0) / np.diff(REACH)[:, None]
    both = np.concatenate([-middles[::-1], middles])
    left.plot(both, np.concatenate([density[::-1], density]), label=[f"n = {n}" for n in tails])
    right.plot(REACH, values, label=[f"n = {n} (ours)" for n in tails])
    wide = np.linspace(-6, 6, 601)
    left.plot(wide, np.exp(-np.abs(wide)) / 2, "k:", label="Laplace noise")
    right.plot(REACH, np.exp(-REACH) / 2, "k:", label="Laplace noise")
    left.set(xlabel="error / λ", ylabel="density (ours)", xlim=(-4, 4))
    right.set(xlabel="x / λ", ylabel="P(error > x)", yscale="log", ylim=(1e-3, 0.6))
    right.legend()
    return save(figure, "zhu-figure_6")
