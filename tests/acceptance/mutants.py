"""How many small faults in the code its tests see, by a seed, over all rooms.

Each fault changes one operator, one number, one condition or one returned value of ``src``. It runs
in a copy of the tree against the tests that call the function that it is in, or, of a compiled
kernel, that calls this kernel: first those of the same room. A test that fails has seen the fault.

``python -m tests.acceptance.mutants record calls.json`` runs all tests once and writes
which functions each of them calls. ``python -m tests.acceptance.mutants run calls.json [faults]
[seed]`` prints a line a fault, and the share of those that were seen.
"""

import ast
import atexit
import builtins
import json
import os
import random
import shutil
import subprocess
import sys
from collections import defaultdict
from copy import deepcopy
from importlib.machinery import PathFinder, SourceFileLoader
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
HOUSE = "src/hedgerow"
REST = "HEDGEROW_REST_OF_SWEEPS"
CALLS = "HEDGEROW_CALLS"
"""The folder that tests are to write into which functions they call."""
PATIENCE = 900
"""Seconds for some tests of one fault; a fault that takes longer is seen: a test does not end."""
AT_ONCE = 40
"""Tests of one start of pytest: a fault is mostly seen by the first ones."""

SWAPS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Pow: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


def changed(node):
    """The same expression with a fault; None where none is made."""
    node = deepcopy(node)
    if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        node.ops[0] = SWAPS[type(node.ops[0])]()
    elif isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in SWAPS:
        node.op = SWAPS[type(node.op)]()
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        node = node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        node.value = not node.value
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        node.value += 1
    else:
        return None
    return ast.unparse(node)


def is_kernel(function):
    """Whether a function is compiled, so that nothing sees it being called."""
    decorators = [ast.unparse(decorator) for decorator in function.decorator_list]
    return any("kernel" in name or "compiled" in name for name in decorators)


def faults_in(path):
    """Every fault of a module: its function, where it stands, and what stands there instead."""
    left_out = (ast.Raise, ast.Assert, ast.AnnAssign, ast.arguments, ast.JoinedStr)

    def below(node, function):
        for name, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                if not isinstance(child, ast.AST) or isinstance(child, left_out):
                    continue
                if name in {"annotation", "returns", "decorator_list"}:
                    continue
                inside = child if isinstance(child, ast.FunctionDef) else function
                if function is not None and isinstance(child, ast.expr) and changed(child):
                    yield function, child, f"({changed(child)})"
                if isinstance(node, ast.Return) and function is not None:
                    yield function, child, "None"
                yield from below(child, inside)

    return list(below(ast.parse(path.read_text()), None))


def first_line(function):
    """The line that Python says a function begins at: of its first decorator."""
    return min([function.lineno, *(d.lineno for d in function.decorator_list)])


def drawn(seed, many):
    """So many faults, from one room after the other."""
    rooms = defaultdict(list)
    for path in sorted((ROOT / HOUSE).rglob("*.py")):
        place = path.relative_to(ROOT / HOUSE)
        rooms[place.parts[0] if len(place.parts) > 1 else ""].append(path)
    rng, names = random.Random(seed), sorted(rooms)
    every = {name: [(p, *fault) for p in rooms[name] for fault in faults_in(p)] for name in names}
    return [rng.choice(every[name]) for k in range(many) if every[name := names[k % len(names)]]]


def callers_of_kernels():
    """For each name of a kernel the functions, not compiled, that come to call it."""
    users, compiled = defaultdict(set), set()
    for path in (ROOT / HOUSE).rglob("*.py"):
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef):
                own = function.name if is_kernel(function) else place_of(path, function)
                compiled |= {own} if is_kernel(function) else set()
                for node in ast.walk(function):
                    if isinstance(node, ast.Name | ast.Attribute):
                        name = node.id if isinstance(node, ast.Name) else node.attr
                        users[name].add(own)
    found = {}
    for kernel in compiled:
        pending, seen = [kernel], set()
        while pending:
            for user in users[pending.pop()] - seen:
                seen.add(user)
                pending += [user] if user in compiled else []
        found[kernel] = seen - compiled
    return found


def place_of(path, function):
    """What a function is known by in a record of calls."""
    return f"{path.relative_to(ROOT).as_posix()}:{first_line(function)}"


def is_seen(path, node, instead, tests):
    """Whether one of these tests fails with this fault in the code; and which."""
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "tree"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv", "demo", "site"))
        (copy / ".venv").symlink_to(ROOT / ".venv")
        file = copy / path.relative_to(ROOT)
        lines = [line.encode() for line in file.read_text().splitlines(keepends=True)]
        before = b"".join(lines[: node.lineno - 1]) + lines[node.lineno - 1][: node.col_offset]
        after = lines[node.end_lineno - 1][node.end_col_offset :]
        after += b"".join(lines[node.end_lineno :])
        file.write_bytes(before + instead.encode() + after)
        given = {**os.environ, REST: "all", "PYTHONPATH": f"{copy}:{copy / 'src'}"}
        options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly"]
        for start in range(0, len(tests), AT_ONCE):
            some = tests[start : start + AT_ONCE]
            command = [sys.executable, "-m", "pytest", *options, *some]
            try:
                done = subprocess.run(command, cwd=copy, env=given, capture_output=True, text=True,
                                      timeout=PATIENCE, check=False)  # fmt: skip
            except subprocess.TimeoutExpired:
                return "a test that does not end"
            if done.returncode not in {0, 1, 2}:
                raise RuntimeError(done.stdout + done.stderr)
            if done.returncode:
                lines = done.stdout.splitlines()
                return next((x for x in lines if x.startswith(("FAILED", "ERROR"))), done.stdout)
    return ""


