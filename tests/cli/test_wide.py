"""Tables of every command: as wide as a terminal, or whole; `run` refuses any that is wider."""

import re
import shutil
from pathlib import Path

import pytest
from rich.cells import cell_len

from hedgerow.columns import WIDTH
from tests.conftest import rows_of_tables

KINDS = ["chain_of_trips", "cube_of_trips", "two_tables_of_trips"]
FINEST = "destination.municipality"
BESIDE = "rounding:5,suppression:10,random-rounding:3"
SIMULATED = """
[simulate]
public = true
allocations = ["uniform"]
measures = ["all"]
estimators = ["euclidean"]
baselines = ["leaf-noise"]
"""
USES = '[[use]]\nmechanism = "discrete-gaussian"\nsigma2 = 123456789.5\ntimes = 3\n'
COMMANDS = {
    "plan": "plan release.toml --fairness",
    "plan areas": f"plan release.toml --areas areas.csv --area-codes code={FINEST}",
    "compare": f"compare release.toml --beside {BESIDE}",
    "table": "table out --by origin=municipality --by destination=region",
    "table areas": f"table out --areas areas.csv --area-codes code={FINEST}",
    "noisy": f"table out --noisy --level {FINEST}",
    "funds": f"funds out --level {FINEST} --amount 123456789",
    "estimate": "estimate out --output again",
    "account": "account out",
    "mechanisms": "account uses.toml --match bureau",
    "simulate": "simulate release.toml --runs 3",
}
CASES = [
    (name, kind)
    for name in COMMANDS
    for kind in (KINDS[1:] if FINEST in COMMANDS[name] else KINDS)  # a chain has no such cuboid
]


@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize(("name", "kind"), CASES)
@pytest.mark.sweep(4)
def test_a_table_that_fits_has_every_figure_of_the_whole_one(
    request, succeeds, monkeypatch, tmp_path, name, kind
):
    folder = Path(shutil.copytree(request.getfixturevalue(kind), tmp_path / "trips"))
    monkeypatch.chdir(folder)
    (folder / "uses.toml").write_text(USES)
    codes = "".join(f"001{code:03d},{'a' * 90} {code % 3}\n" for code in range(1, 9))
    (folder / "areas.csv").write_text(f"code,area of more than eighty letters\n{codes}")
    with (folder / "release.toml").open("a") as file:
        file.write(SIMULATED)
    fitted = succeeds(*COMMANDS[name].split())
    shutil.rmtree("again", ignore_errors=True)
    whole = rows_of_tables(succeeds(*COMMANDS[name].split(), "--wide"))
    assert whole, "the command shows a table"
    assert "…" not in "".join(whole)
    words = {word for row in whole for word in row.split()}
    figures = {word for word in words if re.fullmatch(r"[^–:]*[0-9][^–:]*", word)}  # no headings
    assert figures <= set(fitted.split())
    if max(map(cell_len, whole)) <= WIDTH:
        assert whole == rows_of_tables(fitted)
