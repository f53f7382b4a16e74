"""HTTP/1.1 at its edges: framing, limits, slow clients. No request may hang or smuggle."""

from __future__ import annotations

import json
import time

import pytest

from support.rawhttp import ConnectionEnded, RawConnection, RawResponse, head_of
from support.rest import Rest
from support.server import CaissonServer


def exchange(server: CaissonServer, data: bytes, timeout: float = 30) -> RawResponse | None:
    """Sends bytes and reads one answer; None if the connection was closed without one."""
    with RawConnection(server.port, timeout) as connection:
        try:
            return connection.send(data).read_response()
        except (ConnectionEnded, BrokenPipeError, ConnectionResetError):
            return None


def create_head(server: CaissonServer, **headers: str) -> dict[str, str]:
    made = {"Host": "x", "X-API-KEY": server.api_key, "Content-Type": "application/json"}
    made.update({k.replace("_", "-"): v for k, v in headers.items()})
    return made


@pytest.mark.quick
def test_chunked_request_body(server: CaissonServer, rest: Rest):
    body = json.dumps({"templateID": "base", "timeout": 30}).encode()
    half = len(body) // 2
    head = head_of("POST", "/v2/sandboxes", create_head(server, Transfer_Encoding="chunked"))
    with RawConnection(server.port) as connection:
        connection.send(head + f"{half:X};ext=1\r\n".encode() + body[:half] + b"\r\n")
        time.sleep(0.1)
        rest_of = body[half:]
        connection.send(f"{len(rest_of):x}\r\n".encode() + rest_of + b"\r\n0\r\nTrailer: x\r\n\r\n")
        response = connection.read_response()
    assert response.status == 201, response
    rest.kill(json.loads(response.body))


@pytest.mark.quick
def test_keep_alive(server: CaissonServer):
    with RawConnection(server.port) as connection:
        for _ in range(5):
            response = connection.send(head_of("GET", "/v2/sandboxes", create_head(server)))
            assert response.read_response().status == 200
        closing = create_head(server, Connection="close")
        assert (
            connection.send(head_of("GET", "/v2/sandboxes", closing)).read_response().status == 200
        )
        assert connection.ended()


@pytest.mark.quick
def test_pipelined_requests_are_answered_in_order(server: CaissonServer):
    paths = ["/v2/sandboxes", "/sandboxes/i" + "0" * 20, "/no-such-route", "/v2/sandboxes?limit=0"]
    data = b"".join(head_of("GET", p, create_head(server)) for p in paths)
    with RawConnection(server.port) as connection:
        connection.send(data)
        assert [connection.read_response().status for _ in paths] == [200, 404, 404, 400]


def test_byte_by_byte(server: CaissonServer):
    with RawConnection(server.port) as connection:
        for byte in head_of("GET", "/health", {"Host": "x"}):
            connection.send(bytes([byte]))
        assert connection.read_response().status in (200, 204)


