"""Terminals of the page on a real server: typing, coming back, crashes, pages of others, hostile frames."""

from __future__ import annotations

import socket
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from http.cookies import SimpleCookie

import pytest
from websockets.exceptions import InvalidStatus

from support.rest import Rest, assert_refusal
from support.server import CaissonServer
from support.shell import DEADLINE_S, Shell

ALL = "/api/v1/sandboxes"


@pytest.fixture
def sandbox(rest: Rest):
    made = rest.post("/v2/sandboxes", {"templateID": "base", "timeout": 900}).json()["sandboxID"]
    yield made
    assert rest.request("DELETE", f"{ALL}/{made}").status in (204, 404)


def terminals(rest: Rest, sandbox: str) -> list[dict]:
    body = rest.get(f"{ALL}/{sandbox}/terminals").json()
    assert body["total"] == len(body["terminals"]), body
    return body["terminals"]


def wait_for(what: Callable[[], object]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def refused(*arguments, **options) -> int:
    with pytest.raises(InvalidStatus) as refusal:
        Shell(*arguments, **options)
    return refusal.value.response.status_code


def ends(rest: Rest, sandbox: str) -> list[tuple[str, str]]:
    told = rest.get(f"/api/v1/events/history?sandbox_id={sandbox}&type=terminal_ended").json()["events"]
    return [(event["terminal_id"], event["reason"]) for event in told]


@pytest.mark.quick
def test_typing_and_resizing(server: CaissonServer, rest: Rest, sandbox: str):
    with Shell(server, sandbox, cols=100, rows=30, cwd="/tmp") as shell:
        assert not shell.ready["reattached"] and shell.ready["pid"] > 0
        shell.type("echo $((6*7))x; pwd; id -un; stty size; echo $TERM\n")
        shell.until(r"42x\r\n/tmp\r\nuser\r\n30 100\r\nxterm-256color")
        shell.resize(120, 40)
        shell.type("stty size\n")
        shell.until(r"40 120\r\n")
        shell.socket.send('{"type":"resize","cols":0,"rows":5}')
        shell._read_until(lambda: shell.told)
        assert shell.told.pop()["type"] == "error"
        (listed,) = terminals(rest, sandbox)
        assert (listed["id"], listed["pid"], listed["attached"]) == (shell.id, shell.ready["pid"], 1)
        shell.type("exit 3\n")
        assert shell.end() == ({"type": "exit", "exit_code": 3}, 1000)
    assert terminals(rest, sandbox) == []
    assert ends(rest, sandbox) == [(shell.id, "exit")]


def test_another_user_and_much_output(server: CaissonServer, sandbox: str):
    with Shell(server, sandbox, user="root") as shell:
        shell.type("id -un; seq 1 200000; echo e$((1))nd\n")
        shell.until(r"root\r\n1\r\n2\r\n")
        shell.until(r"\r\n200000\r\ne1nd\r\n")
        # What it prints shows that it has the terminal; a shell about to start a program does not pass Ctrl-C on.
        shell.type("sh -c 'echo go$((2))ing; exec sleep 600'\n")
        shell.until("go2ing")
        shell.type("\x03")
        shell.type("echo a$((2))fter\n")
        shell.until("a2fter")


def test_coming_back(server: CaissonServer, rest: Rest, sandbox: str):
    first = Shell(server, sandbox)
    first.type("mine=kept; echo be$((1))fore\n")
    first.until("be1fore")
    with Shell(server, sandbox, terminal=first.id, cols=90, rows=20) as second:
        # Both see the same.
        assert second.ready == {**first.ready, "reattached": True}
        second.until("be1fore")
        second.type("echo to$((2))gether\n")
        first.until("to2gether")
        second.until("to2gether")
        assert [t["attached"] for t in terminals(rest, sandbox)] == [2]
    first.close()
    wait_for(lambda: [t["attached"] for t in terminals(rest, sandbox)] == [0])
    with Shell(server, sandbox, terminal=first.id) as again:
        again.until("to2gether")
        again.type("echo $mine-$$\n")
        assert int(again.until(r"kept-(\d+)")[1]) == first.ready["pid"]


@pytest.mark.parametrize("how", ["stop", "crash"])
def test_after_a_restart(make_server, how: str):
    server: CaissonServer = make_server([])
    rest = Rest(server)
    sandbox = rest.post("/v2/sandboxes", {"templateID": "base", "timeout": 900}).json()["sandboxID"]
    shell = Shell(server, sandbox)
    shell.type("mine=kept; echo o$((1))ld\n")
    shell.until("o1ld")
    getattr(server, how)()
    said, code = shell.end()
    if how == "stop":
        assert (said, code) == ({"type": "error", "message": "the server stops"}, 1001)
    server.restart()
    (listed,) = terminals(rest, sandbox)
    assert (listed["id"], listed["pid"], listed["attached"]) == (shell.id, shell.ready["pid"], 0)
    with Shell(server, sandbox, terminal=shell.id) as again:
        assert again.ready == {**shell.ready, "reattached": True}
        again.type("echo $mine-$$\n")
        assert int(again.until(r"kept-(\d+)")[1]) == shell.ready["pid"]


def test_one_that_nobody_looks_at_is_ended(make_server):
    server: CaissonServer = make_server([])
    rest = Rest(server)
    sandbox = rest.post("/v2/sandboxes", {"templateID": "base", "timeout": 900}).json()["sandboxID"]
    with Shell(server, sandbox) as old, Shell(server, sandbox) as fresh:
        old.type("echo $$; sleep 1000\n")
    wait_for(lambda: [t["attached"] for t in terminals(rest, sandbox)] == [0, 0])
    server.stop()
    with closing(sqlite3.connect(server.data_dir / "db/caisson.db", timeout=30)) as database:
        database.execute("UPDATE terminals SET seen_at = 1 WHERE id = ?", (old.id,))
        database.commit()
    server.restart()
    wait_for(lambda: [t["id"] for t in terminals(rest, sandbox)] == [fresh.id])
    assert ends(rest, sandbox) == [(old.id, "idle")]
    found = rest.post(f"{ALL}/{sandbox}/execute", {"command": "pgrep -c sleep || true"})
    assert found.json()["stdout"] == "0\n"
    assert refused(server, sandbox, terminal=old.id) == 404


def test_a_paused_sandbox(server: CaissonServer, rest: Rest, sandbox: str):
    shell = Shell(server, sandbox)
    shell.type("mine=kept; echo o$((1))ld\n")
    shell.until("o1ld")
    assert rest.post(f"{ALL}/{sandbox}/pause", {}).status == 200
    said, _ = shell.end()
    assert said["type"] == "error" and said["message"]
    assert refused(server, sandbox) == refused(server, sandbox, terminal=shell.id) == 409
    assert [t["id"] for t in terminals(rest, sandbox)] == [shell.id]
    assert rest.request("DELETE", f"{ALL}/{sandbox}/terminals/{shell.id}").status == 409
    assert rest.get(f"{ALL}/{sandbox}").json()["status"] == "paused"  # nothing of that woke it
    assert rest.post(f"{ALL}/{sandbox}/resume", {}).status == 200
    with Shell(server, sandbox, terminal=shell.id) as again:
        again.until("o1ld")
        again.type("echo $mine-$$\n")
        assert int(again.until(r"kept-(\d+)")[1]) == shell.ready["pid"]


def test_ending_one(server: CaissonServer, rest: Rest, sandbox: str):
    other = rest.post("/v2/sandboxes", {"templateID": "base", "timeout": 900}).json()["sandboxID"]
    with Shell(server, sandbox) as shell:
        shell.type("sleep 1000 & echo st$((1))arted\n")
        shell.until("st1arted")
        path = f"{ALL}/{sandbox}/terminals/{shell.id}"
        assert_refusal(rest.request("DELETE", f"{ALL}/{other}/terminals/{shell.id}"), 404)
        assert refused(server, other, terminal=shell.id) == 404
        assert rest.request("DELETE", path).status == 204
        said, code = shell.end()
        assert (said["type"], code) == ("exit", 1000)
    assert_refusal(rest.request("DELETE", path), 404)
    assert terminals(rest, sandbox) == [] and ends(rest, sandbox) == [(shell.id, "request")]
    found = rest.post(f"{ALL}/{sandbox}/execute", {"command": "pgrep -c sleep || true"})
    assert found.json()["stdout"] == "0\n"
    assert rest.request("DELETE", f"{ALL}/{other}").status == 204


def test_who_may(server: CaissonServer, rest: Rest, sandbox: str):
    path = f"{ALL}/{sandbox}/terminal"
    refusal = rest.get(path)
    assert_refusal(refusal, 426, "upgrade_required")
    assert refusal.header("Upgrade") == "websocket"
    stranger = rest.post("/api/v1/keys", {"name": "stranger", "own_user": True}).json()["key"]
    assert refused(server, sandbox, headers={"X-API-KEY": stranger}) == 404
    assert refused(server, "i" + "x" * 20) == 404
    assert refused(server, sandbox, headers={}) == 401
    assert refused(server, sandbox, cols=0) == 422
    assert rest.get(f"{ALL}/{sandbox}/terminals", key=stranger).status == 404
    # A program with a key is no page: its Origin does not count.
    with Shell(server, sandbox, headers={"X-API-KEY": server.api_key, "Origin": "http://elsewhere"}):
        pass
    answer = rest.request("POST", "/api/v1/auth/login", {"api_key": server.api_key}, key=None)
    cookies = SimpleCookie("; ".join(line.split(";")[0] for line in answer.headers.get_all("Set-Cookie")))
    page = {"Cookie": f"caisson_access={cookies['caisson_access'].value}"}
    own = f"http://127.0.0.1:{server.port}"
    for origin in ({}, {"Origin": "http://elsewhere"}, {"Origin": f"{own}.elsewhere"}, {"Origin": "null"},
                   {"Origin": f"http://3000-{sandbox}.caisson.localhost:{server.port}"}):
        assert refused(server, sandbox, headers={**page, **origin}) == 403
    with Shell(server, sandbox, headers={**page, "Origin": own}) as shell:
        shell.type("echo h$((1))ello\n")
        shell.until("h1ello")


def raw_socket(server: CaissonServer, sandbox: str, terminal: str) -> socket.socket:
    """A connection that has asked for the shell and reads nothing by itself."""
    raw = socket.socket()
    raw.settimeout(DEADLINE_S)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 10)
    raw.connect(("127.0.0.1", server.port))
    raw.sendall((f"GET {ALL}/{sandbox}/terminal?terminal={terminal} HTTP/1.1\r\nHost: x\r\n"
                 "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                 f"X-API-KEY: {server.api_key}\r\n"
                 "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n").encode())
    return raw


