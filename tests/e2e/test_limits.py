"""Limits per key and per sandbox, and what the API says when one is reached."""

from __future__ import annotations

import json
import re
import resource
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from e2b import RateLimitException, Sandbox
from support.cli import caisson
from support.envd import Envd
from support.rest import Rest, assert_error, assert_refusal
from support.server import CaissonServer

pytestmark = pytest.mark.timeout(180)

# Makes so many processes that live until all are made: says why it could not, if it could not.
CROWD = """python3 -c '
import os, signal
made = []
try:
    for _ in range(80):
        child = os.fork()
        if not child:
            signal.pause()
        made.append(child)
except OSError as error:
    print(error.strerror)
for child in made:
    os.kill(child, 9)
    os.waitpid(child, 0)
'"""


def timeline(rest: Rest, sandbox: dict | str, key: str = "") -> list[dict]:
    """Every event of a sandbox, oldest first, page by page."""
    sandbox_id = sandbox if isinstance(sandbox, str) else sandbox["sandboxID"]
    events, after = [], 0
    while True:
        path = f"/api/v1/sandboxes/{sandbox_id}/timeline?limit=50&after={after}"
        answer = rest.get(path, key=key)
        assert answer.status == 200, answer
        events += answer.json()["events"]
        after = answer.json().get("next", 0)
        if not after:
            return events


def wait_for_event(rest: Rest, sandbox: dict, kind: str, seconds: float = 30) -> dict:
    deadline = time.monotonic() + seconds
    while True:
        found = [event for event in timeline(rest, sandbox) if event["type"] == kind]
        if found:
            return found[0]
        assert time.monotonic() < deadline, timeline(rest, sandbox)
        time.sleep(0.1)


def run(server: CaissonServer, made: dict, script: str) -> str:
    """Runs a shell script inside, to its end, and returns all it printed."""
    out, err, _ = Envd(server, made).run(script)
    return (out + err).decode()


@pytest.fixture(scope="module")
def watchful() -> CaissonServer:
    """A server that samples often, with small sandboxes."""
    server = CaissonServer(["--set", "metrics_interval_ms=200", "--set", "sandbox_disk_mb=64"])
    with server:
        yield server


# -- keys ------------------------------------------------------------------------------------------


def test_too_many_requests_tell_when_to_come_back(make_server: Callable[..., CaissonServer]):
    server = make_server(["--set", "rate_limit=2", "--set", "rate_burst=5"])
    rest = Rest(server)
    with ThreadPoolExecutor(30) as pool:  # one after the other they might be slow enough
        answers = list(pool.map(lambda _: rest.get("/v2/sandboxes"), range(60)))
    refused = [a for a in answers if a.status != 200]
    assert refused and len(refused) < 60
    for answer in refused:
        assert_error(answer, 429, "requests per second")
        assert int(answer.header("Retry-After")) >= 1
    time.sleep(int(refused[-1].header("Retry-After")))
    assert rest.get("/v2/sandboxes").status == 200
    # Somebody without a valid key takes nobody's share.
    for _ in range(10):
        assert rest.get("/v2/sandboxes", key="e2b_" + "0" * 40).status == 401
    # Nor does what asks for no key.
    assert all(rest.get("/health", key=None).status < 300 for _ in range(20))


def test_sandboxes_per_minute_and_at_once(make_server: Callable[..., CaissonServer]):
    server = make_server(["--set", "create_rate_limit=2", "--set", "max_sandboxes_per_key=1"])
    rest = Rest(server)
    made = rest.create()
    full = rest.post("/v2/sandboxes", {"templateID": "base"})
    assert_error(full, 429, "at once")
    assert int(full.header("Retry-After")) >= 1
    rest.kill(made)
    rest.kill(rest.create())
    for _ in range(10):  # the machine may be slow, but not twenty times in a row for half a minute
        slow = rest.post("/v2/sandboxes", {"templateID": "base"})
        if slow.status != 201:
            break
        rest.kill(slow.json())
    assert_error(slow, 429, "per minute")
    assert 1 <= int(slow.header("Retry-After")) <= 30


def test_the_sdk_names_a_refusal(make_server: Callable[..., CaissonServer]):
    server = make_server(["--set", "create_rate_limit=1"])
    variables = server.sdk_environment
    options = {"api_key": variables["E2B_API_KEY"], "api_url": variables["E2B_API_URL"],
               "sandbox_url": variables["E2B_SANDBOX_URL"]}
    Sandbox.create(**options).kill()
    with pytest.raises(RateLimitException):
        Sandbox.create(**options)


