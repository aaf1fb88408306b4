"""A public file reaches itself: what is opened while one is read, as the system tells by strace."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.hostile import disguises
from tests.hostile.commands import ran
from tests.hostile.mutations import csv, toml
from tests.hostile.reaching import MARK
from tests.parts import require_tracing

ROOT = Path(__file__).parents[2]
TRACE = ["strace", "-f", "-y", "-s", "4096", "-e", "trace=%file,%network"]
INSTALLED = [
    *{os.path.realpath(place) for place in (sys.prefix, sys.base_prefix, ROOT / "src")},
    *(str(ROOT / name) for name in ("src", "tests", ".venv")),
    *("/usr", "/lib", "/lib64", "/etc", "/proc", "/sys", "/dev"),
]
"""Where the installation and the system have their own files."""
OPENS = {"open", "openat", "openat2", "creat", "execve"}
LOOKS = {
    "access", "faccessat", "faccessat2", "stat", "lstat", "newfstatat", "statx", "statfs",
    "readlink", "readlinkat", "getcwd", "chdir", "inotify_add_watch",
}  # fmt: skip
"""Calls that tell that a file is there, and nothing that is in it; as lists of folders do."""
NETWORK = {
    "socket", "socketpair", "connect", "bind", "listen", "accept", "accept4", "sendto", "sendmsg",
    "sendmmsg", "recvfrom", "recvmsg", "recvmmsg", "getsockname", "getpeername", "setsockopt",
    "getsockopt", "shutdown",
}  # fmt: skip

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("reach")]


def spec(source: str, role: str) -> bytes:
    """A release file that names a public file in one role."""
    axis = {"name": "place", "levels": ["county", "town"], "areas": "areas.csv"}
    whole = {"table": {"source": "people.csv"}, "axis": [axis], "privacy": {"rho": "1/20"}}
    if role == "prior":
        prior = {"source": source, "public": True}
        whole["allocation"] = {"method": "optimal", "prior": prior}
    elif role == "shapes":
        axis |= {"shapes": source, "shapes_key": "town"}
    elif role == "areas":
        axis["areas"] = source
    else:
        kind = {"name": "kind", "levels": ["county"], "areas": "kinds.csv", "attribute": True}
        whole["axis"] = [axis | {"levels": ["town"]}, kind]
        whole["workload"] = {"cuboids": "cube"}
        whole["public"] = [{"source": source, "zeros": "listed"}]
    return toml(whole).encode()


def released(folder: Path) -> Path:
    """A release of towns, made before anything is traced."""
    folder.mkdir()
    axis = {"name": "place", "levels": ["town"], "areas": "areas.csv"}
    whole = {"table": {"source": "people.csv"}, "axis": [axis], "privacy": {"rho": "1/20"}}
    whole["estimate"] = {"method": "euclidean", "measure": "all"}
    (folder / "areas.csv").write_bytes(csv({"town": disguises.TOWNS}))
    (folder / "people.csv").write_bytes(csv({"town": disguises.TOWNS}))
    (folder / "release.toml").write_bytes(toml(whole).encode())
    code, _, said = ran("release", folder / "release.toml")
    assert code == 0, said
    return folder / "out"


class Traced:
    """What some commands opened, as strace wrote it."""

    def __init__(self, folder: Path, cases: dict[str, tuple[str, disguises.Maker]]) -> None:
        """Use each file in its role, in a folder of its own, all in one process."""
        self.folder, self.beyond, self.named = folder, folder / "beyond", dict[str, str]()
        self.place, self.outputs = dict[str, Path](), count()
        self.release = released(folder / "released")
        disguises.beyond(self.beyond)
        for empty in ("home", "tmp", "cwd"):
            (folder / empty).mkdir()
        warm, words = {}, {}
        for number, (name, (role, make)) in enumerate(cases.items()):
            own = self.place[name] = folder / f"case{number}"
            own.mkdir()
            self.named[name] = make(own, self.beyond)
            (own / "areas.csv").write_bytes(csv(disguises.LIST))
            (own / "kinds.csv").write_bytes(csv({"county": sorted(set(disguises.COUNTIES))}))
            (own / "people.csv").write_bytes((self.beyond / "people.csv").read_bytes())
            words[name] = self._command(role, own, self.named[name])
            if f"warm-up of {role}" not in warm:
                warm[f"warm-up of {role}"] = self._command(role, own, self.named[name])
        (folder / "commands.json").write_text(json.dumps({**warm, **words}))
        subprocess.run(
            [*TRACE, "-o", folder / "trace", sys.executable, "-m", "tests.hostile.reaching",
             folder / "commands.json"],
            cwd=folder / "cwd",
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "HOME": str(folder / "home"),
                 "TMPDIR": str(folder / "tmp"), "NUMBA_NUM_THREADS": "1"},
            check=True,
        )  # fmt: skip
        self.ended = json.loads((folder / "commands.ended").read_text())
        self.calls = dict(self._calls())

    def _command(self, role: str, own: Path, named: str) -> list[str]:
        """The command that reads a file in a role."""
        place = named if ":" in named else str(own / named)
        if role == "lookup":
            return ["table", str(self.release), "--areas", place]
        if role == "export":
            output = str(self.folder / "tmp" / f"{next(self.outputs)}.parquet")
            words = ["export", str(self.release), "--as", "geoparquet", "--output", output]
            return [*words, "--shapes", place, "--key", "town"]
        (own / "release.toml").write_bytes(spec(named, role))
        return ["plan", str(own / "release.toml")]

    def _calls(self) -> Iterator[tuple[str, list[str]]]:
        text = (self.folder / "trace").read_text(errors="replace")
        parts = re.split(rf'^.*"{MARK}([^"]*)".*$', text, flags=re.MULTILINE)
        yield from zip(parts[1::2], map(str.splitlines, parts[2::2]), strict=True)

    def opened(self, name: str) -> set[str]:
        """The paths outside the installation that a command opened or changed, and its sockets."""
        found = set()
        for call in self.calls[name]:
            told = re.match(r"\d+ +(\w+)\((.*)", call)
            if told is None or told[1] in LOOKS or "O_DIRECTORY" in told[2]:
                continue
            if told[1] in NETWORK:
                found.add(call)
                continue
            at = re.match(r"(?:AT_FDCWD|\d+)<([^>]*)>", told[2])
            for path in re.findall(r'"((?:[^"\\]|\\.)*)"', told[2])[: 1 if told[1] in OPENS else 2]:
                whole = os.path.normpath(Path(at[1] if at else self.folder / "cwd") / path)
                if not any(whole == own or whole.startswith(f"{own}/") for own in self.allowed):
                    found.add(whole)
        return found

    @property
    def allowed(self) -> list[str]:
        return [*INSTALLED, str(self.folder / "tmp"), str(self.release)]


def declared(made: Traced, name: str) -> set[str]:
    """What may be opened: the named file with its parts, and of a plan what its file declares."""
    place, named = made.place[name], made.named[name]
    planned = ("areas.csv", "kinds.csv") if (place / "release.toml").exists() else ()
    own = {place / each for each in ("release.toml", *planned, named)}
    if named == "a.shp":
        own |= {place / part for part in disguises.PARTS}
    return set(map(str, own))


TELLING_MAPS = (
    "VRT as GeoJSON", "WFS as GeoJSON", "GML with a schema as GeoJSON", "vsizip", "vsicurl",
    "a server", "a database", "zip as shapefile", "GeoPackage with a view over an attached file",
    "GeoPackage with a virtual table as layer", "shapefile whose table is the table",
    "GeoParquet that lies elsewhere", "symlink to itself", "pipe", "standard input",
)  # fmt: skip
TELLING_LISTS = (
    "CSV that names files", "CSV with SQL in its header", "a name with SQL",
    "a file with SQL in its name", "a file with a pattern in its name",
    "Parquet that lies elsewhere", "Parquet that lies elsewhere as CSV", "SQLite as CSV",
    "DuckDB as CSV", "a lake of tables", "a bucket", "a server", "a file address",
    "SQLite by its address", "a connection", "pipe", "standard input",
)  # fmt: skip
"""The disguises that differ most, for readers that are those of lists and of shapes."""


def chosen(role: str) -> dict[str, tuple[str, disguises.Maker]]:
    """The cases of a role: all disguises, or for further uses of one reader the most telling."""
    of_maps = role in {"shapes", "export"}
    honest = disguises.HONEST_MAPS if of_maps else disguises.HONEST_LISTS
    makers = disguises.MAPS if of_maps else disguises.LISTS
    if role in {"public", "lookup", "prior", "export"}:
        makers = {name: makers[name] for name in (TELLING_MAPS if of_maps else TELLING_LISTS)}
    else:
        assert len(makers) >= 40
    every = {f"honest {name}": make for name, make in honest.items()} | makers
    return {f"{name} ({role})": (role, make) for name, make in every.items()}


@pytest.fixture(
    scope="module",
    params=[["shapes"], ["areas"], ["public"], ["lookup", "prior", "export"]],
    ids="-".join,
)
def made(request, tmp_path_factory):
    require_tracing()
    cases = {name: case for role in request.param for name, case in chosen(role).items()}
    return Traced(tmp_path_factory.mktemp(request.param[0]), cases)


def opens_nothing_but_itself_and_its_declared_parts(made):
    wrong = {name: sorted(made.opened(name) - declared(made, name)) for name in made.named}
    assert {name: paths for name, paths in wrong.items() if paths} == {}


def is_read_and_seen_to_be_read_if_honest(made):
    """Or the trace shows nothing."""
    for name in made.named:
        if name.startswith("honest"):
            assert made.ended[name][0] == 0, made.ended[name]
            assert str(made.place[name] / made.named[name]) in made.opened(name)


def is_read_as_what_it_says_or_refused_in_one_sentence(made):
    for name in made.named:
        code, said = made.ended[name]
        assert code in {0, 2}, f"{name}: {said}"
        assert "Traceback" not in said
        for secret in ("314159", "271828", "161803"):
            assert secret not in said, name


def has_nothing_written_beside_it(made):
    """As GDAL's .gfs files."""
    for place in made.place.values():
        assert not list(place.rglob("*.gfs"))
    assert {path.name for path in made.beyond.iterdir()} == {
        "people.csv", "people.parquet", "people.db", "areas.geojson", "areas.zip",
        "areas.geojson.gz", "schema.xsd",
    }  # fmt: skip


def test_a_public_file_reaches_nothing_but_itself_and_its_declared_parts(made):
    """All of one trace in one test: a sweep that leaves traces out makes no others."""
    opens_nothing_but_itself_and_its_declared_parts(made)
    is_read_and_seen_to_be_read_if_honest(made)
    is_read_as_what_it_says_or_refused_in_one_sentence(made)
    has_nothing_written_beside_it(made)
