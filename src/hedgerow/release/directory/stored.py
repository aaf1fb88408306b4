"""A release directory read back: its plan, nodes and noisy counts, all verified on the way in."""

import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import polars as pl

from hedgerow.arrays import Int64, Levels, int32
from hedgerow.errors import HedgerowError, MachineError, ReleaseError
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.registry import read_estimator
from hedgerow.limits import MOST_AXES_OF_A_RELEASE, MOST_BYTES_SHOWN, MOST_NODES_OF_A_LEVEL
from hedgerow.machine import read_small_file
from hedgerow.plan.describe import describe_tree, plan_hash
from hedgerow.plan.make import read_plan
from hedgerow.plan.plan import Plan
from hedgerow.release.descent.nodes import Nodes, NodesOf
from hedgerow.release.descent.source import Stored
from hedgerow.release.descent.steps import descendants
from hedgerow.release.directory.cuboid_errors import USUAL, CuboidErrors
from hedgerow.release.directory.manifest import (
    DESCRIBE,
    MANIFEST,
    check_plain,
    estimation_of,
    file_names,
    part_files,
    read_manifest,
)
from hedgerow.release.directory.measurements import (
    COUNT,
    counts_file,
    counts_layout,
    noisy_rows,
    read_counts,
    read_noisy,
    released_columns,
    shapes_file,
)
from hedgerow.release.directory.output import whole_or_not
from hedgerow.release.directory.parquet_file import (
    TEXT,
    Layout,
    read_batches,
    read_parquet,
)
from hedgerow.release.directory.public_files import read_facts_of
from hedgerow.release.passes import ESTIMATION
from hedgerow.release.preflight import check_estimator, check_tables
from hedgerow.tables.axis import Axis
from hedgerow.tables.axis_names import check_names
from hedgerow.tables.counts import label_nodes
from hedgerow.tables.description import Description
from hedgerow.tables.lists.areas import CODE, LEVEL, NAME, from_names_frame
from hedgerow.tables.maps.shapes import Shapes
from hedgerow.tables.tree import Tree
from hedgerow.text import Json

FEW_AREAS, AREAS_A_BYTE = 1 << 21, 64
"""Areas that any list may have; of a longer one so many a byte, as they are different: our writer
needs 0.4 bytes for each of a running number, and 0.04 for each of a regular grid."""
NODE = "\0node"
"""A column beside those of codes, which cannot be called that."""


Value = TypeVar("Value")


class ReadOnce(Mapping[Levels, Value]):
    """What is read of each cuboid, once, when it is first asked for; which there are, at once."""

    def __init__(self, every: Iterable[Levels], read: Callable[[Levels], Value]) -> None:
        self._every: dict[Levels, Value | None] = dict.fromkeys(every)
        self._read = read

    def __getitem__(self, levels: Levels) -> Value:
        """Return what is read of a cuboid."""
        value = self._every[levels]
        if value is None:
            value = self._every[levels] = self._read(levels)
        return value

    def __contains__(self, levels: object) -> bool:
        return levels in self._every

    def __iter__(self) -> Iterator[Levels]:
        return iter(self._every)

    def __len__(self) -> int:
        return len(self._every)


class Content(ABC):
    """What a release holds, in memory or in a directory.

    Attributes:
        plan: what was measured with which noise.
        estimator: what made the counts.
        estimation: the version of the estimation (`hedgerow.release.passes.ESTIMATION`).
        nodes: for each cuboid the listed nodes with their counts.
        measured: for each measured cuboid int64 (measured cells): its noisy counts.
    """

    plan: Plan
    estimator: Estimator
    estimation: int
    nodes: NodesOf
    measured: Mapping[Levels, Int64]

    @cached_property
    def stored(self) -> Stored:
        """All noisy counts, beside what is listed."""
        return Stored(self.plan.tree, self.measured, noise_variances(self.plan), self.nodes)

    @property
    @abstractmethod
    def noisy_cells(self) -> int:
        """How many noisy counts there are; none is read for it."""

    @abstractmethod
    def counts(self, levels: Levels) -> pl.DataFrame:
        """Return the listed counts of a cuboid, in tree order: the columns of its file."""

    @abstractmethod
    def parts(self, levels: Levels, rows: int) -> Iterator[pl.DataFrame]:
        """Yield codes and counts of a cuboid in tree order, at most so many rows at a time."""

    @abstractmethod
    def write(self, directory: Path) -> None:
        """Write a release directory."""

    @property
    def total(self) -> int:
        """The released number of records."""
        return int(self.nodes[self.plan.tree.cuboid(0)].counts.sum())

    def errors(self, levels: Levels) -> CuboidErrors:
        """Return what the plan tells of the errors of a cuboid."""
        return CuboidErrors.of(self.plan, levels, self.total)

    def told(
        self, levels: Levels, nodes: Nodes, errors: CuboidErrors | None = None
    ) -> pl.DataFrame:
        """Return cells of a cuboid as its file has them: codes, counts, and how sure they are.

        Args:
            levels: the cuboid.
            nodes: its cells.
            errors: of their estimates; those of the cuboid unless given.
        """
        columns = released_columns(nodes, errors or self.errors(levels), USUAL)
        return label_nodes(self.plan.tree, levels, nodes.codes, **columns)


