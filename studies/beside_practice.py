"""Real tables beside what offices do today: rounding, suppression and cell keys.

Reads ``../shared/data`` beside the repository (or the folder named as the first argument), and
writes ``docs/beside_practice.md`` and ``docs/beside_practice.png``. All tables are public and all
noise is seeded, so the figures come out the same every time.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import fill

import polars as pl

import hedgerow as hr
from hedgerow.evaluate.method import Setting
from hedgerow.evaluate.practice.attack import SUMS
from hedgerow.evaluate.practice.figures import (
    ADDED,
    FOUND,
    PUBLISHED,
    USE,
    Table,
    beside,
    in_words,
)
from hedgerow.evaluate.practice.strategies import methods_of, read_strategies
from hedgerow.evaluate.simulate import run_bits
from hedgerow.kernels import core_count
from hedgerow.picture import COLOURS, MARKS
from studies.page import ROOT, keep, markdown, with_data
from studies.redistricting import Table as Redistricting
from studies.redistricting import write_files
from studies.releases import plan_of, trips_plan, within
from studies.showing import panels, save
from studies.tables import census_of, trips_between

RUNS = 5
METHODS = "rounding:5,random-rounding:5,suppression:10,cell-key"
OWN, KEYS, ROUNDED, AT_RANDOM = "Hedgerow", "cell-key:D5V3js2", "rounding:5", "random-rounding:5"
PERTURBATION = """
0 3 4 5 6 7 8 9 10 11 12 13
1
.73446954 .13672019 .07279631 .03742956 .018584399
.40880704 .406643537 .14762401 .03231882 .004266868 .0003397188
.20398618 .393662525 .24749239 .11056847 .035102043 .0079189055 .001269491
.08485487 .277921233 .27792123 .18939369 .105125448 .045455357 .015310774 .004017391
.02014749 .173347467 .22063302 .22131828 .174967643 .1090164652 .05353283 .020717693 .006319113
0 .072029825 .13671708 .19735138 .216652933 .1808822561 .114850887 .055459983 .020367237 .005688418
0 .018439196 .05548389 .12162104 .194208159 .2259140226 .191441399 .118180404 .053146176 \
.017410672 .004155049
0 .003791861 .01659093 .05229263 .118730368 .1941934608 .228801496 .19419346 .118730371 \
.052292634 .016590928 .00379186
"""
"""What counts of 0, 1, … become, and how likely: at most ±5, variance 3, never 1 or 2. Enderle,
"Introduction to the ptable-Package", vignette of ptable 1.0.0 (CRAN, 2023): `ptable_e22`."""

TEXT = """# Beside what offices do today

Made by `make studies`: three public tables under Hedgerow, rounding to 5 (to the nearest multiple,
and at random without bias), suppression below 10 (with further cells, so that no single sum gives
one away) and cell keys by a published table of perturbation (R's `ptable`: at most ±5,
variance 3, never 1 or 2). Every method publishes the same cuboids. Figures are means over {runs}
runs under seeds; errors are means over the cells above 0. Under suppression a cell is exact or
blank; a blank is no error of the numbers published, and counts as 0 in sums. `hedgerow compare
--beside` shows the same of a release.

{lead}

An office that publishes a total for itself makes it as close as a cell; it then differs from the
sum of its cells. The attacks are run (`hedgerow.evaluate.practice.attack`), but for sums to order
of Hedgerow's release, which are the sums of its cells. What a guess hits by chance is among the
hits, so they stand beside what who knows nothing hits; none of them is the best that is possible.
Where noise is small, as in Rhode Island, the released number is a good guess. What ranges of hidden
cells tell is not tried.

