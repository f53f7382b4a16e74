"""Rows 45 and 46: secrets that must not be where they can be found."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import os
import sqlite3
import urllib.request
import uuid
from pathlib import Path
from urllib.parse import quote

import pytest
from guest import Guest
from probes import probe
from world import World

from support.envd import Envd
from support.hunt import memory_of
from support.rest import Rest
from support.server import CaissonServer

# Searches environments, command lines and memory of every process, and all files of its own.
SEARCH = """
import stat, re
words = [bytes.fromhex(w)[::-1] for w in args[0]]  # reversed, so that this script is no hit
found, looked = [], 0
def look(name, data):
    global looked
    looked += 1
    found.extend("%s: word %d" % (name, i) for i, w in enumerate(words) if w in data)
me = str(os.getpid())
for pid in filter(str.isdigit, os.listdir("/proc")):
    if pid == me:
        continue
    for name in ("environ", "cmdline", "comm"):
        try:
            look("/proc/%s/%s" % (pid, name), open("/proc/%s/%s" % (pid, name), "rb").read())
        except OSError:
            pass
    try:
        memory = open("/proc/%s/mem" % pid, "rb", 0)
        for line in open("/proc/%s/maps" % pid):
            start, end = (int(n, 16) for n in re.match("([0-9a-f]+)-([0-9a-f]+) r", line).groups())
            if end - start > 1 << 28:
                continue
            try:
                memory.seek(start)
                look("memory of %s at %x" % (pid, start), memory.read(end - start))
            except (OSError, ValueError, OverflowError):
                pass
    except (OSError, AttributeError):
        pass
for top in ("/home", "/root", "/etc", "/tmp", "/run", "/var", "/.caisson", "/opt", "/srv", "/mnt"):
    for directory, _, names in os.walk(top):
        for name in names:
            path = os.path.join(directory, name)
            try:
                if stat.S_ISREG(os.lstat(path).st_mode):
                    look(path, open(path, "rb").read(32 << 20))
            except OSError:
                pass
