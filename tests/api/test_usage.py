"""What a user has and uses, counted."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from support.rest import Rest


def test_usage_counts_what_is_the_callers(make_server):
    server = make_server(["--set", "max_sandboxes=50", "--set", "budget_month_dollars=12.5"])
    rest = Rest(server)
    made = rest.post("/api/v1/keys", {"name": "lea", "own_user": True}).json()
    key, user = made["key"], made["user_id"]
    usage = lambda: rest.get("/api/v1/usage", key=key).json()  # noqa: E731
    assert usage() == {
        "sandboxes": {"running": 0, "limit": 50, "paused": 0}, "agents": {"busy": 0, "total": 0},
        "tasks": {"in_progress": 0, "queued": 0}, "approvals_waiting": 0,
        "cost_today_dollars": 0, "cost_month_dollars": 0, "budget_month_dollars": 12.5}

    assert rest.post("/v2/sandboxes", {"templateID": "base"}).status == 201  # somebody else's
    boxes = [rest.post("/v2/sandboxes", {"templateID": "base"}, key=key).json()["sandboxID"] for _ in range(2)]
    assert rest.post(f"/sandboxes/{boxes[0]}/pause", {}, key=key).status == 204
    limited = rest.request("PATCH", f"/api/v1/keys/{made['id']}", {"limits": {"max_sandboxes": 3}})
    assert limited.status == 200, limited
    assert usage()["sandboxes"] == {"running": 1, "limit": 3, "paused": 1}

    agents = [rest.post("/api/v1/agents", {"name": name, "adapter": "external"}, key=key).json()["id"]
              for name in ("ada", "ben")]
    with closing(sqlite3.connect(server.data_dir / "db/caisson.db", timeout=30)) as database:
        def insert(table: str, **values: object) -> None:
            """A row whose other columns are empty."""
            for _, name, kind, needed, default, _ in database.execute(f"PRAGMA table_info({table})"):
                if needed and default is None and name not in values:
                    values[name] = 0 if kind in ("INTEGER", "REAL") else "{}"
            marks = ", ".join("?" for _ in values)
            database.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", tuple(values.values()))

        (at,) = database.execute("SELECT created_at FROM agents WHERE id = ?", (agents[0],)).fetchone()
        database.execute("UPDATE agents SET status = 'working' WHERE id = ?", (agents[0],))
        for number, status in enumerate(("running", "waiting", "queued", "succeeded")):
            insert("task_executions", id=f"e{number}", owner_id=user, status=status, commits="[]")
        for number, state in enumerate(("pending", "approved")):
            insert("approval_requests", id=f"a{number}", owner_id=user, state=state, kind="question")
        insert("cost_entries", id="c1", owner_id=user, kind="model", dollars=0.5, at=at)
        insert("cost_entries", id="c2", owner_id="admin", kind="model", dollars=7.0, at=at)
        database.commit()
    shown = usage()
    assert shown["agents"] == {"busy": 1, "total": 2}
    assert shown["tasks"] == {"in_progress": 2, "queued": 1}
    assert shown["approvals_waiting"] == 1
    assert (shown["cost_today_dollars"], shown["cost_month_dollars"]) == (0.5, 0.5)
    assert rest.get("/api/v1/usage", key=None).status == 401
    for box in boxes:  # the server's own clean-up sees only the first user's
        assert rest.request("DELETE", f"/sandboxes/{box}", key=key).status == 204


def test_an_admin_sees_who_spent_what(make_server):
    server = make_server()
    rest = Rest(server)
    made = rest.post("/api/v1/keys", {"name": "lea", "own_user": True}).json()
    key, user = made["key"], made["user_id"]
    with closing(sqlite3.connect(server.data_dir / "db/caisson.db", timeout=30)) as database:
        (at,) = database.execute("SELECT max(created_at) FROM users").fetchone()
        for id, owner, dollars in (("c1", user, 0.5), ("c2", user, 0.25), ("c3", "admin", 7.0)):
            database.execute(
                "INSERT INTO cost_entries (id, owner_id, execution_id, sandbox_id, kind, model, sandbox_ms, cpu_ms, "
                "tokens_in, tokens_out, dollars, at) VALUES (?, ?, '', '', 'model', '', 0, 0, 0, 0, ?, ?)",
                (id, owner, dollars, at))
        database.commit()

    def sums(query: str, **options) -> dict[str, float]:
        answer = rest.get(f"/api/v1/costs/{query}", **options)
        assert answer.status == 200, answer
        return {one["key"]: one["dollars"] for one in answer.json()["sums"]}

    assert sums("stats?by=user&all=true") == {"admin": 7.0, user: 0.75}
    assert sums("stats?by=user") == {"admin": 7.0}
    assert sums("stats?by=user", key=key) == {user: 0.75}
    assert sums("stats?by=kind&all=true") == {"model": 7.75}
    assert sum(sums("summary?period=month&count=2&all=true").values()) == 7.75
    assert rest.get("/api/v1/costs?all=true").json()["total"] == 3
    for path in ("costs", "costs/stats", "costs/summary"):
        assert rest.get(f"/api/v1/{path}?all=true", key=key).status == 403
