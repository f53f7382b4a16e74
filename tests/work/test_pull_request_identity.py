"""Whose name is on a pull request: the bot's, the App's, or that of the user who owns the task."""

from __future__ import annotations

import sqlite3

import pytest
from support.cli import caisson
from support.forge import Forge
from support.forge_plugin import FORGE_REPOSITORY
from support.rest import assert_refusal
from support.sessions import wait_until
from support.work import BUSY, Platform, settings_for

LEAS = "ghp_leasowntoken0123456789abcdefghijklmn"
TOKEN = "/auth/github-token"
PULLS = "/github/pull-requests"
AS_USERS = {"CAISSON_PULL_REQUEST_IDENTITY": "user"}


@pytest.fixture
def personal(make_server, forge: Forge) -> Platform:
    """Pull requests are opened by users; at GitHub there is lea."""
    forge.add_token(LEAS, "lea")
    return Platform(make_server(env=settings_for(forge, **AS_USERS)))


def give(platform: Platform, token: str = LEAS, **options) -> dict:
    return platform.ask("PUT", TOKEN, {"token": token}, 200, **options).json()


def test_a_task_of_a_user_is_opened_by_that_user(personal: Platform, forge: Forge) -> None:
    agent = personal.add_agent(BUSY.format(file="work.txt"))
    squad = personal.ask("POST", "/squads", {"name": "S", "members": [{"agent_id": agent["id"]}]}, 201).json()
    # Nobody steps in: neither for who gave no token, nor with a token that is nobody's.
    told = {"set": False, "login": None, "created_at": None, "identity": "user"}
    assert personal.get(TOKEN) == told
    task = {"title": "Write it", "repo_url": FORGE_REPOSITORY}
    refused = personal.ask("POST", f"/agents/{agent['id']}/start-task", task)
    assert_refusal(refused, 409, contains="caisson github-token set")
    assert_refusal(personal.ask("PUT", TOKEN, {"token": "ghp_nobodys-token"}), 422, contains="does not accept")
    assert personal.get(TOKEN) == told and personal.get("/tasks")["total"] == 0

    given = give(personal)
    assert given["set"] is True and given["login"] == "lea"
    personal.server.crash()
    personal.server.start()
    assert personal.get(TOKEN) == given
    script = "while [ ! -e /tmp/enough ]; do sleep 0.1; done; echo done > work.txt"
    personal.ask("PATCH", f"/agents/{agent['id']}", {"config": {"command": ["bash", "-c", script]}}, 200)
    started = personal.start(agent, squad_id=squad["id"])

    def where() -> dict | None:
        (member,) = personal.get(f"/squads/{squad['id']}")["members"]
        assert member["current_task_id"] == started["task_id"]
        return member if member["git_context"]["git_branch"] else None

    member = wait_until(where, "the agent has its branch")
    assert member["sandbox_id"] == personal.get(f"/executions/{started['execution_id']}")["sandbox_id"]
    assert member["git_context"]["repo_url"] == FORGE_REPOSITORY
    personal.enough(started)
    personal.wait(started)

    repository = forge.repositories[FORGE_REPOSITORY]
    (pull,) = repository.pulls
    assert pull.author == "lea"
    (opened,) = personal.events(type="pr_created")
    assert (opened["identity"], opened["author"]) == ("user", "lea")
    (execution,) = personal.get(f"/tasks/{started['task_id']}/executions")["executions"]
    assert execution["git_branch"] == pull.head == member["git_context"]["git_branch"]
    assert execution["pull_request_url"].endswith("/pull/1")
    (commit,) = execution["commit_history"]
    assert commit["sha"] == repository.git.sha(pull.head) and commit["message"].startswith("chore: ")
    # The push was the server's: users need no right to write.
    pushes = forge.seen("POST", ".*git-receive-pack")
    assert pushes and {forge.account_of(one.headers["authorization"]).login for one in pushes} == {"octo-dev"}


