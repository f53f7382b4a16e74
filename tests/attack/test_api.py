"""Rows 49 and 50: the control plane and the page."""

from __future__ import annotations

import random
import secrets
import statistics
import time

import pytest
from e2b import Sandbox
from probes import DOCUMENT, PROBES, attempts, groups, probe, render
from world import World

from support.rawhttp import ConnectionEnded, RawConnection, head_of
from support.rest import Rest
from support.server import CaissonServer


def test_the_document_is_up_to_date():
    assert groups() in DOCUMENT.with_name("isolation.md").read_text(), (
        "put into docs/isolation.md: python3 tests/attack/probes.py groups"
    )
    assert DOCUMENT.read_text() == render(), (
        "run: python3 tests/attack/probes.py > docs/attack-probes.md"
    )


def test_every_row_is_tried():
    assert sorted(PROBES) == list(range(1, 51))
    tried = attempts()
    assert [number for number, row in tried.items() if not row.tests] == []
    outside = {"proxy", "secrets", "git", "API"}  # clients, pages and repositories
    inside = [number for number, one in PROBES.items() if one.group not in outside]
    assert [number for number in inside if tried[number].accounts != {"root", "user"}] == []


ROUTES = [
    ("GET", "", None),
    ("DELETE", "", None),
    ("POST", "/connect", {"timeout": 60}),
    ("POST", "/timeout", {"timeout": 1}),
    ("POST", "/refreshes", {"duration": 60}),
    ("PUT", "/network", {"allow_internet_access": True}),
    ("GET", "/metrics", None),
    ("GET", "/logs", None),
    ("POST", "/pause", {}),
    ("POST", "/resume", {"timeout": 60}),
    ("POST", "/snapshots", {}),
    ("POST", "/fork", {"count": 1}),
]


@probe(49)
def test_other_keys_see_and_touch_nothing(rest: Rest, world: World, other_key: str):
    """Every route that names a sandbox, with a valid key of somebody else: as if it did not exist."""
    made = world.neighbour
    for version in ("", "/v2"):
        for method, action, body in ROUTES:
            path = f"{version}/sandboxes/{made['sandboxID']}{action}"
            answer = rest.request(method, path, body, key=other_key)
            assert answer.status in (404, 405), (method, path, answer)
            assert world.neighbour_secret.encode() not in answer.body
    for path in (
        "/sandboxes",
        "/v2/sandboxes",
        f"/sandboxes/metrics?sandbox_ids={made['sandboxID']}",
        "/snapshots",
    ):
        answer = rest.get(path, key=other_key)
        assert answer.status in (200, 404), (path, answer)
        assert made["sandboxID"].encode() not in answer.body, path
    for area in ("", "/timeline", "/diagnostics"):
        path = f"/api/v1/sandboxes/{made['sandboxID']}{area}"
        assert rest.get(path, key=other_key).status == 404, path
    path = f"/api/v1/sandboxes/{made['sandboxID']}/limits"
    assert rest.request("PATCH", path, {"pids": 9}, key=other_key).status == 404
    assert rest.post("/api/v1/drain", key=other_key).status in (401, 403, 404)
    assert rest.detail(made)["state"] == "running"


@probe(49)
def test_wrong_and_missing_keys(rest: Rest, server: CaissonServer, world: World):
    key = server.api_key
    sandbox = f"/sandboxes/{world.neighbour['sandboxID']}"
    for wrong in (
        None,
        "x",
        key[:-1],
        key + "0",
        key.upper(),
        key[:-1] + "g",
        "e2b_" + "0" * 40,
        key[4:],
        " " + key[:-1],
        "*",
        "' OR '1'='1",
        "%00" + key,
    ):
        for path in ("/v2/sandboxes", sandbox, "/templates", "/snapshots"):
            assert rest.get(path, key=wrong).status == 401, (wrong, path)
    for query in (f"?X-API-KEY={key}", f"?api_key={key}", f"?apiKey={key}"):
        assert rest.get("/v2/sandboxes" + query, key=None).status == 401, query
    basic = {"Authorization": f"Basic {key}"}
    assert rest.get("/v2/sandboxes", headers=basic, key=None).status == 401


