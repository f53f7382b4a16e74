"""From a task to a pull request, with real git in a real sandbox against the forge double."""

from __future__ import annotations

import http.client
import json
import time

import pytest
from support import census
from support.forge import Forge
from support.forge_plugin import FORGE_REPOSITORY
from support.work import BUSY, Platform

STEPS = ["provision", "clone", "branch", "agent", "commit", "push", "pull_request", "finish"]


def pulls_of(forge: Forge) -> list:
    return forge.repositories[FORGE_REPOSITORY].pulls


def file_at(forge: Forge, branch: str, path: str) -> str:
    return forge.repositories[FORGE_REPOSITORY].git.run("show", f"{branch}:{path}").stdout


@pytest.mark.quick
def test_a_task_becomes_a_pull_request(platform: Platform, forge: Forge) -> None:
    agent = platform.add_agent(BUSY.format(file="work.txt"))
    started = platform.start(agent, "Write the work file", description="It shall say done.")
    run = platform.wait(started)
    assert [step["name"] for step in run["steps"]] == STEPS
    assert {step["state"] for step in run["steps"]} == {"done"}

    task = platform.get(f"/tasks/{started['task_id']}")
    assert task["status"] == "in_review"
    assert task["pull_request_number"] == 1 and task["pull_request_url"].startswith(forge.url)
    (pull,) = pulls_of(forge)
    assert pull.head == task["git_branch"] and pull.base == "main"
    assert "Write the work file" in pull.body and "It shall say done." in pull.body
    assert file_at(forge, pull.head, "work.txt") == "done\n"
    message = forge.repositories[FORGE_REPOSITORY].git.run("log", "-1", "--format=%B", pull.head).stdout
    assert message.startswith("chore: ") or message.startswith("feat: "), message
    assert f"Caisson-Task: {started['task_id']}" in message
    assert platform.live_sandboxes() == []


def test_cpu_time_of_the_sandbox_is_a_cost(platform: Platform) -> None:
    agent = platform.add_agent("n=0; while [ $n -lt 200000 ]; do n=$((n+1)); done; echo $n > n.txt")
    started = platform.start(agent)
    platform.wait(started)
    (cost,) = platform.get("/costs", task_id=started["task_id"], kind="sandbox")["costs"]
    assert 0 < cost["cpu_ms"] < 600_000 and cost["sandbox_ms"] > 0, cost
    (total,) = platform.get("/costs/stats", by="task", task_id=started["task_id"])["sums"]
    assert total["cpu_ms"] == cost["cpu_ms"]


def test_every_step_is_told(platform: Platform) -> None:
    agent = platform.add_agent(BUSY.format(file="a.txt"))
    started = platform.start(agent)
    platform.wait(started)
    events = platform.events(execution_id=started["execution_id"])
    assert [e["id"] for e in events] == sorted({e["id"] for e in events})
    kinds = [e["type"] for e in events]
    for kind in ("execution_started", "sandbox_created", "git_operation", "command_output",
                 "pr_created", "sandbox_terminated", "execution_completed"):
        assert kind in kinds, kinds
    done = [e["step"] for e in events if e["type"] == "execution_step" and e["state"] == "done"]
    assert done == STEPS
    assert platform.output(execution_id=started["execution_id"]) == "working on it\nfinished\n"
    operations = platform.get(f"/tasks/{started['task_id']}/operations")["operations"]
    assert {"clone", "branch", "commit", "push"} <= {o["operation"] for o in operations}
    assert all(o["status"] == "completed" for o in operations), operations


