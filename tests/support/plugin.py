"""pytest fixtures: one server for the whole session, more on request, its log on failure."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from support.postgres import Postgres
from support.rest import Rest
from support.server import CaissonServer

_running: list[CaissonServer] = []
_log_marks: dict[CaissonServer, int] = {}


@pytest.fixture(scope="session")
def server() -> Iterator[CaissonServer]:
    """The server most tests share."""
    instance = CaissonServer()
    _running.append(instance)
    try:
        instance.start()
        yield instance
    finally:
        _running.remove(instance)
        instance.close()


@pytest.fixture
def make_server() -> Iterator[Callable[..., CaissonServer]]:
    """Starts a server of the test's own; closed when the test ends."""
    made: list[CaissonServer] = []

    def make(args: list[str] | None = None, env: dict[str, str] | None = None) -> CaissonServer:
        instance = CaissonServer(args, env)
        made.append(instance)
        _running.append(instance)
        return instance.start()

    yield make
    errors: list[BaseException] = []
    for instance in made:
        _running.remove(instance)
        try:
            instance.close()
        except BaseException as error:  # close them all before failing, also when time is over
            errors.append(error)
    if errors:
        raise errors[0]


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL that tests share; each makes a database of its own in it."""
    with Postgres() as instance:
        yield instance


@pytest.fixture
def own_postgres() -> Iterator[Postgres]:
    """One that the test may stop. To be named before `make_server`: servers need it when they are closed."""
    with Postgres() as instance:
        yield instance


@pytest.fixture(scope="session")
def rest(server: CaissonServer) -> Rest:
    """Plain HTTP to the shared server, with the API key."""
    return Rest(server)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deadlines are written for a quiet machine; tests/run.py measures how much slower this one is."""
    slowness = float(os.environ.get("TEST_SLOWNESS") or 1)
    for item in items:
        marker = item.get_closest_marker("timeout")
        seconds = marker.args[0] if marker else float(config.getini("timeout"))
        item.add_marker(pytest.mark.timeout(seconds * slowness), append=False)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    for instance in _running:
        _log_marks[instance] = instance.log_size()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo):
    outcome = yield
    report = outcome.get_result()
    if not report.failed:
        return
    for instance in _running:
        text = instance.log_since(_log_marks.get(instance, 0))
        if text:
            lines = text.splitlines()[-80:]
            report.sections.append((f"caisson log ({instance.url})", "\n".join(lines)))
