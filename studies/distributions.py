"""Distributions: OpenDP's tree, how far any tree can go, and real columns.

Writes ``docs/distributions_study.md`` and ``docs/distributions_study.png``. Noise is simulated with
a pinned seed on synthetic and public data: these are studies of error, not releases. Neighbours are
replace-one and N is public throughout, so a level under ε_i has noise of scale 2/ε_i.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl
from numpy.random import Generator

from hedgerow.arrays import Float64, Int64
from hedgerow.distribution.branching import Design, best_branching
from hedgerow.distribution.cut_error import CutError
from hedgerow.distribution.ranges import Ranges
from hedgerow.estimate.running_sums import Decoded, Strategy
from hedgerow.noise.mechanisms import DiscreteGaussian, DiscreteLaplace
from studies.opendp_tree import opendp_tree
from studies.page import ROOT, keep, markdown, mean_of, with_data
from studies.rameshwar.isotonic import isotonic_squared
from studies.rameshwar.trees import TreeRelease, Trees, level_sums, tilted, trimmed_error
from studies.showing import panels, save

Row = Sequence[object]
SEED = 20240521
MOST_BINS = 10_000
"""From so many on matrices are not made."""


def against_opendp(rng: Generator) -> str:
    """Root mean squared error of the CDF's counts on a log-normal column of 20,000 records."""
    rows, total = [], 20_000
    values = np.minimum(rng.lognormal(10.3, 0.7, total), 199_999.0)
    for bins in (100, 1000, 10_000):
        leaves = np.bincount(Ranges.equal_width("x", 0, 200_000, bins).bin(values), minlength=bins)
        truth, runs = np.cumsum(leaves), 20 if bins < 10_000 else 8
        design = best_branching(bins, mechanism=DiscreteLaplace)
        for epsilon in (0.1, 1.0, 10.0):
            factor, theirs = opendp_tree(bins, epsilon)
            tree, squares = TreeRelease(design, epsilon), np.zeros(5)
            for _ in range(runs):
                histogram = np.cumsum(leaves + rng.laplace(0, 2 / epsilon, bins))
                levels = tree.measure(leaves, rng)
                combined = tree.least_squares(levels, total)
                found: list[Float64 | Int64] = [theirs(leaves), isotonic_squared(histogram, total)]
                found += [combined, isotonic_squared(combined, total)]
                found.append(tree.descended(levels, total))
                squares += [np.mean((cdf - truth) ** 2) / runs for cdf in found]
            rms = np.sqrt(squares)
            gain = rms[0] / rms[3]
            rows.append((bins, str(epsilon), factor, str(design.branching), *rms, gain))
    heads = (
        "K | ε | OpenDP's factor | our factors | OpenDP tree | isotonic histogram | "
        "ours: least squares | + isotonic | descent | OpenDP / ours"
    )
    table = markdown(heads, rows, " |  |  |  | ,.2f | ,.2f | ,.2f | ,.2f | ,.2f | .1f")
    return (
        "## Against OpenDP's b-ary tree and an isotonic histogram\n\nRoot mean squared error of a "
        "cumulative count, records; 20,000 log-normal records. OpenDP: `make_b_ary_tree`, "
        "`choose_branching_factor`, `make_consistent_b_ary_tree`, priced by its own map at two "
        f"changed records (it also measures the root).\n\n{table}\n"
    )


def singular_values(bins: int) -> Float64:
    """Those of WP but for the 0: 1/(2 sin(kπ/2K))."""
    return 1 / (2 * np.sin(np.arange(1, bins) * np.pi / (2 * bins)))


def price_and_leaves(gram: Float64) -> tuple[float, Float64]:
    """The price of a strategy, and all leaves by all but the last, as the total is public."""
    diagonal, others = np.diag(gram), len(gram) - 1
    price = (diagonal[:, None] + diagonal[None] - 2 * gram).max() / 2
    return price, np.vstack([np.eye(others), -np.ones(others)])


def priced(gram: Float64) -> float:
    """Mean variance of the K cuts of a strategy A (gram = A'A) with a public total, price 2.

    The price is the largest squared distance between two columns; a tree whose shares sum to 1 has
    2. The error is that of the best estimate that knows the total.
    """
    bins, (price, free) = len(gram), price_and_leaves(gram)
    information = free.T @ gram @ free  # of the leaves 0 … K - 2
    cuts = np.tril(np.ones((bins - 1, bins - 1)))
    return float(price * np.trace(cuts @ np.linalg.solve(information, cuts.T)) / bins)


