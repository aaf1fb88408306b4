"""`check`: do the files of a release agree with each other and with the plan that they state?

From the directory alone: every file has its digest, the plan is one that `make_plan` could make and
promises what is written, every family adds up, and the released counts are what the named estimator
makes of the noisy counts. That the noise was drawn as the plan says cannot be seen from outside,
nor that a whole directory was not forged: compare the plan's hash with the one you signed off.
"""

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
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.named import ESTIMATORS
from hedgerow.plan.depths import Measured
from hedgerow.plan.describe import describe_tree
from hedgerow.plan.plan import Plan, read_plan
from hedgerow.release.manifest import file_names, promise, read_manifest, sha256
from hedgerow.release.measurements import COUNT, read_counts, read_noisy, read_parquet
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
    plans: list[Plan] = []
    found.append(
        _finding(
            "plan, public domain and promise belong together",
            lambda: plans.append(_stated_plan(folder, manifest)),
        )
    )
    if plans:
        found += _depths(folder, ESTIMATORS[manifest["estimator"]](), plans[0])
    return found


def _finding(what: str, verify: Callable[[], None]) -> Finding:
    try:
        verify()
    except HedgerowError as error:
        return Finding(what, str(error))
    except Exception as error:  # noqa: BLE001 - a forged file may break anything on its way in
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
            read_parquet(folder / "domain" / f"{axis['name']}.parquet"),
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


def _stated_plan(folder: Path, manifest: dict[str, Any]) -> Plan:
    """The plan of the manifest over the domain of the directory."""
    tree = _tree(folder, manifest)
    plan = read_plan(tree, manifest["plan"])
    if plan.to_dict() != manifest["plan"]:
        raise ReleaseError(
            "the plan contradicts itself: its noise or guarantee is not its budget's"
        )
    if [manifest["promise"], manifest["restriction"]] != [promise(plan), plan.restriction]:
        raise ReleaseError("the promise in the manifest is not what the plan guarantees")
    if manifest["estimator"] not in ESTIMATORS:
        raise ReleaseError(f"no estimator is called {manifest['estimator']!r}")
    return plan


def _depths(folder: Path, estimator: Estimator, plan: Plan) -> Iterator[Finding]:
    """Findings for each depth, coarsest first; they end where codes cannot be read."""
    upper: tuple[Codes, Int64] | None = None
    for t, planned in enumerate(plan.depths):
        read: list[tuple[Codes, Int64]] = []
        what = f"depth {t} ({plan.tree.cuboid_name(t)})"
        yield _finding(
            f"{what}: known codes, counts whole and above 0",
            partial(_read_nodes, folder, plan.tree, t, read),
        )
        if not read:
            return
        if upper is not None:
            yield _finding(
                f"{what}: families add up to their parents' counts",
                partial(_sums, plan.tree, t, upper, read[0]),
            )
        if isinstance(planned, Measured):
            yield _finding(
                f"{what}: the counts are the estimate from the noisy counts",
                partial(_estimated, folder, estimator, plan.tree, t, upper, read[0]),
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


def _estimated(
    folder: Path,
    estimator: Estimator,
    tree: Tree,
    depth: int,
    upper: tuple[Codes, Int64] | None,
    lower: tuple[Codes, Int64],
) -> None:
    noisy = read_noisy(folder, depth)
    if upper is None:
        estimate = np.maximum(noisy, 0)
        cells = 1
    else:
        start = Refinement.of(tree, depth).family_start(upper[0])
        cells = int(start[-1])
        estimate = noisy
        if len(noisy) == cells:
            estimate = estimator.project(noisy, start, upper[1])
    if len(noisy) != cells:
        raise ReleaseError("the noisy counts are more or fewer than the survivors' children")
    if not np.array_equal(estimate[estimate > 0], lower[1]):
        raise ReleaseError(f"the counts are not what {estimator.name} makes of the noisy counts")
