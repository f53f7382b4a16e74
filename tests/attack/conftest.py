"""Fixtures of the attacks: a server in a network of its own and under outer limits, a neighbour
with a secret, attackers of both accounts, and canaries on the host that are looked at around every test.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from guest import Guest, compile_calls
from internet import Internet
from outer import OuterLimits
from probes import summary
from world import Canaries, World

from support.rest import Rest
from support.server import CaissonServer, find_templates

# Small sandboxes: a bomb is soon over, and all of them fit below the outer limits.
TEMPLATE = {"memoryMB": 256, "diskSizeMB": 192}
SETTINGS = {
    "CAISSON_SANDBOX_PIDS": "256",
    "CAISSON_ENVD_TIMEOUT_MS": "5000",  # shorter, and a busy machine alone looks like an envd that is held
    # Also how long a new connection may say nothing. Clients open spare ones: were it shorter, one would often be closed
    # at the moment it is used for the first time.
    "CAISSON_HTTP_HEADER_TIMEOUT_MS": "10000",
}


OTHER_KEY = f"e2b_{secrets.token_hex(20)}"


def add_key(server: CaissonServer, key: str) -> None:
    """A second tenant. Keys other than the first are rows that are read at the start."""
    server.stop()
    database = sqlite3.connect(server.data_dir / "db/caisson.db")
    row = ("attacker", "attacker", hashlib.sha256(key.encode()).hexdigest(), key[-4:], 0)
    database.execute(
        "INSERT INTO api_keys (id, name, hash, hint, created_at) VALUES (?,?,?,?,?)", row
    )
    database.commit()
    database.close()
    server.start()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "probe(number): an attempt of this row of probes.py")


@pytest.fixture(scope="session")
def internet() -> Iterator[Internet]:
    """From here on this process, the server and its sandboxes live in a network of their own."""
    with Internet() as network:
        yield network


@pytest.fixture(scope="session")
def small_template(tmp_path_factory) -> Path:
    """A directory of templates whose `base` is the usual one, but small."""
    directory = tmp_path_factory.mktemp("templates")
    base = find_templates(directory) / "base"
    small = directory / "small/base"
    small.mkdir(parents=True)
    settings = json.loads((base / "template.json").read_text())
    (small / "template.json").write_text(json.dumps({**settings, **TEMPLATE}))
    (small / "rootfs").symlink_to((base / "rootfs").resolve())
    for parent in (small, *small.parents):
        if parent.stat().st_mode & 0o5 != 0o5:
            parent.chmod(parent.stat().st_mode | 0o005)  # the server process is not root
    return small.parent


@pytest.fixture(scope="session")
def server(internet: Internet, small_template: Path) -> Iterator[CaissonServer]:
    with OuterLimits() as limits:
        instance = CaissonServer(
            env={
                **SETTINGS,
                "CAISSON_DNS": internet.resolver,
                "CAISSON_TEMPLATE_DIR": str(small_template),
            }
        )
        try:
            instance.start()
            limits.cover(instance)
            add_key(instance, OTHER_KEY)
            yield instance
        finally:
            instance.close()


@pytest.fixture(scope="session")
def world(server: CaissonServer, internet: Internet, tmp_path_factory) -> Iterator[World]:
    """What the attackers are after."""
    with World(server, internet, tmp_path_factory.mktemp("host")) as made:
        yield made


@pytest.fixture(scope="session")
def calls(tmp_path_factory) -> bytes:
    """The program of raw system calls, as bytes."""
    return compile_calls(tmp_path_factory.mktemp("calls"))


@pytest.fixture(scope="module")
def _machine(server: CaissonServer, world: World, calls: bytes) -> Iterator[dict]:
    with Rest(server).sandbox(timeout=1800) as made:
        yield made


@pytest.fixture(params=["root", "user"])
def guest(request, server: CaissonServer, _machine: dict, calls: bytes) -> Guest:
    """An attacker in the sandbox the tests of one file share."""
    return Guest(server, _machine, request.param, calls)


@pytest.fixture
def fresh(server: CaissonServer, world: World, calls: bytes) -> Iterator[Guest]:
    """An attacker, root, in a sandbox of the test's own."""
    with Rest(server).sandbox(timeout=600) as made:
        yield Guest(server, made, "root", calls)


@pytest.fixture(autouse=True)
def canaries(request) -> Iterator[None]:
    """Around every attempt: nothing on the host changed, the neighbour and the server are well."""
    if request.node.get_closest_marker("probe") is None:
        yield
        return
    watched = Canaries(request.getfixturevalue("world"))
    yield
    watched.check()


@pytest.fixture
def rest(server: CaissonServer) -> Rest:
    return Rest(server)


@pytest.fixture
def other_key() -> str:
    """The key of another tenant."""
    return OTHER_KEY


# ---- the table at the end ---------------------------------------------------------------------


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo):
    outcome = yield
    for marker in item.iter_markers("probe"):
        outcome.get_result().user_properties.append(("probe", marker.args[0]))


def pytest_terminal_summary(terminalreporter) -> None:
    results: dict[int, dict[str, str]] = {}
    worst = {"failed": 2, "skipped": 1, "passed": 0}
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, number in getattr(report, "user_properties", []):
                if name != "probe":
                    continue
                tests = results.setdefault(number, {})
                test = report.nodeid.rpartition("::")[2]
                before = tests.get(test, "passed")
                tests[test] = max(before, report.outcome, key=worst.__getitem__)
    if results:
        terminalreporter.section(f"attacks on Linux {os.uname().release}")
        listed = {number: list(tests.items()) for number, tests in results.items()}
        for line in summary(listed):
            terminalreporter.write_line(line)
