"""What a plan's release is, in digests of whole numbers and texts and in arrays of real numbers.

Digests must be equal; real numbers may differ by their `TOLERANCES`. A long array is kept as sums
over `RUNS` runs of entries that follow each other, each entry with a weight between 1 and 2 that is
its own, so that a change of one, or of two that cancel or change places, changes a sum.
"""

import base64
import hashlib
import json
import os
import re
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast
from unittest import mock

import numpy as np
import polars as pl
import pyarrow.parquet as pq
from numpy.typing import NDArray

import hedgerow as hr
from hedgerow.evaluate.metrics import error_by_cuboid
from hedgerow.pages.markup import BLOCK
from hedgerow.release.directory import keys
from hedgerow.release.distribution.distribution import Distribution
from hedgerow.release.page.carried import parts_of
from tests.oracle.draws import open_door
from tests.oracle.made import key_of
from tests.oracle.plans import CASES, LISTED, Case

Float64 = NDArray[np.float64]

TOLERANCES = {
    "estimate": 1e-9,
    "standard_error": 1e-9,
    "variance": 1e-9,
    "forecast": 1e-9,
    "sum": 1e-9,
    "area": 1e-9,
    "column": 1e-9,
    "guarantee": 1e-9,
    "error": 1e-9,
}
"""How far a real number may be from its recorded one, relative to it and to the mean of its array:
by the first word of its quantity."""
ERRORS_WITH_TIES = 0.05
"""How far errors may be where whole counts are not the same on every machine."""
MASKED = ("format", "software", "files", "estimation")
"""Entries of a manifest that may change: versions, and digests of files (their names may not)."""
RUNS = 32
DIGITS = 16
"""Hexadecimal ones of a SHA-256."""
RECORDED = Path(__file__).with_name("recorded")


@dataclass(eq=False)
class Recording:
    """What one plan's release is.

    Attributes:
        digests: by quantity, of whole numbers and texts; or words, where a question is refused.
        numbers: by quantity, with how many there are and their folded values.
        scales: by quantity, of each folded value the size of what was summed; of a fresh one alone.
    """

    digests: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, tuple[int, Float64]] = field(default_factory=dict)
    scales: dict[str, Float64] = field(default_factory=dict)

    def digest(self, quantity: str, *content: Any) -> None:
        """Add a digest of bytes, arrays, text or frames."""
        found = hashlib.sha256()
        for part in content:
            found.update(part if isinstance(part, bytes) else repr(_plain(part)).encode())
        self._once(quantity, self.digests)
        self.digests[quantity] = found.hexdigest()[:DIGITS]

    def number(self, quantity: str, values: Any) -> None:
        """Add real numbers; which of them are missing or endless has a digest."""
        given = np.asarray(values, dtype=np.float64).ravel()
        finite = np.isfinite(given)
        if not finite.all():
            self.digest(f"{quantity}, none", np.flatnonzero(~finite), given[~finite])
        self._once(quantity, self.numbers)
        given = np.where(finite, given, 0.0)
        self.numbers[quantity] = len(given), folded(given)
        self.scales[quantity] = folded(
            np.abs(given) + np.abs(given).mean() if len(given) else given
        )

    def frame(self, quantity: str, frame: pl.DataFrame) -> None:
        """Add a frame: its real columns as numbers, the others as one digest."""
        real = [name for name, kind in frame.schema.items() if kind.is_float()]
        self.digest(quantity, frame.drop(real))
        for name in real:
            self.number(f"{quantity}, {name}", frame[name])

    def asked(self, quantity: str, ask: Callable[[], pl.DataFrame]) -> None:
        """Add an answer; or, where the release refuses one, its words."""
        try:
            frame = ask()
        except hr.ReleaseError as refused:
            self.digests[quantity] = f"refused: {refused}"
        else:
            self.frame(quantity, frame)

    def _once(self, quantity: str, known: Any) -> None:
        assert quantity not in known, f"two quantities are called {quantity}"

    # --- kept -----------------------------------------------------------------------------------

    def write(self, name: str) -> None:
        """Keep it under the name of its plan: JSON, a line a quantity."""
        numbers = {
            quantity: [many, base64.b64encode(zlib.compress(_rounded(values), 9)).decode()]
            for quantity, (many, values) in self.numbers.items()
        }
        text = json.dumps(
            {"digests": self.digests, "numbers": numbers}, ensure_ascii=False, indent=0
        )
        RECORDED.mkdir(exist_ok=True)
        path_of(name).write_text(re.sub(r"\[\n(\d+),\n(.*)\n\]", r"[\1, \2]", text) + "\n")

    @classmethod
    def read(cls, name: str) -> "Recording":
        """What was kept under a name; nothing where nothing was."""
        if not path_of(name).exists():
            return cls()
        kept = json.loads(path_of(name).read_text())
        numbers = {
            quantity: (many, np.frombuffer(zlib.decompress(base64.b64decode(text)), "<f8"))
            for quantity, (many, text) in kept["numbers"].items()
        }
        return cls(kept["digests"], numbers)


