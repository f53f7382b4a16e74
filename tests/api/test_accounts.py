"""Users, keys and logins as clients see them: roles, owners, cookies, CSRF, rotation."""

from __future__ import annotations

import json
import re
import sqlite3
import time

import pytest

from support.cookies import PASSWORD, Browser
from support.cli import caisson
from support.rest import Rest, assert_error, assert_refusal
from support.server import CaissonServer


def add_user(rest: Rest, name: str, role: str = "member") -> tuple[str, str]:
    """A user with a password and a key; returns the id and the key."""
    made = rest.post("/api/v1/users", {"name": name, "role": role, "password": PASSWORD})
    assert made.status == 201, made
    key = rest.post("/api/v1/keys", {"name": "test", "user_id": made.json()["id"]})
    assert key.status == 201, key
    return made.json()["id"], key.json()["key"]


@pytest.mark.quick
def test_a_login_from_its_beginning_to_its_end(rest: Rest):
    user_id, _ = add_user(rest, "lea")
    page = Browser(rest)
    answer = page.login("lea")
    assert answer.status == 200 and set(page.cookies) == {
        "caisson_access", "caisson_refresh", "caisson_csrf"}
    for name, cookie in page.cookies.items():
        assert cookie["samesite"] == "Lax" and not cookie["secure"]
        assert bool(cookie["httponly"]) == (name != "caisson_csrf")
    assert page.cookies["caisson_refresh"]["path"] == "/api/v1/auth"
    assert int(page.cookies["caisson_access"]["max-age"]) == 30 * 60
    assert int(page.cookies["caisson_refresh"]["max-age"]) == 7 * 86400
    assert page.request("GET", "/api/v1/auth/me").json()["user"]["id"] == user_id

    refused = page.request("POST", "/api/v1/keys", {"name": "x"}, csrf=False)
    assert_refusal(refused, 403, "csrf_failed")
    assert page.request("POST", "/api/v1/keys", {"name": "x"}).status == 201

    del page.cookies["caisson_access"]  # its time is over
    assert_refusal(page.request("GET", "/api/v1/auth/me"), 401, "unauthenticated")
    old = page.cookies["caisson_refresh"]
    assert page.request("POST", "/api/v1/auth/refresh").status == 200
    assert page.request("GET", "/api/v1/auth/me").status == 200
    kept = dict(page.cookies)
    # Somebody comes with the old one: the login is over, for everybody.
    page.cookies["caisson_refresh"] = old
    assert page.request("POST", "/api/v1/auth/refresh").status == 401
    assert not page.cookies
    page.cookies = kept
    assert page.request("GET", "/api/v1/auth/me").status == 401

    assert page.login("lea").status == 200
    kept = dict(page.cookies)
    assert page.request("POST", "/api/v1/auth/logout").status == 204 and not page.cookies
    page.cookies = kept
    assert page.request("GET", "/api/v1/auth/me").status == 401


def test_a_login_by_key(make_server):
    server = make_server([])
    rest = Rest(server)
    deadline = time.monotonic() + 30
    while not (line := re.search(r"^open (\S+)#key=(\S+)$", server.stdout_path.read_text(), re.M)):
        assert time.monotonic() < deadline, server.stdout_path.read_text()
        time.sleep(0.05)
    address, key = line.groups()
    assert address == f"{server.url}/app" and key == server.api_key
    page = Browser(rest)
    assert page.request("POST", "/api/v1/auth/login", {"api_key": key}).status == 200
    me = page.request("GET", "/api/v1/auth/me").json()
    assert me["user"]["name"] == "admin" and me["key_id"] is None

    user_id, key = add_user(rest, "lea")
    page = Browser(rest)
    assert page.request("POST", "/api/v1/auth/login", {"api_key": key}).status == 200
    assert page.request("GET", "/api/v1/auth/me").json()["user"]["id"] == user_id
    kept = dict(page.cookies)
    (mine,) = page.request("GET", "/api/v1/keys").json()["keys"]
    assert page.request("DELETE", f"/api/v1/keys/{mine['id']}").status == 204
    page.cookies = kept
    assert_refusal(page.request("GET", "/api/v1/auth/me"), 401, "unauthenticated")
    assert page.request("POST", "/api/v1/auth/refresh").status == 401
    assert_refusal(page.request("POST", "/api/v1/auth/login", {"api_key": key}), 401)
    assert key not in server.log_path.read_text()


