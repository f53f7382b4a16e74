"""Traffic into a sandbox by host name: HTTP, WebSocket, errors, tokens."""

from __future__ import annotations

import asyncio
import http.client
import json

import pytest
import websockets
from flavors import Uniform, in_thread, until

from support.programs import HTTP_SERVER, WEBSOCKET_ECHO
from support.server import CaissonServer

BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0"


def get(server: CaissonServer, host: str, path: str = "/", **headers: str):
    """GET by host name. The name needs no DNS: the connection goes to the server's address."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    try:
        sent = {"Host": host, **{k.replace("_", "-"): v for k, v in headers.items()}}
        connection.request("GET", path, headers=sent)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


async def serve(sandbox: Uniform, server: CaissonServer, port: int, address: str) -> str:
    """Starts a small HTTP server in the sandbox and returns its public host name."""
    await sandbox.files.write("/tmp/serve.py", HTTP_SERVER)
    await sandbox.commands.run(
        f"python3 /tmp/serve.py {port} {address}", background=True, timeout=0
    )
    host = await sandbox.get_host(port)

    async def up() -> bool:
        return (await in_thread(get, server, host, "/up"))[0] == 200

    await until(up, 30, f"the server on {address}:{port}")
    return host


@pytest.mark.quick
@pytest.mark.parametrize("address,port", [("127.0.0.1", 3101), ("0.0.0.0", 3102), ("::1", 3103)])
async def test_a_server_on_any_local_address(
    sandbox: Uniform, server: CaissonServer, address: str, port: int
):
    host = await serve(sandbox, server, port, address)
    assert host.startswith(f"{port}-{sandbox.sandbox_id}.")
    assert host.endswith(f":{server.port}")
    status, headers, body = await in_thread(get, server, host, "/some/path?q=1&r=a%20b")
    assert status == 200
    seen = json.loads(body)
    assert seen["path"] == "/some/path?q=1&r=a%20b"
    assert seen["headers"]["host"] == host
    assert headers["X-Served-By"] == "sandbox"


@pytest.mark.quick
async def test_port_that_is_closed(sandbox: Uniform, server: CaissonServer):
    host = await sandbox.get_host(3999)
    status, headers, body = await in_thread(get, server, host)
    assert status == 502
    assert headers["Content-Type"].startswith("application/json")
    assert json.loads(body) == {
        "sandboxId": sandbox.sandbox_id,
        "message": "The sandbox is running but port is not open",
        "port": 3999,
        "code": 502,
    }


@pytest.mark.quick
async def test_sandbox_that_is_gone(fresh: Uniform, server: CaissonServer):
    host = await fresh.get_host(3000)
    await fresh.kill()
    status, _, body = await in_thread(get, server, host)
    assert status == 502
    answer = json.loads(body)
    assert answer["sandboxId"] == fresh.sandbox_id
    assert answer["message"] == "The sandbox was not found"
    assert answer["code"] == 502


async def test_a_browser_gets_a_page(sandbox: Uniform, server: CaissonServer):
    host = await sandbox.get_host(3998)
    status, headers, body = await in_thread(
        get, server, host, User_Agent=BROWSER, Accept="text/html,*/*"
    )
    assert status == 502
    assert headers["Content-Type"].startswith("text/html")
    assert b"<html" in body.lower() and b"3998" in body
    for extra in ({"Accept": "application/json"}, {"Sec_Fetch_Mode": "cors"}):
        _, headers, _ = await in_thread(get, server, host, User_Agent=BROWSER, **extra)
        assert headers["Content-Type"].startswith("application/json")


async def test_large_answers_and_posts_pass(sandbox: Uniform, server: CaissonServer):
    host = await serve(sandbox, server, 3104, "127.0.0.1")
    _, _, body = await in_thread(get, server, host, "/bytes/5000000")
    assert len(body) == 5_000_000

    def post() -> dict:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        connection.request("POST", "/echo", body=b"p" * 3_000_000, headers={"Host": host})
        return json.loads(connection.getresponse().read())

    assert (await in_thread(post))["length"] == 3_000_000


async def test_streamed_answers_arrive_as_they_are_made(sandbox: Uniform, server: CaissonServer):
    host = await serve(sandbox, server, 3105, "127.0.0.1")

    def first_event() -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        connection.request("GET", "/events", headers={"Host": host})
        answer = connection.getresponse()
        line = answer.readline()
        connection.close()
        return line

    # The server in the sandbox never ends this answer: its first line must come without that.
    assert await in_thread(first_event) == b"data: 1\n"


@pytest.mark.quick
async def test_websocket(sandbox: Uniform, server: CaissonServer):
    await sandbox.files.write("/tmp/echo.py", WEBSOCKET_ECHO)
    await sandbox.commands.run("python3 /tmp/echo.py 3106", background=True, timeout=0)
    host = await sandbox.get_host(3106)

    async def connect():
        try:
            return await websockets.connect(
                f"ws://{host}/chat", host="127.0.0.1", port=server.port, open_timeout=30
            )
        except websockets.InvalidStatus:
            return None

    socket = await until(connect, 30, "the WebSocket server")
    async with socket:
        await socket.send("hello")
        assert await asyncio.wait_for(socket.recv(), 30) == "hello"
        await socket.send(b"\x00\x01\xff" * 1000)
        assert await asyncio.wait_for(socket.recv(), 30) == b"\x00\x01\xff" * 1000
        await socket.send("x" * 200_000)
        assert await asyncio.wait_for(socket.recv(), 30) == "x" * 200_000


async def test_websocket_is_cut_when_the_sandbox_dies(fresh: Uniform, server: CaissonServer):
    await fresh.files.write("/tmp/echo.py", WEBSOCKET_ECHO)
    await fresh.commands.run("python3 /tmp/echo.py 3000", background=True, timeout=0)
    host = await fresh.get_host(3000)

    async def connect():
        try:
            return await websockets.connect(
                f"ws://{host}/", host="127.0.0.1", port=server.port, open_timeout=30
            )
        except websockets.InvalidStatus:
            return None

    socket = await until(connect, 30, "the WebSocket server")
    await fresh.kill()
    with pytest.raises(websockets.ConnectionClosed):
        await asyncio.wait_for(socket.recv(), 30)


async def test_private_traffic_needs_its_token(flavor, server: CaissonServer):
    sandbox = await flavor.api.create(timeout=120, network={"allow_public_traffic": False})
    try:
        token = sandbox.traffic_access_token
        assert token
        await sandbox.files.write("/tmp/serve.py", HTTP_SERVER)
        await sandbox.commands.run(
            "python3 /tmp/serve.py 3000 127.0.0.1", background=True, timeout=0
        )
        host = await sandbox.get_host(3000)

        async def up() -> bool:
            answer = await in_thread(get, server, host, "/", e2b_traffic_access_token=token)
            return answer[0] == 200

        await until(up, 30, "the server behind the token")
        for headers in ({}, {"e2b_traffic_access_token": "wrong"}):
            status, _, body = await in_thread(get, server, host, "/", **headers)
            assert status == 403
            answer = json.loads(body)
            assert answer["code"] == 403 and answer["sandboxId"] == sandbox.sandbox_id
            assert "traffic access token" in answer["message"]
    finally:
        await sandbox.kill()
