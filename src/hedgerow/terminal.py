"""What people see: results on standard output, progress on standard error."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from hedgerow.release.topdown import Progress as PassProgress

shown = Console(soft_wrap=True, highlight=False)
told = Console(stderr=True, soft_wrap=True, highlight=False)


@contextmanager
def stage(what: str) -> Iterator[None]:
    """A spinner on a terminal, a plain line elsewhere."""
    if told.is_terminal:
        with told.status(what):
            yield
    else:
        told.print(what)
        yield


@contextmanager
def bar(what: str) -> Iterator[PassProgress]:
    """A bar with rate and time left on a terminal, a plain line elsewhere."""
    if not told.is_terminal:
        told.print(what)
        yield PassProgress()
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=told) as shown_bar:
        task = shown_bar.add_task(what, total=1.0, rate="")
        cells = 0

        def on_cells(more: int) -> None:
            nonlocal cells
            cells += more
            elapsed = shown_bar.tasks[0].elapsed or 0.0
            if elapsed > 0:
                shown_bar.update(task, rate=f"{cells / elapsed / 1e6:,.1f} M cells/s")

        yield PassProgress(on_cells, lambda fraction: shown_bar.update(task, completed=fraction))
