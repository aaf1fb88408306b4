"""The console command. A package of its own, so that it runs before Hedgerow is imported.

Importing takes a second, in which Ctrl-C would end in a traceback from wherever it struck.
"""

import gc
import os
import signal
import sys
from types import FrameType

STOPPED = 130


def main() -> None:
    """Run the command that the process was started with; until it is imported nothing has begun."""
    catches = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if catches:
        signal.signal(signal.SIGINT, _stop)
    if sys.argv[1:] in ([], ["--help"], ["--version"]):
        from hedgerow_command import overview  # noqa: PLC0415 - the commands need none of it

        overview.show()
    gc.disable()  # nothing that importing makes is garbage, and looking for it takes long
    from hedgerow import cli  # noqa: PLC0415 - this is what takes a second

    gc.freeze()  # nor will any of it be later
    gc.enable()
    if catches:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    cli.main()


def _stop(_number: int, _frame: FrameType | None) -> None:
    os.write(2, b"Error: stopped\n")
    os._exit(STOPPED)
