"""The commands: a module each, gathered in `app`."""

from hedgerow.cli.app import main, run

__all__ = ["main", "run"]
