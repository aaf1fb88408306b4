"""The command `check`: a release directory, verified again from its own files."""

from pathlib import Path
from typing import Annotated

import typer

from hedgerow.cli.terminal import escape, shown, stage
from hedgerow.errors import ReleaseError
from hedgerow.release.directory.check import Finding
from hedgerow.release.directory.check import check as check_directory
from hedgerow.text import one_line

NOT_VERIFIED = 3
FIRST_CHECKS = 3
"""Digests, plan and domain: where one of these fails, nothing else can be checked."""


def check(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A release directory.")],
) -> None:
    """Re-verify a release directory: digests, plan, sums, whole numbers, measurements, page.

    The exit code is 0 where every check passed, 2 where one failed, and 3 where none failed but
    something could not be verified, such as a page that another version made.
    """
    with stage("checking"):
        found = check_directory(directory)
    for finding in found:
        shown.print(_told(finding))
    failed = [finding for finding in found if finding.failure]
    if failed:
        rest = "" if len(found) > FIRST_CHECKS else "; the others rest on these and were not made"
        raise ReleaseError(
            f"{len(failed)} of {len(found)} checks failed in {str(directory)!r}{rest}"
        )
    unverified = [finding.what for finding in found if finding.unverified]
    if unverified:
        shown.print(
            f"{len(found) - len(unverified)} of {len(found)} checks passed, {len(unverified)} not "
            f"verified: {escape('; '.join(unverified))}."
        )
        raise typer.Exit(NOT_VERIFIED)
    shown.print(f"All {len(found)} checks passed.")


def _told(finding: Finding) -> str:
    """A line that says what was found."""
    if finding.passed:
        return f"[green]ok[/green]   {escape(one_line(finding.what))}"
    mark = "[red]FAIL[/red]" if finding.failure else "[yellow]NOT VERIFIED[/yellow]"
    return f"{mark} {escape(one_line(f'{finding.what}: {finding.failure or finding.unverified}'))}"
