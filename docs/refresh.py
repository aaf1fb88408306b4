# ruff: noqa: INP001 - a script
"""Write what commands and code say today into the pages that show it.

    python docs/refresh.py docs/first-release.md …

Runs each page as the tests do, and replaces the shown output of every ``console`` and ``output``
block, unless it has an ellipsis, which somebody chose. Read the difference before you keep it.
"""

import os
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.pages import Block, Page, blocks, commands  # noqa: E402


def refreshed(path: Path, page: Page) -> str:
    """The text of the page, with what its blocks say."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    found = blocks(path, path.name)
    said = {block.line: text for block in found if (text := _said(page, block)) is not None}
    for block in reversed(found):
        if block.line in said:
            first, count = block.line - 1, len(block.text.splitlines())
            indent = re.match(" *", lines[first - 1])
            margin = indent[0] if indent else ""
            new = [f"{margin}{line}".rstrip() + "\n" for line in said[block.line].splitlines()]
            lines[first : first + count] = new
    return "".join(lines)


def _said(page: Page, block: Block) -> str | None:
    """What the block should show; None where it shows nothing of its own."""
    if block.language == "output":
        return None if "..." in block.text else _kept(page.said)
    if block.language != "console":
        page.run(block)
        return None
    shown = []
    for _, command, before in commands(block):
        _, text = page.execute(command)
        now = before.rstrip("\n") if "..." in before else _kept(text)
        shown.append(f"$ {command}" + (f"\n{now}" if before.strip() and now else ""))
    return "\n".join(shown)


def _kept(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


if __name__ == "__main__":
    for name in sys.argv[1:]:
        target = Path(name).resolve()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            new = refreshed(target, Page(Path(folder)))
            os.chdir(ROOT)
        target.write_text(new, encoding="utf-8")
        print(f"refreshed {name}")  # noqa: T201
