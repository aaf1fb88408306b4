"""Run commands on hostile inputs, and judge how they end."""

import contextlib
import io
from pathlib import Path
from typing import Any

from hedgerow import cli


def write(folder: Path, files: dict[str, bytes]) -> None:
    """The files of a folder."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def listing(folder: Path) -> dict[str, bytes | None]:
    """All that lies in a folder, with its contents."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def ran(*arguments: Any) -> tuple[int, str, str]:
    """A command in this process: exit code, standard output, standard error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.run([str(argument) for argument in arguments])
    return code, out.getvalue(), err.getvalue()


def ends_well(folder: Path, *arguments: Any, makes: str | None = None) -> int:
    """The exit code of a command that ends well, as `ended_well`."""
    return ended_well(folder, *arguments, makes=makes)[0]


def ended_well(folder: Path, *arguments: Any, makes: str | None = None) -> tuple[int, str, str]:
    """What `ran` returns of a command that explains itself and leaves nothing half-written.

    Args:
        folder: what the command may write into.
        arguments: the command.
        makes: a file of what appears in the folder, whole, if the command succeeds.
    """
    before = listing(folder)
    code, out, err = ran(*arguments)
    said = f"{arguments[0]} ended with {code}: {err}"
    assert code in {0, 1, 2}, said
    assert "Traceback" not in out + err, said
    assert "internal error" not in err, said
    sentences = [line for line in err.splitlines() if line.startswith("Error: ")]
    assert len(sentences) == (code != 0), said
    after = listing(folder)
    made = {name for name in after if name not in before and Path(name).name == makes}
    if code == 0 and makes is not None:
        assert len(made) == 1, said
        (top,) = (Path(name).parts[0] for name in made)
        after = {name: data for name, data in after.items() if Path(name).parts[0] != top}
    assert after == before, f"{said}; {sorted(set(after) ^ set(before))}"
    return code, out, err


def place_of(folder: Path, file: str) -> Path:
    """The folder below a folder that holds a file of this name."""
    (found,) = folder.rglob(file)
    return found.parent
