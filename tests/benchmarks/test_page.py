"""The page of benchmarks says what was measured, and is made of what was kept alone."""

import json
import time

import pytest

from benchmarks.machine import MissingPeer, facts, installed, needed
from benchmarks.page import Benchmark, Ratio, clock, number, publish, write_page
from benchmarks.run import all_benchmarks, chosen

ONE = Benchmark(
    "Of one",
    "Text.",
    (Ratio("a task", "Peer", 0.002, 1.0), Ratio("another", "Peer", 0.5, 0.05)),
    ("one.png",),
    {"seconds": 3},
)
TWO = Benchmark("Of two", "More text.")


@pytest.fixture
def folder(tmp_path, capsys):
    """Two benchmarks that have been kept."""
    kept = tmp_path / "benchmarks"
    publish("zwei", lambda: time.sleep(0.1) or TWO, kept)
    publish("accounting", lambda: ONE, kept)
    capsys.readouterr()
    return kept


def test_a_benchmark_is_kept_with_its_figures_and_where_it_ran(folder):
    kept = json.loads((folder / "accounting.json").read_text(encoding="utf-8"))
    assert kept["figures"] == {"seconds": 3}
    assert kept["ratios"][0] == {"what": "a task", "peer": "Peer", "ours": 0.002, "theirs": 1.0}
    assert kept["machine"]["cores"] >= 1
    assert kept["machine"]["memory_gb"] > 0
    assert {"python", "numpy", "numba", "polars"} <= set(kept["versions"])
    assert kept["commit"]
    assert len(kept["load"]) == 2
    assert json.loads((folder / "zwei.json").read_text(encoding="utf-8"))["seconds"] >= 0.1


def test_the_page_has_every_benchmark_in_order_with_its_ratios_and_pictures(folder):
    page = write_page(folder)
    assert page == folder.with_suffix(".md")
    text = page.read_text(encoding="utf-8")
    assert text.index("## Of one") < text.index("## Of two") < text.index("## Conditions")
    assert "| Of one | Peer | 0.10 to 500 |" in text
    assert "| a task | Peer | 2 ms | 1 s | 500 |" in text
    assert "![Of one](benchmarks/one.png)" in text
    assert "load average" in text


def test_the_page_is_made_of_what_was_kept(folder):
    page = write_page(folder)
    before = page.read_text(encoding="utf-8")
    assert write_page(folder).read_text(encoding="utf-8") == before
    (folder / "zwei.json").unlink()
    assert "Of two" not in write_page(folder).read_text(encoding="utf-8")


def test_a_missing_peer_is_said_and_what_was_kept_stays(folder, capsys):
    def without():
        needed("no_such_module", "no-such-package")
        raise AssertionError

    before = (folder / "accounting.json").read_text(encoding="utf-8")
    publish("accounting", without, folder)
    assert capsys.readouterr().out.startswith("skipped: no-such-package is not installed")
    assert (folder / "accounting.json").read_text(encoding="utf-8") == before


def test_a_peer_that_can_be_left_out_is_none(capsys):
    assert installed("no_such_module", "no-such-package") is None
    assert "left out: no-such-package" in capsys.readouterr().out
    assert installed("json", "json") is json
    with pytest.raises(MissingPeer):
        needed("no_such_module", "no-such-package")


@pytest.mark.parametrize(("ours", "theirs"), [(0.0, 1.0), (1.0, -1.0), (1.0, float("inf"))])
def test_a_ratio_of_no_times_is_refused(ours, theirs):
    with pytest.raises(ValueError, match="above 0"):
        Ratio("a task", "Peer", ours, theirs)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0123, "0.012"),
        (0.86, "0.86"),
        (3.14, "3.1"),
        (47.2, "47"),
        (1349, "1,300"),
        (0, "0"),
        (9.97, "10"),
    ],
)
def test_numbers_have_two_digits(value, shown):
    assert number(value) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(1234.0, "1,234 s"), (1.5, "1.5 s"), (0.0021, "2.1 ms"), (3e-6, "3 µs"), (4e-8, "40 ns")],
)
def test_seconds_have_a_unit(seconds, shown):
    assert clock(seconds) == shown


def test_benchmarks_are_found_and_chosen_in_the_order_of_the_page():
    names = all_benchmarks()
    assert names[0] == "inf_tda"
    assert {"noise", "accounting", "scaling", "reading"} <= set(names)
    assert not {"run", "page", "clock", "machine", "picture", "release_once"} & set(names)
    assert chosen(["reading", "noise"]) == ["noise", "reading"]
    with pytest.raises(SystemExit, match="no benchmark is called 'noises'"):
        chosen(["noises"])


def test_the_facts_name_processor_and_commit():
    found = facts()
    assert found["machine"]["processor"]
    assert found["versions"]["hedgerow"]


def test_the_facts_do_without_git(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert facts()["commit"] == "?"
