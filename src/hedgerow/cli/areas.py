"""Options of commands that sum over areas of the user's own: the lookup and its columns."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from typer import Option

from hedgerow.cli.output_file import Beside, pairs
from hedgerow.declared import frozen
from hedgerow.tables.lists.lookup import Lookup
from hedgerow.tables.tree import Tree

Areas = Annotated[
    Path | None,
    Option(
        metavar="FILE",
        help="Areas of your own, which may overlap: a CSV or Parquet file with a column of codes "
        "of one axis and a column of areas, one row a pair.",
    ),
]


def _of_areas(option: str) -> Beside:
    """Return that an option names a column of another's file."""
    sentence = f"{option} names a column of the file of --areas; give that too"
    return Beside(("areas",), sentence, needed=True)


AreaColumn = Annotated[
    str | None,
    Option(metavar="COLUMN", help="The column of --areas that holds the areas, if it has others."),
    _of_areas("--area-column"),
]
AreaNames = Annotated[
    str | None,
    Option(
        metavar="COLUMN",
        help="The column of --areas with the names of the areas. Default: the one called like that "
        "of the areas but for its end: PCON_NAME beside PCON_CODE.",
    ),
    _of_areas("--area-names"),
]
AreaCodes = Annotated[
    list[str] | None,
    Option(
        metavar="COLUMN=LEVEL",
        help="The column of --areas with the codes of a level or column of the release, where it "
        "is called otherwise: LSOA21CD=lsoa, or of several axes SA2_CODE=home.sa2.",
    ),
    _of_areas("--area-codes"),
]


@frozen
class AreaOptions:
    """The lookup that options name.

    Attributes:
        file: the lookup, if any.
        column: that holds the areas.
        names: the column of their names.
        codes: COLUMN=LEVEL, of columns that the release calls otherwise.
    """

    file: Path | None
    column: str | None = None
    names: str | None = None
    codes: Sequence[str] = ()

    def lookup(self, tree: Tree) -> Lookup | None:
        """Read the lookup, if there is one."""
        if self.file is None:
            return None
        codes = pairs(self.codes, "--area-codes", "LSOA21CD=lsoa")
        return Lookup.of(tree, self.file, self.column, names=self.names, codes=codes)
