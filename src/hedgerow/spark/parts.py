"""Parts of a release that were written apart: ``counts/depth=K/part-00000.parquet`` and so on.

Below the cut each run of subtree jobs writes one part a depth, numbered in tree order: a depth is
its parts one after the other. A part is written under a name of its own attempt and then renamed;
a second attempt writes the same bytes, as it draws the same noise, so it does not matter which of
them is there in the end. A run is finished when its note is there, which comes last.
"""

import json
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

from hedgerow.plan.plan import Plan
from hedgerow.release.descent.nodes import Int64
from hedgerow.release.descent.results import DepthResult
from hedgerow.release.directory.depth_errors import certainty
from hedgerow.release.directory.keys import sync
from hedgerow.release.directory.measurements import (
    NOISY_SCHEMA,
    GrowingFile,
    _labelled,
    _noisy,
    count_schema,
)

ATTEMPTS, PARTS, NOTES = "attempts", "parts", "notes"
KINDS = ("counts", "measurements")


@dataclass(frozen=True, slots=True)
class Note:
    """What is known of a finished run. Confidential.

    Attributes:
        run: its number.
        sums: of its records; see `hedgerow.tables.record_sum`.
        cells: by depth, how many cells were measured.
        survivors: by depth, how many nodes have a positive count.
    """

    run: int
    sums: tuple[int, ...]
    cells: dict[int, int]
    survivors: dict[int, int]


def write_run(
    folder: Path,
    plan: Plan,
    total: int,
    run: int,
    sums: tuple[int, ...],
    found: Iterable[DepthResult],
) -> None:
    """Write the parts of a run, then its note; whoever does it again changes nothing.

    Args:
        folder: of the finished jobs, in the staging folder.
        plan: what was measured.
        total: the released one.
        run: its number.
        sums: of the records below its roots.
        found: the results of its jobs, in their order.
    """
    attempt = folder / ATTEMPTS / uuid4().hex
    attempt.mkdir(parents=True)
    try:
        note = Note(run, sums, {}, {})
        _write(attempt, plan, total, note, found)
        for path in sorted(attempt.glob("*/*")):
            depth = int(path.name.removeprefix("depth="))
            _appear(path, _part(folder, path.parent.name, depth, run))
        written = attempt / "note.json"
        written.write_text(json.dumps(asdict(note)), encoding="utf-8")
        _appear(written, folder / NOTES / f"run-{run:05d}.json")
    finally:
        shutil.rmtree(attempt, ignore_errors=True)


def _write(folder: Path, plan: Plan, total: int, note: Note, found: Iterable[DepthResult]) -> None:
    """The parts as files of a folder, and what they are into the note."""
    described = plan.to_dict()
    files: dict[tuple[str, int], GrowingFile[Any]] = {}
    for kind in KINDS:
        (folder / kind).mkdir()
    try:
        for result in found:
            t, nodes = result.depth, result.nodes
            if ("counts", t) not in files:
                known = certainty(described, t, total)
                build = partial(_labelled, plan.tree, t, known)
                path = folder / "counts" / f"depth={t}"
                files["counts", t] = GrowingFile(path, count_schema(plan.tree, t), build)
            files["counts", t].add(nodes, len(nodes))
            note.survivors[t] = note.survivors.get(t, 0) + len(nodes)
            if result.noisy is not None:
                if ("measurements", t) not in files:
                    path = folder / "measurements" / f"depth={t}"
                    files["measurements", t] = GrowingFile(path, NOISY_SCHEMA, _noisy)
                files["measurements", t].add(cast("Int64", result.noisy), len(result.noisy))
                note.cells[t] = note.cells.get(t, 0) + len(result.noisy)
    except BaseException:
        for file in files.values():
            file.abandon()
        raise
    for file in files.values():
        file.close()


def _appear(path: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    sync(path)
    path.replace(place)


def read_notes(folder: Path) -> dict[int, Note]:
    """The notes of the runs that are finished: all of whose parts are still there.

    A run that was killed after it had moved them to the release leaves notes alone.
    """
    found = {}
    for path in sorted((folder / NOTES).glob("run-*.json")):
        note = json.loads(path.read_text(encoding="utf-8"))
        numbers = [{int(t): n for t, n in note[name].items()} for name in ("cells", "survivors")]
        read = Note(note["run"], tuple(note["sums"]), *numbers)
        if all(part.exists() for part in _parts(folder, read)):
            found[read.run] = read
    return found


def _parts(folder: Path, note: Note) -> list[Path]:
    """The files that a run has written, but for what was moved since."""
    kinds = zip(KINDS, (note.survivors, note.cells), strict=True)
    return [_part(folder, kind, t, note.run) for kind, depths in kinds for t in depths]


def _part(folder: Path, kind: str, depth: int, run: int) -> Path:
    return folder / PARTS / kind / f"depth={depth}" / f"part-{run:05d}.parquet"


def take_parts(folder: Path, content: Path) -> None:
    """Move all parts to their place in a release, instead of the empty files of their depths."""
    for part in sorted((folder / PARTS).glob("*/*")):
        place = content / part.parent.name / part.name
        place.with_name(f"{place.name}.parquet").unlink()
        part.rename(place)
