"""Routing of traffic into sandboxes: by header, by host name, and what is refused."""

from __future__ import annotations

import json
import threading
import time

import pytest

from support.envd import Envd
from support.programs import HTTP_SERVER
from support.rawhttp import ConnectionEnded, RawConnection, head_of
from support.rest import Response, Rest

PORT = 3200
UNKNOWN = "i" + "0" * 20


def ask(
    rest: Rest, path: str = "/", method: str = "GET", body: bytes | None = None, **headers: str
) -> Response:
    sent = {k.replace("_", "-"): v for k, v in headers.items()}
    return rest.request(method, path, body, headers=sent, key=None)


@pytest.fixture(scope="module")
def web(rest: Rest, box: dict, envd: Envd) -> str:
    """A web server in the shared sandbox, bound to 127.0.0.1; its host name."""
    envd.request(
        "POST",
        "/files?path=/tmp/serve.py",
        HTTP_SERVER.encode(),
        {"Content-Type": "application/octet-stream"},
    )
    envd.start(f"exec python3 /tmp/serve.py {PORT} 127.0.0.1").next()
    host = f"{PORT}-{box['sandboxID']}.{box['domain']}"
    end = time.monotonic() + 30
    while ask(rest, Host=host).status != 200:
        assert time.monotonic() < end, "the web server did not come up"
        time.sleep(0.1)
    return host


@pytest.mark.quick
def test_by_host_and_by_header(rest: Rest, box: dict, web: str):
    by_host = ask(rest, "/a?b=c", Host=web)
    assert by_host.status == 200 and by_host.json()["path"] == "/a?b=c"
    by_header = ask(rest, "/a?b=c", E2b_Sandbox_Id=box["sandboxID"], E2b_Sandbox_Port=str(PORT))
    assert by_header.status == 200 and by_header.json()["path"] == "/a?b=c"
    without_port = web.rpartition(":")[0]
    assert ask(rest, Host=without_port).status == 200
    composite = web.replace(box["sandboxID"], f"{box['sandboxID']}-{box['clientID']}")
    assert ask(rest, Host=composite).status == 200
    assert ask(rest, Host=web.upper()).status == 200


@pytest.mark.quick
def test_paths_of_the_control_plane_go_to_the_sandbox_by_host(rest: Rest, web: str):
    for path in ("/v2/sandboxes", "/health", "/files", "/metrics", "/api/v1/x", "/app"):
        answer = ask(rest, path, Host=web)
        assert answer.status == 200 and answer.json()["path"] == path


@pytest.mark.quick
@pytest.mark.parametrize(
    "headers",
    [
        {"E2b_Sandbox_Id": UNKNOWN},
        {"E2b_Sandbox_Port": "49983"},
        {"E2b_Sandbox_Id": UNKNOWN, "E2b_Sandbox_Port": "x"},
        {"E2b_Sandbox_Id": UNKNOWN, "E2b_Sandbox_Port": "0"},
        {"E2b_Sandbox_Id": UNKNOWN, "E2b_Sandbox_Port": "70000"},
        {"E2b_Sandbox_Id": "../../etc", "E2b_Sandbox_Port": "80"},
        {"E2b_Sandbox_Id": "UPPER", "E2b_Sandbox_Port": "80"},
    ],
)
def test_half_or_broken_headers(rest: Rest, headers: dict):
    assert ask(rest, "/health", **headers).status == 400


@pytest.mark.quick
def test_unknown_sandbox(rest: Rest, box: dict):
    expected = {"sandboxId": UNKNOWN, "message": "The sandbox was not found", "code": 502}
    for answer in (
        ask(rest, "/health", E2b_Sandbox_Id=UNKNOWN, E2b_Sandbox_Port="49983"),
        ask(rest, "/", Host=f"3000-{UNKNOWN}.{box['domain']}"),
        ask(
            rest,
            "/process.Process/List",
            "POST",
            b"{}",
            E2b_Sandbox_Id=UNKNOWN,
            E2b_Sandbox_Port="49983",
            Content_Type="application/json",
        ),
    ):
        assert answer.status == 502
        assert answer.header("content-type") == "application/json; charset=utf-8"
        assert answer.json() == expected


@pytest.mark.quick
def test_closed_port(rest: Rest, box: dict):
    answer = ask(rest, E2b_Sandbox_Id=box["sandboxID"], E2b_Sandbox_Port="3999")
    assert answer.status == 502
    assert answer.json() == {
        "sandboxId": box["sandboxID"],
        "port": 3999,
        "code": 502,
        "message": "The sandbox is running but port is not open",
    }


