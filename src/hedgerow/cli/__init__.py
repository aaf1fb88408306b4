"""The commands: a module each, gathered in `commands`."""

from hedgerow.cli.commands import app, main, run

__all__ = ["app", "main", "run"]
