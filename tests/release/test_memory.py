"""Limits on memory: how they are written, and which plans cannot keep them."""

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.release import preflight as memory
from hedgerow.release.preflight import check_memory, needed_memory, read_memory
from tests.made import fixed_axis, plain_plan


@pytest.mark.parametrize(
    ("text", "size"),
    [("4GB", 4 * 10**9), (" 800 mb", 8 * 10**8), ("1.5GiB", 3 << 29), ("500000000", 5 * 10**8)],
)
def test_a_size_is_read(text, size):
    assert read_memory(text) == size


@pytest.mark.parametrize("text", ["", "four", "4XB", "-4GB", "4..5GB", "1e9", "nan", "4 G B"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(hr.SpecError, match="must be a size such as"):
        read_memory(text)


@pytest.mark.parametrize("text", ["0", "499MB", "4"])
def test_too_little_is_refused(text):
    with pytest.raises(hr.SpecError, match="at least 500 MB"):
        read_memory(text)


def flat(leaves, measure=None):
    labels = (pl.Series("x", np.arange(leaves)).cast(pl.String).str.zfill(9),)
    axis = hr.Axis("x", ("x",), ("x",), labels, (np.array([0, leaves]),))
    return plain_plan(hr.Tree([axis]), budget=hr.Rho(1), measure=measure or hr.Survivors())


@pytest.mark.parametrize("measure", [hr.Survivors(), hr.All()], ids=lambda m: m.name)
def test_a_family_that_is_too_wide_is_refused_before_anything_is_read(measure):
    plan = flat(2_000_000, measure)
    needed = needed_memory(plan)
    assert 500_000_000 < needed < 1_000_000_000
    check_memory(plan, needed)
    with pytest.raises(hr.PlanError, match=r"needs about 0\.6 GB, and only 0\.5 GB are available"):
        check_memory(plan, 500_000_000)


def test_without_a_limit_the_machine_is_the_limit_if_it_tells(monkeypatch):
    plan = flat(2_000_000)
    monkeypatch.setattr(memory, "usable_memory", lambda: 500_000_000)
    with pytest.raises(hr.PlanError, match=r"0\.5 GB are available"):
        check_memory(plan, None)
    monkeypatch.setattr(memory, "usable_memory", lambda: None)
    check_memory(plan, None)


def test_a_subtree_that_is_measured_whole_counts_and_one_of_survivors_does_not():
    axes = [fixed_axis(n, 10, 10, 10, columns=[f"{n}{k}" for k in range(3)]) for n in "od"]
    tree = hr.Tree(axes * 1)
    few, whole = (
        needed_memory(plain_plan(tree, budget=hr.Rho(1), measure=m))
        for m in (hr.Survivors(), hr.All())
    )
    assert whole > few
