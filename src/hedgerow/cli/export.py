"""The command `export`: a release in the formats of other tools."""

from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from hedgerow.cli.output_file import Directory, levels_by, warn_of_formulas
from hedgerow.cli.terminal import escape, stage, stdout
from hedgerow.declared import check_known
from hedgerow.errors import SpecError
from hedgerow.export.data_package import DataPackage
from hedgerow.export.geoparquet import GeoParquet
from hedgerow.export.released import ExportFormat
from hedgerow.export.released import export as write_export
from hedgerow.export.sdmx import Sdmx
from hedgerow.export.statistics_file import FILES, StatisticsFile
from hedgerow.export.workbook import Workbook
from hedgerow.release.directory.stored import undamaged
from hedgerow.release.release import read_release

FORMATS: dict[str, type[Any]] = {
    "datapackage": DataPackage,
    "sdmx": Sdmx,
    "geoparquet": GeoParquet,
    "xlsx": Workbook,
    **{suffix[1:]: StatisticsFile for suffix in FILES},
}


def export(  # noqa: PLR0913, PLR0917 - the options of a command
    directory: Directory,
    form: Annotated[
        str, Option("--as", metavar="FORMAT", help=f"The format: {', '.join(FORMATS)}.")
    ],
    output: Annotated[Path, Option(help="The file or directory to make.")],
    level: Annotated[
        str | None,
        Option(
            help="Of xlsx and formats with one table: a cuboid by its name in the plan. Default: "
            "all of them, or the released table."
        ),
    ] = None,
    agency: Annotated[
        str | None, Option(help="Of sdmx: the identifier of the agency. Default: HEDGEROW.")
    ] = None,
    shapes: Annotated[
        Path | None, Option(help="Of geoparquet: a public file with the shapes of areas.")
    ] = None,
    key: Annotated[
        str | None, Option(help="The column of --shapes with the codes of the areas.")
    ] = None,
    column: Annotated[
        str | None, Option(help="The table's column with these codes. Default: by its name.")
    ] = None,
    listed: Annotated[
        bool,
        Option("--listed", help="Of geoparquet: positive counts alone, not every area."),
    ] = False,
    names: Annotated[
        bool,
        Option("--names", help="Of xlsx and formats with one table: names of areas, too."),
    ] = False,
    share: Annotated[
        list[str] | None,
        Option(
            metavar="LEVEL",
            help="Not of sdmx: share of each count in the cell of LEVEL that it is in, or of the "
            "total, with intervals; once an axis.",
        ),
    ] = None,
) -> None:
    """Write a release for other tools, at no privacy cost.

    It is read from its directory alone. datapackage: CSV files with datapackage.json (Frictionless
    Data), all tables and code lists. sdmx: code lists, hierarchies and all tables (SDMX-ML 3.0 and
    SDMX-CSV 2.0). xlsx: a sheet of notes and one a table, for Excel. geoparquet: one table with the
    shapes of its areas, counts of 0 included. sav, dta, xpt: one table for SPSS, Stata or SAS.
    Titles, units and labels are those of [describe] in the release file, and names of areas those
    of the public list, where a format has room for them. Each needs a library, and says which. CSV
    and Parquet files are written by hedgerow table.
    """
    if form in {"csv", "parquet"}:
        raise SpecError(f"hedgerow table writes CSV and Parquet files: --output FILE.{form}")
    check_known(form, FORMATS, "format", SpecError)
    options = {
        "level": level, "agency": agency, "shapes": shapes, "key": key, "column": column,
        "listed": listed or None, "names": names or None, "share": share or None,
    }  # fmt: skip
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    with stage("exporting"):
        # the format with its options, or raise for those that it has not
        kind = FORMATS[form]
        known_options = kind_options(kind)
        for option in given:
            if option not in known_options:
                others = [other for other, one in FORMATS.items() if option in kind_options(one)]
                raise SpecError(f"{form} has no --{option}, which is for {', '.join(others)}")
        if kind is StatisticsFile and output.suffix.lower() != f".{form}":
            raise SpecError(f"--as {form} makes a file that ends in .{form}, got {output.name!r}")
        if kind is GeoParquet and "shapes" not in given:
            raise SpecError("geoparquet needs --shapes FILE, a public file with the areas' shapes")
        if share:
            with undamaged(directory):
                tree = read_release(directory).plan.tree
            given["share"] = levels_by(tree, [] if share == ["total"] else share, "--share")
        made: ExportFormat = kind(**given)
        write_export(directory, output, made)
    warn_of_formulas(output)
    stdout.print(f"Export: [bold]{escape(output)}[/bold]")


def kind_options(kind: type[Any]) -> list[str]:
    """Return the options that a format has."""
    return [each.name for each in fields(kind)]
