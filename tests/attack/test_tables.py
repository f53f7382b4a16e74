"""Rows 26 and 27: tables of the kernel that all sandboxes share. Under the outer limits of conftest.py."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from guest import Guest
from probes import probe
from world import World

from support.rest import Rest
from support.server import CaissonServer

pytestmark = pytest.mark.timeout(120)

TABLES = """
import ctypes, errno, select, socket
libc = ctypes.CDLL(None, use_errno=True)
results = {}
def exhaust(name, make, most):
    kept, why = [], "no end"
    try:
        while len(kept) < most:
            kept.append(make())
    except OSError as error:
        why = errno.errorcode[error.errno]
    results[name] = [len(kept), why]
    return kept
def raw(call, *arguments):
    result = call(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
    return result
def close(kept):
    for fd in kept:
        fd.close() if hasattr(fd, "close") else os.close(fd)
close(exhaust("files", lambda: os.open("/dev/null", os.O_RDONLY), 600000))
close(exhaust("sockets", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 600000))
close(exhaust("epolls", lambda: raw(libc.epoll_create1, 0), 600000))
chain = [select.epoll()]
try:
    while len(chain) < 100:
        outer = select.epoll()
        outer.register(chain[-1], select.EPOLLIN)
        chain.append(outer)
    results["nested epolls"] = [len(chain), "no end"]
except OSError as error:
    results["nested epolls"] = [len(chain), errno.errorcode[error.errno]]
close(exhaust("inotify", lambda: raw(libc.inotify_init1, 0), 100000))
print(json.dumps(results))
"""


@probe(26)
def test_tables_of_the_kernel(guest: Guest):
    results = guest.python(TABLES, timeout=90)
    for name, (count, why) in results.items():
        assert why in ("EMFILE", "ENOBUFS", "ENOMEM", "ELOOP", "EINVAL"), (name, count, why)
    assert guest.run("echo well").out == "well\n"


HOLD_INOTIFY = """
import ctypes, signal
libc = ctypes.CDLL(None)
count = 0
while libc.inotify_init1(0) >= 0: count += 1
fd, watches = 3, 0
os.makedirs("/tmp/w", exist_ok=True)
print(json.dumps(count), flush=True)
signal.pause()
"""
HOLD_TERMINALS = """
import signal
kept = []
try:
    while True: kept.append(os.openpty())
except OSError: pass
print(json.dumps(len(kept)), flush=True)
signal.pause()
"""


def hold(guest: Guest, script: str) -> tuple[object, Callable[[], None]]:
    """Runs a script that takes all it can get and keeps it: what it printed, and an end to it."""
    name = f"/tmp/hold-{time.monotonic_ns()}.py"
    guest.sandbox.files.write(name, "import json, os\n" + script, user=guest.account)
    shown: list[str] = []
    handle = guest.sandbox.commands.run(
        f"ulimit -n $(ulimit -Hn); exec python3 {name}",
        timeout=60,
        background=True,
        user=guest.account,
    )
    for out, _, _ in handle:
        if out:
            shown.append(out)
            break
    return int("".join(shown)), lambda: (handle.kill(), None)[1]


@probe(26)
def test_inotify_of_one_is_not_that_of_all(guest: Guest, world: World):
    """The kernel counts inotify instances of all sandboxes as the engine's user's."""
    count, end = hold(guest, HOLD_INOTIFY)
    try:
        with open("/proc/sys/fs/inotify/max_user_instances") as limit:
            assert 0 < count <= int(limit.read()) // 2
        out, err, _ = world.neighbour_envd.run(
            "python3 -c 'import ctypes; print(ctypes.CDLL(None).inotify_init1(0) >= 0)'"
        )
        assert out == b"True\n", err
    finally:
        end()


HOLD_FILES = """
import resource, signal
limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
read, write = os.pipe()
for _ in range(100):
    if os.fork() == 0:
        open("/proc/self/oom_score_adj", "w").write("1000")  # not the one who counts is to be killed
        count = 0
        try:
            while os.open("/dev/null", 0) >= 0: count += 1
        except OSError: pass
        os.write(write, b"%d " % count)
        os.close(write)
        signal.pause()
os.close(write)
said = b""
while part := os.read(read, 4096): said += part  # until each has told or was killed for its memory
print(sum(map(int, said.split())), flush=True)
signal.pause()
"""


@probe(26)
def test_files_of_one_are_not_those_of_all(guest: Guest, world: World, server: CaissonServer):
    """They are counted against its memory; without that, and with a limit of the host, it could take them all."""
    count, end = hold(guest, HOLD_FILES)
    try:
        assert count > 100_000
        taken, _, most = map(int, Path("/proc/sys/fs/file-nr").read_text().split())
        assert taken > 100_000 and most > 1 << 32
        world.neighbour_answers()
        assert Rest(server).get("/health").status == 200
    finally:
        end()


MANY_DESCRIPTORS = """
import signal, socket, time
children = []
for _ in range(150):
    children.append(os.fork())
    if children[-1] == 0:
        for _ in range(1000): os.dup(0)
        signal.pause()
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end = time.monotonic() + args[0]
sent = 0
while time.monotonic() < end:
    try: sent += s.sendto(b"x", ("10.1.2.3", 9999))
    except OSError: pass
    time.sleep(0.01)
print(json.dumps(sent), flush=True)
for child in children: os.kill(child, signal.SIGKILL)
"""


def seconds_of(pid: int) -> float:
    """Of a CPU, that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@probe(26)
def test_many_descriptors_do_not_keep_the_engine_busy(guest: Guest, world: World, server: CaissonServer):
    """It looks for the process that tried something in vain, and serves nobody meanwhile: not for longer than is due."""
    engine = next(pid for pid in server.program_pids()
                  if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"caisson: engine"))
    before = seconds_of(engine)
    begun = time.monotonic()
    assert guest.python(MANY_DESCRIPTORS, 6, timeout=90) > 20
    share = (seconds_of(engine) - before) / (time.monotonic() - begun)
    assert share < 0.3, f"the engine computed for {share:.0%} of the time"
    world.neighbour_answers()


@probe(27)
def test_terminals_of_one_are_not_those_of_all(guest: Guest, world: World):
    count, end = hold(guest, HOLD_TERMINALS)
    try:
        assert 100 < count < 2000
        out, err, _ = world.neighbour_envd.run("python3 -c 'import os; print(len(os.openpty()))'")
        assert out == b"2\n", err
    finally:
        end()