@dataclass(frozen=True)
class OnDisk(Content):
    """A release in a directory.

    Attributes:
        folder: the directory.
        plan: that its manifest states, verified.
        estimator: likewise.
        estimation: the version of the estimation that made the counts, as the manifest says.
    """

    folder: Path
    plan: Plan
    estimator: Estimator
    estimation: int = ESTIMATION

    @cached_property
    def nodes(self) -> Mapping[Levels, Nodes]:  # type: ignore[override]
        """For each cuboid the listed nodes with their counts."""
        return ReadOnce(self.plan.levels, partial(read_nodes, self.folder, self.plan.tree))

    @cached_property
    def measured(self) -> Mapping[Levels, Int64]:  # type: ignore[override]
        """For each measured cuboid its noisy counts, no more than there can be."""
        return ReadOnce(self.plan.measured, self._noisy)

    def _noisy(self, levels: Levels) -> Int64:
        """Return the noisy counts of a cuboid: below survivors, of their children at most."""
        design = self.plan.design
        tree = self.plan.tree
        most = design.possible_cells(levels)
        above = design.measured_below(levels)
        if above is not None:
            below = descendants(tree, above, levels, self.nodes[above].codes)
            most = min(most, int(below.sum()))
        return read_noisy(self.folder, levels, most)

    @cached_property
    def stored(self) -> Stored:
        """All noisy counts, beside what is listed.

        Raises:
            MachineError: they, or the tables of a cube that is made of them, are too large.
        """
        check_tables(self.plan)
        return super().stored

    @property
    def noisy_cells(self) -> int:
        """How many noisy counts there are; none is read for it."""
        return sum(noisy_rows(self.folder, self.plan.tree, levels) for levels in self.measured)

    def counts(self, levels: Levels) -> pl.DataFrame:
        """Return the listed counts of a cuboid, in tree order: the columns of its file."""
        return read_counts(self.folder, self.plan.tree, levels)

    def parts(self, levels: Levels, rows: int) -> Iterator[pl.DataFrame]:
        """Yield codes and counts of a cuboid in tree order; its file is not read at once."""
        layout = counts_layout(self.plan.tree, levels)
        columns = [*self.plan.tree.columns_of(levels), COUNT]
        return read_batches(self.folder, counts_file(levels), layout, columns, rows)

    def write(self, directory: Path) -> None:
        """Copy the directory."""
        with whole_or_not(directory) as folder:
            for name in [*file_names(self.folder), MANIFEST]:
                check_plain(self.folder, self.folder / name)
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(self.folder / name, folder / name)


