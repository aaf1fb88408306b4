"""`new --list`: axes from a header and public lists, which `plan` takes as they are.

The files are those of `test_code_lists`, in their publishers' shape with invented codes and rows.
"""

import csv
import tomllib

import polars as pl
import pytest

VALUE = "confidential value"


def write(path, header, rows):
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        csv.writer(file).writerows([header.split(","), *rows])


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def proposed(run, succeeds, here):
    """Propose from a header whose table has no true row, plan the file; return axes and words."""

    def made(header, *options, **text):
        write(here / "table.csv", header, [[VALUE] * len(header.split(","))])
        out = succeeds("new", "table.csv", *options, "--epsilon", "1", "--delta", "1e-6")
        file = (here / "release.toml").read_text()
        assert VALUE not in file + out
        code, _, err = run("plan", "release.toml", "--json")  # without a table of prices
        assert (code, err) == (text.get("code", 0), text.get("err", err))
        return tomllib.loads(file), " ".join(out.split()), " ".join(err.split())

    return made


def asgs(here):
    """Australia's mesh blocks, finer than SA2."""
    areas = [(s, f"{s}{a}", f"{s}{a}{i}") for s in (1, 2) for a in (1, 2) for i in range(3)]
    rows = [
        (f"{sa2}{b:05}", sa2, f"Town {sa2}", sa3, f"Region {sa3}", s, 1.5 + b)
        for s, sa3, sa2 in areas
        for b in range(3)
    ]
    header = "MB_CODE_2021,SA2_CODE_2021,SA2_NAME_2021,SA3_CODE_2021,SA3_NAME_2021,"
    write(here / "asgs.csv", f"{header}STATE_CODE_2021,AREA_SQKM", rows)


LEVELS = ["STATE_CODE_2021", "SA3_CODE_2021", "SA2_CODE_2021"]
NAMES = {"SA2_CODE_2021": "SA2_NAME_2021", "SA3_CODE_2021": "SA3_NAME_2021"}


def test_two_columns_of_flows_make_two_axes_of_one_list(proposed, here):
    asgs(here)
    found, out, _ = proposed("O_SA2,D_SA2,workers", "--list", "asgs.csv", "--count", "workers")
    origin, destination = found["axis"]
    assert origin == {
        "name": "origin", "levels": LEVELS, "columns": ["O_SA2"], "areas": "asgs.csv",
        "names": NAMES,
    }  # fmt: skip
    assert (destination["name"], destination["columns"]) == ("destination", ["D_SA2"])
    assert found["workload"] == {"cuboids": "cube"}
    assert "origin: O_SA2 is SA2_CODE_2021 of asgs.csv" in out
    assert "Replace" not in out


def test_axes_are_called_as_the_table_or_the_user_says(proposed, here):
    asgs(here)
    found, _, _ = proposed("home_sa2,sa2_work,n", "--list", "asgs.csv", "--count", "n")
    assert [axis["name"] for axis in found["axis"]] == ["home", "work"]
    (here / "release.toml").unlink()
    options = ("--list", "asgs.csv", "--axis", "live=O_SA2", "--axis", "job=D_SA2")
    found, _, _ = proposed("O_SA2,D_SA2,n", *options, "--count", "n")
    assert [(a["name"], a["columns"]) for a in found["axis"]] == [
        ("live", ["O_SA2"]), ("job", ["D_SA2"]),
    ]  # fmt: skip
    (here / "release.toml").unlink()
    options = ("--list", "asgs.csv", "--axis", "home=O_SA3")
    found, _, _ = proposed("O_SA2,O_SA3,n", *options, "--count", "n")
    (axis,) = found["axis"]
    assert (axis["levels"], axis["columns"]) == (LEVELS[:2], ["O_SA3"])


def test_which_of_two_columns_is_meant_is_left_to_the_user(proposed, here):
    asgs(here)
    options = ("--list", "living=asgs.csv", "--count", "n")
    found, out, err = proposed("O_SA2,D_SA2,n", *options, code=2)
    assert found["axis"][0]["columns"] == ["<O_SA2 or D_SA2>"]
    assert "replace the placeholders in <…>: [[axis]] 1 columns" in err
    assert "Replace the placeholders" in out


