"""Limits per key and per sandbox, and what the API says when one is reached."""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Callable

import pytest
from e2b import RateLimitException, Sandbox
from support.cli import caisson
from support.envd import Envd
from support.rest import Rest, assert_error
from support.server import CaissonServer

pytestmark = pytest.mark.timeout(180)


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
    answers = [rest.get("/v2/sandboxes") for _ in range(12)]
    refused = [a for a in answers if a.status != 200]
    assert refused and len(refused) < 12
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
    slow = rest.post("/v2/sandboxes", {"templateID": "base"})
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


def test_keys_of_their_own_limits():
    server = CaissonServer()
    options = ("--data-dir", str(server.data_dir))
    small = caisson(None, "key", "add", "ci", "--limit", "max_sandboxes=1", *options)
    assert small.returncode == 0, small
    gone = json.loads(caisson(None, "key", "add", "gone", "--json", *options).stdout)
    assert caisson(None, "key", "revoke", gone["id"], *options).returncode == 0
    listed = json.loads(caisson(None, "key", "list", "--json", *options).stdout)
    assert [(k["name"], k["revoked"], k["limits"]) for k in listed] == [
        ("ci", False, {"max_sandboxes": 1}),
        ("gone", True, {}),
    ]
    wrong = caisson(None, "key", "limit", listed[0]["id"], "wings=2", *options)
    assert wrong.returncode == 1 and b"wings" in wrong.stderr
    changed = caisson(None, "key", "limit", listed[0]["id"], "rate_limit=1000", *options)
    assert changed.returncode == 0
    with server:
        rest = Rest(server)
        key = small.stdout.decode().strip()
        made = rest.post("/v2/sandboxes", {"templateID": "base"}, key=key)
        assert made.status == 201, made
        assert_error(rest.post("/v2/sandboxes", {"templateID": "base"}, key=key), 429, "at once")
        with rest.sandbox():
            pass  # the first key is not concerned
        assert rest.get("/v2/sandboxes", key=gone["key"]).status == 401
        # What belongs to one key does not exist for the other.
        sandbox_id = made.json()["sandboxID"]
        assert_error(rest.get(f"/api/v1/sandboxes/{sandbox_id}/timeline"), 404)
        assert timeline(rest, sandbox_id, key=key)[0]["type"] == "created"
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
    crowd = "for i in $(seq 80); do sleep 1 & done; wait"
    assert "Resource temporarily unavailable" in run(server, made, crowd)
    changed = rest.request("PATCH", f"{path}/limits", {"pids": 400, "memoryMB": 300, "cpuCount": 1})
    assert changed.status == 200, changed
    assert changed.json()["pids"] == 400 and changed.json()["memoryMB"] == 300
    assert run(server, made, crowd) == ""
    for wrong in ({"memoryMB": 10**6}, {"diskSizeMB": 999}, {"openFiles": 99}, {"wings": 1}, {}):
        assert_error(rest.request("PATCH", f"{path}/limits", wrong), 400)
    server.crash()
    server.restart()
    assert rest.get(path).json()["limits"] == changed.json()
    assert rest.detail(made)["memoryMB"] == 300
    assert "limits_set" in [event["type"] for event in timeline(rest, made)]
    assert run(server, made, crowd) == ""


@pytest.mark.parametrize(
    "limits,text",
    [
        ({"memoryMB": 1}, "limits.memoryMB must be from 16 to 8192"),
        ({"cpuCount": 1000}, "limits.cpuCount"),
        ({"diskSizeMB": 10**9}, "limits.diskSizeMB"),
        ({"pids": 0}, "limits.pids"),
        ({"openFiles": 10**6}, "limits.openFiles"),
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
        bomb = "for i in $(seq 80); do sleep 5 & done; wait"
        assert "Resource temporarily unavailable" in run(watchful, made, bomb)
        event = wait_for_event(rest, made, "too_many_processes")
        assert event["level"] == "warn" and int(event["fields"]["refused"]) >= 1
        assert run(watchful, made, "echo alive") == "alive\n"


def test_a_full_disk_is_in_the_timeline(watchful: CaissonServer):
    rest = Rest(watchful)
    with rest.sandbox() as made:
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
    stream = Envd(watchful, made).start("sleep 31.5")
    stream.next()
    time.sleep(0.5)
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


def test_storage_is_the_operators_business(watchful: CaissonServer):
    use = Rest(watchful).get("/api/v1/storage").json()
    assert set(use) == {"running", "paused", "snapshots"}
    assert all(set(part) == {"count", "memoryBytes", "diskBytes"} for part in use.values())
