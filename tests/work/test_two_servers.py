"""Two servers on one PostgreSQL, each with sandboxes of its own: no task is lost, none is done twice, and
what one of them has the other leaves alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.builds import Builds, page
from support.forge import Forge
from support.forge_plugin import FORGE_REPOSITORY
from support.postgres import Postgres
from support.rest import assert_refusal
from support.sessions import Session, wait_until
from support.work import Platform, settings_for

pytestmark = pytest.mark.timeout(300)

STEPS = ["provision", "clone", "branch", "agent", "commit", "push", "pull_request", "finish"]
# Long enough for several looks of the other server.
AGENT = "for i in $(seq 5); do echo line $i; sleep 1; done; echo done > {file}"
Make = Callable[..., list[Platform]]


@pytest.fixture
def make_two(make_server, forge: Forge, postgres: Postgres) -> Make:
    def make(**more: str) -> list[Platform]:
        url = postgres.url(postgres.create_database())
        # They look after their sandboxes all the time.
        often = {"CAISSON_RECONCILE_INTERVAL_S": "1", "CAISSON_HEALTH_INTERVAL_S": "1"}
        env = settings_for(forge, CAISSON_DATABASE_URL=url, CAISSON_BUILD_TIER="none", **often, **more)
        return [Platform(make_server(env=dict(env))) for _ in range(2)]

    return make


def sandbox_of(platform: Platform, started: dict) -> str:
    return platform.get(f"/executions/{started['execution_id']}")["sandbox_id"]


def told(platform: Platform, started: dict, kind: str) -> list[dict]:
    return platform.events(type=kind, execution_id=started["execution_id"])


def owner_and_other(two: list[Platform], sandbox: str) -> list[Platform]:
    """First the server that has the sandbox."""
    return sorted(two, key=lambda one: sandbox not in [box["sandboxID"] for box in one.live_sandboxes()])


def check_done_once(platform: Platform, started: dict, forge: Forge, file: str) -> None:
    run = platform.run(started["run_id"])
    assert [step["name"] for step in run["steps"] if step["state"] == "done"] == STEPS
    repository = forge.repositories[FORGE_REPOSITORY]
    branch = platform.get(f"/tasks/{started['task_id']}")["git_branch"]
    assert [pull.head for pull in repository.pulls].count(branch) == 1
    assert len(repository.git.commits("main", branch)) == 1
    assert repository.git.file(branch, file) == "done\n"
    for once in ("execution_started", "pr_created", "execution_completed"):
        assert len(told(platform, started, once)) == 1, once


def test_tasks_started_at_both_are_done_once(make_two: Make, forge: Forge) -> None:
    two = make_two()
    started = []
    for number in range(4):
        by, file = two[number % 2], f"{number}.txt"
        agent = by.add_agent(AGENT.format(file=file), f"worker {number}")
        started.append((by, by.start(agent, f"Write {file}"), file))
    for by, one, file in started:
        by.wait(one)
        check_done_once(by, one, forge, file)
        # Nobody took its sandbox away in between.
        assert len(told(by, one, "sandbox_created")) == len(told(by, one, "sandbox_terminated")) == 1
        lines = by.output(execution_id=one["execution_id"]).splitlines()
        assert lines == [f"line {i}" for i in range(1, 6)]
    assert len(forge.repositories[FORGE_REPOSITORY].pulls) == 4
    assert [one.live_sandboxes() for one in two] == [[], []]


def test_a_server_that_is_killed_goes_on_with_its_task(make_two: Make, forge: Forge) -> None:
    two = make_two()
    agent = two[0].add_agent(AGENT.format(file="first.txt"), "first")
    started = two[0].start(agent)
    two[0].wait_for_event("command_output", execution_id=started["execution_id"])
    sandbox = sandbox_of(two[0], started)
    owner, other = owner_and_other(two, sandbox)
    owner.server.crash()
    # The other one sees that process die, and has its hands free; but the sandbox is not its own.
    second = other.start(other.add_agent(AGENT.format(file="second.txt"), "second"), "Another")
    other.wait(second)
    assert other.run(started["run_id"])["state"] == "running"
    shown = other.get(f"/sandboxes/{sandbox}")
    assert (shown["status"], shown["backend_state"]) == ("running", "unknown")
    owner.server.start()
    owner.wait(started)
    check_done_once(owner, started, forge, "first.txt")
    check_done_once(other, second, forge, "second.txt")
    assert sandbox_of(owner, started) == sandbox
    assert len(told(owner, started, "sandbox_created")) == 1
    lines = owner.output(execution_id=started["execution_id"]).splitlines()
    assert lines == [f"line {i}" for i in range(1, 6)]
    assert [one.live_sandboxes() for one in two] == [[], []]


def test_a_server_that_is_lost_loses_its_task_to_the_other(make_two: Make, forge: Forge) -> None:
    two = make_two(CAISSON_FLOW_LEASE_MS="5000", CAISSON_NODE_LOST_S="15")
    agent = two[0].add_agent("echo begun; sleep 600", "first")
    started = two[0].start(agent)
    two[0].wait_for_event("command_output", execution_id=started["execution_id"])
    sandbox = sandbox_of(two[0], started)
    owner, other = owner_and_other(two, sandbox)
    owner.server.crash()
    config = {"config": {"command": ["bash", "-c", "echo done > work.txt"]}}
    other.ask("PATCH", f"/agents/{agent['id']}", config, 200)
    other.wait(started)
    check_done_once(other, started, forge, "work.txt")
    made = [event["sandbox_id"] for event in told(other, started, "sandbox_created")]
    assert len(made) == 2 and made[0] == sandbox
    reasons = {event["sandbox_id"]: event["reason"] for event in told(other, started, "sandbox_terminated")}
    assert reasons[sandbox].startswith("its server is lost: ")
    # It comes back, and finds that nobody needs what it has.
    owner.server.start()
    wait_until(lambda: [one.live_sandboxes() for one in two] == [[], []], "no sandbox is left")
    assert len(forge.repositories[FORGE_REPOSITORY].pulls) == 1


def test_a_session_is_answered_where_its_sandbox_is(make_two: Make) -> None:
    one, other = make_two()
    here = Session.begin(one, 'echo "$CAISSON_MESSAGE" >> said; echo "{\\"caisson\\":\\"message\\",'
                              '\\"text\\":\\"$(paste -sd+ said)\\"}"').ready()
    here.say("a")
    sandbox = here.sandbox_id()
    there = Session(other, here.made)
    assert there.say("b")["content"].strip() == "a+b"
    assert here.say("c")["content"].strip() == "a+b+c"
    assert there.sandbox_id() == sandbox and there.messages("system") == []
    # Ended through the one, by the other.
    _, guest = owner_and_other([one, other], sandbox)
    assert_refusal(guest.ask("POST", here.path + "/sandbox/pause"), 503, "on_another_server")
    guest.ask("DELETE", here.path, status=204)
    wait_until(lambda: one.live_sandboxes() + other.live_sandboxes() == [], "the sandbox has ended")


def test_a_build_goes_on_where_the_version_before_is(make_two: Make) -> None:
    builds = [Builds(one.server) for one in make_two()]
    first = builds[0].ready(goal="one", files={"index.html": page("One")})
    second = builds[1].ready(parent_id=first["id"], goal="two", files={"index.html": page("Two")})
    third = builds[0].ready(parent_id=second["id"], goal="three", files={"index.html": page("Three")})
    assert first["sandbox_id"] == second["sandbox_id"] == third["sandbox_id"]
    owner, _ = owner_and_other(builds, first["sandbox_id"])
    assert "Three" in owner.open(third)


def test_a_sandbox_of_the_other_server_is_named_not_touched(make_two: Make) -> None:
    one, other = make_two()
    made = one.ask("POST", "/sandboxes", {}, 201).json()
    path = f"/sandboxes/{made['id']}"
    shown = other.get(path)
    assert (shown["status"], shown["backend_state"]) == ("running", "unknown")
    body = {"argv": ["true"]}
    node = one.get("/health/detailed")["checks"]["database"]["node"]
    assert node != other.get("/health/detailed")["checks"]["database"]["node"]
    assert_refusal(other.ask("POST", path + "/execute", body), 503, "on_another_server", node)
    for action in ("/pause", "/resume"):
        assert_refusal(other.ask("POST", path + action), 503, "on_another_server")
    for answer in (other.rest.get(f"/sandboxes/{made['id']}"),
                   other.rest.post(f"/sandboxes/{made['id']}/connect", {"timeout": 60}),
                   other.rest.kill({"sandboxID": made["id"]})):
        assert answer.status == 503 and node in answer.json()["message"], answer
    assert other.rest.get("/sandboxes/inone").status == 404
    by_e2b = one.rest.create()
    plain = f"/sandboxes/{by_e2b['sandboxID']}/execute"
    assert_refusal(other.ask("POST", plain, body), 503, "on_another_server", node)
    assert one.rest.kill(by_e2b).status == 204
    assert one.ask("POST", path + "/execute", body, 200).json()["exit_code"] == 0
    # To end it is a wish that its own server fulfils.
    other.ask("DELETE", path, status=204)
    wait_until(lambda: one.live_sandboxes() == [], "the sandbox has ended")
    wait_until(lambda: other.get(path)["status"] == "terminated", "the row has ended")
