"""Which criteria of Israel's birth registry can be agreed before a release, and what they cost.

Writes ``docs/births.md``. The table is synthetic, of the registry's shape, and all draws are
seeded.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import fill

import numpy as np
import polars as pl
from scipy.stats import norm

import hedgerow as hr
from hedgerow.plan.criteria.least import planned_at
from hedgerow.plan.forecast import forecast
from hedgerow.privacy.budget import value_of
from hedgerow.spec.release_spec import ReleaseSpec
from studies.page import keep, markdown

BIRTHS, THEIRS = 165_915, 9.98
BOUND = BIRTHS // 100
"""1 % of the births, in whole ones."""
DELTA = "1e-10"
TABLES, COLUMNS = "tables", "columns"
TRIED = {TABLES: "1/2", COLUMNS: "1/2"}
"""The files, each with an ε to begin at."""

TEXT = """# A birth registry's criteria

Before Israel's Ministry of Health released synthetic records of {births:,} births, eight criteria
were agreed with it (Hod and Canetti, [arXiv 2405.00267](https://arxiv.org/abs/2405.00267); bounds
and bins are those of their program, `shlomihod/synthflow`). The release met them at ε = {theirs},
pure. Of the eight, the two that speak of counts can be written as `[[accept]]` and planned for:
that needs the shape of the table, and sizes of counts from a public one. Made by `make studies` on
synthetic births, with Gaussian noise (δ = {delta}; the registry's ε has none) and one birth
replaced by another. All tables of a criterion keep it together with a probability of 95 % or more:
of m tables each is asked to with 1 - 1/(20 m).

{figures}

{lead}

Tables are those of their bins: 12 months, 4 ages of the mother, 3 parities, 2 weeks of gestation
(before the 37th, or not), 2 sexes, 3 weights. The one of all six columns is measured, and
the other {many} are its sums. Columns are month, age in years, parity, week of gestation, sex
and weight to 100 g, each measured; their ratio to the truth is asked of counts from {least}
births on, in a public table of the same shape: it is within 1/1.4 and 1.4 where a count is off by
at most 2/7. For a column the file says:

```toml
{file}
```

What the others ask, no plan of counts can be judged by:

{others}
"""

OTHERS = (
    ("mean parity within 0.3, by group", "a mean is a ratio of two sums, one weighted by parity"),
    ("mean birth weight within 100 g, by group", "the same, weighted by grams"),
    ("mean week of gestation within 1, by group", "the same, weighted by weeks"),
    ("coefficients of a linear regression within 30 in all", "no linear function of counts"),
    ("its mean absolute error within a factor of 5", "the same, and of records"),
    (
        "at most 5 % of records without one like them (faithfulness)",
        "of synthetic records: a table of counts has none",
    ),
)
"""Criteria that cannot be expressed, and why."""


@dataclass(frozen=True)
class Column:
    """A column of the registry, with made-up births.

    Attributes:
        name: of the axis.
        values: what it says, ascending; the first and the last stand for all beyond.
        bins: where those begin that tables are by.
        mean, spread: of the births.
    """

    name: str
    values: Sequence[int]
    bins: Sequence[int]
    mean: float = 0.0
    spread: float = np.inf

    def drawn(self, births: int, rng: np.random.Generator) -> pl.Series:
        """The values of so many births."""
        values = np.asarray(self.values)
        chances = np.exp(-0.5 * ((values - self.mean) / self.spread) ** 2)
        drawn = rng.choice(values, births, p=chances / chances.sum())
        return pl.Series(self.name, drawn).cast(pl.String).str.zfill(4)

    def binned(self, values: pl.Series) -> pl.Series:
        """The bins of values."""
        numbers = values.cast(pl.Int64).to_numpy()
        begin = np.asarray(self.bins)[np.searchsorted(self.bins, numbers, side="right") - 1]
        return pl.Series(self.name, begin).cast(pl.String).str.zfill(4)


REGISTRY = (
    Column("month", range(1, 13), range(1, 13)),
    Column("age", range(17, 46), (17, 25, 30, 35), 30.5, 5.5),
    Column("parity", range(1, 12), (1, 2, 4), 1.0, 2.2),
    Column("week", range(28, 43), (28, 37), 39.3, 2.6),
    Column("sex", (1, 2), (1, 2)),
    Column("weight", range(1400, 4600, 100), (1400, 2500, 4000), 3250.0, 560.0),
)
"""Made up; only how many births each value has matters here, and that for ratios alone."""
LEAST, PUBLIC = 50, "public_births.parquet"


def drawn(seed: int) -> pl.DataFrame:
    """Births under a seed."""
    rng = np.random.default_rng(seed)
    return pl.DataFrame([column.drawn(BIRTHS, rng) for column in REGISTRY])


def write_tables(folder: Path) -> None:
    """Write births by bins and in full, others that are public, and the lists of all values."""
    births = drawn(2014)
    binned = births.with_columns([column.binned(births[column.name]) for column in REGISTRY])
    drawn(2013).write_parquet(folder / PUBLIC)
    for kind, table in ((COLUMNS, births), (TABLES, binned)):
        table.write_parquet(folder / f"{kind}.parquet")
        for column in REGISTRY:
            codes = [f"{value:04d}" for value in (column.values, column.bins)[kind == TABLES]]
            path = folder / f"{kind}_{column.name}.parquet"
            pl.DataFrame({column.name: codes}).write_parquet(path)


def criteria(kind: str) -> Iterator[str]:
    """The criteria of a file, a section each."""
    names = [f"{column.name}.{column.name}" for column in REGISTRY]
    if kind == TABLES:
        tables = [table for n in range(1, 7) for table in combinations(names, n)]
        each = f"{20 * len(tables) - 1}/{20 * len(tables)}"
        for table in tables:
            yield section(" × ".join(table), "1 % of records", each, f"records = {BIRTHS}\n")
    else:
        each = f"{20 * len(names) - 1}/{20 * len(names)}"
        sizes = f'sizes = {{ source = "{PUBLIC}", public = true }}\n'
        for name in names:
            yield section(name, "200/7 %", each, f"from = {LEAST}\n{sizes}")


def section(cuboid: str, within: str, probability: str, more: str) -> str:
    """An ``[[accept]]`` of a release file."""
    return (
        f'[[accept]]\ncuboid = "{cuboid}"\nwithin = "{within}"\n'
        f'probability = "{probability}"\n{more}\n'
    )


def write_file(folder: Path, kind: str) -> Path:
    """Write a release file with its criteria."""
    axes = "".join(
        f'[[axis]]\nname = "{column.name}"\nlevels = ["{column.name}"]\n'
        f'areas = "{kind}_{column.name}.parquet"\n\n'
        for column in REGISTRY
    )
    names = [f"{column.name}.{column.name}" for column in REGISTRY]
    workload = (
        '[workload]\ncuboids = "cube"\n' if kind == TABLES else f"[workload]\ncuboids = {names}\n"
    )
    shares = ", ".join(
        f'{column.name} = ["0", "1"]' if kind == TABLES else f'"{name}" = "1/6"'
        for column, name in zip(REGISTRY, names, strict=True)
    )
    file = folder / f"{kind}.toml"
    file.write_text(
        f'[table]\nsource = "{kind}.parquet"\n\n{axes}{workload}\n'
        f'[privacy]\nneighbours = "replace"\nepsilon = "{TRIED[kind]}"\ndelta = "{DELTA}"\n\n'
        f'[allocation]\nmethod = "shares"\nshares = {{ {shares} }}\n\n'
        '[estimate]\nmeasure = "all"\n\n' + "".join(criteria(kind))
    )
    return file


def columns_of(criterion: hr.Criterion) -> list[str]:
    """The columns of the table that a criterion is of."""
    return [part.split(".")[0] for part in criterion.cuboid.split(" × ")]


@dataclass(frozen=True)
class Needed:
    """What the criteria of a file need.

    Attributes:
        plan: of the file, with the least budget that keeps all of them.
        hardest: the criterion that needs most.
        kept: of tables by one column and by all the bounds that are kept with that budget.
        rest: of the other tables the least probability with which one keeps its bound; proved by
            the tails of its counts alone, as there are many tables.
    """

    plan: hr.Plan
    hardest: hr.Criterion
    kept: dict[str, float]
    rest: float

    @classmethod
    def of(cls, file: Path) -> "Needed":
        """Of a release file."""
        spec = ReleaseSpec(file)
        plan = spec.plan(spec.tree())
        ends = tuple(each for each in plan.accept if len(columns_of(each)) in {1, len(REGISTRY)})
        verdicts = hr.verdicts(replace(plan, accept=ends))
        hardest = min(verdicts, key=lambda verdict: verdict.reach or 0.0)
        budget = hr.least_budget(replace(plan, accept=(hardest.criterion,)))
        plan = planned_at(plan, budget)
        kept = {
            ", ".join(columns_of(each.criterion)): (each.within or 0.0) * (hardest.reach or 1.0)
            for each in verdicts
        }
        errors = dict(forecast(plan).select("cuboid", "rmse").iter_rows())
        rest = [each for each in plan.accept if each not in ends]
        chances = [
            1 - plan.tree.cells(each.levels(plan.tree)) * 2 * norm.sf(BOUND / errors[each.cuboid])
            for each in rest
        ]
        return cls(plan, hardest.criterion, kept, min(chances, default=1.0))

    @property
    def epsilon(self) -> float:
        """Of the budget."""
        return float(value_of(self.plan.budget))


def rows(found: dict[str, Needed]) -> Iterator[tuple[object, ...]]:
    """What each file needs, beside the registry's ε."""
    words = {
        TABLES: "every count of every table by 1 to 6 columns within 1 % of the births",
        COLUMNS: "every count by one column within a factor of 1.4",
    }
    for kind, needed in found.items():
        hardest = ", ".join(columns_of(needed.hardest))
        yield words[kind], len(needed.plan.accept), hardest, needed.epsilon, THEIRS


def lead(found: dict[str, Needed]) -> str:
    """What a reader takes home."""
    both, tables = sum(needed.epsilon for needed in found.values()), found[TABLES]
    each = float(tables.plan.accept[0].probability)
    if tables.rest < each:
        raise ValueError("a table by 2 to 5 columns needs more")
    own = ", ".join(f"{name} {100 * bound:.2g} %" for name, bound in tables.kept.items())
    text = (
        f"Both together cost at most ε = {both:.3g}, as ε and δ add up. With the first, counts are "
        f"within these parts of the births: {own}. Of tables by 2 to 5 columns each keeps 1 % with "
        f"a probability of {tables.rest:.6f} or more. The registry's ε pays for records, too, for "
        "the search among ways to make them, and for six criteria more; what is planned here gives "
        "counts, and no records. Whole counts are made to add up, and of them nothing is proved: "
        "the criteria are of estimates."
    )
    return fill(text, 100)


def main() -> None:
    """Plan both files, and write the page."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_tables(folder)
        found = {kind: Needed.of(write_file(folder, kind)) for kind in TRIED}
    head = "criterion | `[[accept]]` sections | the hardest | ε that it needs | ε of the registry"
    page = TEXT.format(
        births=BIRTHS,
        theirs=THEIRS,
        delta=DELTA,
        least=LEAST,
        figures=markdown(head, rows(found), " |  |  | .3g | .3g"),
        lead=lead(found),
        many=len(found[TABLES].plan.accept) - 1,
        file=next(criteria(COLUMNS)).strip(),
        others=markdown("criterion | why it is none of counts", OTHERS),
    )
    keep("births", page)


if __name__ == "__main__":
    main()
