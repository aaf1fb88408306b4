"""All that the studies found on one page: ``docs/studies.md`` from ``docs/studies/*.json``."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from studies.page import HEADS, PAGES, ROOT, Row, cells, markdown

DOCS = PAGES.parent
TIMES = PAGES / "times.json"
PAPERS = {
    "ko": "Ko, Ziani, Fioretto: Optimal Allocation of Privacy Budget on Hierarchical Data Release",
    "zhu": "Zhu, Van Hentenryck, Fioretto: Bias and Variance of Post-processing in Differential "
    "Privacy",
    "rameshwar": "Rameshwar, Tandon, Sharma: Optimal Tree-Based Mechanisms for Differentially "
    "Private Approximate CDFs",
    "su": "Su, Su, Wang: The 2020 US Decennial Census Is More Private Than You (Might) Think",
    "boninsegna": "Boninsegna, Silvestri: Differentially Private Release of Hierarchical "
    "Origin/Destination Data with a TopDown Approach",
}
WIDER = {
    "beside_practice": "beside_practice",
    "births": "births",
    "census": "census_errors",
    "census_intervals": "census_intervals",
    "coverage": "coverage",
    "cube": "cube_errors",
    "distributions": "distributions_study",
    "estimators": "estimators",
    "real_tables": "real_tables",
    "released": "released",
    "survivor_sums": "survivor_sums",
    "workloads": "workload_errors",
}
"""The studies beside the papers' own figures, and the page of each."""

KINDS = ("figure", "table", "section", "appendix")

INTRO = """# Studies

Every figure and table of the five papers, reproduced by `make studies`: the printed number beside
ours. If the two differ by more than Monte Carlo error and rounding in print (three standard errors
and half a percent), the row gives the reason. If the paper draws a curve and prints no number, the
row says what is compared instead. The pages give details, and show the results of Hedgerow's own
methods in the same setting."""


@dataclass(frozen=True, slots=True)
class Found:
    """What `studies.page.publish` wrote about one study."""

    slug: str
    source: str
    title: str
    seconds: float
    rows: list[Row]
    pictures: list[str]

    @classmethod
    def read(cls, path: Path) -> "Found":
        """The study of a JSON file."""
        facts = json.loads(path.read_text())
        rows = [Row(**row) for row in facts.pop("rows")]
        return cls(slug=path.stem, rows=rows, **facts)

    @property
    def paper(self) -> str:
        """The folder of its paper."""
        return self.slug.split("-")[0]

    @property
    def file(self) -> Path:
        """What made it; a page outlives it where a study is renamed."""
        return ROOT / "studies" / f"{self.slug.replace('-', '/', 1)}.py"

    @property
    def order(self) -> tuple[int, list[int], str]:
        """As a reader counts: figures by number, then tables, sections, appendices."""
        kind = self.slug.partition("-")[2].partition("_")[0].removesuffix("s")
        rank = KINDS.index(kind) if kind in KINDS else len(KINDS)
        return rank, [int(number) for number in re.findall(r"\d+", self.slug)], self.slug

    @property
    def link(self) -> str:
        """The figure's name, linked to its page, and its pictures."""
        name = self.source.partition(", ")[2] or self.source
        links = [f"[{name}](studies/{self.slug}.md)"]
        links += [f"[picture](studies/{picture})" for picture in self.pictures]
        return ", ".join(links)


def recorded_times() -> dict[str, float]:
    """The seconds that each study took when all were last run; empty before that."""
    if not TIMES.exists():
        return {}
    return {name: float(seconds) for name, seconds in json.loads(TIMES.read_text())["each"].items()}


def write_times(wall: float, each: Mapping[str, float]) -> None:
    """Keep the seconds of a run of all studies."""
    rounded = {name: round(seconds, 1) for name, seconds in sorted(each.items())}
    TIMES.write_text(json.dumps({"wall": round(wall), "each": rounded}, indent=1) + "\n")


def write_summary() -> Path:
    """Write the page of all studies that have been published, and return its path."""
    read = map(Found.read, PAGES.glob("*-*.json"))
    found = sorted((study for study in read if study.file.exists()), key=lambda study: study.order)
    parts = [INTRO, counted(found), taken()]
    for paper, title in PAPERS.items():
        mine = [study for study in found if study.paper == paper]
        if mine:
            parts.append(f"## {title}\n\n{compared(mine)}")
    parts.append(wider())
    page = DOCS / "studies.md"
    page.write_text("\n\n".join(part for part in parts if part) + "\n")
    return page


def counted(found: Sequence[Found]) -> str:
    """How many rows agree, differ, or have no figure in print, by paper."""
    heads = "paper | studies | figures in print | alike | differ, with a reason | other rows"
    lines = []
    for paper in PAPERS:
        rows = [row for study in found if study.paper == paper for row in study.rows]
        studies = sum(study.paper == paper for study in found)
        printed = [row for row in rows if row.paper is not None]
        differ = sum(row.differs for row in printed)
        counts = (studies, len(printed), len(printed) - differ, differ, len(rows) - len(printed))
        if studies:
            lines.append((paper.capitalize(), *counts))
    return markdown(heads, lines)


def taken() -> str:
    """How long they took when all were last run."""
    each = recorded_times()
    if not each:
        return ""
    slowest = max(each, key=each.__getitem__)
    return (
        f"The last run of all {len(each)} studies took "
        f"{minutes(json.loads(TIMES.read_text())['wall'])} on two cores "
        f"({minutes(sum(each.values()))} of computing); the longest was `{slowest}` with "
        f"{minutes(each[slowest])}."
    )


def minutes(seconds: float) -> str:
    """Seconds in words."""
    return f"{seconds / 60:.1f} min" if seconds >= 100 else f"{seconds:.0f} s"


def compared(studies: Sequence[Found]) -> str:
    """The rows of a paper's studies in one table, the figure named in its first row."""
    lines = list[tuple[str, ...]]()
    for study in studies:
        rows = [*map(cells, study.rows)] or [(study.title, *[""] * 4)]
        links = study.link, *[""] * (len(rows) - 1)
        lines += [(link, *row) for link, row in zip(links, rows, strict=True)]
    return markdown(f"figure | {HEADS}", lines)


def wider() -> str:
    """The studies beside the papers' figures, with the heading of each page."""
    lines = []
    for name, page in WIDER.items():
        path = DOCS / f"{page}.md"
        if path.exists():
            heading = path.read_text().partition("\n")[0].lstrip("# ")
            lines.append(f"- [{heading}]({page}.md) (`studies/{name}.py`)")
    return "## Wider studies\n\n" + "\n".join(lines) if lines else ""


if __name__ == "__main__":
    print(write_summary())
