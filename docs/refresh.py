# ruff: noqa: INP001 - a script
"""Update the output that documentation pages show.

    python docs/refresh.py docs/first-release.md …

Runs each page as the tests do, and replaces the shown output of every ``console`` and ``output``
block, except where an ellipsis stands for part of it; of a notebook, what every cell shows. Review
the difference before you keep it.
"""

import os
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from nbformat import write  # noqa: E402

from tests.notebooks import executed  # noqa: E402
from tests.pages import Block, Page, blocks, commands  # noqa: E402


def refreshed(path: Path, page: Page) -> str:
    """Return the text of the page with the output of its blocks updated."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    every = blocks(path, path.name)
    outputs = {b.line: text for b in every if (text := _output(page, b)) is not None}
    for block in reversed(every):
        if block.line in outputs:
            first, count = block.line - 1, len(block.text.splitlines())
            indent = re.match(" *", lines[first - 1])
            margin = indent[0] if indent else ""
            new = [f"{margin}{line}".rstrip() + "\n" for line in outputs[block.line].splitlines()]
            lines[first : first + count] = new
    return "".join(lines)


def _output(page: Page, block: Block) -> str | None:
    """Return what the block should show, None for a block without output."""
    if block.language == "output":
        return None if "..." in block.text else _stripped(page.said)
    if block.language != "console":
        page.run(block)
        return None
    shown = []
    for _, command, before in commands(block):
        _, text = page.execute(command)
        now = before.rstrip("\n") if "..." in before else _stripped(text)
        shown.append(f"$ {command}" + (f"\n{now}" if before.strip() and now else ""))
    return "\n".join(shown)


def _stripped(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def run_notebook(path: Path) -> None:
    """Run a notebook in a folder of its own, and keep what its cells show."""
    with tempfile.TemporaryDirectory() as folder:
        write(executed(path, Path(folder)), path)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        target = Path(name).resolve()
        if target.suffix == ".ipynb":
            run_notebook(target)
            continue
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            new = refreshed(target, Page(Path(folder)))
            os.chdir(ROOT)
        target.write_text(new, encoding="utf-8")
        print(f"refreshed {name}")  # noqa: T201