def test_a_viewer_that_reads_nothing_is_cut_off(server: CaissonServer, rest: Rest, sandbox: str):
    with Shell(server, sandbox) as shell, raw_socket(server, sandbox, shell.id):
        wait_for(lambda: [t["attached"] for t in terminals(rest, sandbox)] == [2])
        shell.type("head -c 16000000 /dev/zero | tr '\\0' x | fold -w 1000; echo do$((1))ne\n")
        shell.until("do1ne")
        wait_for(lambda: [t["attached"] for t in terminals(rest, sandbox)] == [1])


def test_hostile_frames_end_the_connection_and_not_the_shell(server: CaissonServer, sandbox: str):
    shell = Shell(server, sandbox)
    for frame, code in ((b"\x82\x05hello", 1002),  # not masked
                        (b"\xc2\x80" + bytes(4), 1002),  # a reserved bit
                        (b"\x82\xff\x00\x00\x00\x01" + bytes(4), 1009),  # 4 GiB to come
                        (b"\x81\x81" + bytes(4) + b"\xff", 1007)):  # not UTF-8
        with raw_socket(server, sandbox, shell.id) as raw:
            raw.sendall(frame)
            answer = b""
            while piece := raw.recv(65536):
                answer += piece
            assert answer.startswith(b"HTTP/1.1 101 ") and code.to_bytes(2, "big") in answer, answer
    shell.type("echo a$((1))live\n")
    shell.until("a1live")
    shell.close()


