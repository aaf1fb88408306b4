"""Memory: what the machine has, and what control groups leave of it."""

import pytest

from hedgerow import machine
from hedgerow.machine import usable_memory
from hedgerow.tables.sources import database

GIB = 1 << 30
NONE_V1 = "9223372036854771712"


@pytest.fixture(autouse=True)
def physical(monkeypatch):
    monkeypatch.setattr(machine, "physical_memory", lambda: 64 * GIB)


def system(root, groups, limits):
    """A system's files below a folder."""
    (root / "proc" / "self").mkdir(parents=True)
    (root / "proc" / "self" / "cgroup").write_text(groups)
    for name, text in limits.items():
        path = root / "sys" / "fs" / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return root


@pytest.mark.parametrize(
    ("groups", "limits", "found"),
    [
        ("0::/\n", {"memory.max": 4 * GIB}, 4 * GIB),
        ("0::/\n", {"memory.max": "max"}, 64 * GIB),
        ("0::/\n", {"memory.max": 400 * GIB}, 64 * GIB),
        ("0::/a/b\n", {"a/b/memory.max": 8 * GIB}, 8 * GIB),
        ("0::/a/b\n", {"a/b/memory.max": "max", "a/memory.max": 3 * GIB}, 3 * GIB),
        ("0::/a/b\n", {"a/b/memory.max": 2 * GIB, "a/memory.max": 3 * GIB}, 2 * GIB),
        ("0::/not/seen/here\n", {"memory.max": 5 * GIB}, 5 * GIB),
        ("0::/a\n", {"b/memory.max": 1 * GIB}, 64 * GIB),
        ("9:memory:/c\n", {"memory/c/memory.limit_in_bytes": 6 * GIB}, 6 * GIB),
        ("9:cpu,memory:/c\n", {"memory/memory.limit_in_bytes": 6 * GIB}, 6 * GIB),
        ("9:memory:/c\n", {"memory/c/memory.limit_in_bytes": NONE_V1}, 64 * GIB),
        ("9:cpu:/c\n0::/\n", {"cpu/c/memory.max": 1 * GIB, "memory.max": 7 * GIB}, 7 * GIB),
        ("9:memory:/c\n0::/\n", {"memory/c/memory.limit_in_bytes": 2 * GIB}, 2 * GIB),
        ("nonsense\n\n", {}, 64 * GIB),
        ("0::/\n", {"memory.max": "much"}, 64 * GIB),
    ],
)
def test_the_least_of_what_there_is_and_what_is_allowed_counts(tmp_path, groups, limits, found):
    assert usable_memory(system(tmp_path, groups, limits)) == found


def test_the_database_takes_half_of_what_this_process_may_use(monkeypatch):
    monkeypatch.setattr(database, "usable_memory", lambda: 3 * GIB)
    with database.open_database() as db:
        ((limit,),) = db.execute("SELECT current_setting('memory_limit')").fetchall()
    assert limit == "1.5 GiB"


def test_a_system_without_control_groups_has_what_it_has(tmp_path):
    assert usable_memory(tmp_path) == 64 * GIB


def test_a_system_that_tells_nothing_of_itself_may_tell_of_its_groups(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "physical_memory", lambda: None)
    assert usable_memory(tmp_path / "nothing") is None
    assert usable_memory(system(tmp_path, "0::/\n", {"memory.max": GIB})) == GIB