@probe(49)
def test_ids_are_not_guessed(rest: Rest, world: World):
    """Ids are random (95 bits and more); none that looks like one is answered differently."""
    ids = []
    for _ in range(5):
        made = rest.create()
        ids.append(made["sandboxID"])
        rest.kill(made)
    assert len(set(ids)) == 5 and all(len(i) >= 20 for i in ids)
    for position in range(1, 4):  # no counter, no clock at the beginning
        assert len({i[position] for i in ids}) > 1, ids
    answers = set()
    for _ in range(20):
        guess = "i" + "".join(random.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=20))
        answer = rest.get(f"/sandboxes/{guess}")
        assert answer.status == 404
        answers.add(answer.body.replace(guess.encode(), b""))
    assert len(answers) == 1, answers
    for odd in (
        "..",
        "%2e%2e",
        "a/b",
        "'",
        "%00",
        "x" * 5000,
        "i;DROP TABLE sandboxes",
        "*",
        "%25",
    ):
        assert rest.get("/sandboxes/" + odd.replace(" ", "%20")).status in (400, 404, 414, 431), odd


@probe(49)
@pytest.mark.timeout(120)
def test_the_time_of_a_comparison_tells_nothing(rest: Rest, server: CaissonServer, world: World, figure):
    """Keys are compared as hashes, so a right beginning cannot take longer. The figures are
    printed; only a difference far beyond any noise, as a deliberate delay would make, fails. Of each
    the shortest time decides: other work on the machine adds to all the others."""
    close = server.api_key[:-1] + ("0" if server.api_key[-1] != "0" else "1")
    far = "e2b_" + secrets.token_hex(20)
    times: dict[str, list[float]] = {close: [], far: []}
    for _ in range(150):
        for key in random.sample([close, far], 2):
            begun = time.perf_counter()
            assert rest.get("/v2/sandboxes", key=key).status == 401
            times[key].append(time.perf_counter() - begun)
    a, b = statistics.median(times[close]), statistics.median(times[far])
    figure(f"almost right key {a * 1e6:.0f} us, random key {b * 1e6:.0f} us")
    assert abs(min(times[close]) - min(times[far])) < 0.02


@probe(49)
def test_bombs_of_json(rest: Rest, server: CaissonServer, world: World):
    deep = b"[" * 100_000 + b"]" * 100_000
    deep_object = b'{"a":' * 100_000 + b"1" + b"}" * 100_000
    bodies = [
        deep,
        deep_object,
        b'{"templateID":"base","metadata":' + deep_object + b"}",
        b'{"templateID":"' + b"a" * 3_000_000 + b'"}',
        b'{"templateID":"base","timeout":1e999}',
        b'{"templateID":"base","timeout":' + b"9" * 100_000 + b"}",
        b"\xff\xfe\x00",
        b'"\\ud800"',
        b'{"templateID":"base","envVars":{'
        + b",".join(b'"k%d":"v"' % i for i in range(200_000))
        + b"}}",
        b"{" * 3_000_000,
    ]
    for body in bodies:
        answer = rest.request(
            "POST", "/v2/sandboxes", body, headers={"Content-Type": "application/json"}
        )
        assert 400 <= answer.status < 500, (body[:40], answer)
    for pid in server.program_pids():
        with open(f"/proc/{pid}/statm") as statm:
            assert int(statm.read().split()[1]) * 4096 < 300 << 20
    envd_path = "/process.Process/List"
    headers = {
        "E2b-Sandbox-Id": world.neighbour["sandboxID"],
        "E2b-Sandbox-Port": "49983",
        "X-Access-Token": world.neighbour["envdAccessToken"],
        "Content-Type": "application/json",
    }
    for body in (deep, deep_object):
        answer = rest.request("POST", envd_path, body, headers=headers, key=None)
        assert 400 <= answer.status < 500, answer
    too_large = head_of(
        "POST",
        "/v2/sandboxes",
        {"Host": "x", "X-API-KEY": server.api_key, "Content-Length": str(1 << 40)},
    )
    with RawConnection(server.port) as connection:
        assert connection.send(too_large).read_response().status == 413


