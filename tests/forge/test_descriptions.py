"""What we send is what GitHub describes, and so is what the double sends.

Prism stands between the client and the double with GitHub's own OpenAPI description: a request that
GitHub would not take, or an answer it would not give, becomes an error. Webhooks are held against
the community's schemas and examples, the GraphQL mutation against GitHub's schema.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import github_descriptions as descriptions
import jsonschema
import pytest
from calls import CallFailed, Client
from support.forge import Forge
from support.forge_plugin import FORGE_REPOSITORY
from support.forge_state import CheckRun, Comment

# The first of them installs the packages.
pytestmark = [pytest.mark.timeout(400), pytest.mark.xdist_group("descriptions")]

REPO = "/repos/{owner}/{repo}"
PATHS = [
    "/rate_limit",
    "/app/installations/{installation_id}/access_tokens",
    REPO,
    f"{REPO}/branches/{{branch}}",
    f"{REPO}/commits/{{ref}}/check-runs",
    f"{REPO}/git/refs",
    f"{REPO}/git/refs/{{ref}}",
    f"{REPO}/issues",
    f"{REPO}/issues/{{issue_number}}",
    f"{REPO}/issues/{{issue_number}}/comments",
    f"{REPO}/issues/{{issue_number}}/labels",
    f"{REPO}/pulls",
    f"{REPO}/pulls/{{pull_number}}",
    f"{REPO}/pulls/{{pull_number}}/comments",
    f"{REPO}/pulls/{{pull_number}}/comments/{{comment_id}}/replies",
    f"{REPO}/pulls/{{pull_number}}/merge",
    f"{REPO}/pulls/{{pull_number}}/requested_reviewers",
    f"{REPO}/pulls/{{pull_number}}/reviews",
    f"{REPO}/pulls/{{pull_number}}/update-branch",
]


@pytest.fixture(scope="module", autouse=True)
def packages() -> None:
    descriptions.install()


@pytest.fixture
def prism(forge: Forge, tmp_path: Path) -> Iterator[descriptions.Prism]:
    instance = descriptions.Prism(descriptions.api_description(PATHS), forge.url, tmp_path)
    yield instance
    instance.close()


def test_every_call_is_as_described(prism: descriptions.Prism, forge: Forge, make_client: Callable[..., Client]):
    client, repo = make_client(api_url=prism.url), forge.repositories[FORGE_REPOSITORY]
    for branch in ("task-1", "feature/old"):
        repo.git.commit(branch, {f"{branch}.txt": "text\n"}, "feat: text", base="main")
    sha = repo.git.sha("task-1")
    repo.checks.append(CheckRun(7, "build", sha, "completed", "success"))
    new = {"title": "A feature", "body": "Why.", "head": "task-1", "base": "main", "draft": True}
    client("create", **new, labels=["agent"], reviewers=["reviewer"])
    pull = repo.pulls[0]
    assert pull.labels == ["agent"] and pull.reviewers == ["reviewer"]
    pull.review_comments.append(Comment(forge.next_id(), "ada", "Why?", "task-1.txt", 1))
    calls: list[tuple[str, dict]] = [
        ("find", {"head": "task-1"}),
        ("get", {"number": 1}),
        ("update", {"number": 1, "title": "Better", "body": "Text", "state": "closed", "base": "main"}),
        ("update", {"number": 1, "state": "open"}),
        ("list", {"state": "all", "base": "main", "limit": 10}),
        ("label", {"number": 1, "labels": ["a", "b"]}),
        ("reviewers", {"number": 1, "reviewers": ["octocat"]}),
        ("review_comments", {"number": 1}),
        ("reply", {"number": 1, "comment": pull.review_comments[0].id, "body": "Because."}),
        ("review_comment", {"number": 1, "path": "task-1.txt", "line": 1, "body": "Why?"}),
        ("review_comment", {"number": 1, "path": "task-1.txt", "body": "Why?"}),
        ("review", {"number": 1, "event": "comment", "body": "Hm.",
                    "comments": [{"path": "task-1.txt", "line": 1, "side": "RIGHT", "body": "Here."}]}),
        ("reviews", {"number": 1}),
        ("checks", {"sha": sha}),
        ("create_issue", {"title": "T", "body": "B", "labels": ["bug"], "assignees": ["ada"]}),
        ("issue", {"number": 2}),
        ("comment", {"number": 2, "body": "Text"}),
        ("repository", {}),
        ("rights", {}),
        ("protected", {"branch": "main"}),
        ("protected", {"branch": "feature/old"}),
        ("delete_branch", {"branch": "feature/old"}),
        ("budget", {}),
    ]
    for name, arguments in calls:
        client(name, **arguments)
    pull.draft = False
    repo.git.commit("main", {"other.txt": "other\n"}, "feat: other")
    client("update_branch", number=1)
    client("merge", number=1, method="squash", title="The title")
    app = make_client(
        api_url=prism.url,
        app_id=forge.app.id,
        installation_id=forge.app.installation_id,
        app_key_file=str(forge.app.key_file),
    )
    app("repository")
    tried = [one for one in forge.requests if one.status == 422]
    assert [one.path.rpartition("/")[2] for one in tried] == ["refs", "pulls"]  # of "rights"
    assert {one.status for one in forge.requests} <= {200, 201, 202, 204, 422}


def test_prism_really_refuses(prism: descriptions.Prism, forge: Forge, make_client: Callable[..., Client]):
    with pytest.raises(CallFailed) as caught:
        make_client(api_url=prism.url)("list", state="sideways")
    assert caught.value.code == "invalid_argument" and not forge.requests
    forge.plant("status", status=200, headers={"Content-Type": "application/json"}, body={"name": "widget"}, times=3)
    with pytest.raises(CallFailed) as caught:
        make_client(api_url=prism.url)("repository")
    assert caught.value.code == "unavailable"


def test_a_verdict_is_as_described(prism: descriptions.Prism, forge: Forge, make_client: Callable[..., Client]):
    repo = forge.repositories[FORGE_REPOSITORY]
    repo.git.commit("task-1", {"a": "1"}, "feat: a", base="main")
    make_client()("create", title="T", head="task-1", base="main")
    forge.add_token("ghp_ada", "ada")
    reviewer = make_client(api_url=prism.url, token="ghp_ada")
    reviewer("review", number=1, event="request_changes", body="Nearly.")
    reviewer("review", number=1, event="approve")
    assert [one.state for one in repo.pulls[0].reviews] == ["CHANGES_REQUESTED", "APPROVED"]


def test_the_graphql_mutation_is_githubs(forge: Forge, make_client: Callable[..., Client]):
    repo = forge.repositories[FORGE_REPOSITORY]
    repo.git.commit("task-1", {"a": "1"}, "feat: a", base="main")
    client = make_client()
    client("create", title="T", head="task-1", base="main", draft=True)
    client("ready", number=1)
    assert descriptions.graphql_problems(forge.seen("POST", "/graphql")[0].json["query"]) == []
    assert descriptions.graphql_problems("mutation { markReady }") != []


@pytest.mark.parametrize("event", ["pull_request", "pull_request_review", "ping", "push", "issues"])
def test_published_webhooks_are_read(make_client: Callable[..., Client], event: str):
    client, examples = make_client(), descriptions.webhook_examples()[event]
    assert examples
    for payload in examples:
        read = client("webhook", event=event, body=json.dumps(payload))
        assert read["action"] == payload.get("action", "")
        assert read["actor"] == payload["sender"]["login"]
        assert read["repo"] == payload.get("repository", {}).get("full_name", "")
        pull = payload.get("pull_request")
        if not pull:
            assert read["number"] == 0
            continue
        assert (read["number"], read["url"]) == (pull["number"], pull["html_url"])
        assert (read["head"], read["base"]) == (pull["head"]["ref"], pull["base"]["ref"])
        assert read["merged"] == bool(pull["merged_at"])
        if event == "pull_request_review":
            assert read["review_state"] == payload["review"]["state"]


def test_the_doubles_webhooks_have_githubs_fields(forge: Forge, make_client: Callable[..., Client]):
    repo, client = forge.repositories[FORGE_REPOSITORY], make_client()
    for branch in ("task-1", "task-2"):
        repo.git.commit(branch, {f"{branch}.txt": "text\n"}, "feat: text", base="main")
        client("create", title="T", body="B", head=branch, base="main", draft=True)
    client("ready", number=1)
    client("update", number=1, title="Better")
    client("merge", number=1, method="merge")
    client("update", number=2, state="closed")
    client("update", number=2, state="open")
    forge.review(repo.pulls[1], "ada", "CHANGES_REQUESTED", "Please test it.")
    schema = descriptions.webhook_schema()
    seen = []
    for delivery in forge.deliveries:
        name = f"{delivery.event}${delivery.payload['action']}"
        jsonschema.validate(
            json.loads(json.dumps(delivery.payload)),
            {"$ref": f"#/definitions/{name}", "definitions": schema["definitions"]},
            cls=jsonschema.Draft7Validator,
        )
        seen.append(name.partition("$")[2])
    assert seen == [
        "opened", "opened", "ready_for_review", "edited", "closed", "closed", "reopened", "submitted",
    ]
