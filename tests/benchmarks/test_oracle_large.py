"""Two commits' runs beside each other: what is over is flagged where it is so twice."""

import tomllib

import pytest

from benchmarks import oracle_large
from benchmarks.oracle_large import LARGE, compared, written
from hedgerow.examples import EXAMPLES
from hedgerow.spec.release_spec import ReleaseSpec

QUICK, SLOW, LARGER = (1.0, 2.0, 100.0), (1.06, 2.0, 100.0), (1.0, 2.0, 102.1)


@pytest.mark.parametrize(
    ("ours", "flags"),
    [
        ([QUICK] * 5, []),
        ([SLOW, *[QUICK] * 4], []),
        ([SLOW, QUICK, QUICK, SLOW, QUICK], ["processor s  OVER 5% in 2 of 5"]),
        ([LARGER] * 5, ["peak MB  OVER 2% in 5 of 5"]),
    ],
)
def test_what_is_over_a_limit_twice_is_flagged(ours, flags):
    lines = list(compared(ours, [QUICK] * 5))
    assert [line.split()[0] for line in lines] == ["processor", "clock", "peak"]
    found = [
        f"{line[2:14].strip()}  {line[line.index('OVER') :]}" for line in lines if "OVER" in line
    ]
    assert found == flags


@pytest.mark.parametrize("name", LARGE)
def test_a_large_release_leaves_nothing_to_defaults(name, tmp_path, monkeypatch):
    example, _, cuboids, measure = LARGE[name]

    def write(_tree, _folder, _command, kind, folder, _size, size):
        EXAMPLES[kind](folder, size)

    monkeypatch.setattr(oracle_large, "timed", write)
    file = written(tmp_path, example, "small", cuboids, measure)
    held = tomllib.loads(file.read_text())
    assert held["workload"]["cuboids"] == cuboids
    assert held["estimate"] == {"method": "euclidean", "measure": measure}
    assert {"method", "neighbours", "contributions", "mechanism"} <= {
        *held["privacy"], *held["allocation"],
    }  # fmt: skip
    assert ReleaseSpec(file).file.workload.cuboids == cuboids
