"""Offices' code lists as their publishers ship them: from file to checked release, no table edited.

The files are rebuilt in the publishers' shape with invented codes and rows; columns, order and what
is odd about them (headings, repeated rows, leaf codes alone) are theirs.
"""

import csv

import polars as pl
import pytest

PROMISE = '[privacy]\ncontributions = 1\nepsilon = 1\ndelta = "1e-6"\n'


@pytest.fixture
def released(succeeds, tmp_path):
    """Release and check a release file of few lines; return what a table of it shows."""

    def made(text, *shown):
        file = tmp_path / "release.toml"
        file.write_text(text + PROMISE)
        assert len(file.read_text().splitlines()) <= 25
        for command in (("release", file), ("check", tmp_path / "out")):
            succeeds(*command)
        output = tmp_path / "shown.csv"
        succeeds("table", tmp_path / "out", *shown, "--output", output)
        return pl.read_csv(output, infer_schema=False)

    return made


def write(path, header, rows):
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        csv.writer(file).writerows([header.split(","), *rows])


def test_flows_between_the_areas_of_one_list(released, tmp_path):
    """Australia: the list of areas is finer than SA2 (mesh blocks), the flows have SA2 codes."""
    header = "MB_CODE_2021,SA2_CODE_2021,SA2_NAME_2021,SA3_CODE_2021,STATE_CODE_2021,AREA_SQKM"
    areas = [(s, f"{s}01", f"{s}01{i}{i % 3}") for s in (1, 2) for i in range(6)]
    rows = [
        (f"{sa2}{b:05}", sa2, f"Town {sa2}", sa3, s, 1.5) for s, sa3, sa2 in areas for b in range(3)
    ]
    write(tmp_path / "MB_2021.csv", header, rows)
    codes = [sa2 for _, _, sa2 in areas]
    flows = [(o, d, 20 + i) for i, o in enumerate(codes) for d in codes]
    write(tmp_path / "flows.csv", "O_SA2,D_SA2,workers", flows)
    axis = (
        '[[axis]]\nname = "{}"\nlevels = ["STATE_CODE_2021", "SA3_CODE_2021", "SA2_CODE_2021"]\n'
        'columns = ["{}"]\nareas = "MB_2021.csv"\n'
    )
    text = '[table]\nsource = "flows.csv"\ncount = "workers"\n'
    text += axis.format("home", "O_SA2") + axis.format("work", "D_SA2")
    shown = released(text + '[workload]\ncuboids = "cube"\n', "--by", "home=STATE_CODE_2021")
    assert shown.columns[:2] == ["home_STATE_CODE_2021", "count"]
    assert shown["home_STATE_CODE_2021"].to_list() == ["1", "2"]


def test_ethnicity_by_small_area(released, tmp_path):
    """England: a lookup by postcode repeats each LSOA; the table has the LSOA's code alone."""
    header = "pcds,lsoa21cd,msoa21cd,ladcd,lsoa21nm,ladnm"
    areas = [(f"E0100{i:04}", f"E0200{i // 3:04}", f"E0900{i // 9:04}") for i in range(18)]
    rows = [
        (f"AB{i} {j}XY", lsoa, msoa, lad, f"Place {i}", f"Borough {lad[-1]}")
        for i, (lsoa, msoa, lad) in enumerate(areas)
        for j in range(4)
    ]
    write(tmp_path / "PCD_OA21_LSOA21_MSOA21_LAD_UK_LU.csv", header, rows)
    groups = [(g, h) for g, hs in (("A", "12"), ("B", "345")) for h in hs]
    write(tmp_path / "groups.csv", "group,ethnic", groups)
    table = [(a[0], h, 7 + i) for i, a in enumerate(areas) for _, h in groups]
    header = "Lower layer Super Output Areas Code,ethnic,Observation"
    write(tmp_path / "TS021.csv", header, table)
    text = (
        '[table]\nsource = "TS021.csv"\ncount = "Observation"\n'
        '[[axis]]\nname = "place"\nlevels = ["ladcd", "msoa21cd", "lsoa21cd"]\n'
        'columns = ["Lower layer Super Output Areas Code"]\n'
        'areas = "PCD_OA21_LSOA21_MSOA21_LAD_UK_LU.csv"\n'
        '[[axis]]\nname = "people"\nlevels = ["group", "ethnic"]\nareas = "groups.csv"\n'
        "attribute = true\n"
    )
    shown = released(text, "--level", "place.ladcd")
    assert shown["ladcd"].to_list() == ["E09000000", "E09000001"]


