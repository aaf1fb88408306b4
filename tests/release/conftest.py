"""What several tests of the page look at."""

import pytest

from tests.browser import PATIENCE
from tests.release.shown_pages import released


@pytest.fixture(scope="session")
def shown(tmp_path_factory):
    """Releases of each kind, with their pages."""
    return released(tmp_path_factory.mktemp("shown"))


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
