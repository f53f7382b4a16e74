"""The fixture `forge`: a forge double with one repository and one token, fresh for every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.forge import Forge

FORGE_TOKEN = "ghp_forgedouble0123456789abcdefghijklmnop"
FORGE_REPOSITORY = "octo-org/widget"


@pytest.fixture
def forge() -> Iterator[Forge]:
    """`forge.url` is CAISSON_GITHUB_API_URL and CAISSON_GITHUB_URL, FORGE_TOKEN the token."""
    with Forge() as instance:
        instance.add_token(FORGE_TOKEN)
        instance.add_repository(FORGE_REPOSITORY)
        yield instance