def test_limits_are_settings(make_server):
    server: CaissonServer = make_server([
        "--set", "terminal_max_per_sandbox=1", "--set", "terminal_max_viewers=2",
        "--set", "terminal_history_bytes=1000"])
    rest = Rest(server)
    sandbox = rest.post("/v2/sandboxes", {"templateID": "base", "timeout": 900}).json()["sandboxID"]
    with Shell(server, sandbox) as shell:
        assert refused(server, sandbox) == 429
        shell.type("seq 1 5000; echo do$((1))ne\n")
        shell.until("do1ne")
        with Shell(server, sandbox, terminal=shell.id) as second:
            second.until("do1ne")
            assert refused(server, sandbox, terminal=shell.id) == 429
        shell.type("exit\n")
        shell.end()
    # One that has ended makes room.
    with Shell(server, sandbox) as another:
        for word in ("fi$((1))rst", "la$((2))st"):
            another.type(f"echo {word}; seq 1 1000\n")
        another.until("la2st")
        another.until(r"\n1000\r\n")
        with Shell(server, sandbox, terminal=another.id) as second:
            second.type("echo n$((1))ow\n")
            second._read_until(lambda: b"n1ow" in second.shown)
            assert b"fi1rst" not in second.shown and len(second.shown) < 2000


def test_one_that_ends_with_its_sandbox(server: CaissonServer, rest: Rest, sandbox: str):
    shell = Shell(server, sandbox)
    assert rest.request("DELETE", f"{ALL}/{sandbox}").status == 204
    said, _ = shell.end()
    assert said["type"] == "error", said
    wait_for(lambda: ends(rest, sandbox) == [(shell.id, "sandbox_ended")])
    assert refused(server, sandbox, terminal=shell.id) == 409