def test_levels_that_do_not_nest_are_left_to_the_user(proposed, here):
    rows = [(f"L{i}", f"D{i // 3}", f"H{i // 4}", f"R{i // 12}") for i in range(24)]
    write(here / "areas.csv", "lsoa,district,health,region", rows)
    found, out, err = proposed("lsoa,n", "--list", "areas.csv", "--count", "n", code=2)
    assert found["axis"][0]["levels"] == ["region", "<district or health>", "lsoa"]
    assert "choose district or health, which do not nest" in out
    assert "[[axis]] 1 levels" in err


def test_ethnicity_by_small_area(proposed, here):
    areas = [(f"E0100{i:04}", f"E0200{i // 3:04}", f"E0900{i // 9:04}") for i in range(18)]
    rows = [
        (f"AB{i} {j}XY", lsoa, msoa, lad, f"Place {i}", f"Borough {lad[-1]}")
        for i, (lsoa, msoa, lad) in enumerate(areas)
        for j in range(4)
    ]
    write(here / "lookup.csv", "pcds,lsoa21cd,msoa21cd,ladcd,lsoa21nm,ladnm", rows)
    groups = [(h, g) for g, hs in (("A", "12"), ("B", "345")) for h in hs]
    write(here / "groups.csv", "ethnic,group", groups)
    header = "Lower layer Super Output Areas Code,Lower layer Super Output Areas,"
    header += "Ethnic group (20 categories) Code,Ethnic group (20 categories),Observation"
    options = ("--list", "place=lookup.csv", "--list", "groups.csv", "--count", "Observation")
    found, _, _ = proposed(header, *options)
    place, people = found["axis"]
    assert place["levels"] == ["ladcd", "msoa21cd", "lsoa21cd"]
    assert place["columns"] == ["Lower layer Super Output Areas Code"]
    assert place["names"] == {"ladcd": "ladnm", "lsoa21cd": "lsoa21nm"}
    assert (people["levels"], people["columns"]) == (
        ["group", "ethnic"], ["Ethnic group (20 categories) Code"],
    )  # fmt: skip


def test_labels_beside_a_column_of_codes_are_its_names(proposed, here):
    """As England's census has them: a column of codes, and one called the same but for that."""
    rows = [(n, f"Group {n}: some", f"Group {n % 2}", "AB"[n % 2]) for n in range(1, 7)]
    header = "Ethnic group (20) Code,Ethnic group (20),Ethnic group (2),Ethnic group (2) Code"
    write(here / "groups.csv", header, rows)
    options = ("--list", "groups.csv", "--count", "n")
    found, _, _ = proposed("Ethnic group (20) Code,Ethnic group (20),n", *options)
    (axis,) = found["axis"]
    assert axis["levels"] == ["Ethnic group (2) Code", "Ethnic group (20) Code"]
    assert axis["names"] == {
        "Ethnic group (2) Code": "Ethnic group (2)", "Ethnic group (20) Code": "Ethnic group (20)",
    }  # fmt: skip


DIAGNOSES = [
    ("A00-A09", ""), ("A00", "A00-A09"), ("A00.0", "A00"), ("A00.1", "A00"), ("A02", "A00-A09"),
    ("A02.0", "A02"), ("A30-A49", ""), ("A35", "A30-A49"), ("A37", "A30-A49"), ("A37.0", "A37"),
]  # fmt: skip


def test_diagnoses_by_parent(proposed, here):
    rows = [(code, parent, f"Disease {code}") for code, parent in DIAGNOSES]
    write(here / "icd10.csv", "code,parent,title", rows)
    found, out, _ = proposed("stay,ICD10", "--list", "icd10.csv")
    assert found["axis"] == [{
        "name": "icd10", "levels": ["icd10_1", "icd10_2", "icd10_3"], "columns": ["ICD10"],
        "areas": "icd10.csv", "parent": "parent", "names": "title",
    }]  # fmt: skip
    assert "ICD10 is code of icd10.csv, and parent its parent" in out