def test_one_stream_tells_status_and_output(platform: Platform) -> None:
    agent = platform.add_agent(BUSY.format(file="b.txt"))
    connection = http.client.HTTPConnection("127.0.0.1", platform.server.port, timeout=60)
    connection.request("GET", f"/api/v1/events?agent_id={agent['id']}", headers={"X-API-KEY": platform.server.api_key})
    stream = connection.getresponse()
    started = platform.start(agent)
    told, kind = [], ""
    while kind != "execution_completed":
        line = stream.readline().decode().strip()
        kind = line.removeprefix("event: ") if line.startswith("event: ") else kind
        if line.startswith("data: "):
            told.append((kind, json.loads(line[6:])))
    connection.close()
    statuses = [data["status"] for kind, data in told if kind == "agent_updated"]
    assert {"cloning", "working", "pushing"} <= set(statuses), statuses
    output = "".join(data["output"] for kind, data in told if kind == "command_output")
    assert output == "working on it\nfinished\n"
    assert {data["execution_id"] for kind, data in told if kind == "command_output"} == {started["execution_id"]}


def test_commits_of_the_agent_are_kept(platform: Platform, forge: Forge) -> None:
    agent = platform.add_agent(
        "git config user.name me && git config user.email me@example.com && "
        "echo 1 > one && git add . && git commit -qm 'feat: one' && "
        "echo 2 > two && git add . && git commit -qm 'feat: two' && echo 3 > three")
    platform.wait(platform.start(agent))
    (pull,) = pulls_of(forge)
    git = forge.repositories[FORGE_REPOSITORY].git
    subjects = git.run("log", "--format=%s", f"main..{pull.head}").stdout.splitlines()
    assert len(subjects) == 3 and subjects[1:] == ["feat: two", "feat: one"], subjects


@pytest.mark.timeout(180)
def test_the_first_commit_opens_a_draft(platform: Platform, forge: Forge, make_server) -> None:
    here = Platform(make_server(env={**platform.server.env, "CAISSON_PULL_REQUEST": "first_commit"}))
    agent = here.add_agent(
        "git config user.name me && git config user.email me@example.com && "
        "echo 1 > one && git add . && git commit -qm 'feat: one' && "
        "while [ ! -e /tmp/go ]; do sleep 0.2; done; echo 2 > two")
    started = here.start(agent)
    here.wait_for_event("pr_created", task_id=started["task_id"])
    (pull,) = pulls_of(forge)
    assert pull.draft and file_at(forge, pull.head, "one") == "1\n"
    task = here.get(f"/tasks/{started['task_id']}")
    assert task["pull_request_state"] == "draft" and task["status"] == "in_progress"
    sandbox = here.get(f"/executions/{started['execution_id']}")["sandbox_id"]
    here.ask("POST", f"/sandboxes/{sandbox}/execute", {"argv": ["touch", "/tmp/go"]}, 200)
    here.wait(started)
    (pull,) = pulls_of(forge)
    assert not pull.draft and file_at(forge, pull.head, "two") == "2\n"
    assert here.get(f"/tasks/{started['task_id']}")["pull_request_state"] == "open"
    assert len(here.events(type="pr_created", task_id=started["task_id"])) == 1


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_task_outlives_its_sandbox(platform: Platform, forge: Forge, make_server) -> None:
    here = Platform(make_server(env={**platform.server.env, "CAISSON_TASK_SANDBOX_TIMEOUT_S": "40"}))
    agent = here.add_agent(
        "echo begun >> runs.txt; [ $(wc -l < runs.txt) -ge 2 ] || sleep 600; echo finished")
    started = here.start(agent)
    first = here.wait_for_event("sandbox_created", execution_id=started["execution_id"])["sandbox_id"]
    here.wait(started, deadline_s=180)
    (pull,) = pulls_of(forge)
    assert file_at(forge, pull.head, "runs.txt") == "begun\nbegun\n"
    execution = here.get(f"/executions/{started['execution_id']}")
    assert execution["sandbox_id"] != first
    ended = next(e for e in here.events(type="sandbox_terminated", execution_id=started["execution_id"])
                 if e["sandbox_id"] == first)
    assert f"goes on in {execution['sandbox_id']}" in ended["reason"]
    costs = here.get("/costs", task_id=started["task_id"], kind="sandbox")["costs"]
    assert {cost["sandbox_id"] for cost in costs} == {first, execution["sandbox_id"]}
    assert here.live_sandboxes() == []


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_crash_while_a_task_moves_leaves_no_snapshot(platform: Platform, forge: Forge, make_server) -> None:
    """It dies when the old sandbox is copied and the new one is not made."""
    server = make_server(env={**platform.server.env, "CAISSON_TASK_SANDBOX_TIMEOUT_S": "80",
                              "CAISSON_FLOW_CRASH_AT": "agent:after_snapshot"})
    here = Platform(server)
    agent = here.add_agent("echo begun >> runs.txt; [ $(wc -l < runs.txt) -ge 2 ] || sleep 600; echo finished")
    started = here.start(agent)
    server.process.wait(timeout=120)
    server.crash()
    del server.env["CAISSON_FLOW_CRASH_AT"]
    server.start()
    here.wait(started, deadline_s=120)
    (pull,) = pulls_of(forge)
    assert file_at(forge, pull.head, "runs.txt").startswith("begun\nbegun\n")
    assert here.rest.get("/snapshots").json() == [] and here.live_sandboxes() == []


