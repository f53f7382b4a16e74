"""/api/v1/github and the webhooks, on a real server with the forge double."""

from __future__ import annotations

import time

import pytest
from support.forge import Forge
from support.forge_plugin import FORGE_REPOSITORY, FORGE_TOKEN
from support.forge_state import CheckRun
from support.sessions import wait_until
from support.work import BUSY, Platform, settings_for

SECRET = "a webhook secret"
PULLS = "/github/pull-requests"
NEW = {"repo": FORGE_REPOSITORY, "title": "A feature", "head": "feature"}


@pytest.fixture
def hooked(make_server, forge: Forge) -> Platform:
    """A server that receives the forge's webhooks and cleans up merged branches."""
    more = {"GITHUB_WEBHOOK_SECRET": SECRET, "CAISSON_DELETE_MERGED_BRANCH": "true"}
    server = make_server(env=settings_for(forge, **more))
    forge.webhook_url, forge.webhook_secret = f"{server.url}/api/v1/webhooks/github", SECRET
    return Platform(server)


def add_branch(forge: Forge) -> None:
    git = forge.repositories[FORGE_REPOSITORY].git
    git.commit("feature", {"feature.txt": "text\n"}, "feat: a feature", base="main")


def test_pull_requests_through_the_api(platform: Platform, forge: Forge) -> None:
    add_branch(forge)
    repo = forge.repositories[FORGE_REPOSITORY]
    made = platform.ask("POST", PULLS, {**NEW, "draft": True, "labels": ["agent"]}, 201).json()
    assert made["created"] is True and made["number"] == 1 and made["base"] == "main"
    again = platform.ask("POST", PULLS, NEW, 200).json()
    assert again["created"] is False and again["url"] == made["url"] and len(repo.pulls) == 1
    assert [one["number"] for one in platform.ask("GET", f"{PULLS}?repo={FORGE_REPOSITORY}").json()] == [1]
    body = {"repo": FORGE_REPOSITORY, "title": "Better"}
    assert platform.ask("PATCH", f"{PULLS}/1", body, 200).json()["title"] == "Better"
    ready = platform.ask("POST", f"{PULLS}/1/ready", {"repo": FORGE_REPOSITORY}, 200).json()
    assert ready["draft"] is False
    repo.checks.append(CheckRun(1, "build", repo.git.sha("feature"), "completed", "failure"))
    merge = {"repo": FORGE_REPOSITORY, "method": "squash"}
    refused = platform.ask("POST", f"{PULLS}/1/merge", merge, 409).json()
    assert "build" in refused["error"]["message"]
    merged = platform.ask("POST", f"{PULLS}/1/merge", {**merge, "ignore_checks": True}, 200).json()
    assert merged["sha"] == repo.git.sha("main")
    assert platform.get(f"{PULLS}/1", repo=FORGE_REPOSITORY)["merged"] is True


def test_refusals_are_typed(platform: Platform, forge: Forge) -> None:
    repo = forge.repositories[FORGE_REPOSITORY]
    repo.git.run("branch", "empty", "main")
    empty = platform.ask("POST", PULLS, {**NEW, "head": "empty"}, 409).json()
    assert empty["error"]["code"] == "nothing_to_review"
    platform.ask("POST", PULLS, {**NEW, "head": "nowhere"}, 404)
    platform.ask("POST", PULLS, {**NEW, "repo": "octo-org/nothing"}, 404)
    platform.ask("POST", PULLS, {**NEW, "repo": "no name"}, 400)
    add_branch(forge)
    forge.tokens[FORGE_TOKEN].write = False
    platform.ask("POST", PULLS, NEW, 403)
    info = platform.get(f"/github/repos/{FORGE_REPOSITORY}")
    assert info["sufficient"] is False and info["permissions"]["push"] is False
    del forge.tokens[FORGE_TOKEN]
    platform.ask("GET", f"/github/repos/{FORGE_REPOSITORY}", None, 409)  # the caller's own key is fine


