"""How a user names a cuboid: a level of each axis, or columns of attributes."""

import json
import re

from hedgerow.arrays import Levels
from hedgerow.declared import check_known
from hedgerow.errors import ReleaseError, check_type, did_you_mean
from hedgerow.plan.plan import Plan
from hedgerow.plan.workload import cuboid_like
from hedgerow.tables.axis import Axis
from hedgerow.tables.tree import Tree
from hedgerow.text import TextByName


def label_columns(plan: Plan, levels: TextByName) -> list[str]:
    """Return the label columns of axis → level, in the order in which its axes are named.

    Raises:
        TableError: no such column of an attribute.
        ReleaseError: no such axis or level.
    """
    axes = {axis.name: axis for axis in plan.tree.axes}
    columns = []
    for name, level in levels.items():
        check_known(name, axes, "axis", ReleaseError)
        if not axes[name].attribute:
            check_known(level, axes[name].levels, f"level of axis {name!r}", ReleaseError)
        columns += columns_among(axes[name], level)
    return columns


def is_off_tree(plan: Plan, levels: TextByName) -> bool:
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


def named_cuboid(plan: Plan, level: str | None, depth: int | None) -> Levels:
    """Return the cuboid of a plan that a name or a number means.

    Raises:
        ReleaseError: none or both are given; no such cuboid.
    """
    tree = plan.tree
    for what, given, kind, fitting in (
        ("a level", level, str, 'a name such as "county"; depths are depth=2'),
        ("a depth", depth, int, "a number"),
    ):
        if given is not None:
            check_type(what, given, kind, fitting, ReleaseError)
    if (level is None) == (depth is None):
        raise ReleaseError('name one cuboid: level("county"), or along a chain level(depth=2)')
    depths = {plan.design.depth_of(k): k for k in plan.levels}
    names = list(plan.cuboids)
    named = depths.get(depth) if level is None else tree.named(level)
    if named is not None and named in plan.by_levels:
        return named
    meant = None if level is None else meant_levels(tree, level)
    if meant is not None:
        cuboid = tree.cuboid_of(meant)
        if cuboid in plan.by_levels:
            raise ReleaseError(f"no cuboid {level!r}; did you mean {tree.name_of(cuboid)!r}?")
        sums = (f"{a}={json.dumps(k, ensure_ascii=False)}" for a, k in meant.items())
        raise ReleaseError(
            f"no cuboid {level!r} is in the plan; for sums over the other axes call "
            f"release.cuboid({', '.join(sums)})"
        )
    fault = f"no depth {depth}"
    hint = ""
    if level is not None:
        fault = f"no cuboid {level!r}"
        hint = did_you_mean(level, names)
    elif None in depths:
        fault = f"{plan.workload.noun} has no depths; name a cuboid"
    listed = names if None in depths else [f"{t} ({name})" for t, name in enumerate(names)]
    raise ReleaseError(f"{fault}; there are {', '.join(listed)}{hint}")


def meant_levels(tree: Tree, name: str) -> TextByName | None:
    """Return axis → level of a cuboid's name, right or wrong; None where it is like none."""
    level = axis_level(tree, name)
    if level is not None:
        return dict([level])
    levels = tree.named(name) or cuboid_like(tree, name)
    each = () if levels is None else tree.split(levels)
    return {axis.name: name for axis, name in each} or None


def axis_level(tree: Tree, level: str) -> tuple[str, str] | None:
    """Return the first axis that has a level ``region`` or ``origin.region``, and its name."""
    for axis in tree.axes:
        for name in axis.levels:
            if level in {name, f"{axis.name}.{name}"}:
                return axis.name, name
    return None
