"""The depths of a release as its manifest describes them: what each of its files may hold.

The lists of areas are not needed for it, so that counts can be read without them. Numbers that
follow from others are computed again, so a manifest that contradicts itself is refused; whether its
sizes are those of the lists, `hedgerow.release.directory.stored.stated_plan` tells.
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from math import prod
from typing import Any

from hedgerow.errors import HedgerowError, ReleaseError
from hedgerow.release.directory.measurements import Shape
from hedgerow.tables.axis import LARGEST_SIZE, check_names
from hedgerow.tables.tree import TAKEN

KINDS = {"measured", "summed", "public", "unmeasured"}
MOST_AXES = 64


def shapes_of(plan: object) -> tuple[Shape, ...]:
    """The shapes of all depths, from a plan as JSON.

    Raises:
        ReleaseError: it describes no tree, or contradicts itself.
    """
    try:
        return tuple(_shapes(plan))  # type: ignore[arg-type]
    except (HedgerowError, KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        why = str(error) if isinstance(error, HedgerowError) else type(error).__name__
        raise ReleaseError(
            f"the manifest describes no tree and its depths ({why}): run hedgerow check"
        ) from None


def _shapes(plan: Mapping[str, Any]) -> Iterator[Shape]:
    axes = {axis["name"]: axis for axis in plan["tree"]["axes"]}
    _check_axes(plan["tree"]["axes"], list(axes.values()))
    reached = dict.fromkeys(axes, 0)
    depths, steps = plan["depths"], plan["tree"]["refine"]
    _check(isinstance(depths, list) and isinstance(steps, list), "its depths are no list")
    _check(len(depths) == len(steps) + 1 == sum(len(a["levels"]) for a in axes.values()) + 1)
    for t, described in enumerate(depths):
        if t > 0:
            name, _, level = steps[t - 1].partition(".")
            _check(axes[name]["levels"][reached[name]] == level, "its steps are out of order")
            reached[name] += 1
        columns = [c for name, axis in axes.items() for c in axis["columns"][: reached[name]]]
        sizes = [axes[name]["sizes"][k - 1] for name, k in reached.items() if k]
        shape = Shape(t, tuple(columns), prod(sizes))
        named = [described[key] for key in ("depth", "cuboid", "cells")]
        _check(named == [t, _cuboid(axes, reached), shape.cells], f"its depth {t} is another")
        _check(described["kind"] in KINDS)
        yield shape


def _check_axes(axes: list[Mapping[str, Any]], named: list[Mapping[str, Any]]) -> None:
    _check(1 <= len(axes) <= MOST_AXES and len(named) == len(axes), "its axes are none, or twice")
    for axis in axes:
        check_names(axis["name"], tuple(axis["levels"]), tuple(axis["columns"]))
        sizes = axis["sizes"]
        _check(len(sizes) == len(axis["levels"]) and all(type(size) is int for size in sizes))
        _check(sizes[0] >= 1 and sizes[-1] <= LARGEST_SIZE, "its sizes are none")
        _check(all(upper <= lower for upper, lower in pairwise(sizes)), "its sizes shrink")
    columns = [column for axis in axes for column in axis["columns"]]
    _check(len(set(columns)) == len(columns) and TAKEN.isdisjoint(columns), "its columns are taken")


def _cuboid(axes: Mapping[str, Any], reached: Mapping[str, int]) -> str:
    """As `Tree.cuboid_name` says it."""
    levels = {name: axes[name]["levels"][k - 1] for name, k in reached.items() if k}
    words = [level if len(axes) == 1 else f"{name}.{level}" for name, level in levels.items()]
    return " × ".join(words) or "total"


def _check(holds: object, what: str = "it contradicts itself") -> None:
    if not holds:
        raise ReleaseError(what)