def run(record, many=60, seed=1):
    """Print a line a fault, and how many were seen."""
    calls, kernels = json.loads(Path(record).read_text()), callers_of_kernels()
    seen = 0
    for path, function, node, instead in drawn(seed, many):
        users = kernels[function.name] if is_kernel(function) else [place_of(path, function)]
        room = path.relative_to(ROOT / HOUSE).parts[0]
        tests = sorted({test for user in users for test in calls.get(user, ())},
                       key=lambda test: (f"tests/{room}" not in test, test))  # fmt: skip
        by = is_seen(path, node, instead, tests)
        seen += bool(by)
        where = f"{path.relative_to(ROOT)}:{node.lineno} {ast.unparse(node)} -> {instead}"
        sys.stdout.write(f"{where}: {by or 'NOT SEEN'} (of {len(tests)} tests)\n")
        sys.stdout.flush()
    sys.stdout.write(f"{seen} of {many} seen\n")


def record(file):
    """Run all tests, and write for each function of ``src`` the tests that call it."""
    with TemporaryDirectory() as folder:
        options = ["-q", "-n", "3", "--dist", "loadgroup", "-p", "tests.acceptance.mutants"]
        subprocess.run([sys.executable, "-m", "pytest", *options], cwd=ROOT, check=False,
                       env={**os.environ, CALLS: folder})  # fmt: skip
        calls = defaultdict(set)
        for part in Path(folder).iterdir():
            for function, tests in json.loads(part.read_text()).items():
                calls[function] |= set(tests)
        Path(file).write_text(json.dumps({place: sorted(tests) for place, tests in calls.items()}))


if CALLS in os.environ and __name__ != "__main__":
    _calls: dict[str, set[str]] = defaultdict(set)
    _now: set[str] = set()

    class _Noted(SourceFileLoader):
        """Modules whose functions say that they are called; compiled ones stay as they are."""

        def get_code(self, fullname):  # noqa: ARG002 - a name that Python gives
            path = Path(self.path)
            tree, file = ast.parse(path.read_text()), HOUSE + self.path.rpartition(HOUSE)[2]

            def below(node):
                for child in ast.iter_child_nodes(node):
                    if not isinstance(child, ast.FunctionDef):
                        below(child)
                    elif not is_kernel(child):
                        below(child)
                        has_docstring = ast.get_docstring(child) is not None
                        said = ast.parse(f"__note__('{file}:{first_line(child)}')").body[0]
                        for each in ast.walk(said):  # lines stay where they are
                            ast.copy_location(each, child.body[0])
                        child.body.insert(has_docstring, said)

            below(tree)
            # a global, which goes with functions that are sent to other processes (Spark's)
            known = ast.parse("__note__ = __import__('builtins').__note__").body[0]
            for each in ast.walk(known):
                ast.copy_location(each, tree.body[0])
            tree.body.insert(1 if ast.get_docstring(tree) is not None else 0, known)
            return compile(tree, self.path, "exec")

    class _Finder(PathFinder):
        @classmethod
        def find_spec(cls, fullname, path=None, target=None):
            spec = super().find_spec(fullname, path, target)
            is_ours = fullname.partition(".")[0] == "hedgerow"
            if is_ours and spec is not None and spec.origin and spec.origin.endswith(".py"):
                spec.loader = _Noted(fullname, spec.origin)
            return spec

    builtins.__note__ = _now.add  # type: ignore[attr-defined]
    sys.meta_path.insert(0, _Finder)

    def pytest_runtest_logstart(nodeid, location):  # noqa: ARG001 - names that pytest gives
        """Begin to note what a test calls, from its fixtures on."""
        _now.clear()

    def pytest_runtest_logfinish(nodeid, location):  # noqa: ARG001
        """Keep what a test called."""
        name, _, group = nodeid.rpartition("@")  # the group that pytest-xdist adds
        name = name if name and "]" not in group else nodeid
        for place in _now:
            _calls[place].add(name)

    @atexit.register
    def _write():
        if _calls:
            text = json.dumps({place: sorted(tests) for place, tests in _calls.items()})
            (Path(os.environ[CALLS]) / f"{os.getpid()}.json").write_text(text)


if __name__ == "__main__":
    {"record": record, "run": run}[sys.argv[1]](sys.argv[2], *map(int, sys.argv[3:]))
