"""No two cells of a release share a draw: every stream of a whole release is written down."""

from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.plan import chain as planned_chain
from hedgerow.release.descent import block
from hedgerow.release.descent.chain import ChainFlow
from hedgerow.release.descent.source import Drawn
from hedgerow.release.execution import in_memory
from tests.made import fixed_axis, plain_plan, random_counts

BUDGET = hr.Rho("1/2")


@dataclass(frozen=True)
class Recorder:
    """Bits that write down which words of which place are read.

    Attributes:
        drop: which integer of a place is left out, for faults on purpose.
        draws: place and first and last word (one word a draw) of all that is read.
        up: the same for jobs up.
    """

    drop: int | None = None
    draws: list = field(default_factory=list)
    up: "Recorder | None" = None

    def stream(self, *place):
        kept = tuple(n for i, n in enumerate(place) if i != self.drop)
        return Recorded(kept, seeded_bits(0).stream(*kept), self.draws)

    def by_place(self):
        """Return for each place its ranges, sorted."""
        found = {}
        for place, start, stop in self.draws:
            found.setdefault(place, []).append((start, stop))
        return {place: sorted(ranges) for place, ranges in found.items()}

    def shared(self):
        """Return the places of which some word is read twice."""
        return [
            place
            for place, ranges in self.by_place().items()
            if any(stop > start for (_, stop), (start, _) in pairwise(ranges))
        ]

    def words(self):
        """Return each word that is read, once for each time."""
        return sorted((place, i) for place, start, stop in self.draws for i in range(start, stop))


@dataclass(frozen=True)
class Recorded:
    place: tuple
    stream: object
    draws: list

    def words(self, start, count):
        self.draws.append((self.place, start, start + count))
        return self.stream.words(start, count)

    def branch(self, *place):
        """The rest of a word, for a draw that one word does not decide."""
        return self.stream.branch(*place)


def recorded(monkeypatch, counts, plan, estimator, drop=None):
    """Return a release and all that was drawn for it, jobs up apart."""
    own = ChainFlow.up

    def up(run, root):
        bits = run.source.bits
        return own(replace(run, source=replace(run.source, bits=bits.up)), root)

    monkeypatch.setattr(ChainFlow, "up", up)
    bits = Recorder(drop, up=Recorder(drop))
    return in_memory(counts, plan, estimator=estimator, bits=bits), bits


WHO = {"public total": hr.Replace(), "measured total": hr.AddRemove()}
MEASURES = {"survivors": hr.Survivors(), "all": hr.All()}
TREES = {
    "one axis": [(2, 3, 4, 2)],
    "two": [(3, 2, 4), (2, 3, 2)],
    "three": [(2, 3), (3, 2), (2, 2)],
}


@pytest.fixture(params=[False, True], ids=["whole", "cut"])
def cut(request, monkeypatch):
    monkeypatch.setattr(block, "CHUNK_CELLS", 7)
    if request.param:
        for limit in ("UNCUT_LEAVES", "UNCUT_LEAVES_OF_ALL"):
            monkeypatch.setattr(planned_chain, limit, 0)
        monkeypatch.setattr(planned_chain, "MIN_JOBS", 4)
    return request.param


def made(shape, measure, who, **options):
    rng = np.random.default_rng(11)
    axes = [fixed_axis(f"a{i}", *sizes, columns=[f"a{i}_{k}" for k in range(len(sizes))])
            for i, sizes in enumerate(TREES[shape])]  # fmt: skip
    tree = hr.Tree(axes)
    plan = plain_plan(
        tree, budget=BUDGET, neighbours=WHO[who], measure=MEASURES[measure], **options
    )
    return random_counts(rng, tree, filled=0.9), plan


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("shape", TREES)
def test_no_two_cells_of_a_release_share_a_draw(monkeypatch, cut, shape, measure, who):
    counts, plan = made(shape, measure, who)
    tree, run = plan.tree, plan.design.outline
    assert run.is_cut is cut
    release, bits = recorded(monkeypatch, counts, plan, hr.Euclidean())
    assert bits.shared() == []
    assert bits.up.shared() == []
    # Every noisy count has a draw, at a place that begins with its own levels.
    axes, noisy = len(tree.axes), release.content.measured
    cells = dict.fromkeys(noisy, 0)
    for place, start, stop in bits.draws:
        cells[place[:axes]] += stop - start
    assert cells == {levels: len(values) for levels, values in noisy.items()}
    assert min(cells.values()) > 0
    # Above the cut no place has a job; below it each has the node of the cut that it lies under.
    jobs = {levels: set() for levels in noisy}
    for place in bits.by_place():
        jobs[place[:axes]].add(place[axes:])
    roots = tree.nodes(run.cut)
    for levels, found in jobs.items():
        if cut and tree.depth_at(levels) > run.cut:
            assert {len(job) for job in found} == {axes}
            assert 1 < len(found) <= roots
            assert measure == "survivors" or len(found) == roots
        else:
            assert found == {()}
    # Jobs up draw what jobs down draw again.
    below = [word for word in bits.words() if cut and len(word[0]) > axes]
    assert bits.up.words() == (below if measure == "all" else [])
    assert bool(below) is cut


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("shape", TREES)
def test_a_place_that_lacks_a_level_is_found(monkeypatch, cut, shape, measure):
    counts, plan = made(shape, measure, "measured total")
    for level in range(len(plan.tree.axes)):
        with monkeypatch.context() as patch:
            _, bits = recorded(patch, counts, plan, hr.Euclidean(), drop=level)
        assert bits.shared(), (level, cut)


def test_true_counts_are_given_of_public_cuboids_alone():
    counts, plan = made("one axis", "survivors", "public total")
    drawn = Drawn(counts, plan, seeded_bits(0))
    assert drawn.public((0,)).nodes.counts.tolist() == drawn.exact((0,)).tolist() == [counts.total]
    for ask in (drawn.public, drawn.exact):
        with pytest.raises(ValueError, match="true counts of a cuboid that is not public"):
            ask((1,))
