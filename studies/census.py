"""The redistricting file of a state: the Bureau's shares and way, and ours, side by side.

Reads Rhode Island from ``../shared/data`` beside the repository (or the folder named as the first
argument), and writes ``docs/census_errors.md`` and ``.png``. The table is public and all
noise is seeded.
"""

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

import hedgerow as hr
from hedgerow.arrays import ByCuboid, Int64
from hedgerow.estimate.spine.support import Part
from hedgerow.evaluate.metrics import band_name
from hedgerow.examples.redistricting import PRODUCTION, noise_parameters
from hedgerow.plan.forecast import forecast
from hedgerow.spec.release_spec import ReleaseSpec
from studies.bureau.counts import bureau_counts
from studies.census_figures import QUERIES, SIZES, STEPS, SURE, Errors
from studies.page import ROOT, keep, markdown, timed, with_data
from studies.redistricting import LEVELS, Table, write_files
from studies.showing import OPTIMUM, OWN, UNIFORM, panels, save

SEEDS = tuple(range(10))
BUREAU, OURS, CUBE = "Bureau's shares and way", "Bureau's shares, our way", "cube"
LEAST = "least largest ratio"
COLOURS = {BUREAU: UNIFORM, OURS: OPTIMUM, LEAST: "#CC79A7", CUBE: OWN}
QUERY_OF_ALL = "hhgq × votingage × hispanic × cenrace"
COLUMNS = ("", "votingage", "hispanic", "cenrace", "hispanic × cenrace", "hhgq", QUERY_OF_ALL)
"""The production's query that stands for each of `QUERIES`."""
BESIDE = {"state": Fraction(3, 2), "county": Fraction(3, 2)}
"""How many times as large as the production's an error may be at these levels, where 1 is asked of
the levels below."""
FURTHER = {"votingage": Fraction(17, 20), "hhgq": Fraction(4, 5)}
"""The same of queries, at any level: counts that may not be negative tell these better than their
noise, so that less of a gain by shares is seen."""

CHAIN = ((2, 0, 0, 0), (2, 0, 1, 0), (2, 0, 1, 1), (2, 1, 1, 1))
"""The Bureau's rounding: kinds, × Hispanic origin, × race, × voting age."""

PUBLISHED = 450
"""From this total up the largest group's share is within 5 points in 95 % of the nation's block
groups (Wright & Irimata 2021, SSS2021-02: 450 to 499)."""


CORRECTIONS = 4
"""How often importances are corrected, the first ones included."""


def bureau_way(table: Table, noisy: ByCuboid) -> Mapping[int, Int64]:
    """As the Bureau estimated: counts of every level, detail layout."""
    model, total = table.spine.model, table.counts.total
    return bureau_counts(model, noisy, total, CHAIN, table.spine.is_free)


def our_way(table: Table, noisy: ByCuboid) -> Mapping[int, Int64]:
    """Best linear unbiased, then families that keep what is known."""
    model, part = table.spine.model, Part.top(len(LEVELS) - 1)
    return model.settle(part, model.up(part, noisy), None, table.counts.total)


