"""What holds for every test."""

import pytest
from hypothesis import settings

from hedgerow import cli

# No deadline: machines differ and kernels compile on first use; benchmarks tell the time.
settings.register_profile("hedgerow", deadline=None)
settings.load_profile("hedgerow")


@pytest.fixture
def run(capsys):
    """Run a command in this process: exit code, standard output, standard error."""

    def command(*arguments):
        code = cli.run([str(a) for a in arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return command
