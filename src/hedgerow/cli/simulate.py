"""The command `simulate`: compare settings by simulated releases of a public table."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby, product
from pathlib import Path
from typing import Annotated

import polars as pl
from typer import Argument, Option

from hedgerow.cli.beside import Methods, show_beside
from hedgerow.cli.output_file import (
    Picture,
    Wide,
    check_picture_place,
    check_place,
    whole_file,
)
from hedgerow.cli.terminal import bar, say, stage, stdout, warn_of_copies
from hedgerow.columns import aligned
from hedgerow.declared import check_known
from hedgerow.errors import ReleaseError, SpecError
from hedgerow.evaluate.method import Method, Setting
from hedgerow.evaluate.practice.strategies import methods_of, read_strategies
from hedgerow.evaluate.simulate import METRICS, RUNS, WORKERS, run_bits
from hedgerow.evaluate.simulate import left_out as left_out_of
from hedgerow.evaluate.simulate import simulate as simulate_settings
from hedgerow.evaluate.simulation_output import (
    WORDS,
    TableWords,
    legend,
    metric_rows,
    picture_of_simulation,
    write_simulation,
)
from hedgerow.spec.simulate_settings import LeftOut
from hedgerow.spec.simulate_spec import SimulateSpec
from hedgerow.tables.counts import Counts
from hedgerow.tables.description import Description
from hedgerow.tables.tree import Tree

USUAL = ("rmse", "max_error", "false_discovery_rate")


def simulate(  # noqa: PLR0913, PLR0917 - the options of a command
    file: Annotated[
        Path,
        Argument(metavar="FILE", help="A release file with [simulate], or a file that names one."),
    ],
    runs: Annotated[int, Option(metavar="R", help="Releases of each setting.")] = 20,
    seed: Annotated[int, Option(help="Of all noise; the same seed, the same table.")] = 0,
    workers: Annotated[
        int | None, Option(help="Threads. Default: one a core. Results do not change.")
    ] = None,
    show: Annotated[
        list[str] | None,
        Option(metavar="METRIC", help=f"May be repeated: {', '.join(METRICS)}."),
    ] = None,
    output: Annotated[
        Path | None, Option(help="Write every metric into this Parquet file.")
    ] = None,
    picture: Picture = None,
    force: Annotated[bool, Option("--force", help="Overwrite the output and the picture.")] = False,
    beside: Methods = None,
    wide: Wide = False,
) -> None:
    """Compare settings by simulated releases of a PUBLIC table.

    The file's [simulate] section declares the table public and lists allocations, mechanisms,
    measures, estimators, budgets and baselines to compare; lists left out hold the file's own
    setting and common alternatives. Nothing simulated may be published as a release.

    --beside shows the first setting beside the methods that offices use today, in tables of their
    own, a column a method.
    """
    RUNS(runs, "--runs")
    if workers is not None:
        WORKERS(workers, "--workers")
    metrics: Sequence[str] = show or USUAL
    for metric in metrics:
        check_known(metric, METRICS, "metric", SpecError)
    if output is not None:
        check_place(output, suffixes=(".parquet",), force=force)
    check_picture_place(picture, ReleaseError, force=force)
    strategies = {} if beside is None else read_strategies(beside)
    spec = SimulateSpec(file)
    with stage("reading the lists of areas and the public table"):
        tree = spec.tree()
        counts = spec.counts(tree)
        words = _words(spec.release.description(tree), tree)
    same = "[simulate.table] has exactly the counts of the table of the release file"
    warn_of_copies(lambda: [same] if spec.is_own_table(tree) else [])
    with stage("planning"):
        settings, left_out = spec.settings(tree)
    first = next((each for each in settings if isinstance(each, Setting)), None)
    if strategies and first is None:
        raise SpecError("--beside needs a setting with a plan, and [simulate] leaves none")
    practice = [] if first is None else methods_of(strategies, first.plan)
    with bar(f"simulating {len(settings)} settings, {runs} releases each") as progress:
        errors = simulate_settings(
            counts,
            settings,
            public=spec.section.public,
            runs=runs,
            seed=seed,
            workers=workers,
            progress=progress.on_fraction,
        )
    left_out += _without_cuboids(counts, settings)
    if spec.is_distribution and show is None:
        metrics = ("cumulative_rmse", *metrics)
    stdout.print(f"\n{runs} simulated releases of each setting under seed {seed}, by cuboid:\n")
    _show(errors, metrics, left_out, wide=wide)
    if first is not None and practice:
        say(f"\nHedgerow is: {first.name}\n")
        own = replace(first, name="Hedgerow")
        about = f"{runs} releases"
        show_beside(counts, own, practice, partial(run_bits, seed), about, runs, wide=wide)
    if output is not None:
        with whole_file(output) as opened:
            write_simulation(errors, opened, {"file": file.name, "runs": runs, "seed": seed})
        say(f"\nEvery metric: {output}")
    if picture is not None:
        about = f"{runs} simulated releases of a public table under each setting. Not a release."
        picture_of_simulation(
            errors, picture, words=words, about=about, metrics=metrics, force=force
        )
        say(f"\nPicture: {picture}")


def _without_cuboids(counts: Counts, settings: Sequence[Method]) -> Iterator[LeftOut]:
    """Yield which cuboids settings do not release, and why."""
    for name, cuboids in left_out_of(counts, settings).items():
        some = " and ".join(cuboids[:2])
        if len(cuboids) > 2:
            some = f"{len(cuboids)} of the cuboids, such as {some}"
        yield LeftOut(name, f"{some}, which no released table contains")


def _words(said: Description, tree: Tree) -> TableWords:
    levels = product(*tree.level_numbers)
    worded = said.axes or said.levels
    return TableWords(
        title=", ".join(filter(None, [said.title, said.period])) if said.title else "",
        unit=said.unit or "records",
        labels={tree.name_of(each): said.cuboid_label(tree, each) for each in levels if worded},
    )


def _show(
    errors: pl.DataFrame, metrics: Sequence[str], left_out: Sequence[LeftOut], *, wide: bool
) -> None:
    """Print a table of each metric, and which settings were left out, by reason."""
    say(aligned(legend(errors), wide=wide))
    for metric in metrics:
        stdout.print(f"\n{WORDS[metric]}, ± its Monte Carlo error, * the least:\n")
        say(aligned(metric_rows(errors, metric), wide=wide))
    ordered = sorted(left_out, key=lambda each: each.reason)
    for reason, group in groupby(ordered, key=lambda each: each.reason):
        names = [each.name for each in group]
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        say(f"\nLeft out: {names[0]}{more}: {reason}")
