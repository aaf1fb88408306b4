"""The command `export`: a release in the formats of other tools."""

from pathlib import Path
from typing import Annotated, Any

import typer

from hedgerow.cli.output_file import Directory
from hedgerow.cli.terminal import escape, stage, stdout
from hedgerow.errors import SpecError, did_you_mean
from hedgerow.export.data_package import DataPackage
from hedgerow.export.export import Form
from hedgerow.export.export import export as write_export
from hedgerow.export.sdmx import Sdmx
from hedgerow.export.statistics_file import FILES, StatisticsFile

FORMS: dict[str, type[Any]] = {
    "datapackage": DataPackage,
    "sdmx": Sdmx,
    **{suffix[1:]: StatisticsFile for suffix in FILES},
}


def export(
    directory: Directory,
    form: Annotated[
        str, typer.Option("--as", metavar="FORMAT", help=f"The format: {', '.join(FORMS)}.")
    ],
    output: Annotated[Path, typer.Option(help="The file or directory to make.")],
    level: Annotated[
        str | None,
        typer.Option(
            help="Of formats with one table: a cuboid by its name in the plan. Default: the "
            "released table."
        ),
    ] = None,
    agency: Annotated[
        str | None, typer.Option(help="Of sdmx: the identifier of the agency. Default: HEDGEROW.")
    ] = None,
) -> None:
    """Write a release for other tools, from its directory alone, at no privacy cost.

    datapackage: CSV files with datapackage.json (Frictionless Data), all tables and code lists.
    sdmx: code lists, hierarchies and all tables (SDMX-ML 3.0 and SDMX-CSV 2.0).
    sav, dta, xpt: one table for SPSS, Stata or SAS. Titles, units and labels are those of
    [describe] in the release file. Each needs a library, and says which. CSV and Parquet files
    are written by hedgerow table.
    """
    if form not in FORMS:
        raise SpecError(
            f"no format is called {form!r}; there are {', '.join(FORMS)}{did_you_mean(form, FORMS)}"
        )
    with stage("exporting"):
        write_export(directory, output, _form(form, output, level, agency))
    stdout.print(f"Export: [bold]{escape(str(output))}[/bold]")


def _form(form: str, output: Path, level: str | None, agency: str | None) -> Form:
    """Return the format with its options, or raise for those that it has not."""
    if agency is not None and form != "sdmx":
        raise SpecError(f"--agency is for sdmx; {form} has none")
    if f".{form}" in FILES:
        if output.suffix.lower() != f".{form}":
            raise SpecError(f"--as {form} makes a file that ends in .{form}, got {output.name!r}")
        return StatisticsFile(level)
    if level is not None:
        raise SpecError(f"--level is for formats with one table; {form} has all of them")
    if form == "sdmx":
        return Sdmx() if agency is None else Sdmx(agency)
    return DataPackage()
