"""Small releases of cubes with their pages, and a page's blocks read back as a browser reads them.

Nothing here is computed as the package computes it.
"""

import json
from math import prod
from types import SimpleNamespace

import numpy as np
import polars as pl

import hedgerow as hr
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.release.execution import in_memory
from hedgerow.release.page.carried import parts_of
from hedgerow.release.page.report import page
from tests.made import fixed_axis, plain_plan, random_counts
from tests.release.drawn_page import read

BUDGET = hr.EpsilonDelta("1", "1e-8")
KINDS = ["pairs", "doubtful", "open", "three", "only", "names"]
EVIL = "</script><img src=x onerror=document.title='evil'>"


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


def planned():
    """One cube of each kind, with its counts."""
    rng = np.random.default_rng(11)
    usual = {"budget": BUDGET, "neighbours": hr.Replace(), "measure": hr.All()}
    two = hr.Tree([areas("home", 3, 4), areas("work", 2, 3, 2)])
    yield "pairs", two, random_counts(rng, two, filled=0.8, mean=600), usual
    thin = ["1/1000", "1/1000", "998/1000"]
    even = hr.Tree([areas("home", 4, 5), areas("work", 4, 5)])
    yield (
        "doubtful", even, random_counts(rng, even, filled=0.9, mean=600),
        usual | {"measure": hr.Survivors(), "allocation": hr.Shares({"home": thin, "work": thin})},
    )  # fmt: skip
    laplace = {"neighbours": hr.AddRemove(), "mechanism": hr.DiscreteLaplace}
    yield (
        "open", two, random_counts(rng, two, filled=0.2, mean=40),
        usual | laplace | {"budget": hr.Epsilon(1)},
    )  # fmt: skip
    three = hr.Tree([areas("home", 2, 2), areas("work", 3, 2), areas("age", 4)])
    yield "three", three, random_counts(rng, three, filled=0.9, mean=200), usual
    only = hr.Tree([fixed_axis(name, *sizes, columns=[f"{name}{k}" for k in range(len(sizes))])
                    for name, sizes in (("home", (2, 1, 3)), ("work", (1, 4)))])  # fmt: skip
    yield "only", only, random_counts(rng, only, filled=0.9, mean=300), usual
    names = hr.Tree([areas("<i>home", 2, 2, prefix=EVIL), areas('wo"rk', 2, prefix="\u202e$title")])
    yield "names", names, random_counts(rng, names, filled=2.0, mean=300), usual


def written(folder, tree, counts, options, seed=4):
    """A release in a folder, with its page: of a cube unless the options have a workload."""
    plan = plain_plan(tree, **({"workload": hr.Cube()} | options))
    in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(seed)).write(folder)
    made = SimpleNamespace(folder=folder, plan=plan, tree=tree, counts=counts)
    made.release = hr.read_release(folder)
    made.text = page_of(made)
    made.seen = read(made.text)
    made.path = folder.with_suffix(".html")
    made.path.write_text(made.text, encoding="utf-8")
    return made


def page_of(made):
    return page(made.folder, made.plan, hr.Euclidean(), "9.8.7")


def released(place):
    """By kind."""
    found = {
        kind: written(place / kind, tree, counts, options)
        for kind, tree, counts, options in planned()
    }
    assert list(found) == KINDS
    return found


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