def lags(bins: int) -> Int64:
    """How far row and column are apart."""
    return np.abs(np.subtract.outer(np.arange(bins), np.arange(bins)))


def strategies(bins: int) -> tuple[Float64, Float64]:
    """The square-root Toeplitz matrix, and WP's symmetric root with columns of one length."""
    k = np.arange(1, bins)
    coefficients = np.cumprod(np.concatenate([[1.0], (2 * k - 1) / (2 * k)]))
    below = np.tril(np.ones((bins, bins), dtype=bool))
    toeplitz = np.where(below, coefficients[lags(bins)], 0.0)
    waves = np.cos(np.pi * np.outer(np.arange(bins) + 0.5, k) / bins) * np.sqrt(2 / bins)
    symmetric = (waves * np.sqrt(singular_values(bins))) @ waves.T
    return toeplitz, symmetric / np.linalg.norm(symmetric, axis=0)


def yardstick(rng: Generator) -> str:
    """ZCDP: the tree, two factorisations of the prefix sums, an integer version, the bound."""
    rows, mechanism = [], DiscreteGaussian
    for bins in (16, 64, 100, 256, 1024, 10_000, 1_000_000):
        tree = trimmed_error(best_branching(bins, mechanism=mechanism), mechanism=mechanism)
        bound = float(singular_values(bins).sum() ** 2 / (bins * (bins - 1)))
        dense: list[object] = [""] * 4
        gain: object = ""
        if bins < MOST_BINS:
            toeplitz, symmetric = strategies(bins)
            whole = np.where(toeplitz > 0, Strategy.of(bins).weights[lags(bins)], 0).astype(float)
            errors = [priced(matrix.T @ matrix) for matrix in (toeplitz, whole, symmetric)]
            dense = [simulated(toeplitz, rng), *errors]
            gain = tree / errors[1]
        rows.append((bins, tree, *dense, bound, gain, tree / bound))
    heads = (
        "K | our tree | square-root Toeplitz, simulated | exact | in integers | symmetric root | "
        "lower bound | tree / integers | tree / bound"
    )
    return (
        "## A lower bound for every strategy under zCDP\n\nMean squared error of a cut in units of "
        "the noise variance that one count would have with the whole budget, total public. Prices"
        " are the largest squared distance between two columns of the strategy A. The bound: that"
        " is at least the mean one, 2‖AP‖²/(K - 1) in Frobenius norm with P the centring; and "
        "‖WA⁺‖‖AP‖ is at least the nuclear norm of WP, whose singular values are 1/(2 "
        "sin(kπ/2K)). The symmetric root is WP's own, its columns scaled to one length; more bins"
        " are too many for dense matrices. *In integers* are the running sums that Hedgerow "
        "measures: the Toeplitz strategy times a power of two from 32 √K up, rounded, so that "
        "discrete noise can be added.\n\n" + markdown(heads, rows, f"{' | .3f' * 6} | .2f") + "\n"
    )


def simulated(strategy: Float64, rng: Generator) -> float:
    """`priced` again, by drawing real-valued Gaussian noise 400 times."""
    bins, (price, free) = len(strategy), price_and_leaves(strategy.T @ strategy)
    noise = rng.normal(0, np.sqrt(price), (bins, 400))
    leaves = np.linalg.lstsq(strategy @ free, noise, rcond=None)[0]
    return float((np.cumsum(leaves, axis=0) ** 2).sum() / bins / 400)


COLUMNS = {
    "bike-share duration, s": ("bikeshare_duration/duration", "duration_s", 14_400),
    "Chicago salaries, $": ("chicago_salaries/salaries", "annual_salary", 300_000),
    "flight distance, miles": ("flights_200k/flights", "distance", 5_000),
}
"""The file and column of each, and the end of its range, which begins at 0."""
CHOSEN = "Chicago salaries, $"


def numeric_column(data: Path, file: str, column: str) -> Float64:
    """The values of one of these columns."""
    frame = pl.read_parquet(data / f"numeric_{file}.parquet")
    return frame[column].cast(pl.Float64, strict=False).drop_nulls().drop_nans().to_numpy()


