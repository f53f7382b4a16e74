"""A task that is paused in the middle of the agent's work, and goes on where it was."""

from __future__ import annotations

import subprocess
import time

import pytest
from support.forge import Forge
from support.server import CaissonServer, find_binary
from support.work import Platform, settings_for

DEADLINE_S = 120
pytestmark = pytest.mark.timeout(400)
# Counts in a file until it is told to stop; what it knows is in its memory only.
COUNTER = """
n=0; echo $$ > pid.txt
while [ ! -e stop ]; do n=$((n+1)); echo $n >> count.txt; echo "count $n"; sleep 0.1; done
echo "$n by $$" > done.txt; rm stop
"""


def wait_until(what: str, ready, deadline_s: float = DEADLINE_S):
    deadline = time.monotonic() + deadline_s
    while True:
        value = ready()
        if value:
            return value
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.1)


def paused_at_work(platform: Platform, agent: dict, **fields: object) -> tuple[dict, str]:
    """A task whose agent counts, paused; the task as it was started, and the id of its sandbox."""
    started = platform.start(agent, **fields)
    execution = started["execution_id"]
    wait_until("the agent", lambda: "count 3\n" in platform.output(execution_id=execution))
    body = {"reason": "lunch"}
    task = platform.ask("POST", f"/tasks/{started['task_id']}/pause", body, 200).json()
    assert task["paused_at"] and task["pause_reason"] == "lunch" and task["status"] == "in_progress"
    sandbox = platform.get(f"/executions/{execution}")["sandbox_id"]
    wait_until("its sandbox", lambda: platform.get(f"/sandboxes/{sandbox}")["status"] == "paused")
    wait_until("its run", lambda: platform.run(started["run_id"])["state"] == "waiting")
    return started, sandbox


def last_count(platform: Platform, started: dict) -> int:
    lines = platform.output(execution_id=started["execution_id"]).splitlines()
    return int(lines[-1].split()[1])


def stop_counting(platform: Platform, sandbox: str, path: str) -> None:
    body = {"command": f"touch {path}/stop"}
    platform.ask("POST", f"/sandboxes/{sandbox}/execute", body, 200)


def test_an_agent_goes_on_where_it_was(make_server, forge: Forge) -> None:
    """The server is killed while the task is paused; the process in the sandbox is the same one after it."""
    server: CaissonServer = make_server(env=settings_for(forge))
    platform = Platform(server)
    agent = platform.add_agent(COUNTER)
    started, sandbox = paused_at_work(platform, agent)
    before = last_count(platform, started)
    server.crash()
    server.restart()
    task = platform.get(f"/tasks/{started['task_id']}")
    assert task["paused_at"] and task["pause_reason"] == "lunch"
    assert platform.get(f"/sandboxes/{sandbox}")["status"] == "paused"
    assert last_count(platform, started) == before

    platform.ask("POST", f"/tasks/{started['task_id']}/resume", None, 200)
    wait_until("a count after the pause", lambda: last_count(platform, started) > before + 3)
    path = platform.run(started["run_id"])["steps"][1]["result"]["path"]
    stop_counting(platform, sandbox, path)
    platform.wait(started)

    # Neither begun anew nor told twice: one process counted from one to the end, without a gap.
    counts = [int(line.split()[1]) for line in platform.output(execution_id=started["execution_id"]).splitlines()]
    assert counts == list(range(1, len(counts) + 1))
    branch = platform.get(f"/tasks/{started['task_id']}")["git_branch"]
    git = next(iter(forge.repositories.values())).git
    assert git.file(branch, "done.txt") == f"{counts[-1]} by {git.file(branch, 'pid.txt').strip()}\n"
    kinds = [e["type"] for e in platform.events(task_id=started["task_id"])]
    assert kinds.count("task_paused") == 1 and kinds.count("task_resumed") == 1
    # Paused time is no cost.
    (cost,) = platform.get("/costs", task_id=started["task_id"], kind="sandbox")["costs"]
    rows = platform.events(type="sandbox_status", sandbox_id=sandbox)
    assert [e["status"] for e in rows][:4] == ["pausing", "paused", "resuming", "running"], rows
    assert 0 < cost["sandbox_ms"]


def test_a_paused_task_is_called_off(platform: Platform) -> None:
    started, sandbox = paused_at_work(platform, platform.add_agent(COUNTER))
    platform.ask("POST", f"/tasks/{started['task_id']}/cancel", None, 202)
    platform.wait(started, "canceled")
    task = platform.get(f"/tasks/{started['task_id']}")
    assert task["status"] == "canceled" and task["paused_at"] is None and task["pause_reason"] == ""
    assert platform.live_sandboxes() == []
    platform.ask("POST", f"/tasks/{started['task_id']}/pause", None, 409)


def test_a_pause_is_no_time_of_the_agent(platform: Platform) -> None:
    """Its limit is shorter than the pause, and not over when it goes on."""
    agent = platform.add_agent(COUNTER, config={"command": ["bash", "-c", COUNTER], "timeout_s": 30})
    started, sandbox = paused_at_work(platform, agent)
    before = last_count(platform, started)
    time.sleep(35)
    platform.ask("POST", f"/tasks/{started['task_id']}/resume", None, 200)
    wait_until("a count after the pause", lambda: last_count(platform, started) > before)
    path = platform.run(started["run_id"])["steps"][1]["result"]["path"]
    stop_counting(platform, sandbox, path)
    platform.wait(started)
    (cost,) = platform.get("/costs", task_id=started["task_id"], kind="sandbox")["costs"]
    ended = platform.events(type="sandbox_terminated", sandbox_id=sandbox)[0]
    assert cost["sandbox_ms"] < ended["runtime_seconds"] * 1000 - 30_000, (cost, ended)


def test_pause_from_a_terminal(platform: Platform) -> None:
    agent = platform.add_agent(COUNTER)
    started = platform.start(agent)
    wait_until("the agent", lambda: "count 1\n" in platform.output(execution_id=started["execution_id"]))

    def task(*arguments: str) -> str:
        done = subprocess.run(
            [str(find_binary()), "task", *arguments], capture_output=True, text=True, timeout=90,
            env={"CAISSON_URL": platform.server.url, "CAISSON_API_KEY": platform.server.api_key})
        assert done.returncode == 0, (arguments, done)
        return done.stdout

    task("pause", started["task_id"], "--reason", "tea")
    assert "tea" in task("show", started["task_id"])
    task("resume", started["task_id"])
    assert platform.get(f"/tasks/{started['task_id']}")["paused_at"] is None
    task("cancel", started["task_id"])
    platform.wait(started, "canceled")
