"""`check`: do the files of a release agree with each other and with the plan that they state?

From the directory alone: every file has its digest, the plan is one that `make_plan` could make and
promises what is written, every family adds up, and the released counts are what the named estimator
makes of the noisy counts. Counts that another version of the estimation made cannot be made again
here: they are not verified, and all else is. That the noise was drawn as the plan says cannot be
seen from outside, nor that a whole directory was not forged: compare the plan's hash with the one
you signed off.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np

from hedgerow.arrays import Levels
from hedgerow.declared import frozen
from hedgerow.errors import HedgerowError, MachineError, ReleaseError
from hedgerow.estimate.registry import read_estimator
from hedgerow.plan.plan import Plan
from hedgerow.privacy.ledger.records import LONGEST_TEXT
from hedgerow.release.answers.measured_nodes import estimated_again
from hedgerow.release.answers.questions import answers_of
from hedgerow.release.descent.nodes import Nodes, NodesOf, adds_up, check_families, is_in_order
from hedgerow.release.directory.check_facts import TableFacts
from hedgerow.release.directory.cuboid_errors import USUAL
from hedgerow.release.directory.manifest import (
    DESCRIBE,
    MANIFEST_KEYS,
    NO_LEDGER,
    OTHER_PAGE,
    REPORT,
    estimation_of,
    file_names,
    made_by,
    other_estimation,
    read_manifest,
    sha256,
    whole_names,
)
from hedgerow.release.directory.measurements import (
    ESTIMATE,
    HIGH,
    LOW,
    STANDARD_ERROR,
    counts_file,
    domain_files,
    noisy_file,
    released_columns,
)
from hedgerow.release.directory.public_files import public_files
from hedgerow.release.directory.stored import (
    OnDisk,
    check_hash,
    stated_plan,
)
from hedgerow.release.page.report import check_report
from hedgerow.release.passes import pass_of
from hedgerow.tables.tree import Tree
from hedgerow.text import Json

ROUNDING = 1e-12
"""The part of all records by which estimates may differ that another version added up otherwise."""


@frozen
class Finding:
    """One thing that was checked.

    Attributes:
        what: what should be true.
        failure: what is not, in a sentence; None where nothing was found.
        unverified: why it cannot be told here, in a sentence; None where it can.
    """

    what: str
    failure: str | None = None
    unverified: str | None = None

    @property
    def passed(self) -> bool:
        """Whether it was verified, and holds."""
        return self.failure is None and self.unverified is None


def check(directory: str | Path) -> list[Finding]:
    """Re-verify a release from its own files: digests, plan, domain, sums, measurements.

    What cannot be told here has a reason in `Finding.unverified`, and has not passed: a page that
    another version of Hedgerow wrote otherwise, counts that another version of the estimation made,
    and what this machine has no memory for.

    Raises:
        ReleaseError: the directory holds no manifest to check against.

    Example:
        >>> import polars as pl
        >>> towns = pl.DataFrame({"county": ["a", "a", "b"], "town": ["a1", "a2", "b1"]})
        >>> tree = hr.Tree([hr.Axis.from_frame("place", towns, levels=["county", "town"])])
        >>> people = towns.with_columns(people=pl.Series([900, 3000, 500]))
        >>> counts = hr.Counts.from_frame(tree, people, count="people")
        >>> plan = hr.make_plan(tree, budget=hr.EpsilonDelta("1", "1e-8"))
        >>> hr.release(counts, plan).write("out")
        >>> all(finding.passed for finding in hr.check("out"))
        True
    """
    folder = Path(directory)
    manifest = read_manifest(folder)
    findings = [
        _finding("every file has the digest of the manifest", lambda: _files(folder, manifest)),
        _finding("the plan has the hash of the manifest", lambda: check_hash(manifest)),
    ]
    if any(finding.failure for finding in findings):
        return findings
    plans = []
    findings.append(
        _finding(
            "plan, public domain and promise belong together",
            lambda: plans.append(stated_plan(folder, manifest)),
        )
    )
    if plans:
        findings.append(
            _finding("no file is there but the release's", lambda: _no_other(plans[0], manifest))
        )
        findings.append(_page(folder, plans[0], manifest))
        content = OnDisk(folder, plans[0], read_estimator(manifest["estimator"]))
        findings += _cuboids(content, other_estimation(manifest))
    return findings


def _finding(what: str, verify: Callable[[], object]) -> Finding:
    try:
        verify()
    except MachineError as error:
        if isinstance(error.__cause__, PermissionError):
            return Finding(what, str(error))
        return Finding(what, unverified=str(error))
    except HedgerowError as error:
        return Finding(what, str(error))
    except Exception as error:  # noqa: BLE001 - a forged file may break anything on its way in
        return Finding(what, f"cannot be read: {type(error).__name__}")
    return Finding(what)


def _files(folder: Path, manifest: Json) -> None:
    odd = (set(manifest) - {DESCRIBE}) ^ MANIFEST_KEYS
    if odd:
        names = ", ".join(sorted(odd))
        raise ReleaseError(f"the manifest has other keys than a release's: {names}")
    estimation_of(manifest)
    _check_ledger(manifest["ledger"])
    check_unchanged(folder, manifest)


def check_unchanged(folder: Path, manifest: Json) -> None:
    """Raise unless the files of a directory are those that its manifest lists.

    Raises:
        ReleaseError: one is missing, one more is there, or one was changed.
    """
    listed = manifest["files"]
    there = file_names(folder)
    for name in sorted({*listed, *there}):
        if name not in there:
            raise ReleaseError(f"{name} is missing")
        if name not in listed:
            raise ReleaseError(f"{name} is not in the manifest")
        if sha256(folder / name) != listed[name]:
            raise ReleaseError(f"{name} was changed after the release")


def _check_ledger(ledger: object) -> None:
    """Refuse what no release says of its ledger."""
    if ledger != NO_LEDGER and not (
        isinstance(ledger, dict)
        and set(ledger) == {"dataset", "release_id"}
        and all(isinstance(value, str) and len(value) <= LONGEST_TEXT for value in ledger.values())
    ):
        raise ReleaseError("the manifest says of its ledger more than a dataset and an entry")


def _no_other(plan: Plan, manifest: Json) -> None:
    wanted = {REPORT, *(name for axis in plan.tree.axes for name in domain_files(axis))}
    wanted.update(public_files(plan.facts), map(counts_file, plan.levels))
    wanted.update(map(noisy_file, plan.measured))
    odd = sorted(wanted ^ set(whole_names(manifest["files"])))
    if odd:
        raise ReleaseError(f"{odd[0]} is no file of this plan's release, or is missing")


def _page(folder: Path, plan: Plan, manifest: Json) -> Finding:
    """Return whether the page is the one that the files make; other versions may differ."""
    what = f"{REPORT} is what the files make"
    maker = made_by(manifest)
    estimator = read_estimator(manifest["estimator"])
    finding = _finding(what, lambda: check_report(folder, plan, estimator, maker))
    if finding.failure != OTHER_PAGE or maker == version("hedgerow"):
        return finding
    because = (
        f"it is not what this version makes, and the manifest says that {maker!r} made it; "
        f"check with that version, or write the page again with hedgerow report"
    )
    return Finding(what, unverified=because)


def _cuboids(content: OnDisk, other: str | None) -> Iterator[Finding]:
    """Findings for each cuboid, coarsest first; they end where codes cannot be read.

    Args:
        content: the directory.
        other: why counts cannot be made again here, in a sentence; None where they can.
    """
    plan = content.plan
    tree = content.plan.tree
    released = content.nodes
    for levels in plan.levels:
        what = _named(plan, levels)
        finding = _finding(
            f"{what}: known codes, counts whole and above 0",
            partial(released.__getitem__, levels),
        )
        yield finding
        if not finding.passed:
            return
        depth = plan.design.depth_of(levels)
        if depth:
            above = released[tree.cuboid(depth - 1)]
            yield _finding(
                f"{what}: families add up to their parents' counts",
                partial(check_families, tree, depth, above, released[levels]),
            )
    if not plan.has_depths:
        pairs = ((levels, table) for levels in plan.levels for table in plan.tables_with(levels))
        for levels, table in pairs:  # all tables that contain a cuboid are shown to agree
            if levels == table != tree.finest:
                continue
            of = "its leaves" if table == tree.finest else f"those of {tree.name_of(table)}"
            yield _finding(
                f"{_named(plan, levels)}: every count is the sum of {of}",
                partial(_is_sum, tree, (levels, released[levels]), (table, released[table])),
            )
    if plan.constraints is not None:
        for levels in plan.tables:
            facts = TableFacts(tree, plan.constraints, levels)
            yield _finding(
                f"{_named(plan, levels)}: nobody where public facts leave nobody, bounds kept",
                partial(facts.check, released[levels]),
            )
    yield from _estimates(content, other)


def _named(plan: Plan, levels: Levels) -> str:
    """Return what findings call a cuboid: with its depth, where it has one."""
    name = plan.tree.name_of(levels)
    depth = plan.design.depth_of(levels)
    return name if depth is None else f"depth {depth} ({name})"


def _is_sum(tree: Tree, given: tuple[Levels, Nodes], table: tuple[Levels, Nodes]) -> None:
    """Raise unless the cells are listed row by row, each with the sum of the table's."""
    levels, nodes = given
    if not is_in_order(tree, levels, nodes.codes, None):
        raise ReleaseError("the cells are not row by row")
    if not adds_up(tree, table, given):
        what = "leaves" if table[0] == tree.finest else tree.name_of(table[0])
        raise ReleaseError(f"some counts are not the sums of their {what}")


