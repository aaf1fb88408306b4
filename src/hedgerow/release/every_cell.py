"""Every measured cell of a cuboid of the plan with its errors, also those released as 0.

A count of 0 is released without a row; its interval says how many records may be there even so. Not
among them are cells that public facts or public counts of 0 say are empty, and, where survivors
alone were measured, those below counts that were released as 0: of these nothing was measured.
"""

from hedgerow.arrays import Levels
from hedgerow.errors import ReleaseError
from hedgerow.limits import MOST_NOISY_READ, MOST_ROWS_LISTED
from hedgerow.release.answers.ways import answers_of
from hedgerow.release.descent.nodes import Nodes
from hedgerow.release.directory.stored import Content, noise_variances


def every_cell(content: Content, levels: Levels) -> Nodes:
    """Return all measured cells of a cuboid, with released counts, estimates and variances.

    Returns:
        Along a chain in tree order, else row by row; counts are 0 where a cell is not listed.

    Raises:
        ReleaseError: there are too many, or the cuboid has no estimates of its unlisted cells.
    """
    _check_size(content, levels)
    return answers_of(content.plan).every_cell(content, levels)


def _check_size(content: Content, levels: Levels) -> None:
    """Raise if the cells are too many to be listed, or the noisy counts to be read."""
    plan = content.plan
    cells = _most_cells(content, levels)
    if cells > MOST_ROWS_LISTED:
        raise ReleaseError(
            f"{plan.tree.name_of(levels)!r} has {cells:,} cells, and all are listed up to "
            f"{MOST_ROWS_LISTED:,}; ask for those with a positive "
            "count alone, or for a coarser cuboid"
        )
    if (noisy := content.noisy_cells) > MOST_NOISY_READ:
        raise ReleaseError(
            f"estimates of all cells need the {noisy:,} noisy counts, and can be had up to "
            f"{MOST_NOISY_READ:,}; ask for those with a positive count alone"
        )


def _most_cells(content: Content, levels: Levels) -> int:
    """Return how many cells were measured, or may have been."""
    if levels in noise_variances(content.plan):
        return len(content.noisy(levels))
    return answers_of(content.plan).most_cells(levels)
