"""What tests of several commands say."""

from pathlib import Path

import pytest

import hedgerow as hr
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.examples import EXAMPLES
from hedgerow.release.execution import in_memory
from hedgerow.spec.release_spec import ReleaseSpec


@pytest.fixture
def refuses(run):
    """Assert that a command refuses in one sentence with some words, and shows nothing else."""

    def refused(words, *arguments):
        code, out, err = run(*arguments)
        assert (code, out.strip()) == (2, ""), err
        said = " ".join(err.split())
        assert "Traceback" not in said
        for each in [words] if isinstance(words, str) else words:
            assert each in said or each in err

    return refused


@pytest.fixture
def succeeds(run):
    """Return what a command shows, which must end with exit code 0."""

    def shown(*arguments):
        code, out, err = run(*arguments)
        assert code == 0, out + err
        return out

    return shown


@pytest.fixture
def few_draws(monkeypatch):
    """Intervals of shares resample 600 errors in place of 2,000."""
    monkeypatch.setattr("hedgerow.cli.funds.DRAWS", 600)


def released(folder, workload="", measure="survivors"):
    """The commuting example with a workload, released under a seed: its folder."""
    file = Path(EXAMPLES["commuting"](folder / "trips", "small"))
    text = file.read_text().replace("epsilon       = 1 ", 'rho = "1/100" ')
    text = text.replace('measure = "survivors"', f'measure = "{measure}"')
    file.write_text(text.replace("delta         =", "#") + f"\n{workload}\n")
    spec = ReleaseSpec(file)
    tree = spec.tree()
    counts, plan = spec.table.counts(tree), spec.plan(tree)
    in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(1)).write(spec.output)
    return file.parent


@pytest.fixture(scope="session")
def chain_of_trips(tmp_path_factory):
    """The commuting example along its chain, released."""
    return released(tmp_path_factory.mktemp("chain"))


@pytest.fixture(scope="session")
def cube_of_trips(tmp_path_factory):
    """The same as a cube."""
    return released(tmp_path_factory.mktemp("cube"), '[workload]\ncuboids = "cube"', "all")


@pytest.fixture(scope="session")
def two_tables_of_trips(tmp_path_factory):
    """The same with two tables that agree on regions of destination."""
    cuboids = '["origin.municipality × destination.region", "destination.municipality"]'
    return released(tmp_path_factory.mktemp("named"), f"[workload]\ncuboids = {cuboids}")