def test_a_low_budget_is_told_once_per_window(platform: Platform, forge: Forge) -> None:
    """S4-48: when less than a tenth of GitHub's requests is left."""
    account = forge.tokens[FORGE_TOKEN]
    for window, left in ((1, 12), (2, 5)):
        account.limit, account.remaining, account.resets_at = 100, left, time.time() + window * 3600
        for _ in range(4):
            platform.get(PULLS, repo=FORGE_REPOSITORY)
        wait_until(lambda: len(platform.events(type="github_budget_low")) == window, "the event")
    told = [(event["limit"], event["remaining"]) for event in platform.events(type="github_budget_low")]
    assert told == [(100, 9), (100, 4)]
    assert platform.get("/github/rate-limit")["remaining"] == account.remaining == 1


def health(platform: Platform) -> tuple[str, dict]:
    """The answer, once there is one."""
    deadline = time.monotonic() + 60
    while True:
        body = platform.get("/health/detailed")
        if "no answer yet" not in str(body["checks"]):
            return body["status"], body["checks"]["github"]
        assert time.monotonic() < deadline, body
        time.sleep(0.1)


def test_health_says_whether_the_credential_is_enough(make_server, forge: Forge) -> None:
    """S3-144: a server of its own for each answer, as one keeps its answer for a minute."""

    def start() -> Platform:
        return Platform(make_server(env=settings_for(forge)))

    platform = start()
    task = {"title": "T", "repo_url": FORGE_REPOSITORY}
    platform.ask("POST", "/tasks", task, 201)
    platform.ask("POST", "/tasks", {**task, "repo_url": "https://elsewhere.example/octo/other"}, 201)
    status, github = health(platform)
    assert status == "ok" and github["configured"] is True and github["repositories"] == 1 and github["remaining"] > 0
    assert platform.get(f"/github/repos/{FORGE_REPOSITORY}/rights")["sufficient"] is True
    asked = len(forge.requests)
    assert health(platform)[0] == "ok" and len(forge.requests) == asked

    forge.tokens[FORGE_TOKEN].pull_requests = False
    platform = start()
    platform.ask("POST", "/tasks", task, 201)
    status, github = health(platform)
    assert status == "degraded" and "1 of the 1" in github["message"] and FORGE_REPOSITORY not in github["message"]
    rights = platform.get(f"/github/repos/{FORGE_REPOSITORY}/rights")
    assert rights == {"pull": True, "push": True, "pull_requests": False, "sufficient": False}
    platform.ask("GET", "/github/repos/octo-org/nothing/rights", None, 404)

    del forge.tokens[FORGE_TOKEN]
    status, github = health(start())
    assert status == "degraded" and "token" in github["message"] and FORGE_TOKEN not in github["message"]


def test_a_slow_github_does_not_hold_up_health(make_server, forge: Forge) -> None:
    forge.plant("delay", path="/rate_limit$", seconds=5)
    platform = Platform(make_server(env=settings_for(forge)))
    assert platform.rest.get("/health", key=None).status == 200
    github = platform.get("/health/detailed")["checks"]["github"]
    assert github["status"] == "failed" and "no answer yet" in github["message"]
    assert health(platform)[0] == "ok"  # the answer comes by itself


def test_issues_and_the_budget(platform: Platform, forge: Forge) -> None:
    issue = platform.ask("POST", "/github/issues", {"repo": FORGE_REPOSITORY, "title": "It breaks"}, 201).json()
    comment = {"repo": FORGE_REPOSITORY, "body": "Not any more."}
    platform.ask("POST", f"/github/issues/{issue['number']}/comments", comment, 201)
    assert platform.get(f"/github/issues/{issue['number']}", repo=FORGE_REPOSITORY)["title"] == "It breaks"
    budget = platform.get("/github/rate-limit")
    assert budget["limit"] == 5000 and budget["remaining"] < 5000 and budget["low"] is False


