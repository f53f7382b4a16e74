"""Fixtures of the Python SDK suite. Each test runs with the sync and with the async client."""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator

import pytest
from flavors import Flavor, Uniform

from support.server import CaissonServer


@pytest.fixture(scope="session", autouse=True)
def sdk_environment(server: CaissonServer):
    """The variables a user exports; nothing else points the SDK at our server."""
    saved = dict(os.environ)
    os.environ.update(server.sdk_environment)
    yield
    os.environ.clear()
    os.environ.update(saved)


@pytest.fixture(scope="session", params=["sync", "async"])
def flavor(request, sdk_environment) -> Flavor:
    return Flavor(request.param)


@pytest.fixture(scope="module")
async def sandbox(flavor: Flavor) -> AsyncIterator[Uniform]:
    """A sandbox the tests of one file share. They must not kill it."""
    created = await flavor.api.create(timeout=1800)
    yield created
    await created.kill()


@pytest.fixture
async def fresh(flavor: Flavor) -> AsyncIterator[Uniform]:
    """A sandbox of the test's own."""
    created = await flavor.api.create(timeout=300)
    yield created
    await created.kill()


@pytest.fixture
async def workdir(sandbox: Uniform) -> str:
    """An empty directory in the shared sandbox."""
    path = f"/home/user/work-{uuid.uuid4().hex[:12]}"
    assert await sandbox.files.make_dir(path) is True
    return path