def test_a_full_server_says_so(make_server: Callable[..., CaissonServer]):
    server = make_server(["--set", "max_sandboxes=1"])
    rest = Rest(server)
    with rest.sandbox():
        refused = rest.post("/v2/sandboxes", {"templateID": "base"})
        body = assert_error(refused, 503, "as many as it may")
        assert body["error_code"] == "sandbox_capacity_unavailable"
        assert int(refused.header("Retry-After")) >= 1
    rest.kill(rest.create())


def test_memory_is_not_promised_twice(make_server: Callable[..., CaissonServer]):
    server = make_server(["--set", "max_promised_memory_mb=300"])
    rest = Rest(server)
    with rest.sandbox(limits={"memoryMB": 200}):
        refused = rest.post("/v2/sandboxes", {"templateID": "base", "limits": {"memoryMB": 200}})
        assert_error(refused, 503, "memory")
        rest.kill(rest.create(limits={"memoryMB": 100}))


def test_keys_of_their_own_limits(make_server):
    server = make_server()
    rest = Rest(server)
    small = caisson(server, "key", "add", "ci", "--limit", "max_sandboxes=1")
    assert small.returncode == 0, small
    gone = json.loads(caisson(server, "key", "add", "gone", "--json").stdout)
    assert rest.get("/v2/sandboxes", key=gone["key"]).status == 200
    assert caisson(server, "key", "revoke", gone["id"]).returncode == 0
    assert rest.get("/v2/sandboxes", key=gone["key"]).status == 401
    listed = json.loads(caisson(server, "key", "list", "--json").stdout)
    assert [(k["name"], bool(k["revoked_at"]), k["limits"]) for k in listed] == [
        ("ci", False, {"max_sandboxes": 1}),
        ("gone", True, {}),
    ]
    wrong = caisson(server, "key", "limit", listed[0]["id"], "wings=2")
    assert wrong.returncode == 1 and b"wings" in wrong.stderr
    changed = caisson(server, "key", "limit", listed[0]["id"], "rate_limit=1000")
    assert changed.returncode == 0
    key = small.stdout.decode().strip()
    made = rest.post("/v2/sandboxes", {"templateID": "base"}, key=key)
    assert made.status == 201, made
    assert_error(rest.post("/v2/sandboxes", {"templateID": "base"}, key=key), 429, "at once")
    with rest.sandbox():
        pass  # the first key is not concerned
    # What belongs to one key does not exist for the other, unless they are of the same user.
    sandbox_id = made.json()["sandboxID"]
    assert_refusal(rest.get(f"/api/v1/sandboxes/{sandbox_id}/timeline"), 404)
    same = caisson(server, "key", "add", "ci2", "--user", listed[0]["user_id"]).stdout
    assert timeline(rest, sandbox_id, key=same.decode().strip())[0]["type"] == "created"
    assert rest.delete(f"/sandboxes/{sandbox_id}", key=key).status == 204
    assert timeline(rest, sandbox_id, key=key)[-1]["reason"] == "request"


# -- one sandbox -----------------------------------------------------------------------------------


def test_limits_of_a_create(watchful: CaissonServer):
    rest = Rest(watchful)
    asked = {"cpuCount": 1, "memoryMB": 200, "diskSizeMB": 100, "pids": 50, "openFiles": 300,
             "outputKBps": 5000}
    with rest.sandbox(limits=asked) as made:
        detail = rest.detail(made)
        assert (detail["cpuCount"], detail["memoryMB"], detail["diskSizeMB"]) == (1, 200, 100)
        own = rest.get(f"/api/v1/sandboxes/{made['sandboxID']}").json()
        assert own["limits"] == asked and own["state"] == "running"
        assert run(watchful, made, "ulimit -n; ulimit -Hn").split() == ["300", "300"]
        total = run(watchful, made, "df --output=size -m / | tail -1")
        assert 50 < int(total) <= 100
    with rest.sandbox() as made:
        host = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        assert int(run(watchful, made, "ulimit -n")) == min(65536, host)


def test_limits_change_while_it_runs(make_server: Callable[..., CaissonServer]):
    server = make_server()
    rest = Rest(server)
    made = rest.create(limits={"pids": 40})
    path = f"/api/v1/sandboxes/{made['sandboxID']}"
    assert "Resource temporarily unavailable" in run(server, made, CROWD)
    changed = rest.request("PATCH", f"{path}/limits", {"pids": 400, "memoryMB": 300, "cpuCount": 1})
    assert changed.status == 200, changed
    assert changed.json()["pids"] == 400 and changed.json()["memoryMB"] == 300
    assert run(server, made, CROWD) == ""
    for wrong in ({"memoryMB": 10**6}, {"diskSizeMB": 999}, {"diskSizeMB": 11000}, {"openFiles": 10**6}):
        assert_refusal(rest.request("PATCH", f"{path}/limits", wrong), 400)
    for wrong in ({"wings": 1}, {}):
        assert_refusal(rest.request("PATCH", f"{path}/limits", wrong), 422)
    server.crash()
    server.restart()
    assert rest.get(path).json()["limits"] == changed.json()
    assert rest.detail(made)["memoryMB"] == 300
    assert "limits_set" in [event["type"] for event in timeline(rest, made)]
    assert run(server, made, CROWD) == ""


