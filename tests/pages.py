"""Pages of documentation as programs: every fenced block runs, in order, in one directory.

- ``python`` is executed; an ``output`` block behind it is what it prints, or what its last line is
  worth.
- ``console`` holds commands behind ``$ `` and what they say.
- ``toml`` is parsed as a release file (or some of its sections), an account file or a measurement
  file.
- A block with a ``title`` is written to a file of that name.
- ``r`` is executed where the page says that R is there, in one go with all such blocks before it.
- ``text`` is text. There are no other languages, so nothing escapes by its spelling.

In what is shown, ``...`` stands for anything. After ``<!-- noisy -->`` only words are compared, not
numbers: the noise is fresh in every run. After ``<!-- about -->`` numbers may differ by 2 %,
where an optimisation's last digits depend on the machine.
"""

import ast
import contextlib
import difflib
import doctest
import io
import re
import shlex
import subprocess
import textwrap
import tomllib
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from hedgerow import cli
from hedgerow.spec.other_file import AccountFile, MeasurementFile
from hedgerow.spec.release_file import ReleaseFile
from hedgerow.spec.simulate_settings import SimulateFile, SimulateSection
from hedgerow.spec.toml_file import Section

LANGUAGES = {"python", "output", "console", "toml", "csv", "text", "r"}
STRICTNESS = {"<!-- noisy -->": "noisy", "<!-- about -->": "about"}
ABOUT = 0.02
MARK = "\N{NUMERO SIGN}"

