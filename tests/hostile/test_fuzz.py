"""Whatever becomes of an input: one sentence, exit code 0, 1 or 2, and nothing half-written.

``HEDGEROW_FUZZ=5000 pytest tests/hostile/test_fuzz.py`` tries as many inputs a test.
"""

import json
import os
import tempfile
from functools import cache
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.hostile import mutations
from tests.hostile.commands import ends_well, listing, place_of, ran, write
from tests.hostile.mutations import (
    DESTINATION,
    ORIGIN,
    PLACES,
    TABLES,
    damaged_bytes,
    damaged_table,
    damaged_tree,
    parquet,
    toml,
)

TRIED = int(os.environ.get("HEDGEROW_FUZZ", "20"))
thorough = settings(max_examples=TRIED, deadline=None, suppress_health_check=list(HealthCheck))
kinds = st.sampled_from(sorted(TABLES))


def released(files):
    """A release of these files, if they make one; it passes its own check."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, files)
        ends_well(folder, "plan", folder / "release.toml")
        code = ends_well(folder, "release", folder / "release.toml", makes="manifest.json")
        if code == 0:
            made = place_of(folder, "manifest.json")
            assert ran("check", made)[0] == 0, "a release that fails its own check"
        return code


def test_the_files_that_are_damaged_below_are_good():
    for spec, files in TABLES.values():
        assert released({**files, "release.toml": toml(spec).encode()}) == 0


@thorough
@given(st.data(), kinds)
def test_a_release_file_with_odd_values(data, kind):
    spec, files = TABLES[kind]
    text = toml(data.draw(damaged_tree(spec)))
    released({**files, "release.toml": text.encode(errors="surrogatepass")})


@thorough
@given(st.data(), kinds)
def test_a_release_file_with_odd_bytes(data, kind):
    spec, files = TABLES[kind]
    released({**files, "release.toml": data.draw(damaged_bytes(toml(spec).encode()))})


@thorough
@given(st.data(), kinds)
def test_a_table_or_list_with_odd_bytes(data, kind):
    spec, files = TABLES[kind]
    name = data.draw(st.sampled_from(sorted(files)))
    damaged = {**files, name: data.draw(damaged_bytes(files[name]))}
    released({**damaged, "release.toml": toml(spec).encode()})


@thorough
@given(st.data())
def test_a_table_or_list_with_odd_columns(data):
    spec, files = TABLES["trips"]
    which = data.draw(st.sampled_from(["table", "list"]))
    if which == "list":
        spec = mutations.trips()
        for axis in spec["axis"]:
            axis["areas"] = "places.parquet"
        odd = {"places.parquet": parquet(data.draw(damaged_table(PLACES)))}
    else:
        table = data.draw(damaged_table(ORIGIN | DESTINATION | {"trips": [5, 0, 2, 9]}))
        odd = {"table.parquet": parquet(table)}
    released({**files, **odd, "release.toml": toml(spec).encode()})


@cache
def directory(kind):
    """The files of a release."""
    spec, files = TABLES[kind]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, {**files, "release.toml": toml(spec).encode()})
        assert ran("release", folder / "release.toml")[0] == 0
        found = listing(folder / "out")
    return {name: data for name, data in found.items() if data is not None}


@thorough
@given(st.data(), kinds)
def test_a_damaged_release_directory(data, kind):
    files = dict(directory(kind))
    name = data.draw(st.sampled_from(["manifest.json", *sorted(files)]))
    if name == "manifest.json" and data.draw(st.booleans()):
        manifest = json.loads(files[name])
        changed = data.draw(damaged_tree(manifest))
        files[name] = json.dumps(changed).encode(errors="surrogatepass")
    else:
        files[name] = data.draw(damaged_bytes(files[name]))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write(folder / "out", files)
        for command in ("check", "account", "distribution"):
            ends_well(folder, command, folder / "out")
        ends_well(folder, "report", folder / "out", makes="out.report.html")
        again = ("--method", "least-squares", "--output", folder / "again")
        ends_well(folder, "estimate", folder / "out", *again, makes="estimate.json")