DIAGNOSES = [
    ("A00-A09", ""), ("A00", "A00-A09"), ("A00.0", "A00"), ("A00.1", "A00"), ("A02", "A00-A09"),
    ("A02.0", "A02"), ("A02.9", "A02"), ("A30-A49", ""), ("A35", "A30-A49"), ("A37", "A30-A49"),
    ("A37.0", "A37"), ("A37.9", "A37"),
]  # fmt: skip
STAYS = ["A00.0"] * 300 + ["A02.9"] * 200 + ["A35"] * 100 + ["A37.0"] * 50


def test_diagnoses_by_parent(released, tmp_path):
    """ICD-10: blocks, categories and subcategories in one list, some without subcategories."""
    rows = [(code, parent, f"Disease {code}") for code, parent in DIAGNOSES]
    write(tmp_path / "icd10.csv", "code,parent,title", rows)
    write(tmp_path / "stays.csv", "stay,ICD10", enumerate(STAYS))
    text = (
        '[table]\nsource = "stays.csv"\n'
        '[[axis]]\nname = "diagnosis"\nlevels = ["block", "category", "subcategory"]\n'
        'columns = ["ICD10"]\nareas = "icd10.csv"\nparent = "parent"\n'
        '[estimate]\nmeasure = "all"\n'
    )
    shown = released(text, "--level", "category")
    assert shown.columns[:2] == ["block", "category"]
    assert ("A30-A49", "A35") in shown.select("block", "category").rows()


def test_diagnoses_by_their_first_characters(released, tmp_path):
    """ICD-10 without blocks: the list has headings, the table finer codes than the list."""
    rows = [(code, f"Disease {code}") for code, _ in DIAGNOSES if "-" not in code]
    write(tmp_path / "icd10.csv", "code,title", rows)
    write(tmp_path / "stays.csv", "stay,code", enumerate([*STAYS, *["A37.01"] * 40]))
    text = (
        '[table]\nsource = "stays.csv"\n'
        '[[axis]]\nname = "diagnosis"\nlevels = ["letter", "category", "subcategory"]\n'
        'areas = "icd10.csv"\nprefix = [1, 3, 5]\n[estimate]\nmeasure = "all"\n'
    )
    shown = released(text, "--level", "subcategory")
    assert shown.columns[:3] == ["letter", "category", "subcategory"]
    found = dict(shown.select("subcategory", "count").rows())
    assert abs(int(found["A37.0"]) - 90) < 40
    assert abs(int(found["A35"]) - 100) < 40


def test_a_grid_of_one_kilometre(released, tmp_path):
    """The list has the corners of inhabited squares, the table the coordinates of homes."""
    corners = [(4_300_000 + 1_000 * i, 3_200_000 + 7_000 * j) for i in range(12) for j in range(5)]
    write(tmp_path / "grid.csv", "x,y,country", [(x, y, "XX") for x, y in corners])
    homes = [(x + 0.5 + 9 * k, y + 999.9) for x, y in corners for k in range(8)]
    table = pl.DataFrame(homes, ["x", "y"], orient="row").with_row_index("person")
    table.write_parquet(tmp_path / "homes.parquet")
    text = (
        '[table]\nsource = "homes.parquet"\n'
        '[[axis]]\nname = "square"\nlevels = ["km100", "km10", "km1"]\n'
        'areas = "grid.csv"\ndivide = [100_000, 10_000, 1_000]\ncode = ["x", "y"]\n'
        '[estimate]\nmeasure = "all"\n'
    )
    shown = released(text, "--level", "km10")
    assert shown["km10"].to_list()[0] == "4300000_3200000"
    assert abs(int(shown["count"][0]) - 8 * 10 * 2) < 60