def test_open_files_and_output_change_while_commands_run(make_server: Callable[..., CaissonServer]):
    server = make_server(["--set", "sandbox_output_kbps=1"])
    rest = Rest(server)
    made = rest.create(timeout=600)
    path = f"/api/v1/sandboxes/{made['sandboxID']}"
    # It waits, asks how many files it may open, and then prints for a quarter of an hour at its rate.
    stream = Envd(server, made).start(
        "until [ -e /tmp/go ]; do sleep 0.05; done; ulimit -n; ulimit -Hn; head -c 1000000 /dev/zero | tr '\\0' x")
    stream.next()
    changed = rest.request("PATCH", f"{path}/limits", {"openFiles": 123, "outputKBps": 0})
    assert changed.status == 200, changed
    assert changed.json()["openFiles"] == 123 and changed.json()["outputKBps"] == 0
    run(server, made, "touch /tmp/go")
    out, _, end = stream.rest()
    assert out.startswith(b"123\n123\n") and len(out) == 8 + 1_000_000, (out[:100], len(out), end)
    assert run(server, made, "ulimit -n; python3 -c 'x = [open(\"/dev/null\") for _ in range(200)]' 2>&1 | tail -1") == (
        "123\nOSError: [Errno 24] Too many open files: '/dev/null'\n")
    more = rest.request("PATCH", f"{path}/limits", {"openFiles": 124})
    assert_refusal(more, 400, contains="only be lowered")
    # Both stay over a crash of the server, a pause and a cold start.
    slow = rest.request("PATCH", f"{path}/limits", {"outputKBps": 200})
    assert slow.status == 200, slow
    server.crash()
    server.restart()
    for memory in (True, False):
        assert rest.post(f"/sandboxes/{made['sandboxID']}/pause", {"memory": memory}).status == 204
        assert rest.post(f"/sandboxes/{made['sandboxID']}/connect", {"timeout": 600}).status == 201
        assert rest.get(path).json()["limits"] == slow.json()
        assert run(server, made, "ulimit -n; ulimit -Hn").split() == ["123", "123"]
        begin = time.monotonic()
        assert len(run(server, made, "head -c 400000 /dev/zero | tr '\\0' x")) == 400000
        assert time.monotonic() - begin > 1


def test_a_disk_grows_while_its_sandbox_is_paused(watchful: CaissonServer):
    rest = Rest(watchful)
    made = rest.create(timeout=600, limits={"diskSizeMB": 64})
    path = f"/api/v1/sandboxes/{made['sandboxID']}"
    free = "df --output=avail -m / | tail -1"
    assert int(run(watchful, made, free)) < 64
    run(watchful, made, "head -c 20000000 /dev/urandom > data; sha256sum data > sum; sleep 1000 > /dev/null 2>&1 & echo $! > pid")
    assert_refusal(rest.request("PATCH", f"{path}/limits", {"diskSizeMB": 300}), 400, contains="pause it first")
    assert rest.post(f"/sandboxes/{made['sandboxID']}/pause").status == 204
    assert_refusal(rest.request("PATCH", f"{path}/limits", {"diskSizeMB": 50}), 400, contains="64 MB")
    changed = rest.request("PATCH", f"{path}/limits", {"diskSizeMB": 300, "pids": 77})
    assert changed.status == 200, changed
    assert changed.json()["diskSizeMB"] == 300 and changed.json()["pids"] == 77
    assert rest.post(f"/sandboxes/{made['sandboxID']}/connect", {"timeout": 600}).status == 201
    # The same process, the same files, more room.
    assert run(watchful, made, "kill -0 $(cat pid) && sha256sum -c sum") == "data: OK\n"
    assert int(run(watchful, made, free)) > 200
    assert run(watchful, made, "head -c 150000000 /dev/zero > more && stat -c %s more") == "150000000\n"
    rest.kill(made)


