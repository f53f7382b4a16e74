"""Pause, resume, snapshots and forks on the wire, and through restarts and crashes."""

from __future__ import annotations

import http.client
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from support import census
from support.cli import caisson
from support.envd import Envd
from support.rest import Rest, assert_error
from support.server import CaissonServer

pytestmark = pytest.mark.sanitized

OCTETS = {"Content-Type": "application/octet-stream"}
UNKNOWN = "i" + "0" * 20


def path_of(made: dict, action: str) -> str:
    return f"/sandboxes/{made['sandboxID']}/{action}"


def pause(rest: Rest, made: dict, body: object = None) -> None:
    answer = rest.post(path_of(made, "pause"), body)
    assert answer.status == 204, answer


def connect(rest: Rest, made: dict, status: int = 201, **body) -> dict:
    answer = rest.post(path_of(made, "connect"), {"timeout": 120, **body})
    assert answer.status == status, answer
    return answer.json()


def boot_id(envd: Envd) -> bytes:
    return envd.run("cat /proc/sys/kernel/random/boot_id")[0]


def events(rest: Rest, made: dict) -> list[dict]:
    entries = rest.get(path_of(made, "logs")).json()["logEntries"]
    return [entry["fields"] for entry in entries]


def wait_for(condition, what: str, deadline_s: float = 30) -> None:
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.05)


@pytest.mark.quick
def test_the_states_on_the_wire(rest: Rest):
    with rest.sandbox() as made:
        assert_error(rest.post(path_of(made, "resume"), {"timeout": 5}), 409)
        pause(rest, made)
        assert_error(rest.post(path_of(made, "pause"), {}), 409)
        detail = rest.detail(made)
        assert detail["state"] == "paused"
        assert detail["lifecycle"] == {"onTimeout": "kill", "autoResume": False}
        assert_error(rest.post(path_of(made, "timeout"), {"timeout": 5}), 404)
        assert_error(rest.post(path_of(made, "fork"), {}), 409, "resume it first")
        assert_error(rest.post(path_of(made, "snapshots"), {}), 409)
        assert Envd(rest.server, made).request("GET", "/health").status == 502
        again = connect(rest, made)
        assert again["envdAccessToken"] == made["envdAccessToken"]
        connect(rest, made, 200)
        pause(rest, made, {"memory": True})
        assert rest.post(path_of(made, "resume"), {}).status == 201
        kinds = [event["event"] for event in events(rest, made)]
        assert [kind for kind in kinds if kind != "timeout_set"] == [
            "created", "paused", "resumed", "paused", "resumed",
        ]
        assert {event["reason"] for event in events(rest, made) if "reason" in event} == {"request"}
    assert_error(rest.post(f"/sandboxes/{UNKNOWN}/pause", {}), 404)


@pytest.mark.quick
def test_open_files_survive(rest: Rest):
    with rest.sandbox(timeout=300) as made:
        envd = Envd(rest.server, made)
        script = "exec 7>/tmp/log; for i in $(seq 100000); do echo $i >&7; sleep 0.02; done"
        stream = envd.start(script)
        pid = stream.next()["event"]["start"]["pid"]
        stream.close()
        boot = boot_id(envd)
        for _ in range(5):
            pause(rest, made)
            connect(rest, made)
            assert boot_id(envd) == boot
            lines = envd.run("cat /tmp/log")[0].split()
            assert lines == [str(i).encode() for i in range(1, len(lines) + 1)]
            assert pid in [p["pid"] for p in envd.ok("process.Process/List")["processes"]]


def test_a_stream_is_cut_by_a_pause(rest: Rest):
    with rest.sandbox() as made:
        envd = Envd(rest.server, made)
        stream = envd.start("sleep 1000")
        stream.next()
        pause(rest, made)
        with pytest.raises((EOFError, ConnectionError, http.client.HTTPException)):
            list(stream)


UNACCEPTED = """
import os, socket, time
server = socket.create_server(("127.0.0.1", 4000))
waiting = [socket.create_connection(("127.0.0.1", 4000)) for _ in range(3)]
open("/tmp/ready", "w").close()
while not os.path.exists("/tmp/go"):
    time.sleep(0.01)
fresh = socket.create_connection(("127.0.0.1", 4000))
fresh.sendall(b"fresh")
fresh.shutdown(socket.SHUT_WR)
print(server.accept()[0].makefile().read(), [one.recv(1) for one in waiting], flush=True)
"""


