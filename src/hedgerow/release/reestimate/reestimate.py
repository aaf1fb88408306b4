"""`reestimate`: a release's noisy counts estimated another way, beside what was there."""

import json
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import polars as pl

from hedgerow.arrays import Float64, Levels
from hedgerow.errors import EstimateError, ReleaseError, TableError, did_you_mean
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.tree.least_squares import LeastSquares
from hedgerow.plan.design import BEST, CarriedNoise
from hedgerow.release.answers.answers import Covariances
from hedgerow.release.answers.chain import covariance_of_nodes
from hedgerow.release.answers.questions import answers_of
from hedgerow.release.directory.cuboid_errors import USUAL, CuboidErrors
from hedgerow.release.directory.measurements import (
    COUNT,
    ESTIMATE,
    HIGH,
    LOW,
    STANDARD_ERROR,
    cuboid_slug,
    released_columns,
)
from hedgerow.release.directory.output import whole_or_not
from hedgerow.release.directory.stored import undamaged, verified_release
from hedgerow.release.reestimate.external import Measurements
from hedgerow.release.release import Release
from hedgerow.tables.counts import label_nodes
from hedgerow.tables.tree import Tree
from hedgerow.text import Json

RELEASED = "released"
DESCRIPTION = "estimate.json"


SETTLED = "non-negative whole counts that add up; intervals rest on the unbiased estimates"
"""What is claimed of estimates by any method but least squares."""


@dataclass(frozen=True, eq=False)
class Estimates:
    """Estimates of the cells of cuboids.

    Attributes:
        tree: the tree.
        frames: for each cuboid, coarse to fine, the codes, ``released`` (the count that a release
            has, 0 where it lists none), ``count`` (the new consistent count; not for least
            squares), ``estimate`` (unbiased, records), ``standard_error``, and ``low`` and
            ``high``, the interval of the true count at 95 %.
        described: what was done, as JSON.
        covariances: of least squares, those of listed cells; else None.

    Example:
        >>> import polars as pl
        >>> towns = pl.DataFrame({"county": ["a", "a", "b"], "town": ["a1", "a2", "b1"]})
        >>> tree = hr.Tree([hr.Axis.from_frame("place", towns, levels=["county", "town"])])
        >>> people = towns.with_columns(people=pl.Series([900, 3000, 500]))
        >>> counts = hr.Counts.from_frame(tree, people, count="people")
        >>> plan = hr.make_plan(tree, budget=hr.EpsilonDelta("1", "1e-8"), measure=hr.All())
        >>> hr.release(counts, plan).write("out")
        >>> estimates = hr.reestimate("out", hr.LeastSquares())
        >>> estimates.level("town").columns
        ['county', 'town', 'released', 'estimate', 'standard_error', 'low', 'high']
        >>> estimates.covariance([("county", 0), ("county", 1)]).shape
        (2, 2)
    """

    tree: Tree
    frames: dict[Levels, pl.DataFrame]
    described: Json
    covariances: Covariances | None = None

    def level(self, level: str | None = None, *, depth: int | None = None) -> pl.DataFrame:
        """Return the estimates of one cuboid, by its name, or along a chain by its depth.

        Raises:
            TableError: no such cuboid.
            ReleaseError: neither or both were given.
        """
        if (level is None) == (depth is None):
            raise ReleaseError('name one cuboid: level("county"), or along a chain level(depth=2)')
        return self.frames[self._levels(depth if level is None else level)]

    def _levels(self, given: str | int | None) -> Levels:
        """Return a cuboid by its name or, along a chain, its depth."""
        tree = self.tree
        every = tuple(self.frames)
        if isinstance(given, str):
            levels = tree.named(given)
            if levels is None or levels not in self.frames:
                names = [tree.name_of(each) for each in every]
                raise TableError(
                    f"no cuboid is called {given!r}; there are {', '.join(names)}"
                    f"{did_you_mean(given, names)}"
                )
            return levels
        if every != tree.chain:
            raise TableError(
                f"these estimates have no depths; name a cuboid, such as "
                f"{tree.name_of(every[-1])!r}"
            )
        return tree.cuboid(given or 0)

    def covariance(self, cells: Sequence[tuple[str | int, int]]) -> Float64:
        """Return covariances of least-squares estimates: float64 (cells, cells), records².

        Args:
            cells: the cuboid of each, by its name or, along a chain, its depth, and the cell's row
                in that cuboid's frame.

        Raises:
            EstimateError: the estimates are not least squares, a cell is not there, or the
                measurements do not determine it.
            TableError: no such cuboid.
        """
        if self.covariances is None:
            raise EstimateError("only least-squares estimates have covariances: use LeastSquares()")
        return self.covariances([(self._levels(given), row) for given, row in cells])

    def write(self, directory: str | Path) -> None:
        """Write ``cuboid=2-3.parquet`` for each cuboid and ``estimate.json``, whole or not at all.

        A file is called by the level of each axis, as in `hedgerow.release.directory.measurements`.

        Raises:
            ReleaseError: the directory exists.
            MachineError: the disk is full or not writable.
        """
        with whole_or_not(Path(directory)) as folder:
            for levels, frame in self.frames.items():
                name = f"{cuboid_slug(levels)}.parquet"
                frame.write_parquet(folder / name, compression="zstd")
            text = json.dumps(self.described, indent=2, ensure_ascii=False) + "\n"
            (folder / DESCRIPTION).write_text(text, encoding="utf-8")


