"""The map of the rooms: who may import whom."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "hedgerow"
ROOMS = [
    "tables",
    "noise",
    "privacy",
    "estimate",
    "plan",
    "distribution",
    "release",
    "spark",
    "evaluate",
]
SHARED_GROUND = {"arrays", "errors", "kernels", "machine", "picture", "text"}
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


@pytest.mark.parametrize(
    "path",
    [path for path in MODULES if path != SOURCE / "__init__.py"],
    ids=lambda p: str(p.relative_to(SOURCE)),
)
def test_a_folder_imports_only_from_those_above_it(path):
    room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    above = ROOMS[: ROOMS.index(room)] if room in ROOMS else BESIDE_THE_ROOMS.get(room, [])
    own = set() if room in SHARED_GROUND else {room}
    assert imported_rooms(path) - {VERSION} <= SHARED_GROUND | own | set(above), path


@pytest.mark.parametrize(
    "path",
    [path for path in MODULES if path.relative_to(SOURCE).parts[0] not in {"evaluate", "examples"}],
    ids=lambda p: str(p.relative_to(SOURCE)),
)
def test_only_simulations_and_examples_know_seeds(path):
    """Release noise comes from the cryptographic generator alone."""
    text = path.read_text()
    for word in ("np.random", "numpy.random", "default_rng", "import random", "from random"):
        assert word not in text, f"{path} mentions {word}"


def test_the_map_names_every_room():
    folders = {path.name for path in SOURCE.iterdir() if path.is_dir()}
    assert folders - {"__pycache__"} == set(ROOMS) | set(BESIDE_THE_ROOMS)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_only_noise_asks_which_mechanism_it_has(path):
    """A mechanism owns what is special about it; whoever asked would forget one of one's own."""
    if path.relative_to(SOURCE).parts[0] == "noise":
        return
    kinds = {"DiscreteGaussian", "DiscreteLaplace"}
    for node in ast.walk(ast.parse(path.read_text())):
        asks = isinstance(node, ast.Compare | ast.MatchClass) or (
            isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance"
        )
        named = {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
        assert not (asks and named & kinds), f"{path}:{node.lineno}"
