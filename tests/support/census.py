"""What the sandboxes of one server have on the host, counted from outside the server."""

from __future__ import annotations

import contextlib
import hashlib
import ipaddress
import os
import re
import signal
import socket
from pathlib import Path

from support.connections import connections
from support.server import CaissonServer
from support.waiting import GONE_DEADLINE_S, wait_until_gone


def tag_of(server: CaissonServer) -> str:
    """The eight digits in every name the server gives on the machine; see engine/slot.h."""
    return hashlib.sha256(str(server.data_dir).encode()).hexdigest()[:8]


def processes_by_sandbox(server: CaissonServer) -> dict[str, list[int]]:
    """The processes inside each sandbox of this server, by its id."""
    mark = f"/caisson-{tag_of(server)}/"
    found: dict[str, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                _, inside, path = (entry / "cgroup").read_text().partition(mark)
            except OSError:
                continue
            if inside:
                found.setdefault(re.split(r"[/\s]", path)[0], []).append(int(entry.name))
    return found


def sandbox_pids(server: CaissonServer) -> list[int]:
    """Every process inside a sandbox of this server."""
    return [pid for pids in processes_by_sandbox(server).values() for pid in pids]


def kill_sandbox(server: CaissonServer, sandbox_id: str) -> None:
    """Ends all its processes, as if it had died; with the first of them the others go, too."""
    for pid in processes_by_sandbox(server)[sandbox_id]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def first_processes(pids: list[int]) -> int:
    """How many of these are the first process, envd, of a sandbox."""
    count = 0
    for pid in pids:
        try:
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            continue
        count += bool(re.search(r"^NSpid:.*\t1$", status, re.MULTILINE))
    return count


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()[:80]
    except OSError:
        return "gone"


def _entries(directory: str) -> list[Path]:
    try:
        return list(Path(directory).iterdir())
    except OSError:
        return []


def _target(link: Path) -> str:
    try:
        return os.readlink(link)  # entries of other servers come and go
    except OSError:
        return ""


def _backing_file(device: Path) -> str:
    try:
        return (device / "loop/backing_file").read_text()
    except OSError:
        return ""


def _connections_of_nobody() -> list[str]:
    """Connections that begin at an address of sandboxes which none has at the moment."""
    found = connections()  # before the slots: a new sandbox has its slot first
    taken = {p.name for p in _entries("/run/caisson/slots")}
    network = ipaddress.ip_network("198.18.0.0/15")
    numbers = {one: (int(ipaddress.ip_address(one.source)) - int(network[0]) - 1) // 2
               for one in found if ipaddress.ip_address(one.source) in network}
    return [str(one) for one, number in numbers.items() if str(number) not in taken]


def take(server: CaissonServer) -> dict[str, list[str]]:
    """Kinds of things with their names; kinds without any are left out."""
    tag, data_dir = tag_of(server), str(server.data_dir)
    cgroups = []
    for directory, names, _ in os.walk("/sys/fs/cgroup"):
        if f"/caisson-{tag}" in directory:
            cgroups += [f"{directory}/{name}" for name in names]
    slots = [p for p in _entries("/run/caisson/slots") if _target(p).endswith(":" + data_dir)]
    # The resolver of sandboxes has a slot and a link as long as the engine lives.
    resolver = [p.name for p in slots if ":resolver.:" in _target(p)]
    links = [name for _, name in socket.if_nameindex() if name.startswith(f"cs{tag[:4]}-")]
    census = {
        "processes": [f"{pid} {_command(pid)}" for pid in sandbox_pids(server)],
        "cgroups": cgroups,
        "slots": [p.name for p in slots if p.name not in resolver],
        "links": [name for name in links if name.rpartition("-")[2] not in resolver],
        "loops": [p.name for p in _entries("/sys/block") if _backing_file(p).startswith(data_dir)],
        "files": [p.name for p in _entries(data_dir + "/engine/sandboxes")],
        "connections": _connections_of_nobody(),
        "mounts": [
            line
            for line in Path("/proc/self/mountinfo").read_text().splitlines()
            if data_dir in line
        ],
    }
    return {kind: names for kind, names in census.items() if names}


def saved(server: CaissonServer) -> list[str]:
    """Ids of paused sandboxes and snapshots on disk, and names of what is half made or half gone."""
    return [p.name for p in _entries(f"{server.data_dir}/engine/saved")]


def layers(server: CaissonServer) -> list[str]:
    """Disks of snapshots, and names of those that are half made."""
    entries = _entries(f"{server.data_dir}/engine/layers")
    return [p.name for p in entries if p.name != ".lock"]


def wait_until_empty(server: CaissonServer, deadline_s: float = GONE_DEADLINE_S) -> None:
    """Fails with the list of what is left if anything is after the deadline."""
    wait_until_gone(lambda: take(server), "what sandboxes have on the host", deadline_s)


def wait_until_dead(server: CaissonServer) -> None:
    """Until no process is inside a sandbox: those that were killed take a while to end."""
    wait_until_gone(lambda: sandbox_pids(server), "processes of sandboxes")
