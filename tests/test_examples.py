"""Every public name has an example in its docstring, and every example runs as it is printed."""

import doctest
import inspect

import pytest

import hedgerow as hr

NAMES = sorted(name for name in dir(hr) if not name.startswith("_"))
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.FAIL_FAST


def examples(name):
    """The examples of a public name and of its methods, with `hr` in scope."""
    value = getattr(hr, name)
    finder = doctest.DocTestFinder(exclude_empty=True)
    module = inspect.getmodule(value)
    return [
        test
        for test in finder.find(value, name, module=module, extraglobs={"hr": hr})
        if test.examples
    ]


@pytest.mark.parametrize("name", NAMES)
def test_examples_of_a_public_name_run_as_printed(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = examples(name)
    assert name in {test.name for test in found}, f"{name} has no example"
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    for test in found:
        test.globs = {"hr": hr}
        report = []
        runner.run(test, out=report.append)
        assert not runner.failures, "".join(report)
