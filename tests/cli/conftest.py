"""What tests of several commands say."""

import pytest


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
