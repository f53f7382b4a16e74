"""Processes of sandboxes as the host sees them."""

from __future__ import annotations

from pathlib import Path


def envd_pid(sandbox_id: str) -> int:
    """The host's pid of a sandbox's envd: PID 1 of the processes in that sandbox's cgroup."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            inside = sandbox_id in (entry / "cgroup").read_text()
            status = (entry / "status").read_text() if inside else ""
        except OSError:
            continue
        numbers = [line.split()[1:] for line in status.splitlines() if line.startswith("NSpid:")]
        if numbers and numbers[0][-1] == "1":
            return int(entry.name)
    raise AssertionError(f"no envd of {sandbox_id}")
