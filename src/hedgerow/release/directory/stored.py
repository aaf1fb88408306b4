"""A release directory read back: its domain, plan and nodes, none of them believed unseen."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from hedgerow.arrays import Int32
from hedgerow.errors import HedgerowError, MachineError, ReleaseError
from hedgerow.estimate.families.euclidean import Euclidean
from hedgerow.estimate.families.isotonic import Isotonic
from hedgerow.estimate.families.registry import read_estimator
from hedgerow.plan.depths import RunningSums
from hedgerow.plan.describe import describe_tree, plan_hash
from hedgerow.plan.plan import Plan, read_plan
from hedgerow.release.descent.nodes import Nodes, listed_nodes
from hedgerow.release.directory.manifest import read_manifest
from hedgerow.release.directory.measurements import COUNT, Shape, read_counts
from hedgerow.release.directory.parquet_file import TEXT, Layout, read_parquet
from hedgerow.release.preflight import check_combines
from hedgerow.tables.axis import LARGEST_SIZE, Axis, check_names
from hedgerow.tables.tree import TAKEN, Tree

# The depths of a release as its manifest describes them: what each of its files may hold.
#
# The lists of areas are not needed for it, so that counts can be read without them. Numbers that
# follow from others are computed again, so a manifest that contradicts itself is refused; whether
# its sizes are those of the lists, `hedgerow.release.directory.stored.stated_plan` tells.

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


@contextmanager
def undamaged(folder: Path) -> Iterator[None]:
    """Whatever a damaged directory breaks on its way in, as one sentence.

    Raises:
        ReleaseError: the files of the directory are not those of a release.
        MachineError: they may not be read, or there is not enough memory.
    """
    try:
        yield
    except HedgerowError:
        raise
    except MemoryError as error:
        raise MachineError(f"cannot read {str(folder)!r}: out of memory") from error
    except PermissionError as error:
        raise MachineError(f"no permission to read all of {str(folder)!r}") from error
    except Exception as error:
        raise ReleaseError(
            f"{str(folder)!r} is damaged ({type(error).__name__}): run hedgerow check"
        ) from error


def verified_plan(folder: Path) -> Plan:
    """The plan of a release directory, verified as `hedgerow check` does before it reads counts.

    Its hash is the manifest's, it is over the lists of areas in ``domain/``, and what it promises
    is computed again. That it is the plan that was signed off, its hash alone can tell.

    Raises:
        ReleaseError: there is no release, or its plan is not what the manifest says.
        MachineError: it may not be read.
    """
    manifest = read_manifest(folder)
    try:
        with undamaged(folder):
            check_hash(manifest)
            return stated_plan(folder, manifest)
    except MachineError:
        raise
    except HedgerowError as error:
        raise ReleaseError(
            f"the promise of {str(folder)!r} is not verified: {error}; hedgerow check tells more"
        ) from error


def check_hash(manifest: dict[str, Any]) -> None:
    """Nothing, if the plan of a manifest has the hash beside it.

    Raises:
        ReleaseError: it has not.
    """
    if plan_hash(manifest["plan"]) != manifest["plan_sha256"]:
        raise ReleaseError("the plan in the manifest is not the one that was hashed")


def stated_plan(folder: Path, manifest: dict[str, Any]) -> Plan:
    """The plan of the manifest over the domain of the directory.

    Raises:
        ReleaseError, PlanError, BudgetError: they do not belong together.
        KeyError, TypeError, ValueError: the manifest is damaged.
    """
    tree = _domain(folder, manifest)
    plan = read_plan(tree, manifest["plan"])
    if plan.to_dict() != manifest["plan"]:
        raise ReleaseError(
            "the plan contradicts itself: its noise or guarantee is not its budget's"
        )
    if [manifest["promise"], manifest["restriction"]] != [
        str(plan.promise),
        plan.protection.restriction,
    ]:
        raise ReleaseError("the promise in the manifest is not what the plan guarantees")
    check_combines(read_estimator(manifest["estimator"]), plan)
    return plan


def usual_method(folder: Path) -> str:
    """The name of the estimator that suits a release's noisy counts where nobody names one.

    Raises:
        ReleaseError: there is no release, or its manifest is damaged.
    """
    manifest = read_manifest(folder)
    with undamaged(folder):
        summed = manifest["plan"]["measure"] == RunningSums.name
    return Isotonic.name if summed else Euclidean.name


def _domain(folder: Path, manifest: dict[str, Any]) -> Tree:
    described = manifest["plan"]["tree"]
    shapes_of(manifest["plan"])  # before a name becomes a path
    axes = [
        Axis.from_frame(
            axis["name"],
            _areas(folder, axis),
            axis["levels"],
            columns=axis["columns"],
            not_stated=axis["not_stated"],
            from_table=axis["from_table"],
        )
        for axis in described["axes"]
    ]
    tree = Tree(axes, described["refine"])
    if describe_tree(tree) != described:
        raise ReleaseError("the lists of areas in domain/ are not those of the plan")
    return tree


def _areas(folder: Path, axis: dict[str, Any]) -> pl.DataFrame:
    """The public list of an axis: one row a leaf."""
    layout = Layout(dict.fromkeys(axis["levels"], TEXT), axis["sizes"][-1])
    return read_parquet(folder, f"domain/{axis['name']}.parquet", layout)


def read_nodes(folder: Path, tree: Tree, depth: int) -> Nodes:
    """The nodes and counts of a depth, from the labels in its file.

    Raises:
        ReleaseError: the file has other columns, unknown codes, or counts that are none.
    """
    frame = read_counts(folder, Shape.of(tree, depth))
    if (frame[COUNT] <= 0).any() or frame.null_count().sum_horizontal()[0]:
        raise ReleaseError("a count or code is missing, or not above 0")
    codes: list[Int32] = []
    for axis, level in zip(tree.axes, tree.cuboid(depth), strict=True):
        if level == 0:
            codes.append(np.zeros(len(frame), dtype=np.int32))
            continue
        known = pl.DataFrame({"code": axis.labels[level - 1]}).with_row_index("node")
        labels = frame.select(code=axis.columns[level - 1])
        if len(known) > 4 * len(labels):  # a hash table of few codes is smaller than of all
            known = known.join(labels, on="code", how="semi")
        node = labels.join(known, on="code", how="left", maintain_order="left")["node"]
        if node.null_count():
            raise ReleaseError(f"a code of {axis.columns[level - 1]} is not in the domain")
        codes.append(node.to_numpy().astype(np.int32))
        for label in axis.path(level, codes[-1]):
            if not (label == frame[label.name]).all():
                raise ReleaseError(f"a code of {label.name} is not the parent in the domain")
    return listed_nodes(tuple(codes), frame[COUNT].to_numpy())
