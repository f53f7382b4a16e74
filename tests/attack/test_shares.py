"""Rows 36 and 49: those who take all that they can get leave room for the others, and for whoever wants to stop them."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator

import pytest
from internet import HOST, Internet
from probes import probe
from test_proxy import serve

from support.envd import Envd
from support.programs import WEBSOCKET_ECHO
from support.rawhttp import RawConnection, head_of
from support.rest import Rest
from support.server import CaissonServer

pytestmark = pytest.mark.timeout(180)

CONNECTIONS = 200  # that the server takes
SHARE = CONNECTIONS * 4 // 5 // 9  # of one sandbox that is alone
PER_PEER = 10
PORT = 3300


@pytest.fixture(scope="module")
def small_server(internet: Internet, small_template) -> Iterator[CaissonServer]:
    """It listens on every address."""
    settings = {"http_max_connections": CONNECTIONS, "http_max_per_peer": PER_PEER}
    server = CaissonServer(env={"CAISSON_DNS": internet.resolver, "CAISSON_TEMPLATE_DIR": str(small_template)})
    server.args += [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    server.args += ["--set", f"listen=0.0.0.0:{server.port}"]
    try:
        yield server.start()
    finally:
        server.close()


def upgrade(server: CaissonServer, made: dict) -> RawConnection:
    host = f"{PORT}-{made['sandboxID']}.{made['domain']}"
    fields = {"Host": host, "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
              "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    return RawConnection(server.port).send(head_of("GET", "/", fields))


@probe(36)
def test_a_preview_that_is_held_open_leaves_room(small_server: CaissonServer, world):
    rest = Rest(small_server)
    with rest.sandbox() as greedy, rest.sandbox() as other, contextlib.ExitStack() as held:
        for made in (greedy, other):
            serve(small_server, made, WEBSOCKET_ECHO, str(PORT))
            end = time.monotonic() + 30
            while True:
                with upgrade(small_server, made) as connection:
                    if connection.read_response(head=True).status == 101:
                        break
                assert time.monotonic() < end, "the server inside did not come up"
        statuses = [held.enter_context(upgrade(small_server, greedy)).read_response(head=True).status
                    for _ in range(3 * SHARE)]
        assert set(statuses) == {101, 429}
        assert SHARE // 2 < statuses.count(101) <= SHARE
        with upgrade(small_server, other) as connection:
            assert connection.read_response(head=True).status == 101
        assert rest.get("/health").status == 200
        assert Envd(small_server, other).run("echo here")[0] == b"here\n"


@probe(49)
def test_one_peer_cannot_take_all_connections(small_server: CaissonServer, world):
    """Connections from an address of the network, which here is the host's own."""
    def ask(held: contextlib.ExitStack) -> bytes:
        connection = held.enter_context(socket.create_connection((HOST, small_server.port), timeout=30))
        try:
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            return connection.recv(100)
        except ConnectionError:
            return b""

    with contextlib.ExitStack() as held:
        answers = [ask(held) for _ in range(2 * PER_PEER)]
        assert all(b" 200 " in answer for answer in answers[:PER_PEER])
        assert answers[PER_PEER:] == [b""] * PER_PEER
        # The machine itself, and another peer, are still served.
        assert Rest(small_server).get("/health").status == 200
    end = time.monotonic() + 30
    with contextlib.ExitStack() as held:
        while b" 200 " not in ask(held):  # the places are given back
            assert time.monotonic() < end
