"""What must never be written down: keys, tokens, values of environments."""

from __future__ import annotations

import json
import os
import stat
import uuid

import pytest

from support.envd import Envd
from support.rest import Rest
from support.server import CaissonServer


@pytest.mark.quick
def test_the_key_file(server: CaissonServer):
    path = server.data_dir / "api-key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    key = path.read_text().strip()
    assert key.startswith("e2b_") and len(key) == 44
    int(key[4:], 16)


@pytest.mark.timeout(120)
def test_no_secret_in_logs_or_database(make_server):
    server = make_server(env={"CAISSON_LOG_LEVEL": "debug"})
    rest = Rest(server)
    planted = {
        name: f"{name}-{uuid.uuid4().hex}"
        for name in ("key", "token", "env", "signature", "basic", "cookie", "traffic")
    }
    made = rest.create(envVars={"SECRET": planted["env"]}, network={"allowPublicTraffic": False})
    envd = Envd(server, made)
    envd.run("echo $SECRET")
    rest.get("/v2/sandboxes", key=planted["key"])
    rest.get(
        "/v2/sandboxes",
        headers={"Cookie": planted["cookie"], "Authorization": f"Bearer {planted['basic']}"},
    )
    envd.unary("process.Process/List", {}, token=planted["token"])
    envd.request("GET", f"/files?path=x&signature={planted['signature']}", token=None)
    rest.get(f"/files?path=x&signature={planted['signature']}", key=None)
    rest.get(
        "/",
        key=None,
        headers={
            "Host": f"80-{made['sandboxID']}.{made['domain']}",
            "E2b-Traffic-Access-Token": planted["traffic"],
        },
    )
    rest.post("/v2/sandboxes", b'{"templateID":"base","envVars":{"S":"' + planted["env"].encode())
    real = {
        "api key": server.api_key,
        "envd token": made["envdAccessToken"],
        "traffic token": made["trafficAccessToken"],
    }
    rest.kill(made)
    server.stop()
    written = server.log_path.read_bytes() + server.stdout_path.read_bytes()
    for name, value in planted.items():
        assert value.encode() not in written, f"{name} is in the log"
    for name in ("envd token", "traffic token"):
        assert real[name].encode() not in written, f"{name} is in the log"
    assert real["api key"].encode() not in server.log_path.read_bytes()
    for directory, _, names in os.walk(server.data_dir):
        for name in names:
            path = os.path.join(directory, name)
            if name == "api-key" or not os.path.isfile(path) or os.path.islink(path):
                continue
            if os.path.getsize(path) > 64 << 20:  # the sparse image disks are made from
                continue
            with open(path, "rb") as opened:
                data = opened.read()
            assert real["api key"].encode() not in data, f"the API key is in {path}"
    server.restart()


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
