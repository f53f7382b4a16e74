"""The GitHub client when the network or GitHub misbehaves: nothing is done twice, nothing waits
without end, no token is told."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime

import pytest
from calls import CallFailed, Client
from support.forge import Forge
from support.forge_plugin import FORGE_REPOSITORY, FORGE_TOKEN
from support.forge_state import Repository

REPO = f"/repos/{FORGE_REPOSITORY}"
NEW = {"title": "A feature", "head": "task-1", "base": "main"}


@pytest.fixture
def repo(forge: Forge) -> Repository:
    repo = forge.repositories[FORGE_REPOSITORY]
    repo.git.commit("task-1", {"feature.txt": "one\n"}, "feat: a feature", base="main")
    return repo


def refused(client: Client, call: str, **arguments: object) -> CallFailed:
    with pytest.raises(CallFailed) as caught:
        client(call, **arguments)
    assert FORGE_TOKEN not in caught.value.message
    return caught.value


@pytest.mark.parametrize("fault", [{"kind": "drop"}, {"kind": "lose", "after_bytes": 50}, {"kind": "status"}])
def test_reading_is_tried_three_times(client: Client, forge: Forge, fault: dict):
    forge.plant(**fault, times=2)
    assert client("repository")["full_name"] == FORGE_REPOSITORY
    forge.plant(**fault, times=3)
    assert refused(client, "repository").code == "unavailable"
    assert len(forge.seen("GET", REPO)) == 6


@pytest.mark.parametrize("kind", ["drop", "lose"])
def test_a_lost_answer_makes_no_second_pull_request(client: Client, repo: Repository, forge: Forge, kind: str):
    forge.plant(kind, method="POST", path="/pulls$")
    made = client("create", **NEW)
    assert made["created"] is True and made["pull_request"]["number"] == 1
    assert len(repo.pulls) == 1
    assert len(forge.seen("POST", f"{REPO}/pulls")) == (2 if kind == "drop" else 1)


def test_a_lost_answer_to_a_merge_is_looked_up(client: Client, repo: Repository, forge: Forge):
    client("create", **NEW)
    forge.plant("lose", method="PUT")
    assert client("merge", number=1, method="squash") == repo.git.sha("main")
    assert len(forge.seen("PUT")) == 1


def test_a_lost_answer_to_an_update_of_the_branch_is_looked_up(client: Client, repo: Repository, forge: Forge):
    client("create", **NEW)
    repo.git.commit("main", {"other.txt": "other\n"}, "feat: other")
    forge.plant("lose", method="PUT")
    client("update_branch", number=1)
    assert len(forge.seen("PUT")) == 1 and not repo.pulls[0].behind()


@pytest.mark.parametrize("fault", [{"kind": "lose"}, {"kind": "status", "status": 502}])
def test_a_comment_is_never_repeated_blindly(client: Client, repo: Repository, forge: Forge, fault: dict):
    client("create", **NEW)
    forge.plant(**fault, method="POST", path="/comments$")
    assert refused(client, "comment", number=1, body="Hello").code == "unavailable"
    assert len(forge.seen("POST", f"{REPO}/issues/1/comments")) == 1


def test_a_wait_that_is_named_is_waited_for(client: Client, repo: Repository, forge: Forge):
    forge.plant("status", method="POST", path="/pulls$", status=429, headers={"Retry-After": "1"})
    begun = time.monotonic()
    assert client("create", **NEW)["created"] is True
    assert time.monotonic() - begun >= 1 and len(repo.pulls) == 1
    secondary = "You have exceeded a secondary rate limit."
    forge.plant("status", status=403, headers={"Retry-After": "1"}, message=secondary)
    assert client("get", number=1)["number"] == 1


def test_a_wait_that_is_too_long_is_told(make_client: Callable[..., Client], forge: Forge):
    client = make_client(timeout_ms=30_000)
    forge.plant("status", status=429, headers={"Retry-After": "3600"})
    error = refused(client, "repository")
    assert error.code == "resource_exhausted" and "(in 3600 s)" in error.message
    assert refused(client, "repository").code == "resource_exhausted"  # and not `deadline_exceeded`
    assert len(forge.seen("GET", REPO)) == 1  # and GitHub is left in peace until then


def test_a_spent_budget_is_told_with_its_time(make_client: Callable[..., Client], forge: Forge):
    forge.add_token("ghp_poor", limit=20, remaining=3)
    client = make_client(token="ghp_poor", timeout_ms=30_000)
    budget = client("budget")
    assert (budget["limit"], budget["remaining"], budget["low"]) == (20, 3, False)
    resets_at = datetime.fromisoformat(budget["resets_at"]).timestamp()
    assert int(resets_at) == int(forge.tokens["ghp_poor"].resets_at)
    client("repository")
    assert client.warnings == 0
    client("repository")
    client("repository")
    assert client.warnings == 1
    assert refused(client, "repository").code == "resource_exhausted"
    assert client.warnings == 1


def test_tokens_take_turns_when_a_budget_gets_low(make_client: Callable[..., Client], forge: Forge):
    for token in ("ghp_first", "ghp_second"):
        forge.add_token(token, login=token, limit=100, remaining=12)
    client = make_client(token="ghp_first, ghp_second")
    used = []
    for _ in range(12):
        client("repository")
        used.append(forge.requests[-1].headers["authorization"].removeprefix("Bearer "))
    assert used[:3] == ["ghp_first"] * 3 and "ghp_second" in used[3:6]


def test_a_spent_or_revoked_token_gives_way(make_client: Callable[..., Client], forge: Forge):
    forge.add_token("ghp_spent", limit=100, remaining=0)
    client = make_client(token=f"ghp_spent,ghp_revoked,{FORGE_TOKEN}")
    assert client("repository")["full_name"] == FORGE_REPOSITORY
    assert client("token") == FORGE_TOKEN


def test_a_silent_server_is_left_at_the_deadline(make_client: Callable[..., Client], forge: Forge):
    client = make_client(timeout_ms=1000)
    fault = forge.plant("delay", seconds=20, times=10)
    begun = time.monotonic()
    assert refused(client, "repository").code == "deadline_exceeded"
    assert time.monotonic() - begun < 20
    fault.times = 0


def test_nobody_listens(make_client: Callable[..., Client]):
    client = make_client(api_url="http://127.0.0.1:1")
    assert refused(client, "repository").code == "unavailable"
    assert refused(make_client(api_url="gopher://x"), "repository").code == "invalid_argument"


def test_connections_are_kept(client: Client, forge: Forge):
    for _ in range(5):
        client("repository")
    assert forge.connections == 1


# ---- the App ----------------------------------------------------------------------------------


def app_client(make_client: Callable[..., Client], forge: Forge, **more: object) -> Client:
    settings = {
        "app_id": forge.app.id,
        "installation_id": forge.app.installation_id,
        "app_key_file": str(forge.app.key_file),
    }
    return make_client(**{**settings, **more})


def test_an_app_gets_a_token_once_and_renews_it_in_time(make_client: Callable[..., Client], forge: Forge):
    client = app_client(make_client, forge)
    client("repository")
    client("repository")
    asked = forge.seen("POST", "/app/installations/815/access_tokens")
    assert len(asked) == 1
    assert client("budget")["limit"] == 15000
    assert client("token").startswith("ghs_")
    forge.app.token_seconds = 299  # so close to its end that it is not used a second time
    client("token", refresh=True)
    client("repository")
    assert len(forge.seen("POST", "/app/installations/815/access_tokens")) == 3


def test_an_app_whose_token_was_revoked_gets_another_once(make_client: Callable[..., Client], forge: Forge):
    client = app_client(make_client, forge)
    first = client("token")
    del forge.tokens[first]
    assert client("repository")["full_name"] == FORGE_REPOSITORY
    assert client("token") != first
    forge.plant("status", method="GET", status=401, message="Bad credentials", times=2)
    assert refused(client, "repository").code == "unauthenticated"


def test_an_app_with_a_wrong_key_is_refused(make_client: Callable[..., Client], forge: Forge, tmp_path):
    with Forge() as other:
        client = app_client(make_client, forge, app_key_file=str(other.app.key_file))
        assert refused(client, "repository").code == "unauthenticated"
    client = app_client(make_client, forge, app_key_file=str(tmp_path / "nothing.pem"))
    assert refused(client, "repository").code == "failed_precondition"
