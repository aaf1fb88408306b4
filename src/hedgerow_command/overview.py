"""What `hedgerow --help` and `--version` show, without importing what the commands need."""

import ast
from pathlib import Path
from typing import Annotated

import typer

import hedgerow

COMMANDS = (
    *("new", "example", "plan", "release", "check", "table", "distribution", "funds", "report"),
    *("estimate", "export", "compare", "simulate", "account", "ledger"),
)
"""In the order in which a user meets them, as in `hedgerow.cli.commands`."""


def summaries() -> dict[str, str]:
    """Return the first paragraph of each command's help, read from the source of `hedgerow.cli`."""
    texts = {}
    for path in (Path(hedgerow.__file__).parent / "cli").glob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name in COMMANDS:
                texts[node.name] = (ast.get_docstring(node) or "").split("\n\n")[0]
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "LEDGER_HELP":
                texts["ledger"] = ast.literal_eval(node.value)
    return texts


def show() -> None:
    """Show the usage, the options and the commands; ends the process."""
    overview = typer.Typer(
        name="hedgerow", no_args_is_help=True, add_completion=False, rich_markup_mode=None
    )
    overview.callback()(command)
    texts = summaries()
    for name in COMMANDS:
        overview.command(name, help=texts[name])(_in_another_package)
    overview()


def _version(wanted: bool) -> None:  # noqa: FBT001 - as Typer calls it
    if wanted:
        typer.echo(f"hedgerow {hedgerow.__version__}")
        raise typer.Exit


def command(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Release hierarchical count tables under differential privacy."""


def _in_another_package() -> None:
    """The command is in `hedgerow.cli`."""
