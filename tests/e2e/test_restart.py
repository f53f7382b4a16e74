"""Stop, crash and start again: sandboxes live on, and nothing is orphaned."""

from __future__ import annotations

import contextlib
import http.client
import os
import random
import signal
import threading
import time

import pytest

from support import census
from support.envd import Envd
from support.rest import Rest
from support.server import CaissonServer
from support.waiting import wait_until_gone

OCTETS = {"Content-Type": "application/octet-stream"}


def populate(rest: Rest) -> tuple[dict, int]:
    """A sandbox with a file and a process that counts; returns it and the process's pid."""
    made = rest.create(timeout=900, metadata={"kept": "yes"}, envVars={"KEPT": "env"})
    envd = Envd(rest.server, made)
    envd.request("POST", "/files?path=kept.txt", b"kept", OCTETS)
    stream = envd.start("i=0; while :; do i=$((i+1)); echo $i > /tmp/new; mv /tmp/new /tmp/count; sleep 0.1; done")
    pid = stream.next()["event"]["start"]["pid"]
    stream.close()
    return made, pid


def check_alive(rest: Rest, made: dict, pid: int, before: dict) -> None:
    detail = rest.detail(made)
    for name in ("sandboxID", "templateID", "startedAt", "endAt", "metadata", "envdAccessToken"):
        assert detail[name] == before[name], name
    envd = Envd(rest.server, made)  # with the token of before
    assert envd.request("GET", "/files?path=kept.txt").body == b"kept"
    assert envd.run("echo $KEPT")[0] == b"env\n"
    assert pid in [p["pid"] for p in envd.ok("process.Process/List")["processes"]]
    wait = "while [ ! -e /tmp/count ]; do sleep 0.1; done; cat /tmp/count"
    first = int(envd.run(wait)[0])
    goes_on = f"while [ $(cat /tmp/count) -le {first} ]; do sleep 0.1; done"
    assert envd.run(f"timeout 30 sh -c '{goes_on}' && echo yes")[0] == b"yes\n"
    stream = envd.open("process.Process/Connect", {"process": {"pid": pid}})
    assert stream.next()["event"]["start"]["pid"] == pid
    stream.close()


@pytest.mark.timeout(180)
@pytest.mark.parametrize("how", ["stop", "crash"])
def test_sandboxes_outlive_the_server(make_server, how: str):
    server = make_server()
    rest = Rest(server)
    made, pid = populate(rest)
    before = rest.detail(made)
    key = server.api_key
    getattr(server, how)()
    assert census.sandbox_pids(server), "the sandbox died with the server"
    server.restart()
    assert server.api_key == key
    check_alive(rest, made, pid, before)
    assert [s["sandboxID"] for s in rest.list()] == [made["sandboxID"]]
    assert rest.kill(made).status == 204
    census.wait_until_empty(server)


@pytest.mark.timeout(180)
def test_several_crashes_in_a_row(make_server):
    server = make_server()
    rest = Rest(server)
    made, pid = populate(rest)
    before = rest.detail(made)
    for _ in range(3):
        server.crash()
        server.restart()
    check_alive(rest, made, pid, before)
    other = rest.create()
    assert Envd(server, other).run("echo new")[0] == b"new\n"


@pytest.mark.timeout(120)
def test_what_expired_while_the_server_was_away(make_server):
    server = make_server()
    rest = Rest(server)
    short = rest.create(timeout=4)
    long = rest.create(timeout=600)
    server.crash()
    time.sleep(5)
    server.restart()
    end = time.monotonic() + 30
    while rest.get(f"/sandboxes/{short['sandboxID']}").status != 404:
        assert time.monotonic() < end, "an expired sandbox came back"
        time.sleep(0.2)
    assert Envd(server, long).run("echo here")[0] == b"here\n"
    rest.kill(long)
    census.wait_until_empty(server)


@pytest.mark.timeout(120)
def test_a_sandbox_that_died_while_the_server_was_away(make_server):
    server = make_server()
    rest = Rest(server)
    made = rest.create()
    server.crash()
    for pid in census.sandbox_pids(server):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    census.wait_until_dead(server)
    server.restart()
    assert rest.get(f"/sandboxes/{made['sandboxID']}").status == 404
    assert rest.list() == []
    census.wait_until_empty(server)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("round_number", range(3))
def test_crash_in_the_middle_of_creations(make_server, round_number: int):
    """kill -9 while 20 sandboxes are being made; then: no orphan, no half sandbox."""
    server: CaissonServer = make_server()
    rest = Rest(server)
    answered: list[dict] = []

    def create() -> None:
        try:
            answer = rest.post("/v2/sandboxes", {"templateID": "base", "timeout": 600})
            if answer.status == 201:
                answered.append(answer.json())
        except OSError:
            pass  # the server died under us

    threads = [threading.Thread(target=create) for _ in range(20)]
    for thread in threads:
        thread.start()
    time.sleep(random.Random(round_number).uniform(0.01, 0.25))
    server.crash()
    for thread in threads:
        thread.join(60)
    server.restart()
    listed = {s["sandboxID"]: s for s in rest.list()}
    # Whoever was told of a sandbox finds it.
    for made in answered:
        assert made["sandboxID"] in listed
        assert Envd(server, made).run("echo found")[0] == b"found\n"
    # Whatever is listed works and can be killed.
    for sandbox_id in listed:
        token = rest.detail(sandbox_id)["envdAccessToken"]
        envd = Envd(server, {"sandboxID": sandbox_id, "envdAccessToken": token})
        assert envd.request("GET", "/health").status == 204
        assert rest.kill(sandbox_id).status == 204
    census.wait_until_empty(server)
    # And the server still makes sandboxes.
    with rest.sandbox() as made:
        assert Envd(server, made).run("echo again")[0] == b"again\n"


@pytest.mark.timeout(120)
def test_stop_cuts_long_streams_in_time(make_server):
    server = make_server()
    rest = Rest(server)
    made = rest.create()
    stream = Envd(server, made).start("sleep 300")
    stream.next()
    server.stop()  # which fails if it waits for the end of the stream
    with pytest.raises((EOFError, OSError, http.client.HTTPException)):
        list(stream)
    server.restart()


@pytest.mark.timeout(120)
def test_churn_leaves_nothing(server: CaissonServer, rest: Rest):
    made = [rest.create() for _ in range(10)]
    ids = [m["sandboxID"] for m in made]
    for one in made:
        Envd(server, one).run("echo x > /tmp/x; sleep 500 >/dev/null 2>&1 &")
        assert rest.kill(one).status == 204

    def left() -> list[str]:
        """Other tests have sandboxes on this server meanwhile."""
        on_host = [name for names in census.take(server).values() for name in names]
        on_disk = [name for _, directories, files in os.walk(server.data_dir) for name in directories + files]
        return [name for name in on_host + on_disk if any(sandbox_id in name for sandbox_id in ids)]

    wait_until_gone(left, "what ten sandboxes had")