def test_a_page_uses_e2bs_routes(rest: Rest):
    add_user(rest, "paula")
    page, new = Browser(rest), {"templateID": "base", "timeout": 300}
    assert_error(page.request("GET", "/v2/sandboxes"), 401)
    assert page.login("paula").status == 200
    assert_error(page.request("POST", "/v2/sandboxes", new, csrf=False), 403, "X-CSRF-Token")
    made = page.request("POST", "/v2/sandboxes", new)
    assert made.status == 201, made
    box = f"/sandboxes/{made.json()['sandboxID']}"
    assert_error(page.request("POST", f"{box}/pause", {}, csrf=False), 403, "X-CSRF-Token")
    assert page.request("POST", f"{box}/pause", {}).status == 204
    (listed,) = page.request("GET", "/v2/sandboxes?state=running,paused").json()
    assert (listed["sandboxID"], listed["state"]) == (made.json()["sandboxID"], "paused")
    assert page.request("POST", f"{box}/resume", {"timeout": 300}).status == 201
    for path in ("/metrics", "/logs", ""):
        assert page.request("GET", box + path).status == 200
    assert page.request("GET", "/templates").status == 200
    assert page.request("POST", f"{box}/timeout", {"timeout": 200}).status == 204
    assert page.request("DELETE", box).status == 204
    assert page.request("POST", "/api/v1/auth/logout").status == 204
    assert_error(page.request("GET", "/v2/sandboxes"), 401)


def test_cookies_are_secure_with_tls(make_server):
    server = make_server(["--tls", "auto"])
    status, made = server.request("POST", "/api/v1/users", {"name": "tess", "password": PASSWORD})
    assert status == 201, made
    import urllib.request

    request = urllib.request.Request(
        server.url + "/api/v1/auth/login",
        data=json.dumps({"name": "tess", "password": PASSWORD}).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30, context=server._trust()) as answer:
        cookies = answer.headers.get_all("Set-Cookie")
    assert len(cookies) == 3 and all("; Secure" in cookie for cookie in cookies)


def test_failed_logins_are_limited(make_server):
    server = make_server(["--set", "login_failures_per_minute=3"])
    rest = Rest(server)
    add_user(rest, "lea")
    page = Browser(rest)
    answers = [page.login(name, "not the password") for name in ("lea", "nobody", "lea")]
    assert all(assert_refusal(a, 401, "unauthenticated") for a in answers)
    assert len({a.json()["error"]["message"] for a in answers}) == 1
    refused = page.login("lea")
    assert_refusal(refused, 429, "resource_exhausted")
    assert 1 <= int(refused.header("Retry-After")) <= 60


def test_roles(rest: Rest):
    _, viewer = add_user(rest, "vera", "viewer")
    member_id, member = add_user(rest, "mia")
    assert rest.get("/api/v1/auth/me", key=viewer).status == 200
    assert rest.get("/v2/sandboxes", key=viewer).status == 200
    assert_refusal(rest.post("/api/v1/keys", {"name": "x"}, key=viewer), 403, "permission_denied")
    assert_error(rest.post("/v2/sandboxes", {"templateID": "base"}, key=viewer), 403, "look")
    for path in ("/api/v1/users", "/api/v1/audit", "/api/v1/storage"):
        assert_refusal(rest.get(path, key=member), 403, "permission_denied")
        assert rest.get(path).status == 200
    # A change of the role holds for keys that are in use.
    changed = rest.request("PATCH", f"/api/v1/users/{member_id}", {"role": "viewer"})
    assert changed.status == 200, changed
    assert_refusal(rest.post("/api/v1/keys", {"name": "x"}, key=member), 403)
    assert rest.request("PATCH", f"/api/v1/users/{member_id}", {"disabled": True}).status == 200
    assert_refusal(rest.get("/api/v1/auth/me", key=member), 401)
    assert_error(rest.get("/v2/sandboxes", key=member), 401)


