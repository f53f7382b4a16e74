"""Limits around the server and all its sandboxes, set before the first of them exists: if a wall of
a sandbox fails while a bomb goes off, the machine does not go down with it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from support.census import tag_of
from support.server import CaissonServer
from support.waiting import wait_until_gone

ROOT = Path("/sys/fs/cgroup")
MEMORY_BYTES = 3 << 30
PROCESSES = 4000


def _tree(controller: str) -> Path:
    """Where a controller's tree is: of its own (v1), or the one tree (v2)."""
    return ROOT / controller if (ROOT / controller / "cgroup.procs").exists() else ROOT


def _own(controller: str) -> Path:
    """The cgroup this process is in."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        if controller in names.split(",") or (not names and _tree(controller) == ROOT):
            return _tree(controller) / path.lstrip("/")
    raise AssertionError(f"no cgroup of {controller}")


def _limit(directory: Path) -> None:
    wanted = {
        "memory.limit_in_bytes": MEMORY_BYTES,
        "memory.max": MEMORY_BYTES,
        "pids.max": PROCESSES,
    }
    for name, value in wanted.items():
        if (directory / name).exists():
            (directory / name).write_text(str(value))


class OuterLimits:
    def __init__(self) -> None:
        self.before = {c: _own(c) for c in ("memory", "pids")}
        self.made = {c: _tree(c) / f"caisson-attack-{os.getpid()}" for c in ("memory", "pids")}

    def __enter__(self) -> OuterLimits:
        for directory in set(self.made.values()):
            directory.mkdir(exist_ok=True)
            _limit(directory)
            (directory / "cgroup.procs").write_text(str(os.getpid()))
        return self

    def cover(self, server: CaissonServer) -> None:
        """Sandboxes do not live below the server's cgroup but in one beside it: limit that, too."""
        name = f"caisson-{tag_of(server)}"
        # os.walk does not mind cgroups of others that vanish meanwhile.
        covered = [
            Path(directory)
            for controller in ("memory", "pids")
            for directory, _, _ in os.walk(_tree(controller))
            if directory.endswith("/" + name)
        ]
        assert covered, f"no cgroup {name}: the sandboxes of this server cannot be limited"
        for directory in covered:
            _limit(directory)

    def __exit__(self, *_: object) -> None:
        for controller, directory in self.made.items():
            (self.before[controller] / "cgroup.procs").write_text(str(os.getpid()))
            if directory.exists():
                _remove(directory)


def _remove(directory: Path) -> None:
    """Processes that have just ended may keep a cgroup busy for a moment."""

    def left() -> list[str]:
        found = []
        for inner, _, _ in os.walk(directory, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(inner)
            if os.path.exists(inner):
                found.append(f"{inner} with {Path(inner, 'cgroup.procs').read_text().split()}")
        return found

    wait_until_gone(left, "cgroups around the attacks")