class Forest(Trees):
    """A design under zCDP, in many runs."""

    def __init__(self, design: Design, rho: float, runs: int) -> None:
        super().__init__(design, [1 / (rho * float(share)) for share in design.shares], runs)

    def estimates(self, leaves: Int64, rng: Generator) -> tuple[Float64, Int64]:
        """Cumulative counts (runs, K): by least squares, and after the descent to whole counts."""
        exact = level_sums(np.tile(leaves, self.shape[0]), self.starts)
        noisy = [
            level + whole_gaussian(variance, len(level), rng)
            for level, variance in zip(exact, self.variances, strict=True)
        ]
        total = int(leaves.sum())
        return self.least_squares(noisy, total), self.descended(noisy, total)

    def made_whole(self, cumulative: Float64, decode: Float64, total: int) -> Int64:
        """Any linear estimate made whole along this tree: decode maps noise to its errors."""
        last = np.arange(self.shape[-1])  # of each node's leaves, for the level in hand
        lasts = [last]
        for start in self.one[:0:-1]:
            last = last[start[1:] - 1]
            lasts.append(last)
        levels = []
        for last, start in zip(lasts[::-1], self.starts, strict=True):
            estimate = np.diff(cumulative[:, last], axis=1, prepend=0.0).ravel()
            errors = np.diff(decode[last], axis=0, prepend=0.0)
            variance = np.tile(np.einsum("ij,ij->i", errors, errors), self.shape[0])
            levels.append((estimate, variance, start))
        return self.settled(levels, total)


def whole_gaussian(variance: float, size: int, rng: Generator) -> Int64:
    """Discrete Gaussian noise, by its cumulative distribution in doubles: for simulation alone."""
    reach = int(12 * np.sqrt(variance)) + 2
    support = np.arange(-reach, reach + 1)
    heights = np.cumsum(np.exp(-(support**2) / (2 * variance)))
    return support[np.searchsorted(heights / heights[-1], rng.random(size), side="right")]


def whole_toeplitz(bins: int) -> tuple[int, Float64]:
    """The price of the running sums that Hedgerow measures, and their decoding.

    The decoding, (K, K), maps the noise of the K sums to the errors of the K cumulative counts, the
    last one 0, as the total is public.
    """
    strategy = Strategy.of(bins)
    errors = Decoded(strategy, 1.0, known=1.0)
    decode = np.tril(strategy.decoding[lags(bins)])
    return strategy.distance_squared, decode - np.outer(errors.pull[1:], decode[-1])


def consistent_columns(bins: int, data: Path, rng: Generator) -> Iterator[tuple[str, int, Int64]]:
    """Name, N and leaves of the columns that the consistent estimates are compared on."""
    file, column, high = COLUMNS[CHOSEN]
    real = numeric_column(data, file, column)
    for total in (900, 20_000):
        for title, values, most in (
            ("uniform", rng.random(total), 1),
            ("log-normal", np.minimum(rng.lognormal(10.3, 0.7, total), 199_999.0), 200_000),
            (CHOSEN.split(",", maxsplit=1)[0], rng.choice(real, total, replace=False), high),
        ):
            ranges = Ranges.equal_width("x", 0, most, bins, out_of_bounds="clamp")
            yield title, total, np.bincount(ranges.bin(values), minlength=bins)


def root_mean(cdfs: Float64 | Int64, truth: Int64) -> tuple[float, float]:
    """The root mean squared error of (runs, K) cumulative counts, and its standard error."""
    mean, error = mean_of(((cdfs - truth) ** 2).mean(axis=1))
    root = np.sqrt(mean)
    return root, error / (2 * root)


RUNS = 400
RHOS = (0.005, 0.05, 1.0)
TILT = 0.8


def consistent_errors(
    bins: int, data: Path, rng: Generator
) -> Iterator[tuple[str, int, float, list[tuple[float, float]]]]:
    """Column, N, ρ and the errors of five consistent estimates, and of the two linear ones."""
    design = best_branching(bins, mechanism=DiscreteGaussian)
    other_rng = np.random.default_rng(SEED + 2)
    price, decode = whole_toeplitz(bins)
    columns = [*consistent_columns(bins, data, rng)]
    for rho in RHOS:
        tree = Forest(design, rho, RUNS)
        top = Forest(tilted(design, TILT), rho, RUNS)
        cuts = np.maximum(CutError.of_tree(tree.one, tree.variances).cuts()[1:], 1e-3)
        variance = price / (2 * rho)
        errors = whole_gaussian(variance, RUNS * bins, rng).reshape(RUNS, bins) @ decode.T
        own = np.maximum(variance * np.einsum("ij,ij->i", decode, decode), 1e-3)
        for name, total, leaves in columns:
            truth = np.cumsum(leaves)
            linear, descended = tree.estimates(leaves, rng)
            toeplitz, monotone = truth + errors, []
            for cdfs, variances in ((linear, cuts), (toeplitz, own)):
                monotone.append(np.array([isotonic_squared(cdf, total, variances) for cdf in cdfs]))
            whole = tree.made_whole(toeplitz, decode, total)
            heavy = top.estimates(leaves, other_rng)[1]
            found: list[Float64 | Int64] = [descended, *monotone, whole, heavy, linear, toeplitz]
            yield name, total, rho, [root_mean(cdfs, truth) for cdfs in found]


