"""Odd input is the client's mistake: never a 500, and always an answer that can be parsed."""

from __future__ import annotations

import json

import pytest

from support.envd import Envd
from support.rawhttp import RawConnection, head_of
from support.rest import Rest, assert_error


@pytest.mark.quick
@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/templates/aliases/%ff%fe", 404),
        ("/sandboxes/%ff%fe", 404),
        ("/sandboxes/a%2Fb", 404),
        ("/sandboxes/%00", 404),
        ("/sandboxes/%zz", 404),
        ("/v2/sandboxes?order=%ff", 400),
        ("/v2/sandboxes?state=%c3%28", 400),
        ("/v2/sandboxes?startedAfter=%ff", 400),
        ("/no/such/%ff", 404),
    ],
)
def test_bytes_that_are_not_text(rest: Rest, path: str, status: int):
    """What an error quotes is repaired, so that the answer stays JSON."""
    assert_error(rest.get(path), status)


@pytest.mark.quick
@pytest.mark.parametrize("target", [b"/\xff", b"/sandboxes/\xff"])
def test_raw_bytes_in_the_request_line(rest: Rest, target: bytes):
    with RawConnection(rest.server.port) as connection:
        head = b"GET " + target + b" HTTP/1.1\r\nHost: x\r\nX-API-KEY: "
        connection.send(head + rest.server.api_key.encode() + b"\r\n\r\n")
        response = connection.read_response()
        assert response.status in (400, 404)
        if response.headers["content-type"].startswith("application/json"):
            assert json.loads(response.body)["code"] == response.status


@pytest.mark.quick
@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("into_sandbox", [False, True])
def test_a_body_that_ends_early(
    rest: Rest, envd: Envd, box: dict, chunked: bool, into_sandbox: bool
):
    """The client closes its half of the connection in the middle of the body."""
    length = {"Transfer-Encoding": "chunked"} if chunked else {"Content-Length": "500"}
    if into_sandbox:
        target = "/files?path=/tmp/part"
        headers = {**envd.headers(), "Content-Type": "application/octet-stream"}
    else:
        target = "/v2/sandboxes"
        headers = {"X-API-KEY": rest.server.api_key, "Content-Type": "application/json"}
    with RawConnection(rest.server.port, timeout=20) as connection:
        connection.send(head_of("POST", target, {"Host": "x", **headers, **length}))
        connection.send(b"1f4\r\n{" if chunked else b"{")
        connection.socket.shutdown(1)
        assert connection.read_response().status == 400
    assert envd.request("GET", "/health").status == 204
