"""The command `check`: what passed, what failed, and what nobody here could tell."""

import json
from importlib.metadata import version

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.release.directory.manifest import sha256
from hedgerow.release.passes import ESTIMATION
from tests.made import fixed_axis, plain_plan, random_counts

PAGE = "report.html is what the files make"
FORGED = "ε = 0.000001"


@pytest.fixture
def out(tmp_path):
    tree = hr.Tree([fixed_axis("geo", 3, 4)])
    counts = random_counts(np.random.default_rng(1), tree, filled=0.9)
    hr.release(counts, plain_plan(tree, budget=hr.Rho("1/2")), directory=tmp_path / "out")
    return tmp_path / "out"


def claim(out, *, made_by=None, page=None, estimation=ESTIMATION):
    """What a forger writes: another page, other versions, and the digests to go with them."""
    path, own = out / "report.html", version("hedgerow")
    manifest = json.loads((out / "manifest.json").read_text())
    if made_by is not None:
        manifest["software"]["hedgerow"] = made_by
        path.write_text(path.read_text().replace(f"Hedgerow {own}", f"Hedgerow {made_by}"))
    if page is not None:
        path.write_text(page(path.read_text()))
    manifest["estimation"] = estimation
    manifest["files"] = {name: sha256(out / name) for name in manifest["files"]}
    (out / "manifest.json").write_text(json.dumps(manifest))


def forged(page):
    return page.replace("</main>", f"<h1>{FORGED}</h1></main>")


def test_all_checks_of_a_release_as_it_was_made_pass(out, run):
    code, said, _ = run("check", out)
    assert (code, said.count("ok   "), said.count("checks passed.")) == (0, 14, 1)
    assert said.startswith("All 14 checks passed.\n")
    assert f"ok   {PAGE}\n" in said


@pytest.mark.parametrize("made_by", ["0.1.0. Safe at epsilon = 0.001", "[red]9[/red]", "9" * 50])
def test_no_words_hide_in_the_version_that_the_page_prints(out, run, made_by):
    claim(out, made_by=made_by)
    code, said, _ = run("check", out)
    assert code == 2
    assert "the manifest names software by more than names and versions" in " ".join(said.split())


def test_a_page_that_another_version_made_does_not_look_verified(out, run):
    made_by = "0.0.9"
    claim(out, made_by=made_by, page=forged)
    code, said, err = run("check", out)
    line = next(line for line in said.splitlines()[1:] if PAGE in line)
    said = " ".join(said.split())
    assert (code, err.count("Error")) == (3, 0)
    assert line.startswith(f"NOT VERIFIED {PAGE}: ")
    assert f"says that {made_by!r} made it" in said
    assert said.startswith(f"13 of 14 checks passed, 1 not verified: {PAGE}.")
    assert f"ok {PAGE}" not in said
    assert "All" not in said
    (found,) = [finding for finding in hr.check(out) if not finding.passed]
    assert found.failure is None


def test_a_page_by_another_version_that_this_one_makes_too_is_verified(out, succeeds):
    claim(out, made_by="0.0.9")
    assert "Hedgerow 0.0.9" in (out / "report.html").read_text()
    succeeds("check", out)


def test_a_forged_page_of_this_version_fails(out, run):
    claim(out, page=forged)
    code, said, err = run("check", out)
    assert code == 2
    assert f"FAIL {PAGE}: " in said
    assert "1 of 14 checks failed" in " ".join(err.split())


def test_what_could_not_be_verified_does_not_hide_what_failed(out, run):
    claim(out, made_by="0.0.9", page=forged)
    (out / "counts" / "cuboid=2.parquet").unlink()
    code, said, _ = run("check", out)
    assert code == 2
    assert "cuboid=2.parquet is missing" in said
    assert "passed" not in said


def test_a_failure_beside_a_page_that_could_not_be_verified_is_a_failure(out, run):
    path = out / "measurements" / "cuboid=2.parquet"
    pl.read_parquet(path).with_columns(-pl.col("noisy_count")).write_parquet(path)
    claim(out, made_by="0.0.9", page=forged)
    code, said, err = run("check", out)
    assert (code, "FAIL" in said, "NOT VERIFIED" in said) == (2, True, True)
    assert "checks failed" in err
    assert "passed" not in said


def test_counts_of_another_version_do_not_look_verified(out, run):
    claim(out, made_by="99.0", estimation=ESTIMATION + 1)
    code, said, err = run("check", out)
    marks = [line.split()[0] for line in said.splitlines() if "counts and intervals" in line]
    said = " ".join(said.split())
    assert (code, err.count("Error"), marks) == (3, 0, ["11"] + ["NOT"] * 3)
    assert f"Hedgerow '99.0' made the counts, by version {ESTIMATION + 1} of" in said
    assert "11 of 14 checks passed, 3 not verified: depth 0 (total): the counts and" in said
    for never in ("All", "FAIL", "failed"):
        assert never not in said


def test_a_failure_beside_counts_of_another_version_is_a_failure(out, run):
    path = out / "counts" / "cuboid=2.parquet"
    pl.read_parquet(path).with_columns(pl.col("standard_error") * 2).write_parquet(path)
    claim(out, made_by="99.0", estimation=ESTIMATION + 1)
    code, said, err = run("check", out)
    assert (code, said.count("FAIL"), said.count("NOT VERIFIED")) == (2, 1, 3), (
        "the page has errors"
    )
    assert "1 of 14 checks failed" in " ".join(err.split())
    assert "passed" not in said


def test_a_version_that_this_hedgerow_never_had_is_a_failure(out, run):
    claim(out, estimation=ESTIMATION + 1)
    code, said, err = run("check", out)
    assert (code, "NOT VERIFIED" in said, "passed" in said) == (2, False, False)
    assert "has had none after version" in " ".join(said.split())
    assert "the others depend on these and were not made" in err


def test_a_failed_digest_says_that_nothing_else_was_checked(out, run):
    (out / ".DS_Store").write_text("")
    code, said, err = run("check", out)
    assert (code, said.count("FAIL")) == (2, 1)
    assert "1 of 2 checks failed" in err
    assert "the others depend on these and were not made" in err


def test_what_is_no_release_directory_says_why(out, refuses):
    archive = out.with_suffix(".zip")
    archive.write_bytes(b"PK")
    for place, why in {
        archive: "it is a file; unpack an archive first",
        out / "none": "nothing is there",
        out / "counts": "it has no manifest.json\n",
        out.parent: f"it has no manifest.json; {str(out)!r} is one",
    }.items():
        refuses(f"is no release directory: {why}", "check", place)
