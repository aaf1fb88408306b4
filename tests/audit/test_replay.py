"""With the same noisy counts releases of neighbours are the same; draws cost what is stated."""

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.release import execution
from hedgerow.release.descent import layouts, source
from hedgerow.release.descent.layouts import EveryCell
from hedgerow.release.descent.source import Drawn
from hedgerow.release.descent.steps import Families
from tests.audit.replay import leaks, neighbours_of, run, spent, stated
from tests.oracle.plans import CASES


def replayed(name, folder):
    """Each neighbour of a case, with the run on its table and the one on the neighbour."""
    case = CASES[name]()
    first = run(case, case.counts, folder / "first")
    for number, (words, counts) in enumerate(neighbours_of(case).items()):
        yield case.plan, words, first, run(case, counts, folder / str(number), first.draws)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.sweep(6)
def test_neighbours_are_told_apart_by_noisy_counts_alone_and_these_cost_as_stated(name, tmp_path):
    costs = {}
    for plan, words, first, other in replayed(name, tmp_path):
        assert list(leaks(first, other)) == [], words
        costs[words] = spent(first, other)
        assert costs[words] <= stated(plan), words
    assert len(costs) >= 3
    worst = max(costs.values())
    assert worst > 0
    if isinstance(plan.measure, hr.All) and not plan.facts:
        assert worst == stated(plan), "nothing was paid for in vain"


# --- planted --------------------------------------------------------------------------------------


def found(name, folder):
    """What the neighbours of a case leak, and whether one costs more than is stated."""
    told, over = set(), False
    for plan, _, first, other in replayed(name, folder):
        own = {words.partition(":")[0] for words in leaks(first, other)}
        told |= own
        over |= "draws" not in own and spent(first, other) > stated(plan)
    return told, over


def is_odd(counts):
    """Something in which a table and some neighbour of it differ."""
    return counts.values.max() % 2


def test_a_draw_more_for_some_tables_is_found(monkeypatch, tmp_path):
    noisy = Drawn.noisy

    def leaking(drawn, levels, layout, job=(), start=0):
        if is_odd(drawn.counts):
            noisy(drawn, levels, layout, job, start)
        return noisy(drawn, levels, layout, job, start)

    monkeypatch.setattr(Drawn, "noisy", leaking)
    assert "draws" in found("nested, public facts, in jobs", tmp_path)[0]


def test_a_draw_of_another_size_for_some_tables_is_found(monkeypatch, tmp_path):
    variance = Drawn.variance

    def leaking(drawn, levels, layout):
        if not any(levels):
            cells = np.zeros(1 + is_odd(drawn.counts), dtype=np.int64)
            hr.DiscreteGaussian(2).draw(drawn.bits.stream(9), 0, cells)
            source.clip(cells)
        return variance(drawn, levels, layout)

    monkeypatch.setattr(Drawn, "variance", leaking)
    assert found("chain, survivors", tmp_path) == ({"draws"}, False)


def test_draws_in_another_order_for_some_tables_are_found(monkeypatch, tmp_path):
    noisy, kept = Drawn.noisy, {}

    def leaking(drawn, levels, layout):
        if is_odd(drawn.counts) and levels == (1, 0):
            kept[0, 1] = noisy(drawn, (0, 1), EveryCell(drawn.plan.tree, (0, 1)))
        return kept.pop(levels) if levels in kept else noisy(drawn, levels, layout)

    monkeypatch.setattr(Drawn, "noisy", leaking)
    assert found("cube, all", tmp_path) == ({"draws"}, False)


def test_noise_of_another_stream_for_some_tables_is_found(monkeypatch, tmp_path):
    noisy = Drawn.noisy
    monkeypatch.setattr(
        Drawn, "noisy", lambda drawn, levels, layout, job=(), start=0: noisy(
            drawn, levels, layout, (*job, 7) if is_odd(drawn.counts) else job, start
        )
    )  # fmt: skip
    assert "draws" in found("marginals, public facts", tmp_path)[0]


@pytest.mark.parametrize("name", ["chain, survivors, in jobs", "marginals, public facts, in jobs"])
def test_noise_that_jobs_share_is_found(name, monkeypatch, tmp_path):
    """It would cost nothing the second time, so that it is not seen in what is spent."""
    noisy = Drawn.noisy

    def shared(drawn, levels, layout, job=(), start=0):
        del job
        return noisy(drawn, levels, layout, (), start)

    monkeypatch.setattr(Drawn, "noisy", shared)
    assert "noise" in found(name, tmp_path)[0]


def test_a_message_for_some_tables_is_found(monkeypatch, tmp_path):
    noisy = Drawn.noisy

    def leaking(drawn, levels, layout):
        if is_odd(drawn.counts):
            print("the largest count is odd")  # noqa: T201
        return noisy(drawn, levels, layout)

    monkeypatch.setattr(Drawn, "noisy", leaking)
    assert found("cube, all", tmp_path) == ({"messages"}, False)


def test_a_table_that_is_told_in_a_file_is_found(monkeypatch, tmp_path):
    files, seen = execution.ReleaseFiles, []

    class Leaking(files):
        def __init__(self, folder, plan):
            super().__init__(folder, plan)
            (folder / "domain" / "size").write_text("x" * len(seen))

    def counted(counts, _plan):
        seen[:] = [0] * int(is_odd(counts))

    monkeypatch.setattr(execution, "ReleaseFiles", Leaking)
    monkeypatch.setattr(execution, "check_match", counted)
    told, _ = found("chain, survivors", tmp_path)
    assert told == {"file domain/size", "file manifest.json"}


@pytest.mark.parametrize(
    ("name", "where", "adds"),
    [("cube, all", layouts, "_add_leaves"), ("chain, all, Laplace", Families, "add")],
    ids=["cube", "chain"],
)
def test_counts_that_are_added_twice_cost_more_than_stated(
    name, where, adds, monkeypatch, tmp_path
):
    add = getattr(where, adds)

    def twice(*arguments):
        add(*arguments)
        add(*arguments)

    monkeypatch.setattr(where, adds, twice)
    assert found(name, tmp_path) == (set(), True)


def test_a_replaced_record_that_is_priced_as_one_shift_costs_more_than_stated(
    monkeypatch, tmp_path
):
    monkeypatch.setattr(hr.Replace, "changes", lambda _, depth: ((1,) if depth else (),))
    assert found("chain, all", tmp_path) == (set(), True)
