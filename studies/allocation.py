"""Ko et al.'s optimal allocation on fixed tables: the paper's claims and ours side by side.

Reads ``../shared/data`` beside the repository (or the folder named as the first argument), and
writes ``docs/allocation.md`` and ``docs/allocation.png``. Laplace noise on every count, cut off at
0, one record moves one count of a level by 1: the paper's setting (Sections 3 and 4).
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hedgerow.estimate.error import LaplaceError
from hedgerow.plan.programs import (
    Cells,
    LargeCounts,
    Level,
    least_budgets,
    least_error,
    total_error,
)

ROOT = Path(__file__).parents[1]
BUDGETS = (0.5, 1.0, 2.0, 4.0)
TARGETS = (2_000.0, 20_000.0, 200_000.0)
RUNS = 1000
LAPLACE = LaplaceError()
KO_NODES = (1, 128, 20_975)  # state, tracts and blocks of Wyoming in the paper
LARGEST = 1e6
HEAD = """# Optimal allocation

Made by `make studies`. Ko et al.: Laplace noise cut off at 0, program (6) with the census of 2010
as prior and that of 2020 as truth; of Washington's blocks there is 2010 alone, which is both.
Errors are sums over all counts of all levels (records²).
"""
WHY = """*Why the ratios differ.* Leaves make up most of the error, so the ratio of the variances
is about the square of what the leaves get over their uniform part. An empty cell has
bias² 1/(4ε²), whose ratio is just that square: 6 where leaves get 81 % instead of a
third. A cell of N records has exp(-2Nε) of it, so cells of few records have larger
ratios: among Washington's blocks those of 1 to 9 records are beyond the paper's 10, and
the many empty ones hold the whole at 6. Block groups hold hundreds of people; hardly
any is empty, and there are three a tract and not a hundred, so the optimum is nearer to
uniform. Without empty cells (Wyoming) bias² is next to nothing under any allocation,
and so large ratios of it mean nothing.
"""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """One hierarchy: the counts of its levels, as planned with and as they are."""

    name: str
    levels: tuple[str, ...]
    prior: tuple[Floats, ...]
    truth: tuple[Floats, ...]

    @property
    def nodes(self) -> list[int]:
        """How many nodes each level has."""
        return [len(counts) for counts in self.truth]

    def planned(self, importance: Floats | None = None) -> list[Level]:
        """The error of each level by the prior."""
        weights = np.ones(len(self.levels)) if importance is None else importance
        return [cells(counts, w) for counts, w in zip(self.prior, weights, strict=True)]

    def optimum(self, budget: float, importance: Floats | None = None) -> Floats:
        """Program (6)."""
        return least_error(self.planned(importance), budget).budgets

    def uniform(self, budget: float) -> Floats:
        """Equal parts."""
        return np.full(len(self.levels), budget / len(self.levels))

    def expected(self, budgets: Floats) -> Floats:
        """Bias² and variance, summed over all true counts, by the closed forms."""
        each = list(zip(budgets, self.truth, strict=True))
        bias2 = sum(float((LAPLACE.bias(float(b), n) ** 2).sum()) for b, n in each)
        return np.array([bias2, sum(float(LAPLACE.variance(float(b), n).sum()) for b, n in each)])

    def error(self, budgets: Floats) -> float:
        """The mean squared error, summed over all true counts."""
        return float(self.expected(budgets).sum())


def cells(counts: Floats, weight: float) -> Cells:
    """A level whose counts are known."""
    values, times = np.unique(counts, return_counts=True)
    return Cells(LAPLACE, values, np.asarray(times * weight, dtype=np.float64), 1.0)


def by_level(table: pl.DataFrame, levels: tuple[str, ...], count: str) -> list[Floats]:
    """The counts of every node that the table names, level by level."""
    return [
        table.group_by(levels[: k + 1]).agg(pl.col(count).sum())[count].cast(float).to_numpy()
        for k in range(len(levels))
    ]


def as_prior(earlier: list[Floats], truth: list[Floats]) -> tuple[Floats, ...]:
    """The positive earlier counts, filled up with empty nodes to today's number."""
    return tuple(
        np.append(old[old > 0], np.zeros(max(0, len(new) - int((old > 0).sum()))))
        for old, new in zip(earlier, truth, strict=True)
    )


def cases(data: Path) -> list[Case]:
    """The block groups of three states, and the blocks of Washington."""
    folder, count = data / "census_us_block_group", "population"
    levels: tuple[str, ...] = ("state", "county", "tract", "block_group")
    earlier, later = (pl.read_parquet(folder / f"bg_{y}.parquet") for y in (2010, 2020))
    found = []
    for name, code in (("Wyoming", "56"), ("Delaware", "10"), ("New Mexico", "35")):
        old = by_level(earlier.filter(pl.col("state") == code), levels, count)
        new = by_level(later.filter(pl.col("state") == code), levels, count)
        found.append(Case(f"{name}, block groups", levels, as_prior(old, new), tuple(new)))
    levels = ("state", "tract", "block")
    table = pl.read_parquet(data / "census_us_block" / "wa_2010.parquet")
    blocks = tuple(by_level(table, levels, "pop"))
    return [*found, Case("Washington, blocks", levels, blocks, blocks)]


