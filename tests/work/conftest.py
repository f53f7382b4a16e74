"""A server that works with a forge double."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.builds import Builds
from support.forge import Forge
from support.work import Platform, settings_for


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A run of a task has 90 s, and some tests wait for two."""
    for item in items:
        if Path(__file__).parent in item.path.parents and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(240))


@pytest.fixture
def platform(make_server, forge: Forge) -> Platform:
    return Platform(make_server(env=settings_for(forge)))


@pytest.fixture
def builds(make_server) -> Builds:
    return Builds(make_server(env={"CAISSON_BUILD_TIER": "none"}))


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder in which the server's user can read, unlike in pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="reachable-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