@contextmanager
def undamaged(folder: Path) -> Iterator[None]:
    """Turn whatever a damaged directory breaks on its way in into one sentence.

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


def verified_release(folder: Path) -> OnDisk:
    """Return a release directory whose plan is verified, as `hedgerow check` does to begin with.

    The plan's hash is the manifest's, it is over the lists of areas in ``domain/``, and what it
    promises is computed again. Whether it is the plan that was signed off, its hash alone tells.

    Raises:
        ReleaseError: there is no release, or its plan is not what the manifest says.
        MachineError: it may not be read.
    """
    manifest = read_manifest(folder)
    try:
        with undamaged(folder):
            check_hash(manifest)
            plan = stated_plan(folder, manifest)
            estimation = estimation_of(manifest)
            return OnDisk(folder, plan, read_estimator(manifest["estimator"]), estimation)
    except MachineError:
        raise
    except HedgerowError as error:
        raise ReleaseError(
            f"the plan of {str(folder)!r} is not verified: {error}; run hedgerow check"
        ) from error


def check_hash(manifest: Json) -> None:
    """Raise unless the plan of a manifest has the hash beside it.

    Raises:
        ReleaseError: it has not.
    """
    if plan_hash(manifest["plan"]) != manifest["plan_sha256"]:
        raise ReleaseError("the plan in the manifest is not the one that was hashed")


def stated_plan(folder: Path, manifest: Json) -> Plan:
    """Return the plan of the manifest over the domain of the directory.

    Raises:
        ReleaseError, PlanError, BudgetError: they do not belong together.
        KeyError, TypeError, ValueError: the manifest is damaged.
    """
    tree = _domain(folder, manifest["plan"]["tree"])
    facts = read_facts_of(folder, tree, manifest["plan"].get("public", []))
    plan = read_plan(tree, manifest["plan"], facts)
    # A hash tells 1 from 1.0 and True, which are equal in Python.
    if plan.to_dict() != manifest["plan"] or plan.hash != manifest["plan_sha256"]:
        raise ReleaseError(
            "the plan contradicts itself: its noise or guarantee is not its budget's"
        )
    if [manifest["promise"], manifest["restriction"]] != [
        str(plan.promise),
        plan.protection.restriction,
    ]:
        raise ReleaseError("the promise in the manifest is not what the plan guarantees")
    check_estimator(read_estimator(manifest["estimator"]), plan)
    description = Description.from_dict(manifest.get(DESCRIBE, {}))
    if DESCRIBE in manifest and not description:
        raise ReleaseError("the manifest describes the table by nothing")
    return plan.described(description)


def _domain(folder: Path, described: Json) -> Tree:
    axes = described["axes"]
    if not 1 <= len(axes) <= MOST_AXES_OF_A_RELEASE:
        raise ReleaseError(
            f"the plan describes {len(axes)} axes, and not 1 to {MOST_AXES_OF_A_RELEASE}"
        )
    for axis in axes:  # before its name becomes a path, and its size a limit
        told = tuple(axis["told"]) if "told" in axis else None
        check_names(axis["name"], tuple(axis["levels"]), tuple(axis["columns"]), told)
        size = axis["sizes"][-1]
        if type(size) is not int or not 1 <= size <= MOST_NODES_OF_A_LEVEL:
            raise ReleaseError(f"the plan describes an axis with {str(size)[:40]} leaves")
    tree = Tree([_axis(folder, axis) for axis in axes], described["refine"])
    if describe_tree(tree) != described:
        raise ReleaseError("the lists of areas in domain/ are not those of the plan")
    return tree


def _axis(folder: Path, described: Json) -> Axis:
    """Return an axis from its public list: one row a leaf."""
    name = described["name"]
    levels = described["levels"]
    is_attribute = "attribute" in described
    names = described["columns"] if "told" in described else levels
    layout = Layout(dict.fromkeys(names, TEXT), described["sizes"][-1])
    file = f"domain/{name}.parquet"
    leaves = described["sizes"][-1]
    size = sum(path.stat().st_size for path in part_files(folder, file))
    if leaves > max(FEW_AREAS, AREAS_A_BYTE * size):
        raise ReleaseError(
            f"{file} has {size:,} bytes, too few for the {leaves:,} different areas of the plan"
        )
    areas = read_parquet(folder, file, layout)
    if "told" in described:
        return Axis.from_leaves(name, areas, levels, described["told"], attribute=is_attribute)
    options = {key: described[key] for key in ("columns", "not_stated", "from_table")}
    axis = Axis.from_frame(name, areas, levels, **options, attribute=is_attribute)
    return _drawn(folder, _named(folder, axis))


def _named(folder: Path, axis: Axis) -> Axis:
    """Return an axis with the names of its areas, if the release has any."""
    file = f"domain/{axis.name}.names.parquet"
    if not (folder / file).exists():
        return axis
    most = sum(map(len, axis.labels))
    frame = read_parquet(folder, file, Layout(dict.fromkeys((LEVEL, CODE, NAME), TEXT), most))
    if frame.is_empty() or not set(frame[LEVEL]) <= set(axis.levels):
        raise ReleaseError(f"{file} has no names of this axis's levels")
    return replace(axis, names=from_names_frame(frame, axis.labels, axis.levels, file))


def _drawn(folder: Path, axis: Axis) -> Axis:
    """Return an axis with the shapes of its areas, if the release has any."""
    file = shapes_file(axis.name)
    if not (folder / file).exists():
        return axis
    check_plain(folder, folder / file)
    text = read_small_file(folder / file, MOST_BYTES_SHOWN, file, ReleaseError).decode("utf-8")
    shapes = Shapes.from_json(text, axis.labels, file)
    lacking = np.array([not area for area in shapes.areas]) & ~axis.is_not_stated(shapes.level)
    if lacking.any():
        raise ReleaseError(f"{file} lacks the shapes of some areas")
    return replace(axis, shapes=shapes)


def read_nodes(folder: Path, tree: Tree, levels: Levels) -> Nodes:
    """Return the nodes and counts of a cuboid, from the labels in its file.

    Raises:
        ReleaseError: the file has other columns, unknown codes, or counts that are none.
    """
    frame = read_counts(folder, tree, levels)
    if (frame[COUNT] <= 0).any() or frame.null_count().sum_horizontal()[0]:
        raise ReleaseError("a count or code is missing, or not above 0")
    codes = []
    for axis, level in zip(tree.axes, levels, strict=True):
        if level == 0:
            codes.append(np.zeros(len(frame), dtype=np.int32))
            continue
        keys = axis.keys(level)
        labels = frame.select(keys.columns)
        domain = keys.with_row_index(NODE)
        if len(domain) > 4 * len(labels):  # a hash table of few codes is smaller than of all
            domain = domain.join(labels, on=keys.columns, how="semi")
        node = labels.join(domain, on=keys.columns, how="left", maintain_order="left")[NODE]
        if node.null_count():
            raise ReleaseError(f"a code of {keys.columns[-1]} is not in the domain")
        codes.append(int32(node.to_numpy()))
        for label in axis.path(level, codes[-1]):
            if not (label == frame[label.name]).all():
                raise ReleaseError(f"a code of {label.name} is not the parent in the domain")
    return Nodes.exact(tuple(codes), frame[COUNT].to_numpy())


def noise_variances(plan: Plan) -> dict[Levels, float]:
    """Return for each measured cuboid the variance of its noise, records²."""
    return {levels: noise.noise_variance for levels, noise in plan.noise.items()}
