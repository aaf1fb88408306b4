"""Small input asks for little: memory, time and words, whichever command it is given to."""

import os
import resource
import shutil
import signal
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.hostile.commands import ran, write
from tests.hostile.mutations import TABLES, Literal, toml

MEMORY = 1 << 31
SECONDS = 60
LONGEST = 1_000
"""Letters of a refusal; a list of what there is may be in it."""


@contextmanager
def limited():
    """Two gigabytes more than there are now, and a minute."""

    def late(_number, _frame):
        raise AssertionError("it took longer than a minute")

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, before[1]))
    signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        resource.setrlimit(resource.RLIMIT_AS, before)


def refused(*arguments, words=""):
    """A command refuses what it is given, in a sentence."""
    with limited():
        code, _, err = ran(*arguments)
    assert code == 2, (arguments, err)
    assert "internal error" not in err
    assert err.count("Error: ") == 1
    assert words in err
    assert len(err) < LONGEST, err[:200]
    return err


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A release and the files that it is of, and a large file beside."""
    folder = tmp_path_factory.mktemp("made")
    spec, files = TABLES["people"]
    write(folder / "release", {**files, "release.toml": toml(spec).encode()})
    assert ran("release", folder / "release" / "release.toml")[0] == 0
    (folder / "large").write_bytes(b"# " + b"x" * (1 << 25))
    return folder


@pytest.fixture
def here(made, tmp_path, monkeypatch):
    """The same in a folder that may be spoiled, with odd files beside."""
    shutil.copytree(made / "release", tmp_path / "here")
    os.link(made / "large", tmp_path / "here" / "large")
    monkeypatch.chdir(tmp_path / "here")
    os.mkfifo("pipe")
    os.mkdir("folder")  # noqa: PTH102
    return tmp_path / "here"


ODD_FILES = ["/dev/zero", "/dev/urandom", "/dev/null", "pipe", "folder", "large"]
COMMANDS = {
    "plan": ["plan", "{}"],
    "release": ["release", "{}"],
    "compare": ["compare", "{}"],
    "simulate": ["simulate", "{}"],
    "account": ["account", "{}"],
    "estimate": ["estimate", "{}"],
    "new": ["new", "{}", "new.toml"],
    "check": ["check", "{}"],
    "table": ["table", "{}", "--depth", "0"],
    "report": ["report", "{}", "--output", "page.html"],
    "distribution": ["distribution", "{}"],
    "funds": ["funds", "{}", "--level", "town", "--amount", "1"],
    "ledger show": ["ledger", "show", "{}"],
    "ledger open": ["ledger", "open", "{}", "--rho", "1"],
}


LARGE_MAY_BE = {"new"}  # A table may be large: its header alone is read.


@pytest.mark.parametrize(
    ("command", "odd"),
    [
        (command, odd)
        for command in COMMANDS
        for odd in ODD_FILES
        if not (odd == "large" and command in LARGE_MAY_BE)
    ],
)
@pytest.mark.usefixtures("here")
def test_what_is_no_plain_file_is_refused_as_any_argument(command, odd):
    refused(*(odd if word == "{}" else word for word in COMMANDS[command]))


def spec_with(**sections):
    """The release file of people with some sections changed."""
    spec, _ = TABLES["people"]
    spec = {name: dict(part) if isinstance(part, dict) else part for name, part in spec.items()}
    for name, part in sections.items():
        spec[name] = {**spec.get(name, {}), **part} if isinstance(part, dict) else part
    return spec


AXIS = TABLES["people"][0]["axis"][0]
INSIDE = {
    "table": lambda odd: spec_with(table={"source": odd}),
    "areas": lambda odd: spec_with(axis=[{**AXIS, "areas": odd}]),
    "prior": lambda odd: spec_with(allocation={"prior": {"source": odd, "public": True}}),
    "ledger": lambda odd: spec_with(ledger={"database": odd, "dataset": "d"}),
    "database": lambda odd: spec_with(
        table={"source": f"sqlite:///{odd}", "query": "SELECT * FROM t"}
    ),
    "simulate": lambda odd: {
        "simulate": {"public": True, "release": odd, "table": {"source": "table.csv"}}
    },
    "public table": lambda odd: {
        "simulate": {"public": True, "release": "release.toml", "table": {"source": odd}}
    },
    "measurement": lambda odd: {
        "axis": [{k: AXIS[k] for k in ("name", "levels", "areas")}],
        "measurement": [{"level": "town", "source": odd}],
    },
    "measured areas": lambda odd: {
        "axis": [{"name": "home", "levels": ["region", "town"], "areas": odd}],
        "measurement": [{"level": "town", "source": "table.csv"}],
    },
}
COMMAND_OF = {"simulate": "simulate", "public table": "simulate"}
COMMAND_OF |= {"measurement": "estimate", "measured areas": "estimate"}


@pytest.mark.parametrize("odd", [odd for odd in ODD_FILES if odd != "large"])
@pytest.mark.parametrize("place", INSIDE)
def test_what_is_no_plain_file_is_refused_wherever_a_file_names_it(here, place, odd):
    (here / "odd.toml").write_text(toml(INSIDE[place](odd)))
    refused(COMMAND_OF.get(place, "release"), "odd.toml")


@pytest.mark.parametrize("odd", ["/dev/zero", "pipe", "folder"])
@pytest.mark.parametrize("name", ["manifest.json", "counts/cuboid=0.parquet", "report.html"])
def test_what_is_no_plain_file_is_refused_within_a_release(here, name, odd):
    place = here / "out" / name
    place.unlink()
    place.symlink_to((here / odd).resolve())
    refused("check", "out")
    if name != "report.html":
        refused("table", "out", "--depth", "0")


NUMBERS = [
    "1e-400", "1e-300", "1e-1000", "1e400", "1e999999999", "1e-999999999", "9" * 5000,
    "0x" + "f" * 5000, "0." + "3" * 5000, "-1", "0", "nan", "inf", '"' + "9" * 5000 + '"',
    '"1e-400"', '"1e999999999"', '"' + "1/" * 4000 + '"', "[" * 5000 + "]" * 5000,
]  # fmt: skip


def promised(**privacy):
    """The release file of people with another section [privacy]."""
    return {**spec_with(), "privacy": {"contributions": 2, **privacy}}


WHERE = {
    "epsilon": lambda n: promised(epsilon=n, delta="1e-6"),
    "delta": lambda n: promised(epsilon=1, delta=n),
    "pure epsilon": lambda n: promised(epsilon=n, mechanism="discrete-laplace"),
    "rho": lambda n: spec_with(privacy={"rho": n}),
    "contributions": lambda n: spec_with(privacy={"contributions": n}),
    "shares": lambda n: spec_with(allocation={"method": "shares", "shares": [n, n, n]}),
    "ratio": lambda n: spec_with(allocation={"method": "fair", "ratio": n}),
    "penalty": lambda n: spec_with(estimate={"method": "sparse", "penalty": n}),
    "bins": lambda n: spec_with(axis=[{"name": "x", "low": 0, "high": 1, "bins": n}]),
    "low": lambda n: spec_with(axis=[{"name": "x", "low": n, "high": n, "bins": 5}]),
}


@pytest.mark.parametrize("place", WHERE)
@pytest.mark.parametrize("number", NUMBERS, ids=lambda n: n[:12])
@pytest.mark.sweep(4)
def test_a_number_of_any_length_or_size_is_told_in_few_words(here, place, number):
    (here / "odd.toml").write_text(toml(WHERE[place](Literal(number))))
    with limited():
        code, _, err = ran("plan", "odd.toml")
    assert code in {0, 2}, err
    assert "internal error" not in err
    assert len(err) < LONGEST


@pytest.mark.parametrize("key", ["sigma2", "scale", "epsilon", "delta", "times", "shift"])
@pytest.mark.parametrize("number", NUMBERS, ids=lambda n: n[:12])
def test_an_account_of_any_number_is_told_in_few_words(here, key, number):
    kind = {"sigma2": "discrete-gaussian", "scale": "discrete-laplace"}.get(key, "guarantee")
    given = {"mechanism": kind, **({} if kind != "guarantee" else {"epsilon": 1})}
    (here / "odd.toml").write_text(toml({"use": [{**given, key: Literal(number)}]}))
    with limited():
        code, _, err = ran("account", "odd.toml")
    assert code in {0, 2}, err
    assert "internal error" not in err
    assert len(err) < LONGEST


@pytest.mark.parametrize("bins", [10**7, 2**20 + 1, 2**29, 2**30])
def test_more_bins_than_a_release_can_hold_are_refused_before_any_is_made(here, bins):
    axis = {"name": "x", "low": 0, "high": 1, "bins": bins}
    (here / "odd.toml").write_text(toml(spec_with(axis=[axis])))
    refused("plan", "odd.toml", words="from 2 to 2^20, got")


LONG = "x" * 10_000
LONG_TEXTS = {
    "key": {**spec_with(), LONG: 1},
    "key of a section": spec_with(table={LONG: 1}),
    "key with gaps": spec_with(table={"x y " * 2_500: 1}),
    "name": spec_with(axis=[{**AXIS, "name": LONG}]),
    "level": spec_with(axis=[{**AXIS, "levels": [LONG]}]),
    "column": spec_with(axis=[{**AXIS, "columns": [LONG, LONG]}]),
    "leaf": spec_with(axis=[{**AXIS, "not_stated": LONG}]),
    "unit": spec_with(table={"unit": LONG}),
    "source": spec_with(table={"source": LONG}),
    "directory": spec_with(output={"directory": LONG}),
    "method": spec_with(estimate={"method": LONG}),
    "refine": spec_with(tree={"refine": [LONG]}),
    "importance": spec_with(allocation={"importance": {LONG: 1}}),
    "deep": spec_with(table={"source": Literal("{a=" * 900 + "1" + "}" * 900)}),
    "many": spec_with(table={"source": Literal("[" + "1," * 400_000 + "]")}),
}


@pytest.mark.parametrize("name", LONG_TEXTS)
def test_long_names_and_deep_nesting_are_not_echoed(here, name):
    (here / "odd.toml").write_text(toml(LONG_TEXTS[name]))
    err = (
        refused("plan", "odd.toml")
        if name not in {"source", "directory", "unit"}
        else refused("release", "odd.toml")
    )
    assert "x" * 210 not in err
    if name == "many":  # each would be told of by pydantic, at a thousand bytes
        assert "has more than 131,072 values" in err


@pytest.mark.parametrize("parts", ["a", "'a'", '"a b"', "a "])
@pytest.mark.parametrize("form", ["{} = 1\n", "[{}]\n", "[[{}]]\n", "t = {{{} = 1}}\n"])
def test_a_key_of_many_parts_is_refused_before_it_is_read(here, parts, form):
    """The parser of Python keeps every beginning of it."""
    (here / "odd.toml").write_text(form.format(".".join([parts] * 50_000)))
    refused("plan", "odd.toml", words="has a key of more than 32 parts")


@pytest.mark.parametrize("form", ['a = "{}"\n', "{} = 1\n", "# {}\n[{}]\n"])
def test_a_long_word_is_looked_through_once(here, form):
    """Letter by letter it took hours for a file of 2 MB."""
    (here / "odd.toml").write_text(form.format("x" * 1_900_000, "x"))
    refused("plan", "odd.toml")


@pytest.mark.parametrize("option", ["--level", "--depth", "--by"])
@pytest.mark.parametrize("value", [LONG, "x y " * 2_500], ids=["one word", "words"])
def test_a_long_option_is_not_echoed(here, option, value):
    del here
    refused("table", "out", option, value)


def test_a_manifest_that_is_deep_or_large_is_refused(here):
    for text in ("[" * 100_000, '{"a":' * 100_000, "[" + "0," * 9_000_000):
        (here / "out" / "manifest.json").write_text(text)
        for command in ("check", "account", "distribution"):
            refused(command, "out")
