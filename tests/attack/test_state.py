"""Rows 43 and 44: what is saved of a sandbox, and what is left of a dead one."""

from __future__ import annotations

import os
import secrets

import pytest
from guest import REFUSED, Guest, assert_refused
from probes import probe

from support.envd import Envd
from support.rest import Rest
from support.server import CaissonServer

pytestmark = pytest.mark.timeout(120)

IDENTITY = "cat /proc/sys/kernel/random/uuid; head -c 16 /dev/urandom | base64; date +%s"


@probe(43)
def test_snapshots_of_others(server: CaissonServer, rest: Rest, other_key: str, world):
    with rest.sandbox() as made:
        saved = rest.post(f"/sandboxes/{made['sandboxID']}/snapshots", {})
        assert saved.status == 201, saved
        snapshot = saved.json()["snapshotID"]
        try:
            listed = rest.get("/snapshots", key=other_key)
            assert listed.status == 200 and snapshot not in listed.body.decode()
            for name in (snapshot, snapshot.split(":")[0]):
                used = rest.post(
                    "/v2/sandboxes", {"templateID": name, "timeout": 60}, key=other_key
                )
                assert used.status in (400, 403, 404), used
                assert rest.delete(f"/templates/{name}", key=other_key).status in (403, 404)
            own = rest.post("/v2/sandboxes", {"templateID": snapshot, "timeout": 60})
            assert own.status == 201, own
            rest.kill(own.json())
        finally:
            rest.delete(f"/templates/{snapshot}")


@probe(43)
def test_paused_sandboxes_of_others(rest: Rest, other_key: str, world):
    made = rest.create()
    path = f"/sandboxes/{made['sandboxID']}"
    try:
        assert rest.post(f"{path}/pause", {}).status == 204
        for action, body in (
            ("resume", {"timeout": 60}),
            ("connect", {"timeout": 60}),
            ("snapshots", {}),
            ("fork", {"count": 1}),
        ):
            assert rest.post(f"{path}/{action}", body, key=other_key).status == 404, action
        assert rest.delete(path, key=other_key).status == 404
        assert rest.detail(made)["state"] == "paused"
    finally:
        rest.kill(made)


@probe(43)
def test_forks_are_not_twins(server: CaissonServer, rest: Rest, world):
    """The kernel's random numbers, the ids and the tokens of two copies of one sandbox differ from
    each other and from the original's; the token of one opens none of the others."""
    with rest.sandbox() as made:
        forked = rest.post(f"/sandboxes/{made['sandboxID']}/fork", {"count": 2, "timeout": 120})
        assert forked.status == 201, forked
        copies = [entry["sandbox"] for entry in forked.json()]
        try:
            assert len({c["sandboxID"] for c in [made, *copies]}) == 3
            assert len({c["envdAccessToken"] for c in [made, *copies]}) == 3
            stolen = Envd(server, copies[0]).unary(
                "process.Process/List", {}, token=made["envdAccessToken"]
            )
            assert stolen.status == 401, stolen
            shown = [Envd(server, c).run(IDENTITY)[0].split() for c in [made, *copies]]
            for position in (0, 1):  # a fresh UUID, fresh bytes
                assert len({s[position] for s in shown}) == 3, shown
            clocks = [int(s[-1]) for s in shown]
            assert max(clocks) - min(clocks) < 30, clocks
        finally:
            for copy in copies:
                rest.kill(copy)


@probe(43)
def test_walls_stand_after_a_resume(server: CaissonServer, rest: Rest, calls: bytes, world):
    """A continued sandbox is built by another way than a new one; it must be the same prison."""
    looks = (
        "cat /proc/sys/user/max_inotify_*; grep -c . /proc/keys; ls -A /sys/firmware /proc/pressure; "
        "awk '{print $2, substr($4, 1, 2)}' /proc/self/mounts | sort; ulimit -Hc; ulimit -Hn; "
        "grep -E 'Cap|Seccomp|NoNew' /proc/self/status; cat /proc/self/uid_map | wc -l; "
        "grep -o max=[0-9]* /proc/self/mounts"
    )
    groups = ("mounts", "namespaces", "kernel", "keys", "machine", "handles")
    made = rest.create()
    try:
        def seen(guest: Guest) -> tuple[str, dict]:
            return guest.run(looks).out, guest.calls("sockets")

        before = {a: seen(Guest(server, made, a, calls)) for a in ("root", "user")}
        assert rest.post(f"/sandboxes/{made['sandboxID']}/pause", {}).status == 204
        for account, shown in before.items():
            guest = Guest(server, made, account, calls)  # connecting resumes
            assert seen(guest) == shown, account
            for group in groups:
                assert_refused(
                    guest.calls(group), REFUSED | {"EINVAL", "EAFNOSUPPORT", "EOPNOTSUPP"}
                )
    finally:
        rest.kill(made)


