"""A run fails on a skip that nobody wrote down, and prints those that are."""

import os
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest

from tests import parts
from tests.parts import Part
from tests.skips import ALLOWED, EVERYWHERE, LIST, STRICT, Skip, Skips, read_allowed

ROOT = Path(__file__).parents[1]

TESTS = {
    "passes": "def test_it():\n    assert True",
    "skips": "@pytest.mark.skipif(True, reason='no Java')\ndef test_it():\n    assert False",
    "skips within": "def test_it():\n    pytest.skip('no Java')",
    "a package of the lock": "pytest.importorskip('nothing')\n\ndef test_it():\n    assert False",
    "a whole file": "pytest.skip('no Java', allow_module_level=True)",
    "a fixture": (
        "@pytest.fixture\ndef java():\n    pytest.skip('no Java')\n\n"
        "def test_it(java):\n    assert False"
    ),
    "fails as expected": "@pytest.mark.xfail(reason='no Java')\ndef test_it():\n    assert False",
    "passes against expectation": (
        "@pytest.mark.xfail(reason='no Java', strict=False)\ndef test_it():\n    assert True"
    ),
    "fails": "def test_it():\n    assert False",
}
REASON = {
    "a package of the lock": "could not import 'nothing': No module named 'nothing'",
    "fails as expected": "expected to fail: no Java",
    "passes against expectation": "passed, though expected to fail: no Java",
}


def outcome(folder, kind, *arguments, strict=True, allowed="", elsewhere=""):
    """Exit code and output of a run of one file, with this package's plugin and no other test."""
    folder.joinpath("test_one.py").write_text(f"import pytest\n\n{TESTS[kind]}\n")
    folder.joinpath("conftest.py").write_text(
        "from tests import skips\n\npytest_configure = skips.pytest_configure\n"
    )
    folder.joinpath("pytest.ini").write_text("[pytest]\n")
    folder.joinpath("allowed.txt").write_text(
        f"{EVERYWHERE}\n{allowed}\n[elsewhere]\n{elsewhere}\n"
    )
    variables = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST")}
    variables |= {STRICT: "1" if strict else "", LIST: str(folder / "allowed.txt")}
    variables["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    variables["PYTHONPATH"] = os.pathsep.join([str(ROOT), variables.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments, "test_one.py"],
        cwd=folder, env=variables, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("kind", "workers"),
    [*((kind, 0) for kind in sorted(TESTS)), ("passes", 2), ("skips", 2), ("a whole file", 2)],
)
@pytest.mark.sweep(4)
def test_a_skip_that_nobody_wrote_down_fails_the_run(tmp_path, kind, workers):
    code, said = outcome(tmp_path, kind, *(["-p", "xdist", "-n", str(workers)] if workers else []))
    assert code == (0 if kind == "passes" else 1), said
    named = "skipped, and not in allowed_skips.txt" in said
    assert named == (kind not in {"passes", "fails"}), said
    if named:
        assert f"  {REASON.get(kind, 'no Java')}" in said


@pytest.mark.parametrize("kind", sorted(set(TESTS) - {"passes"}))
@pytest.mark.sweep(3)
def test_a_skip_that_nobody_wrote_down_fails_a_run_elsewhere_too(tmp_path, kind):
    assert outcome(tmp_path, kind, strict=False)[0] == 1


@pytest.mark.parametrize("workers", [0, 2])
def test_what_only_the_fresh_machine_has_may_be_missing_elsewhere_and_is_printed(tmp_path, workers):
    line = "test_one.py::*  no Java"
    more = ["-p", "xdist", "-n", str(workers)] if workers else []
    assert outcome(tmp_path, "skips", elsewhere=line)[0] == 1
    code, said = outcome(tmp_path, "skips", *more, elsewhere=line, strict=False)
    assert code == 0, said
    assert "skipped, as allowed_skips.txt allows" in said
    assert "    1  no Java" in said


@pytest.mark.parametrize("part", [each for each in vars(parts).values() if isinstance(each, Part)])
def test_what_a_test_may_lack_is_named_and_allowed_outside_the_fresh_machine_alone(part):
    assert not part.there or part.needed.args == (False,)
    parts_of_list = read_allowed(ALLOWED)
    skip = Skip("tests/test_any.py::test_it", part.reason)
    assert Skips(list(chain.from_iterable(parts_of_list.values()))).is_allowed(skip)
    assert not Skips(parts_of_list[EVERYWHERE]).is_allowed(skip)
    assert any(word in (ROOT / ".ci" / "run").read_text() for word in part.package.split())


@pytest.mark.parametrize(
    ("allowed", "code"),
    [
        ("test_one.py::test_it  no Java", 0),
        ("# a word\n\ntest_one.py::*  no *", 0),
        ("test_one.py::test_it  no Chromium", 1),
        ("test_two.py::*  no Java", 1),
        ("test_one.py::test_[a-z]t  no Java", 1),
    ],
)
def test_a_line_allows_a_test_for_its_reason_alone(tmp_path, allowed, code):
    assert outcome(tmp_path, "skips", allowed=allowed)[0] == code


def test_a_failure_stays_one_beside_allowed_skips(tmp_path):
    assert outcome(tmp_path, "fails", allowed="test_one.py::*  *")[0] == 1


def test_a_line_without_a_reason_is_refused(tmp_path):
    path = tmp_path / "allowed.txt"
    path.write_text(f"{EVERYWHERE}\ntests/test_one.py::test_it\n")
    with pytest.raises(AssertionError, match="says no reason"):
        read_allowed(path)


def test_the_list_is_short_and_names_tests_that_are_there():
    allowed = read_allowed(ALLOWED)[EVERYWHERE]
    shared = (ROOT / "tests" / "parts.py").read_text(encoding="utf-8")
    assert len(allowed) <= 6
    for line in allowed:
        file, _, name = line.place.partition("::")
        text = (ROOT / file).read_text(encoding="utf-8")
        assert f"def {name.rstrip('*')}" in text
        assert f'"{line.reason}"' in text + shared


def test_the_run_of_a_fresh_machine_asks_for_every_test():
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert lines.index(f"export {STRICT}=1") < lines.index("make test")


def test_make_quick_leaves_out_files_that_are_there_and_marks_the_rest_as_short(request):
    """A file that was renamed would slip back into the run of two minutes."""
    (conftest,) = (
        plugin
        for plugin in request.config.pluginmanager.get_plugins()
        if getattr(plugin, "__file__", None) == str(ROOT / "tests" / "conftest.py")
    )
    places = (*conftest.SLOW, *conftest.HOSTILE)
    assert [place for place in places if not (ROOT / "tests" / place).exists()] == []
    assert request.node.get_closest_marker("slow") is not None
    assert not conftest.is_in(ROOT / "tests" / "test_rooms.py", conftest.SLOW)