def test_connections_that_nobody_accepted_do_not_stand_in_the_way(rest: Rest):
    """They end like all others; the server inside goes on."""
    with rest.sandbox() as made:
        envd = Envd(rest.server, made)
        sent = envd.request("POST", "/files?path=/tmp/unaccepted.py", UNACCEPTED.encode(), OCTETS)
        assert sent.status == 200, sent
        envd.run("nohup python3 /tmp/unaccepted.py > /tmp/said 2>&1 & until [ -e /tmp/ready ]; do sleep 0.01; done")
        pause(rest, made)
        connect(rest, made)
        said = envd.run("touch /tmp/go; until [ -s /tmp/said ]; do sleep 0.01; done; cat /tmp/said")[0]
        assert said == b"fresh [b'', b'', b'']\n"


def test_the_clock_is_right_after_a_resume(rest: Rest):
    with rest.sandbox() as made:
        envd = Envd(rest.server, made)
        pause(rest, made)
        time.sleep(1.5)
        connect(rest, made)
        before = time.time()
        assert before - 1 < float(envd.run("date +%s.%N")[0]) < time.time() + 1


def test_many_connects_resume_once(rest: Rest):
    with rest.sandbox() as made:
        pause(rest, made)
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(
                lambda _: rest.post(path_of(made, "connect"), {"timeout": 60}).status, range(8)
            ))
        assert sorted(answers) == [200] * 7 + [201]


@pytest.mark.parametrize("during", ["pause", "connect", "snapshots", "fork"])
def test_a_kill_wins(make_server, during: str):
    server = make_server()
    rest = Rest(server)
    made = rest.create()
    if during == "connect":
        pause(rest, made)
    other = threading.Thread(target=rest.post, args=(path_of(made, during), {"timeout": 300}))
    other.start()
    killed = rest.kill(made)
    other.join()
    assert killed.status == 204, killed
    assert_error(rest.get(f"/sandboxes/{made['sandboxID']}"), 404)
    for fork in rest.list():
        rest.kill(fork["sandboxID"])
    assert rest.list() == []
    census.wait_until_dead(server)


def test_paused_ones_do_not_count(make_server):
    rest = Rest(make_server(["--set", "max_sandboxes=1", "--set", "max_paused_per_key=1"]))
    first = rest.create()
    assert rest.post("/v2/sandboxes", {"templateID": "base"}).status == 503
    pause(rest, first)
    second = rest.create()
    assert_error(rest.post(path_of(second, "pause"), {}), 429)
    assert_error(rest.post(path_of(first, "connect"), {"timeout": 5}), 503)
    assert rest.kill(second).status == 204
    connect(rest, first)


@pytest.mark.timeout(180)
@pytest.mark.parametrize("how", ["stop", "crash"])
def test_paused_ones_and_snapshots_outlive_the_server(make_server, how: str):
    server = make_server()
    rest = Rest(server)
    made = rest.create(timeout=300)
    envd = Envd(server, made)
    envd.request("POST", "/files?path=kept.txt", b"kept", OCTETS)
    boot = boot_id(envd)
    snapshot = rest.post(path_of(made, "snapshots"), {"name": "kept"}).json()["snapshotID"]
    pause(rest, made)
    getattr(server, how)()
    server.restart()
    rest = Rest(server)
    assert rest.detail(made)["state"] == "paused"
    assert [one["snapshotID"] for one in rest.get("/snapshots").json()] == [snapshot]
    connect(rest, made)
    envd = Envd(server, made)
    assert envd.request("GET", "/files?path=kept.txt").body == b"kept"
    assert boot_id(envd) == boot
    copy = rest.create(templateID=snapshot)
    assert Envd(server, copy).request("GET", "/files?path=kept.txt").body == b"kept"


