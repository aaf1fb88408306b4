"""Small releases with their pages, and a page's blocks read back as a browser reads them.

Nothing here is computed as the package computes it.
"""

import json
import shutil
from math import prod
from types import SimpleNamespace

import numpy as np
import polars as pl
import pyarrow.parquet as pq

import hedgerow as hr
from hedgerow import cli
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.release.directory.manifest import REPORT
from hedgerow.release.directory.measurements import counts_file
from hedgerow.release.execution import in_memory
from hedgerow.release.page.carried import parts_of
from hedgerow.release.page.report import page
from hedgerow.tables.lists.product import BETWEEN_CODES
from tests.made import fixed_axis, plain_plan, random_counts
from tests.release.drawn_page import read
from tests.release.spine.made_files import write_files

BUDGET = hr.EpsilonDelta("1", "1e-8")
CUBES = ["pairs", "doubtful", "open", "three axes", "only", "names of a cube"]
NAMED = ["beside", "margins", "tables", "below", "alone", "names of named", "one"]
EVIL = "</script><img src=x onerror=document.title='evil'>"
COARSE, FINE = "home.ward × work.region", "home.region × work.region × age.region"
VERSION = "9.8.7"
USUAL = {"budget": BUDGET, "neighbours": hr.Replace(), "measure": hr.All()}


def areas(name, *sizes, prefix=""):
    """An axis whose codes begin with those of their parents."""
    paths = [()]
    for size in sizes:
        paths = [
            (*path, f"{path[-1] if path else prefix}{child}")
            for path in paths
            for child in range(size)
        ]
    levels = ["region", "district", "ward"][: len(sizes)]
    frame = pl.DataFrame(paths, schema=levels, orient="row")
    return hr.Axis.from_frame(name, frame, levels, columns=[f"{name}_{each}" for each in levels])


def hostile():
    """Two axes whose names and codes are no words of a page."""
    return hr.Tree([areas("<i>home", 2, 2, prefix=EVIL), areas('wo"rk', 2, prefix="\u202e$title")])


def cubes():
    """One cube of each kind: its counts, and what its plan has that is not usual."""
    rng = np.random.default_rng(11)
    two = hr.Tree([areas("home", 3, 4), areas("work", 2, 3, 2)])
    yield "pairs", random_counts(rng, two, filled=0.8, mean=600), {}
    thin = ["1/1000", "1/1000", "998/1000"]
    even = hr.Tree([areas("home", 4, 5), areas("work", 4, 5)])
    doubtful = {"measure": hr.Survivors(), "allocation": hr.Shares({"home": thin, "work": thin})}
    yield "doubtful", random_counts(rng, even, filled=0.9, mean=600), doubtful
    laplace = {"neighbours": hr.AddRemove(), "mechanism": hr.DiscreteLaplace}
    laplace |= {"budget": hr.Epsilon(1)}
    yield "open", random_counts(rng, two, filled=0.2, mean=40), laplace
    three = hr.Tree([areas("home", 2, 2), areas("work", 3, 2), areas("age", 4)])
    yield "three axes", random_counts(rng, three, filled=0.9, mean=200), {}
    only = hr.Tree([fixed_axis(name, *sizes, columns=[f"{name}{k}" for k in range(len(sizes))])
                    for name, sizes in (("home", (2, 1, 3)), ("work", (1, 4)))])  # fmt: skip
    yield "only", random_counts(rng, only, filled=0.9, mean=300), {}
    yield "names of a cube", random_counts(rng, hostile(), filled=2.0, mean=300), {}


def named():
    """One workload of named cuboids of each kind: its counts, cuboids, and what is not usual."""
    rng = np.random.default_rng(17)
    two = hr.Tree([areas("home", 3, 4), areas("work", 2, 3, 2)])
    counts = random_counts(rng, two, filled=0.8, mean=600)
    margins = ["home.district", "work.ward"]
    yield "beside", counts, {"workload": hr.Cuboids(margins, chain=True)}
    yield "margins", counts, {"workload": hr.Cuboids(margins)}
    three = hr.Tree([areas("home", 2, 2, 2), areas("work", 3), areas("age", 2)])
    counts = random_counts(rng, three, filled=0.9, mean=400)
    yield "tables", counts, {"workload": hr.Cuboids([COARSE, FINE])}
    even = hr.Tree([areas("home", 3, 4), areas("work", 2, 4)])
    pairs = random_counts(rng, even, filled=0.4, mean=200)
    below = hr.Cuboids(
        [f"home.{h} × work.{w}" for h, w in (("district", "region"), ("region", "district"),
                                             ("district", "district"))]
    )  # fmt: skip
    yield "below", pairs, {"workload": below, "measure": hr.Survivors()}
    yield "alone", counts, {"workload": hr.Cuboids([FINE])}
    names = hr.Cuboids(["<i>home.district", '<i>home.region × wo"rk.region'])
    counts = random_counts(rng, hostile(), filled=2.0, mean=300)
    yield "names of named", counts, {"workload": names}
    one = hr.Tree([areas("home", 3, 4)])
    counts = random_counts(rng, one, filled=2.0, mean=300)
    yield "one", counts, {"workload": hr.Cuboids(["district"])}


