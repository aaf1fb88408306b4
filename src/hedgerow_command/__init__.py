"""The console command. A package of its own, so that it runs before Hedgerow is imported.

Importing takes a second, in which Ctrl-C would end in a traceback from wherever it struck.
"""

import gc
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import NoReturn

FAILED, STOPPED = 1, 130
LEAST_ADDRESSES = 4_000_000_000
"""Bytes of virtual memory to begin with; with less the libraries end without a word of ours."""

ExitCode = str | int | None


def main() -> NoReturn:
    """Run the command that the process was started with."""
    finish(_run)


def finish(command: Callable[[], None]) -> NoReturn:
    """Run a command, and exit once its output is written."""
    code: ExitCode = 0
    try:
        command()
    except SystemExit as end:
        code = end.code
    except OSError as error:  # of the overview; the commands explain theirs
        code = _failed(error)
    sys.exit(_written(code))


def _run() -> None:
    """Run the command; until it is imported nothing has begun."""
    catches = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if catches:
        signal.signal(signal.SIGINT, _stop)
    if sys.argv[1:] in ([], ["--help"], ["--version"]):
        from hedgerow_command import overview  # noqa: PLC0415 - the commands need none of it

        overview.show()
    _check_addresses()
    gc.disable()  # nothing that importing makes is garbage, and looking for it takes long
    from hedgerow import cli  # noqa: PLC0415 - this is what takes a second

    gc.freeze()  # nor will any of it be later
    gc.enable()
    if catches:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    cli.main()


def _check_addresses() -> None:
    """End the process where the shell allows it too little virtual memory (``ulimit -v``)."""
    try:
        import resource  # noqa: PLC0415 - POSIX alone has it
    except ImportError:
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < LEAST_ADDRESSES:
        os.write(
            2,
            f"Error: the limit of virtual memory (ulimit -v) is {limit / 1e9:.1f} GB, and Hedgerow "
            f"needs {LEAST_ADDRESSES / 1e9:.0f} GB of it to begin, most of which it never fills; "
            f"raise it, and limit memory by a control group or with --memory\n".encode(),
        )
        os._exit(FAILED)


def _written(code: ExitCode) -> ExitCode:
    """Return the exit code once all that was printed is written, or cannot be.

    Python would try again at its end, and where that fails exit with 120.
    """
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            code = code or _failed(error)
    return code


def _failed(error: OSError) -> int:
    with suppress(OSError):
        os.write(2, f"Error: the output cannot be written: {error.strerror}\n".encode())
    return FAILED


def _stop(_number: int, _frame: FrameType | None) -> None:
    os.write(2, b"Error: stopped\n")
    os._exit(STOPPED)