# Keeps a file open whose name is gone, and that may have another one; where its directory was stands a link.
SWAPPED = """
import signal
top, target, linked = args
os.makedirs(top + "/d")
fd = os.open(top + "/d/f", os.O_RDWR | os.O_CREAT)
os.write(fd, b"content")
if linked: os.link(top + "/d/f", top + "/other")
os.unlink(top + "/d/f")
os.rmdir(top + "/d")
os.symlink(target, top + "/d")
def tell(*_):
    with open(top + "/new", "wb") as file:
        file.write(os.pread(fd, 100, 0))
    os.rename(top + "/new", top + "/said")
signal.signal(signal.SIGUSR1, tell)
child = os.fork()
if child == 0:
    os.setsid()
    [os.close(number) for number in (0, 1, 2)]
    while True: signal.pause()
print(json.dumps(child))
"""


@probe(43)
@pytest.mark.parametrize("linked", [True, False], ids=["with another name", "without a name"])
def test_a_directory_that_became_a_link_leads_saving_nowhere(server: CaissonServer, rest: Rest, calls: bytes, world,
                                                             linked: bool):
    """Who saves a process, or lets it go on, gives such a file a name where it was. The place is in the sandbox,
    whatever it is now."""
    targets = ("/etc", "/tmp", "../../../../../../tmp", str(server.data_dir), "/proc/1/root/etc")
    for number, target in enumerate(targets):
        before = {place: sorted(os.listdir(place)) for place in ("/etc", server.data_dir)}
        made = rest.create(timeout=600)
        try:
            guest = Guest(server, made, "root", calls)
            holder = guest.python(SWAPPED, f"/root/{number}", target, linked)
            assert rest.post(f"/sandboxes/{made['sandboxID']}/pause", {}).status == 204, target
            guest = Guest(server, made, "root", calls)  # connecting resumes
            said = f"/root/{number}/said"
            assert guest.run(f"kill -USR1 {holder}; until [ -e {said} ]; do sleep 0.01; done; cat {said}").out == "content"
            assert {place: sorted(os.listdir(place)) for place in before} == before, target
            assert not [name for name in os.listdir("/tmp") if "link_remap" in name or "ghost" in name]
        finally:
            rest.kill(made)


FIND = """
# Everything a guest can allocate without writing to it: blocks of the disk, pages of memory.
import mmap
mark = args[0].encode()
path, found = "/home/user/blocks", 0
fd = os.open(path, os.O_RDWR | os.O_CREAT)
size = 120 << 20
os.posix_fallocate(fd, 0, size)
for at in range(0, size, 1 << 20):
    found += mark in os.pread(fd, 1 << 20, at)
memory = mmap.mmap(-1, 100 << 20)
found += memory.find(mark) >= 0
os.unlink(path)
print(json.dumps(found))
"""


@probe(44)
def test_what_a_deleted_sandbox_left(server: CaissonServer, rest: Rest, calls: bytes, world):
    mark = f"left-{secrets.token_hex(16)}"
    for _ in range(2):
        with rest.sandbox() as made:
            done = Envd(server, made).run(
                f"yes {mark} | head -c 130000000 > /home/user/data; sync; ls -s /home/user/data"
            )
            assert done[2].get("exitCode", 0) == 0, done
    with rest.sandbox() as made:
        for account in ("root", "user"):
            assert Guest(server, made, account, calls).python(FIND, mark, timeout=60) == 0