def released(place, kinds):
    """Releases with their pages, by kind: of cubes unless there is a workload."""
    return {
        kind: written(place / kind, counts, **({"workload": hr.Cube()} | USUAL | options))
        for kind, counts, options in kinds
    }


def written(folder, counts, *, estimator=None, seed=4, plan=None, **options):
    """A release of seeded noise in a folder, with its page."""
    plan, estimator = plan or plain_plan(counts.tree, **options), estimator or hr.Euclidean()
    in_memory(counts, plan, estimator=estimator, bits=seeded_bits(seed)).write(folder)
    made = SimpleNamespace(
        folder=folder, plan=plan, tree=plan.tree, counts=counts, estimator=estimator
    )
    made.release = hr.read_release(folder)
    text = (folder / REPORT).read_text(encoding="utf-8")  # what `page_of` makes, soon read
    made.text = text.replace(hr.__version__, VERSION)
    made.seen = read(made.text)
    made.path = folder.with_suffix(".html")
    made.path.write_text(made.text, encoding="utf-8")
    return made


def page_of(made):
    return page(made.folder, made.plan, made.estimator, VERSION)


def changed(made, folder, levels, change):
    """The release in another folder, with another file of counts."""
    shutil.copytree(made.folder, folder)
    path = folder / counts_file(levels)
    file = pq.read_table(path)
    pq.write_table(change(pl.DataFrame(file)).to_arrow().cast(file.schema), path)
    return SimpleNamespace(**{**vars(made), "folder": folder})


class Labelled:
    """A release whose columns of a product's levels hold the labels that a page shows."""

    def __init__(self, release, axis):
        self.release, self.axis = release, axis

    def level(self, name):
        frame = self.release.level(name)
        told = {k: self.axis.columns_of(k) for k in range(1, self.axis.depth + 1)}
        labels = {
            self.axis.columns[k - 1]: pl.concat_str(columns, separator=BETWEEN_CODES)
            for k, columns in told.items()
            if set(columns) <= set(frame.columns)
        }
        return frame.with_columns(**labels)


def of_a_spine(folder):
    """The release of `tests.release.spine.made_files`, over a spine and an axis of columns."""
    assert cli.run(["release", str(write_files(folder))]) == 0
    release, path = hr.read_release(folder / "out"), folder / "out" / "report.html"
    text = path.read_text(encoding="utf-8")
    return SimpleNamespace(
        release=Labelled(release, release.plan.tree.axes[1]), folder=folder / "out",
        plan=release.plan, tree=release.plan.tree,
        estimator=release.content.estimator, path=path, text=text, seen=read(text),
    )  # fmt: skip


def counts_of(made, levels):
    """The released counts of a cuboid, as its file has them."""
    return made.release.level(made.tree.name_of(levels))


def facts_of(text):
    return json.loads(read(text).all("script", id="facts")[0].text)


def blocks_of(text):
    every = read(text).all("script", type="text/plain")
    return {one.attributes["id"]: parts_of(one.text) for one in every}


def numbers(part):
    """Numbers of variable length, one by one."""
    found, value, shift = [], 0, 0
    for byte in part:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            found.append(value)
            value, shift = 0, 0
    return found


def unfolded(value):
    return -(value + 1) // 2 if value % 2 else value // 2


def labels_of(blocks, axis, level):
    """The labels of the used codes of a level."""
    short, sizes, _, text = blocks[f"level-{axis}-{level}"]
    own = text.decode().split("\n")
    if not numbers(short)[0]:
        return own
    parents = np.repeat(np.arange(len(numbers(sizes))), numbers(sizes))
    upper = labels_of(blocks, axis, level - 1)
    return [upper[p] + one for p, one in zip(parents, own, strict=True)]


def carried_rows(text, levels):
    """The rows of a cuboid: labels, count, low, high, estimate, whether it is contradicted."""
    blocks, name = blocks_of(text), "-".join(map(str, levels))
    labels = [labels_of(blocks, a, k) for a, k in enumerate(levels) if k]
    (width,), gaps, counts, over, under, off = map(numbers, blocks[f"cuboid-{name}"])
    doubts = np.cumsum([gap + 1 for gap in numbers(blocks.get(f"contradicted-{name}", [b""])[0])])
    flat, sizes = np.cumsum([gap + 1 for gap in gaps]) - 1, [len(one) for one in labels]
    assert not len(flat) or flat[-1] < prod(sizes)
    for i, place in enumerate(flat):
        codes = np.unravel_index(int(place), sizes) if sizes else ()
        high = counts[i] + unfolded(over[i])
        low, estimate = max(0, high - width) + unfolded(under[i]), high - width // 2
        named = [own[code] for own, code in zip(labels, codes, strict=True)]
        yield (*named, counts[i], low, high, estimate + unfolded(off[i]), i + 1 in doubts)
