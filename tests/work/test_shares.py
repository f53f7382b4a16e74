"""Links by which anybody may look at one task: what they show, what they hide, and when they end."""

from __future__ import annotations

import json
import sqlite3
import time

import pytest
from support.postgres import Postgres
from support.work import Platform

AGENT = "echo sandbox is $E2B_SANDBOX_ID; echo text > a.txt"


def share(platform: Platform, task_id: str, **body: object) -> tuple[dict, str]:
    """The link, and its token."""
    made = platform.ask("POST", f"/tasks/{task_id}/shares", body, 201).json()
    assert set(made) == {"id", "url", "expires_at"}
    prefix = f"http://127.0.0.1:{platform.server.port}/app/shared/"
    assert made["url"].startswith(prefix)
    return made, made["url"].removeprefix(prefix)


def look(platform: Platform, token: str, path: str = "", status: int = 200) -> dict:
    answer = platform.ask("GET", f"/shared/{token}{path}", key=None)
    assert answer.status == status, answer
    return answer.json()


def finished(platform: Platform) -> dict:
    started = platform.start(platform.add_agent(AGENT), "Shared work", repo_url="", description="For all to see.")
    platform.wait(started)
    return started


@pytest.mark.quick
@pytest.mark.timeout(120)
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_a_link_shows_one_task_and_hides_the_rest(make_server, request: pytest.FixtureRequest, database: str) -> None:
    env = {}
    if database == "postgresql":
        postgres: Postgres = request.getfixturevalue("postgres")
        env["CAISSON_DATABASE_URL"] = postgres.url(postgres.create_database())
    platform = Platform(make_server(env=env))
    started = finished(platform)
    made, token = share(platform, started["task_id"])
    assert len(token) == 48

    shown = look(platform, token)
    assert shown["task"]["title"] == "Shared work" and shown["task"]["description"] == "For all to see."
    assert shown["task"]["status"] == "in_review" and shown["task"]["number"] == 1
    (execution,) = shown["executions"]
    assert execution["status"] == "succeeded" and len(execution["steps"]) == 8
    changes = look(platform, token, "/changes")
    assert [f["path"] for f in changes["files"]] == ["a.txt"] and "+text" in changes["patch"]

    page = look(platform, token, "/events?limit=3")
    assert len(page["events"]) == 3
    events = page["events"] + look(platform, token, f"/events?after={page['next']}&limit=1000")["events"]
    mine = platform.events(task_id=started["task_id"])
    assert [e["id"] for e in events] == [e["id"] for e in mine]
    assert any("sandbox is ***" in e.get("output", "") for e in events)

    sandbox = platform.get(f"/executions/{started['execution_id']}")["sandbox_id"]
    everything = json.dumps([shown, changes, events])
    for hidden in (sandbox, "owner_id", "sandbox_id", "agent_id", "run_id", "user_id"):
        assert hidden not in everything, hidden
    assert sandbox in json.dumps(mine)


def test_links_end(make_server) -> None:
    platform = Platform(make_server())
    task = platform.ask("POST", "/tasks", {"title": "T"}, 201).json()["id"]
    first, token = share(platform, task, expires_hours=1)
    second, other = share(platform, task)
    listed = platform.get(f"/tasks/{task}/shares")
    assert listed["total"] == 2 and {s["id"] for s in listed["shares"]} == {first["id"], second["id"]}
    assert token not in json.dumps(listed) and set(listed["shares"][0]) == {"id", "created_at", "expires_at"}
    assert look(platform, token)["executions"] == []
    platform.ask("DELETE", f"/tasks/{task}/shares/{first['id']}", status=204)
    platform.ask("DELETE", f"/tasks/{task}/shares/{first['id']}", status=404)
    gone = look(platform, token, status=404)
    for path in ("", "/events", "/changes"):
        assert look(platform, token, path, 404)["error"]["code"] == gone["error"]["code"]
        assert look(platform, "0" * 48, path, 404)["error"]["message"] == gone["error"]["message"]

    # One whose time is over.
    database = platform.server.data_dir / "db" / "caisson.db"
    with sqlite3.connect(database) as connection:
        ((stored,),) = connection.execute("SELECT token_hash FROM task_shares").fetchall()
        connection.execute("UPDATE task_shares SET expires_at = ?", (time.time_ns() - 1,))
    connection.close()
    assert stored != other and len(stored) == 64
    assert other.encode() not in database.read_bytes(), "the token itself is in the database"
    look(platform, other, status=404)
    assert platform.get(f"/tasks/{task}/shares")["total"] == 0
    assert token not in platform.server.log_since(0) and other not in platform.server.log_since(0)


def test_links_survive_a_crash_and_go_with_their_task(make_server) -> None:
    server = make_server()
    platform = Platform(server)
    task = platform.ask("POST", "/tasks", {"title": "T"}, 201).json()["id"]
    _, token = share(platform, task)
    server.crash()
    server.start()
    assert look(platform, token)["task"]["title"] == "T"
    platform.ask("DELETE", f"/tasks/{task}", status=204)
    look(platform, token, status=404)


def test_links_are_their_owners_and_only_to_look(make_server) -> None:
    platform = Platform(make_server(env={"CAISSON_SHARE_MAX_PER_TASK": "2", "CAISSON_SHARE_MAX_HOURS": "48",
                                         "CAISSON_SHARE_DEFAULT_HOURS": "24"}))
    task = platform.ask("POST", "/tasks", {"title": "T"}, 201).json()["id"]
    made, token = share(platform, task)
    user = platform.ask("POST", "/users", {"name": "somebody"}, 201).json()
    key = platform.ask("POST", "/keys", {"name": "k", "user_id": user["id"]}, 201).json()["key"]
    for method, path in (("POST", ""), ("GET", ""), ("DELETE", f"/{made['id']}")):
        assert platform.ask(method, f"/tasks/{task}/shares{path}", key=key).status == 404
        assert platform.ask(method, f"/tasks/{task}/shares{path}", key=None).status == 401
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        assert platform.ask(method, f"/shared/{token}", key=None).status == 405
    # It is no key: nothing else opens with it.
    for headers in ({"X-API-KEY": token}, {"Authorization": f"Bearer {token}"}):
        assert platform.ask("GET", f"/tasks/{task}", key=None, headers=headers).status == 401
    for hours in (0, -1, 49, "many"):
        assert platform.ask("POST", f"/tasks/{task}/shares", {"expires_hours": hours}).status == 422
    share(platform, task, expires_hours=48)
    assert platform.ask("POST", f"/tasks/{task}/shares", {}).status == 429


def test_an_address_may_not_ask_without_end(make_server) -> None:
    platform = Platform(make_server(env={"CAISSON_SHARE_RATE_PER_MINUTE": "5"}))
    task = platform.ask("POST", "/tasks", {"title": "T"}, 201).json()["id"]
    _, token = share(platform, task)
    answers = [platform.ask("GET", f"/shared/{one}", key=None) for one in [token] * 3 + ["1" * 48] * 2 + [token] * 2]
    statuses = [answer.status for answer in answers]
    assert statuses == [200, 200, 200, 404, 404, 429, 429], statuses
    assert 1 <= int(answers[-1].headers["Retry-After"]) <= 60
    assert platform.get(f"/tasks/{task}")["title"] == "T", "others are not touched by it"