def reestimate(source: str | Path | Release, method: Estimator) -> Estimates:
    """Estimate the noisy counts of a release again, at no privacy cost.

    Args:
        source: the directory of a release, or one in memory.
        method: an estimator, or `LeastSquares`: then every measured node has a row, and estimates
            may be negative and fractional. They are best linear unbiased where the plan measured
            all nodes; where it measured survivors alone along a chain they are conditional on which
            survived, and no claim of unbiasedness is made. Of a cube they are those of all
            measurements of the cuboids that are measured whole, and of others the noisy counts.

    Raises:
        ReleaseError: there is no release, or its files do not fit each other (see `check`); or
            another version of the estimation made it, and its counts decided what was measured.
        EstimateError: the estimator does not suit the plan.

    Example:
        >>> import polars as pl
        >>> towns = pl.DataFrame({"county": ["a", "a", "b"], "town": ["a1", "a2", "b1"]})
        >>> tree = hr.Tree([hr.Axis.from_frame("place", towns, levels=["county", "town"])])
        >>> people = towns.with_columns(people=pl.Series([900, 3000, 500]))
        >>> counts = hr.Counts.from_frame(tree, people, count="people")
        >>> plan = hr.make_plan(tree, budget=hr.EpsilonDelta("1", "1e-8"), measure=hr.All())
        >>> hr.release(counts, plan).write("out")
        >>> again = hr.reestimate("out", hr.Euclidean())
        >>> (again.level("town")["count"] == again.level("town")["released"]).all()
        True
    """
    folder = None if isinstance(source, Release) else Path(source)
    content = source.content if isinstance(source, Release) else verified_release(Path(source))
    _check_columns(content.plan.tree)
    frames = {}
    is_linear = isinstance(method, LeastSquares)
    with nullcontext() if folder is None else undamaged(folder):
        estimates, covariances = answers_of(content.plan).again(content, method)
        listed = {k: content.nodes[k] for k in estimates}  # read, if they were not yet
    plan = content.plan
    tree = content.plan.tree
    for levels, again in estimates.items():
        errors = content.errors(levels)
        was = listed[levels]
        if is_linear:
            combined = replace(errors, noise=replace(errors.noise, raw=False))
            frames[levels] = content.told(levels, again, combined).rename({COUNT: RELEASED})
        else:
            old = label_nodes(tree, levels, was.codes, **{RELEASED: was.counts})
            new = content.told(levels, again, errors)
            frames[levels] = _side_by_side(tree, levels, new, old)
    facts = {"method": method.to_dict(), "plan_sha256": plan.hash}
    facts["claim"] = plan.design.claim if is_linear else SETTLED
    return Estimates(tree, frames, facts, covariances)


def estimate_measurements(given: Measurements, method: Estimator) -> Estimates:
    """Estimate noisy counts that somebody else measured; frames have no ``released``.

    Their intervals take the errors for Gaussian, as their noise is not known.

    Raises:
        EstimateError: the estimator cannot use them.
        TableError: what was measured does not determine every node.

    Example:
        >>> import polars as pl
        >>> towns = pl.DataFrame({"town": ["a1", "a2", "b1"]})
        >>> tree = hr.Tree([hr.Axis.from_frame("place", towns, levels=["town"])])
        >>> noisy = towns.with_columns(noisy_count=pl.Series([88.0, 302.0, 46.0]), variance=4.0)
        >>> measured = hr.Measurements.from_frames(tree, {1: noisy}, total=440)
        >>> hr.estimate_measurements(measured, hr.Euclidean()).level("town")["count"].sum()
        440
    """
    _check_columns(given.outline.tree)
    covariances: Covariances | None = None
    if isinstance(method, LeastSquares):
        made, layers = given.least_squares()
        covariances = partial(covariance_of_nodes, layers)
    else:
        made = given.estimate(method)
    tree = given.outline.tree
    whole = covariances is None
    frames = {}
    for levels, nodes in zip(tree.chain, made, strict=True):
        errors = CuboidErrors(CarriedNoise(None, sums=True), len(nodes), None)
        labelled = label_nodes(tree, levels, nodes.codes, **released_columns(nodes, errors, USUAL))
        frames[levels] = labelled if whole else labelled.drop(COUNT)
    facts = {"method": method.to_dict(), "claim": SETTLED if whole else BEST}
    return Estimates(tree, frames, facts, covariances)


def _check_columns(tree: Tree) -> None:
    """Raise if a level has the name of a column of the estimates."""
    taken = {RELEASED, COUNT, ESTIMATE, STANDARD_ERROR, LOW, HIGH}
    for name in tree.columns(tree.depth):
        if name in taken:
            raise TableError(
                f"a level's column is called {name!r}, as one of the estimates is; rename it"
            )


def _side_by_side(tree: Tree, levels: Levels, new: pl.DataFrame, old: pl.DataFrame) -> pl.DataFrame:
    """Return every node that either lists; where one does not, its count is 0."""
    columns = tree.columns_of(levels)
    if not columns:
        columns = ["root"]
        root = pl.lit(0).alias("root")
        new, old = new.with_columns(root), old.with_columns(root)
    both = new.join(old, on=columns, how="full", coalesce=True, maintain_order="left_right")
    order = RELEASED, COUNT, ESTIMATE, STANDARD_ERROR, LOW, HIGH
    return both.with_columns(pl.col(COUNT, RELEASED).fill_null(0)).select(
        *tree.columns_of(levels), *order
    )
