"""Zhu, Figure 5: how far the error after projection is from the noise, by number of cells."""

import numpy as np
from numpy.random import Generator
from scipy.stats import wasserstein_distance

from studies.page import Row, Study, drawn, markdown, mean_of
from studies.showing import OPTIMUM, UNIFORM, panels, save
from studies.zhu.projection_error import LaplaceProjection, projection_distance

SIZES = (2, 3, 5, 10, 15, 33, 67, 100, 254)
SIMULATED = (5, 15, 67)
RUNS, BATCHES = 20_000, 10
GEOMETRIC_SCALE = 2.0  # double-sided geometric noise at ε = 0.5
LAST = 80
TEXT = """Program (P_S): n cells with independent Laplace noise of scale λ, projected onto their
public sum. The figure shows the Wasserstein distance between the error of one cell before and
after; the paper draws it from samples, here it is computed: the law after projection is a mixture
of Erlang laws. In units of λ; double-sided geometric noise at ε = 0.5 by one Fourier transform.

Reproduced: the distance falls quickly with n, in the end as 1/n. Geometric noise is an integer, but
the mean that projection subtracts is not: the distance stays near a quarter of a record, 1/8 of the
scale, until that mean is well below one record (n ≈ 50), and falls as 1/√n from there.

The limit of samples: two samples of *one* law are {few:.2f} λ apart on average at the paper's 100
runs, more than any n here, and {many:.3f} λ at 80,000, more than n = 100. A curve from samples
flattens out there.

"""


def main() -> Study:
    """Draw the figure and write the page."""
    exact = {n: LaplaceProjection(n, 1.0).distance() for n in SIZES}
    masses = np.exp(-np.abs(np.arange(-LAST, LAST + 1)) / GEOMETRIC_SCALE)
    masses /= masses.sum()
    geometric = {n: projection_distance(masses, n) / GEOMETRIC_SCALE for n in SIZES}
    rng = np.random.default_rng(5)
    rows = [
        Row("distance falls with n (1: yes)", 1.0, float(np.all(np.diff(list(exact.values())) < 0)))
    ]
    claim = "it falls with n, and so does ours"
    rows += [drawn(f"distance / λ, n = {n}", exact[n], claim) for n in (2, 15, 254)]
    for n in SIMULATED:
        seen, error = _simulated(n, rng)
        rows.append(Row(f"simulation less computation, n = {n}", 0.0, seen - exact[n], error))
    text = TEXT.format(few=_floor(100, 400, rng), many=_floor(80_000, 10, rng))
    text += markdown(
        "n | Laplace noise, distance / λ | times n | geometric noise, distance / scale",
        [[n, exact[n], n * exact[n], geometric[n]] for n in SIZES],
    )
    figure, (axes,) = panels()
    axes.plot(SIZES, [*exact.values()], "o-", color=OPTIMUM, label="Laplace (ours)")
    axes.plot(SIZES, [*geometric.values()], "s--", color=UNIFORM, markersize=4,
              label="geometric, ε = 0.5 (ours)")  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="cells n", ylabel="Wasserstein distance / λ")
    picture = save(figure, "zhu-figure_5")
    return Study("Zhu, Figure 5", "distance to the noise", text, rows, [picture])


def _floor(runs: int, times: int, rng: Generator) -> float:
    """The mean distance of two samples of the noise itself, in units of λ."""
    pairs = rng.laplace(size=(times, 2, runs))
    return float(np.mean([wasserstein_distance(*pair) for pair in pairs]))


def _simulated(n: int, rng: Generator) -> tuple[float, float]:
    """The distance from samples, by coupling quantiles of large batches to the exact law's."""
    levels = (np.arange(RUNS) + 0.5) / RUNS
    laplace = np.where(levels < 0.5, np.log(2 * levels), -np.log(2 * (1 - levels)))
    found = []
    for _ in range(BATCHES):
        noise = rng.laplace(size=(RUNS, n))
        error = noise[:, 0] - noise.mean(axis=1)
        found.append(wasserstein_distance(np.concatenate([error, -error]), laplace))
    floor = 1.3 / np.sqrt(2 * RUNS)  # what a sample of the same law would show
    mean, error = mean_of(np.array(found))
    return mean, error + floor / 3