def test_codes_that_continue_shorter_ones(proposed, here):
    rows = [(code, f"Disease {code}") for code, _ in DIAGNOSES if "-" not in code]
    write(here / "icd10.csv", "code,title", rows)
    found, _, _ = proposed("stay,code", "--list", "diagnosis=icd10.csv")
    (axis,) = found["axis"]
    assert (axis["prefix"], axis["levels"]) == ([3, 5], ["diagnosis_3", "diagnosis_5"])
    (here / "release.toml").unlink()
    options = ("--list", "icd10.csv", "--axis", "d=1,3,5")
    assert proposed("stay,code", *options)[0]["axis"][0]["prefix"] == [1, 3, 5]


def test_blocks_of_a_state(proposed, here):
    blocks = [
        f"44{c:03}{t:06}{g}{b:03}" for c in (1, 3) for t in (1, 2) for g in (1, 2) for b in (1, 2)
    ]
    write(here / "blocks.csv", "GEOID20,ALAND20", [(b, 1.25) for b in blocks])
    found, _, _ = proposed("GEOID20,n", "--list", "place=blocks.csv", "--count", "n")
    (axis,) = found["axis"]
    assert axis["levels"] == ["state", "county", "tract", "group", "block"]
    assert (axis["prefix"], axis["code"]) == ([2, 5, 11, 12, 15], "GEOID20")
    (here / "release.toml").unlink()
    options = ("--list", "place=blocks.csv", "--axis", "place=5,11", "--count", "n")
    assert proposed("GEOID20,n", *options)[0]["axis"][0]["prefix"] == [5, 11]


def test_blocks_as_the_census_bureau_ships_them(proposed, here):
    """Parts of a code beside the code, which are codes within a county or tract only; figures."""
    parts = [
        ("44", f"{c:03}", f"{t:06}", f"{g}{b:03}")
        for c in (1, 3) for t in (1, 2) for g in (1, 2) for b in (1, 2)
    ]  # fmt: skip
    rows = [
        (*each, "".join(each), f"Block {each[3]}", "G5040", 100 + i, 7 * i, f"+41.{i}", 3, 30 + i)
        for i, each in enumerate(parts)
    ]
    header = "STATEFP20,COUNTYFP20,TRACTCE20,BLOCKCE20,GEOID20,NAME20,MTFCC20,ALAND20,AWATER20,"
    write(here / "tabblock20.csv", f"{header}INTPTLAT20,HOUSING20,POP20", rows)
    write(here / "race.csv", "hispanic,race", [(h, r) for h in "12" for r in "123"])
    lists = ("--list", "tabblock20.csv", "--list", "race.csv")
    found, _, _ = proposed("GEOID,hispanic,race", *lists)
    spine, product = found["axis"]
    assert spine["levels"] == ["state", "county", "tract", "group", "block"]
    assert (spine["prefix"], spine["code"]) == ([2, 5, 11, 12, 15], "GEOID20")
    assert product["product"] == ["hispanic", "race"]


def test_a_grid(proposed, here):
    rows = [
        (4_300_000 + 1_000 * i, 3_200_000 + 7_000 * j, "XX") for i in range(9) for j in range(5)
    ]
    write(here / "grid.csv", "x,y,country", rows)
    found, out, _ = proposed("person,x,y", "--list", "grid.csv")
    (axis,) = found["axis"]
    assert (axis["divide"], axis["code"]) == ([100_000, 10_000, 1_000], ["x", "y"])
    assert axis["levels"] == ["square_100000", "square_10000", "square_1000"]
    assert "x and y are x and y of grid.csv, all multiples of 1000" in out
    (here / "release.toml").unlink()
    options = ("--list", "grid.csv", "--axis", "cell=50000,1000")
    assert proposed("person,x,y", *options)[0]["axis"][0]["divide"] == [50_000, 1_000]


