"""The manifest: what was released and promised, and the digest of every file; all of it public."""

import hashlib
import json
import os
import platform
import re
import stat
from collections.abc import Iterable
from functools import cache
from importlib.metadata import version
from math import isfinite
from pathlib import Path
from typing import Any

from hedgerow.errors import ReleaseError
from hedgerow.estimate.estimator import Estimator
from hedgerow.limits import MOST_BYTES_OF_A_MANIFEST
from hedgerow.machine import read_small_file
from hedgerow.plan.plan import Plan
from hedgerow.release.passes import ESTIMATION
from hedgerow.text import Json, TextByName, is_visible, visible

# What the parts of a cuboid are called: ``counts/cuboid=2-3/part-00000.parquet`` and so on.
#
# A release that was made on a cluster has them in place of ``counts/cuboid=2-3.parquet``, likewise
# below ``measurements/``: one after the other they are that file.

PART = re.compile(
    r"(?P<cuboid>(counts|measurements)/cuboid=\d+(-\d+)*)/part-(?P<number>\d{5,})\.parquet"
)


def whole_names(names: Iterable[str]) -> list[str]:
    """Names of files with those of parts replaced by that of the file they stand for, once each.

    Where parts are missing or stand beside a whole file, their names are left as they are.
    """
    whole = []
    parts: dict[str, list[int]] = {}
    for name in names:
        part = PART.fullmatch(name)
        if part is None:
            whole.append(name)
        else:
            parts.setdefault(part["cuboid"], []).append(int(part["number"]))
    for cuboid, numbers in parts.items():
        name = f"{cuboid}.parquet"
        if sorted(numbers) == list(range(len(numbers))) and name not in whole:
            whole.append(name)
        else:
            whole += [f"{cuboid}/part-{number:05d}.parquet" for number in numbers]
    return whole


def part_files(folder: Path, name: str) -> list[Path]:
    """Return the files of a directory that hold ``….parquet``: itself, or its parts in order.

    Raises:
        ReleaseError: one of them is missing, or is no plain file in plain folders.
    """
    whole = folder / name
    inner = whole.with_suffix("")
    paths = sorted(inner.glob("part-*.parquet")) if inner.is_dir() else [whole]
    for path in paths:
        check_plain(folder, path)
    return paths


def check_plain(folder: Path, path: Path) -> None:
    """Refuse what is no plain file of a release directory: a link, a pipe, a device, a folder.

    Opening a pipe may wait for ever, a device may never end, and a link leads elsewhere.

    Raises:
        ReleaseError: it is none, lies behind a link, or is not there.
    """
    name = path.relative_to(folder)
    for place in [path, *(folder / above for above in name.parents if above.name)]:
        try:
            mode = place.lstat().st_mode
        except FileNotFoundError:
            raise ReleaseError(f"{visible(name.as_posix())[:200]} is missing") from None
        if not (stat.S_ISREG(mode) if place == path else stat.S_ISDIR(mode)):
            raise ReleaseError(f"{visible(name.as_posix())[:200]} is no plain file")


_FAMILY = "hedgerow-release-"
FORMAT = f"{_FAMILY}6"
"""Its number rises with every change of what a manifest says, also of the words of a promise: those
of before would look forged."""
MANIFEST = "manifest.json"
REPORT = "report.html"
OTHER_PAGE = f"{REPORT} is not what the files of the release make"
MANIFEST_KEYS = {
    "format", "plan", "plan_sha256", "promise", "restriction", "estimator", "estimation", "ledger",
    "software", "files",
}  # fmt: skip
DESCRIBE = "describe"
"""The one key that is there only where something is said under it."""

MOST_ESTIMATIONS = 9999
NO_LEDGER = "none kept"
PACKAGE = re.compile(r"[a-z][a-z0-9_-]{0,30}")
VERSION = re.compile(r"\d{1,6}(\.\d{1,6}){0,3}((a|b|rc)\d{1,4})?(\.post\d{1,4})?(\.dev\d{1,4})?\+?")
"""No room for words: the page prints the version."""

NOT_STATED = "not_stated"
_SOFTWARE = ("hedgerow", "numpy", "numba", "polars", "pyarrow", "cryptography")


def write_manifest(
    folder: Path, plan: Plan, estimator: Estimator, ledger: TextByName | None = None
) -> Json:
    """Write ``manifest.json`` for the files that lie in the folder, and return it."""
    manifest = {
        "format": FORMAT,
        "plan": plan.to_dict(),
        "plan_sha256": plan.hash,
        "promise": str(plan.promise),
        "restriction": plan.protection.restriction,
        "estimator": estimator.to_dict(),
        "estimation": ESTIMATION,
        **({DESCRIBE: plan.description.to_dict()} if plan.description else {}),
        "ledger": NO_LEDGER if ledger is None else ledger,
        "software": {"python": platform.python_version(), **_versions()},
        "files": {name: sha256(folder / name) for name in file_names(folder)},
    }
    text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    (folder / MANIFEST).write_text(text, encoding="utf-8")
    return manifest


@cache
def _versions() -> TextByName:
    """Return the versions of the packages that draw, count and write; each is a file to read."""
    return {name: version(name) for name in _SOFTWARE}