def path_of(name: str) -> Path:
    """Where the recording of a plan is."""
    plain = name.lower().replace("ε", "epsilon").replace("δ", "delta")
    return RECORDED / (re.sub(r"[^a-z0-9]+", "-", plain) + ".json")


def kept_names() -> set[str]:
    """The files that are there."""
    return {path.name for path in RECORDED.glob("*")}


def folded(values: Float64) -> Float64:
    """Real numbers, or of more than `RUNS` the weighted sums over runs of them."""
    if len(values) <= RUNS:
        return values
    weights = 1 + np.arange(len(values)) * 0.6180339887498949 % 1
    starts = np.linspace(0, len(values), RUNS, endpoint=False).astype(int)
    return np.add.reduceat(values * weights, starts)


def _rounded(values: Float64) -> bytes:
    """The bytes of real numbers to 36 binary digits, which take less room."""
    return ((values.view("<u8") + (1 << 15)) >> 16 << 16).astype("<u8").tobytes()


def _plain(part: Any) -> Any:
    """What is written for a digest."""
    if isinstance(part, np.ndarray):
        return part.tolist()
    return part.to_dict(as_series=False) if isinstance(part, pl.DataFrame) else part


# --- compared -----------------------------------------------------------------------------------


def changes(recorded: Recording, fresh: Recording, left_out: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield what a fresh recording has otherwise than the recorded one, in words.

    Args:
        recorded: as it was.
        fresh: as it is.
        left_out: how the digests and the numbers begin that hang on ties; where there are any,
            errors are compared with `ERRORS_WITH_TIES`.
    """
    for known, found in ((recorded.digests, fresh.digests), (recorded.numbers, fresh.numbers)):
        yield from (f"{quantity}: is gone" for quantity in known if quantity not in found)
        yield from (f"{quantity}: is new" for quantity in found if quantity not in known)
    for quantity, digest in fresh.digests.items():
        before = recorded.digests.get(quantity, digest)
        if digest != before and not (left_out and quantity.startswith(left_out)):
            yield f"{quantity}: {before} is now {digest}"
    for quantity, (many, values) in fresh.numbers.items():
        hangs = bool(left_out) and quantity.startswith(left_out) and quantity.startswith(LISTED)
        if quantity not in recorded.numbers or hangs:
            continue
        before_many, kept = recorded.numbers[quantity]
        if many != before_many:
            yield f"{quantity}: {before_many} numbers are now {many}"
            continue
        kind = quantity.split()[0].rstrip(",")
        allowed = ERRORS_WITH_TIES if left_out and kind == "error" else TOLERANCES[kind]
        off = np.abs(values - kept) / np.where(fresh.scales[quantity], fresh.scales[quantity], 1)
        if (worst := float(off.max(initial=0.0))) > allowed:
            wrong = int((off > allowed).sum())
            yield (
                f"{quantity}: {wrong} of {len(off)} numbers are off, by up to {worst:.1e}; "
                f"{allowed:.0e} is allowed"
            )


# --- recorded -----------------------------------------------------------------------------------


class _Fixed:
    """`os` with the random bytes of one key, and no wait for the disk."""

    def __init__(self, secret: bytes) -> None:
        self.secret = secret

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def urandom(self, size: int) -> bytes:
        assert size == len(self.secret)
        return self.secret

    def fsync(self, handle: int) -> None:
        pass


@contextmanager
def fixed_key(name: str) -> Iterator[None]:
    """Every release within has the key of this name."""
    with mock.patch.object(keys, "os", _Fixed(key_of(name).secret)):
        yield


def recorded_case(name: str) -> tuple[Case, Recording]:
    """A case of the list and what its release is."""
    case, found = CASES[name](), Recording()
    with TemporaryDirectory() as place, case.limits():
        folder = Path(place) / "release"
        with open_door() as door, fixed_key(name):
            hr.release(case.counts, case.plan, estimator=case.estimator, directory=folder)
        _of_plan(found, case)
        for levels, noise in door.noise_of(len(case.plan.tree.axes)).items():
            found.digest(f"noise {case.plan.tree.name_of(levels)}", noise)
        _of_files(found, folder)
        findings = hr.check(folder)
        assert all(finding.passed for finding in findings), findings
        found.digest("check", [finding.what for finding in findings])
        _of_release(found, case, hr.read_release(folder))
    return case, found


def _of_plan(found: Recording, case: Case) -> None:
    """Its description, its forecast and what it promises."""
    found.digest("plan", case.plan.to_dict())
    found.frame("forecast", hr.forecast(case.plan))
    guarantee = case.plan.guarantee
    found.number("guarantee", [guarantee.epsilon(delta) for delta in (1e-4, 1e-8)])


def _of_files(found: Recording, folder: Path) -> None:
    """Every file, by folder; of Parquet what it holds but real numbers, which the release tells."""
    held: dict[str, list[Any]] = defaultdict(list)
    for path in sorted(path for path in folder.rglob("*") if not path.is_dir()):
        name, here = path.relative_to(folder).as_posix(), held[path.relative_to(folder).parts[0]]
        here.append(name)
        if path.suffix == ".parquet":
            with pq.ParquetFile(path) as file:
                groups = range(file.metadata.num_row_groups)
                frame = cast("pl.DataFrame", pl.from_arrow(file.read()))
                here += [
                    str(file.schema_arrow),
                    [file.metadata.row_group(i).num_rows for i in groups],
                ]
            here.append(frame.select(pl.exclude(pl.Float64)))
        elif name == "manifest.json":
            manifest = json.loads(path.read_text())
            here += [{key: each for key, each in manifest.items() if key not in MASKED}]
            here += [sorted(manifest["files"])]
        elif name == "report.html":
            here += _of_page(path.read_text())
        else:
            here += [path.read_bytes()]
    for name, content in held.items():
        found.digest(f"file {name}", *content)


def _of_page(text: str) -> Iterator[str | list[bytes]]:
    """A page without its version, style and scripts, its blocks as what they hold."""
    first, *others = text.split(BLOCK[0])
    pieces = [("", "", first)]
    for other in others:
        name, _, rest = other.partition(BLOCK[1])
        block, _, tail = rest.partition(BLOCK[2])
        pieces.append((name, block, tail))
    for name, block, rest in pieces:
        bare = re.sub(
            r"<style>.*?</style>|<script>.*?</script>|'sha256-[^']*'", "", rest, flags=re.DOTALL
        )
        yield name + bare.replace(hr.__version__, "")
        if block:
            yield parts_of(block)


def _of_release(found: Recording, case: Case, release: hr.Release) -> None:
    """Counts and their errors by cuboid, noisy counts, sums, areas, and what is wrong with them."""
    tree, whole = case.plan.tree, isinstance(case.plan.measure, hr.All)
    flags, variances = [], []
    for levels, what in case.plan.by_levels.items():
        name = tree.name_of(levels)
        frame = release.level(name, all=whole)
        codes = frame.columns[: frame.columns.index("count")]
        found.frame(f"counts {name}", frame.select(*codes, "count"))
        flags.append(frame["contradicted"].to_list())
        wider = release.level(name, all=whole, confidence=hr.Confidence(0.9, simultaneous=True))
        found.digest(f"intervals {name}", *(each.select("low", "high") for each in (frame, wider)))
        found.number(f"estimate {name}", frame["estimate"])
        found.number(f"standard_error {name}", frame["standard_error"])
        if isinstance(what, hr.Measured):
            noisy = release.measurements(name)
            found.digest(f"noisy counts {name}", noisy.drop("variance"))
            variances += noisy["variance"].unique().sort().to_list()
    found.digest("contradicted", flags)
    found.number("variance of noisy counts", variances)
    for asked in case.sums:
        words = ", ".join(f"{axis} by {level}" for axis, level in asked.items())
        found.asked(f"sum {words}", partial(release.cuboid, **asked))
    if case.areas:
        _, by = case.areas
        found.asked("area", partial(release.areas, case.lookup(), column="area", by=by))
    if isinstance(case.plan.measure, hr.RunningSums) and len(tree.axes) > 1:
        found.frame("column by place", release.quantiles("income", [0.1, 0.5], place="level1"))
    elif isinstance(case.estimator, hr.Isotonic) or case.plan.allocation == "distribution":
        made = Distribution(release)
        found.frame("column", made.band(hr.Confidence(0.9, simultaneous=True)))
        ranks = [made.quantile(q) for q in (0.1, 0.5, 0.9)]
        found.number("column, quantiles", [[q.value, q.low, q.high] for q in ranks])
    errors = error_by_cuboid(case.counts, release)
    found.number("error by cuboid", errors["rmse"])
