"""A full disk, an envd that stands still, a clock that jumps: a clear answer, and nothing is lost."""

from __future__ import annotations

import datetime
import os
import signal
import sqlite3
import struct
import subprocess
import time
from pathlib import Path

import pytest
from subject import Subject, wait_for

from support.processes import envd_pid
from support.rest import Rest, assert_error
from support.server import CaissonServer

SMALL = {"memory_kb": 256, "file_kb": 256}
HUGE_MB = 1 << 40  # more than any disk has


def fill(server: CaissonServer) -> None:
    """From now on the host's disk is too full for this server."""
    server.stop()
    server.args += ["--set", f"min_free_disk_mb={HUGE_MB}"]
    server.restart()


@pytest.mark.timeout(120)
def test_a_full_disk_refuses_to_save_and_the_sandbox_runs_on(make_server):
    server = make_server()
    rest = Rest(server)
    subject = Subject.start(rest, **SMALL)
    fill(server)
    for action in ("pause", "snapshots", "fork"):
        assert_error(subject.post(action, {}), 503, "no room")
        assert subject.state() == "running"
        subject.check()
    assert rest.list("state=running,paused") == rest.list()
    assert rest.get("/snapshots").json() == []


@pytest.mark.timeout(120)
def test_a_full_disk_starts_nothing_and_keeps_what_is_paused(make_server):
    server = make_server()
    rest = Rest(server)
    subject = Subject.start(rest, **SMALL)
    subject.pause()
    fill(server)
    for refused in (
        rest.post("/v2/sandboxes", {"templateID": "base", "timeout": 60}),
        subject.post("connect", {"timeout": 60}),
        subject.post("resume", {"timeout": 60}),
    ):
        assert_error(refused, 503, "disk is too full")
        assert int(refused.header("Retry-After")) >= 1
    assert subject.state() == "paused"
    server.stop()
    del server.args[-2:]
    server.restart()
    subject.connect()
    subject.check()


@pytest.mark.timeout(120)
def test_a_full_disk_at_the_end_of_its_time(make_server):
    """It cannot be put away: it is given more time instead of being lost, and says so."""
    server = make_server()
    rest = Rest(server)
    subject = Subject.start(rest, **SMALL, autoPause=True)
    fill(server)
    assert subject.post("timeout", {"timeout": 1}).status == 204

    def told() -> list[str]:
        events = rest.get(f"/api/v1/sandboxes/{subject.id}/timeline").json()["events"]
        return [event["type"] for event in events]

    wait_for(lambda: "pause_failed" in told(), "the timeline says that it could not be paused")
    subject.check()
    assert subject.state() == "running"


@pytest.mark.timeout(180)
def test_an_envd_that_stands_still(make_server):
    """Stopped by a signal, it is saved as it is, and goes on after it was woken."""
    rest = Rest(make_server(["--set", "envd_timeout_ms=1500"]))
    subject = Subject.start(rest, **SMALL)
    os.kill(envd_pid(subject.id), signal.SIGSTOP)
    assert_error(subject.post("pause", {"requireHealthyGuest": True}), 503, "runs on")
    answer = subject.post("pause")
    assert answer.status == 204 or answer.status >= 500, answer
    if answer.status == 204:
        resumed = subject.post("connect", {"timeout": 60})
        assert resumed.status in (201, 503), resumed
        if resumed.status == 503:
            assert_error(resumed, 503, "envd does not answer")
            assert subject.state() == "paused"
            subject.connect(memory=False)  # its files are there
            assert rest.detail(subject.id)["state"] == "running"
            return
    os.kill(envd_pid(subject.id), signal.SIGCONT)
    subject.check()


@pytest.mark.timeout(120)
@pytest.mark.parametrize("jump_s", [-7 * 86400, 7 * 86400])
def test_a_clock_that_jumped(make_server, jump_s: int):
    """While the server was away: times in its rows lie far in the past or in the future."""
    server = make_server()
    rest = Rest(server)
    running, paused = Subject.start(rest, **SMALL, autoPause=True), Subject.start(rest, **SMALL)
    paused.pause()
    server.stop()
    database = sqlite3.connect(server.data_dir / "db/caisson.db")
    changed = database.execute(
        "UPDATE sandboxes SET started_at = started_at - ?, end_at = end_at - ?",
        (jump_s * 10**9, jump_s * 10**9),
    ).rowcount
    assert changed == 2
    database.commit()
    database.close()
    server.restart()
    if jump_s > 0:  # its time has long passed: paused, as it was asked for
        wait_for(lambda: running.state() == "paused", "paused when its time was over")
        running.connect()
    running.check()
    assert paused.state() == "paused"
    paused.connect()
    paused.check()
    # Whoever comes now has the time it asked for, by the clock of now.
    with rest.sandbox(timeout=60) as made:
        end = datetime.datetime.fromisoformat(rest.detail(made)["endAt"].replace("Z", "+00:00"))
        left = (end - datetime.datetime.now(datetime.UTC)).total_seconds()
        assert 0 < left <= 60, left


class HostClock:
    """The wall clock of a server, to be set while it runs."""

    def __init__(self, folder: Path) -> None:
        self._file, shim = folder / "offset", folder / "clock.so"
        source = Path(__file__).with_name("clock.c")
        compiler = ["clang-19", "-shared", "-fPIC", "-O1", "-o"]
        subprocess.run([*compiler, str(shim), str(source)], check=True, timeout=60)
        self.environment = {"LD_PRELOAD": str(shim), "CLOCK_OFFSET_FILE": str(self._file)}
        self.set(0)

    def set(self, seconds: int) -> None:
        self._seconds = seconds
        with open(self._file, "r+b" if self._file.exists() else "wb") as file:
            file.write(struct.pack("<q", seconds))

    def left(self, rest: Rest, made: dict | str) -> float:
        """Until the end of a sandbox, by the clock of its server."""
        end = datetime.datetime.fromisoformat(rest.detail(made)["endAt"].replace("Z", "+00:00"))
        return end.timestamp() - time.time() - self._seconds


@pytest.mark.timeout(180)
@pytest.mark.parametrize("jump_s", [-7 * 86400, 7 * 86400])
def test_a_clock_that_jumps_while_the_server_runs(make_server, tmp_path, jump_s: int):
    """Nobody ends too early, nobody too late, and the timeline says what happened."""
    clock = HostClock(tmp_path)
    rest = Rest(make_server(env=clock.environment))
    running, paused = Subject.start(rest, **SMALL), Subject.start(rest, **SMALL)
    paused.pause()
    short = rest.create(timeout=30)
    clock.set(jump_s)

    def types(sandbox_id: str) -> list[str]:
        events = rest.get(f"/api/v1/sandboxes/{sandbox_id}/timeline").json()["events"]
        return [event["type"] for event in events]

    wait_for(lambda: "clock_set" in types(running.id), "the server has seen it")
    assert 780 < clock.left(rest, running.id) <= 901
    assert "clock_set" in types(short["sandboxID"])
    running.check()
    # Its time can be changed by the clock of now, and who comes now has what was asked for.
    assert running.post("timeout", {"timeout": 600}).status == 204
    assert 540 < clock.left(rest, running.id) <= 601
    with rest.sandbox(timeout=300) as made:
        assert 240 < clock.left(rest, made) <= 301
    running.pause()
    for subject in (running, paused):
        subject.connect()
        subject.check()
    wait_for(lambda: types(short["sandboxID"])[-1] == "killed", "its time is over", 60)
