"""`table --records`: the released table written out, one row a record."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from hedgerow.cli.output_file import check_named, write_parts
from hedgerow.cli.terminal import bar, escape, say, stage, stdout
from hedgerow.plan.describe import aligned
from hedgerow.release.directory.stored import undamaged
from hedgerow.release.release import read_release
from hedgerow.text import visible

FIRST_ROWS = 20


def show_records(
    directory: Path,
    level: str | None,
    depth: int | None,
    output: Path | None,
    *,
    quote_formulas: bool,
) -> None:
    """Write the records of a table of a release, or show the first of them."""
    with stage("reading the release"), undamaged(directory):
        released = read_release(directory)
        check_named(released.plan, level, depth, records=True)
        total = released.content.total
        parts = released.records(level, depth=depth)
    if output is None:
        with undamaged(directory):
            _show(next(parts).head(FIRST_ROWS), total)
        return
    with bar("writing the records") as progress, undamaged(directory):

        def written() -> Iterator[pl.DataFrame]:
            """Yield what is written, and tell how much of it has been."""
            done = 0
            for part in parts:
                yield part
                done += len(part)
                progress.on_cells(len(part))
                progress.on_fraction(done / max(1, total))

        write_parts(written(), output, quote_formulas=quote_formulas)
    stdout.print(f"{total:,} rows: [bold]{escape(output)}[/bold]")


def _show(head: pl.DataFrame, total: int) -> None:
    rows = [[visible(str(value)) for value in row] for row in head.iter_rows()]
    say(aligned([head.columns, *rows], left=set(range(len(head.columns)))))
    stdout.print(
        f"\n{len(head):,} of {total:,} records; each is a released count written out, nobody "
        f"stands behind it. --output FILE.csv writes all."
    )
