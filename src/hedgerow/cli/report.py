"""The command `report`: the page of a release, written again from its directory."""

from pathlib import Path
from typing import Annotated

import typer

from hedgerow.cli.output_file import check_place
from hedgerow.cli.terminal import escape, shown, stage
from hedgerow.errors import machine_errors
from hedgerow.estimate.families.registry import read_estimator
from hedgerow.release.directory.manifest import made_by, read_manifest
from hedgerow.release.directory.stored import stated_plan, undamaged
from hedgerow.release.page.report import REPORT, page


def report(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A release directory.")],
    output: Annotated[
        Path | None, typer.Option(help="Where the page goes; else report.html beside DIR.")
    ] = None,
) -> None:
    """Write the page of a release again, from its directory alone; it costs no privacy.

    The release stays as it is: its own report.html is one of the files that the manifest names.
    """
    place = output or _beside(directory)
    check_place(place)
    with stage("writing the page"), undamaged(directory):
        manifest = read_manifest(directory)
        plan = stated_plan(directory, manifest)
        text = page(directory, plan, read_estimator(manifest["estimator"]), made_by(manifest))
    with machine_errors(f"cannot write {str(place)!r}"), place.open("x", encoding="utf-8") as file:
        file.write(text)
    shown.print(f"Page: [bold]{escape(str(place))}[/bold]")


def _beside(directory: Path) -> Path:
    """Where a page goes that nobody named a place for."""
    named = directory.resolve()
    return named.with_name(f"{named.name}.{REPORT}")
