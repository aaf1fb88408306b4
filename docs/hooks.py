# ruff: noqa: INP001 - MkDocs loads this file by its path
"""MkDocs hooks: pages that are generated from the code, and the navigation of the evidence."""

import inspect
import re
import textwrap
import tomllib
import types
import typing
from decimal import Decimal
from pathlib import Path
from typing import Any

import typer.main
from mkdocs.structure.files import File
from nbconvert import MarkdownExporter
from pydantic import BaseModel
from pydantic.fields import FieldInfo

import hedgerow
from hedgerow.cli import app
from hedgerow.declared import Range, Whole, With
from hedgerow.spec.release_file import ReleaseFile
from hedgerow.spec.simulate_settings import SimulateSection

DOCS = Path(__file__).parent
MARK = re.compile(r"^<!-- generated: (?P<what>[a-z-]+) -->$", re.MULTILINE)
PLACE = re.compile(r"<code>([\w/]+\.py):([\w.]+)</code>")
KEYS = "reference/keys.toml"
EVIDENCE = "Measured"
NOTEBOOK = ".ipynb"
OTHER_MODELS: dict[str, tuple[type[BaseModel], bool]] = {"simulate": (SimulateSection, False)}
"""Sections that the release file does not parse itself."""


def on_config(config: Any) -> Any:
    """Add every page that the navigation does not name to the evidence."""
    config["nav"] = _as_pages(config["nav"])
    named = set(_leaves(config["nav"]))
    paths = (p.relative_to(DOCS).as_posix() for p in DOCS.rglob("*.md"))
    pages = sorted(paths, key=lambda page: (page != "studies.md", page))
    studies = [page for page in pages if page not in named]
    groups = (
        [page for page in studies if "/" not in page],
        [page for page in studies if "/" in page],
    )
    top, below = ([{_title(page): page} for page in group] for group in groups)
    for item in config["nav"]:
        if EVIDENCE in item:
            item[EVIDENCE] = [
                *top,
                *([{"Figures and tables of the papers": below}] if below else []),
            ]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Make a page of every notebook, as it was run: its outputs are in it."""
    for file in [file for file in files if file.src_uri.endswith(NOTEBOOK)]:
        files.remove(file)
        page = file.src_uri.removesuffix(NOTEBOOK) + ".md"
        files.append(File.generated(config, page, content=page_of(DOCS / file.src_uri)))
    return files


def page_of(notebook: Path) -> str:
    """Return a notebook as Markdown: prose, code, and what the code showed."""
    text, _ = MarkdownExporter().from_filename(str(notebook))
    return str(text)


def _as_pages(nav: Any) -> Any:
    """Return the navigation with the pages that notebooks become."""
    if isinstance(nav, str):
        return f"{nav.removesuffix(NOTEBOOK)}.md" if nav.endswith(NOTEBOOK) else nav
    if isinstance(nav, dict):
        return {name: _as_pages(value) for name, value in nav.items()}
    return [_as_pages(value) for value in nav or ()]


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return the page with its generated parts."""
    return MARK.sub(lambda mark: GENERATED[mark["what"]](), markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Return the page with an optional line break before each name of a place in the code."""
    return PLACE.sub(r"<code>\1:<wbr>\2</code>", html)


def _leaves(nav: Any) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    values = nav.values() if isinstance(nav, dict) else nav
    return [leaf for value in values or () for leaf in _leaves(value)]


def _title(page: str) -> str:
    first = next(line for line in (DOCS / page).read_text().splitlines() if line.startswith("# "))
    return first[2:].strip()


# --- The release file -----------------------------------------------------------------------------


def release_file() -> str:
    """Return a table of keys for each section of the release file."""
    meanings = tomllib.loads((DOCS / KEYS).read_text(encoding="utf-8"))
    parts = [_section(name, field, meanings) for name, field in ReleaseFile.model_fields.items()]
    unknown = set(meanings) - {"prior"} - set(ReleaseFile.model_fields)
    if unknown:
        raise ValueError(f"{KEYS} describes sections that do not exist: {sorted(unknown)}")
    return "\n\n".join(parts)


def _section(name: str, field: FieldInfo, meanings: dict[str, dict[str, str]]) -> str:
    model, many = OTHER_MODELS.get(name) or _model(field.annotation)
    heading = f"[[{name}]]" if many else f"[{name}]"
    need = "" if field.is_required() else " Optional."
    rows = [f"## `{heading}`", "", meanings[name]["section"] + need, ""]
    rows += _keys(model, meanings[name], name)
    if name == "allocation":
        inner, _ = _model(model.model_fields["prior"].annotation)
        rows += [
            "",
            f"### `prior`\n\n{meanings['prior']['section']}\n",
            *_keys(inner, meanings["prior"], "prior"),
        ]
    return "\n".join(rows)


def _keys(model: type[BaseModel], meanings: dict[str, str], name: str) -> list[str]:
    fields = {field.alias or key: field for key, field in model.model_fields.items()}
    missing = set(fields) ^ (set(meanings) - {"section"})
    if missing:
        raise ValueError(f"{KEYS} [{name}] and the code differ in {sorted(missing)}")
    rows = ["| key | value | default | meaning |", "| --- | --- | --- | --- |"]
    for key, field in fields.items():
        ranges = [rule for rule in field.metadata if isinstance(rule, Range)]
        kind = _range(ranges[0]) if ranges else _kind(field.annotation)
        goes = [f"With `{rule.words}`. " for rule in field.metadata if isinstance(rule, With)]
        meaning = "".join([*goes, meanings[key]])
        rows.append(f"| `{key}` | {kind} | {_default(field)} | {meaning} |")
    return rows


def _range(rule: Range[Any]) -> str:
    """Return the numbers of a range in words."""
    words = rule.words.removeprefix("a ")
    return words if isinstance(rule, Whole) else f"number {words.removesuffix(' and finite')}"


def _model(annotation: Any) -> tuple[type[BaseModel], bool]:
    """Return the section behind an annotation, and whether there may be several."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, False
    many = typing.get_origin(annotation) is list
    inner = next(
        a for a in typing.get_args(annotation) if isinstance(a, type) and a is not type(None)
    )
    return _model(inner)[0], many


def _kind(annotation: Any) -> str:
    """Return the values of a key, in words."""
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in {types.UnionType, typing.Union}:
        return _either([part for part in inner if part is not type(None)])
    if origin is typing.Annotated:
        return _kind(inner[0])
    if origin is typing.Literal:
        return " or ".join(f'`"{value}"`' for value in inner)
    if origin is list:
        return f"list of {PLURAL.get(_kind(inner[0]), _kind(inner[0]))}"
    if origin is dict and (inner[1] is str or inner[1] == str | dict[str, str]):
        return "table of texts"
    table = isinstance(annotation, type) and issubclass(annotation, BaseModel)
    return "table" if table else PLAIN[origin or annotation]


def _either(kinds: list[Any]) -> str:
    """Return alternatives in words; an int, a decimal and a text together are an exact number."""
    is_exact = {int, str} <= set(kinds)
    words = ["number"] if is_exact else []
    words += [_kind(kind) for kind in kinds if not (is_exact and kind in {int, str, Decimal})]
    return " or ".join(dict.fromkeys(words))


PLAIN = {
    str: "text",
    int: "whole number",
    bool: "`true` or `false`",
    Decimal: "number",
    dict: "table of numbers",
}
PLURAL = {
    "text": "texts",
    "number": "numbers",
    "whole number": "whole numbers",
    "table": "tables or names",
}


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "*required*"
    value = field.get_default(call_default_factory=True)
    if value is None or value in ("", [], {}):
        return ""
    return f"`{str(value).lower()}`" if isinstance(value, bool | int) else f'`"{value}"`'


# --- Commands and names ---------------------------------------------------------------------------


def commands() -> str:
    """Return usage, help, arguments and options of each command."""
    return "\n\n".join(_command(typer.main.get_command(app), "hedgerow"))


def _command(command: Any, path: str) -> list[str]:
    parts, context = [], command.context_class(command, info_name=path)
    if path.count(" "):
        usage = " ".join([path, *command.collect_usage_pieces(context)])
        records = [parameter.get_help_record(context) for parameter in command.params]
        rows = [
            f"| `{_cell(re.sub(r' <.*?>', '', names))}` | {_cell(meanings)} |"
            for names, meanings in filter(None, records)
        ]
        parts += [f"## `{path}`", f"```text\n{usage}\n```", _paragraphs(command.help)]
        if rows:
            parts.append("\n".join(["| argument | meaning |", "| --- | --- |", *rows]))
    for name, inner in sorted(getattr(command, "commands", {}).items()):
        parts += [part for part in _command(inner, f"{path} {name}") if part]
    return parts


def _cell(text: str | None) -> str:
    return (text or "").replace("|", "\\|").replace("[[", "`[[").replace("]]", "]]`")


def _paragraphs(text: str | None) -> str:
    return "\n\n".join(" ".join(part.split()) for part in (text or "").split("\n\n"))


def python_names() -> str:
    """Return the public names: signature, docstring and methods of each."""
    kinds: dict[str, list[str]] = {"Functions": [], "Types": []}
    for name in sorted(hedgerow.__all__, key=str.lower):
        value = getattr(hedgerow, name)
        kinds["Types" if inspect.isclass(value) else "Functions"].append(_name(name, value))
    return "\n\n".join(f"## {kind}\n\n" + "\n\n".join(parts) for kind, parts in kinds.items())


def _name(name: str, value: Any) -> str:
    summary, _, rest = (inspect.getdoc(value) or "").partition("\n")
    file = Path(inspect.getfile(value)).relative_to(Path(hedgerow.__file__).parent).as_posix()
    signature = f"```python\nhr.{name}{_signature(value)}\n```"
    parts = [f"`{file}`", signature, _ranges(value), markdown_of(rest), _methods(value)]
    body = textwrap.indent("\n\n".join(filter(None, parts)), "    ")
    return f'??? note "`hr.{name}` · {_plain(summary)}"\n\n{body}'


def _signature(value: Any, width: int = 80) -> str:
    """Return the signature in plain names, one parameter a line where it is long."""
    try:
        signature = inspect.signature(value)
    except ValueError:
        return ""
    bare_ones = [
        one.replace(annotation=_bare(one.annotation)) for one in signature.parameters.values()
    ]
    signature = signature.replace(parameters=bare_ones)
    line = _plain(str(signature))
    if len(line) <= width:
        return line
    bare = str(signature.replace(parameters=[]))[2:]
    rows, before = [], None
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and before not in KEYWORDS:
            rows.append("*")
        rows.append(str(parameter))
        before = parameter.kind
    return _plain("(\n" + "".join(f"    {row},\n" for row in rows) + f"){bare}")


def _bare(annotation: Any) -> Any:
    """Return a type without what is declared of its values, which `_ranges` lists."""
    declared = typing.get_origin(annotation) is typing.Annotated
    return typing.get_args(annotation)[0] if declared else annotation


def _ranges(value: Any) -> str:
    """Return a list of the parameters that are numbers of a declared range."""
    annotations = inspect.get_annotations(value) if inspect.isclass(value) else {}
    rows = [
        f"- `{name}`: {rule.words}"
        for name, annotation in annotations.items()
        for rule in typing.get_args(annotation)[1:]
        if isinstance(rule, Range)
    ]
    return "\n".join(["**Ranges**", "", *rows]) if rows else ""


def _methods(value: Any) -> str:
    """Return a list of the public methods and properties of a class, with their summaries."""
    if not inspect.isclass(value):
        return ""
    rows = []
    for name, member in vars(value).items():
        function = getattr(member, "func", None) or getattr(member, "__func__", member)
        function = getattr(function, "fget", None) or function
        doc = inspect.getdoc(function) if inspect.isfunction(function) else None
        if name.startswith("_") or not doc:
            continue
        call = "" if hasattr(member, "fget") or hasattr(member, "func") else _arguments(function)
        rows.append(f"- `.{name}{call}`: {doc.splitlines()[0]}")
    return "\n".join(["**Methods and properties**", "", *rows]) if rows else ""


def _arguments(function: Any) -> str:
    names = list(inspect.signature(function).parameters)[1:]
    return f"({', '.join(names)})"


SECTION = re.compile(r"^(?P<title>[A-Z]\w+):$")
ENTRY = re.compile(r"^(?P<names>[`*\w][`*\w, .]*): (?P<text>.*)$", re.DOTALL)


def markdown_of(doc: str) -> str:
    """Return a docstring as Markdown: its sections as lists, its examples as code."""
    parts: list[str] = []
    for paragraph in _blocks(doc):
        title = SECTION.match(paragraph.partition("\n")[0])
        if title is None:
            parts.append(_code(paragraph) if ">>> " in paragraph else paragraph)
            continue
        body = textwrap.dedent(paragraph.partition("\n")[2])
        inner = _code(body) if title["title"].startswith("Example") else _entries(body)
        parts += [f"**{title['title']}**", inner]
    return "\n\n".join(parts)


def _blocks(doc: str) -> list[str]:
    """Return the paragraphs of a docstring; a section is one, with all that is indented below."""
    blocks: list[list[str]] = [[]]
    for line in doc.strip("\n").splitlines():
        section = bool(blocks[-1] and SECTION.match(blocks[-1][0]))
        if (section and line[:1].strip()) or (not section and not line.strip()):
            blocks.append([])
        if SECTION.match(line) and blocks[-1]:
            blocks.append([])
        blocks[-1].append(line)
    return ["\n".join(block).strip("\n") for block in blocks if any(map(str.strip, block))]


def _code(text: str) -> str:
    return f"```pycon\n{textwrap.dedent(text).strip()}\n```"


def _entries(body: str) -> str:
    """Return the entries of a section, ``name: text`` each, as a list."""
    rows: list[str] = []
    for line in body.splitlines():
        if line[:1].strip():
            rows.append(line)
        elif rows:
            rows[-1] += f" {line.strip()}"
    entries = [ENTRY.match(row) for row in rows]
    if not all(entries):
        return "\n".join(rows)
    return "\n".join(f"- **{entry['names']}**: {entry['text']}" for entry in entries if entry)


def _plain(text: str) -> str:
    """Return text without module paths, and without quotes that would end a title."""
    text = re.sub(
        r"\b(?:hedgerow|numpy|polars|pathlib|fractions|collections|decimal|typing)(?:\.\w+)*\.",
        "",
        text,
    )
    return text.replace('"', "'").replace("``", "'")


KEYWORDS = {inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_POSITIONAL}
GENERATED = {"release-file": release_file, "commands": commands, "python-names": python_names}
