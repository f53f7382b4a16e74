"""Rows 36 and 37: the gateway in front of sandboxes, by raw sockets."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from probes import probe
from world import World

from support.envd import Envd
from support.programs import HTTP_SERVER, WEBSOCKET_ECHO
from support.rawhttp import ConnectionEnded, RawConnection, head_of
from support.rest import Rest
from support.server import CaissonServer

PORT = 3200


def serve(server: CaissonServer, made: dict, program: str, arguments: str) -> None:
    envd = Envd(server, made)
    sent = envd.request(
        "POST",
        "/files?path=/tmp/serve.py",
        program.encode(),
        {"Content-Type": "application/octet-stream"},
    )
    assert sent.status == 200, sent
    envd.start(f"exec python3 /tmp/serve.py {arguments}").next()


@pytest.fixture(scope="module")
def private(server: CaissonServer, world: World) -> Iterator[dict]:
    """A sandbox whose web server needs the traffic token; it answers with its secret."""
    rest = Rest(server)
    with rest.sandbox(timeout=600, network={"allowPublicTraffic": False}) as made:
        serve(server, made, HTTP_SERVER, f"{PORT} 127.0.0.1")
        yield {**made, "host": f"{PORT}-{made['sandboxID']}.{made['domain']}"}


@pytest.fixture(scope="module")
def public(server: CaissonServer, world: World) -> Iterator[dict]:
    """The attacker's own sandbox, open to everybody."""
    rest = Rest(server)
    with rest.sandbox(timeout=600) as made:
        serve(server, made, HTTP_SERVER, f"{PORT} 127.0.0.1")
        host = f"{PORT}-{made['sandboxID']}.{made['domain']}"
        end = time.monotonic() + 20
        while rest.get("/", headers={"Host": host}, key=None).status != 200:
            assert time.monotonic() < end, "the web server did not come up"
            time.sleep(0.1)
        yield {**made, "host": host}


def exchange(server: CaissonServer, data: bytes) -> bytes:
    """Everything the server says to these bytes, until it closes or is silent for a while."""
    with RawConnection(server.port, timeout=2) as connection:
        connection.send(data)
        try:
            while True:
                connection._fill()
        except (ConnectionEnded, TimeoutError):
            return connection.buffer


SERVED = b"X-Served-By: sandbox"


@probe(36)
def test_missing_and_wrong_tokens(server: CaissonServer, rest: Rest, private: dict, public: dict):
    token = private["trafficAccessToken"]
    for headers in (
        {},
        {"E2b-Traffic-Access-Token": ""},
        {"E2b-Traffic-Access-Token": "x"},
        {"E2b-Traffic-Access-Token": token[:-1]},
        {"E2b-Traffic-Access-Token": token + "x"},
        {"X-API-KEY": server.api_key},
        {"E2b-Traffic-Access-Token": public["envdAccessToken"]},
        {"E2b-Traffic-Access-Token": private["envdAccessToken"]},
        {"Cookie": f"e2b-traffic-access-token={token}"},
    ):
        answer = rest.get("/", headers={"Host": private["host"], **headers}, key=None)
        assert answer.status == 403, (headers, answer)
        assert not answer.header("X-Served-By")
    for query in (f"/?e2b-traffic-access-token={token}", f"/?token={token}"):
        assert rest.get(query, headers={"Host": private["host"]}, key=None).status == 403
    good = rest.get(
        "/", headers={"Host": private["host"], "E2b-Traffic-Access-Token": token}, key=None
    )
    assert good.status == 200 and good.header("X-Served-By") == "sandbox"


@probe(36)
def test_names_that_are_not_a_sandbox(
    rest: Rest, server: CaissonServer, private: dict, public: dict
):
    """Hosts and headers that try to mean the server itself, the loopback or somebody else."""
    domain, other = private["domain"], private["sandboxID"]
    hosts = [
        f"0-{other}.{domain}",
        f"65536-{other}.{domain}",
        f"-1-{other}.{domain}",
        f"{PORT}-{other}%00.{domain}",
        f"{PORT}-{other}.{domain}.evil.test",
        f"{PORT}-127.0.0.1.{domain}",
        f"{PORT}-localhost.{domain}",
        f"{PORT}-..{domain}",
        f"{server.port}-{other}.{domain}",
        f"{PORT}-{other}@{public['host']}",
        f"{PORT}-{other}.{domain}/../{public['host']}",
        f"{PORT}-{'a' * 5000}.{domain}",
    ]
    for host in hosts:
        data = head_of("GET", "/", {"Host": host, "Connection": "close"})
        assert SERVED not in exchange(server, data), host
    for headers in (
        {"E2b-Sandbox-Id": "../" + other, "E2b-Sandbox-Port": str(PORT)},
        {"E2b-Sandbox-Id": other, "E2b-Sandbox-Port": f"{PORT}@127.0.0.1"},
        {"E2b-Sandbox-Id": other, "E2b-Sandbox-Port": f"{PORT}"},
        {"E2b-Sandbox-Id": f"{public['sandboxID']},{other}", "E2b-Sandbox-Port": f"{PORT}"},
        {"E2b-Sandbox-Id": f"{public['sandboxID']} {other}", "E2b-Sandbox-Port": f"{PORT}"},
    ):
        answer = rest.get("/", headers=headers, key=None)
        assert answer.status in (400, 403), (headers, answer)


