"""Fixtures of the suite about GitHub."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from calls import Client
from support.forge import Forge
from support.forge_plugin import FORGE_REPOSITORY, FORGE_TOKEN


@pytest.fixture
def make_client(forge: Forge) -> Iterator[Callable[..., Client]]:
    """A client of the double, by default with its token; ended with the test."""
    made: list[Client] = []

    def make(api_url: str = "", repo: str = FORGE_REPOSITORY, **settings: object) -> Client:
        if "app_id" not in settings:
            settings = {"token": FORGE_TOKEN, **settings}
        made.append(Client(api_url or forge.url, repo, **settings))
        return made[-1]

    yield make
    logs = [client.close() for client in made]
    for token in forge.tokens:
        assert not any(token in log for log in logs), "a token was logged"


@pytest.fixture
def client(make_client: Callable[..., Client]) -> Client:
    return make_client()
