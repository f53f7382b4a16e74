"""The key file, the log, and who the server process is. Secrets are searched for in tests/attack."""

from __future__ import annotations

import json
import os
import stat

import pytest

from support.rest import Rest
from support.server import CaissonServer


@pytest.mark.quick
def test_the_key_file(server: CaissonServer):
    path = server.data_dir / "api-key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    key = path.read_text().strip()
    assert key.startswith("e2b_") and len(key) == 44
    int(key[4:], 16)


@pytest.mark.quick
def test_log_lines_are_json(server: CaissonServer, rest: Rest):
    rest.get("/v2/sandboxes")
    lines = [line for line in server.log_since(0).splitlines() if line.strip()]
    assert lines
    for line in lines:
        entry = json.loads(line)
        assert (
            isinstance(entry, dict)
            and entry.get("level")
            and entry.get("message", entry.get("msg"))
        )


def test_the_server_process_is_not_root(server: CaissonServer):
    """One of the two processes answers HTTP; that one has neither root nor capabilities."""
    owners = {}
    for pid in server.program_pids():
        status = dict(
            line.split(":\t", 1)
            for line in open(f"/proc/{pid}/status").read().splitlines()
            if ":\t" in line
        )
        inodes = set()
        for fd in os.listdir(f"/proc/{pid}/fd"):
            try:
                inodes.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
            except OSError:
                continue
        owners[pid] = (status["Uid"].split()[0], int(status["CapEff"], 16), inodes)
    listening = None
    for line in open("/proc/net/tcp").read().splitlines()[1:]:
        fields = line.split()
        if fields[1].endswith(f":{server.port:04X}") and fields[3] == "0A":
            listening = f"socket:[{fields[9]}]"
    assert listening
    serving = [(uid, caps) for uid, caps, inodes in owners.values() if listening in inodes]
    assert serving, owners.keys()
    assert any(uid != "0" and caps == 0 for uid, caps in serving)
