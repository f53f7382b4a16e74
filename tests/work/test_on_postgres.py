"""Sessions, builds and the built-in agent with their rows in PostgreSQL: the same, also over kill -9."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from support.builds import Builds, page
from support.forge import Forge
from support.forge_plugin import FORGE_REPOSITORY
from support.model import ScriptedModel, results
from support.postgres import Postgres
from support.rest import assert_refusal
from support.sessions import Session, wait_until
from support.work import COUNTING, Platform, settings_for

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    def think(messages: list[dict]) -> str | list[tuple[str, dict]]:
        told = results(messages)
        if not told:
            return [("write_file", {"path": "a.txt", "content": "one\n"})]
        if len(told) == 1:
            return [("bash", {"command": "echo two >> a.txt; sleep 600", "timeout_s": 600})]
        return "Both are written."

    instance = ScriptedModel(think)
    yield instance
    instance.close()


@pytest.fixture
def platform(make_server, forge: Forge, postgres: Postgres, model: ScriptedModel) -> Platform:
    database = postgres.create_database()
    env = settings_for(forge, CAISSON_DATABASE_URL=postgres.url(database), CAISSON_BUILD_TIER="none", **model.settings)
    return Platform(make_server(env=env))


def test_a_session(platform: Platform, forge: Forge) -> None:
    script = 'echo "$CAISSON_MESSAGE" >> said.txt; echo done'
    session = Session.begin(platform, script, repo_url=FORGE_REPOSITORY).ready()
    first = session.say("one")
    sandbox = session.sandbox_id()
    session.pause()
    assert session.row()["status"] == "paused"
    platform.server.crash()
    platform.server.start()
    second = session.say("two")
    assert session.sandbox_id() == sandbox
    assert [one["id"] for one in session.messages("assistant")] == [first["id"], second["id"]]
    branch = session.row()["branch"]
    assert forge.repositories[FORGE_REPOSITORY].git.run("show", f"{branch}:said.txt").stdout == "one\ntwo\n"
    (listed,) = platform.get("/sessions", repo="widget")["sessions"]
    assert listed["id"] == session.id
    page_of_one = session.history(limit=1)
    assert len(page_of_one["messages"]) == 1
    platform.ask("DELETE", session.path, status=204)
    assert platform.live_sandboxes() == []


def test_builds(platform: Platform) -> None:
    builds = Builds(platform.server)
    first = builds.ready(goal="one", files={"index.html": page("One"), "old.txt": "old"})
    second = builds.ready(parent_id=first["id"], goal="two",
                          files={"index.html": page("Two"), "old.txt": {"delete": True}})
    assert second["build_version"] == "build_v0_2" and "Two" in builds.open(second)
    changes = {one["path"]: one["change"] for one in builds.get(f"/builds/{second['id']}/diff")["files"]}
    assert changes == {"index.html": "modified", "old.txt": "deleted"}
    failed = builds.wait(builds.create(project="other", files={"index.html": "x"}, checks=["exit 3"]), "failed")
    assert failed["debug_id"]
    builds.server.crash()
    builds.server.start()
    back = builds.wait(builds.ask("POST", f"/builds/{second['id']}/rollback", {"version": "build_v0_1"}, 201).json())
    assert "One" in builds.open(back)
    assert [line["id"] for line in builds.log(back)] == list(range(len(builds.log(back))))
    listed = builds.get("/builds", project="shop")
    assert [one["build_version"] for one in listed["builds"]] == ["build_v0_3", "build_v0_2", "build_v0_1"]
    assert_refusal(builds.ask("GET", "/builds/none"), 404)


def test_the_built_in_agent_goes_on_after_kill_9(platform: Platform, forge: Forge, model: ScriptedModel) -> None:
    agent = platform.ask("POST", "/agents", {"name": "inside", "adapter": "builtin", "config": {}}, 201).json()
    started = platform.start(agent)
    about = {"execution_id": started["execution_id"]}
    wait_until(lambda: len(platform.events(type="agent.tool.called", **about)) == 2, "the second call")
    platform.server.crash()
    platform.server.start()
    platform.wait(started)
    branch = platform.get(f"/tasks/{started['task_id']}")["git_branch"]
    assert forge.repositories[FORGE_REPOSITORY].git.run("show", f"{branch}:a.txt").stdout.startswith("one\n")
    assert results(model.questions[-1]["messages"])[1].startswith("interrupted")
    assert len(platform.get("/costs", task_id=started["task_id"], kind="model")["costs"]) == 3



def hold(forge: Forge, request: str, count: int) -> Callable[[Callable[[], None]], None]:
    """The forge answers none of the next so many. What is returned does something while they all wait."""
    before = len(forge.seen("POST", f".*/{request}"))
    fault = forge.plant("hold", method="POST", path=f"/{request}$", times=count)

    def when_all_wait(then: Callable[[], None]) -> None:
        try:
            wait_until(lambda: len(forge.seen("POST", f".*/{request}")) >= before + count, f"{count} of {request}")
            then()
        finally:
            fault.go.set()

    return when_all_wait


def test_the_database_restarts_while_tasks_run(own_postgres: Postgres, make_server, forge: Forge) -> None:
    """In the middle of clones, of agents at work and of pushes: nothing is done twice, nothing is missing."""
    url = own_postgres.url(own_postgres.create_database())
    platform = Platform(make_server(env=settings_for(forge, CAISSON_DATABASE_URL=url)))
    agents = [platform.add_agent(COUNTING, name) for name in ("ada", "bob", "eve")]

    def restart(end: Callable[[], None] = own_postgres.stop) -> None:
        end()
        own_postgres.start()

    when_all_clone = hold(forge, "git-upload-pack", len(agents))
    tasks = [platform.start(agent, title=agent["name"]) for agent in agents]
    when_all_clone(restart)
    for task in tasks:
        platform.next_line(task)
    restart(own_postgres.kill)
    for task in tasks:
        platform.next_line(task)
    when_all_push = hold(forge, "git-receive-pack", len(agents))
    for task in tasks:
        platform.enough(task)
    when_all_push(restart)
    for task in tasks:
        platform.wait(task)
    check_all(platform, forge, tasks)


def check_all(platform: Platform, forge: Forge, tasks: list[dict]) -> None:
    repository = forge.repositories[FORGE_REPOSITORY]
    assert sorted(repository.git.branches()) == sorted(["main", *(pull.head for pull in repository.pulls)])
    assert len(repository.pulls) == len(tasks)
    for task in tasks:
        branch = platform.get(f"/tasks/{task['task_id']}")["git_branch"]
        assert [pull.head for pull in repository.pulls].count(branch) == 1
        assert len(repository.git.commits("main", branch)) == 1
        count = int(repository.git.file(branch, "work.txt"))
        platform.check_events(task, [f"line {number}" for number in range(1, count + 1)])
    assert platform.live_sandboxes() == []
