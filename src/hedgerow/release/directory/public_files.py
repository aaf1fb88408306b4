"""What public files say, as a release has it: ``domain/public/1.parquet`` and so on.

Each has the rows of one public table of the plan, sorted, with the columns that say something of
the tree alone: codes, then whole numbers. Rules are in the plan itself.
"""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from hedgerow.errors import ReleaseError
from hedgerow.limits import MOST_FACTS, MOST_PUBLIC_ROWS
from hedgerow.plan.facts.facts import Fact, Facts, described_facts
from hedgerow.plan.facts.public_rows import PublicRows
from hedgerow.release.directory.parquet_file import TEXT, WHOLE, Layout, read_parquet, write_frame
from hedgerow.tables.tree import Tree
from hedgerow.text import Json


def public_file(place: int) -> str:
    """Return the file of the public fact at a place 0, 1, ….

    No axis has a name with a slash, so none has its list of areas there.
    """
    return f"domain/public/{place + 1}.parquet"


def public_files(facts: Sequence[Fact]) -> list[str]:
    """Return the files of all facts that have one."""
    return [public_file(i) for i, fact in enumerate(facts) if isinstance(fact, PublicRows)]


def write_facts(folder: Path, facts: Sequence[Fact]) -> None:
    """Write the rows of public tables into a release directory, which has ``domain/``."""
    for place, fact in enumerate(facts):
        if isinstance(fact, PublicRows):
            path = folder / public_file(place)
            path.parent.mkdir(exist_ok=True)
            write_frame(path, fact.frame)


def read_facts_of(folder: Path, tree: Tree, described: Sequence[Json]) -> Facts:
    """Return the public facts of a release directory.

    Args:
        folder: the directory.
        tree: of its plan.
        described: what the plan says of them.

    Raises:
        ReleaseError, PlanError: the files are damaged, or say something else.
        KeyError, TypeError: no facts are described.
    """
    if len(described) > MOST_FACTS:
        raise ReleaseError(f"the plan describes {len(described):,} public facts")

    def rows_of(place: int) -> pl.DataFrame:
        return read_parquet(folder, public_file(place), _layout(described[place]))

    return described_facts(tree, described, rows_of)


def _layout(described: Json) -> Layout:
    rows = described["rows"]
    if type(rows) is not int or not 1 <= rows <= MOST_PUBLIC_ROWS:
        raise ReleaseError(f"the plan describes a public table with {str(rows)[:40]} rows")
    numbers = [name for name in (described["at_least"], described["at_most"]) if name is not None]
    return Layout(dict.fromkeys(described["columns"], TEXT) | dict.fromkeys(numbers, WHOLE), rows)