def _estimates(content: OnDisk, other: str | None) -> Iterator[Finding]:
    """Yield whether each cuboid is what the estimator makes of the noisy counts.

    Of counts that cannot be made again estimates and intervals are compared, and they are not
    verified, unless they are public.
    """
    plan = content.plan
    again = NodesOf()
    rounding = 0.0 if other is None else ROUNDING

    def estimate() -> None:
        if other is not None:
            again.update(answers_of(plan).listed(content.stored))
            return
        try:
            run = pass_of(plan, content.stored, content.estimator)
            again.update(estimated_again(content.stored, run))
        except ReleaseError as error:
            raise ReleaseError(
                f"the counts are not what {content.estimator.name} makes of the noisy counts: "
                f"{error}"
            ) from None

    finding = _finding("the noisy counts are those of the plan's nodes", estimate)
    yield finding
    if not finding.passed:
        return
    for levels, nodes in content.nodes.items():
        finding = _finding(
            f"{_named(plan, levels)}: the counts and intervals are the "
            f"estimate from the noisy counts",
            partial(_same, content, levels, again.get(levels), nodes, rounding),
        )
        if other is not None and finding.passed and not plan.is_public(levels):
            finding = replace(finding, unverified=other)
        yield finding


def _same(
    content: OnDisk, levels: Levels, again: Nodes | None, released: Nodes, rounding: float
) -> None:
    """Raise unless a file says what was made again; None where its own estimates are believed."""
    frame = content.counts(levels)
    if again is None:
        error = frame[STANDARD_ERROR].to_numpy()
        again = replace(released, estimate=frame[ESTIMATE].to_numpy(), variance=error**2)
    codes = zip(again.codes, released.codes, strict=True)
    same = all(np.array_equal(one, other) for one, other in codes)
    if not same or not np.array_equal(again.counts, released.counts):
        maker = content.estimator.name
        raise ReleaseError(f"the counts are not what {maker} makes of the noisy counts")
    total = int(released.counts.sum())
    columns = released_columns(again, content.errors(levels), USUAL)
    room = 1e-9 + rounding * total
    for name in (ESTIMATE, STANDARD_ERROR):
        if not np.allclose(frame[name].to_numpy(), columns[name], rtol=1e-9, atol=room):
            raise ReleaseError(f"column {name} does not follow from the noisy counts")
    for name in (LOW, HIGH):
        given = frame[name].to_numpy()
        wanted = columns[name]
        # Rounded from doubles: another machine may be one off. A difference could wrap.
        if not ((given >= wanted - 1) & (given <= wanted + 1)).all():
            raise ReleaseError(f"column {name} does not follow from the noisy counts")