def after_consistency(data: Path) -> str:
    """ZCDP: what users get, from the tree and from the Toeplitz strategy in integers."""
    rng = np.random.default_rng(SEED + 1)
    rows, short, medians = [], [], {}
    for bins in (64, 100, 256, 997, 2048):
        ratios = []
        for name, total, rho, found in consistent_errors(bins, data, rng):
            wins = [ratio(found[0], found[2]), ratio(found[0], found[3])]
            linear = [root for root, _ in found[-2:]]
            ratios.append((*wins[0], wins[1][0], linear[0] / linear[1]))
            rows.append((bins, name, total, str(rho), *linear, *found[:-2], *wins))
        short.append((bins, *in_short(np.array(ratios))))
        medians[bins] = float(np.median([win for win, *_ in ratios]))
    heads = (
        "K | column | N | ρ | tree, linear | Toeplitz, linear | tree, descent | tree, isotonic | "
        "Toeplitz, isotonic | Toeplitz, descent | top-heavy tree, descent | "
        "tree descent / Toeplitz isotonic | tree descent / Toeplitz descent"
    )
    brief = (
        "K | linear | consistent: least … median … greatest | surely above 1.1 | squared | "
        "squared surely above 1.1 | tree descent / Toeplitz descent"
    )
    brief_table = markdown(brief, short, " | .2f")
    whole = markdown(heads, rows, " |  | , |  | .1f | .1f | .2f ± .2f")
    told = f"{MEASURED}\n{brief_table}\n\n{verdict(medians)}\n{whole}\n"
    return f"## The same after consistency\n\n{told}"


def ratio(first: tuple[float, float], second: tuple[float, float]) -> tuple[float, float]:
    """The ratio of two errors, with its standard error."""
    found = first[0] / second[0]
    return found, float(found * np.hypot(first[1] / first[0], second[1] / second[0]))


def in_short(ratios: Float64) -> Row:
    """One K: ratios (settings, 4) of the consistent errors, their errors, by descent, linear."""
    wins, errors, descents, linear = ratios.T
    cells = len(wins)
    return [
        linear.mean(),
        f"{wins.min():.2f} … {np.median(wins):.2f} … {wins.max():.2f}",
        f"{(wins - 2 * errors > 1.1).sum()} of {cells}",
        np.median(wins**2),
        f"{(wins**2 - 4 * wins * errors > 1.1).sum()} of {cells}",
        np.median(descents),
    ]


MEASURED = f"""Root mean squared error of a cumulative count, records, {RUNS} runs with discrete \
Gaussian noise; replace-one, N public. *Tree, descent* is what `release_distribution` does with a \
tree: least squares, then projection of each family to non-negative integers, from the top down. \
*Toeplitz, isotonic* is what it does with running sums: the integer strategy with one discrete \
Gaussian for all its sums, σ² = Δ²/(2ρ), Δ the largest distance between two columns, decoded by \
least squares with the public total. *Isotonic*: the nearest monotone integer CDF in 0 … N, \
weighted by the inverse variances of its cuts; its steps are non-negative integers too. *Toeplitz, \
descent*: its estimate projected down our tree, each family with the variances of its own nodes. \
Non-negative least squares with the full covariance was not tried, for either. *Top-heavy* is the \
tree with each level's share times {TILT} per level down. The Toeplitz noise is shared by the \
columns of one K and ρ.

The first table shows the tree's error divided by that of the Toeplitz strategy: above 1 the \
latter is better. *Consistent* compares the tree's descent with the isotonic Toeplitz, over all \
columns, N and ρ; *surely* means by two standard errors; *squared* is the median ratio of the \
squared errors.
"""


