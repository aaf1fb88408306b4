"""The command `report`: the page of a release, written again from its directory."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from hedgerow.errors import ReleaseError, machine_errors
from hedgerow.estimate.named import read_estimator
from hedgerow.release.manifest import read_manifest
from hedgerow.release.report import REPORT, page
from hedgerow.release.stored import stated_plan, undamaged
from hedgerow.terminal import shown, stage


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
    _check_place(directory, place)
    with stage("writing the page"), undamaged(directory):
        manifest = read_manifest(directory)
        plan = stated_plan(directory, manifest)
        made_by = manifest["software"]["hedgerow"]
        text = page(directory, plan, read_estimator(manifest["estimator"]), made_by)
    with machine_errors(f"cannot write {str(place)!r}"), place.open("x", encoding="utf-8") as file:
        file.write(text)
    shown.print(f"Page: [bold]{escape(str(place))}[/bold]")


def _beside(directory: Path) -> Path:
    """Where a page goes that nobody named a place for."""
    named = directory.resolve()
    return named.with_name(f"{named.name}.{REPORT}")


def _check_place(directory: Path, place: Path) -> None:
    """Refuse a place that is taken, or that lies within the release."""
    if place.exists() or place.is_symlink():
        raise ReleaseError(f"--output {str(place)!r} exists already; name another place")
    if not place.parent.is_dir():
        raise ReleaseError(f"--output {str(place)!r}: its folder is not there; make it first")
    if place.resolve().is_relative_to(directory.resolve()):
        raise ReleaseError(
            f"--output {str(place)!r} lies within the release {str(directory)!r}, which stays as "
            f"it is; name a place outside"
        )