def test_two_pairs_of_coordinates(proposed, here):
    write(here / "grid.csv", "x,y", [(1_000 * i, 7_000 * j) for i in range(9) for j in range(5)])
    found, _, _ = proposed("home_x,home_y,work_x,work_y", "--list", "grid.csv")
    assert [(a["name"], a["columns"]) for a in found["axis"]] == [
        ("home", ["home_x", "home_y"]), ("work", ["work_x", "work_y"]),
    ]  # fmt: skip
    (here / "release.toml").unlink()
    options = ("--list", "square=grid.csv")
    found, _, err = proposed("home_x,home_y,work_x,work_y", *options, code=2)
    assert found["axis"][0]["columns"] == ["<home_x or work_x>", "<home_y or work_y>"]
    assert "[[axis]] 1 columns" in err


def test_a_numeric_column_alone_and_beside_places(proposed, here):
    found, _, _ = proposed("id,age", "--axis", "age=0:100")
    assert found["axis"] == [{"name": "age", "low": 0, "high": 100, "bins": 100}]
    assert found["allocation"] == {"method": "distribution"}
    (here / "release.toml").unlink()
    write(here / "places.csv", "county,town", [(f"c{i // 3}", f"t{i}") for i in range(9)])
    options = ("--list", "places.csv", "--axis", "age=0:90:18")
    found, _, _ = proposed("town,age", *options)
    assert {axis["name"]: axis.get("bins") for axis in found["axis"]} == {"age": 18, "town": None}


def test_a_column_called_like_a_number_is_pointed_out(proposed, here):
    write(here / "places.csv", "county,town", [(f"c{i // 3}", f"t{i}") for i in range(9)])
    _, out, _ = proposed("town,age", "--list", "places.csv")
    assert "age: a number? --axis age=LOW:HIGH" in out
    assert '# name = "age"' in (here / "release.toml").read_text()


def test_lists_that_do_not_nest_become_one_product(proposed, here):
    areas = [(f"c{i // 12}", f"t{i // 3}", f"b{i}") for i in range(48)]
    write(here / "areas.csv", "county,tract,block", areas)
    write(here / "sex.csv", "sex", [["f"], ["m"]])
    write(here / "ages.csv", "band,age", [("young", "0-17"), ("old", "18-64"), ("old", "65+")])
    lists = [word for name in ("areas", "sex", "ages") for word in ("--list", f"{name}.csv")]
    found, out, _ = proposed("block,sex,age,n", *lists, "--count", "n")
    spine, product = found["axis"]
    assert spine["levels"] == ["county", "tract", "block"]
    assert product == {
        "name": "attributes", "attribute": True, "product": ["sex", "band", "age"],
        "lists": ["sex.csv", "ages.csv"],
    }  # fmt: skip
    assert "sex, band, age are the columns of sex.csv, ages.csv, and do not all nest" in out


def test_a_list_of_combinations_is_a_product_of_its_own(succeeds, proposed, here):
    areas = [(f"c{i // 12}", f"t{i // 3}", f"b{i}") for i in range(48)]
    write(here / "areas.csv", "county,tract,block", areas)
    rows = [(h, r, h if h == "yes" else r) for h in ("yes", "no") for r in ("a", "b", "c")]
    write(here / "race.csv", "hispanic,race,group", rows)
    lists = ("--list", "areas.csv", "--list", "race.csv", "--count", "n")
    found, _, _ = proposed("block,hispanic,race,n", *lists)
    assert [axis["name"] for axis in found["axis"]] == ["block", "attributes"]
    assert found["axis"][1]["product"] == ["hispanic", "race", "group"]
    people = [(b, h, r, 5) for _, _, b in areas for h in ("yes", "no") for r in ("a", "b")]
    write(here / "table.csv", "block,hispanic,race,n", people)
    for command in (("release", "release.toml"), ("check", "out")):
        succeeds(*command)
    (here / "release.toml").unlink()
    found, _, _ = proposed("block,race,n", *lists)  # which race alone does not tell
    assert [axis["name"] for axis in found["axis"]] == ["block", "race"]