def verdict(medians: dict[int, float]) -> str:
    """What the figures say, from the median ratio of root mean squared errors of each K."""
    wins = ", ".join(
        f"{100 * (m - 1):.0f} % at K = {bins:,} ({100 * (m * m - 1):.0f} % squared)"
        for bins, m in medians.items()
    )
    return f"""**Result.** After consistency, too, the Toeplitz strategy in integers is better. In \
the median setting the tree's root mean squared error is larger by {wins}. Monotonicity helps the \
Toeplitz estimate about as much as the descent helps ours; projected down a tree its advantage is \
smaller, so it is made consistent by isotonic regression. The advantage in squared error exceeds \
10 % in nearly all settings from K = 100 on, and at K = 64 in the median; in the root it exceeds \
10 % in the median from K = 100 on, but by two standard errors only from K = 997 on, in a third to \
a half of the settings (and one each below). Where the noise is large compared with the table (K = \
997 and more, N = 900, ρ = 0.005) the top-heavy tree is better than the Toeplitz strategy with its \
plain weights; at N = 20,000 it is worse. N and ρ are public, so the shares could depend on them; \
this is not implemented.

**Implemented.** `measure = "running-sums"` (`hedgerow.estimate.running_sums`) serves one numeric \
axis of 2 to 65,536 bins under zCDP and (ε, δ). `plan_distribution` uses it if the mean variance \
of the cuts is at least a tenth smaller than the tree's: from 40 bins on (from 24 or fewer if the \
total is measured too), under ρ and under (ε, δ) alike: there the tree has its exact profile, and \
running sums have a proved bound within half a percent of the noise \
(`hedgerow.privacy.accountant.domination`). Under pure ε the tree is always used.
"""


def real_columns(data: Path, rng: Generator) -> tuple[str, dict[str, tuple[Float64, ...]]]:
    """Median, deciles and CDF of real columns in 1,000 bins at three ε; curves for the picture."""
    rows, curves = [], dict[str, tuple[Float64, ...]]()
    ranks, design = np.arange(1, 10) / 10, best_branching(1000, mechanism=DiscreteLaplace)
    for name, (file, column, high) in COLUMNS.items():
        values = numeric_column(data, file, column)
        ranges = Ranges.equal_width("x", 0, high, 1000, out_of_bounds="clamp")
        leaves = np.bincount(ranges.bin(values), minlength=1000)
        truth, total = np.cumsum(leaves), int(leaves.sum())
        for epsilon in (0.01, 0.1, 1.0):
            tree, found = TreeRelease(design, epsilon), []
            for _ in range(20):
                cdf = tree.descended(tree.measure(leaves, rng), total)
                bins, exact = (np.searchsorted(each, ranks * total) for each in (cdf, truth))
                off = np.abs(ranges.edges[bins + 1] - ranges.edges[exact + 1])
                found.append((off[4], off.mean(), np.sqrt(np.mean((cdf - truth) ** 2)) / total))
            rows.append((name, total, str(epsilon), *np.mean(found, axis=0)))
            if epsilon == 0.01:
                band = 1.96 * np.sqrt(CutError.of_tree(tree.starts, tree.variances).cuts()[1:])
                curves[name] = (ranges.edges[1:], truth / total, cdf / total, band / total)
    heads = "column | N | ε | median off by | deciles off by | CDF, root mean squared"
    intro = "## Real columns\n\n1,000 bins, mean absolute error over 20 runs, in the column's unit."
    table = markdown(heads, rows, " | , |  | ,.1f | ,.1f | .2e")
    return f"{intro}\n\n{table}\n", curves


def picture(curves: Mapping[str, tuple[Float64, ...]]) -> None:
    """The CDFs at the smallest ε with bands of 95 % before projection."""
    figure, panes = panels(len(curves), size=(4, 3.6))
    for axes, (name, (x, truth, cdf, band)) in zip(panes, curves.items(), strict=True):
        axes.fill_between(x, cdf - band, cdf + band, alpha=0.25, lw=0, label="95 % band")
        axes.plot(x, cdf, lw=1.2, label="released, ε = 0.01")
        axes.plot(x, truth, "k--", lw=0.8, label="truth")
        axes.set(title=name, ylim=(0, 1))
        axes.locator_params(axis="x", nbins=5)
    axes.legend(loc="lower right")
    save(figure, "distributions_study", 110, ROOT / "docs")


def main(data: Path) -> None:
    """Run all sections and write the page and the picture."""
    rng = np.random.default_rng(SEED)
    parts = [against_opendp(rng), yardstick(rng), after_consistency(data)]
    text, curves = real_columns(data, rng)
    parts.append(text + "\n![CDFs](distributions_study.png)\n")
    picture(curves)
    page = "# Distributions\n\nMade by `studies/distributions.py`.\n\n" + "\n".join(parts)
    keep("distributions_study", page)


if __name__ == "__main__":
    with_data(main)
