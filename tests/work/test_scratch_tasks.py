"""Tasks without a repository, and what a task has changed: in its sandbox, and kept afterwards."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.forge import Forge
from support.forge_plugin import FORGE_REPOSITORY
from support.postgres import Postgres
from support.sessions import wait_until
from support.work import DEADLINE_S, ENDED, Platform

STEPS = ["provision", "clone", "branch", "agent", "commit", "push", "pull_request", "finish"]
CRASHES = [("provision", "after_effect"), ("clone", "after_effect"), ("clone", "after_commit"),
           ("branch", "after_effect"), ("agent", "after_claim"), ("commit", "after_effect"),
           ("commit", "after_commit"), ("push", "after_effect"), ("finish", "after_effect")]
SITE = "mkdir -p site; echo '<h1>Hi</h1>' > site/index.html; printf 'a\\0b' > site/picture; echo x > noise.log; echo '*.log' > .gitignore"
# Waits in the middle until somebody lets it go on.
HELD = ("echo one > kept.txt; git add kept.txt; git -c user.name=me -c user.email=me@example.com commit -qm 'feat: one';"
        "echo two > new.txt; while [ ! -e /tmp/go ]; do sleep 0.1; done; rm new.txt; echo three > last.txt")


def start(platform: Platform, script: str, **fields: object) -> dict:
    """A task that has no repository, unless `fields` name one."""
    return platform.start(platform.add_agent(script), **{"repo_url": "", **fields})


def changes(platform: Platform, started: dict, **query: object) -> dict:
    return platform.get(f"/tasks/{started['task_id']}/changes", **query)


def until(platform: Platform, started: dict, path: str, **query: object) -> dict:
    """The changes, once they hold this file."""
    deadline = time.monotonic() + DEADLINE_S
    while path not in kinds(found := changes(platform, started, **query)):
        assert time.monotonic() < deadline, found
        time.sleep(0.1)
    return found


def kinds(found: dict) -> dict[str, str]:
    return {f["path"]: f["status"] for f in found["files"]}


@pytest.mark.quick
def test_a_task_without_a_repository(make_server) -> None:
    """No forge, no token: the work is committed and kept, nothing is pushed."""
    platform = Platform(make_server())
    started = start(platform, SITE)
    run = platform.wait(started)
    assert [step["name"] for step in run["steps"]] == STEPS
    assert {step["state"] for step in run["steps"]} == {"done"}
    task = platform.get(f"/tasks/{started['task_id']}")
    assert task["status"] == "in_review" and task["pull_request_url"] == "" and task["repo_url"] == ""
    execution = platform.get(f"/executions/{started['execution_id']}")
    assert [c["message"].splitlines()[0] for c in execution["commits"]] == ["chore: Write the file"], execution
    operations = platform.get(f"/tasks/{started['task_id']}/operations")["operations"]
    names = {o["operation"] for o in operations}
    assert {"init", "branch", "commit"} <= names and not names & {"clone", "push"}, names
    assert platform.live_sandboxes() == []

    found = changes(platform, started)
    assert found["source"] == "stored" and not found["truncated"]
    assert found["branch"] == task["git_branch"] and found["head_sha"] == execution["head_sha"]
    assert found["base_sha"] == execution["base_sha"] != found["head_sha"]
    assert kinds(found) == {".gitignore": "added", "site/index.html": "added", "site/picture": "added"}
    (page,) = [f for f in found["files"] if f["path"] == "site/index.html"]
    assert page == {"path": "site/index.html", "old_path": "", "status": "added", "additions": 1,
                    "deletions": 0, "binary": False}
    assert [f["binary"] for f in found["files"] if f["path"] == "site/picture"] == [True]
    assert "+<h1>Hi</h1>" in found["patch"]


@pytest.mark.timeout(180)
def test_changes_while_the_agent_works(platform: Platform, forge: Forge) -> None:
    started = start(platform, HELD, repo_url=FORGE_REPOSITORY)
    until(platform, started, "new.txt")
    found = changes(platform, started)  # the first look may have begun before the commit
    assert found["source"] == "sandbox" and kinds(found) == {"kept.txt": "added", "new.txt": "added"}
    assert "+one" in found["patch"] and "+two" in found["patch"]
    last = changes(platform, started, against="last")
    assert last["source"] == "sandbox" and kinds(last) == {"new.txt": "added"}
    assert last["base_sha"] == last["head_sha"] == found["head_sha"] != found["base_sha"]
    git = platform.get(f"/tasks/{started['task_id']}/git")
    assert git["uncommitted_changes"] == 1 and git["last_commit_sha"] == found["head_sha"], git
    assert git["base_branch"] == "main" and git["current_branch"] == found["branch"], git
    # Looking is not told as work.
    told = {o["operation"] for o in platform.get(f"/tasks/{started['task_id']}/operations")["operations"]}
    assert "changes" not in told
    sandbox = platform.get(f"/executions/{started['execution_id']}")["sandbox_id"]
    platform.ask("POST", f"/sandboxes/{sandbox}/execute", {"command": "touch /tmp/go"}, 200)
    platform.wait(started)
    git = platform.get(f"/tasks/{started['task_id']}/git")
    (commit, *_) = platform.get(f"/executions/{started['execution_id']}")["commits"]
    assert git["uncommitted_changes"] == 0 and git["last_commit_sha"] == commit["sha"], git
    assert git["last_commit_message"] == commit["message"] and FORGE_REPOSITORY in git["repo_url"], git
    for against in ("base", "last"):
        kept = changes(platform, started, against=against)
        assert kept["source"] == "stored" and kinds(kept) == {"kept.txt": "added", "last.txt": "added"}
    assert kept["base_sha"] == forge.repositories[FORGE_REPOSITORY].git.run("rev-parse", "main").stdout.strip()


@pytest.mark.timeout(180)
def test_changes_are_there_while_the_sandbox_ends(platform: Platform) -> None:
    """Whoever asks in the middle of it gets what the sandbox had, or what is kept: never an error."""
    started = start(platform, "seq 20000 > long.txt; sleep 1")

    def ask(_: int) -> dict:
        end = time.monotonic() + 120
        while (found := changes(platform, started))["source"] != "stored" or not found["files"]:
            assert time.monotonic() < end, found
            time.sleep(0.01)
        return found

    with ThreadPoolExecutor(4) as askers:
        for found in askers.map(ask, range(4)):
            assert kinds(found) == {"long.txt": "added"}


@pytest.mark.timeout(180)
def test_feedback_adds_to_the_changes(platform: Platform) -> None:
    """The second attempt goes on with the branch; the changes are those of both."""
    started = start(platform, "date +%N > $(date +%N).txt", repo_url=FORGE_REPOSITORY)
    platform.wait(started)
    (first,) = kinds(changes(platform, started))
    again = platform.ask("POST", f"/tasks/{started['task_id']}/start", {"feedback": "once more"}, 202).json()
    platform.wait(again)
    both = kinds(changes(platform, started))
    assert len(both) == 2 and first in both


def test_changes_are_bounded_redacted_and_their_owners(make_server) -> None:
    platform = Platform(make_server(env={"CAISSON_TASK_CHANGES_MAX_BYTES": "2000", "GITHUB_TOKEN": "a-token-of-this-server"}))
    agent = platform.add_agent("echo a-token-of-this-server > a.txt; seq 10000 > long.txt")
    fresh = platform.ask("POST", "/tasks", {"title": "Later"}, 201).json()
    none = platform.get(f"/tasks/{fresh['id']}/changes")
    assert none == {"source": "none", "base_sha": "", "head_sha": "", "branch": "", "files": [], "patch": "",
                    "truncated": False}
    git = platform.get(f"/tasks/{fresh['id']}/git")
    assert git["uncommitted_changes"] is None and git["last_commit_sha"] == "", git
    started = platform.start(agent, repo_url="")
    platform.wait(started)
    found = changes(platform, started)
    assert found["truncated"] and 0 < len(found["patch"]) <= 2000
    assert kinds(found) == {"a.txt": "added", "long.txt": "added"}
    assert "a-token-of-this-server" not in str(found) and "***" in found["patch"]
    assert platform.ask("GET", f"/tasks/{started['task_id']}/changes?against=now").status == 422
    user = platform.ask("POST", "/users", {"name": "somebody"}, 201).json()
    key = platform.ask("POST", "/keys", {"name": "k", "user_id": user["id"]}, 201).json()["key"]
    for route in ("changes", "git"):
        assert platform.ask("GET", f"/tasks/{started['task_id']}/{route}", key=key).status == 404
    platform.ask("DELETE", f"/tasks/{started['task_id']}", status=204)
    assert platform.ask("GET", f"/tasks/{started['task_id']}/changes").status == 404


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("step", "point"), CRASHES)
def test_a_crash_changes_nothing(make_server, step: str, point: str) -> None:
    """kill -9 of the server and its engine in every step: one commit, kept once."""
    server = make_server(env={"CAISSON_FLOW_CRASH_AT": f"{step}:{point}", "CAISSON_FLOW_RETRY_MIN_MS": "100"})
    platform = Platform(server)
    agent = platform.add_agent("sleep 1; echo done > work.txt")
    started = None
    try:
        started = platform.start(agent, repo_url="")
    except ConnectionError:  # it died before it could answer
        pass
    server.process.wait(timeout=90)
    server.crash()
    del server.env["CAISSON_FLOW_CRASH_AT"]
    server.start()
    if started is None:
        (run,) = platform.get("/runs")["runs"]
        started = {"run_id": run["id"], "execution_id": run["execution_id"], "task_id": run["task_id"]}
    platform.wait(started)
    execution = platform.get(f"/executions/{started['execution_id']}")
    assert len(execution["commits"]) == 1, execution
    found = changes(platform, started)
    assert found["source"] == "stored" and kinds(found) == {"work.txt": "added"}
    assert found["head_sha"] == execution["head_sha"] and found["base_sha"] == execution["base_sha"]
    assert platform.live_sandboxes() == []


@pytest.mark.timeout(180)
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_the_demonstration(make_server, request: pytest.FixtureRequest, database: str) -> None:
    env = {}
    if database == "postgresql":
        postgres: Postgres = request.getfixturevalue("postgres")
        env["CAISSON_DATABASE_URL"] = postgres.url(postgres.create_database())
    platform = Platform(make_server(env=env))
    demo = platform.ask("POST", "/demo", status=201).json()
    assert set(demo) == {"task_id", "agent_id"}
    # While it works it is the answer, however often it is asked for.
    assert platform.ask("POST", "/demo", status=200).json() == demo
    agent = platform.get(f"/agents/{demo['agent_id']}")
    assert agent["name"] == "demo" and agent["adapter"] == "command"
    (execution,) = platform.get(f"/tasks/{demo['task_id']}/executions")["executions"]
    platform.wait(execution)
    assert platform.get(f"/tasks/{demo['task_id']}")["status"] == "in_review"
    found = changes(platform, demo)
    assert found["source"] == "stored"
    assert kinds(found) == {"index.html": "added", "style.css": "added", "test.sh": "added"}
    types = [e["type"] for e in platform.events(task_id=demo["task_id"])]
    assert types.count("message") >= 3 and types.count("agent_tool") == 2 and types.count("file_changed") == 3, set(types)
    done = platform.get(f"/executions/{execution['id']}")
    assert "test that passes" in done["summary"]
    # The agent is found again, the task is a new one.
    second = platform.ask("POST", "/demo", status=201).json()
    assert second["agent_id"] == demo["agent_id"] and second["task_id"] != demo["task_id"]
    (execution,) = platform.get(f"/tasks/{second['task_id']}/executions")["executions"]
    platform.wait(execution)


def test_everybody_has_a_demonstration_of_their_own(make_server) -> None:
    platform = Platform(make_server())
    user = platform.ask("POST", "/users", {"name": "somebody"}, 201).json()
    key = platform.ask("POST", "/keys", {"name": "k", "user_id": user["id"]}, 201).json()["key"]
    mine = platform.ask("POST", "/demo", status=201).json()
    theirs = platform.ask("POST", "/demo", status=201, key=key).json()
    assert mine["agent_id"] != theirs["agent_id"]
    assert platform.ask("GET", f"/tasks/{mine['task_id']}", key=key).status == 404
    for task, owner in ((mine, ""), (theirs, key)):
        platform.ask("POST", f"/tasks/{task['task_id']}/cancel", status=202, key=owner)
    for task, owner in ((mine, ""), (theirs, key)):  # until their sandboxes are gone
        path = f"/runs?task_id={task['task_id']}"
        wait_until(lambda path=path, owner=owner: all(
            run["state"] in ENDED for run in platform.ask("GET", path, status=200, key=owner).json()["runs"]), path)


def test_pull_requests_are_found_by_their_state(platform: Platform, forge: Forge) -> None:
    agent = platform.add_agent("echo $RANDOM > $RANDOM.txt")
    drafted, opened = platform.start(agent, "First", options={"draft": True}), None
    platform.wait(drafted)
    opened = platform.start(agent, "Second")
    platform.wait(opened)
    platform.ask("POST", "/tasks", {"title": "Third"}, 201)

    def found(state: str) -> list[str]:
        return [t["title"] for t in platform.get("/tasks", pull_request_state=state)["tasks"]]

    assert found("any") == ["Second", "First"]
    assert found("open") == ["Second"] and found("draft") == ["First"]
    assert found("merged") == found("closed") == []
    assert platform.ask("GET", "/tasks?pull_request_state=odd").status == 422
