"""Fixtures of the protocol suite."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.envd import Envd
from support.rest import Rest
from support.server import CaissonServer


@pytest.fixture(scope="module")
def box(rest: Rest) -> Iterator[dict]:
    """A secured sandbox the tests of one file share: the decoded answer of its creation."""
    with rest.sandbox(timeout=1800) as created:
        yield created


@pytest.fixture(scope="module")
def envd(server: CaissonServer, box: dict) -> Envd:
    return Envd(server, box)


@pytest.fixture
def workdir(envd: Envd, request) -> str:
    """An empty directory in the shared sandbox."""
    path = f"/home/user/w{abs(hash(request.node.nodeid)):x}"
    envd.ok("filesystem.Filesystem/MakeDir", {"path": path})
    return path
