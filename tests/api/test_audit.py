"""S1-131: calls of E2B's own routes are in the audit log."""

from __future__ import annotations

import time

from support.rest import Rest
from support.server import CaissonServer

DEADLINE_S = 30


def entries_about(rest: Rest, target: str, count: int) -> list[tuple[str, int]]:
    """Oldest first, once there are so many: no answer waits for its row."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        found = rest.get(f"/api/v1/audit?target={target}").json()["entries"]
        if len(found) >= count:
            assert {(e["actor_id"], e["key_id"], e["address"]) for e in found} == {("admin", "admin", "127.0.0.1")}
            return [(e["action"], e["status"]) for e in reversed(found)]
        assert time.monotonic() < deadline, found
        time.sleep(0.05)


def test_the_life_of_a_sandbox_is_in_the_audit_log(rest: Rest) -> None:
    made = rest.post("/v2/sandboxes", {"templateID": "base"}, headers={"X-Request-Id": "life-1"}).json()["sandboxID"]
    rest.get(f"/sandboxes/{made}")
    rest.post(f"/sandboxes/{made}/timeout", {"timeout": 600})
    rest.post(f"/sandboxes/{made}/timeout", {"timeout": "soon"})
    rest.request("PUT", f"/sandboxes/{made}/network", {"allow_internet_access": False})
    rest.post(f"/sandboxes/{made}/pause", {"memory": False})
    rest.post(f"/sandboxes/{made}/connect", {"timeout": 600})
    rest.post(f"/sandboxes/{made}/snapshots", {"memory": False})
    rest.request("DELETE", f"/sandboxes/{made}")
    rest.request("DELETE", f"/sandboxes/{made}")
    assert entries_about(rest, made, 9) == [
        ("POST /v2/sandboxes", 201),
        ("POST /sandboxes/{id}/timeout", 204),
        ("POST /sandboxes/{id}/timeout", 400),
        ("PUT /sandboxes/{id}/network", 204),
        ("POST /sandboxes/{id}/pause", 204),
        ("POST /sandboxes/{id}/connect", 201),
        ("POST /sandboxes/{id}/snapshots", 201),
        ("DELETE /sandboxes/{id}", 204),
        ("DELETE /sandboxes/{id}", 404),
    ]
    first = rest.get(f"/api/v1/audit?target={made}").json()["entries"][-1]
    assert first["request_id"] == "life-1"


def test_nobody_who_is_known_leaves_no_row(rest: Rest) -> None:
    target = "i" + "7" * 20
    assert rest.request("DELETE", f"/sandboxes/{target}", key="e2b_wrong").status == 401
    assert rest.request("DELETE", f"/sandboxes/{target}").status == 404
    assert entries_about(rest, target, 1) == [("DELETE /sandboxes/{id}", 404)]


def test_a_server_that_stops_has_written_them(make_server) -> None:
    server: CaissonServer = make_server()
    rest = Rest(server)
    made = rest.create()["sandboxID"]
    rest.kill(made)
    server.stop()
    server.restart()
    found = rest.get(f"/api/v1/audit?target={made}").json()["entries"]
    assert [e["action"] for e in found] == ["DELETE /sandboxes/{id}", "POST /v2/sandboxes"]
