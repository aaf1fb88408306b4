"""Files, data frames and SQL → leaf counts (in progress)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.tables.tree import Tree


def read_leaves(
    tree: Tree, table: Any, *, count: str | None, unit: str | None, contributions: int
) -> tuple[tuple[NDArray[np.int32], ...], NDArray[np.int64]]:
    raise NotImplementedError
