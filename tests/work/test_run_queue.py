"""Runs that wait for their start: how many of a repository begin, and how long one may wait, over a crash."""

from __future__ import annotations

import subprocess
from datetime import datetime

import pytest
from support.forge import Forge
from support.server import CaissonServer, find_binary
from support.work import BUSY, COUNTING, Platform, settings_for

pytestmark = pytest.mark.timeout(400)


def show(platform: Platform, run_id: str) -> str:
    return subprocess.run(
        [str(find_binary()), "run", "show", run_id], capture_output=True, text=True, timeout=90, check=True,
        env={"CAISSON_URL": platform.server.url, "CAISSON_API_KEY": platform.server.api_key}).stdout


def restart(server: CaissonServer, **settings: str) -> None:
    server.crash()
    server.env.update(settings)
    server.restart()


def test_a_run_that_waits_too_long_is_given_up(make_server, forge: Forge) -> None:
    server: CaissonServer = make_server(env=settings_for(forge, CAISSON_FLOW_MAX_PER_REPO="1"))
    platform = Platform(server)
    works = platform.start(platform.add_agent(COUNTING, "works"))
    platform.next_line(works)
    assert platform.run(works["run_id"])["queue_expires_at"] is None
    restart(server, CAISSON_FLOW_QUEUE_TTL_S="3600")
    patient = platform.start(platform.add_agent(BUSY.format(file="patient.txt"), "patient"))
    run = platform.run(patient["run_id"])
    assert run["state"] == "queued"
    waits_s = datetime.fromisoformat(run["queue_expires_at"]) - datetime.fromisoformat(run["created_at"])
    assert 3590 < waits_s.total_seconds() < 3610, run
    assert run["queue_expires_at"] in show(platform, patient["run_id"])

    restart(server, CAISSON_FLOW_QUEUE_TTL_S="1")
    hasty = platform.start(platform.add_agent(BUSY.format(file="hasty.txt"), "hasty"))
    restart(server)
    run = platform.wait(hasty, "dead")
    assert "flow_queue_ttl_s" in run["error"] and run["error_class"] == "transient", run
    assert run["queue_expires_at"] is None and run["started_at"] is None
    assert [step["state"] for step in run["steps"]] == ["failed"], "nothing was done, nothing is cleaned up"
    assert platform.get(f"/tasks/{hasty['task_id']}")["status"] == "failed"
    assert platform.get(f"/executions/{hasty['execution_id']}")["error"] == run["error"]
    (told,) = platform.events(type="error", task_id=hasty["task_id"])
    assert told["message"] == run["error"]
    assert run["error"] in show(platform, hasty["run_id"])

    # It held up nobody, and who had more patience has its turn.
    platform.enough(works)
    platform.wait(works)
    platform.wait(patient)
    restart(server, CAISSON_FLOW_QUEUE_TTL_S="0")
    platform.ask("POST", f"/runs/{hasty['run_id']}/retry", {}, 200)
    assert platform.wait(hasty)["started_at"]


def test_runs_of_a_repository_begin_at_a_rate(make_server, forge: Forge) -> None:
    server: CaissonServer = make_server(env=settings_for(forge, CAISSON_FLOW_STARTS_PER_REPO="1"))
    platform = Platform(server)
    first, second, other = (
        platform.start(platform.add_agent(BUSY.format(file=f"{name}.txt"), name), **fields)
        for name, fields in (("first", {}), ("second", {}), ("other", {"repo_url": ""})))
    platform.wait(other)
    restart(server)
    begun = {name: datetime.fromisoformat(platform.wait(one, deadline_s=200)["started_at"])
             for name, one in (("first", first), ("second", second), ("other", other))}
    assert (begun["second"] - begun["first"]).total_seconds() >= 60, begun
    assert begun["other"] < begun["second"], "one that waits for its turn blocks no others"
