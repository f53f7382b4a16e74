"""A browser in front of a server that works with a forge double."""

from __future__ import annotations

import pytest
from support.forge import Forge
from support.page import Browser, Window
from support.work import Platform, settings_for


@pytest.fixture(scope="session")
def browser():
    with Browser() as instance:
        yield instance


@pytest.fixture
def platform(make_server, forge: Forge) -> Platform:
    return Platform(make_server(env=settings_for(forge)))


@pytest.fixture
def window(browser: Browser, platform: Platform) -> Window:
    """A window of the owner of the server's first key, signed in, at its home."""
    with browser.window(platform.server) as instance:
        instance.sign_in()
        yield instance


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/page" in str(item.path) and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(180))