def test_blocks_of_a_state(released, tmp_path):
    """The Bureau's list of blocks has one code; its first 2, 5, 11, 12 and 15 digits are places."""
    blocks = [
        f"44{county:03}{tract:06}{group}{block:03}"
        for county in (1, 3)
        for tract in (30100, 30200)
        for group in (1, 2)
        for block in range(3)
    ]
    write(tmp_path / "blocks.csv", "GEOID20,ALAND20", [(b, 1.25) for b in blocks])
    write(tmp_path / "people.csv", "GEOID20,n", [(b, 30 + i) for i, b in enumerate(blocks)])
    text = (
        '[table]\nsource = "people.csv"\ncount = "n"\n'
        '[[axis]]\nname = "place"\nlevels = ["state", "county", "tract", "group", "block"]\n'
        'areas = "blocks.csv"\nprefix = [2, 5, 11, 12, 15]\ncode = "GEOID20"\n'
    )
    shown = released(text, "--level", "tract")
    assert shown["tract"].to_list() == ["44001030100", "44001030200", "44003030100", "44003030200"]


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ('prefix = [1]\nparent = "p"\n', "give one of prefix, parent and divide, got prefix and"),
        ('code = "town"\n', "code goes with prefix, parent or divide"),
        ('prefix = [1]\ncode = ["a", "b"]\n', "only divide takes several"),
        ("prefix = [2, 1]\n", "prefix must ascend"),
        ("prefix = [1, 2]\n", "prefix needs one number a level (town), got 2"),
        ('parent = "up"\n', "has no column 'up'"),
        ("divide = [10]\n", "column 'town' must have a number in every row"),
    ],
)
def test_keys_that_do_not_go_together_are_refused(run, refuses, tmp_path, keys, words):
    write(tmp_path / "towns.csv", "town", [["a"], ["b"]])
    write(tmp_path / "table.csv", "town", [["a"]])
    axis = '[[axis]]\nname = "place"\nlevels = ["town"]\nareas = "towns.csv"\n'
    file = tmp_path / "release.toml"
    file.write_text(f'[table]\nsource = "table.csv"\n{axis}{keys}{PROMISE}')
    refuses(words, "plan", file)
    own = axis.replace("towns.csv", "table")
    if keys == "prefix = [2, 1]\n":
        file.write_text(f'[table]\nsource = "table.csv"\n{own}prefix = [1]\n{PROMISE}')
        assert "need a public list" in " ".join(run("plan", file)[2].split())


def test_names_stand_beside_codes_on_a_terminal_and_in_tables_if_asked(
    run, succeeds, refuses, released, tmp_path
):
    rows = [("A1", "A", "Ash"), ("A2", "A", "Beech"), ("A", "", "Avon")]
    write(tmp_path / "towns.csv", "code,parent,title", rows)
    write(tmp_path / "table.csv", "code,n", [("A1", 500), ("A2", 300)])
    text = '[table]\nsource = "table.csv"\ncount = "n"\n[[axis]]\nname = "place"\n'
    text += 'levels = ["county", "town"]\nareas = "towns.csv"\nparent = "parent"\n'
    shown = released(text + 'names = "title"\n', "--level", "town")
    assert not any(column.endswith("_name") for column in shown.columns)
    first = succeeds("table", tmp_path / "out", "--level", "town").splitlines()
    assert first[0].split()[:4] == ["county", "county_name", "town", "town_name"]
    assert first[1].split()[:4] == ["A", "Avon", "A1", "Ash"]
    output = tmp_path / "named.csv"
    run("table", tmp_path / "out", "--level", "town", "--names", "--output", output)
    assert pl.read_csv(output)["town_name"].to_list() == ["Ash", "Beech"]
    refuses("shows codes alone", "table", tmp_path / "out", "--records", "--names")
    names = tmp_path / "out" / "domain" / "place.names.parquet"
    pl.read_parquet(names).with_columns(pl.lit("Elm").alias("name")).write_parquet(names)
    code, out, _ = run("check", tmp_path / "out")
    assert (code, "place.names.parquet was changed" in " ".join(out.split())) == (2, True)


def test_compare_tells_genuine_codes_from_unknown_ones_of_each_state(run, released, tmp_path):
    write(tmp_path / "blocks.csv", "block", [["011"], ["012"], ["019"], ["021"]])
    table = [("011", 90), ("019", 5), ("01x", 7), ("02", 80), ("021", 60)]
    write(tmp_path / "table.csv", "block,n", table)
    text = '[table]\nsource = "table.csv"\ncount = "n"\n[[axis]]\nname = "place"\n'
    text += 'levels = ["state", "block"]\nareas = "blocks.csv"\nprefix = [2, 3]\n'
    shown = released(text + 'not_stated = "{state}9"\n', "--level", "block")
    assert {"019", "029"} & set(shown["block"])
    code, out, _ = run("compare", tmp_path / "release.toml")
    words = "92 of 242 records are counted as '{state}9' (not_stated): 5 have such a code, 87 have"
    assert (code, words in " ".join(out.split())) == (0, True)
    code, _, err = run("release", tmp_path / "release.toml")
    assert "87" not in err.replace(str(tmp_path), "")  # the folder may be the 87th of its kind
