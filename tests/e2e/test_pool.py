"""The warm pool: sandboxes that are ready before anybody asks are like any other."""

from __future__ import annotations

import os
import re
import signal
import time

import pytest
from e2b import Sandbox
from support.envd import Envd
from support.rest import Rest
from support.server import CaissonServer
from support.waiting import wait_until_gone

pytestmark = pytest.mark.timeout(180)


def pool_numbers(rest: Rest) -> dict[str, int]:
    text = rest.get("/metrics", key=None).body.decode()
    found = re.findall(r'^caisson_pool_(\w+?)(?:\{result="(\w+)"\})? (\d+)$', text, re.MULTILINE)
    return {result or name: int(value) for name, result, value in found}


def wait_until_ready(rest: Rest, count: int) -> None:
    deadline = time.monotonic() + 60
    while pool_numbers(rest)["ready"] != count:
        assert time.monotonic() < deadline, pool_numbers(rest)
        time.sleep(0.02)


@pytest.fixture(scope="module")
def pooled() -> CaissonServer:
    # A shorter timeout of envd, and a busy machine alone makes the pool replace those who are well.
    settings = ["warm_pool=base=2", "pool_check_interval_ms=300", "envd_timeout_ms=6000"]
    with CaissonServer([part for s in settings for part in ("--set", s)]) as server:
        yield server


def test_what_was_asked_for_is_there(pooled: CaissonServer):
    """Variables, metadata, the id and the token, through the SDK."""
    rest = Rest(pooled)
    wait_until_ready(rest, 2)
    before = pool_numbers(rest)["hit"]
    variables = pooled.sdk_environment
    sandbox = Sandbox.create(envs={"GREETING": "hello"}, metadata={"who": "me"}, timeout=60,
                             api_key=variables["E2B_API_KEY"], api_url=variables["E2B_API_URL"],
                             sandbox_url=variables["E2B_SANDBOX_URL"])
    try:
        assert pool_numbers(rest)["hit"] == before + 1
        seen = sandbox.commands.run("echo $GREETING $E2B_SANDBOX_ID; cat /run/e2b/.E2B_SANDBOX_ID")
        assert seen.stdout.splitlines() == [f"hello {sandbox.sandbox_id}", sandbox.sandbox_id]
        assert sandbox.get_info().metadata == {"who": "me"}
        assert rest.detail(sandbox.sandbox_id)["metadata"] == {"who": "me"}
        # Without the token envd answers nobody.
        assert Envd(pooled, {"sandboxID": sandbox.sandbox_id}).unary(
            "process.Process/List").status == 401
    finally:
        sandbox.kill()
    story = rest.get(f"/api/v1/sandboxes/{sandbox.sandbox_id}/timeline").json()["events"]
    assert story[0]["fields"]["from"] == "pool" and story[-1]["type"] == "killed"


def test_an_open_sandbox_from_the_pool_is_open(pooled: CaissonServer):
    rest = Rest(pooled)
    wait_until_ready(rest, 2)
    made = rest.post("/sandboxes", {"templateID": "base", "timeout": 60}).json()
    try:
        assert not made.get("envdAccessToken")
        assert Envd(pooled, made).run("echo open")[0] == b"open\n"
    finally:
        rest.kill(made)


def test_those_who_wait_are_not_seen_and_not_shared(pooled: CaissonServer):
    rest = Rest(pooled)
    wait_until_ready(rest, 2)
    assert rest.list() == []
    made = [rest.create() for _ in range(6)]  # more than are ready
    try:
        assert len({m["sandboxID"] for m in made}) == 6
        assert {m["sandboxID"] for m in rest.list()} == {m["sandboxID"] for m in made}
        assert all(Envd(pooled, m).run("echo $E2B_SANDBOX_ID")[0].decode().strip()
                   == m["sandboxID"] for m in made)
    finally:
        for m in made:
            rest.kill(m)


def waiting_envds(pooled: CaissonServer) -> list[int]:
    """The host's pids of every envd of this server."""
    engine = pooled.program_pids()[1:]
    assert engine
    records = [p.stem for p in (pooled.data_dir / "engine/sandboxes/").glob("*.json")]
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            group = open(f"/proc/{entry}/cgroup").read()
            status = open(f"/proc/{entry}/status").read()
        except OSError:
            continue
        inside = re.search(r"^NSpid:.*\t1$", status, re.MULTILINE)
        if inside and any(record in group for record in records):
            found.append(int(entry))
    return found


def wait_for_envds(server: CaissonServer, count: int) -> None:
    wait_until_gone(lambda: {len(waiting_envds(server))} - {count}, f"another number of envds than {count}")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_the_sick_and_the_dead_are_replaced(pooled: CaissonServer, how: signal.Signals):
    rest = Rest(pooled)
    wait_until_ready(rest, 2)
    wait_for_envds(pooled, 2)  # of tests before there may be some that still end
    victims = waiting_envds(pooled)
    os.kill(victims[0], how)
    deadline = time.monotonic() + 60
    while victims[0] in waiting_envds(pooled) or pool_numbers(rest)["ready"] != 2:
        assert time.monotonic() < deadline, (victims, waiting_envds(pooled))
        time.sleep(0.05)
    with rest.sandbox() as made:
        assert Envd(pooled, made).run("echo well")[0] == b"well\n"


def test_a_stop_or_a_crash_leaves_no_one_waiting(make_server):
    server = make_server(["--set", "warm_pool=base=2"])
    rest = Rest(server)
    wait_until_ready(rest, 2)
    made = rest.create(timeout=900)
    for end in (server.crash, server.stop):
        wait_until_ready(rest, 2)
        end()
        server.restart()
        wait_until_ready(rest, 2)
        assert [m["sandboxID"] for m in rest.list()] == [made["sandboxID"]]
        wait_for_envds(server, 3)
    rest.kill(made)