![Mean error of sums by how many cells they add]({picture})
"""
LEAD = (
    "{name}: a single {cell} is closer to the truth under cell keys, off by {key:.2g} on average, "
    "against {own:.2g} with Hedgerow, and so is what leaves a region, which all of them publish, "
    "off by {key_all:.2g} against {own_sum:,.0f}. Added up from about {many:,.0f} published cells, "
    "as areas of a reader's own are, it is off by {own_sum:,.0f} with Hedgerow, by {key_sum:,.0f} "
    "under cell keys, by {random_sum:,.0f} after random rounding and by {round_sum:,.0f} after "
    "rounding to the nearest. Under cell keys {apart:.0%} of the totals differ from the sum of "
    "their cells, and who may ask for {sums} sums of any cells hits {found:.0%} of the counts from "
    "1 to 9; of Hedgerow's release, which adds up, {own_found:.0%}, whatever sums are asked. "
    "Saying the commonest count hits {blind:.0%}."
)


@dataclass(frozen=True)
class Case:
    """A public table, and the plan of its release.

    Attributes:
        name: what it is called.
        cell: what its finest cells are.
        about: how it is released.
        counts: the truth.
        plan: of the release.
    """

    name: str
    cell: str
    about: str
    counts: hr.Counts
    plan: hr.Plan


def cases(data: Path, folder: Path) -> Iterator[Case]:
    """The three tables."""
    trips = trips_between(data / "od_uk_lad_2011")
    plan = trips_plan(trips.tree, within("1"), hr.All(), workload=hr.Cube())
    yield Case("UK flows", "pair of districts", "a cube at ε = 1", trips, plan)
    write_files(folder, data / "pl94_ri_2010")
    state = Redistricting.read(folder / "release.toml")
    about = "the queries and the budget of the 2020 census, ρ = 2.49"
    yield Case("Rhode Island", "cell of a block", about, state.counts, state.plan)
    levels = ["area", "region", "province", "municipality"]
    people = pl.read_parquet(data / "census_italy_municipality" / "pop.parquet")
    counts = census_of(people, levels, "pop_2011")
    plan = plan_of(counts.tree, hr.EpsilonDelta("1", "1e-10"), hr.All())
    yield Case("Italian municipalities", "municipality", "a chain at ε = 1", counts, plan)


def table_of_perturbation(folder: Path) -> Path:
    """Write `PERTURBATION` as ptable exports it."""
    head, *rows = (line.split() for line in PERTURBATION.strip().splitlines())
    lines = ["i;j;p;v;p_int_ub"]
    for count, chances in enumerate(rows):
        until = 0.0
        for result, chance in zip(head, chances, strict=False):
            until += float(chance)
            if float(chance):
                lines.append(f"{count};{result};{chance};{int(result) - count};{until:.8f}")
    path = folder / "D5V3js2.txt"
    path.write_text("\n".join(lines))
    return path


def figures_of(case: Case, words: str) -> pl.DataFrame:
    """The figures of a table, and of sums how many cells above 0 each adds."""
    practice = methods_of(read_strategies(words), case.plan)
    own = Setting(OWN, case.plan, case.plan.design.usual, workers=core_count())
    bits = partial(run_bits, 0)
    frame = beside(case.counts, [own, *practice], case.plan, bits, RUNS)
    table, tree = Table.of(case.counts, case.plan), case.counts.tree
    many = {
        tree.name_of(k): len(table.published[finest].values) / len(true.values)
        for k, (true, finest) in table.sums.items()
    }
    added = pl.col("figure").replace_strict(many, default=1.0, return_dtype=pl.Float64)
    return frame.with_columns(added=pl.when(pl.col("group") == ADDED).then(added))


def section(case: Case, figures: pl.DataFrame) -> str:
    """The table of a case."""
    methods = figures.columns[3:-1]
    parts = [f"## {case.name}\n\n{case.counts.total:,} records; {case.about}.\n"]
    for group in (PUBLISHED, ADDED, USE, FOUND):
        rows = figures.filter(pl.col("group") == group)
        shown = [
            [row["figure"], *(in_words(row[name], is_share=row["is_share"]) for name in methods)]
            for row in rows.drop_nulls(OWN).to_dicts()
        ]
        if shown:
            parts.append(markdown([group, *methods], shown) + "\n")
    return "\n".join(parts)


def lead(case: Case, figures: pl.DataFrame) -> str:
    """What a reader takes home, from one table."""
    of = {(row["group"], row["figure"]): row for row in figures.to_dicts()}
    finest = figures.filter(pl.col("group") == PUBLISHED).to_dicts()[-1]
    sums = figures.filter(pl.col("group") == ADDED, pl.col("figure") != "total")
    largest = max(sums.to_dicts(), key=lambda row: row["added"])
    found, published = of[FOUND, f"from {2 * SUMS} sums to order"], of[PUBLISHED, largest["figure"]]
    text = LEAD.format(
        name=case.name, cell=case.cell, key=finest[KEYS], own=finest[OWN],
        many=largest["added"], own_sum=largest[OWN], round_sum=largest[ROUNDED],
        key_sum=largest[KEYS], apart=of[USE, "totals that do not add up"][KEYS],
        sums=2 * SUMS, found=found[KEYS], own_found=found[OWN], key_all=published[KEYS],
        random_sum=largest[AT_RANDOM], blind=of[FOUND, "saying the commonest"][OWN],
    )  # fmt: skip
    return fill(text, 100)


def picture(found: dict[str, pl.DataFrame]) -> str:
    """Draw the errors of single cells and of sums, a panel a table."""
    figure, axes = panels(len(found), size=(3.9, 3.6), colours=COLOURS)
    for one, (name, figures) in zip(axes, found.items(), strict=True):
        single = figures.filter(pl.col("group") == PUBLISHED)[-1:].with_columns(added=1.0)
        sums = figures.filter((pl.col("group") == ADDED) & (pl.col("figure") != "total"))
        drawn = pl.concat([single, sums]).sort("added")
        for method, mark in zip(figures.columns[3:-1], MARKS, strict=False):
            one.plot(drawn["added"], drawn[method], mark, linestyle="-", label=method)
        one.set(title=name, xscale="log", yscale="symlog", xlabel="cells added together")
        one.set_ylim(bottom=-0.1)
    axes[0].set_ylabel("mean error (records)")
    return save(
        figure, "beside_practice", folder=ROOT / "docs", loc="outside lower center", ncols=5
    )


def main(data: Path) -> None:
    """Compare the methods on every table, and write the page and the picture."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        words = f"{METHODS}:{table_of_perturbation(folder)}"
        found = {case: figures_of(case, words) for case in cases(data, folder)}
    drawn = picture({case.name: figures for case, figures in found.items()})
    sections = [section(case, figures) for case, figures in found.items()]
    first = lead(*next(iter(found.items())))
    page = TEXT.format(runs=RUNS, lead=first, picture=drawn)
    keep("beside_practice", "\n".join([page, *sections]))


if __name__ == "__main__":
    with_data(main)
