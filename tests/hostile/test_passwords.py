"""A password is in no message, in whichever way an address was mistyped."""

import os

import pytest

import hedgerow as hr
from hedgerow.errors import LONGEST_SENTENCE, HedgerowError, presentable, without_passwords
from tests.hostile.commands import ran, write
from tests.hostile.mutations import csv, toml

SECRET = "gEh3im"  # noqa: S105 - of nobody
ADDRESSES = [
    f"postgresql:/u:{SECRET}@host/db",
    f"postgresql:u:{SECRET}@host/db",
    f"postgres//u:{SECRET}@host/db",
    f"postgresql/u:{SECRET}@host",
    f"postgresql:/u:p w{SECRET}@host",
    f"postgresql:/u:p@{SECRET}@host",
    f"postgresql:/u:p/{SECRET}@host",
    f"postgresql:/u:'{SECRET}'@host",
    f"jdbc:postgresql:/u:{SECRET}@host/db",
    f"jdbc:oracle:thin:scott/{SECRET}@host:1521:x",
    f"jdbc:sqlserver:/host;user=u;password={SECRET};encrypt=true",
    f"jdbc:postgresql:/host/db?user=u&password={SECRET}&ssl=true",
    f"u:{SECRET}@host/table.csv",
    f"host=h dbname=d user=u password={SECRET}",
    f"Driver=x,PWD={SECRET}",
    f"s3a:/key:{SECRET}@bucket/table.csv",
    f"Database=d PWD={{{SECRET};x}};Timeout=3",
    f"Database=d PWD={{x;{SECRET}",
    f"https://user:pa {SECRET}@host/x",
    f"clickhouse://u:my {SECRET}@h",
    f"sql server://u:my {SECRET}@h",
    f"http://u:{SECRET}\n@h",
    f"http:/u:my\n{SECRET}@h",
    f"me@corp:{SECRET}@host",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_mistyped_address_shows_no_password(tmp_path, address):
    tree = hr.Tree([hr.Axis.from_frame("place", {"town": ["a"]}, ["town"])])
    for read in (
        lambda: hr.Counts.from_frame(tree, address),
        lambda: hr.Axis.from_frame("place", address, ["town"]),
        lambda: hr.Query(address, "SELECT 1"),
    ):
        with pytest.raises(HedgerowError) as caught:
            read()
        assert SECRET not in f"{caught.value}{caught.value.confidential}"
    spec = {
        "table": {"source": address, "count": "n"},
        "axis": [{"name": "place", "levels": ["town"], "areas": "places.csv"}],
        "privacy": {"rho": "1/20"},
        "output": {"directory": "out"},
    }
    listed = {**spec, "axis": [{**spec["axis"][0], "areas": address}]}
    queried = {**spec, "table": {**spec["table"], "query": "SELECT 1"}}
    write(tmp_path, {"places.csv": csv({"town": ["a"]})})
    for number, each in enumerate((spec, listed, queried)):
        file = tmp_path / f"{number}.toml"
        write(tmp_path, {file.name: toml(each).encode()})
        for command in ("plan", "release", "compare"):
            _, out, err = ran(command, file)
            assert SECRET not in out + err
    for command in (("new", address, tmp_path / "new.toml"), ("check", address), ("plan", address)):
        code, out, err = ran(*command)
        assert code == 2
        assert SECRET not in out + err


@pytest.mark.parametrize("login", [f"u/{SECRET}@tns", f"(u/a/{SECRET}@//host:1521/x)"])
def test_a_login_of_oracle_alone_is_cut(login):
    """Behind a folder it cannot be told from a path."""
    assert SECRET not in without_passwords(f"cannot connect to {login}: refused")


def test_what_is_no_address_is_shown_as_it_is():
    for text in (
        "the table /data/2020/people.csv does not exist; check its path",
        "the table at postgresql://host:5432/db cannot be reached; check the URL",
        "odbc://Driver={PostgreSQL};Server=host;Database=trips",
        "write mechanism = 'discrete-laplace'; 12:30, a:b, name@host",
        os.fspath("/home/me/x@y.csv"),
    ):
        assert without_passwords(text) == text


LONG = ["a", "pwd", "pwd ", "a:", "/a:", "a/", "=a/", "oracle ", "://", "a@", "pwd={;", "'"]


@pytest.mark.parametrize("part", LONG)
def test_a_million_letters_are_read_once(part):
    """A filter that begins again at every letter would not come to its end."""
    text = part * (1_000_000 // len(part))
    for each in (text, f"u:{SECRET}@h {text}", f"{text}u:{SECRET}@h", f"PWD={SECRET} {text}"):
        shown = presentable(each)
        assert len(shown) <= LONGEST_SENTENCE + 3
        assert SECRET not in shown