def test_what_users_write_at_github_is_theirs(personal: Platform, forge: Forge) -> None:
    repository = forge.repositories[FORGE_REPOSITORY]
    repository.git.commit("feature", {"feature.txt": "text\n"}, "feat: a feature", base="main")
    key = personal.ask("POST", "/keys", {"name": "other", "own_user": True}, 201).json()["key"]
    new = {"repo": FORGE_REPOSITORY, "title": "A feature", "head": "feature"}
    give(personal, key=key)
    assert personal.ask("POST", PULLS, new, 201, key=key).json()["author"] == "lea"
    comment = {"repo": FORGE_REPOSITORY, "body": "Look at this."}
    assert personal.ask("POST", "/github/issues/1/comments", comment, 201, key=key).json()["author"] == "lea"
    # The admin reads with the server's token, and may write nothing in lea's name.
    assert personal.get(f"{PULLS}/1", repo=FORGE_REPOSITORY)["author"] == "lea"
    assert personal.get(TOKEN)["set"] is False
    assert_refusal(personal.ask("POST", "/github/issues/1/comments", comment), 409, contains="no GitHub token of yours")
    assert_refusal(personal.ask("PUT", TOKEN, {"token": "two tokens"}), 422)
    viewer = personal.ask("POST", "/users", {"name": "eve", "role": "viewer"}, 201).json()
    watching = personal.ask("POST", "/keys", {"name": "eve", "user_id": viewer["id"]}, 201).json()["key"]
    assert personal.ask("PUT", TOKEN, {"token": LEAS}, key=watching).status == 403


def test_a_run_waits_for_a_token_that_works(personal: Platform, forge: Forge) -> None:
    give(personal)
    agent = personal.add_agent("while [ ! -e /tmp/enough ]; do sleep 0.1; done; echo done > work.txt")
    started = personal.start(agent)
    wait_until(lambda: personal.get(f"/executions/{started['execution_id']}")["git_branch"], "it has its branch")
    del forge.tokens[LEAS]  # revoked at GitHub while the agent works
    personal.enough(started)
    assert "does not accept the token" in personal.wait_for_error(started)
    assert forge.repositories[FORGE_REPOSITORY].pulls == []
    personal.ask("DELETE", TOKEN, status=204)
    personal.ask("POST", f"/runs/{started['run_id']}/retry", {}, 200)
    wait_until(lambda: "github-token set" in personal.run(started["run_id"])["error"], "it says what is missing")
    forge.add_token(LEAS, "lea")
    give(personal)
    personal.ask("POST", f"/runs/{started['run_id']}/retry", {}, 200)
    personal.wait(started)
    (pull,) = forge.repositories[FORGE_REPOSITORY].pulls
    assert pull.author == "lea"


def test_the_bot_and_the_app(make_server, forge: Forge) -> None:
    git = forge.repositories[FORGE_REPOSITORY].git
    app = {"CAISSON_GITHUB_APP_ID": forge.app.id, "CAISSON_GITHUB_INSTALLATION_ID": forge.app.installation_id,
           "CAISSON_GITHUB_APP_KEY_FILE": str(forge.app.key_file)}
    for identity, author in (("bot", "octo-dev"), ("app", "caisson-app[bot]")):
        env = settings_for(forge, CAISSON_PULL_REQUEST_IDENTITY=identity, **app)
        platform = Platform(make_server(env=env))
        git.commit(identity, {f"{identity}.txt": "text\n"}, "feat: a feature", base="main")
        new = {"repo": FORGE_REPOSITORY, "title": "A feature", "head": identity}
        assert platform.ask("POST", PULLS, new, 201).json()["author"] == author


@pytest.mark.parametrize("identity, said", [("app", b"github_installation_id"), ("somebody", b"bot, user, app")])
def test_an_identity_that_there_is_not_refuses_to_start(identity: str, said: bytes, tmp_path) -> None:
    refused = caisson(None, "serve", "--data-dir", str(tmp_path), CAISSON_PULL_REQUEST_IDENTITY=identity)
    assert refused.returncode != 0 and b"pull_request_identity" in refused.stderr, refused
    assert said in refused.stderr, refused


def test_the_token_on_the_command_line(personal: Platform) -> None:
    server = personal.server
    assert caisson(server, "github-token", "show").stdout == b"no token\n"
    wrong = caisson(server, "github-token", "set", stdin=b"ghp_nobodys-token\n")
    assert wrong.returncode == 1 and b"does not accept" in wrong.stderr, wrong
    done = caisson(server, "github-token", "set", stdin=LEAS.encode() + b"\n")
    assert done.returncode == 0 and done.stdout == b"a token of lea\n", done
    with sqlite3.connect(f"file:{server.data_dir / 'db/caisson.db'}?mode=ro", uri=True) as database:
        (row,) = database.execute("SELECT * FROM github_tokens").fetchall()
    assert "lea" in row and LEAS not in " ".join(map(str, row))
    assert caisson(server, "github-token", "delete").returncode == 0
    assert b'"set":false' in caisson(server, "github-token", "show", "--json").stdout
