"""What every route of /api/v1 has in common, over a real connection."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from support.rest import Rest, assert_refusal
from support.server import CaissonServer

pytestmark = pytest.mark.quick


def test_errors_have_one_shape(rest: Rest):
    user = {"name": "frame-test"}
    assert_refusal(rest.get("/api/v1/nothing"), 404, "not_found")
    wrong = rest.request("PUT", "/api/v1/users", user)
    assert_refusal(wrong, 405, "method_not_allowed")
    assert {"GET", "POST"} <= set(wrong.header("Allow").replace(" ", "").split(","))
    assert_refusal(rest.get("/api/v1/users", key=None), 401, "unauthenticated")
    assert_refusal(rest.get("/api/v1/users", key="e2b_wrong"), 401, "unauthenticated")
    assert_refusal(rest.get("/api/v1/users/nobody"), 404, "not_found")
    assert_refusal(rest.get("/api/v1/users?wings=2"), 422, "validation_failed", "wings")
    broken = rest.post("/api/v1/users", b"{", headers={"Content-Type": "application/json"})
    assert_refusal(broken, 400, "malformed_json")
    form = rest.post("/api/v1/users", b"name=x", headers={"Content-Type": "text/plain"})
    assert_refusal(form, 415, "unsupported_media_type")
    assert_refusal(rest.post("/api/v1/users", {**user, "wings": 2}), 422, contains="wings")
    assert_refusal(rest.post("/api/v1/users", {}), 422, "validation_failed", "name is missing")


def test_input_limits(rest: Rest):
    def post(body: bytes):
        return rest.post("/api/v1/users", body, headers={"Content-Type": "application/json"})

    deep = b'{"name":' + b"[" * 10 + b"]" * 10 + b"}"
    assert_refusal(post(deep), 422, contains="deeper than 10")
    long = json.dumps({"name": "x" * 10_001}).encode()
    assert_refusal(post(long), 422, contains="at most 10000 characters")
    wide = json.dumps({"name": ["x"] * 1001}).encode()
    assert_refusal(post(wide), 422, contains="at most 1000 entries")
    assert_refusal(post(b" " * (10 * 2**20 + 1)), 413, "payload_too_large")
    assert_refusal(post(json.dumps({"name": "a\0b"}).encode()), 422, contains="U+0000")


def test_headers(rest: Rest, make_server):
    answer = rest.get("/api/v1/health", key=None, headers={"X-Request-Id": "my-id"})
    assert answer.status == 200 and answer.json()["status"] == "ok"
    assert answer.header("X-Request-Id") == "my-id"
    assert answer.header("Server-Timing").startswith("total;dur=")
    assert answer.header("Access-Control-Allow-Origin") is None
    head = rest.request("HEAD", "/api/v1/health", key=None)
    assert head.status == 200 and head.body == b""
    options = rest.request("OPTIONS", "/api/v1/users", key=None)
    assert options.status == 204 and options.header("Allow") == "GET, HEAD, POST, OPTIONS"

    strict = Rest(make_server(["--set", "cors_origins=http://localhost:3000"]))
    own = strict.get("/api/v1/health", headers={"Origin": "http://localhost:3000"})
    assert own.header("Access-Control-Allow-Origin") == "http://localhost:3000"
    other = strict.get("/api/v1/health", headers={"Origin": "http://localhost:3001"})
    assert other.header("Access-Control-Allow-Origin") is None
    preflight = strict.request("OPTIONS", "/api/v1/users", key=None,
                               headers={"Origin": "http://localhost:3001"})
    assert preflight.header("Access-Control-Allow-Methods") is None


def test_rates(make_server):
    rest = Rest(make_server(["--set", "rate_limit=1", "--set", "rate_burst=3"]))
    with ThreadPoolExecutor(30) as pool:  # one after the other they might be slow enough
        answers = list(pool.map(lambda _: rest.get("/api/v1/auth/me"), range(60)))
    refused = [a for a in answers if a.status == 429]
    assert refused and 200 in [a.status for a in answers]
    assert assert_refusal(refused[0], 429, "resource_exhausted")["retryable"]
    assert int(refused[0].header("Retry-After")) >= 1


def test_rates_hold_for_requests_side_by_side(make_server):
    rest = Rest(make_server(["--set", "rate_limit=1", "--set", "rate_burst=3"]))
    began = time.monotonic()
    with ThreadPoolExecutor(50) as pool:
        statuses = list(pool.map(lambda _: rest.get("/api/v1/auth/me").status, range(50)))
    seconds = time.monotonic() - began  # each brings one more
    assert set(statuses) <= {200, 429}
    assert 3 <= statuses.count(200) <= 4 + seconds


def test_the_same_idempotency_key_does_it_once(rest: Rest):
    keyed = {"Idempotency-Key": "make-ida"}
    answers = []

    def send():
        answers.append(rest.post("/api/v1/users", {"name": "ida"}, headers=keyed))

    threads = [threading.Thread(target=send) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    # Whoever comes while the first is at work is told so; everybody else gets its answer.
    assert {a.status for a in answers} <= {201, 409}
    busy = [a for a in answers if a.status == 409]
    assert all(assert_refusal(a, 409, "in_progress")["retryable"] for a in busy)
    again = rest.post("/api/v1/users", {"name": "ida"}, headers=keyed)
    assert again.status == 201 and again.header("Idempotency-Replayed") == "true"
    assert {a.body for a in answers if a.status == 201} == {again.body}
    other = rest.post("/api/v1/users", {"name": "idb"}, headers=keyed)
    assert_refusal(other, 409, "idempotency_conflict")
    names = [u["name"] for u in rest.get("/api/v1/users").json()["users"]]
    assert names.count("ida") == 1 and "idb" not in names


def test_idempotency_survives_a_crash(make_server):
    server = make_server()
    rest = Rest(server)
    keyed = {"Idempotency-Key": "once"}
    first = rest.post("/api/v1/users", {"name": "ida"}, headers=keyed)
    assert first.status == 201
    server.crash()
    server.restart()
    again = rest.post("/api/v1/users", {"name": "ida"}, headers=keyed)
    assert again.status == 201 and again.body == first.body
    assert again.header("Idempotency-Replayed") == "true"


@pytest.mark.parametrize("path", ["/api/v1/sandboxes", "/api/v1/sandbox"])
def test_a_sandbox_whose_answer_was_lost_is_found_again(make_server, path: str):
    server = make_server()
    rest = Rest(server)
    keyed = {"Idempotency-Key": "one-box"}
    first = rest.post(path, {}, headers=keyed)
    assert first.status == 201, first
    server.crash()
    # As if the server had been killed before it could keep the answer.
    with sqlite3.connect(server.data_dir / "db/caisson.db") as database:
        assert database.execute("UPDATE idempotency SET status = 0, body = ''").rowcount == 1
    database.close()
    server.start()
    again = rest.post(path, {}, headers=keyed)
    assert again.status == 201, again
    ids = {answer.json().get("id") or answer.json()["sandboxId"] for answer in (first, again)}
    assert len(ids) == 1 and [one["sandboxID"] for one in rest.list()] == list(ids)


def test_the_audit_log_has_every_change(make_server):
    server = make_server()
    rest = Rest(server)
    made = rest.post("/api/v1/users", {"name": "ada"}, headers={"X-Request-Id": "audit-1"})
    key = rest.post("/api/v1/keys", {"name": "k", "user_id": made.json()["id"]}).json()
    rest.post("/api/v1/drain", key=key["key"])
    rest.post("/api/v1/auth/login", {"name": "ada", "password": "guess"}, key=None)
    rest.get("/api/v1/users")
    rest.post("/api/v1/users", {"name": "eve"}, key=None)
    entries = rest.get("/api/v1/audit").json()["entries"]
    shown = [(e["actor_id"], e["key_id"], e["action"], e["target"], e["status"]) for e in entries]
    assert shown == [
        ("", "", "POST /api/v1/auth/login", "", 401),
        (made.json()["id"], key["id"], "POST /api/v1/drain", "", 403),
        ("admin", "admin", "POST /api/v1/keys", key["id"], 201),
        ("admin", "admin", "POST /api/v1/users", made.json()["id"], 201),
    ]
    assert entries[-1]["request_id"] == "audit-1" and entries[-1]["address"] == "127.0.0.1"
    page = rest.get("/api/v1/audit?limit=3").json()
    rest_of_it = rest.get(f"/api/v1/audit?before={page['next']}").json()
    assert page["entries"] + rest_of_it["entries"] == entries and "next" not in rest_of_it
    about = rest.get(f"/api/v1/audit?target={key['id']}").json()["entries"]
    assert [e["action"] for e in about] == ["POST /api/v1/keys"]


def test_the_document_and_its_page(rest: Rest, server: CaissonServer):
    document = rest.get("/api/v1/openapi.json", key=None).json()
    assert document["openapi"] == "3.1.0"
    ids = [o["operationId"] for item in document["paths"].values() for o in item.values()]
    assert len(ids) == len(set(ids)) >= 20
    # Every route that it describes is served: none is 404 for lack of a route.
    for path, item in document["paths"].items():
        allowed = rest.request("OPTIONS", path.replace("{", "").replace("}", ""), key=None)
        assert allowed.status == 204, path
        assert {m.upper() for m in item} <= set(allowed.header("Allow").split(", ")), path
    page = rest.get("/docs", key=None)
    assert page.status == 200 and "default-src 'none'" in page.header("Content-Security-Policy")
    assert b"http" not in page.body.replace(b"http://www.w3.org", b"")
    for asset, kind in (("/docs/app.js", "text/javascript"), ("/docs/style.css", "text/css")):
        assert rest.get(asset, key=None).header("Content-Type").startswith(kind)


def test_health(rest: Rest):
    assert_refusal(rest.get("/api/v1/health/detailed", key=None), 401)
    deadline = time.monotonic() + 30
    while "no answer yet" in str(health := rest.get("/api/v1/health/detailed").json()):
        assert time.monotonic() < deadline, health
    assert health["status"] == "ok", health
    assert health["version"] == rest.get("/api/v1/health", key=None).json()["version"]
    assert abs((datetime.now(UTC) - datetime.fromisoformat(health["time"])).total_seconds()) < 60
    checks = health["checks"]
    assert {name: check["status"] for name, check in checks.items()} == dict.fromkeys(checks, "ok")
    assert {"database", "engine", "provider", "github", "runs"} <= set(checks)
    assert checks["github"]["configured"] is False
    assert checks["runs"]["finished_ms"] >= 0  # one was really started, and ended
    assert rest.get("/api/v1/health/detailed").json()["checks"]["runs"]["finished_ms"] == checks["runs"]["finished_ms"]
    assert all(run["definition"] != "checkup" for run in rest.get("/api/v1/runs").json()["runs"])
    assert rest.get("/health", key=None).json()["status"] == "ok"
