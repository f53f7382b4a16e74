"""What an administrator can see of webhooks: each delivery, and what became of it."""

from __future__ import annotations

import pytest

from support.api_world import BROWSER, WEBHOOK_SECRET, World
from support.forge import Forge
from support.work import settings_for


@pytest.fixture
def world(make_server, forge: Forge) -> World:
    env = settings_for(forge, GITHUB_WEBHOOK_SECRET=WEBHOOK_SECRET, CAISSON_WEBHOOK_HISTORY="3", **BROWSER)
    return World(make_server(env=env), forge)


def test_what_became_of_webhooks(world: World) -> None:
    def deliveries(**query: object) -> list[dict]:
        page = world.platform.get("/webhooks/github/deliveries", **query)
        assert page["total"] >= len(page["deliveries"])
        return page["deliveries"]

    assert deliveries() == []
    world.turn_to("receiveGithubWebhook")
    assert world.webhook({"zen": "Speak like a human."}).status == 200
    (ping,) = deliveries()
    assert ping["outcome"] == "ignored" and ping["detail"] and ping["event"] and ping["received_at"]

    # Anybody can send what is refused: only the newest few are remembered, and no other is lost.
    for number in range(5):
        headers = {"X-GitHub-Delivery": f"d-{number}", "X-GitHub-Event": "ping", "X-Hub-Signature-256": "sha256=00"}
        assert world.call({"zen": "No."}, headers=headers, key=None).status == 400
    found = deliveries()
    assert [one["outcome"] for one in found] == ["refused"] * 3 + ["ignored"], found
    assert "d-4" in found[0]["detail"] and "signature" in found[0]["detail"] and found[0]["event"] == "ping"
    assert len(deliveries(limit=2)) == 2

    user = world.make("/users", {"name": "viewer", "role": "member"})
    key = world.make("/keys", {"name": "k", "user_id": user["id"]})["key"]
    assert world.platform.ask("GET", "/webhooks/github/deliveries", key=key).status == 403
    assert world.platform.ask("GET", "/webhooks/github/deliveries", key=None).status == 401


def test_a_pull_request_that_was_merged_is_handled(world: World) -> None:
    task = world.platform.get(f"/tasks/{world.finished['task_id']}")
    world.turn_to("receiveGithubWebhook")
    number = task["pull_request_number"]
    payload = {"action": "closed", "number": number, "sender": {"login": "ann"},
               "repository": {"full_name": "/".join(task["pull_request_url"].split("/")[3:5])},
               "pull_request": {"number": number, "html_url": task["pull_request_url"], "merged": True,
                                "draft": False, "state": "closed", "title": "T", "body": "",
                                "merge_commit_sha": "a" * 40, "merged_by": {"login": "ann"},
                                "user": {"login": "ann"},
                                "head": {"ref": task["git_branch"], "sha": "b" * 40},
                                "base": {"ref": "main", "sha": "c" * 40}}}
    answer = world.webhook(payload, event="pull_request")
    assert answer.status == 200, answer
    (one,) = world.platform.get("/webhooks/github/deliveries")["deliveries"]
    assert (one["outcome"], one["event"], one["action"]) == ("handled", "pull_request", "closed"), one
    assert one["repo"] and "1 tasks" in one["detail"]
    assert world.platform.get("/tasks", pull_request_state="merged")["total"] == 1