print(json.dumps([looked, found]))
"""


@probe(45)
@pytest.mark.timeout(120)
def test_secrets_are_not_inside(guest: Guest, world: World):
    """Not the server's key, not its secret, not the neighbour's token or value: not even in the
    memory of envd, which root inside may read."""
    words = [word.encode("latin-1")[::-1].hex() for word in world.secrets]
    assert len(words) == 5
    looked, found = guest.python(SEARCH, words, timeout=100)
    assert looked > 500 and found == [], found


@probe(45)
def test_ones_own_token_is_not_in_the_environment(guest: Guest):
    token = guest.made["envdAccessToken"]
    assert token not in guest.run("env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null").out
    hits = guest.run(f"grep -rl {token[:10]} /home /root /etc /run /var /.caisson 2>/dev/null").out
    assert hits == "", hits


def known_inside(server: CaissonServer, made: dict, calls: bytes, words: list[str]) -> list[str]:
    """Where root in a sandbox finds one of these words."""
    reversed_words = [word.encode()[::-1].hex() for word in words]
    looked, found = Guest(server, made, "root", calls).python(SEARCH, reversed_words, timeout=100)
    assert looked > 500
    return found


def written_in(directory: Path, words: list[str]) -> list[str]:
    """The files that have one of these words in them."""
    found, looked = [], 0
    for path in directory.rglob("*"):
        if path.is_file():
            looked += 1
            content = path.read_bytes()
            found += [str(path) for word in words if word.encode() in content]
    assert looked > 1
    return found


def inside_token(server: CaissonServer, made: dict) -> str:
    """What envd asks for, as src/sandbox/secrets.cc makes it."""
    secret = (server.data_dir / "secret").read_text().strip()
    return hmac.new(secret.encode(), f"inside:{made['sandboxID']}".encode(), "sha256").hexdigest()


@probe(45)
@pytest.mark.timeout(300)
def test_no_token_enters_a_sandbox_or_its_copies(server: CaissonServer, rest: Rest, calls: bytes, world):
    """A copy has all that was in its origin's memory. So what a client proves itself with, by header or by
    signature, stays outside; and what envd takes in its place, which the copies do have, opens nothing."""
    family = [rest.create(timeout=600)]
    try:
        for _ in range(2):  # a copy, and a copy of the copy
            sandbox = Guest(server, family[-1], "root", calls).sandbox
            sandbox.files.write("/root/note", "by header")
            for _ in range(20):  # many requests, many buffers
                with urllib.request.urlopen(sandbox.download_url("/root/note", user="root"), timeout=30) as signed:
                    assert signed.read() == b"by header"
            forked = rest.post(f"/sandboxes/{sandbox.sandbox_id}/fork", {"count": 1, "timeout": 600})
            assert forked.status == 201, forked
            family.append(forked.json()[0]["sandbox"])
        tokens = [made["envdAccessToken"] for made in family]
        inside = [inside_token(server, made) for made in family]
        for made, own in zip(family, inside, strict=True):
            assert known_inside(server, made, calls, tokens) == []
            assert known_inside(server, made, calls, [own]) != []  # what is there, the search finds
        assert rest.post(f"/sandboxes/{family[-1]['sandboxID']}/pause", {}).status == 204
        assert written_in(server.data_dir / "engine/saved", tokens) == []
        assert written_in(server.data_dir / "engine/saved", inside) != []
        assert known_inside(server, family[-1], calls, tokens) == []  # connecting resumes
        for made, own in zip(family, inside, strict=True):
            envd = Envd(server, made)
            assert envd.unary("process.Process/List", {}, token=own).status == 401
            for token, status in ((own, 401), (made["envdAccessToken"], 200)):
                digest = hashlib.sha256(f"/root/note:read:root:{token}".encode()).digest()
                signature = quote("v1_" + base64.b64encode(digest).decode().rstrip("="), safe="")
                signed = f"/files?path=/root/note&username=root&signature={signature}"
                assert envd.request("GET", signed, token=None).status == status
    finally:
        for made in family:
            rest.kill(made)


@probe(45)
@pytest.mark.timeout(120)
def test_who_handles_what_sandboxes_send_knows_no_secret(server: CaissonServer, world):
    """The engine, and above all its resolver, which reads whatever a guest likes to send."""
    secret = (server.data_dir / "secret").read_text().strip()
    titles = {pid: Path(f"/proc/{pid}/cmdline").read_bytes().strip(b"\0").decode() for pid in server.program_pids()}
    others = {pid: title for pid, title in titles.items() if title.startswith("caisson: ")}
    assert {"caisson: engine", "caisson: launcher", "caisson: resolver"} <= set(others.values())
    for pid, title in others.items():
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):  # a launcher may end
            for piece in memory_of(pid):
                assert server.api_key.encode() not in piece and secret.encode() not in piece, title
    resolver = next(pid for pid, title in others.items() if title == "caisson: resolver")
    assert Path(f"/proc/{resolver}/environ").read_bytes() == b""
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{resolver}/status").read_text().splitlines())
    assert status["Uid"].split()[0] != "0" and int(status["CapEff"], 16) == 0 and status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"
    opened = {os.readlink(entry).split(":")[0] for entry in Path(f"/proc/{resolver}/fd").iterdir() if int(entry.name) > 2}
    assert opened <= {"socket", "anon_inode"}, opened


@probe(45)
@pytest.mark.timeout(120)
def test_no_secret_is_written_down_outside(make_server, small_template):
    """Keys, tokens, signatures and values of environments: not in logs, not in the database, not in
    any file of the data directory, not on command lines or in environments of our processes."""
    server = make_server(
        env={"CAISSON_LOG_LEVEL": "debug", "CAISSON_TEMPLATE_DIR": str(small_template)}
    )
    rest = Rest(server)
    names = ("key", "token", "env", "signature", "basic", "cookie", "traffic", "query", "body")
    planted = {name: f"{name}-{uuid.uuid4().hex}" for name in names}
    made = rest.create(
        envVars={"GITHUB_TOKEN": planted["env"]}, network={"allowPublicTraffic": False}
    )
    envd = Envd(server, made)
    envd.run("echo $GITHUB_TOKEN > /home/user/.git-credentials; env")
    rest.get("/v2/sandboxes", key=planted["key"])
    rest.get(f"/v2/sandboxes?api_key={planted['query']}&token={planted['query']}", key=None)
    rest.get(
        "/v2/sandboxes",
        headers={"Cookie": planted["cookie"], "Authorization": f"Bearer {planted['basic']}"},
    )
    envd.unary("process.Process/List", {}, token=planted["token"])
    envd.unary("process.Process/Nothing", {"value": planted["body"]})
    for key in ({"key": None}, {}):
        rest.get(f"/files?path=x&signature={planted['signature']}", **key)
    rest.get(
        "/",
        key=None,
        headers={
            "Host": f"80-{made['sandboxID']}.{made['domain']}",
            "E2b-Traffic-Access-Token": planted["traffic"],
        },
    )
    rest.post("/v2/sandboxes", b'{"templateID":"base","envVars":{"S":"' + planted["body"].encode())
    told = rest.get(f"/v2/sandboxes/{made['sandboxID']}/logs").body
    told += rest.get("/metrics").body + rest.get(f"/sandboxes/{made['sandboxID']}").body
    for pid in server.program_pids():
        for name in ("cmdline", "environ"):
            with open(f"/proc/{pid}/{name}", "rb") as shown:
                told += shown.read()
    secret = {
        **planted,
        "api key": server.api_key,
        "envd token": made["envdAccessToken"],
        "traffic token": made["trafficAccessToken"],
        "server secret": (server.data_dir / "secret").read_bytes().strip().decode("latin-1"),
    }
    rest.kill(made)
    server.stop()
    told += server.log_path.read_bytes()
    told += server.stdout_path.read_bytes().replace(server.api_key.encode(), b"")  # printed once
    # What was asked for the detail of a sandbox is answered with its token, to its owner.
    told = told.replace(f'"envdAccessToken":"{made["envdAccessToken"]}"'.encode(), b"")
    for name, value in secret.items():
        assert value.encode("latin-1") not in told, f"{name} was told"
    _search_files(server, secret)
    server.restart()


def _search_files(server: CaissonServer, secret: dict[str, str]) -> None:
    with sqlite3.connect(server.data_dir / "db/caisson.db") as database:
        dump = "\n".join(database.iterdump())
    assert "api_keys" in dump
    for name, value in secret.items():
        assert value not in dump, f"{name} is in the database"
    for directory, _, files in os.walk(server.data_dir):
        for file in files:
            path = os.path.join(directory, file)
            if file in ("api-key", "secret") or not os.path.isfile(path) or os.path.islink(path):
                continue
            if os.path.getsize(path) > 64 << 20:  # sparse images that disks are made from
                continue
            with open(path, "rb") as opened:
                data = opened.read()
            for name, value in secret.items():
                assert value.encode("latin-1") not in data, f"{name} is in {path}"


# ---- what does not exist yet --------------------------------------------------------------------


def absent(rest: Rest, *paths: str) -> None:
    for path in paths:
        for method in ("GET", "POST"):
            answer = rest.request(method, path, {} if method == "POST" else None)
            assert answer.status in (404, 405, 501), (method, path, answer)


@probe(46)
def test_there_are_no_placeholder_secrets(rest: Rest, world: World):
    """The server holds no secrets for sandboxes and swaps none into their traffic."""
    absent(rest, "/secrets", "/v2/secrets", "/api/v1/secrets")