@probe(36)
def test_absolute_targets_and_connect(
    server: CaissonServer, private: dict, public: dict, world: World
):
    port = world.listener.server_address[1]
    for line in (
        f"GET http://127.0.0.1:{port}/ HTTP/1.1",
        f"GET http://{private['host']}/ HTTP/1.1",
        f"CONNECT 127.0.0.1:{port} HTTP/1.1",
        f"CONNECT {private['host']} HTTP/1.1",
        f"GET //127.0.0.1:{port}/ HTTP/1.1",
        f"GET @127.0.0.1:{port}/ HTTP/1.1",
        f"GET http:127.0.0.1:{port} HTTP/1.1",
    ):
        data = f"{line}\r\nHost: {public['host']}\r\nConnection: close\r\n\r\n".encode()
        answer = exchange(server, data)
        assert world.secret.encode() not in answer
        if SERVED in answer:  # then by the sandbox that may be asked
            assert public["host"].encode() in answer.split(b'"host"')[1], (line, answer)


SMUGGLES = {
    "CL.TE": b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "TE.CL": b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n",
    "TE.TE": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n",
    "TE space": b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "TE tab": b"Transfer-Encoding:\tchunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "CL.CL": b"Content-Length: 0\r\nContent-Length: 44\r\n\r\n",
    "CL list": b"Content-Length: 0, 44\r\n\r\n",
    "bare LF": b"Content-Length: 0\nX: y\r\n\r\n",
    "folded": b"X: y\r\n Content-Length: 44\r\n\r\n",
    "chunk extension": b"Transfer-Encoding: chunked\r\n\r\n0;\nx\r\n\r\n",
}


@probe(36)
@pytest.mark.parametrize("kind", SMUGGLES)
def test_smuggling(server: CaissonServer, private: dict, public: dict, kind: str):
    """A second request hidden in the first must never be answered by somebody else's sandbox, nor
    by the control plane with rights of the first."""
    hidden = (
        f"GET /hidden HTTP/1.1\r\nHost: {private['host']}\r\n"
        f"E2b-Sandbox-Id: {private['sandboxID']}\r\nE2b-Sandbox-Port: {PORT}\r\n\r\n"
    ).encode()
    rest = SMUGGLES[kind]
    rest = rest % (len(hidden) + 5) if b"%d" in rest else rest
    data = f"POST / HTTP/1.1\r\nHost: {public['host']}\r\n".encode() + rest + hidden
    answer = exchange(server, data)
    assert b"/hidden" not in answer, answer[-400:]
    assert answer.count(SERVED) <= 1


@probe(36)
def test_other_protocols_and_sizes(server: CaissonServer, public: dict):
    host = public["host"]
    h2c = head_of(
        "GET",
        "/",
        {
            "Host": host,
            "Connection": "Upgrade, HTTP2-Settings",
            "Upgrade": "h2c",
            "HTTP2-Settings": "AAMAAABkAARAAAAAAAIAAAAA",
        },
    )
    assert b" 101 " not in exchange(server, h2c)[:40]
    assert SERVED not in exchange(server, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(64))
    large = head_of("GET", "/", {"Host": host, "X": "y" * 200_000})
    assert b" 431 " in exchange(server, large)[:40]
    many = head_of("GET", "/", {"Host": host, **{f"X-{i}": "y" * 50 for i in range(5000)}})
    assert b" 431 " in exchange(server, many)[:40]


@probe(36)
def test_websocket_needs_the_token(server: CaissonServer, rest: Rest, world: World):
    with rest.sandbox(network={"allowPublicTraffic": False}) as made:
        serve(server, made, WEBSOCKET_ECHO, "3300")
        host = f"3300-{made['sandboxID']}.{made['domain']}"
        base = {
            "Host": host,
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
            "Origin": "http://evil.test",
        }
        assert b" 403 " in exchange(server, head_of("GET", "/", base))[:40]
        with_token = {**base, "E2b-Traffic-Access-Token": made["trafficAccessToken"]}
        end = time.monotonic() + 20
        while b" 101 " not in exchange(server, head_of("GET", "/", with_token))[:40]:
            assert time.monotonic() < end, "the echo server did not come up"


@probe(36)
def test_the_servers_key_does_not_reach_a_sandbox(server: CaissonServer, rest: Rest, public: dict):
    for name, value in (
        ("X-API-KEY", server.api_key),
        ("Authorization", f"Bearer {server.api_key}"),
        ("E2b-Traffic-Access-Token", "planted-token"),
    ):
        answer = rest.get("/", headers={"Host": public["host"], name: value}, key=None)
        assert answer.status == 200 and value not in answer.body.decode(), answer


@probe(37)
def test_cookies_and_origins(rest: Rest, server: CaissonServer, public: dict):
    """The API knows no cookies, so there is none to steal; no page may use credentials."""
    evil = {"Origin": "http://evil.test"}
    paths = ["/health", "/v2/sandboxes", "/app", "/metrics", "/nothing"]
    for path in paths:
        answer = rest.get(path, headers=evil)
        assert answer.header("Set-Cookie") is None, path
        assert answer.header("Access-Control-Allow-Credentials") is None, path
    for cookie in (
        f"X-API-KEY={server.api_key}",
        f"api_key={server.api_key}",
        f"session={server.api_key}",
        f"e2b={server.api_key}",
    ):
        assert rest.get("/v2/sandboxes", headers={"Cookie": cookie}, key=None).status == 401
    envd = rest.get(
        "/envs",
        headers={
            **evil,
            "Host": public["host"].replace(str(PORT), "49983"),
            "Cookie": f"X-Access-Token={public['envdAccessToken']}",
        },
        key=None,
    )
    assert envd.status == 401 and envd.header("Access-Control-Allow-Credentials") is None