def test_reviews_through_the_api(platform: Platform, forge: Forge) -> None:
    add_branch(forge)
    repo = {"repo": FORGE_REPOSITORY}
    platform.ask("POST", PULLS, NEW, 201)
    remark = {"path": "feature.txt", "line": 1, "body": "Why?"}
    made = platform.ask("POST", f"{PULLS}/1/comments", {**repo, **remark}, 201).json()
    answer = platform.ask("POST", f"{PULLS}/1/comments/{made['id']}/replies", {**repo, "body": "Because."}, 201).json()
    assert answer["in_reply_to"] == made["id"]
    listed = platform.ask("GET", f"{PULLS}/1/comments?repo={FORGE_REPOSITORY}", None, 200).json()
    assert [one["body"] for one in listed] == ["Why?", "Because."]
    review = {**repo, "event": "comment", "body": "Hm.", "comments": [remark]}
    made = platform.ask("POST", f"{PULLS}/1/reviews", review, 201).json()
    reviews = platform.ask("GET", f"{PULLS}/1/reviews?repo={FORGE_REPOSITORY}", None, 200).json()
    assert made in reviews and made["state"] == "commented"
    platform.ask("POST", f"{PULLS}/1/reviews", {**repo, "event": "approve"}, 400)  # one's own
    platform.ask("POST", f"{PULLS}/1/reviews", {**repo, "event": "like"}, 422)
    platform.ask("POST", f"{PULLS}/1/comments", {**repo, **remark, "path": "README.md"}, 400)
    platform.ask("POST", f"{PULLS}/7/comments", {**repo, **remark}, 404)


def test_a_review_reaches_the_agent(hooked: Platform, forge: Forge) -> None:
    """S3-57: its words and what it says at lines; the board needs no words of its own then."""
    started = hooked.start(hooked.add_agent("cat; date +%s%N >> a.txt"))  # it says what it was told
    hooked.wait(started)
    task_id = started["task_id"]
    (pull,) = forge.repositories[FORGE_REPOSITORY].pulls
    hooked.ask("POST", f"/tasks/{task_id}/move", {"status": "in_progress"}, 422)
    forge.review(pull, "ada", "COMMENTED", "Never mind.", [("a.txt", 1, "Not for the agent.")])
    forge.review(pull, "ada", "CHANGES_REQUESTED", "Nearly.", [("a.txt", 1, "More of it."), ("a.txt", 0, "Rename it.")])
    hooked.wait_for_event("pr_changes_requested", task_id=task_id)
    words = "Nearly.\n\na.txt:1: More of it.\n\na.txt: Rename it."
    assert hooked.get(f"/tasks/{task_id}")["feedback"] == words
    hooked.ask("POST", f"/tasks/{task_id}/move", {"status": "in_progress"}, 200)
    executions = hooked.get(f"/tasks/{task_id}/executions")["executions"]
    (again,) = [one for one in executions if one["run_id"] != started["run_id"]]
    hooked.wait(again)
    assert "More of it." in hooked.output(task_id=task_id)


def test_a_review_is_kept_although_github_does_not_tell_its_lines(hooked: Platform, forge: Forge) -> None:
    started = hooked.start(hooked.add_agent(BUSY.format(file="a.txt")))
    hooked.wait(started)
    (pull,) = forge.repositories[FORGE_REPOSITORY].pulls
    forge.plant("status", method="GET", path="/comments$", status=404, times=100)
    forge.review(pull, "ada", "CHANGES_REQUESTED", "Nearly.", [("a.txt", 1, "More of it.")])
    hooked.wait_for_event("pr_changes_requested", task_id=started["task_id"])
    feedback = hooked.get(f"/tasks/{started['task_id']}")["feedback"]
    assert feedback.startswith("Nearly.") and "could not be read" in feedback


