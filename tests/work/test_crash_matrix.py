"""kill -9 of the server at every boundary of every step, then a restart: one branch, one set of
commits, one pull request, no sandbox left, no event lost or doubled. The matrix is printed."""

from __future__ import annotations

import pytest
from support.forge import Forge
from support.forge_plugin import FORGE_REPOSITORY
from support.postgres import Postgres
from support.work import COUNTING, STEPS, Platform, settings_for

pytestmark = pytest.mark.timeout(300)

POINTS = ["before_claim", "after_claim", "after_effect", "after_commit"]
LINES = [f"line {number}" for number in range(1, 21)]
AGENT = "for i in $(seq 20); do echo line $i; sleep 0.05; done; echo done > work.txt"


# What leaves a trace outside, where it hurts most, and both ends.
ON_POSTGRES = [("provision", "after_effect"), ("agent", "after_claim"), ("push", "after_effect"),
               ("pull_request", "after_effect"), ("finish", "after_commit")]


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("step", STEPS)
def test_a_crash_changes_nothing(make_server, forge: Forge, figure, step: str, point: str) -> None:
    server = make_server(env=settings_for(forge, CAISSON_FLOW_CRASH_AT=f"{step}:{point}"))
    crash_and_check(Platform(server), forge)
    figure(f"crash: {step:12} {point:12} SQLite      killed, restarted, succeeded")


@pytest.mark.parametrize("step, point", ON_POSTGRES)
def test_a_crash_changes_nothing_on_postgres(make_server, forge: Forge, postgres: Postgres, figure, step: str,
                                             point: str) -> None:
    url = postgres.url(postgres.create_database())
    server = make_server(env=settings_for(forge, CAISSON_FLOW_CRASH_AT=f"{step}:{point}", CAISSON_DATABASE_URL=url))
    crash_and_check(Platform(server), forge)
    figure(f"crash: {step:12} {point:12} PostgreSQL  killed, restarted, succeeded")


def test_a_crash_in_the_middle_of_its_words_loses_none(make_server, forge: Forge) -> None:
    platform = Platform(make_server(env=settings_for(forge)))
    started = platform.start(platform.add_agent(COUNTING))
    for _ in range(3):
        platform.next_line(started)
        platform.server.crash()
        platform.server.start()
    platform.next_line(started)
    platform.enough(started)
    platform.wait(started)
    repository = forge.repositories[FORGE_REPOSITORY]
    (pull,) = repository.pulls
    count = int(repository.git.file(pull.head, "work.txt"))
    platform.check_events(started, [f"line {number}" for number in range(1, count + 1)])


def crash_and_check(platform: Platform, forge: Forge) -> None:
    started = start_and_crash(platform)
    run = platform.wait(started)
    assert [s["name"] for s in run["steps"] if s["state"] == "done"] == STEPS
    repository = forge.repositories[FORGE_REPOSITORY]
    (pull,) = repository.pulls
    assert sorted(repository.git.branches()) == sorted(["main", pull.head])
    assert len(repository.git.commits("main", pull.head)) == 1
    assert repository.git.file(pull.head, "work.txt") == "done\n"
    # Where the work stands was not forgotten.
    execution = platform.get(f"/executions/{started['execution_id']}")
    assert execution["git_branch"] == platform.get(f"/tasks/{started['task_id']}")["git_branch"] == pull.head
    assert execution["head_sha"] == repository.git.run("rev-parse", pull.head).stdout.strip()
    assert platform.live_sandboxes() == []
    platform.check_events(started, LINES)


@pytest.mark.parametrize("point", ["before_claim", "after_claim", "after_commit"])
def test_a_start_that_is_sent_again_starts_nothing_twice(make_server, forge: Forge, point: str) -> None:
    """The server dies between the start and its answer; whether that was written down is chance."""
    server = make_server(env=settings_for(forge, CAISSON_FLOW_CRASH_AT=f"provision:{point}"))
    platform = Platform(server)
    agent = platform.add_agent(AGENT)
    body = {"title": "Write the file", "repo_url": FORGE_REPOSITORY}

    def start():
        return platform.ask("POST", f"/agents/{agent['id']}/start-task", body,
                            headers={"Idempotency-Key": "only-once"})

    try:
        start()
    except ConnectionError:
        pass
    server.process.wait(timeout=90)
    server.crash()
    del server.env["CAISSON_FLOW_CRASH_AT"]
    server.start()
    answer = start()
    assert answer.status == 202, answer
    platform.wait(answer.json())
    assert start().json()["execution_id"] == answer.json()["execution_id"]
    assert platform.get("/tasks")["total"] == 1 and platform.get("/runs")["total"] == 1


def start_and_crash(platform: Platform) -> dict:
    server = platform.server
    agent = platform.add_agent(AGENT)
    started = None
    try:
        started = platform.start(agent)
    except ConnectionError:  # it died before it could answer
        pass
    server.process.wait(timeout=90)
    server.crash()  # the engine, too: a machine does not lose one process alone
    del server.env["CAISSON_FLOW_CRASH_AT"]
    server.start()
    if started is None:
        (run,) = platform.get("/runs")["runs"]
        started = {"run_id": run["id"], "execution_id": run["execution_id"], "task_id": run["task_id"]}
    return started
