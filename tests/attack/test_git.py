"""Rows 47 and 48: what a repository and an agent try with git."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from probes import probe

from support import census
from support.forge import Forge
from support.forge_plugin import FORGE_REPOSITORY, FORGE_TOKEN
from support.hunt import KEPT, LIVE, SAVED, Hunt
from support.server import CaissonServer, executable_of
from support.sessions import wait_until
from support.work import Platform, settings_for

USERS_TOKEN = "ghp_ausersowntoken0123456789abcdefghijkl"


@pytest.fixture
def platform(make_server, forge: Forge) -> Platform:
    return Platform(make_server(env=settings_for(forge)))


def last_output(platform: Platform, script: str, state: str = "succeeded") -> str:
    started = platform.start(platform.add_agent(script))
    platform.wait(started, state)
    return platform.output(execution_id=started["execution_id"])


@probe(47)
def test_a_hostile_repository_runs_nothing_outside(platform: Platform, forge: Forge) -> None:
    canary = platform.server.scratch / "canary"
    trap = f"touch {canary}; touch /tmp/ran-inside"
    forge.add_repository("octo-org/hostile", files={
        "README.md": "# hostile\n",
        ".gitattributes": "* filter=evil\n",
        ".gitmodules": f'[submodule "x"]\n path = x\n url = ext::sh -c "{trap}"\n',
        ".githooks/post-checkout": f"#!/bin/sh\n{trap}\n",
    })
    agent = platform.add_agent("ls /tmp/ran-inside 2>&1; echo y > y")
    started = platform.start(agent, repo_url="octo-org/hostile")
    platform.wait(started)
    assert not canary.exists()
    assert "No such file" in platform.output(execution_id=started["execution_id"])
    assert len(forge.repositories["octo-org/hostile"].pulls) == 1


@contextmanager
def held(forge: Forge, request: str, server: CaissonServer) -> Iterator[None]:
    """While the forge does not answer such a request of a git that waits inside."""
    fault = forge.plant("hold", method="POST", path=request)
    try:
        assert fault.held.wait(60), f"nobody asked for {request}"
        programs = [executable_of(pid) for pid in census.sandbox_pids(server)]
        assert any("/git" in program for program in programs), programs
        yield
    finally:
        fault.go.set()


@probe(48)
@pytest.mark.timeout(300)
def test_the_token_is_nowhere_inside_and_nowhere_in_what_is_kept(make_server, forge: Forge) -> None:
    """Nor is the one that a user gave the server. Neither while git works, nor in a snapshot, a paused sandbox, the rows, the events or the log."""
    hunt = Hunt(token=FORGE_TOKEN, users=USERS_TOKEN)
    forge.add_token(USERS_TOKEN, "lea")
    more = {"CAISSON_PULL_REQUEST_IDENTITY": "user", **hunt.settings}
    platform = Platform(make_server(env=settings_for(forge, **more)))
    server = platform.server
    platform.ask("PUT", "/auth/github-token", {"token": USERS_TOKEN}, 200)
    hidden = forge.add_repository("octo-org/hidden", private=True)
    fetches = "while [ ! -e /tmp/enough ]; do git fetch -q origin; done; echo found > found.txt"
    agent = platform.add_agent(hunt.planting() + fetches)
    started = platform.start(agent, repo_url="octo-org/hidden")
    with held(forge, "git-upload-pack$", server):  # of the clone
        hunt.live(server)
    platform.wait_for_event("command_output", execution_id=started["execution_id"])
    sandbox = platform.get(f"/executions/{started['execution_id']}")["sandbox_id"]
    (listed,) = platform.live_sandboxes()
    with held(forge, "git-upload-pack$", server):  # of the agent
        hunt.live(server)
        hunt.check(LIVE)
        snapshot = platform.rest.post(f"/sandboxes/{listed['sandboxID']}/snapshots", {}).json()["snapshotID"]
        platform.ask("POST", f"/tasks/{started['task_id']}/pause", {}, 200)
        wait_until(lambda: platform.get(f"/sandboxes/{sandbox}")["status"] == "paused", "the sandbox is paused")
    hunt.kept(platform)
    hunt.check(SAVED, KEPT)
    assert platform.rest.delete("/templates/" + snapshot).status == 204
    platform.ask("POST", f"/tasks/{started['task_id']}/resume", {}, 200)
    wait_until(lambda: platform.get(f"/sandboxes/{sandbox}")["status"] == "running", "the sandbox runs")
    platform.ask("POST", f"/sandboxes/{sandbox}/execute", {"command": "touch /tmp/enough"}, 200)
    with held(forge, "git-receive-pack$", server):  # the push of the platform
        hunt.live(server)
    platform.wait(started)
    assert [pull.author for pull in hidden.pulls] == ["lea"]
    hunt.kept(platform)
    hunt.check()


@probe(48)
@pytest.mark.parametrize("push, said", [
    ("HEAD:main", "main"),
    ("HEAD:refs/heads/other", "other"),
    ("HEAD:refs/tags/v1", "v1"),
    (":main", "main"),
    ("+HEAD:main", "main"),
])
def test_a_push_elsewhere_is_refused_with_words(platform: Platform, forge: Forge, push: str, said: str) -> None:
    git = forge.repositories[FORGE_REPOSITORY].git
    before = git.run("for-each-ref", "refs/heads/main", "refs/tags").stdout
    output = last_output(platform, f"echo x > x; git add x; git -c user.name=a -c user.email=a@b commit -qm 'feat: x';"
                                   f" git push origin {push} 2>&1; echo status $?")
    assert "status 0" not in output and said in output, output
    assert "may" in output or "only" in output or "allowed" in output, output
    assert git.run("for-each-ref", "refs/heads/main", "refs/tags").stdout == before


@probe(48)
def test_another_repository_is_out_of_reach(platform: Platform, forge: Forge) -> None:
    forge.add_repository("octo-org/other", private=True)
    output = last_output(platform, "u=$(git remote get-url origin); "
                                   "git ls-remote ${u%/*}/other.git 2>&1; echo status $?; "
                                   "git ls-remote ${u%/*/*}/octo-org/other.git 2>&1; echo status $?")
    assert output.count("status 128") == 2, output
    assert not forge.seen("GET", "/octo-org/other.git/info/refs")