def test_a_task_follows_its_pull_request(hooked: Platform, forge: Forge) -> None:
    started = hooked.start(hooked.add_agent(BUSY.format(file="a.txt")))
    hooked.wait(started)
    task_id = started["task_id"]
    (pull,) = forge.repositories[FORGE_REPOSITORY].pulls

    def after(event: str) -> dict:
        told = hooked.wait_for_event(event, task_id=task_id, deadline_s=20)
        assert told["pr_number"] == pull.number and told["pr_url"] == hooked.get(f"/tasks/{task_id}")["pull_request_url"]
        assert told["sandbox_id"] and told["timestamp"]
        return hooked.get(f"/tasks/{task_id}")

    def change(state: str) -> None:
        body = {"repo": FORGE_REPOSITORY, "state": state}
        hooked.ask("PATCH", f"{PULLS}/{pull.number}", body, 200)

    forge.review(pull, "ada", "APPROVED")
    task = after("pr_approved")
    assert (task["status"], task["pull_request_state"]) == ("in_review", "approved")
    forge.review(pull, "ada", "CHANGES_REQUESTED", "Please test it.")
    task = after("pr_changes_requested")
    assert (task["status"], task["pull_request_state"], task["feedback"]) == ("in_review", "open", "Please test it.")
    change("closed")
    assert after("pr_closed")["status"] == "failed"
    forge.wait_for_webhooks(len(forge.deliveries))
    change("open")
    assert after("pr_reopened")["status"] == "in_review"
    forge.wait_for_webhooks(len(forge.deliveries))
    merged = hooked.ask("POST", f"{PULLS}/{pull.number}/merge", {"repo": FORGE_REPOSITORY}, 200).json()
    assert after("pr_merged")["status"] == "done"
    assert hooked.events(type="pr_merged")[0]["merge_commit_sha"] == merged["sha"]
    forge.wait_for_webhooks(len(forge.deliveries))
    assert forge.repositories[FORGE_REPOSITORY].git.sha(pull.head) is None  # it was merged, and is gone
    assert {status for one in forge.deliveries for status in one.answers} == {200}
    once_more = forge.deliveries[-1]
    forge.deliver_again(once_more)
    assert once_more.answers == [200, 200] and "ignored" in once_more.answer_body
    assert len(hooked.events(type="pr_merged")) == 1


def state_of(platform: Platform, task_id: str) -> tuple[str, str]:
    task = platform.get(f"/tasks/{task_id}")
    return task["status"], task["pull_request_state"]


def test_a_task_knows_at_once_what_was_done_through_the_api(platform: Platform, forge: Forge) -> None:
    """Nobody sends webhooks here."""
    started = platform.start(platform.add_agent(BUSY.format(file="a.txt")), options={"draft": True})
    platform.wait(started)
    task_id, body = started["task_id"], {"repo": FORGE_REPOSITORY}
    assert state_of(platform, task_id) == ("in_review", "draft")
    platform.ask("POST", f"{PULLS}/1/ready", body, 200)
    assert state_of(platform, task_id) == ("in_review", "open")
    platform.ask("PATCH", f"{PULLS}/1", {**body, "state": "closed"}, 200)
    assert state_of(platform, task_id) == ("failed", "closed")
    platform.ask("PATCH", f"{PULLS}/1", {**body, "state": "open"}, 200)
    assert state_of(platform, task_id) == ("in_review", "open")
    platform.ask("POST", f"{PULLS}/1/merge", body, 200)
    assert state_of(platform, task_id) == ("done", "merged")
    for kind in ("pr_closed", "pr_reopened", "pr_merged"):
        assert len(platform.events(type=kind, task_id=task_id)) == 1, kind


