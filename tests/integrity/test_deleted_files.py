"""Deleted files that are still open: they come back with the memory, do not come through the host's memory,
and there is a limit to them."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from support.envd import Envd
from support.rest import Rest, assert_error
from support.server import CaissonServer, process_tree

pytestmark = pytest.mark.timeout(600)

FULL = os.environ.get("TEST_SIZE") == "full"
FILES, EACH_MB = (24, 240) if FULL else (4, 100)
# Beside the guest's own memory. What a launcher needs by itself is some MB.
MOST_BESIDE_MB = 64

# Keeps deleted files open, one of them only mapped, and tells their digests when it is asked by a signal.
HOLDER = """
import hashlib, json, mmap, os, signal, sys, time
count, size = int(sys.argv[1]), int(sys.argv[2]) << 20
held, small = [], []
# Where it stands is gone, and so is a file that came with the template.
os.mkdir("/root/gone")
os.chdir("/root/gone")
os.rmdir("/root/gone")
small.append(os.open("/usr/share/common-licenses/GPL-3", os.O_RDONLY))
os.unlink("/usr/share/common-licenses/GPL-3")
for number in range(count):
    fd = os.open("/root/held", os.O_RDWR | os.O_CREAT | os.O_EXCL)
    block = os.urandom(1 << 20)
    for _ in range(size >> 20):
        os.write(fd, block)
    os.unlink("/root/held")
    held.append(fd)
area = mmap.mmap(held[0], size)
os.close(held.pop(0))
for number in range(50):
    fd = os.open("/root/small", os.O_RDWR | os.O_CREAT | os.O_EXCL)
    os.write(fd, b"%d" % number)
    os.unlink("/root/small")
    small.append(fd)
def digest():
    return [hashlib.sha256(area).hexdigest()] + [
        hashlib.sha256(b"".join(iter(lambda: os.read(fd, 1 << 20), b""))).hexdigest()
        for fd in held + small if os.lseek(fd, 0, 0) == 0]
def tell(*_):
    open("/root/new", "w").write(json.dumps(digest()))
    os.rename("/root/new", "/root/digests")
signal.signal(signal.SIGUSR1, tell)
tell()
while True:
    signal.pause()
"""
START = f"nohup python3 /root/holder.py {FILES} {EACH_MB} > /root/log 2>&1 & echo $!"
READ = "for _ in $(seq 1200); do test -f /root/digests && exec cat /root/digests; sleep 0.1; done; cat /root/log"


def peak_mb(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmHWM:\s*(\d+)", status)[1]) >> 10


def launchers(server: CaissonServer) -> list[int]:
    found = [pid for pid in process_tree(server.process.pid)
             if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"caisson: launcher")]
    assert found
    return found


def hold(server: CaissonServer, rest: Rest) -> tuple[dict, str, list[str]]:
    """A sandbox, the pid of the holder in it, and the digests of what it holds."""
    made = rest.create(timeout=600)
    envd = Envd(server, made, 240)
    sent = envd.request("POST", "/files?path=/root/holder.py&username=root", HOLDER.encode(),
                        {"Content-Type": "application/octet-stream"})
    assert sent.status == 200, sent
    pid = envd.run(START, user="root")[0].decode().strip()
    return made, pid, json.loads(envd.run(READ, user="root")[0])


def test_they_come_back_and_do_not_come_through_the_hosts_memory(make_server):
    # Without memory at hand, which would be counted as the launchers'.
    server = make_server(["--set", f"max_deleted_mb={FILES * EACH_MB + 100}", "--set", "resume_reserve_mb=0"])
    rest = Rest(server)
    made, pid, before = hold(server, rest)
    assert len(set(before)) == FILES + 51
    assert rest.post(f"/sandboxes/{made['sandboxID']}/pause", {}).status == 204
    assert max(map(peak_mb, launchers(server))) < MOST_BESIDE_MB
    assert rest.post(f"/sandboxes/{made['sandboxID']}/connect", {"timeout": 600}).status in (200, 201)
    assert max(map(peak_mb, launchers(server))) < MOST_BESIDE_MB
    after = Envd(server, made, 240).run(f"rm /root/digests; kill -USR1 {pid}; {READ}", user="root")[0]
    assert json.loads(after) == before
    rest.kill(made)


def test_too_many_are_refused_and_the_sandbox_runs_on(make_server):
    server = make_server(["--set", f"max_deleted_mb={FILES * EACH_MB // 2}"])
    rest = Rest(server)
    made, pid, before = hold(server, rest)
    for action in ("pause", "snapshots", "fork"):
        refused = rest.post(f"/sandboxes/{made['sandboxID']}/{action}", {})
        assert_error(refused, 413, "deleted files")
        assert rest.detail(made)["state"] == "running"
    # Its files alone can be saved.
    assert rest.post(f"/sandboxes/{made['sandboxID']}/pause", {"memory": False}).status == 204
    rest.kill(made)
