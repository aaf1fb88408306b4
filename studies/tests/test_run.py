"""The runner of the studies and their summary, on studies made for the purpose."""

import json
import re
import time
from concurrent.futures import wait

import pytest

from studies import page, run, summary

GOOD = """
def main() -> None:
    print("all is well")


if __name__ == "__main__":
    main()
"""
BAD = GOOD.replace('print("all is well")', 'raise ValueError("[bold]the reason")')
LEFT = GOOD.replace("all is well", "skipped: no data here")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A repository with an empty ``studies`` folder."""
    (tmp_path / "studies" / "ko").mkdir(parents=True)
    (tmp_path / "docs" / "studies").mkdir(parents=True)
    monkeypatch.setattr(run, "STUDIES", tmp_path / "studies")
    for module in (run, summary):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(summary, "PAGES", tmp_path / "docs" / "studies")
    monkeypatch.setattr(summary, "DOCS", tmp_path / "docs")
    monkeypatch.setattr(summary, "TIMES", tmp_path / "docs" / "studies" / "times.json")
    return tmp_path


def study(folder, name, text=GOOD):
    """Write a study."""
    (folder / "studies" / f"{name}.py").write_text(text)


def found(folder, slug, rows, source="Ko, Figure 2"):
    """Write what a study published, and the study."""
    study(folder, slug.replace("-", "/", 1))
    facts = {"source": source, "title": "a title", "seconds": 1.5, "pictures": [f"{slug}.png"]}
    (folder / "docs" / "studies" / f"{slug}.json").write_text(json.dumps(facts | {"rows": rows}))


def row(what, paper, ours, reason=""):
    return {"what": what, "paper": paper, "ours": ours, "error": 0.0, "reason": reason}


def ran(monkeypatch, *names):
    """Run the runner with names on its command line."""
    monkeypatch.setattr("sys.argv", ["run", *names])
    run.main()


def test_all_studies_are_run_and_their_times_kept(folder, monkeypatch, capsys):
    study(folder, "coverage")
    study(folder, "ko/figure_2")
    (folder / "studies" / "ko" / "tables.py").write_text("VALUE = 1\n")
    ran(monkeypatch)
    printed = capsys.readouterr().out
    assert "2 studies" in printed
    assert "tables" not in printed
    assert set(summary.recorded_times()) == {"coverage", "ko/figure_2"}


def test_a_study_that_fails_ends_the_run_with_its_output(folder, monkeypatch, capsys):
    study(folder, "ko/figure_2", BAD)
    with pytest.raises(SystemExit) as ended:
        ran(monkeypatch)
    assert ended.value.code == 1
    assert "ValueError: [bold]the reason" in capsys.readouterr().out
    assert not (folder / "docs" / "studies.md").exists()


@pytest.mark.parametrize("first", [GOOD, LEFT, BAD], ids=["good", "left out", "bad"])
def test_a_failure_is_told_though_another_study_ended_at_the_same_time(
    folder, monkeypatch, capsys, first
):
    """Whichever of the two is looked at first."""
    monkeypatch.setattr(run, "as_completed", lambda each: [*each] if wait(each).done else [])
    study(folder, "coverage", first)
    study(folder, "ko/figure_2", BAD)
    with pytest.raises(SystemExit) as ended:
        ran(monkeypatch)
    assert ended.value.code == 1
    printed = capsys.readouterr().out
    told = ["ko/figure_2"] + ["coverage"] * (first is BAD)
    for name in told:
        assert re.search(rf"^{name} .* FAILED$", printed, re.MULTILINE)
        assert f"{name} failed:\nTraceback" in printed
    assert printed.count("FAILED") == len(told)
    assert not (folder / "docs" / "studies.md").exists()


def test_a_failure_ends_the_study_beside_it_which_is_not_told_as_one(folder, monkeypatch, capsys):
    study(folder, "coverage", GOOD.replace('print("all is well")', "import time; time.sleep(60)"))
    study(folder, "ko/figure_2", BAD)
    begun = time.monotonic()
    with pytest.raises(SystemExit):
        ran(monkeypatch)
    assert time.monotonic() - begun < 30
    assert "coverage" not in capsys.readouterr().out


def test_after_a_failure_no_other_study_starts(folder, monkeypatch, capsys):
    monkeypatch.setattr(run, "AT_ONCE", 1)
    study(folder, "coverage", BAD)
    study(folder, "ko/figure_2")
    with pytest.raises(SystemExit):
        ran(monkeypatch)
    assert "ko/figure_2" not in capsys.readouterr().out


def test_a_study_without_data_is_listed_and_times_are_left_alone(folder, monkeypatch, capsys):
    study(folder, "ko/figure_2", LEFT)
    study(folder, "coverage")
    ran(monkeypatch)
    assert "ko/figure_2: skipped: no data here" in capsys.readouterr().out
    assert summary.recorded_times() == {}


def test_a_name_runs_one_study_or_one_paper(folder, monkeypatch, capsys):
    for name in ("coverage", "ko/figure_2", "ko/figure_3"):
        study(folder, name)
    ran(monkeypatch, "ko")
    assert "2 studies" in capsys.readouterr().out
    ran(monkeypatch, "studies/ko/figure_3.py")
    assert "1 studies" in capsys.readouterr().out


def test_a_name_that_no_study_has_is_refused(folder, monkeypatch):
    study(folder, "coverage")
    with pytest.raises(SystemExit, match="no study is called 'figure_9'; there are coverage"):
        ran(monkeypatch, "figure_9")


def test_the_longest_study_of_the_last_run_starts_first(folder):
    for name in ("coverage", "ko/figure_2", "ko/figure_3"):
        study(folder, name)
    summary.write_times(9, {"coverage": 1, "ko/figure_3": 5})
    assert run.chosen([]) == ["ko/figure_2", "ko/figure_3", "coverage"]


def test_the_summary_counts_rows_and_says_why_they_differ(folder):
    rows = [
        row("alike", 2.0, 2.0),
        row("apart", 2.0, 3.0, "a reason"),
        row("new", None, 1.0, "own"),
    ]
    found(folder, "ko-figure_2", rows)
    text = summary.write_summary().read_text()
    assert "| Ko | 1 | 2 | 1 | 1 | 1 |" in text
    assert "|  | apart | 2 | 3 | 1.500 | a reason |" in text
    assert "[Figure 2](studies/ko-figure_2.md), [picture](studies/ko-figure_2.png) | alike" in text
    assert "| not printed | 1 |  | own |" in text


def test_figures_are_in_the_order_of_their_numbers(folder):
    for number in (11, 2):
        source = f"Ko, Figure {number}"
        found(folder, f"ko-figure_{number}", [row("x", 1.0, 1.0)], source)
    text = summary.write_summary().read_text()
    assert text.index("[Figure 2]") < text.index("[Figure 11]")


def test_a_page_whose_study_is_gone_is_left_out(folder):
    found(folder, "ko-figure_2", [row("x", 1.0, 1.0)])
    (folder / "studies" / "ko" / "figure_2.py").unlink()
    assert "Figure 2" not in summary.write_summary().read_text()


def test_a_row_that_differs_needs_a_reason():
    with pytest.raises(ValueError, match="say why"):
        page.Row("x", 1.0, 1.01)
    assert page.Row("x", 1.0, 1.01, error=0.004).differs is False


@pytest.mark.parametrize(
    ("value", "text"), [(1_051_271, "1,051,271"), (0.12345678, "0.123457"), (2.5e-7, "2.5e-07")]
)
def test_numbers_have_six_digits_and_whole_ones_all(value, text):
    assert page.number(value) == text