def test_what_was_done_through_the_api_is_told_once(hooked: Platform, forge: Forge) -> None:
    """The webhook comes after the answer, and the other way round."""
    tasks = [hooked.start(hooked.add_agent(BUSY.format(file=f"{n}.txt"), name=f"worker {n}")) for n in (1, 2)]
    for started in tasks:
        hooked.wait(started)
    first, second = (hooked.get(f"/tasks/{started['task_id']}") for started in tasks)
    body = {"repo": FORGE_REPOSITORY}
    # Ours first: GitHub's word comes when everything is known.
    url, forge.webhook_url = forge.webhook_url, ""
    hooked.ask("POST", f"{PULLS}/{first['pull_request_number']}/merge", body, 200)
    forge.webhook_url = url
    hooked.ask("POST", f"/tasks/{first['id']}/move", {"status": "backlog"}, 200)  # a person's wish since then
    forge.deliver_again(forge.deliveries[-1])
    assert forge.deliveries[-1].payload["pull_request"]["merged"] is True
    assert state_of(hooked, first["id"]) == ("backlog", "merged")
    # GitHub's first: somebody merges it there, and we ask for the same.
    other = forge.repositories[FORGE_REPOSITORY].items[second["pull_request_number"]]
    other.merge_sha = other.repo.git.merge(other.base, other.head_sha, "merge", "merged there")
    other.close(merged_by="ada")
    forge.announce(other, "closed", "ada")
    forge.wait_for_webhooks(len(forge.deliveries))  # all of them: what was not sent was sent again
    assert state_of(hooked, second["id"]) == ("done", "merged")
    hooked.ask("POST", f"{PULLS}/{other.number}/merge", body, 200)
    for task in (first, second):
        assert len(hooked.events(type="pr_merged", task_id=task["id"])) == 1
    assert {status for one in forge.deliveries for status in one.answers} == {200}


def test_the_branch_of_a_pull_request_is_updated(platform: Platform, forge: Forge) -> None:
    add_branch(forge)
    repo = forge.repositories[FORGE_REPOSITORY]
    repo.strict = True
    platform.ask("POST", PULLS, NEW, 201)
    repo.git.commit("main", {"other.txt": "other\n"}, "feat: other")
    behind = platform.get(f"{PULLS}/1", repo=FORGE_REPOSITORY)
    assert behind["mergeable_state"] == "behind"
    body = {"repo": FORGE_REPOSITORY, "head_sha": behind["head_sha"]}
    updated = platform.ask("POST", f"{PULLS}/1/update-branch", body, 202).json()
    assert updated["mergeable_state"] == "clean" and updated["head_sha"] == repo.git.sha("feature")
    stale = platform.ask("POST", f"{PULLS}/1/update-branch", body, 409).json()["error"]["message"]
    assert "head sha" in stale
    repo.git.commit("main", {"feature.txt": "other\n"}, "feat: conflicting")
    conflict = platform.ask("POST", f"{PULLS}/1/update-branch", {"repo": FORGE_REPOSITORY}, 409).json()
    assert "conflicts have to be resolved" in conflict["error"]["message"]


def test_the_same_number_of_another_repository_is_another(hooked: Platform, forge: Forge) -> None:
    """B-11: "widge" is what is left of "widget.git" when characters are stripped."""
    started = hooked.start(hooked.add_agent(BUSY.format(file="a.txt")))
    hooked.wait(started)
    other = forge.add_repository(FORGE_REPOSITORY[:-1])
    other.git.commit("feature", {"a": "1"}, "feat: a", base="main")
    hooked.ask("POST", PULLS, {**NEW, "repo": other.full_name, "base": "main"}, 201)
    assert other.pulls[0].number == 1
    hooked.ask("POST", f"{PULLS}/1/merge", {"repo": other.full_name}, 200)
    forge.wait_for_webhooks(len(forge.deliveries))
    assert hooked.get(f"/tasks/{started['task_id']}")["status"] == "in_review"
    assert hooked.events(type="pr_merged") == []


def test_a_wrong_secret_changes_nothing(hooked: Platform, forge: Forge) -> None:
    forge.webhook_secret = "another secret"
    add_branch(forge)
    hooked.ask("POST", PULLS, NEW, 201)
    assert forge.wait_for_webhooks(1)[0].answers == [400]
    forge.webhook_secret = ""
    hooked.ask("PATCH", f"{PULLS}/1", {"repo": FORGE_REPOSITORY, "state": "closed"}, 200)
    assert forge.wait_for_webhooks(2)[1].answers == [400]