def test_a_key_bounds_the_sandboxes_it_makes(make_server: Callable[..., CaissonServer]):
    server = make_server()
    rest = Rest(server)
    added = caisson(
        server, "key", "add", "small", "--limit", "max_sandbox_memory_mb=200", "--limit", "max_sandbox_pids=50",
        "--limit", "max_sandbox_open_files=90", "--limit", "max_timeout_s=100", "--json")
    assert added.returncode == 0, added
    key = json.loads(added.stdout)["key"]

    def ask(**fields):
        return rest.post("/v2/sandboxes", {"templateID": "base", **fields}, key=key)

    assert_error(ask(timeout=90, limits={"memoryMB": 201}), 400, "limits.memoryMB must be from 16 to 200")
    assert_error(ask(timeout=101), 400, "Timeout cannot be greater than 100 seconds")
    # What nobody asked for is cut: the server's defaults are 1024 MB, 4096 processes and 300 s.
    made = ask()
    assert made.status == 201, made
    inside = Envd(server, made.json())
    out, _, _ = inside.run(f"ulimit -n; {CROWD}")
    assert out == b"90\nResource temporarily unavailable\n"
    path = f"/api/v1/sandboxes/{made.json()['sandboxID']}"
    limits = rest.get(path, key=key).json()["limits"]
    assert (limits["memoryMB"], limits["pids"], limits["openFiles"]) == (200, 50, 90)
    assert_refusal(rest.request("PATCH", f"{path}/limits", {"pids": 51}, key=key), 400)
    # Another limit of the key holds at once.
    key_id = json.loads(added.stdout)["id"]
    assert caisson(server, "key", "limit", key_id, "max_sandbox_pids=default").returncode == 0
    raised = rest.request("PATCH", f"{path}/limits", {"pids": 400}, key=key)
    assert raised.status == 200 and raised.json()["pids"] == 400
    assert rest.delete(f"/sandboxes/{made.json()['sandboxID']}", key=key).status == 204


@pytest.mark.parametrize(
    "limits,text",
    [
        ({"memoryMB": 1}, "limits.memoryMB must be from 16 to 8192"),
        ({"cpuCount": 1000}, "limits.cpuCount"),
        ({"diskSizeMB": 10**9}, "limits.diskSizeMB"),
        ({"pids": 0}, "limits.pids"),
        ({"openFiles": 10**9}, "limits.openFiles must be from 64 to"),
        ({"pids": "many"}, "limits.pids must be an integer"),
        ({"wings": 2}, "there is no limit 'wings'"),
        ("all", "limits must be an object"),
    ],
)
def test_refused_limits(rest: Rest, limits, text: str):
    answer = rest.post("/v2/sandboxes", {"templateID": "base", "limits": limits})
    assert_error(answer, 400, text)


def test_out_of_memory_is_in_the_timeline(watchful: CaissonServer):
    rest = Rest(watchful)
    with rest.sandbox(limits={"memoryMB": 128}) as made:
        bomb = "python3 -c 'a = []\nwhile True: a.append(bytearray(1 << 20))'; echo status $?"
        assert "status 137" in run(watchful, made, bomb)
        event = wait_for_event(rest, made, "out_of_memory")
        assert event["reason"] == "out_of_memory" and event["level"] == "error"
        assert int(event["fields"]["kills"]) >= 1 and "128 MB" in event["message"]
        # The sandbox itself lives on.
        assert run(watchful, made, "echo alive") == "alive\n"


def test_too_many_processes_are_in_the_timeline(watchful: CaissonServer):
    rest = Rest(watchful)
    with rest.sandbox(limits={"pids": 40}) as made:
        assert "Resource temporarily unavailable" in run(watchful, made, CROWD)
        event = wait_for_event(rest, made, "too_many_processes")
        assert event["level"] == "warn" and int(event["fields"]["refused"]) >= 1
        assert run(watchful, made, "echo alive") == "alive\n"


def test_a_full_disk_is_in_the_timeline(watchful: CaissonServer):
    rest = Rest(watchful)
    with rest.sandbox(limits={"diskSizeMB": 64}) as made:
        bomb = "dd if=/dev/zero of=/tmp/fill bs=1M 2>&1"
        assert "No space left on device" in run(watchful, made, bomb)
        event = wait_for_event(rest, made, "disk_full")
        assert event["fields"]["reason"] == "disk_full"
        run(watchful, made, "rm /tmp/fill; echo room > /tmp/again")
        assert run(watchful, made, "cat /tmp/again") == "room\n"


def test_output_comes_at_its_rate_and_whole(watchful: CaissonServer):
    rest = Rest(watchful)
    with rest.sandbox(limits={"outputKBps": 200}) as made:
        begin = time.monotonic()
        assert len(run(watchful, made, "head -c 400000 /dev/zero | tr '\\0' x")) == 400000
        assert time.monotonic() - begin > 1