def test_headers_pass_both_ways(rest: Rest, web: str):
    answer = ask(
        rest,
        "/",
        Host=web,
        X_Custom="v",
        Cookie="a=b",
        Authorization="Bearer mine",
        X_API_KEY="not ours",
    )
    seen = answer.json()["headers"]
    assert seen["x-custom"] == "v" and seen["cookie"] == "a=b"
    assert seen["authorization"] == "Bearer mine"
    assert seen["host"] == web
    assert answer.header("x-served-by") == "sandbox"


def test_mask_request_host(rest: Rest):
    network = {"maskRequestHost": "app.internal:${PORT}"}
    with rest.sandbox(network=network) as made:
        envd = Envd(rest.server, made)
        envd.request(
            "POST",
            "/files?path=/tmp/serve.py",
            HTTP_SERVER.encode(),
            {"Content-Type": "application/octet-stream"},
        )
        envd.start("exec python3 /tmp/serve.py 3000 127.0.0.1").next()
        host = f"3000-{made['sandboxID']}.{made['domain']}"
        end = time.monotonic() + 30
        while (answer := ask(rest, Host=host)).status != 200:
            assert time.monotonic() < end
            time.sleep(0.1)
        seen = answer.json()["headers"]
        assert seen["host"] == "app.internal:3000"
        assert seen["x-forwarded-host"] == host


def test_large_bodies_stream_through(rest: Rest, web: str):
    answer = ask(rest, "/bytes/30000000", Host=web)
    assert len(answer.body) == 30_000_000
    posted = ask(rest, "/echo", "POST", b"p" * 10_000_000, Host=web)
    assert posted.json() == {"length": 10_000_000}


def test_keep_alive_over_two_sandboxes(rest: Rest, box: dict, web: str):
    """One client connection may carry requests for different sandboxes and for the server."""
    with rest.sandbox() as other, RawConnection(rest.server.port) as connection:
        for target, headers, status in (
            ("/one", {"Host": web}, 200),
            (
                "/health",
                {"Host": "x", "E2b-Sandbox-Id": other["sandboxID"], "E2b-Sandbox-Port": "49983"},
                204,
            ),
            ("/health", {"Host": "x"}, None),
            ("/two", {"Host": web}, 200),
            ("/", {"Host": f"3999-{box['sandboxID']}.{box['domain']}"}, 502),
            ("/three", {"Host": web}, 200),
        ):
            response = connection.send(head_of("GET", target, headers)).read_response()
            assert response.status == status or status is None and response.status in (200, 204)


def test_event_stream_is_not_held_back(rest: Rest, web: str):
    with RawConnection(rest.server.port, timeout=30) as connection:
        connection.send(head_of("GET", "/events", {"Host": web}))
        while b"data: 1\n\n" not in connection.buffer:
            connection._fill()


def test_traffic_is_cut_when_the_sandbox_dies(rest: Rest):
    made = rest.create()
    envd = Envd(rest.server, made)
    stream = envd.start("sleep 300")
    stream.next()
    ends: list[bool] = []

    def follow() -> None:
        try:
            list(stream)
        except Exception:
            pass
        ends.append(True)

    thread = threading.Thread(target=follow)
    thread.start()
    time.sleep(0.3)
    assert rest.kill(made).status == 204
    thread.join(30)
    assert ends
    assert not stream.ended, "a killed sandbox must not end its streams gracefully"


def test_expired_connection_is_cut_abnormally(rest: Rest):
    """A chunked answer that is cut must not look complete: no final chunk."""
    made = rest.create()
    envd = Envd(rest.server, made)
    with RawConnection(rest.server.port, timeout=30) as connection:
        body = b"\x00" + len(
            payload := json.dumps({"process": {"cmd": "/bin/sleep", "args": ["100"]}}).encode()
        ).to_bytes(4, "big")
        headers = {
            "Host": "x",
            **envd.headers(),
            "Content-Type": "application/connect+json",
            "Content-Length": str(len(body) + len(payload)),
        }
        connection.send(head_of("POST", "/process.Process/Start", headers) + body + payload)
        while b'"start"' not in connection.buffer:
            connection._fill()
        rest.kill(made)
        try:
            while True:
                connection._fill()
        except ConnectionEnded:
            pass
        assert not connection.buffer.endswith(b"0\r\n\r\n")


def test_a_sandbox_cannot_name_another_one(rest: Rest, envd: Envd, box: dict):
    """Headers of the outside are for the gateway; they reach the program only as plain text."""
    with rest.sandbox() as other:
        answer = envd.request(
            "GET", "/health", headers={"Host": f"49983-{other['sandboxID']}.{box['domain']}"}
        )
        # Two different sandboxes named at once: refused, or the host wins; never a mix.
        assert answer.status in (204, 400)