@pytest.mark.timeout(240)
@pytest.mark.parametrize("during", ["pause", "connect", "snapshots", "fork"])
@pytest.mark.parametrize("delay_ms", [0, 15, 60])
def test_a_crash_loses_no_sandbox(make_server, during: str, delay_ms: int):
    """Killed in the middle: afterwards it runs or is paused, once, with its files."""
    server: CaissonServer = make_server()
    rest = Rest(server)
    made = rest.create(timeout=300)
    Envd(server, made).request("POST", "/files?path=kept.txt", b"kept", OCTETS)
    if during == "connect":
        pause(rest, made)

    def ask() -> None:
        try:
            rest.post(path_of(made, during), {"timeout": 300})
        except OSError:
            pass  # the server is gone, as the test wants

    other = threading.Thread(target=ask)
    other.start()
    time.sleep(delay_ms / 1000)
    server.crash()
    other.join()
    server.restart()
    rest = Rest(server)
    state = rest.detail(made)["state"]
    assert state in ("running", "paused")
    if state == "paused":
        connect(rest, made)
    assert Envd(server, made).request("GET", "/files?path=kept.txt").body == b"kept"
    for one in rest.list():
        assert rest.kill(one["sandboxID"]).status == 204
    for one in rest.get("/snapshots").json():
        assert rest.delete("/templates/" + one["snapshotID"]).status == 204
    census.wait_until_dead(server)


@pytest.mark.timeout(180)
def test_a_shutdown_pauses_if_it_shall(make_server):
    server = make_server(["--set", "on_shutdown=pause"])
    rest = Rest(server)
    made = rest.create(timeout=300)
    boot = boot_id(Envd(server, made))
    server.stop()
    census.wait_until_dead(server)
    server.restart()
    rest = Rest(server)
    assert rest.detail(made)["state"] == "paused"
    assert events(rest, made)[-1]["reason"] == "shutdown"
    connect(rest, made)
    assert boot_id(Envd(server, made)) == boot


def test_idle_ones_are_paused(make_server):
    rest = Rest(make_server(["--set", "idle_pause_s=2"]))
    made = rest.create(timeout=300)
    wait_for(lambda: events(rest, made)[-1].get("reason") == "idle", "paused")
    assert rest.detail(made)["state"] == "paused"


def test_drain(make_server):
    server = make_server()
    rest = Rest(server)
    made = [rest.create() for _ in range(3)]
    done = caisson(server, "drain")
    assert done.returncode == 0, done
    assert done.stdout == b"3 sandboxes paused, 0 could not be paused\n"
    assert {one["state"] for one in rest.list()} == {"paused"}
    assert_error(rest.post("/v2/sandboxes", {"templateID": "base"}), 503, "drained")
    assert caisson(server, "drain", "--end").returncode == 0
    connect(rest, made[0])


def test_a_copy_has_its_own_identity(rest: Rest):
    with rest.sandbox() as made:
        envd = Envd(rest.server, made)
        answer = rest.post(path_of(made, "snapshots"), {})
        assert answer.status == 201, answer
        snapshot = answer.json()["snapshotID"]
        with rest.sandbox(templateID=snapshot) as copy:
            mine = Envd(rest.server, copy)
            assert mine.run("echo $E2B_SANDBOX_ID")[0].strip().decode() == copy["sandboxID"]
            machine_id = "cat /etc/machine-id"
            assert mine.run(machine_id)[0] != envd.run(machine_id)[0]
            # The token of one does not open the other.
            stranger = Envd(rest.server, {**copy, "envdAccessToken": made["envdAccessToken"]})
            assert stranger.request("GET", "/files?path=.bashrc").status == 401
        assert rest.delete("/templates/" + snapshot).status == 204


def test_the_command_line(server: CaissonServer):
    made = caisson(server, "sandbox", "create", "--auto-pause").stdout.decode().strip()
    assert caisson(server, "sandbox", "pause", made).stdout.decode().strip() == made
    listed = caisson(server, "sandbox", "list").stdout.decode()
    assert any(made in line and "paused" in line for line in listed.splitlines()), listed
    again = caisson(server, "sandbox", "pause", made)
    assert again.returncode == 1 and b"is paused" in again.stderr
    assert caisson(server, "sandbox", "resume", made, "--timeout", "60").returncode == 0
    name = caisson(server, "sandbox", "snapshot", made, "--name", "cli/mine:v1").stdout.decode()
    assert name == "cli/mine:v1\n"
    shown = caisson(server, "snapshot", "list", "--sandbox", made).stdout.decode()
    assert shown == "cli/mine:v1\n"
    forks = caisson(server, "sandbox", "fork", made, "--count", "2").stdout.decode().split()
    assert len(forks) == 2
    assert caisson(server, "sandbox", "kill", made, *forks).returncode == 0
    assert caisson(server, "snapshot", "delete", "cli/mine:v1").returncode == 0
    assert caisson(server, "snapshot", "delete", "cli/mine:v1").returncode == 1
