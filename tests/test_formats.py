"""Every format that is read or written is documented, installed by an extra, and tested."""

import inspect
import re
import sys
import tomllib
from pathlib import Path

import pytest

from hedgerow.cli.export import FORMATS, export
from hedgerow.tables.sources import files
from hedgerow.tables.sources.database import DRIVERS
from hedgerow.tables.sources.statistics_file import READERS

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = set(PROJECT["optional-dependencies"])


def rows(page):
    """The cells of each row of the first table of a page."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8").partition("\n|---")[2]
    lines = text.partition("\n\n")[0].splitlines()[1:]
    return [re.split(r"(?<!\\)\|", line.strip(" |")) for line in lines]


def code(cell):
    return re.findall(r"`([^`]+)`", cell)


EXPORTS = {name: row[-1] for row in rows("exports.md") for name in code(row[0])}


def test_every_format_of_exports_has_its_row():
    assert set(EXPORTS) == set(FORMATS)


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_of_exports_is_in_the_help_and_in_tests_and_says_which_extra_it_needs(name):
    kind = FORMATS[name]
    assert re.search(rf"\b{name}\b", inspect.getdoc(export))
    tests = (ROOT / "tests" / "export").glob("test_*.py")
    assert any(f"hr.{kind.__name__}(" in test.read_text(encoding="utf-8") for test in tests)
    (extra,) = code(EXPORTS[name])
    assert extra in EXTRAS
    assert f'"{extra}")' in inspect.getsource(sys.modules[kind.__module__])


def test_every_kind_of_file_and_database_that_is_read_has_its_row():
    named = {text for row in rows("tables.md") for text in code(row[1])}
    suffixes = {match[0] for text in named for match in re.finditer(r"\.\w+$", text)}
    schemes = {text.partition(":")[0] for text in named if "://" in text}
    assert suffixes - {".db"} == {*READERS, ".csv", ".gz", ".parquet"}
    assert schemes | {"postgres"} == set(DRIVERS)
    read_by_duckdb = set(re.findall(r"\bread_(\w+)\(", inspect.getsource(files)))
    kinds = " ".join(row[0] for row in rows("tables.md")).lower()
    assert {kind for kind in read_by_duckdb if kind not in kinds} == set()


def test_every_extra_that_a_table_of_formats_names_is_one():
    named = {text for page in ("tables.md", "exports.md") for row in rows(page) for text in row}
    asked = set(re.findall(r"'\.\[(\w+)\]'", " ".join(named)))
    assert asked <= EXTRAS
    assert len(asked) >= 3


def test_every_suffix_that_is_read_is_in_the_reference_of_keys():
    keys = tomllib.loads((ROOT / "docs/reference/keys.toml").read_text(encoding="utf-8"))
    assert set(READERS) <= set(code(keys["table"]["source"]))