@pytest.mark.quick
@pytest.mark.parametrize(
    "lines",
    [
        ["Content-Length: 4", "Transfer-Encoding: chunked"],
        ["Transfer-Encoding: chunked", "Content-Length: 4"],
        ["Content-Length: 4", "Content-Length: 5"],
        ["Content-Length: 4, 5"],
        ["Content-Length: -1"],
        ["Content-Length: +4"],
        ["Content-Length: 0x4"],
        ["Content-Length: 99999999999999999999"],
        ["Transfer-Encoding: chunked, identity"],
        ["Transfer-Encoding: xchunked"],
        ["Transfer-Encoding : chunked"],
        ["Transfer-Encoding: chunked", "Transfer-Encoding: identity"],
    ],
    ids=lambda lines: " | ".join(lines),
)
@pytest.mark.parametrize("target", ["control", "envd"])
def test_ambiguous_framing_is_refused(server: CaissonServer, box: dict, lines: list, target: str):
    """A body that two parsers could cut differently is answered 400 and the connection closed."""
    path = "/v2/sandboxes" if target == "control" else "/files?path=/tmp/x"
    headers = create_head(server)
    if target == "envd":
        headers.update(
            {
                "E2b-Sandbox-Id": box["sandboxID"],
                "E2b-Sandbox-Port": "49983",
                "X-Access-Token": box["envdAccessToken"],
            }
        )
    head = head_of("POST", path, headers)[:-2] + "\r\n".join(lines).encode() + b"\r\n\r\n"
    with RawConnection(server.port) as connection:
        connection.send(head + b"0\r\n\r\nGET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        try:
            response = connection.read_response()
        except ConnectionEnded:
            return  # cut without a word: safe as well
        assert response.status in (400, 411, 413, 501), response
        with pytest.raises(ConnectionEnded):  # nothing after it is taken for a request
            connection.read_response()


@pytest.mark.quick
@pytest.mark.parametrize(
    "data",
    [
        b"GARBAGE\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\nHost: x\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\nBad Name: v\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\nNul: a\x00b\r\n\r\n",
        b"GET /he alth HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
    ids=["word", "short", "version", "name", "nul", "space", "tls", "h2"],
)
def test_malformed_requests(server: CaissonServer, data: bytes):
    with RawConnection(server.port, timeout=40) as connection:
        connection.send(data)
        connection.socket.shutdown(1)
        try:
            response = connection.read_response()
        except ConnectionEnded:
            return
        assert response.status in (400, 404, 505), response


def test_broken_chunks(server: CaissonServer):
    head = head_of("POST", "/v2/sandboxes", create_head(server, Transfer_Encoding="chunked"))
    for chunks in (
        b"zz\r\n{}\r\n0\r\n\r\n",
        b"2\r\n{}XX0\r\n\r\n",
        b"FFFFFFFFFFFFFFFFF\r\n{}\r\n",
        b"-2\r\n{}\r\n0\r\n\r\n",
    ):
        response = exchange(server, head + chunks)
        assert response is None or response.status == 400, (chunks, response)


@pytest.mark.quick
def test_headers_that_are_too_large(server: CaissonServer):
    big = head_of("GET", "/health", {"Host": "x", "X-Big": "v" * 200_000})
    many = head_of("GET", "/health", {"Host": "x", **{f"X-{i}": "v" * 50 for i in range(3000)}})
    long_target = head_of("GET", "/health?" + "q" * 200_000, {"Host": "x"})
    for data, allowed in ((big, (431,)), (many, (431,)), (long_target, (414, 431))):
        response = exchange(server, data)
        assert response is None or response.status in allowed, response


@pytest.mark.quick
def test_body_that_is_too_large(server: CaissonServer):
    body = b'{"templateID":"' + b"x" * 20_000_000 + b'"}'
    head = head_of("POST", "/v2/sandboxes", create_head(server, Content_Length=str(len(body))))
    with RawConnection(server.port) as connection:
        connection.send(head)  # the announcement alone is enough to refuse
        response = connection.read_response()
        assert response.status == 413, response
    chunked = head_of("POST", "/v2/sandboxes", create_head(server, Transfer_Encoding="chunked"))
    with RawConnection(server.port) as connection:
        try:
            connection.send(chunked)
            for _ in range(20):
                connection.send(b"100000\r\n" + b"x" * 0x100000 + b"\r\n")
            response = connection.read_response()
            assert response.status == 413, response
        except (ConnectionEnded, BrokenPipeError, ConnectionResetError):
            pass  # cut while we were still sending


def test_expect_continue(server: CaissonServer, rest: Rest):
    body = json.dumps({"templateID": "base", "timeout": 30}).encode()
    headers = create_head(server, Expect="100-continue", Content_Length=str(len(body)))
    with RawConnection(server.port) as connection:
        connection.send(head_of("POST", "/v2/sandboxes", headers))
        assert connection.read_response().status == 100
        response = connection.send(body).read_response()
    assert response.status == 201
    rest.kill(json.loads(response.body))


@pytest.mark.quick
def test_http_1_0(server: CaissonServer):
    with RawConnection(server.port) as connection:
        connection.send(b"GET /health HTTP/1.0\r\n\r\n")
        assert connection.read_response().status in (200, 204)
        assert connection.ended()


def test_head_has_no_body(server: CaissonServer):
    with RawConnection(server.port) as connection:
        connection.send(head_of("HEAD", "/v2/sandboxes", create_head(server)))
        response = connection.read_response(head=True)
        assert response.status in (200, 404, 405)
        connection.send(head_of("GET", "/v2/sandboxes", create_head(server)))
        assert connection.read_response().status == 200


def test_204_has_no_body_and_keeps_the_connection(server: CaissonServer, rest: Rest):
    made = [rest.create(), rest.create()]
    with RawConnection(server.port) as connection:
        for one in made:
            head = head_of("DELETE", f"/sandboxes/{one['sandboxID']}", create_head(server))
            response = connection.send(head).read_response()
            assert response.status == 204
            assert "transfer-encoding" not in response.headers
            assert response.headers.get("content-length", "0") == "0"


def test_delete_and_get_with_a_body(server: CaissonServer):
    for method, status in (("DELETE", 404), ("GET", 404)):
        with RawConnection(server.port) as connection:
            headers = create_head(server, Content_Length="2")
            connection.send(head_of(method, "/sandboxes/i" + "0" * 20, headers) + b"{}")
            assert connection.read_response().status == status
            connection.send(head_of("GET", "/v2/sandboxes", create_head(server)))
            assert connection.read_response().status == 200


def test_every_answer_has_a_request_id(server: CaissonServer):
    seen = set()
    for path in ("/health", "/v2/sandboxes", "/nope"):
        response = exchange(server, head_of("GET", path, {"Host": "x"}))
        seen.add(response.headers["x-request-id"])
    assert len(seen) == 3


@pytest.mark.timeout(180)
def test_slow_clients_are_cut(make_server):
    server = make_server(
        env={"CAISSON_HTTP_HEADER_TIMEOUT_MS": "2000", "CAISSON_HTTP_BODY_STALL_TIMEOUT_MS": "2000"}
    )
    with RawConnection(server.port) as connection:
        head = head_of("GET", "/health", {"Host": "x", "X-Slow": "v" * 500})
        connection.send_slowly(head, 0.2, 19)  # which fails then; the default is 20 s
    begun = time.monotonic()
    with RawConnection(server.port, timeout=50) as connection:
        headers = create_head(server, Content_Length="100")
        connection.send(head_of("POST", "/v2/sandboxes", headers) + b"{")
        try:
            assert connection.read_response().status == 408
        except ConnectionEnded:
            pass
    assert time.monotonic() - begun < 50  # the default is a minute
    # The server is well: others were served all the time.
    assert Rest(server).get("/v2/sandboxes").status == 200


def test_many_idle_connections_do_not_block_others(server: CaissonServer, rest: Rest):
    idle = [RawConnection(server.port) for _ in range(300)]
    try:
        for connection in idle[:150]:
            connection.send(b"GET /health HTT")
        assert rest.get("/v2/sandboxes").status == 200
    finally:
        for connection in idle:
            connection.socket.close()


def test_a_client_that_leaves_in_the_middle(server: CaissonServer, rest: Rest):
    head = head_of("POST", "/v2/sandboxes", create_head(server, Content_Length="1000"))
    for _ in range(30):
        with RawConnection(server.port) as connection:
            connection.send(head + b'{"templateID"')
    assert rest.get("/v2/sandboxes").status == 200