TEXT = """# The redistricting file of a state, two ways

Made by `make studies`: Rhode Island 2010 in the schema of the 2020 redistricting file (blocks × 8
kinds of quarters × voting age × Hispanic origin × 63 races; rarer cells are synthetic), {people:,}
people, {runs} runs with seeds 0 to {last}. ρ = (542/339)² without the nation's level; one record
replaced; the state's total is public, and so are where each kind of quarters may be, that each
facility other than a household has a person at least, and that no minors live in nursing homes.

- *{bureau}*: the production's noise, and its estimation as published, written again
  (`studies.bureau`): one parent's children at a time from their own measurements, totals
  first, then rounding by stages.
- *{ours}*: the same noise; best linear unbiased estimates from all levels (`Marginals`), then whole
  counts family by family.
- *{least}*: the production's queries and ρ, by shares that make the largest ratio of an error to
  that by the production's shares least, as plans expect them (`method = "optimal"`, `objective =
  "largest"`, importances by cuboid: one over what the production's shares give, squared), over
  the columns below. At states and counties {beside} times the production's errors are allowed.
- *{cube}*: the same ρ by product shares over geography × attributes: state 0.02, 0.1, 0.175, 0.33,
  0.375 block, and total 0.31, 0.03, 0.18, 0.17, 0.31 all cells (total, kind of quarters, × voting
  age, × eight groups, × all cells).

In every run of each way, all sums are exact at all levels, nobody is in a cell that is 0 by a
public fact, and every facility has its person.

**What this does not say.** The production's shares serve ends that these columns do not count:
other geographies than the spine's (its block groups were optimised for places, which are not here),
and one choice for all states. It also published housing units, which are left out.

Means are over the areas where somebody may live by public facts: {places:,} of {blocks:,} blocks.
Errors of the other blocks are 0, so over all blocks means are {ratio:.3f} times those shown.

{tables}

## The largest group of an area

From so many people up, the share of the largest of the eight groups is within 5 points in 95 % of
the areas of every size (block groups in steps of 50 people, blocks in steps of 10):

{sure}

The Bureau stated {published} to {above} people for the block groups of the nation; those are not
the block groups that it had measured, while here all areas are on the spine. Of this state's
block groups with people, {few} have fewer than {published}.

## Bias by size

The mean of released less true counts of the eight groups by the true count, people:

{bias}

![The largest group's share, and bias by the true count](census_errors.png)

## What it costs

The production's composition, the nation's level included, is ε = {epsilon:.4f} at δ = 10⁻¹⁰ (the
Bureau stated 17.14); without that level, ε = {without:.4f}. The cube of the same ρ: ε =
{cube_epsilon:.4f}.

Seconds of one run, the fastest, noise apart: {seconds}.
"""


def least_largest_ratio(production: Table, file: Path) -> Table:
    """The production's queries by shares that make the largest ratio of errors least.

    That is over the columns of the page, of what the plan expects of them to what it expects by the
    production's shares (times what is allowed of them). Shares are found as if all families were
    alike; so importances are corrected by the ratios of the plan itself.

    Args:
        production: by its own shares.
        file: the production's; one beside it is written.
    """
    own, wanted = file.with_name("least_largest_ratio.toml"), {}
    expected = errors_of(production.plan)
    for level, query in product(LEVELS, COLUMNS):
        levels = (f"{code}.{code}" for code in query.split(" × ") if code)
        name = " × ".join((f"geography.{level}", *levels))
        if expected.get(name):
            allowed = BESIDE.get(level, 1) * FURTHER.get(query, 1)
            wanted[name] = float(allowed) * expected[name]
    importance = {name: error**-2 for name, error in wanted.items()}
    for _ in range(CORRECTIONS):
        own.write_text(
            by_importance(file.read_text(), {**dict.fromkeys(expected, 0), **importance})
        )
        spec = ReleaseSpec(own)
        errors = errors_of(spec.plan(spec.tree()))
        for name, error in wanted.items():
            importance[name] *= (errors[name] / error) ** 2
    return Table.read(own)


def errors_of(plan: hr.Plan) -> dict[str, float]:
    """The expected errors of all cuboids that are not exact."""
    rows = forecast(plan).filter(pl.col("rmse") > 0).select("cuboid", "rmse")
    return dict(rows.iter_rows())


def by_importance(text: str, importance: Mapping[str, float]) -> str:
    """A release file whose shares make the largest error, times its importance, least."""
    rows = "\n".join(f'"{name}" = {number:.3g}' for name, number in importance.items())
    section = '[allocation]\nmethod = "optimal"\nobjective = "largest"\n\n[allocation.importance]'
    return re.sub(
        r"\[allocation\].*?(?=\[output\])", f"{section}\n{rows}\n\n", text, flags=re.DOTALL
    )


def write_page(found: Mapping[str, Errors], cube: Table) -> None:
    """The page, its picture and its JSON file."""
    draw(found)
    sure = markdown(
        ["people", *found],
        (
            (f"{LEVELS[level].replace('_', ' ')}s", *(e.sure_from(level) for e in found.values()))
            for level in STEPS
        ),
    )
    nation = noise_parameters()
    state = [sigma2 for (level, _), sigma2 in nation.items() if level in LEVELS]
    totals, _ = found[CUBE].within[LEVELS.index("block_group")][0]
    few = int((totals < PUBLISHED).sum())
    blocks, places = cube.support.spine.sizes[-1], len(cube.inhabited(len(LEVELS) - 1))
    page = TEXT.format(
        places=places, blocks=blocks, ratio=places / blocks,
        people=cube.counts.total, runs=len(SEEDS), last=SEEDS[-1],
        bureau=BUREAU, ours=OURS, least=LEAST, cube=CUBE, beside=float(BESIDE["state"]),
        tables="\n\n".join(level_table(level, found) for level in range(len(LEVELS))),
        published=PUBLISHED, above=PUBLISHED + 49, few=few, sure=sure,
        bias=bias_table(found), epsilon=epsilon_of(nation.values()),
        without=epsilon_of(state),
        cube_epsilon=cube.plan.guarantee.epsilon("1e-10"),
        seconds=", ".join(f"{way} {errors.seconds:.1f}" for way, errors in found.items()),
    )  # fmt: skip
    keep("census_errors", page)


