"""Small releases of cuboids that somebody names, with their pages."""

import numpy as np

import hedgerow as hr
from tests.made import random_counts
from tests.release.cube_pages import BUDGET, EVIL, areas, written

KINDS = ["beside", "margins", "tables", "below", "alone", "names", "one"]
COARSE, FINE = "home.ward × work.region", "home.region × work.region × age.region"


def planned():
    """One release of each kind, with its counts."""
    rng = np.random.default_rng(17)
    usual = {"budget": BUDGET, "neighbours": hr.Replace(), "measure": hr.All()}
    two = hr.Tree([areas("home", 3, 4), areas("work", 2, 3, 2)])
    counts = random_counts(rng, two, filled=0.8, mean=600)
    margins = ["home.district", "work.ward"]
    yield "beside", counts, usual | {"workload": hr.Cuboids(margins, chain=True)}
    yield "margins", counts, usual | {"workload": hr.Cuboids(margins)}
    three = hr.Tree([areas("home", 2, 2, 2), areas("work", 3), areas("age", 2)])
    counts_of_three = random_counts(rng, three, filled=0.9, mean=400)
    yield "tables", counts_of_three, usual | {"workload": hr.Cuboids([COARSE, FINE])}
    even = hr.Tree([areas("home", 3, 4), areas("work", 2, 4)])
    pairs = random_counts(rng, even, filled=0.4, mean=200)
    below = hr.Cuboids(
        [f"home.{h} × work.{w}" for h, w in (("district", "region"), ("region", "district"),
                                             ("district", "district"))]
    )  # fmt: skip
    yield "below", pairs, usual | {"workload": below, "measure": hr.Survivors()}
    yield "alone", counts_of_three, usual | {"workload": hr.Cuboids([FINE])}
    names = hr.Tree([areas("<i>home", 2, 2, prefix=EVIL), areas('wo"rk', 2, prefix="\u202e$title")])
    named = hr.Cuboids(["<i>home.district", '<i>home.region × wo"rk.region'])
    yield "names", random_counts(rng, names, filled=2.0, mean=300), usual | {"workload": named}
    one = hr.Tree([areas("home", 3, 4)])
    counts = random_counts(rng, one, filled=2.0, mean=300)
    yield "one", counts, usual | {"workload": hr.Cuboids(["district"])}


def released(place):
    """By kind."""
    found = {
        kind: written(place / kind, counts.tree, counts, options)
        for kind, counts, options in planned()
    }
    assert list(found) == KINDS
    return found
