"""Rows 23 to 29: taking everything. All of it under the outer limits of conftest.py, bounded in
time, and each with a look at the neighbour, at the server's memory and at what the API says."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from e2b import InvalidArgumentException
from guest import Guest, assert_refused
from probes import probe
from world import World

from support.envd import Envd
from support.processes import envd_pid
from support.rest import Rest
from support.server import CaissonServer

pytestmark = pytest.mark.timeout(120)

MAX_GROWTH = 96 << 20  # of all processes of the server together, while somebody floods them
PIDS = 256


def resident(server: CaissonServer) -> int:
    """Bytes of memory of the server's processes."""
    total = 0
    for pid in server.program_pids():
        with open(f"/proc/{pid}/statm") as statm:
            total += int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return total


def wait_until(condition: Callable[[], bool], what: str, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.1)


def story(rest: Rest, sandbox_id: str) -> str:
    entries = rest.get(f"/sandboxes/{sandbox_id}/logs").json()["logEntries"]
    return "\n".join(entry["message"] for entry in entries)


# ---- 23: processes ----------------------------------------------------------------------------

FORK_BOMB = """
import time
made, refused, begun = [], False, time.time()
while time.time() < begun + 3 or not refused and time.time() < begun + 60:
    try:
        child = os.fork()
    except OSError:
        refused = True
        time.sleep(0.01)
        continue
    if child == 0:
        time.sleep(300)
        os._exit(0)
    made.append(child)
for child in made:
    os.kill(child, 9)
    os.waitpid(child, 0)
print(json.dumps(len(made)))
"""


@probe(23)
def test_fork_bomb(guest: Guest, world: World):
    results: list[object] = []
    bomb = threading.Thread(target=lambda: results.append(guest.python(FORK_BOMB, timeout=100)))
    bomb.start()
    times = 0
    while bomb.is_alive():
        world.neighbour_answers()
        times += 1
    bomb.join()
    assert times > 0
    assert results and PIDS // 2 < results[0] < PIDS, results
    wait_until(lambda: guest.run("echo well").out == "well\n", "the sandbox itself works again")


@probe(23)
def test_the_classic_fork_bomb_is_over_with_its_sandbox(fresh: Guest, world: World, rest: Rest):
    fresh.sandbox.commands.run("bomb() { bomb | bomb & }; bomb", background=True, timeout=20)
    time.sleep(2)
    world.neighbour_answers()
    assert rest.kill(fresh.id).status == 204
    assert rest.get(f"/sandboxes/{fresh.id}").status == 404


# ---- 24: memory -------------------------------------------------------------------------------


@probe(24)
@pytest.mark.parametrize("how", ["anonymous", "shared", "memfd", "shm file", "pipes", "tmpfs"])
def test_memory_bombs(guest: Guest, world: World, how: str):
    bombs = {
        "anonymous": "b = bytearray(2 << 30)",
        "shared": "import mmap; m = mmap.mmap(-1, 2 << 30)\n"
        "for i in range(0, 2 << 30, 4096): m[i] = 1",
        "memfd": "import os; f = os.memfd_create('x')\nwhile True: os.write(f, bytes(1 << 20))",
        "shm file": "f = open('/dev/shm/bomb', 'wb')\nwhile True: f.write(bytes(1 << 20))",
        "pipes": "import os, fcntl\np = []\nwhile True:\n r, w = os.pipe()\n p.append((r, w))\n"
        " fcntl.fcntl(w, 1031, 1 << 20)\n os.set_blocking(w, False)\n"
        " os.write(w, bytes(1 << 20))",
        "tmpfs": "import os; os.mkdir('/tmp/t')\n"
        "assert os.system('mount -t tmpfs -o size=9g t /tmp/t') == 0",
    }
    script = bombs[how].replace("'", "'\\''")
    done = guest.run(f"python3 -c '{script}'; code=$?; rm -rf /dev/shm/bomb /tmp/t; exit $code", 60)
    assert done.code != 0, done
    world.neighbour_answers()
    assert guest.run("echo well").out == "well\n"