def test_a_list_that_no_column_is_called_like_leaves_the_column_open(proposed, here):
    write(here / "places.csv", "county,town", [(f"c{i // 3}", f"t{i}") for i in range(9)])
    found, out, err = proposed("Ort,n", "--list", "places.csv", "--count", "n", code=2)
    assert found["axis"][0]["levels"] == ["county", "town"]
    assert found["axis"][0]["columns"] == ["<the table's column of town>"]
    said = "the name of no column of the table says that it holds town of places.csv"
    assert f"{said}; --axis town=COLUMN does" in out
    assert "[[axis]] 1 columns" in err
    (here / "release.toml").unlink()
    for given in ("place=places.csv", "places.csv"):
        options = ("--list", given, "--axis", "place=Ort", "--count", "n")
        found, out, _ = proposed("Ort,n", *options)
        (axis,) = found["axis"]
        assert (axis["name"], axis["columns"]) == ("place", ["Ort"])
        assert axis["levels"] == ["county", "town"]
        assert "its name does not say so: check that" in out
        (here / "release.toml").unlink()


def test_a_column_that_the_user_names_has_the_codes_of_the_list_that_is_left(proposed, here):
    write(here / "icd10.csv", "code,parent,title", [(c, p, f"Disease {c}") for c, p in DIAGNOSES])
    write(here / "sex.csv", "sex", [["f"], ["m"]])
    options = ("--list", "icd10.csv", "--list", "sex.csv", "--axis", "diagnosis=DIAG_4")
    found, out, _ = proposed("stay,DIAG_4,sex", *options)
    assert [axis["name"] for axis in found["axis"]] == ["diagnosis", "sex"]
    axis = found["axis"][0]
    assert (axis["columns"], axis["parent"], axis["names"]) == (["DIAG_4"], "parent", "title")
    assert "DIAG_4 is code of icd10.csv, and parent its parent; its name" in out


def test_the_table_is_no_list_under_any_name(run, refuses, here):
    write(here / "table.csv", "county,town", [[VALUE, VALUE]])
    (here / "link.csv").symlink_to("table.csv")
    (here / "hard.csv").hardlink_to("table.csv")
    for name in ("table.csv", "link.csv", "hard.csv", "place=link.csv"):
        code, out, err = run("new", "table.csv", "--list", name)
        assert (code, "is the confidential table itself" in " ".join(err.split())) == (2, True)
        assert VALUE not in out + err
    parts = here / "parts"
    parts.mkdir()
    pl.DataFrame({"town": [VALUE]}).write_parquet(parts / "a.parquet")
    refuses("is the confidential table itself", "new", "parts", "--list", "parts/a.parquet")
    assert not (here / "release.toml").exists()


def test_a_record_in_place_of_a_header_is_refused_by_the_codes_of_a_list(run, here):
    (here / "table.csv").write_text("Jo Town,t1\nAl Town,t2\n")
    write(here / "places.csv", "county,town", [("c", "t1"), ("c", "t2")])
    code, out, err = run("new", "table.csv", "--list", "places.csv")
    words = "has a column that is called like a code of places.csv; if its first line is a record"
    assert (code, words in " ".join(err.split())) == (2, True)
    assert "Jo Town" not in out + err
    assert "t1" not in out + err
    assert not (here / "release.toml").exists()


def test_a_header_may_have_a_name_that_is_a_code_too(proposed, here):
    write(here / "iso.csv", "country,title", [("NO", "Norway"), ("ID", "Indonesia")])
    found, _, _ = proposed("ID,country", "--list", "iso.csv")
    assert found["axis"][0]["levels"] == ["country"]


def test_a_count_that_was_not_named_is_pointed_out(proposed, here):
    write(here / "places.csv", "county,town", [(f"c{i // 3}", f"t{i}") for i in range(9)])
    _, out, _ = proposed("town,Observation", "--list", "places.csv")
    assert 'Observation: a number of records? Set count = "Observation" in [table]' in out
    (here / "release.toml").unlink()
    _, out, _ = proposed("town,Observation", "--list", "places.csv", "--count", "Observation")
    assert "a number of records?" not in out