_OPEN = re.compile(r"^(?P<indent> *)(?P<fence>`{3,})(?P<info>.*)$")
_TITLE = re.compile(r'title="([^"]+)"')
_NUMBER = re.compile(r"\b[0-9a-f]{12,64}\b|(?:(?<!\w)-)?\d[\d,.]*(?:e[-+]?\d+)?")
_RULE = re.compile(r"[ ─┬┴┼═╪│┆]+")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block; ``line`` is that of its first line of text, from 1."""

    page: str
    line: int
    language: str
    title: str | None
    text: str
    strictness: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(path: Path, page: str) -> list[Block]:
    """All fenced blocks of a page, in order."""
    found, lines, i, strictness = [], path.read_text(encoding="utf-8").splitlines(), 0, "exact"
    while i < len(lines):
        opened = _OPEN.match(lines[i])
        if opened is None:
            if lines[i].strip():
                strictness = STRICTNESS.get(lines[i].strip(), "exact")
            i += 1
            continue
        end = i + 1
        while lines[end].strip() != opened["fence"]:
            end += 1
        language, _, options = opened["info"].strip().partition(" ")
        title = _TITLE.search(options)
        indent = len(opened["indent"])
        text = "".join(f"{line[indent:]}\n" for line in lines[i + 1 : end])
        named = title[1] if title else None
        found.append(Block(page, i + 2, language, named, text, strictness))
        i, strictness = end + 1, "exact"
    return found


@dataclass
class Page:
    """A page that is being run in a directory, which must be the current one."""

    folder: Path
    names: dict[str, object] = field(default_factory=lambda: {"__name__": "page"})
    said: str = ""
    packages: frozenset[str] | None = None
    r: str = ""

    def run(self, block: Block) -> None:
        """Run a block.

        Raises:
            AssertionError: it says something else than the page shows; names page and line.
        """
        assert block.language in LANGUAGES, f"{block.place}: no language {block.language!r}"
        try:
            if block.title is not None:
                target = self.folder / block.title
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(block.text, encoding="utf-8")
            getattr(self, f"_{block.language}", lambda _block: None)(block)
        except BaseException as error:
            error.add_note(f"in the block at {block.place}")
            raise

    def _python(self, block: Block) -> None:
        tree = ast.parse(block.text)
        ast.increment_lineno(tree, block.line - 1)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        name, said = f"<{block.page}>", io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(tree, name, "exec"), self.names)  # noqa: S102 - our own pages
            if isinstance(last, ast.Expr):
                code = compile(ast.Expression(last.value), name, "eval")
                value = eval(code, self.names)  # noqa: S307 - our own pages
                if value is not None:
                    said.write(f"{value!r}\n")
        self.said = said.getvalue()

    def _r(self, block: Block) -> None:
        """Run R's code up to a block, since the last one that loaded packages."""
        self.r = block.text if "library(" in block.text else self.r + block.text
        needed = set(re.findall(r"library\((\w+)\)", self.r))
        if self.packages is None or not needed <= self.packages:
            return
        (self.folder / "page.R").write_text(self.r, encoding="utf-8")
        done = subprocess.run(
            ["Rscript", "--vanilla", "page.R"], cwd=self.folder, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{block.place}: {done.stderr}"

    def _output(self, block: Block) -> None:
        compare(block, block.text, self.said)

    def _console(self, block: Block) -> None:
        for line, command, shown in commands(block):
            code, said = self.execute(command)
            failed = "Error: " in shown
            where = f"{block.page}:{line}: {command}"
            assert (code != 0) == failed, f"{where}: exit code {code}\n{said}"
            if shown.strip():
                compare(block, shown, said, where)

    def execute(self, command: str) -> tuple[int, str]:
        """Exit code, and what a terminal would keep: standard output, and errors."""
        words = shlex.split(command)
        if words[0] != "hedgerow":
            done = subprocess.run(
                ["/bin/bash", "-c", command], cwd=self.folder, capture_output=True, text=True,
                check=False,
            )  # fmt: skip
            return done.returncode, done.stdout + done.stderr
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = cli.run(words[1:])
        errors = [line for line in err.getvalue().splitlines() if line.startswith("Error: ")]
        return code, out.getvalue() + "\n".join(errors)

    def _toml(self, block: Block) -> None:
        check_toml(block.text)


def commands(block: Block) -> list[tuple[int, str, str]]:
    """The commands of a console block, each with its line and what is shown below it."""
    found: list[tuple[int, str, str]] = []
    text = re.sub(r"\\\n\s*", "", block.text)
    for number, line in enumerate(text.splitlines(), start=block.line):
        if line.startswith("$ "):
            found.append((number, line[2:], ""))
        else:
            assert found, f"{block.place}: a console block begins with '$ '"
            at, command, shown = found[-1]
            found[-1] = (at, command, f"{shown}{line}\n")
    return found


def check_toml(text: str) -> None:
    """Parse a whole TOML file of ours, or some sections of a release file.

    Raises:
        ValidationError: it breaks a rule.
    """
    given = tomllib.loads(text, parse_float=Decimal)
    kinds: dict[str, type[Section]] = {"use": AccountFile, "measurement": MeasurementFile}
    whole = next((kind for key, kind in kinds.items() if key in given), None)
    if "simulate" in given:
        SimulateSection.model_validate(given["simulate"])
        whole = SimulateFile if set(given) == {"simulate"} else whole
    if whole is None and {"table", "axis", "privacy"} <= set(given):
        whole = ReleaseFile
    if whole is not None:
        whole.model_validate(given)
        return
    for name, section in given.items():
        assert name in ReleaseFile.model_fields, f"a release file has no [{name}]"
        kind: Any = ReleaseFile.model_fields[name].annotation
        TypeAdapter(kind).validate_python(section)


def compare(block: Block, shown: str, said: str, where: str | None = None) -> None:
    """Refuse a page that shows something else than what is said."""
    if block.strictness == "exact":
        want, got = _tidy(shown), _tidy(said)
    else:
        want, got = _words(shown), _words(said)
    same = doctest.OutputChecker().check_output(want, got, doctest.ELLIPSIS)
    if same and block.strictness == "about":
        every = _numbers(said)
        same = all(
            abs(a - b) <= ABOUT * max(abs(a), abs(b))
            for a, b in zip(
                _numbers(shown), map(every.__getitem__, _places(want, got)), strict=True
            )
        )
        want, got = _tidy(shown), _tidy(said)
    if same:
        return
    lines = difflib.unified_diff(
        want.splitlines(), got.splitlines(), "the page shows", "it says", lineterm=""
    )
    raise AssertionError(f"{where or block.place}\n{textwrap.indent(chr(10).join(lines), '  ')}")


def _tidy(text: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in text.strip("\n").splitlines())


def _words(text: str) -> str:
    """The text with one mark for each number, and without what numbers' widths change."""
    plain = _RULE.sub(" ", _NUMBER.sub(MARK, _null(text)))
    return "".join(f"{line.strip()}\n" for line in plain.splitlines() if line.strip())


def _places(want: str, got: str) -> list[int]:
    """Which numbers of what is said those that are shown stand for, "..." being anything."""
    pattern = re.escape(want).replace(MARK, f"({MARK})").replace(re.escape("..."), ".*?")
    match = re.fullmatch(pattern, got, re.DOTALL)
    assert match is not None
    return [got.count(MARK, 0, match.start(k + 1)) for k in range(match.re.groups)]


def _null(text: str) -> str:
    return text.replace("null", "0")


def _numbers(text: str) -> list[float]:
    """The numbers of a text, in order; 0 for hashes, which are no numbers."""
    found = (match[0].replace(",", "").rstrip(".") for match in _NUMBER.finditer(_null(text)))
    return [0.0 if re.fullmatch(r"[0-9a-f]{12,64}", each) else float(each) for each in found]