def test_a_task_whose_sandbox_dies_goes_on_in_another(platform: Platform, forge: Forge) -> None:
    agent = platform.add_agent("echo begun; while [ ! -e /tmp/go ]; do sleep 0.2; done; echo done > work.txt")
    started = platform.start(agent)
    about = {"execution_id": started["execution_id"]}
    first = platform.wait_for_event("command_output", **about)["sandbox_id"]
    census.kill_sandbox(platform.server, first)
    deadline = time.monotonic() + 90
    while len(boxes := {e["sandbox_id"] for e in platform.events(type="command_output", **about)}) < 2:
        assert time.monotonic() < deadline, platform.run(started["run_id"])
        time.sleep(0.1)
    (second,) = boxes - {first}
    platform.ask("POST", f"/sandboxes/{second}/execute", {"argv": ["touch", "/tmp/go"]}, 200)
    platform.wait(started)
    (pull,) = pulls_of(forge)
    assert file_at(forge, pull.head, "work.txt") == "done\n"
    lost = platform.get(f"/sandboxes/{first}")
    assert lost["status"] == "terminated" and lost["last_error"] == "gone", lost
    assert platform.live_sandboxes() == []


def test_nothing_changed_means_no_pull_request(platform: Platform, forge: Forge) -> None:
    started = platform.start(platform.add_agent("echo I had a look"))
    platform.wait(started)
    assert pulls_of(forge) == []
    execution = platform.get(f"/executions/{started['execution_id']}")
    assert execution["status"] == "succeeded" and "nothing" in execution["summary"].lower()
    assert platform.live_sandboxes() == []


def test_a_failing_agent_fails_the_task_and_leaves_nothing(platform: Platform, forge: Forge) -> None:
    started = platform.start(platform.add_agent("echo oh no >&2; exit 3"))
    run = platform.wait(started, "failed")
    assert "3" in run["error"], run
    assert platform.get(f"/tasks/{started['task_id']}")["status"] == "failed"
    assert pulls_of(forge) == [] and platform.live_sandboxes() == []
    assert len(platform.events(type="sandbox_terminated", execution_id=started["execution_id"])) == 1


def test_cancelling_reaches_the_process_tree(platform: Platform) -> None:
    started = platform.start(platform.add_agent("echo begun; (sleep 600 & sleep 600 & wait)"))
    platform.wait_for_event("command_output", execution_id=started["execution_id"])
    platform.ask("POST", f"/runs/{started['run_id']}/cancel", {"reason": "no longer needed"}, 200)
    run = platform.wait(started, "canceled", deadline_s=30)
    assert "no longer needed" in run["cancel_reason"]
    assert platform.live_sandboxes() == []
    assert platform.get(f"/tasks/{started['task_id']}")["status"] == "canceled"


