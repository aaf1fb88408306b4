"""Zhu, Figure 6: the error after projection converges to the noise."""

import numpy as np

from studies.page import Row, Study, markdown
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
    gaps = {n: _gap(n) for n in SIZES}
    curve = "curve, no number printed: it falls to 0, and so does ours"
    rows = [
        Row("greatest distance of distribution functions falls with n (1: yes)", 1.0,
            float(np.all(np.diff(list(gaps.values())) < 0))),
        *(Row(f"greatest distance of distribution functions, n = {n}", None, gaps[n], reason=curve)
          for n in SIZES),
    ]  # fmt: skip
    for n in SIZES[:3]:
        noise = rng.laplace(size=(RUNS, n))
        error = np.abs(noise[:, 0] - noise.mean(axis=1))
        seen = float((error > 1).mean()) / 2
        expected = float(LaplaceProjection(n, 1.0).tail(np.array([1.0]))[0])
        sure = np.sqrt(seen * (1 - 2 * seen) / 2 / RUNS)
        rows.append(Row(f"P(error > λ), n = {n}: {RUNS:,} runs beside the closed form",
                        expected, seen, float(sure)))  # fmt: skip
    text = TEXT + markdown(
        ["n", "variance / λ²", "greatest distance", "P(error > λ)", "of the noise"],
        [[n, projected_variance(2.0, n), gaps[n],
          float(LaplaceProjection(n, 1.0).tail(np.array([1.0]))[0]), float(np.exp(-1) / 2)]
         for n in SIZES],
    )  # fmt: skip
    return Study("Zhu, Figure 6", "convergence to the noise", text, tuple(rows), (_picture(),))


def _gap(n: int) -> float:
    tail = LaplaceProjection(n, 1.0).tail(REACH)
    return float(np.abs(tail - np.exp(-REACH) / 2).max())


def _picture() -> str:
    figure, (left, right) = panels(2)
    middles = (REACH[1:] + REACH[:-1]) / 2
    for n, colour in zip(SIZES, COLOURS, strict=True):
        tail = LaplaceProjection(n, 1.0).tail(REACH)
        density = -np.diff(tail) / np.diff(REACH)
        both = np.concatenate([-middles[::-1], middles])
        left.plot(both, np.concatenate([density[::-1], density]), color=colour, label=f"n = {n}")
        right.plot(REACH, tail, color=colour, label=f"n = {n} (ours)")
    wide = np.linspace(-6, 6, 601)
    left.plot(wide, np.exp(-np.abs(wide)) / 2, "k:", label="Laplace noise")
    right.plot(REACH, np.exp(-REACH) / 2, "k:", label="Laplace noise")
    left.set(xlabel="error / λ", ylabel="density (ours)", xlim=(-4, 4))
    right.set(xlabel="x / λ", ylabel="P(error > x)", yscale="log", ylim=(1e-3, 0.6))
    right.legend(fontsize=8, frameon=False)
    return save(figure, "zhu-figure_6")
