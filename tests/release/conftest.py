"""What several tests of the page look at."""

import pytest

from tests.release.shown_pages import released


@pytest.fixture(scope="session")
def shown(tmp_path_factory):
    """Releases of each kind, with their pages."""
    return released(tmp_path_factory.mktemp("shown"))