def test_keys_of_one_user_see_the_same_and_others_see_nothing(rest: Rest):
    user_id, first = add_user(rest, "nora")
    _, other = add_user(rest, "otto")
    second = rest.post("/api/v1/keys", {"name": "second"}, key=first).json()
    made = rest.post("/v2/sandboxes", {"templateID": "base", "timeout": 60}, key=first).json()
    path = f"/api/v1/sandboxes/{made['sandboxID']}"
    try:
        assert rest.get(path, key=second["key"]).status == 200
        assert rest.get(f"/sandboxes/{made['sandboxID']}", key=second["key"]).status == 200
        for area in ("", "/timeline", "/diagnostics"):
            assert_refusal(rest.get(path + area, key=other), 404, "not_found")
        assert_refusal(rest.request("PATCH", path + "/limits", {"pids": 50}, key=other), 404)
    finally:
        ended = rest.delete(f"/sandboxes/{made['sandboxID']}", key=second["key"])
    assert ended.status == 204, ended
    used = {k["id"]: k["last_used_at"] for k in rest.get("/api/v1/keys", key=first).json()["keys"]}
    assert used[second["id"]]
    assert_refusal(rest.delete(f"/api/v1/keys/{second['id']}", key=other), 404)
    assert rest.delete(f"/api/v1/keys/{second['id']}", key=first).status == 204
    assert_refusal(rest.get(path, key=second["key"]), 401)
    assert user_id in rest.get("/api/v1/users").body.decode()


def test_everything_survives_a_restart_and_no_secret_is_stored(make_server):
    server = make_server()
    rest = Rest(server)
    _, key = add_user(rest, "rosa")
    page = Browser(rest)
    assert page.login("rosa").status == 200
    server.crash()
    server.restart()
    assert rest.get("/api/v1/auth/me", key=key).json()["user"]["name"] == "rosa"
    assert page.request("GET", "/api/v1/auth/me").status == 200
    assert page.request("POST", "/api/v1/auth/refresh").status == 200
    secrets = [PASSWORD, key, server.api_key, *(c.value for c in page.cookies.values())]
    database = sqlite3.connect(f"file:{server.data_dir}/db/caisson.db?mode=ro", uri=True)
    text = "\n".join(database.iterdump()) + server.log_since(0)
    database.close()
    assert "$argon2id$" in text
    for secret in secrets:
        assert secret not in text


# -- the command line -------------------------------------------------------------------------------


def test_users_and_login_on_the_command_line(server: CaissonServer, rest: Rest, tmp_path):
    made = caisson(server, "user", "add", "clara", "--password", stdin=PASSWORD.encode() + b"\n")
    assert made.returncode == 0, made
    page = Browser(rest)
    assert page.login("clara").status == 200
    changed = caisson(server, "user", "passwd", "clara", stdin=b"another password\n")
    assert changed.returncode == 0, changed
    assert page.login("clara").status == 401
    assert page.login("clara", "another password").status == 200
    listed = json.loads(caisson(server, "user", "list", "--json").stdout)
    assert ("clara", "member") in [(u["name"], u["role"]) for u in listed]
    assert b"clara" in caisson(server, "user", "list").stdout
    assert caisson(server, "user", "role", "clara", "viewer").returncode == 0
    assert caisson(server, "user", "disable", "clara").returncode == 0
    assert page.login("clara", "another password").status == 401
    missing = caisson(server, "user", "disable", "nobody-of-this-name")
    assert missing.returncode == 1 and b"no user" in missing.stderr

    home = {"HOME": str(tmp_path)}
    wrong = caisson(None, "login", "--url", server.url, stdin=b"e2b_wrong\n", **home)
    assert wrong.returncode == 1 and not (tmp_path / ".config").exists()
    done = caisson(None, "login", "--url", server.url, stdin=server.api_key.encode(), **home)
    assert done.returncode == 0 and b"admin" in done.stdout, done
    stored = tmp_path / ".config/caisson/config.toml"
    assert stored.stat().st_mode & 0o777 == 0o600
    assert server.api_key.encode() not in done.stdout + done.stderr
    assert caisson(None, "sandbox", "list", **home).returncode == 0
