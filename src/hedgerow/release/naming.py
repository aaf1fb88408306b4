"""How a user names a cuboid: a level of each axis, or columns of attributes."""

import re
from collections.abc import Mapping

from hedgerow.arrays import Levels
from hedgerow.declared import check_known
from hedgerow.errors import ReleaseError
from hedgerow.plan.plan import Plan
from hedgerow.tables.axis import Axis
from hedgerow.tables.tree import Tree


def levels_of(tree: Tree, levels: Mapping[str, str]) -> Levels:
    """Return the level of each axis, 0 for those that are not named and so summed over.

    Raises:
        TableError: no such level.
    """
    return tuple(axis.level_number(levels[axis.name]) if axis.name in levels else 0
                 for axis in tree.axes)  # fmt: skip


def label_columns(plan: Plan, levels: Mapping[str, str]) -> list[str]:
    """Return the label columns of axis → level, in the order in which its axes are named.

    Raises:
        TableError: no such column of an attribute.
        ReleaseError: no such axis or level.
    """
    axes, columns = {axis.name: axis for axis in plan.tree.axes}, list[str]()
    for name, level in levels.items():
        check_known(name, axes, "axis", ReleaseError)
        if not axes[name].attribute:
            check_known(level, axes[name].levels, f"level of axis {name!r}", ReleaseError)
        columns += columns_among(axes[name], level)
    return columns


def is_off_tree(plan: Plan, levels: Mapping[str, str]) -> bool:
    """Return whether columns of attributes are named where a cuboid names levels."""
    return any(
        axis.attribute and axis.name in levels and levels[axis.name] not in axis.levels
        for axis in plan.tree.axes
    )


def columns_among(axis: Axis, named: str) -> list[str]:
    """Return the columns of a level of an axis, or those that words joined by × (x, *) name.

    A level's name with ``axis.`` before it is a word: of a product axis what that level adds.

    Raises:
        TableError: the axis has no such column.
    """
    if named in axis.levels:
        return list(axis.columns_of(axis.level_number(named)))
    names = {*axis.columns, *axis.levels}
    ways = ([named], named.split(" × "), re.split(r"\s*[×*]\s*|\s+x\s+", named.strip()))
    for words in ways:
        if all(word.removeprefix(f"{axis.name}.") in names for word in words):
            break
    return axis.parts(words)[0].columns
