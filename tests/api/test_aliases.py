"""X-3: every other spelling of a route does what the usual one does."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from support.api_world import BROWSER, WEBHOOK_SECRET, World
from support.forge import Forge
from support.forge_plugin import FORGE_REPOSITORY
from support.rest import Response
from support.work import settings_for

# What a call of each operation with other spellings says. Each may be done again, so that the second
# answer is the first.
CALLS: dict[str, Callable[[World], dict]] = {
    "gitClone": lambda w: {"body": {"repo_url": FORGE_REPOSITORY}, "id": w.checkout},
    "gitBranch": lambda w: {"body": {"name": "agent/work"}, "id": w.checkout},
    "gitCommit": lambda w: {"body": {"message": "feat: nothing"}, "id": w.checkout},
    "gitPush": lambda w: {"body": {}, "id": w.pushed()},
    "gitOpenPullRequest": lambda w: {"body": {"title": "T"}, "id": w.pushed()},
    "gitHistory": lambda w: {"query": {"limit": 2}, "id": w.checkout},
    "createSession": lambda w: {"body": {"title": "T"}},
    "getSession": lambda w: {"id": w.session},
    "getSessionSandbox": lambda w: {"id": w.session},
    "createSandboxForSession": lambda w: {"body": {"sessionId": w.session}},
    "getSandboxStatus": lambda w: {"id": w.sandbox},
    "putSandboxAway": lambda w: {"id": w.sandbox},
    "pauseBuildPreview": lambda w: {"id": w.build["id"]},
    "streamEvents": lambda w: {"query": {"type": "task_created"}},
}
# What differs from call to call.
VARYING = {"createSession": {"id", "created_at", "last_used_at"}, "getSession": {"running_ms"}}
# Those that the requirements name; there may be more.
WANTED = {
    *(f"POST /api/v1/sandboxes/{{id}}/{name}" for name in ("clone", "branch", "commit", "push", "pr")),
    *(f"POST /api/v1/git/{name}" for name in ("clone", "branch", "commit", "push")),
    "GET /api/v1/git/{id}/history",
    "GET /api/v1/sse",
}


@pytest.fixture
def world(make_server, forge: Forge) -> World:
    return World(make_server(env=settings_for(forge, GITHUB_WEBHOOK_SECRET=WEBHOOK_SECRET, **BROWSER)), forge)


def spelled(world: World, operation: str, call: dict) -> Response:
    """Where the path names no sandbox, the body does."""
    call = dict(call)
    world.turn_to(operation)
    if "id" in call and "{id}" not in world.path_of(operation):
        call["body"] = {**call["body"], "sandbox_id": call.pop("id")}
    return world.call(**call)


def told(answer: Response, operation: str) -> object:
    if operation not in VARYING:
        return answer.body
    return {name: value for name, value in answer.json().items() if name not in VARYING[operation]}


@pytest.mark.timeout(200)
def test_every_spelling_answers_alike(world: World) -> None:
    assert WANTED <= {f"{world.method_of(alias)} {world.path_of(alias)}" for alias in world.aliases}
    for alias in world.aliases:
        usual = re.sub(r"Alias[A-Z]\w*$", "", alias)
        assert world.method_of(alias) == world.method_of(usual), alias
        assert usual in CALLS, f"add a call of {usual} to CALLS"
        call = CALLS[usual](world)
        spelled(world, usual, call)  # from now on there is nothing left to change
        first, second = spelled(world, usual, call), spelled(world, alias, call)
        assert first.status == second.status and 200 <= first.status < 300, (alias, first, second)
        assert told(first, usual) == told(second, usual), alias


@pytest.mark.timeout(100)
def test_every_spelling_refuses_alike(world: World) -> None:
    for alias in world.aliases:
        usual = re.sub(r"Alias[A-Z]\w*$", "", alias)
        call = {"body": {"repo_url": FORGE_REPOSITORY, "name": "n", "message": "feat: m", "title": "t"}, "id": "none"}
        # Only the fields that the operation has.
        call["body"] = {name: value for name, value in call["body"].items() if name in world.fields_of(usual)}
        if usual == "streamEvents":
            call = {"query": {"wings": 2}}
        elif world.method_of(usual) == "GET":
            call = {"id": "none"}
        first, second = spelled(world, usual, call), spelled(world, alias, call)
        assert first.status == second.status and 400 <= first.status < 500, (alias, first, second)
        if usual != "streamEvents":  # of a stream only the first line was read
            errors = [answer.json()["error"] for answer in (first, second)]
            assert errors[0] | {"debug_id": ""} == errors[1] | {"debug_id": ""}, alias
        assert spelled_by_nobody(world, alias).status == 401


def spelled_by_nobody(world: World, alias: str) -> Response:
    world.turn_to(alias)
    return world.call(key=None, id="none")
