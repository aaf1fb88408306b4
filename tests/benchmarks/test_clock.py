"""Benchmarks time answers to new questions, and never what was kept of an earlier one."""

import ast
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import benchmarks.clock
from benchmarks.clock import Clock, Timed, fastest, forget
from hedgerow.kernels import _threads
from hedgerow.noise.mechanisms import DiscreteGaussian
from hedgerow.privacy.accountant.accountant import delta_bounds
from hedgerow.privacy.profile import compose

FOLDER = Path(benchmarks.clock.__file__).parent
TAKES_NO_TIMES = {"clock.py": "the one place", "page.py": "all of a benchmark", "run.py": "all"}
ELSEWHERE = {"report.py": ["opened"], "oracle_large.py": ["timed"]}
"""What times another program, a browser or a process that starts anew and keeps nothing."""


def test_the_fastest_of_turns_is_kept_and_the_first_is_not_counted(monkeypatch):
    ticks = iter([0, 1, 0, 1, 0, 7, 10, 13, 20, 25, 30, 34])  # a, b, a, b, a, b on the clock
    known = SimpleNamespace(perf_counter=lambda: next(ticks), process_time=lambda: 0)
    monkeypatch.setattr("benchmarks.clock.time", known)  # and no other thread's clock
    done = []
    tasks = {name: lambda k, name=name: done.append((name, k)) for name in ("a", "b")}
    found = fastest(tasks, [5, 6, 7])
    assert done == [(name, k) for k in (5, 6, 7) for name in ("a", "b")]
    assert (found["a"].wall, found["b"].wall) == (5, 3)


def test_what_a_timed_task_returns_is_kept_with_its_seconds(monkeypatch):
    wall, processor = iter([2, 5]), iter([10, 14])
    known = SimpleNamespace(perf_counter=lambda: next(wall), process_time=lambda: next(processor))
    monkeypatch.setattr("benchmarks.clock.time", known)
    assert Clock().timed("a", lambda k: k + 1, 4) == (Timed(3, 4), 5)


@pytest.mark.parametrize(
    "question",
    [
        lambda: 1.5,
        lambda: (Fraction(1, 3), "1e-8"),
        lambda: np.arange(1000),
        lambda: [np.arange(3), {"σ²": Fraction(2)}],
        lambda: DiscreteGaussian("456.62"),
    ],
    ids=["float", "tuple", "array", "nested", "mechanism"],
)
def test_an_equal_question_is_refused_though_it_is_another_object(question):
    clock = Clock()
    clock.timed("ours", lambda _: None, question())
    clock.timed("theirs", lambda _: None, question())
    with pytest.raises(ValueError, match="ours was asked this before"):
        clock.timed("ours", lambda _: None, question())
    with pytest.raises(ValueError, match="asked this before"):
        fastest({"ours": lambda _: None}, [question(), question()])


def test_a_question_that_has_kept_something_since_is_still_the_same():
    clock, question = Clock(), compose([(DiscreteGaussian(7), 3)])
    clock.timed("ours", lambda profile: profile.delta(2), question)
    assert "losses" in vars(question)
    with pytest.raises(ValueError, match="asked this before"):
        clock.timed("ours", lambda profile: profile.delta(2), question)


def test_questions_that_differ_slightly_are_all_asked():
    asked = [np.full(3, 1 + k * 1e-9) for k in range(4)]
    found = []
    fastest({"ours": found.append}, asked)
    assert len(found) == 4


def test_one_question_has_no_fastest_run():
    with pytest.raises(ValueError, match="at least two"):
        fastest({"ours": lambda _: None}, [1])


def test_what_a_function_of_hedgerow_kept_is_thrown_away_before_a_run():
    profile = compose([(DiscreteGaussian(20), 2)])
    profile.delta(1)
    assert delta_bounds.cache_info().currsize > 0

    def task(_):
        assert delta_bounds.cache_info().currsize == 0
        profile.delta(1)
        return delta_bounds.cache_info()

    _, known = Clock().timed("ours", task, 0)
    assert (known.hits, known.misses) == (0, 1)


def test_what_no_question_is_asked_of_stays():
    before = _threads()
    forget()
    assert _threads() is before


def test_no_benchmark_takes_times_of_its_own():
    """So none can repeat a question: `Clock` refuses it."""
    for path in FOLDER.glob("*.py"):
        if path.name in TAKES_NO_TIMES:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name in ELSEWHERE.get(path.name, []):
                node.body = []
        named = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        named |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        assert not named & {"perf_counter", "process_time", "monotonic", "timeit"}, path.name
