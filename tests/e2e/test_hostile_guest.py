"""What code inside a sandbox can do to envd: noticed, explained, and nobody waits for ever."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from e2b import CommandExitException, Sandbox
from support.envd import Envd
from support.rest import Rest
from support.server import CaissonServer

pytestmark = pytest.mark.timeout(120)


def envd_pid(sandbox_id: str) -> int:
    """The host's pid of a sandbox's envd: PID 1 of the processes in that sandbox's cgroup."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            inside = sandbox_id in (entry / "cgroup").read_text()
            status = (entry / "status").read_text() if inside else ""
        except OSError:
            continue
        numbers = [line.split()[1:] for line in status.splitlines() if line.startswith("NSpid:")]
        if numbers and numbers[0][-1] == "1":
            return int(entry.name)
    raise AssertionError(f"no envd of {sandbox_id}")


def wait_until(condition, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def story(rest: Rest, made: dict) -> str:
    entries = rest.get(f"/sandboxes/{made['sandboxID']}/logs").json()["logEntries"]
    return "\n".join(entry["message"] for entry in entries)


def connect(server: CaissonServer, made: dict) -> Sandbox:
    variables = server.sdk_environment
    return Sandbox.connect(made["sandboxID"], api_key=variables["E2B_API_KEY"],
                           api_url=variables["E2B_API_URL"],
                           sandbox_url=variables["E2B_SANDBOX_URL"])


def test_killed_envd_ends_the_sandbox_with_a_reason(server: CaissonServer, rest: Rest):
    made = rest.create()
    os.kill(envd_pid(made["sandboxID"]), signal.SIGKILL)
    wait_until(lambda: rest.get(f"/sandboxes/{made['sandboxID']}").status == 404)
    answer = Envd(server, made).request("GET", "/health")
    assert answer.status == 502 and "was not found" in answer.json()["message"]
    assert "envd" in story(rest, made)


def test_stopped_envd_is_reported_and_recovers(make_server):
    server = make_server(env={"CAISSON_ENVD_TIMEOUT_MS": "1500"})
    rest = Rest(server)
    with rest.sandbox() as made:
        pid = envd_pid(made["sandboxID"])
        os.kill(pid, signal.SIGSTOP)
        try:
            begun = time.monotonic()
            assert Envd(server, made).request("GET", "/health").status == 502
            assert time.monotonic() - begun < 30
            wait_until(lambda: "envd" in story(rest, made))
        finally:
            os.kill(pid, signal.SIGCONT)
        wait_until(lambda: Envd(server, made).request("GET", "/health").status == 204)


def test_busy_processors_do_not_silence_envd(server: CaissonServer, rest: Rest):
    with rest.sandbox() as made:
        sandbox = connect(server, made)
        spin = "for i in $(seq 64); do (while :; do :; done) & done; wait"
        sandbox.commands.run(spin, background=True, timeout=100)
        assert sandbox.commands.run("echo still here", timeout=60).stdout == "still here\n"


def test_a_memory_hog_dies_alone(server: CaissonServer, rest: Rest):
    with rest.sandbox() as made:
        sandbox = connect(server, made)
        with pytest.raises(CommandExitException):
            sandbox.commands.run("python3 -c 'x = bytearray(3 << 30)'", timeout=60)
        assert sandbox.commands.run("echo alive").stdout == "alive\n"