def simulated(case: Case, allocations: list[Floats], rng: np.random.Generator) -> list[Floats]:
    """Bias², variance and the Monte Carlo error of that bias², for each allocation.

    All allocations see the same noise in independent runs. A cell's mean error over the runs has
    itself a variance, v/RUNS, which is taken off its square; what remains is off by about
    √2 v/RUNS.
    """
    truth = np.concatenate(case.truth).astype(np.float32)
    scales = [np.repeat(1 / b, case.nodes).astype(np.float32) for b in allocations]
    sums = np.zeros((len(allocations), 2, len(truth)))
    for _ in range(RUNS):
        laplace = rng.standard_exponential(len(truth), np.float32)
        laplace -= rng.standard_exponential(len(truth), np.float32)
        for i, scale in enumerate(scales):
            error = np.maximum(laplace * scale, -truth)
            sums[i, 0] += error
            sums[i, 1] += error * error
    found = []
    for mean, square in sums / RUNS:
        variance = (square - mean**2) * (RUNS / (RUNS - 1))
        doubt = np.sqrt(2 * ((variance / RUNS) ** 2).sum())
        found.append(np.array([(mean**2 - variance / RUNS).sum(), variance.sum(), doubt]))
    return found


def table(headings: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def allocation_section(case: Case) -> str:
    """Nodes, empty cells and optimal shares by level."""
    rows = []
    best = [case.optimum(budget) for budget in BUDGETS]
    for k, level in enumerate(case.levels):
        truth = case.truth[k]
        shares = [f"{b[k] / b.sum():.1%}" for b in best]
        rows.append([level, f"{len(truth):,}", f"{(truth == 0).mean():.1%}", *shares])
    rising = all((np.diff(b) >= 0).all() for b in best)
    heads = ["level", "nodes", "empty", *(f"share at ε = {e:g}" for e in BUDGETS)]
    return f"{table(heads, rows)}\nRising from top to bottom, as Theorem 3 says: {rising}.\n"


def ratio_section(case: Case, rng: np.random.Generator) -> str:
    """Bias² and variance of uniform shares over those of the optimum."""
    pairs = [(case.uniform(e), case.optimum(e)) for e in BUDGETS]
    runs = simulated(case, [b for pair in pairs for b in pair], rng)
    rows = []
    for i, (epsilon, (uniform, best)) in enumerate(zip(BUDGETS, pairs, strict=True)):
        closed = case.expected(uniform), case.expected(best)
        ran = runs[2 * i], runs[2 * i + 1]
        rows.append(
            [
                f"{epsilon:g}",
                *(f"{value:,.4g}" for value in (*closed[0], *closed[1])),
                *(f"{value:.2f}" for value in closed[0] / closed[1]),
                f"{ran[0][0] / ran[1][0]:.2f}"
                if min(r[0] / r[2] for r in ran) > 4
                else "below its Monte Carlo error",
                f"{ran[0][1] / ran[1][1]:.2f}",
            ]
        )
    heads = ["ε", "uniform: bias²", "variance", "optimum: bias²", "variance"]
    heads += ["bias² ×", "variance ×", f"bias² × ({RUNS:,} runs)", "variance × (runs)"]
    return table(heads, rows)


def target_section(every: list[Case]) -> str:
    """Program (7): the ε that a target costs, and what error the truth then has."""
    rows = []
    for case in every:
        for target in TARGETS:
            budgets = least_budgets(case.planned(), target, LARGEST)
            back = total_error(case.planned(), case.optimum(float(budgets.sum())))
            rows.append(
                [
                    case.name,
                    f"{target:,.0f}",
                    f"{budgets.sum():.4f}",
                    f"{budgets[-1] / budgets.sum():.0%}",
                    f"{case.error(budgets):,.0f}",
                    f"{abs(back / target - 1):.0e}",
                ]
            )
    heads = ["table", "τ", "ε", "to the leaves", "error of the truth", "(6) at that ε, off τ by"]
    return table(heads, rows)


def sweep(case: Case) -> tuple[Floats, Floats]:
    """The importance of the leaves, and the unweighted error that it leads to at ε = 1."""
    equal = 1 / len(case.levels)
    grid = np.unique(np.append(np.linspace(0.05, 0.95, 19), equal))
    errors = []
    for w in grid:
        others = (1 - w) / (len(case.levels) - 1)
        importance = np.array([*(len(case.levels) - 1) * [others], w])
        errors.append(total_error(case.planned(), case.optimum(1.0, importance)))
    return grid, np.array(errors)


def sweep_section(every: list[Case]) -> str:
    """Where the swept error is least, and how it grows to both sides."""
    rows = []
    for case in every:
        grid, errors = sweep(case)
        least = int(errors.argmin())
        shown = [f"{errors[i] / errors[least]:.3f}" for i in (0, 9, len(grid) - 1)]
        at_equal = np.isclose(grid[least], 1 / len(case.levels))
        rows.append([case.name, f"{grid[least]:.3f}", "yes" if at_equal else "no", *shown])
    heads = ["table", "least at", "where all are equal", "at 0.05 ×", "at 0.5 ×", "at 0.95 ×"]
    return table(heads, rows)


def paper_section(every: list[Case]) -> str:
    """Ko's figures beside ours."""
    sizes = np.array(KO_NODES, dtype=float)
    large: list[Level] = [LargeCounts(2 * n, 2, 1.0) for n in sizes]
    epsilon = least_budgets(large, 20_000.0, LARGEST).sum()
    uniform = total_error(large, np.full(3, epsilon / 3)) / 20_000
    rows = [
        ["ε at τ = 20,000 (1 / 128 / 20,975 nodes)", "about 2", f"{epsilon:.2f}, counts large"],
        ["squared error ×, same nodes", "", f"{uniform:.2f}, counts large"],
        ["importance of the leaves with the least error", "1/3", "1/number of levels"],
        *(ratio_row(case) for case in every),
    ]
    return f"{table(['uniform over optimum (×)', 'paper', 'ours'], rows)}\n{WHY}"


def ratio_row(case: Case) -> list[str]:
    """The range of both ratios over the budgets, and of the bias² of small leaves alone."""
    pairs = [(case.uniform(e), case.optimum(e)) for e in BUDGETS]
    bias2, variance = zip(*(case.expected(u) / case.expected(b) for u, b in pairs), strict=True)
    leaves = case.truth[-1]
    empty = f"{(leaves == 0).mean():.1%}"
    told = f"bias² {spread(bias2)}, variance {spread(variance)}; empty leaves {empty}"
    small = leaves[(leaves > 0) & (leaves < 10)]
    if len(small) > 1000:
        of_small = [
            float((LAPLACE.bias(u[-1], small) ** 2).sum() / (LAPLACE.bias(b[-1], small) ** 2).sum())
            for u, b in pairs
        ]
        told += f"; bias² of leaves with 1 to 9 records alone {spread(of_small)}"
    return [case.name, "bias² about 10, variance about 4 (Wyoming, blocks)", told]


def spread(ratios: Sequence[float]) -> str:
    """The least and the greatest."""
    return f"{min(ratios):.1f} to {max(ratios):.1f}"


def picture(every: list[Case], path: Path) -> None:
    """Shares, ratios and the sweep, if Matplotlib is there."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an optional dependency
    except ImportError:
        return
    figure = Figure(figsize=(12, 4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    for case in every:
        best = [case.optimum(e) for e in BUDGETS]
        left.plot(case.levels, best[1], marker="o", label=case.name)
        ratios = [
            case.error(case.uniform(e)) / case.error(b) for e, b in zip(BUDGETS, best, strict=True)
        ]
        middle.plot(BUDGETS, ratios, marker="o", label=case.name)
        grid, errors = sweep(case)
        right.plot(grid, errors / errors.min(), label=case.name)
    left.set(title="optimal ε by level, ε = 1 in all", ylabel="ε")
    middle.set(title="squared error, uniform over optimum", xlabel="ε")
    right.set(title="squared error over its least, ε = 1", xlabel="importance of the leaves")
    left.legend()
    figure.savefig(path, dpi=110)


def main() -> None:
    """Print the study and write its page and picture."""
    data = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT.parent / "shared" / "data"
    if not data.is_dir():
        print(f"skipped: the real tables are not at {data}")
        return
    begun = time.perf_counter()
    every = cases(data)
    rng = np.random.default_rng(2026)
    parts = [
        HEAD,
        "## The paper and ours\n\n" + paper_section(every),
    ]
    for case in every:
        parts += [f"## {case.name}\n\n{allocation_section(case)}\n{ratio_section(case, rng)}"]
    parts.append("## What an error costs: program (7)\n\n" + target_section(every))
    parts.append(
        "## The importance of the leaves\n\nSwept from 0.05 to 0.95, the other levels sharing the "
        "rest equally; unweighted squared error at ε = 1.\n\n" + sweep_section(every)
    )
    text = "\n".join(parts)
    print(text)
    (ROOT / "docs" / "allocation.md").write_text(text)
    picture(every, ROOT / "docs" / "allocation.png")
    print(f"{time.perf_counter() - begun:.1f} s")


if __name__ == "__main__":
    main()