@probe(24)
def test_locked_memory_and_huge_pages(guest: Guest):
    locked = guest.run("""python3 -c "
import ctypes, mmap
libc = ctypes.CDLL(None, use_errno=True)
print(libc.mlockall(3))
m = mmap.mmap(-1, 64 << 20)
start = ctypes.addressof(ctypes.c_char.from_buffer(m))
print(libc.mlock(ctypes.c_void_p(start), ctypes.c_size_t(64 << 20)))
print(libc.syscall(29, 0, ctypes.c_size_t(8 << 20), 0o4000 | 0o1000))  # shmget(SHM_HUGETLB)
" """).out.split()
    assert locked == ["-1", "-1", "-1"], locked
    assert guest.run("grep -h . /sys/kernel/mm/hugepages/*/free_hugepages | sort -u").out == "0\n"


@probe(24)
def test_the_reason_of_a_kill_is_told(guest: Guest, rest: Rest):
    done = guest.run("python3 -c 'b = bytearray(2 << 30)'; echo ended $?")
    assert "ended 137" in done.out, done  # SIGKILL, as the kernel does it
    wait_until(lambda: "ran out of" in story(rest, guest.id), "the story tells of memory")


@probe(24)
def test_huge_pages_that_the_host_has_set_aside(guest: Guest):
    """No memory limit counts them."""
    pool = Path("/proc/sys/vm/nr_hugepages")
    before = pool.read_text()
    pool.write_text("8")
    try:
        assert int(pool.read_text()) > 0, "this host gives no huge pages, so this shows nothing"
        assert_refused(guest.calls("huge"), {"ENOMEM", "EINVAL"})
    finally:
        pool.write_text(before)


# ---- 25: disk ---------------------------------------------------------------------------------


@probe(25)
def test_full_disk(guest: Guest, world: World, server: CaissonServer):
    before = os.statvfs(server.data_dir)
    done = guest.run(
        "dd if=/dev/zero of=/home/user/fill bs=1M count=1000 2>&1 | tail -1; "
        "cat /dev/zero > /home/user/more",
        60,
    )
    assert "No space left" in done.out + done.err, done
    assert "well" in guest.run("echo well").out
    after = os.statvfs(server.data_dir)
    used = (before.f_bavail - after.f_bavail) * before.f_frsize
    assert used < 1 << 30  # others write on this disk, too; a sandbox may have 192 MB
    world.neighbour_answers()
    guest.run("rm -f /home/user/fill /home/user/more")
    assert guest.run("f=$(mktemp) && echo again > $f && cat $f").out == "again\n"


@probe(25)
def test_sparse_and_preallocated_files(guest: Guest):
    assert (
        guest.run("truncate -s 1T /home/user/sparse && stat -c %b /home/user/sparse").out == "0\n"
    )
    assert guest.run("cat /home/user/sparse | head -c 1000000 | wc -c").out == "1000000\n"
    assert guest.run("fallocate -l 10G /home/user/allocated").code != 0
    guest.run("rm -f /home/user/sparse /home/user/allocated")


MANY_FILES = """
made = 0
os.makedirs("/home/user/many", exist_ok=True)
try:
    for made in range(1000000):
        os.mknod("/home/user/many/%d" % made)
except OSError as error:
    print(json.dumps([made, error.strerror]))
"""
DEEP = """
os.makedirs("/home/user/deep", exist_ok=True)
os.chdir("/home/user/deep")
depth = 0
try:
    for depth in range(3000):
        os.mkdir("d" * 200)
        os.chdir("d" * 200)
except OSError as error:
    pass
print(json.dumps(depth))
"""


@probe(25)
def test_many_files(fresh: Guest, world: World):
    made, why = fresh.python(MANY_FILES, timeout=90)
    assert made > 1000 and why == "No space left on device"
    world.neighbour_answers()


@probe(25)
def test_deep_directories(guest: Guest):
    assert guest.python(DEEP, timeout=60) > 100
    # The files API walks such trees for clients; it must neither crash nor hang.
    try:
        assert len(guest.sandbox.files.list("/home/user/deep", depth=200)) > 10
    except InvalidArgumentException as error:
        assert "File name too long" in str(error)
    guest.sandbox.files.remove("/home/user/deep")
    assert "deep" not in guest.run("ls /home/user").out


# ---- 27: floods -------------------------------------------------------------------------------