# -- diagnostics -----------------------------------------------------------------------------------


def test_diagnostics_of_a_living_and_of_an_ended_sandbox(watchful: CaissonServer, tmp_path):
    rest = Rest(watchful)
    secret = "s3cr3t-value-of-a-variable"
    made = rest.create(envVars={"TOKEN": secret}, metadata={"who": "me"})
    stream = Envd(watchful, made).start("sleep 315")
    stream.next()
    deadline = time.monotonic() + 30
    while not rest.get(f"/sandboxes/{made['sandboxID']}/metrics").json():
        assert time.monotonic() < deadline, "nothing was measured"
        time.sleep(0.1)
    answer = rest.get(f"/api/v1/sandboxes/{made['sandboxID']}/diagnostics")
    stream.close()
    assert answer.status == 200 and "attachment" in answer.header("Content-Disposition")
    bundle = answer.json()
    assert bundle["sandbox"]["state"] == "running" and bundle["sandbox"]["usage"]["pids"] >= 1
    assert bundle["server"]["version"] and bundle["server"]["settings"]["sandbox_disk_mb"] == 64
    assert [p["cmd"] for p in bundle["processes"]] == ["/bin/bash"]
    assert bundle["timeline"][0]["type"] == "created" and bundle["metrics"] and bundle["log"]
    text = answer.body.decode()
    for hidden in (secret, made["envdAccessToken"], watchful.api_key, str(watchful.data_dir)):
        assert hidden not in text
    rest.kill(made)
    target = tmp_path / "bundle.json"
    done = caisson(watchful, "sandbox", "diagnostics", made["sandboxID"], "-o", str(target))
    assert done.returncode == 0, done
    ended = json.loads(target.read_text())
    assert ended["sandbox"]["state"] == "killed" and ended["sandbox"]["reason"] == "request"
    assert ended["timeline"][-1]["type"] == "killed"
    told = caisson(watchful, "sandbox", "timeline", made["sandboxID"]).stdout.decode()
    assert "created" in told and "killed on request" in told


def saved_gauges(rest: Rest) -> dict[tuple[str, str], int]:
    """`caisson_saved_bytes` by its labels `kind` and `part`."""
    found = re.findall(
        r'^caisson_saved_bytes\{kind="(\w+)",part="(\w+)"\} (\S+)$',
        rest.get("/metrics").body.decode(), re.MULTILINE)
    return {(kind, part): int(float(value)) for kind, part, value in found}


def test_storage_is_counted(make_server):
    """What is saved by two sandboxes of known sizes, in the answer and in the numbers; and gone."""
    server = make_server()
    rest = Rest(server)
    empty = {"count": 0, "memoryBytes": 0, "diskBytes": 0}
    assert rest.get("/api/v1/storage").json() == {
        "running": empty, "paused": empty, "snapshots": empty}
    assert set(saved_gauges(rest).values()) == {0}
    made = rest.create(timeout=300)
    out, _, end = Envd(server, made).run("head -c 20000000 /dev/urandom > data && sync && echo ok")
    assert out == b"ok\n", end
    snapshot = rest.post(f"/sandboxes/{made['sandboxID']}/snapshots", {}).json()["snapshotID"]
    assert rest.post(f"/sandboxes/{made['sandboxID']}/pause").status == 204
    use = rest.get("/api/v1/storage").json()
    assert use["running"] == empty
    (layer,) = (server.data_dir / "engine/layers").glob("*.img")
    gauges = saved_gauges(rest)
    for kind, counted in (("paused", use["paused"]), ("snapshot", use["snapshots"])):
        assert counted["count"] == 1
        assert 20_000_000 < counted["diskBytes"] < 60_000_000, counted
        assert counted["memoryBytes"] > 100_000, counted  # of envd alone
        assert gauges[kind, "disk"] == counted["diskBytes"]
        assert gauges[kind, "memory"] == counted["memoryBytes"]
    saved = rest.get(f"/api/v1/sandboxes/{made['sandboxID']}").json()["saved"]
    assert {k: saved[k] for k in ("memoryBytes", "diskBytes")} == {
        k: use["paused"][k] for k in ("memoryBytes", "diskBytes")}
    assert use["snapshots"]["diskBytes"] <= layer.stat().st_blocks * 512
    assert rest.delete(f"/templates/{snapshot}").status == 204
    assert rest.kill(made).status == 204
    assert rest.get("/api/v1/storage").json()["snapshots"] == empty
    assert set(saved_gauges(rest).values()) == {0}
