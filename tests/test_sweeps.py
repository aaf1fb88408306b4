"""Of every sweep `make test` runs a part, the same each time, and `make sweeps` all."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest


@dataclass(eq=False)
class Case:
    """What pytest knows of a case, as far as a sweep is told by it."""

    name: str
    params: dict
    one_in: int | None = None
    path: Path = Path("test_it.py")

    @property
    def nodeid(self):
        return f"{self.name}[{'-'.join(map(str, self.params.values()))}]"

    @property
    def callspec(self):
        return SimpleNamespace(params=self.params)

    def add_marker(self, marker):
        """Nothing is made of it here."""

    def get_closest_marker(self, name):
        is_marked = name == "sweep" and self.one_in is not None
        return SimpleNamespace(args=(self.one_in,)) if is_marked else None


CASES = [
    *(Case("seeds", {"seed": seed, "kind": kind}) for seed in range(9) for kind in "ab"),
    *(Case("swept", {"seed": seed}, 3) for seed in range(7)),
    Case("alone", {}, 5),
    *(Case("words", {"seed": seed}) for seed in ("none", "a bean")),
    *(Case("kinds", {"kind": kind}) for kind in "abc"),
]


@pytest.fixture
def conftest(request):
    """The module as pytest has loaded it."""
    return request.config.pluginmanager.get_plugin(
        str(request.config.rootpath / "tests/conftest.py")
    )


def test_a_part_of_each_sweep_is_kept(conftest):
    left_out = conftest.cases_left_out(CASES)
    kept = [case for case in CASES if case not in left_out]
    counts = Counter((case.name, case.params.get("kind")) for case in kept)
    assert counts == {
        ("seeds", "a"): 3, ("seeds", "b"): 3, ("swept", None): 3, ("alone", None): 1,
        ("words", None): 2, ("kinds", "a"): 1, ("kinds", "b"): 1, ("kinds", "c"): 1,
    }  # fmt: skip
    assert conftest.cases_left_out(CASES[::-1]) == left_out


@pytest.mark.parametrize("every", [False, True])
def test_all_run_where_every_case_is_asked_for(conftest, monkeypatch, every):
    monkeypatch.delenv(conftest.EVERY_CASE, raising=False)
    if every:
        monkeypatch.setenv(conftest.EVERY_CASE, "1")
    told = []

    def deselected(items):
        told.extend(items)

    config = SimpleNamespace(hook=SimpleNamespace(pytest_deselected=deselected))
    cases = [case for case in CASES if case.name == "seeds"]
    conftest.pytest_collection_modifyitems(config, cases)
    assert (len(cases), len(told)) == ((18, 0) if every else (6, 12))


@pytest.mark.parametrize("of", ["a bean", "me@place"])
def test_a_name_is_the_same_with_workers_and_without(conftest, of):
    case = Case("a", {"of": of})
    assert conftest.name_of(case) == f"a[{of}]"
    assert conftest.name_of(SimpleNamespace(nodeid=f"a[{of}]@group")) == f"a[{of}]"


@pytest.mark.parametrize(
    "group", [pytest.param("together", marks=pytest.mark.xdist_group("together")), "test_sweeps"]
)
def test_a_group_stays_with_one_worker(request, group):
    """pytest-xdist tells a group by the end of a test's id, which not every pytest lets it add."""
    grouped = request.config.getoption("loadgroup", default=False)
    assert request.node.nodeid.endswith(f"@{group}") == grouped