@probe(27)
def test_output_nobody_reads(guest: Guest, world: World, server: CaissonServer):
    before = resident(server)
    envd = Envd(server, guest.made)
    streams = [envd.start("exec cat /dev/zero", user=guest.account) for _ in range(4)]
    try:
        highest = 0
        end = time.monotonic() + 5
        while time.monotonic() < end:
            highest = max(highest, resident(server))
            world.neighbour_answers()
        assert highest - before < MAX_GROWTH, f"grew by {(highest - before) >> 20} MB"
    finally:
        for stream in streams:
            stream.close()
        guest.run("pkill -9 -x cat; true", user="root")


@probe(27)
def test_output_flood_with_a_reader(guest: Guest, server: CaissonServer):
    """Hundreds of megabytes without a line end: the client gets them, the server keeps none."""
    before, received, highest = resident(server), 0, 0
    envd = Envd(server, guest.made)
    stream = envd.start("head -c 400000000 /dev/zero", user=guest.account)
    try:
        while received < 200_000_000:
            piece = stream.answer.read1(1 << 20)
            assert piece, "the stream ended early"
            before_piece, received = received, received + len(piece)
            if received >> 24 != before_piece >> 24:  # every 16 MB
                highest = max(highest, resident(server))
    finally:
        stream.close()
        guest.run("pkill -9 -x head; true", user="root")
    assert highest - before < MAX_GROWTH, f"grew by {(highest - before) >> 20} MB"


# ---- 28: processor ----------------------------------------------------------------------------


@probe(28)
def test_spinning_processors(guest: Guest, world: World):
    spin = "for i in $(seq 64); do (while :; do :; done) & done; wait"
    handle = guest.sandbox.commands.run(spin, background=True, timeout=60, user=guest.account)
    try:
        time.sleep(1)
        for _ in range(3):
            assert guest.run("echo still here").out == "still here\n"
            world.neighbour_answers()
    finally:
        handle.kill()
        guest.run("pkill -9 -x bash; true", user="root")


# ---- 29: envd ---------------------------------------------------------------------------------


@probe(29)
def test_envd_cannot_be_killed_from_inside(guest: Guest):
    for number in ("KILL", "STOP", "TERM", "SEGV", "ABRT"):
        guest.run(f"kill -{number} 1")
    assert guest.run("kill -9 -1; echo").code in (0, -1, 137)
    assert guest.run("echo well").out == "well\n"


@probe(29)
def test_envd_held_by_a_debugger_is_reported_and_recovers(fresh: Guest, rest: Rest, server):
    """Root inside may trace envd and so stop it: that is seen, told, and over when it lets go."""
    hold_it = (
        "import ctypes, time, os\n"
        "if os.fork() == 0:\n"
        " os.setsid()\n"
        " l = ctypes.CDLL(None)\n"
        " l.ptrace(16, 1, 0, 0)\n"
        " time.sleep(8)\n"
        " l.ptrace(17, 1, 0, 0)\n"
        " os._exit(0)\n"
    )
    fresh.sandbox.files.write("/tmp/hold.py", hold_it)
    fresh.sandbox.commands.run(
        "python3 /tmp/hold.py > /dev/null 2>&1 < /dev/null &", background=True, user="root"
    )
    time.sleep(1)
    envd = Envd(server, fresh.made)
    assert envd.request("GET", "/health").status in (204, 502)
    wait_until(lambda: envd.request("GET", "/health").status == 204, "envd answers again", 40)
    assert fresh.run("echo well").out == "well\n"


@probe(29)
def test_killed_envd_ends_the_sandbox_with_a_reason(fresh: Guest, rest: Rest, server):
    os.kill(envd_pid(fresh.id), signal.SIGKILL)
    wait_until(lambda: rest.get(f"/sandboxes/{fresh.id}").status == 404, "the sandbox is gone")
    answer = Envd(server, fresh.made).request("GET", "/health")
    assert answer.status == 502 and "was not found" in answer.json()["message"]
    assert "envd" in story(rest, fresh.id)


@probe(29)
def test_stopped_envd_is_reported_and_recovers(fresh: Guest, rest: Rest, server):
    pid = envd_pid(fresh.id)
    envd = Envd(server, fresh.made)
    os.kill(pid, signal.SIGSTOP)
    try:
        assert envd.request("GET", "/health").status == 502
        wait_until(lambda: "envd" in story(rest, fresh.id), "the story tells of envd")
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_until(lambda: envd.request("GET", "/health").status == 204, "envd answers again")