@pytest.mark.parametrize("column", ["patient_id", "PersonID", "person", "household_no", "pid"])
def test_a_column_that_is_called_like_a_unit_is_asked_about(proposed, here, column):
    """By its name in the header: no value of the table is read."""
    write(here / "places.csv", "county,town", [(f"c{i // 3}", f"t{i}") for i in range(9)])
    _, out, _ = proposed(f"town,{column},age", "--list", "places.csv")
    assert f"{column}: one person, or other unit, in several rows? To protect each with" in out
    assert f'set unit = "{column}" in [table] and contributions in [privacy]' in out
    assert f"--unit {column} --contributions N and another file name" in out
    text = (here / "release.toml").read_text()
    assert f'# unit  = "{column}"   # who is protected' in text
    assert "hides whether a record is in the table" in text
    assert "1 protects each record by itself" in text
    (here / "release.toml").unlink()
    _, out, _ = proposed(
        f"town,{column},age", "--list", "places.csv", "--unit", column, "--contributions", "2"
    )
    text = (here / "release.toml").read_text()
    assert "hides whether a unit, with its records, is in the table" in text
    assert "in several rows?" not in out


@pytest.mark.parametrize("header", ["town,age", "town,person_name", "town,people", "town,townsman"])
def test_a_column_that_tells_no_unit_is_not_asked_about(proposed, here, header):
    write(here / "places.csv", "county,town", [(f"c{i // 3}", f"t{i}") for i in range(9)])
    _, out, _ = proposed(header, "--list", "places.csv")
    assert "in several rows?" not in out
    assert '# unit  = "<a column>"' in (here / "release.toml").read_text()


def test_a_proposal_is_released_and_checked_as_it_is(succeeds, here):
    asgs(here)
    codes = [f"{s}{a}{i}" for s in (1, 2) for a in (1, 2) for i in range(3)]
    flows = [(o, d, 20 + i) for i, o in enumerate(codes) for d in codes]
    write(here / "flows.csv", "O_SA2,D_SA2,workers", flows)
    options = ("--list", "asgs.csv", "--count", "workers", "--epsilon", "1")
    for command in (("new", "flows.csv", *options), ("release", "release.toml"), ("check", "out")):
        succeeds(*command)


def test_two_columns_of_one_name_are_refused(refuses, here):
    write(here / "table.csv", "town,town,n", [[VALUE] * 3])
    write(here / "places.csv", "county,town", [("c", "t1"), ("c", "t2")])
    refuses("2 columns called 'town'", "new", "table.csv", "--list", "places.csv")


REFUSED = {
    "an empty list": (("--list", "empty.csv"), "empty.csv is empty; it needs one row an area"),
    "no list": (("--axis", "place=2,5"), "needs the public list of its codes: --list place=FILE"),
    "no file": (("--list", "nothing.csv"), "nothing.csv"),
    "a database": (("--list", "postgresql://me:word@server/x"), "--list names a file, not a"),
    "twice": (("--list", "a=places.csv", "--list", "a=places.csv"), "gives an axis twice"),
    "bounds": (("--axis", "age=9:9"), "the lower bound must be below the upper one"),
    "no number": (("--axis", "height=0:9"), "no column 'height'"),
    "no grid": (("--list", "a=places.csv", "--axis", "a=100,10"), "no two columns of the same"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_proposed_is_refused(run, here, name):
    write(here / "table.csv", "town,age", [[VALUE, VALUE]])
    write(here / "places.csv", "county,town", [("c", "t1"), ("c", "t2")])
    write(here / "empty.csv", "county,town", [])
    arguments, message = REFUSED[name]
    code, _, err = run("new", "table.csv", *arguments)
    assert (code, message in " ".join(err.split())) == (2, True), err
    assert "word" not in err
    assert not (here / "release.toml").exists()
