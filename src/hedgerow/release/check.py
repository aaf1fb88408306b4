"""`check`: does a release directory keep what its manifest says? From the directory alone."""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hedgerow.errors import HedgerowError, ReleaseError
from hedgerow.plan.describe import describe_tree
from hedgerow.release.manifest import file_names, read_manifest, sha256
from hedgerow.release.measurements import COUNT, read_counts, read_noisy
from hedgerow.release.steps import Refinement
from hedgerow.tables.axis import Axis
from hedgerow.tables.order import Codes
from hedgerow.tables.tree import Tree

Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was checked.

    Attributes:
        what: what should be true.
        failure: what is not, in a sentence; None where all is well.
    """

    what: str
    failure: str | None = None


def check(directory: str | Path) -> list[Finding]:
    """Re-verify a release from its own files: digests, plan, domain, sums, measurements.

    Raises:
        ReleaseError: the directory holds no manifest to check against.
    """
    folder = Path(directory)
    manifest = read_manifest(folder)
    found = [
        _finding("every file has the digest of the manifest", lambda: _files(folder, manifest)),
        _finding("the plan has the hash of the manifest", lambda: _plan(manifest)),
    ]
    if any(finding.failure for finding in found):
        return found
    trees: list[Tree] = []
    found.append(
        _finding("the public domain is the plan's", lambda: trees.append(_tree(folder, manifest)))
    )
    if trees:
        found += _depths(folder, manifest, trees[0])
    return found


def _finding(what: str, verify: Callable[[], None]) -> Finding:
    try:
        verify()
    except HedgerowError as error:
        return Finding(what, str(error))
    except (OSError, ValueError, KeyError, TypeError, pl.exceptions.PolarsError) as error:
        return Finding(what, f"cannot be read: {type(error).__name__}")
    return Finding(what)


def _files(folder: Path, manifest: dict[str, Any]) -> None:
    listed, there = manifest["files"], file_names(folder)
    for name in sorted({*listed, *there}):
        if name not in there:
            raise ReleaseError(f"{name} is missing")
        if name not in listed:
            raise ReleaseError(f"{name} is not in the manifest")
        if sha256(folder / name) != listed[name]:
            raise ReleaseError(f"{name} was changed after the release")


def _plan(manifest: dict[str, Any]) -> None:
    text = json.dumps(manifest["plan"], sort_keys=True, separators=(",", ":"))
    if hashlib.sha256(text.encode()).hexdigest() != manifest["plan_sha256"]:
        raise ReleaseError("the plan in the manifest is not the one that was hashed")


def _tree(folder: Path, manifest: dict[str, Any]) -> Tree:
    described = manifest["plan"]["tree"]
    axes = [
        Axis.from_frame(
            axis["name"],
            pl.read_parquet(folder / "domain" / f"{axis['name']}.parquet"),
            axis["levels"],
            columns=axis["columns"],
            not_stated=axis["not_stated"],
        )
        for axis in described["axes"]
    ]
    tree = Tree(axes, described["refine"])
    if describe_tree(tree) != described:
        raise ReleaseError("the lists of areas in domain/ are not those of the plan")
    return tree


def _depths(folder: Path, manifest: dict[str, Any], tree: Tree) -> Iterator[Finding]:
    """Findings for each depth, coarsest first; they end where codes cannot be read."""
    upper: tuple[Codes, Int64] | None = None
    for t, described in enumerate(manifest["plan"]["depths"]):
        read: list[tuple[Codes, Int64]] = []
        what = f"depth {t} ({described['cuboid']})"
        yield _finding(
            f"{what}: known codes, counts whole and above 0",
            partial(_read_nodes, folder, tree, t, read),
        )
        if not read:
            return
        if upper is not None:
            yield _finding(
                f"{what}: families add up to their parents' counts",
                partial(_sums, tree, t, upper, read[0]),
            )
        if described["kind"] == "measured":
            yield _finding(
                f"{what}: one noisy count a child of a survivor",
                partial(_measured, folder, tree, t, upper),
            )
        upper = read[0]


def _read_nodes(folder: Path, tree: Tree, depth: int, read: list[tuple[Codes, Int64]]) -> None:
    """Append to ``read`` the node codes and counts of a depth, from the labels in its file."""
    frame = read_counts(folder, depth)
    if frame.columns != [*tree.columns(depth), COUNT] or frame.schema[COUNT] != pl.Int64:
        raise ReleaseError(f"the columns are {', '.join(frame.columns)}")
    if (frame[COUNT] <= 0).any() or frame.null_count().sum_horizontal()[0]:
        raise ReleaseError("a count or code is missing, or not above 0")
    codes = []
    for axis, level in zip(tree.axes, tree.cuboid(depth), strict=True):
        if level == 0:
            codes.append(np.zeros(len(frame), dtype=np.int32))
            continue
        known = pl.DataFrame({"code": axis.labels[level - 1]}).with_row_index("node")
        labels = frame.select(code=axis.columns[level - 1])
        node = labels.join(known, on="code", how="left", maintain_order="left")["node"]
        if node.null_count():
            raise ReleaseError(f"a code of {axis.columns[level - 1]} is not in the domain")
        codes.append(node.to_numpy().astype(np.int32))
        for label in axis.path(level, codes[-1]):
            if not (label == frame[label.name]).all():
                raise ReleaseError(f"a code of {label.name} is not the parent in the domain")
    read.append((tuple(codes), frame[COUNT].to_numpy()))


def _sums(tree: Tree, depth: int, upper: tuple[Codes, Int64], lower: tuple[Codes, Int64]) -> None:
    axis, level = tree.steps[depth - 1]
    codes, counts = lower
    child_start = tree.axes[axis].child_start[level - 1]
    parents = list(codes)
    parents[axis] = np.searchsorted(child_start, codes[axis], side="right").astype(np.int32) - 1
    new_family = np.zeros(len(counts), dtype=bool)
    for code in parents:
        new_family[1:] |= code[1:] != code[:-1]
    if not (new_family[1:] | (codes[axis][1:] > codes[axis][:-1])).all():
        raise ReleaseError("the nodes are not in tree order")
    new_family[:1] = True
    start = np.flatnonzero(new_family)
    sums = np.add.reduceat(counts, start) if len(start) else counts
    same = [np.array_equal(a[start], b) for a, b in zip(parents, upper[0], strict=True)]
    if not all(same) or not np.array_equal(sums, upper[1]):
        raise ReleaseError("some families do not add up to their parents' counts")


def _measured(folder: Path, tree: Tree, depth: int, upper: tuple[Codes, Int64] | None) -> None:
    cells = 1
    if upper is not None:
        cells = int(Refinement.of(tree, depth).family_start(upper[0])[-1])
    if len(read_noisy(folder, depth)) != cells:
        raise ReleaseError("the noisy counts are more or fewer than the survivors' children")
