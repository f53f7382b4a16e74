"""kill -9 of the server's processes at many moments of every operation: afterwards every sandbox
is there once, finished or gone; what is there is whole, and nothing is left of what is gone.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from subject import Subject, number_from, wait_for

from support import census
from support.rest import Response, Rest
from support.server import CaissonServer

MOMENTS = number_from("INTEGRITY_MOMENTS", gate=1, full=8)
SMALL = {"memory_kb": 256, "file_kb": 256}
OPERATIONS = ("create", "pause", "resume", "snapshot", "fork", "kill")


# ---- who is killed --------------------------------------------------------------------------


def title_of(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    return ""


def kill_everything(server: CaissonServer) -> None:
    server.crash()


def kill_server(server: CaissonServer) -> None:
    """Only the process that clients talk to; the engine sees that it is gone and ends."""
    others = server.program_pids()[1:]
    _end_server(server, signal.SIGKILL)
    wait_for(lambda: not any(title_of(p).startswith("caisson:") for p in others), "the engine ends")


def kill_engine(server: CaissonServer) -> None:
    """The server process ends by itself when its engine is gone."""
    for pid in server.program_pids():
        if title_of(pid) == "caisson: engine":
            os.kill(pid, signal.SIGKILL)
    _end_server(server, None)


def kill_launchers(server: CaissonServer) -> None:
    """Nobody but those at work; the server goes on."""
    for pid in server.program_pids():
        if title_of(pid) == "caisson: launcher":
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _end_server(server: CaissonServer, number: signal.Signals | None) -> None:
    process = server.process
    assert process is not None
    if number is not None:
        process.send_signal(number)
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        pytest.fail(f"the server goes on without its engine\n{server.log_tail()}")
    server.process = None


VICTIMS: dict[str, Callable[[CaissonServer], None]] = {
    "all": kill_everything,
    "server": kill_server,
    "engine": kill_engine,
    "launchers": kill_launchers,
}


# ---- one crash ------------------------------------------------------------------------------


class Trial:
    """A sandbox in the state an operation needs, the operation, and what must be true after."""

    def __init__(self, rest: Rest, operation: str, subject: Subject) -> None:
        self.rest = rest
        self.operation = operation
        self.subject = subject
        self.answer: Response | None = None

    def prepare(self) -> None:
        if self.operation == "resume":
            self.subject.pause()

    def ask(self) -> None:
        with contextlib.suppress(OSError):  # the server is gone, as the test wants
            self.answer = self._ask()

    def _ask(self) -> Response:
        if self.operation == "create":
            return self.rest.post("/v2/sandboxes", {"templateID": "base", "timeout": 600})
        if self.operation == "kill":
            return self.rest.kill(self.subject.id)
        action = {"resume": "connect", "snapshot": "snapshots"}.get(self.operation, self.operation)
        bodies = {"resume": {"timeout": 600}, "fork": {"count": 2, "timeout": 600}}
        return self.subject.post(action, bodies.get(self.operation))

    def promised(self) -> bool:
        """The client was told that it is done."""
        return self.answer is not None and self.answer.status in (200, 201, 204)

    def outcome(self) -> str:
        """Checks everything and says in a word what became of it."""
        listed = {one["sandboxID"]: one["state"] for one in self.rest.list("state=running,paused")}
        assert len(listed) == len(self.rest.list("state=running,paused")), "one is listed twice"
        snapshots = [one["snapshotID"] for one in self.rest.get("/snapshots").json()]
        state = listed.get(self.subject.id, "gone")
        self._check_promise(state, listed, snapshots)
        check_host(self.rest, listed)
        self._check_contents(listed, snapshots)
        others = [sandbox_id for sandbox_id in listed if sandbox_id != self.subject.id]
        for sandbox_id in others:
            assert self.rest.kill(sandbox_id).status == 204
        for snapshot in snapshots:
            assert self.rest.delete("/templates/" + snapshot).status == 204
        what = {"create": len(others), "fork": len(others), "snapshot": len(snapshots)}
        if self.operation in what:
            state = f"{what[self.operation]} made"
        if self.promised():
            return state
        return f"{state} ({f'refused with {self.answer.status}' if self.answer else 'no answer'})"

    def _check_promise(self, state: str, listed: dict[str, str], snapshots: list[str]) -> None:
        """What was answered is so, and nothing but a kill ends a sandbox."""
        if self.operation != "kill":
            assert state != "gone", f"lost after {self.answer}"
        if not self.promised():
            return
        if self.operation == "create":
            assert self.answer.json()["sandboxID"] in listed
        if self.operation == "fork":
            made = [one["sandbox"]["sandboxID"] for one in self.answer.json() if "sandbox" in one]
            assert set(made) <= set(listed)
        if self.operation == "snapshot":
            assert self.answer.json()["snapshotID"] in snapshots
        expected = {"pause": "paused", "resume": "running", "kill": "gone"}
        assert state == expected.get(self.operation, "running")

    def _check_contents(self, listed: dict[str, str], snapshots: list[str]) -> None:
        for sandbox_id in listed:
            detail = self.rest.detail(sandbox_id)
            if self.operation == "create" and sandbox_id != self.subject.id:
                continue
            one = Subject(self.rest, detail, self.subject.seen)
            if listed[sandbox_id] == "paused":
                one.connect()
            one.check()
        for snapshot in snapshots:
            copy = self.subject.copy_of(snapshot)
            copy.check()
            copy.kill()


def check_host(rest: Rest, listed: dict[str, str]) -> None:
    """The machine has exactly what is listed: nothing is doubled, nothing is orphaned."""
    server = rest.server
    running = {one for one, state in listed.items() if state == "running"}
    paused = {one for one, state in listed.items() if state == "paused"}
    snapshots = {one["snapshotID"].partition(":")[0] for one in rest.get("/snapshots").json()}

    def differences() -> list[str]:
        found = []
        taken = census.take(server)
        inside = census.processes_by_sandbox(server)
        if set(inside) != running:
            found.append(f"processes of {sorted(inside)}, running are {sorted(running)}")
        doubled = [one for one, pids in inside.items() if census.first_processes(pids) != 1]
        if doubled:
            found.append(f"not one envd each: {doubled}")
        records = {name.partition(".")[0] for name in taken.get("files", [])}
        if records != running or len(taken.get("slots", [])) != len(running):
            found.append(f"running {running}, records {records}, slots {taken.get('slots')}")
        if set(census.saved(server)) != paused | snapshots:
            found.append(f"saved {census.saved(server)}, paused {paused}, snapshots {snapshots}")
        if "mounts" in taken:
            found.append(f"mounts: {taken['mounts']}")
        return found

    end = time.monotonic() + 10
    while left := differences():
        assert time.monotonic() < end, left
        time.sleep(0.1)


# ---- the matrix -----------------------------------------------------------------------------


def run_trial(rest: Rest, trial: Trial, victim: str, delay_s: float) -> None:
    other = threading.Thread(target=trial.ask)
    other.start()
    time.sleep(delay_s)
    VICTIMS[victim](rest.server)
    other.join(120)
    assert not other.is_alive(), "a request never ended"
    if rest.server.process is None:
        rest.server.restart()


def usual_duration(rest: Rest, operation: str) -> float:
    """How long the operation takes when nobody disturbs it."""
    subject = Subject.start(rest, **SMALL)
    trial = Trial(rest, operation, subject)
    trial.prepare()
    begun = time.monotonic()
    trial.ask()
    took = time.monotonic() - begun
    assert trial.promised(), trial.answer
    trial.outcome()
    rest.kill(subject.id)
    return took


def start_over(rest: Rest) -> Subject:
    """After a loss: away with everything, so that the next trial is not blamed for it."""
    if rest.server.process is not None:
        rest.server.stop()
    rest.server.restart()
    rest.server.kill_all_sandboxes()
    for one in rest.get("/snapshots").json():
        rest.delete("/templates/" + one["snapshotID"])
    return Subject.start(rest, **SMALL)


def moment(index: int, moments: int, turn: int, operation: str) -> float:
    """When of the whole time, 0 to 1. Each victim in its turn, and each operation, is struck at others, so that few
    moments are spread, too."""
    shift = (turn + OPERATIONS.index(operation) + 0.5) / len(VICTIMS) % 1
    return (index + shift) / moments


@pytest.mark.timeout(400)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_crash_at_any_moment(make_server, figure, operation: str):
    server: CaissonServer = make_server()
    rest = Rest(server)
    duration = usual_duration(rest, operation)
    subject = Subject.start(rest, **SMALL)
    steps = itertools.count()
    losses = []
    for turn, victim in enumerate(VICTIMS):
        moments = MOMENTS if victim == "all" else max(1, MOMENTS // 2)
        outcomes: Counter[str] = Counter()
        for index in range(moments):
            delay_s = duration * 1.2 * moment(index, moments, turn, operation)
            trial = Trial(rest, operation, subject)
            try:
                subject.step(next(steps))
                trial.prepare()
                run_trial(rest, trial, victim, delay_s)
                outcomes[trial.outcome()] += 1
            except AssertionError as error:
                why = str(error).splitlines()[0]
                losses.append(f"{victim} killed after {delay_s * 1000:.0f} ms: {why}")
                subject = start_over(rest)
            if rest.get(f"/sandboxes/{subject.id}").status == 404:
                subject = Subject.start(rest, **SMALL)
        told = ", ".join(f"{count} x {what}" for what, count in sorted(outcomes.items()))
        lost = moments - outcomes.total()
        figure(f"crash: {operation:8} {victim:9} {moments:2} kills, {lost} losses: {told}")
    subject.kill()
    assert not losses, "\n".join(losses)
    census.wait_until_empty(server)
    wait_for(lambda: not census.saved(server) and not census.layers(server), "nothing is kept")
