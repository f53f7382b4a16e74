"""What became of a pull request is found out, too, when nobody tells it."""

from __future__ import annotations

from support.forge import Forge
from support.forge_plugin import FORGE_REPOSITORY
from support.work import BUSY, Platform, settings_for

SECRET = "a webhook secret"
SELDOM = "86400"


def serve(make_server, forge: Forge, seconds: str) -> Platform:
    more = {"GITHUB_WEBHOOK_SECRET": SECRET, "CAISSON_DELETE_MERGED_BRANCH": "true",
            "CAISSON_PULL_REQUEST_CHECK_S": seconds}
    return Platform(make_server(env=settings_for(forge, **more)))


def work(platform: Platform, count: int) -> list[str]:
    """Tasks in review."""
    started = [platform.start(platform.add_agent(BUSY.format(file=f"{n}.txt"), name=f"worker {n}"))
               for n in range(count)]
    for one in started:
        platform.wait(one)
    return [one["task_id"] for one in started]


def pull_of(platform: Platform, forge: Forge, task_id: str):
    return forge.repositories[FORGE_REPOSITORY].items[platform.get(f"/tasks/{task_id}")["pull_request_number"]]


def merge(pull) -> None:
    """At GitHub, by a person."""
    pull.merge_sha = pull.repo.git.merge(pull.base, pull.head_sha, "merge", "merged there")
    pull.close(merged_by="ada")


def state_of(platform: Platform, task_id: str) -> tuple[str, str]:
    task = platform.get(f"/tasks/{task_id}")
    return task["status"], task["pull_request_state"]


def refresh(platform: Platform, task_id: str, status: int = 200) -> dict:
    return platform.ask("POST", f"/tasks/{task_id}/pull-request/refresh", status=status).json()


def test_a_server_asks_when_it_starts(make_server, forge: Forge) -> None:
    platform = serve(make_server, forge, SELDOM)
    merged, closed, left = work(platform, 3)
    first, second = (pull_of(platform, forge, task) for task in (merged, closed))
    platform.server.stop()
    merge(first)
    second.close()
    platform.server.restart()
    told = platform.wait_for_event("pr_merged", task_id=merged)
    assert told["merged_by"] == "ada" and told["merge_commit_sha"] == first.merge_sha
    platform.wait_for_event("pr_closed", task_id=closed)
    assert state_of(platform, merged) == ("done", "merged")
    assert state_of(platform, closed) == ("failed", "closed")
    assert state_of(platform, left) == ("in_review", "open")


def test_a_server_asks_again_and_again(make_server, forge: Forge) -> None:
    platform = serve(make_server, forge, "1")
    (task,) = work(platform, 1)
    merge(pull_of(platform, forge, task))
    platform.wait_for_event("pr_merged", task_id=task)
    assert state_of(platform, task) == ("done", "merged")


def test_a_person_lets_the_server_ask(make_server, forge: Forge) -> None:
    platform = serve(make_server, forge, "0")
    (task,) = work(platform, 1)
    pull = pull_of(platform, forge, task)
    assert refresh(platform, task)["state"] == "open"
    pull.close()
    assert refresh(platform, task)["state"] == "closed" and state_of(platform, task) == ("failed", "closed")
    pull.reopen()
    assert refresh(platform, task)["state"] == "open" and state_of(platform, task) == ("in_review", "open")
    merge(pull)
    assert refresh(platform, task)["state"] == "merged" and state_of(platform, task) == ("done", "merged")
    assert pull.repo.git.sha(pull.head) is None  # its branch is gone, as after a webhook
    # The webhook comes after all.
    forge.webhook_url, forge.webhook_secret = f"{platform.server.url}/api/v1/webhooks/github", SECRET
    forge.announce(pull, "closed", "ada")
    assert forge.wait_for_webhooks(1)[0].answers == [200]
    assert refresh(platform, task)["state"] == "merged"
    for kind in ("pr_closed", "pr_reopened", "pr_merged"):
        assert len(platform.events(type=kind, task_id=task)) == 1, kind
    new = platform.ask("POST", "/tasks", {"title": "T", "repo_url": FORGE_REPOSITORY}, 201).json()
    refresh(platform, new["id"], 404)