def epsilon_of(noise: Iterable[Fraction]) -> float:
    """The exact ε of a composition at δ = 1e-10.

    A record that is replaced moves two counts of a cuboid by one: two uses of each noise.
    """
    return hr.compose([(hr.DiscreteGaussian(s), 2) for s in noise]).epsilon(delta="1e-10")


def level_table(level: int, found: Mapping[str, Errors]) -> str:
    """A row a query, a column a way."""
    rows = (
        (words, *(errors.figure(level, query) for errors in found.values()))
        for query, words in QUERIES.items()
    )
    name, table = LEVELS[level].replace("_", " "), markdown(["people", *found], rows, ".2f ± .2g")
    return f"## Mean absolute error: {name}\n\n{table}"


def bias_table(found: Mapping[str, Errors]) -> str:
    """A row a level and size, a column a way."""
    most = (*(size - 1 for size in SIZES[1:]), None)
    rows, sizes = [], [*map(band_name, SIZES, most)]
    for level, name in enumerate(LEVELS[1:], 1):
        each = [errors.mean_bias(level) for errors in found.values()]
        for place in range(len(SIZES)):
            if not np.isnan(each[0][place]):
                shown = (bias[place] for bias in each)
                rows.append((name.replace("_", " "), sizes[place], *shown))
    return markdown(["level", "true count", *found], rows, "+.3f")


def draw(found: Mapping[str, Errors]) -> None:
    """Block groups and blocks whose largest share is within 5 points; bias in block groups."""
    figure, shown = panels(3)
    for way, errors in found.items():
        style: dict[str, Any] = {"color": COLOURS[way], "label": way, "linewidth": 1.4}
        for axes, level in zip(shown, STEPS, strict=False):
            steps = errors.by_size(level)
            middle = [low + STEPS[level] / 2 for low in steps]
            axes.plot(middle, [*steps.values()], **style)
        bias = errors.mean_bias(LEVELS.index("block_group"))
        shown[2].plot(bias, marker="o", markersize=3, **style)
    for axes, most, name in zip(
        shown, (1000, 500), ("block group (grey: the Bureau's)", "block"), strict=False
    ):
        axes.axhline(SURE, color="black", linewidth=0.8, linestyle=":")
        axes.set(
            xlabel=f"people in the {name}",
            ylabel="areas with the largest share within 5 points",
            xlim=(0, most),
        )
    shown[0].axvspan(PUBLISHED, PUBLISHED + 50, color="0.85")
    shown[2].axhline(0, color="black", linewidth=0.8)
    shown[2].set_xticks(range(len(SIZES)), [f"{size:,}" for size in SIZES])
    shown[2].set(xlabel="true count of a group in a block group, from", ylabel="mean error, people")
    shown[2].legend(fontsize=7)
    save(figure, "census_errors", 120, ROOT / "docs")


def main(data: Path) -> None:
    """Run all ways under all seeds and write the page."""
    with TemporaryDirectory() as folder:
        write_files(Path(folder), data / "pl94_ri_2010")
        cube, production = (Table.read(Path(folder) / f) for f in ("release.toml", PRODUCTION))
        least = least_largest_ratio(production, Path(folder) / PRODUCTION)
    ways = {
        BUREAU: (production, bureau_way),
        OURS: (production, our_way),
        LEAST: (least, our_way),
        CUBE: (cube, our_way),
    }
    found = {way: Errors() for way in ways}
    for seed in SEEDS:
        for name, (table, way) in ways.items():
            seconds, counts = timed(partial(way, table, table.noisy(seed)))
            found[name].add(table, counts, seconds)
            print(f"seed {seed}, {name}: {seconds:.1f} s", flush=True)
    write_page(found, cube)


if __name__ == "__main__":
    with_data(main)