def read_manifest(folder: Path) -> Json:
    """Return the manifest of a release directory.

    Raises:
        ReleaseError: there is none, or it is none of ours.
    """
    path = folder / MANIFEST
    if not path.is_file():
        raise ReleaseError(f"{str(folder)!r} is no release directory: {_lack(folder)}")
    check_plain(folder, path)
    text = read_small_file(path, MOST_BYTES_OF_A_MANIFEST, repr(str(path)), ReleaseError)
    try:
        manifest = _parsed(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        if isinstance(error, ReleaseError):
            raise
        raise ReleaseError(f"{str(path)!r} cannot be read as JSON: {error}") from None
    form = rf"{_FAMILY}[0-9]{{1,4}}"
    if not isinstance(manifest, dict) or not re.fullmatch(form, str(manifest.get("format"))):
        raise ReleaseError(f"{str(path)!r} is no manifest of a release, of the format {FORMAT!r}")
    if manifest["format"] != FORMAT:
        raise ReleaseError(
            f"{str(path)!r} has the format {manifest['format']!r}, and this version of Hedgerow "
            f"reads {FORMAT!r}; read the release with the version that made it"
        )
    _check_texts(path, manifest)
    return manifest


def _parsed(text: str) -> Any:
    """Parse JSON as a manifest has it: no key twice, and numbers alone where numbers stand."""

    def once(pairs: list[tuple[str, Any]]) -> Json:
        entries = dict(pairs)
        if len(entries) < len(pairs):
            raise ValueError("a key is there twice")
        return entries

    def no_number(text: str) -> float:
        raise ValueError(f"{text[:20]} is no number of JSON")

    def finite(text: str) -> float:
        return float(text) if isfinite(float(text)) else no_number(text)

    return json.loads(text, object_pairs_hook=once, parse_constant=no_number, parse_float=finite)


def _check_texts(path: Path, manifest: Json) -> None:
    """Refuse a manifest with a word that could be shown as something else than it is.

    The code of the leaf that is not stated may hold anything, as all codes may.
    """
    waiting: list[Any] = [manifest]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, dict):
            waiting += [*inner, *(each for key, each in inner.items() if key != NOT_STATED)]
        elif isinstance(inner, list):
            waiting += inner
        elif isinstance(inner, str) and not is_visible(inner):
            raise ReleaseError(
                f"{str(path)!r} has a word with control characters, or others that are not seen: "
                f"{inner[:100]!r}; whoever wrote it may mean to deceive"
            )


def made_by(manifest: Json) -> str:
    """Return the version of Hedgerow that a manifest says made the release.

    Raises:
        ReleaseError: it says none, or names software by more than names and versions.
    """
    software = manifest.get("software")
    if not isinstance(software, dict) or "hedgerow" not in software:
        raise ReleaseError("the manifest does not say which version of Hedgerow made the release")
    for name, version_of in software.items():
        if not (PACKAGE.fullmatch(name) and VERSION.fullmatch(str(version_of))):
            raise ReleaseError("the manifest names software by more than names and versions")
    return str(software["hedgerow"])


def estimation_of(manifest: Json) -> int:
    """Return the version of the estimation that a manifest says made the counts.

    Raises:
        ReleaseError: it says none, or one that the Hedgerow that it names never had.
    """
    number = manifest.get("estimation")
    maker = made_by(manifest)
    own = version("hedgerow")
    if type(number) is not int or not 1 <= number <= MOST_ESTIMATIONS:
        raise ReleaseError("the manifest does not say which version of the estimation made counts")
    if number > ESTIMATION and _numbers(maker) <= _numbers(own):
        raise ReleaseError(
            f"the manifest says that Hedgerow {maker} made counts by version {number} of the "
            f"estimation, and Hedgerow {own} has had none after version {ESTIMATION}"
        )
    return number


def other_estimation(manifest: Json) -> str | None:
    """Return why counts cannot be made again here, in a sentence; None where they can.

    Raises:
        ReleaseError: the manifest names no version of the estimation that there can be.
    """
    number = estimation_of(manifest)
    if number == ESTIMATION:
        return None
    return (
        f"the manifest says that Hedgerow {made_by(manifest)!r} made the counts, by version "
        f"{number} of the estimation, and this is Hedgerow {version('hedgerow')!r}, which has "
        f"version {ESTIMATION}; check with the one that made them"
    )


def _numbers(version_of: str) -> list[int]:
    """Return the numbers of a version by which later ones are told; not those of its trials."""
    return [int(number) for number in re.split(r"[^\d.]", version_of)[0].strip(".").split(".")]


def _lack(folder: Path) -> str:
    """Why a place without a manifest is no release, as far as that can be seen."""
    if folder.is_file():
        return "it is a file; unpack an archive first, and name its folder"
    if not folder.is_dir():
        return "nothing is there"
    inner = next((each.name for each in sorted(folder.iterdir()) if _is_release(each)), None)
    hint = "" if inner is None else f"; {str(folder / inner)!r} is one"
    return f"it has no {MANIFEST}{hint}"


def check_outside(place: Path, named: str) -> None:
    """Raise if a file or folder there would be one more in a release, which stays as it is.

    Raises:
        ReleaseError: a folder above it is a release.
    """
    for folder in Path(os.path.realpath(place)).parents:
        if _is_release(folder):
            raise ReleaseError(
                f"{named} {str(place)!r} lies within the release {str(folder)!r}, which stays as "
                f"it is; name a place outside"
            )


def _is_release(folder: Path) -> bool:
    """Return whether the folder has a manifest of any version of ours, or one that cannot be read.

    Other programs call files manifest.json too.
    """
    manifest = folder / MANIFEST
    try:
        if not manifest.is_file():
            return False
        with manifest.open("rb") as file:
            return _FAMILY.encode() in file.read(MOST_BYTES_OF_A_MANIFEST)
    except PermissionError:
        return True
    except OSError:
        return False


def file_names(folder: Path) -> list[str]:
    """Return all files below a release directory but the manifest, as relative names."""
    every = [path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()]
    names = (path.relative_to(folder).as_posix() for path in every)
    return sorted(name for name in names if name != MANIFEST)


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file.

    Raises:
        ReleaseError: it is a link, a device or a folder.
    """
    check_plain(path.parent, path)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
