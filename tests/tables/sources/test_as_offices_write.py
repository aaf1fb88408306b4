"""CSV files as offices write them: read where they mean one thing, or refused with the cure."""

import pytest

from hedgerow import cli
from hedgerow.errors import TableError
from hedgerow.tables.axis import Axis
from hedgerow.tables.counts import Counts
from hedgerow.tables.read import read_areas
from hedgerow.tables.tree import Tree
from tests.refused import refused

LIST = {"region": ["N", "N", "S"], "town": ["01", "02", "São"]}
LEVELS = ["region", "town"]
TREE = Tree([Axis.from_frame("place", LIST, LEVELS)])
CODES = "region,town,n\nN,01,{}\nN,02,7\nS,São,1\n"
PLAIN = CODES.format(5)
MARK = b"\xef\xbb\xbf"
QUOTED = '"region","town","n"\n"N","01","5"\n"N","02","7"\n"S","São","1"\n'

READ = {
    "plain": PLAIN.encode(),
    "byte order mark": MARK + PLAIN.encode(),
    "byte order mark before a quote": MARK + QUOTED.encode(),
    "quotes": QUOTED.encode(),
    "semicolons": PLAIN.replace(",", ";").encode(),
    "tabs": PLAIN.replace(",", "\t").encode(),
    "bars": PLAIN.replace(",", "|").encode(),
    "Windows": PLAIN.replace("\n", "\r\n").encode(),
    "blank lines at the end": f"{PLAIN}\n\n".encode(),
    "spaces around numbers": CODES.format(" 5 ").encode(),
    "decimal comma": CODES.format("5,0").replace(",", ";").replace("5;0", "5,0").encode(),
    "quoted decimal comma": CODES.format('"5,0"').encode(),
}


@pytest.mark.parametrize("content", READ.values(), ids=READ)
def test_what_means_one_thing_is_read_as_table_and_as_list(content, tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    assert Counts.from_frame(TREE, path, count="n").values.tolist() == [5, 7, 1]
    assert sorted(read_areas(path, LEVELS)["town"]) == sorted(LIST["town"])


FILES = {
    "UTF-16": (PLAIN.encode("utf-16"), "is UTF-16 text; save it as UTF-8"),
    "UTF-16, big": (b"\xfe\xff" + PLAIN.encode("utf-16-be"), "is UTF-16 text; save it as UTF-8"),
    "Excel's line": (f"sep=;\n{PLAIN}".encode(), "begins with a line for Excel alone, sep=…; del"),
    "its last line alone": (b"sep=;", "begins with a line for Excel alone, sep=…; del"),
    "a title": (f"Trips in 2021\n{PLAIN}".encode(), "has no column '(town|region)'"),
    "spaces in names": (
        b"region, town, n\nN, 01, 5\n",
        r"no column 'town'; did you mean ' town'\?",
    ),
}


@pytest.mark.parametrize(("content", "words"), FILES.values(), ids=FILES)
def test_a_file_of_another_form_is_refused_with_the_cure(content, words, tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(TableError, match=words):
        Counts.from_frame(TREE, path, count="n")
    with pytest.raises(TableError, match=words):
        read_areas(path, LEVELS)


def test_a_table_may_have_a_column_that_begins_like_excels_line(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("sep=town,region,town,n\nx,N,01,5\n")
    assert Counts.from_frame(TREE, path, count="n").total == 5


RECORDS = {
    "Latin-1": (PLAIN.encode("latin-1"), "is not UTF-8 text .Latin-1 .*; save it as UTF-8"),
    "a thousand or a fraction": (CODES.format('"1,234"').encode(), "may be a thousand or a frac"),
    "a comma too many": (CODES.format("1,234").encode(), "same number of fields .* quotes around"),
    "a footnote": (f"{PLAIN}Source: the office\n".encode(), "the same number of fields"),
    "suppressed": (CODES.format("..").encode(), "text that is no number; counts must be whole"),
    "R's missing value": (CODES.format("NA").encode(), "text that is no number"),
    "nothing": (CODES.format("").encode(), "a row without a value; write 0 where"),
    "a space": (PLAIN.replace("01", "01 ").encode(), "look for lost leading zeros, spaces"),
}


@pytest.mark.parametrize(("content", "words"), RECORDS.values(), ids=RECORDS)
def test_a_table_is_refused_for_a_record_with_the_cure(content, words, tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with refused(words) as caught:
        Counts.from_frame(TREE, path, count="n")
    assert "strict_mode" not in caught.value.confidential
    assert "Possible fixes" not in caught.value.confidential


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("1", "; the list has '01'"),
        ("01\u00a0", "; the list has '01'"),
        ("'01", "; the list has '01'"),
        ('"=""01"""', "; the list has '01'"),
        ("sa\u0303o", "; the list has 'São'"),
        ("Sa\u0303o", "; the list has 'São', accents written in another way"),
        ("03", "town '03')"),
    ],
)
def test_a_terminal_names_the_code_that_a_programs_spelling_stands_for(code, words, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(f"town\n{code}\n", encoding="utf-8")
    with refused("holds a code that is not in the public list") as caught:
        Counts.from_frame(TREE, path)
    assert words in caught.value.confidential


RELEASE = """
[table]
source = "secret.csv"
count = "n"
[[axis]]
name = "place"
areas = "towns.csv"
levels = ["region", "town"]
[privacy]
epsilon = 1
delta = 1e-8
[output]
directory = "out"
"""


@pytest.mark.parametrize("command", ["plan", "release"])
@pytest.mark.parametrize("content", [each for each, _ in RECORDS.values()], ids=RECORDS)
def test_no_record_is_quoted_where_the_output_is_no_terminal(
    command, content, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    secret = content.replace(b"02", b"Zq9").replace(b",7", b",70707").replace(b"Source", b"Zq8")
    (tmp_path / "secret.csv").write_bytes(secret)
    (tmp_path / "towns.csv").write_text("region,town\nN,01\nN,02\nS,São\n", encoding="utf-8")
    (tmp_path / "release.toml").write_text(RELEASE)
    code = cli.run([command, "release.toml"])
    said = "".join(capsys.readouterr())
    assert code == (0 if command == "plan" else 2)
    for secret_word in (
        "Zq",
        "70707",
        "1,234",
        "is confidential: it" if command == "plan" else "Zq",
    ):
        assert secret_word not in said
    assert not (tmp_path / "out").exists()
