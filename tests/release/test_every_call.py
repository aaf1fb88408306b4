"""A release that is struck at any system call is finished by the next run: one noise, one charge.

`tests.release.strikes.main` strikes them all; here some of each file are.
"""

from dataclasses import replace

import pytest

from tests.parts import require_tracing
from tests.release.strikes import SCENARIOS, WAYS, WORKLOADS, Strikes, sample

pytestmark = pytest.mark.xdist_group("strikes")  # each workload is traced once
MOST = {"release": 6}
OTHERWISE = 2


@pytest.fixture(scope="module", autouse=True)
def _tracing():
    require_tracing()


@pytest.fixture(scope="module", params=SCENARIOS)
def strikes(request, tmp_path_factory):
    return request.param, Strikes(SCENARIOS[request.param], tmp_path_factory.mktemp("strikes"))


def test_a_run_that_is_struck_at_a_call_is_finished_with_one_noise_and_one_charge(strikes):
    """A chain's is struck in every way; of the other workloads each is killed."""
    name, scenario = strikes
    for way in ["kill"] if name in WORKLOADS else WAYS:
        few = sample(scenario.calls, MOST.get(name, OTHERWISE))
        assert all(WAYS[way](scenario, call) for call in few), way


def test_the_calls_that_are_struck_are_those_of_key_seal_charge_files_and_rename(strikes):
    """A tracer that saw none of them would strike nothing."""
    name, scenario = strikes
    about = {(call.name, call.about) for call in scenario.calls}
    removal = {("unlink", "out.staging/staging.json"), ("rmdir", "out.staging")}
    assert removal <= about
    if "appeared" not in name:
        assert ("rename", "out.staging/content") in about
    if "what" not in name:  # of which the key is gone
        assert ("unlink", "out.staging/release.key") in about
    if name in {"release", "discard", *WORKLOADS}:
        assert ("rename", "out.staging/staging.json.unfinished") in about
        assert {"ledger.sqlite", "ledger.sqlite-journal"} <= {place for _, place in about}


def test_a_call_that_comes_under_another_number_than_recorded_is_struck(strikes):
    _, scenario = strikes
    call = scenario.calls[len(scenario.calls) // 2]
    assert scenario.kill(replace(call, number=call.number + 3))
