"""A full disk, an envd that stands still, a clock that jumps: a clear answer, and nothing is lost."""

from __future__ import annotations

import datetime
import os
import signal
import sqlite3

import pytest
from subject import Subject, wait_for

from support.processes import envd_pid
from support.rest import Rest, assert_error

SMALL = {"memory_kb": 256, "file_kb": 256}
HUGE_MB = 1 << 40  # more than any disk has


@pytest.mark.timeout(120)
def test_a_full_disk_refuses_to_save_and_the_sandbox_runs_on(make_server):
    rest = Rest(make_server(["--set", f"min_free_disk_mb={HUGE_MB}"]))
    subject = Subject.start(rest, **SMALL)
    for action in ("pause", "snapshots", "fork"):
        assert_error(subject.post(action, {}), 503, "no room")
        assert subject.state() == "running"
        subject.check()
    assert rest.list("state=running,paused") == rest.list()
    assert rest.get("/snapshots").json() == []


@pytest.mark.timeout(120)
def test_a_full_disk_at_the_end_of_its_time(make_server):
    """It cannot be put away: it is given more time instead of being lost, and says so."""
    rest = Rest(make_server(["--set", f"min_free_disk_mb={HUGE_MB}"]))
    subject = Subject.start(rest, **SMALL, autoPause=True)
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
    """The host's clock cannot be set here; to a server that starts, times in its rows that lie far
    in the past or in the future look the same."""
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
