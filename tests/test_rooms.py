"""The map of the rooms: who may import whom."""

import ast
from pathlib import Path

from hedgerow.noise.mechanisms import MECHANISMS

SOURCE = Path(__file__).parents[1] / "src" / "hedgerow"
ROOMS = [
    "tables",
    "noise",
    "privacy",
    "estimate",
    "plan",
    "distribution",
    "release",
    "export",
    "spark",
    "evaluate",
]
SHARED_GROUND = {
    "arrays",
    "columns",
    "declared",
    "errors",
    "kernels",
    "limits",
    "machine",
    "notebook",
    "pages",
    "picture",
    "text",
}
BESIDE_THE_ROOMS = {"spec": ROOMS, "examples": ROOMS, "cli": [*ROOMS, "spec", "examples"]}
VERSION = "__version__"
MODULES = sorted(SOURCE.rglob("*.py"))


def imported_rooms(path: Path) -> set[str]:
    """The first name below ``hedgerow`` of every import in a file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("hedgerow.")}
    return found


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def test_a_folder_imports_only_from_those_above_it():
    wrong = {}
    for path in MODULES:
        if path == SOURCE / "__init__.py":
            continue
        room = room_of(path)
        above = ROOMS[: ROOMS.index(room)] if room in ROOMS else BESIDE_THE_ROOMS.get(room, [])
        own = set() if room in SHARED_GROUND else {room}
        found = imported_rooms(path) - {VERSION} - SHARED_GROUND - own - set(above)
        if found:
            wrong[name_of(path)] = found
    assert wrong == {}


def test_only_simulations_and_examples_know_seeds():
    """Release noise comes from the cryptographic generator alone."""
    words = ("np.random", "numpy.random", "default_rng", "import random", "from random")
    wrong = [
        f"{name_of(path)} mentions {word}"
        for path in MODULES
        for word in words
        if room_of(path) not in {"evaluate", "examples"} and word in path.read_text()
    ]
    assert wrong == []


def test_the_map_names_every_room():
    folders = {path.name for path in SOURCE.iterdir() if path.is_dir()}
    assert folders - SHARED_GROUND - {"__pycache__"} == set(ROOMS) | set(BESIDE_THE_ROOMS)


def test_only_noise_asks_which_mechanism_it_has():
    """A mechanism owns what is special about it; whoever asked would forget one of one's own."""
    kinds, wrong = {kind.__name__ for kind in MECHANISMS.values()}, []
    for path in MODULES:
        if room_of(path) == "noise":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            asks = isinstance(node, ast.Compare | ast.MatchClass) or (
                isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance"
            )
            if asks and kinds & {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}:
                wrong.append(f"{name_of(path)}:{node.lineno}")
    assert wrong == []


def folders_imported() -> dict[str, set[str]]:
    """For each folder of the package the folders whose modules its own import."""
    found: dict[str, set[str]] = {}
    for path in MODULES:
        own = found.setdefault(path.parent.relative_to(SOURCE).as_posix(), set())
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                place = SOURCE.joinpath(*node.module.split(".")[1:])
                folder = place if place.is_dir() else place.parent
                own.add(folder.relative_to(SOURCE).as_posix() if SOURCE in folder.parents else ".")
    return found


KNOWN_CYCLES = {
    ("release/answers", "release/directory"): "check makes a release's counts again",
    ("release/directory", "release/page"): "check makes a release's page again",
    ("tables/codes", "tables/sources"): "rules for codes read a column as sources do",
}


def test_no_two_folders_import_each_other_but_those_that_are_named():
    """A folder and the one that it lies in are one room; of any others one comes first."""
    found = folders_imported()
    pairs = {
        (one, other)
        for one, imported in found.items()
        for other in imported
        if one < other and one in found.get(other, ()) and not other.startswith(f"{one}/")
    }
    assert {pair for pair in pairs if pair[0] != "."} == set(KNOWN_CYCLES)