def test_feedback_of_a_reviewer_reaches_the_agent(platform: Platform, forge: Forge) -> None:
    agent = platform.add_agent('echo "$CAISSON_TASK" >> said.txt')
    started = platform.start(agent, description="the first text")
    platform.wait(started)
    task = started["task_id"]
    platform.ask("POST", f"/tasks/{task}/move", {"status": "in_progress"}, 422)
    moved = platform.ask("POST", f"/tasks/{task}/move",
                         {"status": "in_progress", "feedback": "please be bolder"}, 200).json()
    again = platform.get(f"/tasks/{task}/executions")["executions"][0]
    platform.wait({"run_id": again["run_id"]})
    assert moved["status"] == "in_progress"
    (pull,) = pulls_of(forge)
    assert "please be bolder" in file_at(forge, pull.head, "said.txt")


def test_a_merged_pull_request_ends_the_task(platform: Platform, forge: Forge, make_server) -> None:
    secret = "a webhook secret"
    env = {"GITHUB_WEBHOOK_SECRET": secret, "CAISSON_DELETE_MERGED_BRANCH": "true"}
    server = make_server(env={**platform.server.env, **env})
    here = Platform(server)
    forge.webhook_url = f"{server.url}/api/v1/webhooks/github"
    forge.webhook_secret = secret
    started = here.start(here.add_agent(BUSY.format(file="a.txt")))
    here.wait(started)
    number = here.get(f"/tasks/{started['task_id']}")["pull_request_number"]
    here.ask("POST", f"/github/pull-requests/{number}/merge", {"repo": FORGE_REPOSITORY, "method": "squash"}, 200)
    merged = here.wait_for_event("pr_merged", task_id=started["task_id"], deadline_s=20)
    assert merged["pr_number"] == number and merged["merge_commit_sha"]
    task = here.get(f"/tasks/{started['task_id']}")
    assert task["status"] == "done"
    deadline = time.monotonic() + 30
    while task["git_branch"] in forge.repositories[FORGE_REPOSITORY].git.branches():
        assert time.monotonic() < deadline, "the branch of a merged pull request stays"
        time.sleep(0.1)


def test_a_sandbox_can_be_kept_for_a_look(platform: Platform, make_server) -> None:
    settings = {"CAISSON_TASK_KEEP_SANDBOX": "true", "CAISSON_WORKSPACE": "/home/user/elsewhere"}
    here = Platform(make_server(env={**platform.server.env, **settings}))
    started = here.start(here.add_agent("echo look > /tmp/trace; echo a > a"))
    here.wait(started)
    sandbox = here.get(f"/executions/{started['execution_id']}")["sandbox_id"]
    assert here.get(f"/sandboxes/{sandbox}")["state"] == "paused"
    here.ask("POST", f"/sandboxes/{sandbox}/resume", {}, 200)
    look = {"command": "cat /tmp/trace elsewhere/widget/a"}
    seen = here.ask("POST", f"/sandboxes/{sandbox}/execute", look, 200).json()
    assert seen["stdout"] == "look\na\n"


def test_ten_agents_do_not_step_on_each_other(platform: Platform, forge: Forge) -> None:
    agents = [platform.add_agent(BUSY.format(file=f"file{n}.txt"), name=f"worker-{n}") for n in range(10)]
    runs = [platform.start(agent, f"Task number {n}") for n, agent in enumerate(agents)]
    for started in runs:
        platform.wait(started, deadline_s=180)
    pulls = pulls_of(forge)
    assert len(pulls) == 10 and len({pull.head for pull in pulls}) == 10
    git = forge.repositories[FORGE_REPOSITORY].git
    for n, started in enumerate(runs):
        branch = platform.get(f"/tasks/{started['task_id']}")["git_branch"]
        changed = git.run("diff", "--name-only", f"main...{branch}").stdout.split()
        assert changed == [f"file{n}.txt"]
    assert platform.live_sandboxes() == []
