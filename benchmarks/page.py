"""A benchmark's results, and the page of all of them.

Every benchmark's ``measured`` makes a `Benchmark`; `publish` writes ``docs/benchmarks/NAME.json``;
`write_page` makes ``docs/benchmarks.md`` of these files alone.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import ROOT, MissingPeer, facts, load
from studies.page import markdown, timed

PAGES = ROOT / "docs" / "benchmarks"
ORDER = ("inf_tda", "noise", "distribution", "accounting", "projection", "allocation")
"""What the page begins with; the others follow by name."""

INTRO = """# Benchmarks

Made by `make bench`. Every ratio compares two programs that ran one after the other in one process
on one machine: the wall-clock seconds of the other program over ours. Of repeated runs the fastest
counts, for both. No program is given the same input twice, so that none answers from a cache: every
run has new noise, prices, files or budgets, and Hedgerow's caches are emptied before each run.
Compiled code is loaded beforehand. The same figures, with versions
and more digits, are in `docs/benchmarks/*.json`."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """What two programs both did.

    Attributes:
        what: the task.
        peer: who did it beside us.
        ours: seconds.
        theirs: seconds.

    Raises:
        ValueError: seconds that are none.
    """

    what: str
    peer: str
    ours: float
    theirs: float

    def __post_init__(self) -> None:
        for seconds in (self.ours, self.theirs):
            if not 0 < seconds < math.inf:
                raise ValueError(f"{self.what}: seconds must be above 0, got {seconds}")

    @property
    def times(self) -> float:
        """How many times as long the peer takes."""
        return self.theirs / self.ours


@dataclass(frozen=True, slots=True)
class Benchmark:
    """What a benchmark found.

    Attributes:
        title: in a few words.
        text: Markdown: the setting, what was found, further tables.
        ratios: peers beside ours.
        pictures: file names in ``docs/benchmarks/``, drawn by the benchmark.
        figures: all that was measured, for the JSON file: dataclasses, arrays and the like.
    """

    title: str
    text: str
    ratios: Sequence[Ratio] = ()
    pictures: Sequence[str] = ()
    figures: Any = ()


def publish(name: str, run: Callable[[], Benchmark], folder: Path = PAGES) -> None:
    """Run a benchmark, keep what it found and print it; say so where a peer is missing."""
    before = load()
    try:
        spent, found = timed(run)
    except MissingPeer as missing:
        print(f"skipped: {missing}")
        return
    kept = {"benchmark": name, **asdict(found), "seconds": round(spent, 1)}
    kept |= {"load": [before, load()], **facts()}
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(
        kept,
        indent=1,
        ensure_ascii=False,
        default=lambda one: np.asarray(one, dtype=float).tolist(),
    )
    (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    print(section(kept))


def write_page(folder: Path = PAGES) -> Path:
    """Write the page of all benchmarks that have been kept, beside their folder; its path."""
    kept = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")]
    names = {name: place for place, name in enumerate(ORDER)}
    kept.sort(key=lambda one: (names.get(one["benchmark"], len(names)), one["benchmark"]))
    parts = [INTRO, in_short(kept), *map(section, kept), conditions(kept)]
    path = folder.with_suffix(".md")
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return path


def in_short(kept: Sequence[Mapping[str, Any]]) -> str:
    """One line a benchmark and peer: the least and the greatest ratio."""
    rows = []
    for one in kept:
        ratios = [Ratio(**ratio) for ratio in one["ratios"]]
        for peer in dict.fromkeys(ratio.peer for ratio in ratios):
            found = sorted(ratio.times for ratio in ratios if ratio.peer == peer)
            span = " to ".join(dict.fromkeys(number(times) for times in (found[0], found[-1])))
            rows.append([one["title"], peer, span])
    return markdown("benchmark | peer | its seconds over ours", rows)


def section(one: Mapping[str, Any]) -> str:
    """A benchmark with its text, ratios, pictures and conditions, in Markdown."""
    ratios = [Ratio(**ratio) for ratio in one["ratios"]]
    rows = [(r.what, r.peer, clock(r.ours), clock(r.theirs), number(r.times)) for r in ratios]
    parts = [
        f"## {one['title']}",
        one["text"].strip(),
        markdown("task | peer | ours | the peer's | ratio", rows) if rows else "",
        *(f"![{one['title']}](benchmarks/{picture})" for picture in one["pictures"]),
        f"Made by `benchmarks/{one['benchmark']}.py` in {one['seconds']:.0f} s.",
    ]
    return "\n\n".join(part for part in parts if part)


def conditions(kept: Sequence[Mapping[str, Any]]) -> str:
    """Where and when each benchmark ran, and beside how much other work."""
    rows = []
    for one in kept:
        machine = one["machine"]
        told = f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gb']:.0f} GB"
        before, after = one["load"]
        rows.append(
            [one["benchmark"], one["date"], one["commit"], told, f"{before:.1f} to {after:.1f}"]
        )
    heads = "benchmark | date | commit | machine | load average before and after"
    versions = {name: version for one in kept for name, version in one["versions"].items()}
    used = ", ".join(f"{name} {version}" for name, version in versions.items())
    return (
        "## Conditions\n\nA load average far above 1 says that other programs ran on the same "
        "cores: seconds are then too long on both sides, and ratios rough. A plus behind a commit: "
        f"files differed from it.\n\n{markdown(heads, rows)}\n\nVersions: {used}."
    )


def number(value: float) -> str:
    """Two digits, of whole numbers above 100 the first two: 0.86, 3.1, 47, 1,300."""
    rounded = float(f"{value:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 or not rounded else f"{rounded:#.2g}"


def clock(seconds: float) -> str:
    """Seconds with their unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}" if seconds < 1000 else f"{seconds:,.0f} s"
    return f"{seconds / 1e-9:.3g} ns"
