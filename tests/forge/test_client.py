"""The GitHub client against the stateful double: what each call does, and what it says when not."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
from calls import CallFailed, Client
from support.forge import Forge
from support.forge_plugin import FORGE_REPOSITORY, FORGE_TOKEN
from support.forge_state import CheckRun, Comment, Repository

pytestmark = pytest.mark.quick


@pytest.fixture
def repo(forge: Forge) -> Repository:
    """With a branch `task-1` that is one commit ahead."""
    repo = forge.repositories[FORGE_REPOSITORY]
    repo.git.commit("task-1", {"feature.txt": "one\ntwo\n"}, "feat: a feature", base="main")
    return repo


def refused(client: Client, call: str, **arguments: object) -> CallFailed:
    with pytest.raises(CallFailed) as caught:
        client(call, **arguments)
    return caught.value


def create(client: Client, **more: object) -> dict:
    return client("create", **{"title": "A feature", "body": "Because.", "head": "task-1", "base": "main", **more})


def test_a_pull_request_is_made_once(client: Client, repo: Repository, forge: Forge):
    made = create(client, labels=["agent"], reviewers=["reviewer"])
    pull = made["pull_request"]
    assert made["created"] is True
    assert pull["url"] == f"{forge.url}/{FORGE_REPOSITORY}/pull/1"
    assert (pull["title"], pull["body"], pull["head"], pull["base"]) == ("A feature", "Because.", "task-1", "main")
    assert (pull["commits"], pull["additions"], pull["changed_files"]) == (1, 2, 1)
    again = create(client)
    assert again["created"] is False and again["pull_request"]["number"] == pull["number"]
    assert len(repo.pulls) == 1
    assert repo.pulls[0].labels == ["agent"] and repo.pulls[0].reviewers == ["reviewer"]


def test_the_default_branch_is_the_base_when_none_is_named(client: Client, forge: Forge):
    repo = forge.add_repository("octo-org/old", default_branch="master")
    repo.git.commit("task-1", {"a": "1"}, "feat: a", base="master")
    assert create(client, repo="octo-org/old", base="")["pull_request"]["base"] == "master"


def test_every_request_says_who_asks_and_in_which_version(client: Client, forge: Forge):
    client("repository")
    seen = forge.seen("GET", f"/repos/{FORGE_REPOSITORY}")[0].headers
    assert seen["accept"] == "application/vnd.github+json"
    assert seen["x-github-api-version"] == "2022-11-28"
    assert seen["user-agent"].startswith("caisson/")
    assert seen["authorization"] == f"Bearer {FORGE_TOKEN}"


def test_decorations_that_fail_do_not_undo_the_pull_request(client: Client, repo: Repository):
    made = create(client, labels=["kept"], reviewers=["nobody-here"])
    assert made["created"] is True and repo.pulls[0].labels == ["kept"] and not repo.pulls[0].reviewers


def test_one_that_appears_between_looking_and_making_is_found(client: Client, repo: Repository, forge: Forge):
    create(client)
    forge.plant("status", method="GET", path="/pulls$", status=200, body=[])
    made = create(client)
    assert made["created"] is False and made["pull_request"]["number"] == 1 and len(repo.pulls) == 1
    assert [one.status for one in forge.seen("POST", ".*/pulls")] == [201, 422]


def test_a_pull_request_shows_its_state(client: Client, repo: Repository):
    create(client, draft=True)
    pull = client("get", number=1)
    assert pull["draft"] is True and pull["mergeable"] is True and pull["merged"] is False
    assert pull["head_sha"] == repo.git.sha("task-1")
    repo.git.commit("main", {"feature.txt": "other\n"}, "feat: conflicting")
    assert client("get", number=1)["mergeable"] is False
    assert client("find", head="task-1")["number"] == 1
    assert client("find", head="task") is None


def test_an_update_sends_only_what_changes(client: Client, repo: Repository, forge: Forge):
    create(client)
    assert client("update", number=1, title="Better")["title"] == "Better"
    assert forge.seen("PATCH")[-1].json == {"title": "Better"}
    assert client("update", number=1, state="closed")["state"] == "closed"
    assert client("find", head="task-1") is None
    assert client("update", number=1, state="open", body="")["state"] == "open"
    assert repo.pulls[0].body == "" and repo.pulls[0].title == "Better"


@pytest.mark.parametrize("method", ["merge", "squash", "rebase"])
def test_merging_reaches_the_repository(client: Client, repo: Repository, method: str):
    create(client)
    sha = client("merge", number=1, method=method, title="the title")
    assert sha == repo.git.sha("main") and repo.git.file("main", "feature.txt") == "one\ntwo\n"
    assert client("get", number=1)["merged"] is True
    assert client("merge", number=1, method=method) == sha  # merged is merged


def test_a_branch_that_is_behind_is_updated(client: Client, repo: Repository, forge: Forge):
    repo.strict = True
    create(client)
    head = repo.git.sha("task-1")
    assert client("get", number=1)["mergeable_state"] == "clean"
    nothing = refused(client, "update_branch", number=1)
    assert nothing.code == "failed_precondition" and "no new commits" in nothing.message
    repo.git.commit("main", {"other.txt": "other\n"}, "feat: other")
    assert client("get", number=1)["mergeable_state"] == "behind"
    assert refused(client, "update_branch", number=1, head_sha="0" * 40).code == "failed_precondition"
    assert repo.git.sha("task-1") == head
    client("update_branch", number=1, head_sha=head)
    assert forge.seen("PUT")[-1].json == {"expected_head_sha": head}
    assert repo.git.file("task-1", "other.txt") == "other\n"
    pull = client("get", number=1)
    assert pull["mergeable_state"] == "clean" and pull["head_sha"] == repo.git.sha("task-1") != head


def test_a_branch_with_conflicts_is_not_updated(client: Client, repo: Repository):
    create(client)
    head = repo.git.sha("task-1")
    repo.git.commit("main", {"feature.txt": "other\n"}, "feat: conflicting")
    error = refused(client, "update_branch", number=1)
    assert error.code == "failed_precondition" and "conflicts have to be resolved" in error.message
    assert repo.git.sha("task-1") == head


def test_what_cannot_be_merged_is_a_conflict(client: Client, repo: Repository):
    create(client)
    assert refused(client, "merge", number=1, method="fast-forward").code == "invalid_argument"
    repo.git.commit("main", {"feature.txt": "other\n"}, "feat: conflicting")
    assert refused(client, "merge", number=1, method="merge").code == "failed_precondition"
    assert not repo.pulls[0].merged


def test_a_draft_becomes_ready(make_client: Callable[..., Client], repo: Repository, forge: Forge):
    for prefix, path in (("", "/graphql"), ("/api/v3", "/api/graphql")):
        client = make_client(api_url=forge.url + prefix)
        create(client, draft=True)
        repo.pulls[0].draft = True
        client("ready", number=1)
        assert repo.pulls[0].draft is False
        assert forge.requests[-1].path == path
        client("ready", number=1)  # already is
        assert forge.requests[-1].method == "GET"


def test_lists_follow_pages_up_to_the_limit(make_client: Callable[..., Client], repo: Repository, forge: Forge):
    client = make_client(api_url=forge.api_url)
    for number in range(1, 121):
        repo.git.run("branch", f"b{number}", "task-1")
    create(client)
    for number in range(2, 122):  # pushing 120 branches one by one would only take longer
        pull = copy.copy(repo.pulls[0])
        pull.number, pull.head = number, f"b{number - 1}"
        repo.add(pull)
    assert [pull["number"] for pull in client("list", limit=1000)] == list(range(121, 0, -1))
    pages = forge.seen("GET", ".*/pulls")[-2:]
    assert [page.query.get("page") for page in pages] == [None, "2"]
    assert len(client("list", limit=3)) == 3
    assert len(client("list", limit=101)) == 101
    assert [pull["head"] for pull in client("list", head="b7")] == ["b7"]
    assert client("list", base="other") == [] and client("list", state="closed") == []


def test_issues(client: Client):
    made = client("create_issue", title="It breaks", body="Often.", labels=["bug"], assignees=["ada"])
    assert (made["title"], made["labels"], made["assignees"]) == ("It breaks", ["bug"], ["ada"])
    assert client("issue", number=made["number"])["body"] == "Often."
    comment = client("comment", number=made["number"], body="Not any more.")
    assert comment["id"] > 0 and f"#issuecomment-{comment['id']}" in comment["url"]
    assert comment["author"] == "octo-dev" and comment["body"] == "Not any more."
    assert refused(client, "issue", number=99).code == "not_found"


def test_review_comments_are_read_and_answered(client: Client, repo: Repository, forge: Forge):
    create(client)
    repo.pulls[0].review_comments.append(Comment(forge.next_id(), "ada", "Why two?", "feature.txt", 2))
    comment = client("review_comments", number=1)[0]
    assert (comment["author"], comment["path"], comment["line"]) == ("ada", "feature.txt", 2)
    assert client("reply", number=1, comment=comment["id"], body="Because.")["body"] == "Because."
    assert [one["body"] for one in client("review_comments", number=1)] == ["Why two?", "Because."]


def test_comments_at_lines_are_made(client: Client, repo: Repository):
    create(client)
    made = client("review_comment", number=1, path="feature.txt", line=2, body="Why two?")
    assert (made["path"], made["line"], made["body"], made["author"]) == ("feature.txt", 2, "Why two?", "octo-dev")
    assert made["review_id"] > 0 and made["in_reply_to"] == 0
    whole = client("review_comment", number=1, path="feature.txt", body="A good name.")
    assert whole["line"] == 0
    answer = client("reply", number=1, comment=made["id"], body="Because.")
    assert answer["in_reply_to"] == made["id"]
    assert [one["id"] for one in client("review_comments", number=1)] == [made["id"], whole["id"], answer["id"]]
    elsewhere = refused(client, "review_comment", number=1, path="README.md", line=1, body="Why?")
    assert elsewhere.code == "invalid_argument" and "path" in elsewhere.message
    assert refused(client, "review_comment", number=9, path="feature.txt", line=1, body="Why?").code == "not_found"


def test_reviews_are_made_and_listed(make_client: Callable[..., Client], repo: Repository, forge: Forge):
    author = make_client()
    create(author)
    own = refused(author, "review", number=1, event="approve")
    assert own.code == "invalid_argument" and "your own pull request" in own.message
    forge.add_token("ghp_ada", "ada")
    reviewer = make_client(token="ghp_ada")
    remarks = [{"path": "feature.txt", "line": 2, "start_line": 1, "body": "Both?"}]
    asked = reviewer("review", number=1, event="request_changes", body="Nearly.", comments=remarks)
    assert (asked["state"], asked["author"], asked["body"]) == ("changes_requested", "ada", "Nearly.")
    assert forge.seen("POST", ".*/reviews")[-1].json["comments"] == [
        {"path": "feature.txt", "body": "Both?", "line": 2, "side": "RIGHT", "start_line": 1, "start_side": "RIGHT"}
    ]
    (comment,) = author("review_comments", number=1)
    assert (comment["body"], comment["review_id"]) == ("Both?", asked["id"])
    reviewer("review", number=1, event="approve")
    assert [one["state"] for one in author("reviews", number=1)] == ["changes_requested", "approved"]
    assert refused(reviewer, "review", number=1, event="comment").code == "invalid_argument"
    before = len(forge.requests)
    assert refused(reviewer, "review", number=1, event="like").code == "invalid_argument"
    assert len(forge.requests) == before


def test_what_a_reviewer_says_is_not_said_twice(client: Client, repo: Repository, forge: Forge):
    create(client)
    forge.plant("lose", method="POST", path="/comments$")
    assert refused(client, "review_comment", number=1, path="feature.txt", line=1, body="Why?").code == "unavailable"
    assert len(repo.pulls[0].review_comments) == 1
    forge.plant("lose", method="POST", path="/reviews$")
    assert refused(client, "review", number=1, event="comment", body="Hm.").code == "unavailable"
    assert [one.body for one in repo.pulls[0].reviews] == ["", "Hm."]


def test_checks_of_a_commit(client: Client, repo: Repository):
    sha = repo.git.sha("task-1")
    repo.checks = [CheckRun(1, "build", sha, "completed", "success"), CheckRun(2, "lint", sha, "queued", None)]
    shown = [(one["name"], one["status"], one["conclusion"]) for one in client("checks", sha=sha)]
    assert shown == [("build", "completed", "success"), ("lint", "queued", "")]


def test_a_repository_tells_what_the_token_may(make_client: Callable[..., Client], repo: Repository, forge: Forge):
    forge.add_token("ghp_reader", write=False)
    writer, reader = make_client()("repository"), make_client(token="ghp_reader")("repository")
    assert writer["default_branch"] == "main" and writer["clone_url"] == f"{forge.url}/{FORGE_REPOSITORY}.git"
    assert writer["permissions"] == {"pull": True, "push": True, "admin": False} and writer["sufficient"] is True
    assert reader["permissions"] == {"pull": True, "push": False, "admin": False} and reader["sufficient"] is False


def test_what_the_token_may_is_tried_and_changes_nothing(
    make_client: Callable[..., Client], repo: Repository, forge: Forge
):
    before = repo.git.branches()
    forge.add_token("ghp_reader", write=False)
    forge.add_token("ghp_pusher", pull_requests=False)
    nothing = {"pull": True, "push": False, "pull_requests": False, "sufficient": False}
    assert make_client(token="ghp_reader")("rights") == nothing
    assert make_client(token="ghp_pusher")("rights") == {**nothing, "push": True}
    assert make_client()("rights") == {"pull": True, "push": True, "pull_requests": True, "sufficient": True}
    assert refused(make_client(), "rights", repo="octo-org/nothing").code == "not_found"
    forge.plant("status", method="POST", path="/git/refs$", status=500, times=10)
    assert refused(make_client(), "rights").code == "unavailable"
    assert repo.git.branches() == before and not repo.pulls


def test_branches(client: Client, repo: Repository):
    repo.protected.add("main")
    repo.git.run("branch", "feature/a-b", "main")
    assert client("protected", branch="main") is True
    assert client("protected", branch="feature/a-b") is False
    assert refused(client, "protected", branch="nowhere").code == "not_found"
    client("delete_branch", branch="feature/a-b")
    assert repo.git.sha("feature/a-b") is None
    client("delete_branch", branch="feature/a-b")  # it is gone, as asked


def test_every_refusal_is_typed(make_client: Callable[..., Client], client: Client, repo: Repository, forge: Forge):
    repo.git.run("branch", "empty", "main")
    assert refused(client, "create", title="T", head="nowhere", base="main").code == "not_found"
    assert refused(client, "create", title="T", head="task-1", base="nowhere").code == "not_found"
    empty = refused(client, "create", title="T", head="empty", base="main")
    assert empty.code == "failed_precondition" and "nothing_to_review" in empty.message
    assert refused(client, "create", title="", head="task-1", base="main").code == "invalid_argument"
    assert refused(client, "get", repo="octo-org/nothing", number=1).code == "not_found"
    forge.add_token("ghp_reader", write=False)
    reader = make_client(token="ghp_reader")
    assert refused(reader, "create", title="T", head="task-1", base="main").code == "permission_denied"
    wrong = make_client(token="ghp_revoked")
    assert refused(wrong, "get", number=1).code == "unauthenticated"
    nothing = make_client(token="")
    assert refused(nothing, "get", number=1).code == "failed_precondition"
