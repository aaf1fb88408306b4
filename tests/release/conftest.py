"""What several tests of the page look at."""

import pytest

from tests.browser import PATIENCE
from tests.release import made_pages, shown_pages


@pytest.fixture(scope="session")
def shown(tmp_path_factory):
    """Releases along a chain of each kind, with their pages."""
    return shown_pages.released(tmp_path_factory.mktemp("shown"))


@pytest.fixture(scope="session")
def cubes(tmp_path_factory):
    """Releases of cubes of each kind, with their pages."""
    return made_pages.released(tmp_path_factory.mktemp("cubes"), made_pages.cubes())


@pytest.fixture(scope="session")
def named(tmp_path_factory):
    """Releases of named cuboids of each kind, with their pages."""
    return made_pages.released(tmp_path_factory.mktemp("named"), made_pages.named())


@pytest.fixture(scope="session")
def of_a_spine(tmp_path_factory):
    """A release along a spine, with its page."""
    return made_pages.of_a_spine(tmp_path_factory.mktemp("spine") / "files")


@pytest.fixture(scope="session")
def pages(shown, cubes, named, of_a_spine):
    """All of them, by kind."""
    return {**shown, **cubes, **named, "spine": of_a_spine}


@pytest.fixture
def opened(browser):
    """Open a page from disk in a window; no message, no error and no request may come of it."""
    contexts, heard = [], []

    def open_page(path, where="", width=1100, **options):
        context = browser.new_context(viewport={"width": width, "height": 800}, **options)
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        tab = context.new_page()
        tab.on("console", lambda message: heard.append(message.text))
        tab.on("pageerror", lambda error: heard.append(str(error)))
        tab.on("request", lambda asked: heard.append(asked.url) if asked.url != url else None)
        url = path.as_uri()
        tab.goto(url + where)
        return tab

    yield open_page
    for context in contexts:
        context.close()
    assert heard == []


@pytest.fixture
def out(tmp_path):
    """Where a release is written."""
    return tmp_path / "out"
