"""A thousand pauses of one session, and after each of them everything is as it was."""

from __future__ import annotations

import statistics
import time

import pytest
from subject import Mirror, Subject, number_from

from support.sessions import Session
from support.work import Platform

CYCLES = number_from("INTEGRITY_SESSION_CYCLES", gate=100, full=1000)
SMALL = {"memory_kb": 512, "file_kb": 1024}


def wake(session: Session, subject: Subject, number: int) -> str:
    """By request, by a command, or because somebody asks the server inside."""
    if number % 3 == 0:
        assert session.resume()["status"] == "active"
        return "request"
    if number % 3 == 1:
        assert session.run("echo awake") == "awake\n"
        return "command"
    answer = subject.ask("/count")
    assert answer.status == 200, answer
    return "traffic"


@pytest.mark.timeout(1700)
def test_a_session_loses_nothing(make_server, figure):
    platform = Platform(make_server())
    session = Session.begin(platform, None).ready()
    sandbox = session.sandbox_id()
    made = platform.rest.post(f"/sandboxes/{sandbox}/connect", {"timeout": 3600}).json()
    subject = Subject.inhabit(platform.rest, made, **SMALL)
    losses, pause_ms, woken = [], [], {"request": 0, "command": 0, "traffic": 0}
    begun = time.monotonic()
    with Mirror(**SMALL) as mirror:
        for number in range(1, CYCLES + 1):
            subject.step(number)
            mirror.step(number)
            before = time.monotonic()
            assert session.pause()["status"] == "paused"
            pause_ms.append((time.monotonic() - before) * 1000)
            woken[wake(session, subject, number)] += 1
            lost = subject.losses()
            if number % 10 == 0 or number == CYCLES:
                lost += mirror.differences(subject.seen)
            losses += [f"cycle {number}: {one}" for one in lost]
            assert not losses, losses
    assert session.sandbox_id() == sandbox and session.messages() == []
    figure(
        f"integrity: {CYCLES} cycles of one session, {len(losses)} losses, woken by request "
        f"{woken['request']}, command {woken['command']}, traffic {woken['traffic']}, "
        f"{time.monotonic() - begun:.0f} s (median pause {statistics.median(pause_ms):.0f} ms)"
    )
    platform.ask("DELETE", session.path, status=204)
