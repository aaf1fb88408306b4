"""A release directory read back: its domain, plan and nodes, none of them believed unseen."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hedgerow.errors import HedgerowError, MachineError, ReleaseError
from hedgerow.estimate.families.euclidean import Euclidean
from hedgerow.estimate.families.nearest_cdf import Isotonic
from hedgerow.estimate.families.registry import read_estimator
from hedgerow.plan.depths import RunningSums
from hedgerow.plan.describe import describe_tree, hash_of
from hedgerow.plan.plan import Plan
from hedgerow.plan.read import read_plan
from hedgerow.release.descent.nodes import Nodes, listed_nodes
from hedgerow.release.directory.described import shapes_of
from hedgerow.release.directory.manifest import read_manifest
from hedgerow.release.directory.measurements import COUNT, Shape, read_counts
from hedgerow.release.directory.parquet_file import TEXT, Layout, read_parquet
from hedgerow.release.refusals import check_combines
from hedgerow.tables.axis import Axis
from hedgerow.tables.tree import Tree


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
    if hash_of(manifest["plan"]) != manifest["plan_sha256"]:
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
    codes: list[NDArray[np.int32]] = []
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
