"""Of every sweep `make test` runs a part, the same each time, and `make hostile` the rest."""

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
        given = "-".join(map(str, self.params.values()))
        return f"{self.name}[{given}]" if given else self.name

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


@pytest.mark.parametrize("is_rest", [False, True])
def test_each_case_runs_in_one_of_both(conftest, monkeypatch, is_rest):
    monkeypatch.delenv(conftest.REST, raising=False)
    if is_rest:
        monkeypatch.setenv(conftest.REST, "1")
    told = []

    def deselected(items):
        told.extend(items)

    config = SimpleNamespace(hook=SimpleNamespace(pytest_deselected=deselected))
    cases = list(CASES)
    conftest.pytest_collection_modifyitems(config, cases)
    left_out = conftest.cases_left_out(CASES)
    assert {*cases} | {*told} == {*CASES}
    assert {*(cases if is_rest else told)} == left_out


def test_of_attacks_one_in_a_few_is_kept_and_one_at_least(conftest):
    """Of a test of several cases, and of all tests of one case in a file."""
    place = conftest.HERE / "hostile" / "test_it.py"
    cases = [Case(f"alone {k}", {}, path=place) for k in range(8)]
    for name, many in (("few", 3), ("many", 13)):
        cases.extend(Case(name, {"kind": k}, path=place) for k in range(many))
    left_out = conftest.cases_left_out(cases)
    kept = Counter(case.name.split()[0] for case in cases if case not in left_out)
    assert kept == {"alone": 2, "few": 1, "many": 3}


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
