"""The documentation holds: its code runs, its map of formulas is true, its site builds offline."""

import ast
import importlib.util
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest
import typer.main

import hedgerow as hr
from hedgerow import cli
from hedgerow.estimate.registry import ESTIMATORS
from hedgerow.noise.mechanisms import MECHANISMS
from tests.pages import Block, Page, blocks, check_toml, commands, compare

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "hedgerow"
NAMED = re.findall(r"^ +- .+: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
PAGES = {"README.md": ROOT / "README.md", **{page: ROOT / "docs" / page for page in sorted(NAMED)}}
PLACE = re.compile(r"`(?P<file>[\w/]+\.py):(?P<name>[\w.]+)`")


def readme_names():
    """What the README's examples call the reader's own tables."""
    every = [
        (s, s + c, s + c + t, s + c + t + b)
        for s in "AB"
        for c in "12"
        for t in "12"
        for b in "123"
    ]
    areas = pl.DataFrame(every, schema=["state", "county", "tract", "block"], orient="row")
    table = areas.with_columns(population=pl.int_range(pl.len()) * 7)
    return {"areas": areas, "table": table, "values": [1_000 * k for k in range(150)]}


@pytest.fixture
def page(tmp_path, monkeypatch, few_budgets):
    """A page about to be run, in a directory of its own; planning pages have few budgets."""
    del few_budgets
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    tables = (ESTIMATORS, MECHANISMS)
    known = [dict(table) for table in tables]
    yield Page(tmp_path)
    for table, before in zip(tables, known, strict=True):  # a page may add one
        table.clear()
        table.update(before)


SPARK = pytest.param("spark.md", marks=pytest.mark.xdist_group("spark"))


@pytest.mark.parametrize("name", [SPARK if name == "spark.md" else name for name in PAGES])
def test_every_block_of_a_page_runs_and_says_what_it_shows(name, page):
    if name == "README.md":
        page.names |= readme_names()
    for block in blocks(PAGES[name], name):
        if name != "README.md" or block.language:
            page.run(block)


@pytest.mark.parametrize("packages", ["jsonlite sf", "jsonlite sf arrow"])
def test_the_code_in_r_runs_where_r_is_there(packages, page):
    """Also what needs no package, and so far as the packages go."""
    load = "".join(f"library({name});" for name in packages.split())
    there = shutil.which("Rscript") is not None and (
        subprocess.run(["Rscript", "-e", load], capture_output=True, check=False).returncode == 0
    )
    if not there:
        pytest.skip("R or its packages are not here")
    page.packages = frozenset(packages.split())
    for block in blocks(PAGES["r.md"], "r.md"):
        page.run(block)


def test_the_first_release_works_as_each_command_of_it_is_pasted(tmp_path):
    """Files are saved, commands run by a shell, and Python in one session: nothing else helps.

    Of the commands of Hedgerow those run that make what others read; a shell takes the rest apart
    into the words with which the page's own test runs them.
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    source = {"PYTHONPATH": str(SOURCE.parent), "HOME": str(tmp_path), "PATH": path}
    session, ran = "", set()

    def started(command, place, *, fails=False):
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=False,
            env=os.environ | source,
        )  # fmt: skip
        assert (done.returncode != 0) == fails, f"{place}: {done.stderr}"
        return done.stdout

    for each in blocks(PAGES["first-release.md"], "first-release.md"):
        if each.title is not None:
            (tmp_path / each.title).write_text(each.text, encoding="utf-8")
        elif each.language == "console":
            for line, command, shown in commands(each):
                where = f"first-release.md:{line}: {command}"
                makes = re.match(r"hedgerow (release|table .*\.csv$)", command)
                if command.startswith("hedgerow ") and not makes:
                    words = f"hedgerow() {{ printf '%s\\0' hedgerow \"$@\"; }}; {command}"
                    said = started(["/bin/bash", "-c", words], where)
                    assert said.split("\0")[:-1] == shlex.split(command), where
                else:
                    started(["/bin/bash", "-c", command], where, fails="Error: " in shown)
                ran.add(command)
        elif each.language == "python":
            session += each.text
    started([sys.executable, "-c", session], "the session of first-release.md")
    assert len(ran) >= 8


def test_every_page_of_the_navigation_is_run():
    """Also one whose title has a colon, as that on a census."""
    assert len(NAMED) == (ROOT / "mkdocs.yml").read_text().count(".md\n")
    assert "census.md" in PAGES


def test_the_readme_is_read_in_three_minutes():
    assert len(PAGES["README.md"].read_text(encoding="utf-8").split()) <= 700


def test_pages_that_are_not_generated_evidence_show_code():
    assert sum(bool(blocks(path, name)) for name, path in PAGES.items()) >= 15


def block(language, text, strictness="exact", line=7):
    return Block("page.md", line, language, None, text, strictness)


def test_a_failure_names_page_and_line(page):
    with pytest.raises(ZeroDivisionError) as failure:
        page.run(block("python", "x = 1\nx / 0\n"))
    assert failure.value.__notes__ == ["in the block at page.md:7"]
    assert failure.traceback[-1].lineno + 1 == 8
    assert str(failure.traceback[-1].path).endswith("<page.md>")


def test_output_that_differs_is_refused(page):
    page.run(block("python", "print(1)\n'two'\n"))
    page.run(block("output", "1\n'two'\n"))
    with pytest.raises(AssertionError, match=r"page\.md:7"):
        page.run(block("output", "1\n'three'\n"))


def test_a_command_that_fails_is_refused_unless_its_error_is_shown(page):
    page.run(block("console", "$ hedgerow check nowhere\nError: ...\n"))
    for shown in ("", "All 3 checks passed.\n"):
        with pytest.raises(AssertionError, match="exit code 2"):
            page.run(block("console", f"$ hedgerow check nowhere\n{shown}"))
    with pytest.raises(AssertionError, match="exit code 0"):
        page.run(block("console", "$ hedgerow --version\nError: ...\n"))


def test_numbers_are_compared_as_strictly_as_the_page_says():
    compare(block("output", "", "noisy"), "a   12.5 of 7", "a -999 of 1e-3")
    compare(block("output", "", "about"), "a   12.5 of 7", "a 12.6 of 7.01")
    compare(block("output", "", "about"), "a 12.5 ...\nb 7", "a 12.6 of 3\nc 4\nb 7.01")
    with pytest.raises(AssertionError):
        compare(block("output", "", "about"), "a 12.5 ...\nb 7", "a 12.6 of 7\nb 9")
    for strictness, said in [
        ("noisy", "b 12.5 of 7"),
        ("about", "a 13.5 of 7"),
        ("exact", "a 12.6 of 7"),
    ]:
        with pytest.raises(AssertionError):
            compare(block("output", "", strictness), "a 12.5 of 7", said)


def test_unknown_languages_are_refused(page):
    with pytest.raises(AssertionError, match="no language 'py'"):
        page.run(block("py", "1 / 0\n"))


def test_sections_of_release_files_are_checked():
    check_toml('[ledger]\ndatabase = "a"\ndataset = "b"\n')
    for wrong in ('[ledger]\ndatabase = "a"\n', "[ledgers]\n", '[[axis]]\nnme = "a"\n'):
        with pytest.raises((AssertionError, ValueError)):
            check_toml(wrong)


def test_commands_are_split_from_what_they_say():
    found = commands(block("console", "$ a b\nsaid\n$ c \\\n  d\n"))
    assert found == [(7, "a b", "said\n"), (9, "c d", "")]


def named_in(file: str) -> set[str]:
    """The names that a module defines, and those of its classes."""
    path = next(path for path in (SOURCE / file, ROOT / file) if path.exists())
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
            found |= {
                f"{node.name}.{inner.name}"
                for inner in node.body
                if isinstance(node, ast.ClassDef) and isinstance(inner, ast.FunctionDef)
            }
    return found


def test_the_map_of_formulas_names_what_exists():
    found = {match["file"] for path in PAGES.values() for match in PLACE.finditer(path.read_text())}
    known = {file: named_in(file) for file in found}
    missing = [
        f"{page}: {match[0]}"
        for page, path in PAGES.items()
        for match in PLACE.finditer(path.read_text())
        if match["name"] not in known[match["file"]]
    ]
    assert not missing
    assert len(found) > 40


def test_every_file_that_a_page_names_exists():
    for page, path in PAGES.items():
        for name in re.findall(
            r"`((?:tests|studies|docs)/[\w/]*\.(?:py|toml|md))`", path.read_text()
        ):
            assert (ROOT / name).exists(), f"{page} names {name}"


PROOF = re.compile(r'docs/proofs(/\w[\w-]*\.md)?`*,[\s#]+"([^"]+)"')


def test_every_proof_that_the_code_names_is_a_section_of_that_page():
    named = [match for path in SOURCE.rglob("*.py") for match in PROOF.finditer(path.read_text())]
    assert len(named) > 40
    for match in named:
        title = re.sub(r"\s*\n[\s#]*", " ", match[2])
        page = (ROOT / "docs" / "proofs" / (match[1] or "/-")[1:]).read_text(encoding="utf-8")
        assert re.search(rf"^#+ {re.escape(title)}$", page, re.MULTILINE), match[0]


@pytest.mark.parametrize("name", [name for name in PAGES if name.startswith("proofs/")])
def test_every_page_of_proofs_names_code_and_tests_at_the_head_of_each_section(name):
    _, *sections = re.split(r"^## ", PAGES[name].read_text(encoding="utf-8"), flags=re.MULTILINE)
    heads = [section.split("\n\n")[1] for section in sections]
    if name in {"proofs/index.md", "proofs/coefficients.md"} or not heads:
        heads = [PAGES[name].read_text(encoding="utf-8")] if name != "proofs/index.md" else []
    for head in heads:
        assert re.search(r"`(?!tests/)[\w/]+(?:/|\.py)", head), head
        assert re.search(r"`tests/[\w/]+\.py`", head), head


LOADS = {
    "script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src",
    "object": "data",
}  # fmt: skip


class Outside(HTMLParser):
    """What a page loads, or would, from elsewhere; links to follow are not loaded."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        value = dict(attrs).get(LOADS.get(tag, ""), "") or ""
        if re.match(r"(?:https?:)?//", value):
            self.found.append(f"<{tag}> {value}")
        if "mermaid" in (dict(attrs).get("class") or "").split():
            self.found.append("a Mermaid diagram, which is drawn by a script from elsewhere")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site."""
    folder = tmp_path_factory.mktemp("site") / "site"
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.xdist_group("site")
def test_the_site_loads_nothing_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        outside = Outside()
        outside.feed(page.read_text())
        assert not outside.found, f"{page.relative_to(site)} loads {outside.found}"
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(?:https?:)?//|@import", sheet.read_text()), sheet


@pytest.mark.xdist_group("site")
def test_the_references_are_generated_whole(site):
    commands_page = (site / "reference" / "commands.html").read_text()
    keys = (site / "reference" / "release-file.html").read_text()
    names = (site / "reference" / "python.html").read_text()
    known = typer.main.get_command(cli.app).commands
    for word in (*known, "ledger open", "--target-mse", "--expect-plan"):
        assert word in commands_page, word
    for word in ("[[invariant]]", "out_of_bounds", "contributions", "discrete-laplace"):
        assert word in keys
    assert "hr.release_distribution" in names
    assert not any("generated:" in page for page in (commands_page, keys, names))


def test_examples_in_docstrings_are_shown_as_code():
    spec = importlib.util.spec_from_file_location("hooks", ROOT / "docs" / "hooks.py")
    hooks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hooks)
    doc = """More.

    x = 1

Args:
    one, two: what
        they are.

Example:
    >>> 1 + 1
    2

    >>> 2 + 2
    4

Source: a paper."""
    assert (
        hooks.markdown_of(doc)
        == """More.

    x = 1

**Args**

- **one, two**: what they are.

**Example**

```pycon
>>> 1 + 1
2

>>> 2 + 2
4
```

Source: a paper."""
    )


@pytest.mark.xdist_group("site")
def test_the_reference_shows_signatures_and_methods(site):
    names = (site / "reference" / "python.html").read_text()
    text = re.sub(r"<[^>]+>", "", names)
    assert "hr.make_plan(" in text
    assert ".level(" in text
    assert "```" not in text
    assert names.count('<span class="gp">') >= 5  # prompts of examples


@pytest.mark.xdist_group("site")
def test_every_page_of_evidence_is_in_the_site(site):
    index = (site / "index.html").read_text()
    evidence = sorted((ROOT / "docs").rglob("*.md"))
    for page in evidence:
        name = page.relative_to(ROOT / "docs").with_suffix(".html").as_posix()
        assert (site / name).exists(), name
        assert f'href="{name}"' in index, f"{name} is not in the navigation"


@pytest.mark.xdist_group("site")
def test_the_site_has_what_a_search_from_disk_needs(site):
    """Browsers fetch nothing from disk and allow no workers there: an index as a script, a shim."""
    index = (site / "search" / "search_index.js").read_text()
    assert index.startswith("var __index = ")
    assert "contributions" in index
    assert '<script src="assets/iframe-worker.js"></script>' in (site / "index.html").read_text()
    assert (site / "assets" / "iframe-worker.js").is_file()


DEVELOPERS = Path(__file__).parents[1] / "docs" / "developers"


@pytest.mark.parametrize("workload", ["chain", "cube", "named", "spine"])
@pytest.mark.sweep(2)
def test_the_files_that_a_small_release_enters_are_counted(workload):
    script = runpy.run_path(str(DEVELOPERS / "entered.py"))
    files = {file for file, _ in script["entered"](workload)}
    assert {"release/execution.py", "release/descent/source.py"} <= files
    assert ("estimate/spine/component.py" in files) == (workload == "spine")


def test_a_small_cube_walks_through_the_drawing_of_the_data_flow_from_top_to_bottom(tmp_path):
    page = (DEVELOPERS / "data-flow.md").read_text(encoding="utf-8")
    (drawing,) = re.findall(r"```text\n(.*?)```", page, flags=re.DOTALL)
    drawn = re.findall(r"[\w/]+\.py", drawing)
    script = runpy.run_path(str(DEVELOPERS / "entered.py"))

    def walk():
        counts, plan = script["made"]("cube")
        hr.release(counts, plan, directory=tmp_path / "out")
        hr.reestimate(tmp_path / "out", hr.Euclidean())

    entered = list(dict.fromkeys(file for file, _ in script["walked"](walk)))
    assert len(drawn) > 10
    assert [file for file in entered if file in drawn] == drawn
    assert len(page.split()) <= 1000
