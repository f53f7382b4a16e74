"""The host's disk is promised many times over: who fills it stands still, and nobody's own disk ever seems broken."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator

import pytest
from small_disk import SmallDisk
from subject import wait_for

from support.envd import Envd
from support.rest import Rest, assert_error
from support.server import CaissonServer

pytestmark = pytest.mark.timeout(300)

DISK_MB, FLOOR_MB, ENOUGH_MB = 3072, 400, 800
EACH_MB = 1800  # of two, together more than there is

GREEDY = f"yes 0123456789abcdef | head -c {EACH_MB}M > /root/greedy; echo $? > /root/done"
COMPARE = f"yes 0123456789abcdef | head -c {EACH_MB}M | cmp - /root/greedy && cat /root/done"

# Writes all the time, a little, and wants each time to know that it is on the disk.
NEIGHBOUR = """
import json, os, signal, time
ended, failures, rounds = [], [], 0
signal.signal(signal.SIGTERM, lambda *_: ended.append(1))
fd = os.open("/root/kept", os.O_RDWR | os.O_CREAT)
while not ended:
    try:
        os.pwrite(fd, bytes([rounds % 256]) * 16384, rounds << 14)
        os.fsync(fd)
    except OSError as error:
        failures.append(str(error))
    rounds += 1
    time.sleep(0.005)
print(json.dumps([rounds, failures]), flush=True)
"""


@pytest.fixture
def small() -> Iterator[tuple[CaissonServer, SmallDisk]]:
    server = CaissonServer(["--set", f"hold_free_disk_mb={FLOOR_MB}", "--set", f"min_free_disk_mb={ENOUGH_MB}"])
    try:
        with SmallDisk(server, DISK_MB) as disk:
            try:
                yield server.start(), disk
            finally:
                server.close()
    finally:
        shutil.rmtree(server.scratch, ignore_errors=True)


class LeastFree(threading.Thread):
    """What was free on the disk at the worst moment."""

    def __init__(self, disk: SmallDisk) -> None:
        super().__init__(daemon=True)
        self.disk, self.least, self.ended = disk, disk.free(), threading.Event()

    def run(self) -> None:
        while not self.ended.wait(0.005):
            self.least = min(self.least, self.disk.free())


def told(rest: Rest, made: dict) -> list[str]:
    return [event["type"] for event in rest.get(f"/api/v1/sandboxes/{made['sandboxID']}/timeline").json()["events"]]


def test_who_fills_the_disk_stands_still_and_nobody_else_notices(small):
    server, disk = small
    rest = Rest(server)
    neighbour, *greedy = (rest.create(timeout=900) for _ in range(3))
    beside = Envd(server, neighbour, 240)
    beside.request("POST", "/files?path=/root/neighbour.py&username=root", NEIGHBOUR.encode(),
                   {"Content-Type": "application/octet-stream"})
    beside.run("nohup python3 /root/neighbour.py > /root/told 2>&1 & echo $! > /root/pid", user="root")
    watch = LeastFree(disk)
    watch.start()
    for made in greedy:
        Envd(server, made).run(f"nohup sh -c '{GREEDY}' > /dev/null 2>&1 &", user="root")
    wait_for(lambda: all("held" in told(rest, made) for made in greedy), "both stand still", 120)

    # Nothing of them works, and everybody is told why.
    for made in greedy:
        assert_error(Envd(server, made).request("GET", "/health"), 503, "nearly full")
        assert rest.detail(made)["state"] == "running"
        assert_error(rest.post(f"/sandboxes/{made['sandboxID']}/pause", {}), 503)
        assert_error(Envd(server, made).request("GET", "/health"), 503, "nearly full")
    assert_error(rest.post("/v2/sandboxes", {"templateID": "base", "timeout": 60}), 503)
    # sync(2) of the host would wait for all that those two have not written yet.
    assert beside.run("sync && echo here")[0] == b"here\n"

    # One is killed, the other goes on where it was, and both what it wrote and the neighbour's is whole.
    assert rest.kill(greedy[0]).status == 204
    wait_for(lambda: "let_go" in told(rest, greedy[1]), "the other goes on", 60)
    other = Envd(server, greedy[1], 240)
    wait_for(lambda: other.run("cat /root/done", user="root")[0] == b"0\n", "all is written", 120)
    assert other.run(COMPARE, user="root")[0] == b"0\n"
    watch.ended.set()
    watch.join()
    assert watch.least > 0
    rounds, failures = json.loads(beside.run(
        "kill $(cat /root/pid); while kill -0 $(cat /root/pid) 2> /dev/null; do sleep 0.1; done; cat /root/told",
        user="root")[0])
    assert failures == [] and rounds > 100
    assert "held" not in told(rest, neighbour)


def test_it_goes_on_after_the_server_was_killed(small):
    """A new engine remembers nobody who stood still, finds out anew, and lets nobody stand still for ever."""
    server, disk = small
    rest = Rest(server)
    made = rest.create(timeout=900)
    disk.fill(left_mb=ENOUGH_MB + 400)
    Envd(server, made).run(f"nohup sh -c '{GREEDY}' > /dev/null 2>&1 &", user="root")
    wait_for(lambda: "held" in told(rest, made), "it stands still", 120)
    server.crash()
    server.restart()
    wait_for(lambda: told(rest, made).count("held") > 1, "it stands still again", 120)
    disk.empty()
    wait_for(lambda: "let_go" in told(rest, made), "it goes on", 60)
    envd = Envd(server, made, 240)
    wait_for(lambda: envd.run("cat /root/done", user="root")[0] == b"0\n", "all is written", 120)
    assert envd.run(COMPARE, user="root")[0] == b"0\n"