@probe(49)
@pytest.mark.timeout(240)
def test_slow_clients(rest: Rest, server: CaissonServer, world: World):
    """A header by the byte is cut (the limit here is 10 s); hundreds of half requests and idle
    streams keep nobody waiting."""
    idle = []
    try:
        for number in range(400):
            idle.append(RawConnection(server.port))
            if number % 2:
                idle[-1].send(b"GET /v2/sandboxes HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        watches = [_watch(server, world) for _ in range(40)]
        idle += watches
        begun = time.monotonic()
        assert rest.get("/v2/sandboxes").status == 200
        assert time.monotonic() - begun < 50  # none waited for one of them
        with RawConnection(server.port) as slow:
            head = head_of("GET", "/health", {"Host": "x", "X-Slow": "v" * 500})
            slow.send_slowly(head, 0.2, 40)
        for connection in idle[1:400:2][:50]:
            connection.socket.settimeout(40)
            try:
                assert connection.read_response().status == 408
            except (ConnectionEnded, ConnectionResetError):
                pass
    finally:
        for connection in idle:
            connection.socket.close()


def _watch(server: CaissonServer, world: World) -> RawConnection:
    """A stream that stays open and silent."""
    body = b'\0\0\0\0\x10{"path":"/home"}'
    connection = RawConnection(server.port)
    connection.send(
        head_of(
            "POST",
            "/filesystem.Filesystem/WatchDir",
            {
                "Host": "x",
                "E2b-Sandbox-Id": world.neighbour["sandboxID"],
                "E2b-Sandbox-Port": "49983",
                "X-Access-Token": world.neighbour["envdAccessToken"],
                "Content-Type": "application/connect+json",
                "Connect-Protocol-Version": "1",
                "Content-Length": str(len(body)),
            },
        )
        + body
    )
    return connection


@probe(50)
def test_the_page_runs_only_its_own_scripts(rest: Rest, server: CaissonServer, world: World):
    hostile = '"><script>alert(1)</script>'
    with rest.sandbox(metadata={"name": hostile}) as made:
        for host in ("x", f"{hostile}.test", "a'onload=alert(1).test"):
            with RawConnection(server.port) as connection:
                answer = connection.send(head_of("GET", "/app", {"Host": host})).read_response()
            if answer.status != 200:
                continue
            body = answer.body.decode()
            assert "<script>" not in body and "onload=" not in body and "javascript:" not in body
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
            assert "script-src 'self';" in policy and "unsafe" not in policy and "alert" not in policy
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert "set-cookie" not in answer.headers
        # Pages of problems are made from parts of the request.
        for path in (f"/{hostile}", "/%3Cscript%3Ealert(1)%3C/script%3E"):
            host = f"3999-{made['sandboxID']}.{made['domain']}"
            answer = rest.get(
                path.replace("<", "%3C").replace(">", "%3E").replace('"', "%22"),
                headers={"Host": host, "Accept": "text/html"},
                key=None,
            )
            assert answer.status == 502 and b"<script>alert" not in answer.body


@probe(50)
def test_a_browser_of_another_site_cannot_act(rest: Rest, server: CaissonServer, world: World):
    """A form or a script of another site makes the browser send cookies, and cannot say the token."""
    login = rest.request("POST", "/api/v1/auth/login", {"api_key": server.api_key}, key=None)
    cookies = "; ".join(line.split(";")[0] for line in login.headers.get_all("Set-Cookie"))
    for kind, cookie, status in (
        ("text/plain", f"key={server.api_key}", 401),
        ("application/x-www-form-urlencoded", f"key={server.api_key}", 401),
        ("text/plain", cookies, 403),
        ("application/x-www-form-urlencoded", cookies, 403),
    ):
        answer = rest.request(
            "POST",
            "/v2/sandboxes",
            b'{"templateID":"base"}',
            key=None,
            headers={
                "Content-Type": kind,
                "Origin": "http://evil.test",
                "Cookie": cookie,
            },
        )
        assert answer.status == status, answer
        # What it may look at, the browser does not show to the other site.
        assert "Access-Control-Allow-Credentials" not in answer.headers


def test_the_other_key_works(server: CaissonServer, other_key: str):
    """Without this the tests above would prove nothing about other keys."""
    sandbox = Sandbox.create(
        timeout=60, api_key=other_key, api_url=server.url, sandbox_url=server.url
    )
    assert sandbox.commands.run("echo mine").stdout == "mine\n"
    assert sandbox.kill() is True
