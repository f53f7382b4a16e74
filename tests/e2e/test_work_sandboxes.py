"""/api/v1/sandboxes on a real server: commands, live output, files, pause, crashes, providers."""

from __future__ import annotations

import http.client
import json
import os
import signal
import sqlite3
import threading
import time
from contextlib import closing

import pytest

from support import census
from support.rest import Rest
from support.server import CaissonServer

ALL = "/api/v1/sandboxes"
OCTETS = {"Content-Type": "application/octet-stream"}


def make(rest: Rest, **body) -> str:
    made = rest.request("POST", ALL, body)
    assert made.status == 201, made
    assert made.json()["status"] == "running"
    return made.json()["id"]


def execute(rest: Rest, sandbox: str, command: str, **more) -> dict:
    done = rest.request("POST", f"{ALL}/{sandbox}/execute", {"command": command, **more})
    assert done.status == 200, done
    return done.json()


def code_of(response) -> str:
    return response.json()["error"]["code"]


@pytest.fixture
def sandbox(rest: Rest):
    made = make(rest, metadata={"test": "work"}, env={"GREETING": "hello"})
    yield made
    assert rest.request("DELETE", f"{ALL}/{made}").status == 204


def test_a_sandbox_of_the_e2b_api_is_used_the_same_way(rest: Rest):
    made = rest.post("/v2/sandboxes", {"templateID": "base", "timeout": 300}).json()["sandboxID"]
    stranger = rest.post("/api/v1/keys", {"name": "stranger", "own_user": True}).json()["key"]
    path = f"{ALL}/{made}"
    assert rest.get(path, key=stranger).status == 404
    assert rest.request("POST", f"{path}/execute", {"command": "true"}, key=stranger).status == 404
    shown = rest.get(path).json()
    assert shown["id"] == made and shown["status"] == "running"

    assert execute(rest, made, "echo hello")["stdout"] == "hello\n"
    sent = rest.request("PUT", f"{path}/files?path=a/b.txt", b"text", headers=OCTETS)
    assert sent.status == 204, sent
    assert rest.get(f"{path}/files?path=a/b.txt").body == b"text"
    assert [f["name"] for f in rest.get(f"{path}/files/list?path=a").json()["files"]] == ["b.txt"]
    assert rest.post(f"{path}/pause", {}).json()["status"] == "paused"
    assert rest.post(f"{path}/execute", {"command": "true"}).status == 409
    assert rest.post(f"{path}/resume", {}).json()["status"] == "running"
    assert execute(rest, made, "cat a/b.txt")["stdout"] == "text"
    # What E2B's routes change is seen here.
    assert rest.post(f"/sandboxes/{made}/pause", {}).status == 204
    assert rest.post(f"{path}/execute", {"command": "true"}).status == 409
    assert rest.post(f"/sandboxes/{made}/connect", {"timeout": 300}).status == 201
    assert execute(rest, made, "cat a/b.txt")["stdout"] == "text"
    assert rest.request("DELETE", path, key=stranger).status == 404
    assert rest.request("DELETE", path).status == 204
    assert rest.get(path).json()["status"] == "terminated"
    assert rest.get(f"/sandboxes/{made}").status == 404


def test_a_command_is_run_and_written_down(rest: Rest, sandbox: str):
    done = execute(rest, sandbox, "echo $GREETING; id -un; echo oops >&2; exit 3")
    assert done["exit_code"] == 3
    assert done["stdout"] == "hello\nuser\n"
    assert done["stderr"] == "oops\n"
    assert done["timed_out"] is False
    late = rest.request("POST", f"{ALL}/{sandbox}/execute", {"command": "sleep 60", "timeout_s": 0.5})
    assert late.status == 504 and code_of(late) == "command_timeout"
    assert late.json()["result"]["timed_out"] is True
    long = rest.request("POST", f"{ALL}/{sandbox}/execute", {"command": "true", "timeout_s": 301})
    assert long.status == 400 and code_of(long) == "timeout_too_long"
    assert execute(rest, sandbox, "pgrep -c sleep || true")["stdout"] == "0\n"
    shown = rest.get(f"{ALL}/{sandbox}").json()
    assert shown["backend_state"] == shown["state"] == "running"
    assert shown["sandboxID"] == shown["id"] == sandbox
    assert "limits" in shown and "ends_at" in shown


def test_every_call_to_the_provider_is_a_line_of_the_log(rest: Rest, server: CaissonServer):
    made = make(rest)
    assert rest.request("DELETE", f"{ALL}/{made}").status == 204
    lines = [json.loads(line) for line in server.log_since(0).splitlines()]
    calls = {line["op"]: line for line in lines
             if line["message"] == "the provider of sandboxes was called" and line["sandbox_id"] == made}
    assert {"create", "kill"} <= set(calls)
    for line in calls.values():
        assert line["outcome"] == "ok" and line["duration_ms"] >= 0 and line["provider"] == "local"


def test_one_of_an_agents_task_says_whose_it_is(rest: Rest):
    agent = rest.post("/api/v1/agents", {"name": "ada", "config": {"command": ["true"]}}).json()["id"]
    task = rest.post("/api/v1/tasks", {"title": "look around"}).json()["id"]
    made = rest.request("POST", ALL, {"agent_id": agent, "task_id": task})
    assert made.status == 201, made
    box = made.json()
    assert (box["agent_id"], box["task_id"], box["status"]) == (agent, task, "running")
    assert box["creation_ms"] > 0 and box["created_at"].endswith("Z") and "destroyed_at" not in box
    (found,) = rest.get(f"{ALL}?task_id={task}").json()["sandboxes"]
    assert (found["id"], found["agent_id"]) == (box["id"], agent)
    shown = rest.get(f"{ALL}/{box['id']}").json()
    assert (shown["status"], shown["backend_state"]) == ("running", "running")
    assert shown["started_at"] <= shown["last_checked_at"] < shown["ends_at"]
    assert rest.request("DELETE", f"{ALL}/{box['id']}").status == 204
    ended = rest.get(f"{ALL}/{box['id']}").json()
    assert ended["status"] == "terminated" and box["created_at"] < ended["destroyed_at"]
    assert ended["task_id"] == task
    for nobody in ({"agent_id": "nobody"}, {"task_id": "nothing"}):
        assert rest.request("POST", ALL, nobody).status == 404


def test_creations_and_commands_are_counted(rest: Rest, sandbox: str):
    def number(name: str) -> float:
        lines = rest.get("/metrics", key=None).body.decode().splitlines()
        return next((float(line.rpartition(" ")[2]) for line in lines if line.startswith(name + " ")), 0)

    made = "caisson_sandbox_creation_seconds_count"
    executed = 'caisson_http_requests_total{route="/api/v1/sandboxes/{id}/execute",status="2xx"}'
    before = {name: number(name) for name in (made, executed)}
    execute(rest, sandbox, "true")
    another = make(rest)
    deadline = time.monotonic() + 30
    while not all(number(name) > before[name] for name in before):
        assert time.monotonic() < deadline, before
    assert rest.request("DELETE", f"{ALL}/{another}").status == 204


@pytest.mark.parametrize("how", ["it dies", "its time is over"])
def test_one_that_ends_ends_its_command_and_its_row(rest: Rest, server: CaissonServer, how: str):
    made, answers = make(rest), []
    command = {"command": "echo begun > ~/begun; sleep 600"}
    running = threading.Thread(
        target=lambda: answers.append(rest.request("POST", f"{ALL}/{made}/execute", command)))
    running.start()
    deadline = time.monotonic() + 60
    while rest.get(f"{ALL}/{made}/files?path=begun").status != 200:
        assert time.monotonic() < deadline
    if how == "it dies":
        census.kill_sandbox(server, made)
    else:
        assert rest.post(f"/sandboxes/{made}/timeout", {"timeout": 0}).status == 204
    running.join(timeout=60)
    (answer,) = answers
    if how == "it dies":
        assert answer.status == 503 and answer.json()["error"]["retryable"] is True, answer
    else:
        assert answer.status == 409 and code_of(answer) == "sandbox_expired", answer
    while (gone := rest.get(f"{ALL}/{made}").json())["status"] != "terminated":
        assert time.monotonic() < deadline, gone
    assert gone["last_error"] == "gone" and gone["destroyed_at"]
    told = rest.get(f"/api/v1/events/history?sandbox_id={made}").json()["events"]
    assert [e["type"] for e in told] == ["sandbox_created", "sandbox_terminated"], told
    again = rest.request("POST", f"{ALL}/{made}/execute", {"command": "true"})
    assert again.status == 409, again


def test_the_database_knows_the_words_of_a_status(rest: Rest, sandbox: str):
    """B-6: a word that is none of them never gets into a row."""
    with closing(sqlite3.connect(rest.server.data_dir / "db/caisson.db", timeout=30)) as database:
        for word in ("completed", "RUNNING", ""):
            with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
                database.execute("UPDATE work_sandboxes SET status = ? WHERE id = ?", (word, sandbox))
            database.rollback()
    assert rest.get(f"{ALL}/{sandbox}").json()["state"] == "running"


def test_output_comes_while_the_command_runs(rest: Rest, sandbox: str):
    execute(rest, sandbox, "mkfifo ~/go")
    connection = http.client.HTTPConnection("127.0.0.1", rest.server.port, timeout=30)
    connection.request(
        "POST", f"{ALL}/{sandbox}/execute",
        json.dumps({"command": "echo first; read line < ~/go; echo second"}),
        {"X-API-KEY": rest.server.api_key, "Content-Type": "application/json",
         "Accept": "text/event-stream"})
    answer = connection.getresponse()
    assert answer.status == 200
    seen = b""
    while b"first" not in seen:
        seen += answer.readline()
    # The command waits for us, so this was not the whole of it.
    execute(rest, sandbox, "echo now > ~/go")
    seen += answer.read()
    connection.close()
    assert b"second" in seen and b"event: result" in seen and b'"exit_code":0' in seen


def test_a_client_that_goes_away_ends_its_command(rest: Rest, sandbox: str):
    connection = http.client.HTTPConnection("127.0.0.1", rest.server.port, timeout=30)
    connection.request(
        "POST", f"{ALL}/{sandbox}/execute", json.dumps({"command": "sleep 987 & sleep 988"}),
        {"X-API-KEY": rest.server.api_key, "Content-Type": "application/json"})
    deadline = time.monotonic() + 20
    while execute(rest, sandbox, "pgrep -cf 'sleep 98[78]' || true")["stdout"] < "2":
        assert time.monotonic() < deadline
    connection.close()
    while execute(rest, sandbox, "pgrep -x sleep || true")["stdout"]:
        assert time.monotonic() < deadline


def test_files_go_in_and_out(rest: Rest, sandbox: str):
    content = bytes(range(256)) * 40_000
    put = rest.request("PUT", f"{ALL}/{sandbox}/files?path=deep/er/file.bin", content, OCTETS)
    assert put.status == 204, put
    got = rest.get(f"{ALL}/{sandbox}/files?path=deep/er/file.bin")
    assert got.status == 200 and got.body == content
    assert execute(rest, sandbox, "stat -c %U ~/deep/er/file.bin")["stdout"] == "user\n"
    listed = rest.get(f"{ALL}/{sandbox}/files/list?path=deep&depth=2").json()["files"]
    assert [f["name"] for f in listed] == ["er", "file.bin"]
    missing = rest.get(f"{ALL}/{sandbox}/files?path=/no/such")
    assert missing.status == 404 and code_of(missing) == "file_not_found"


def test_a_paused_one_is_not_woken_by_questions(rest: Rest, sandbox: str):
    execute(rest, sandbox, "echo kept > ~/kept")
    assert rest.request("POST", f"{ALL}/{sandbox}/pause").json()["status"] == "paused"
    for _ in range(2):
        assert rest.get(f"{ALL}/{sandbox}").json()["backend_state"] == "paused"
    refused = rest.request("POST", f"{ALL}/{sandbox}/execute", {"command": "true"})
    assert refused.status == 409 and code_of(refused) == "not_running"
    assert rest.request("POST", f"{ALL}/{sandbox}/resume").json()["status"] == "running"
    assert execute(rest, sandbox, "cat ~/kept")["stdout"] == "kept\n"


def test_a_sandbox_of_the_e2b_api_can_be_used_here(rest: Rest):
    made = rest.create()["sandboxID"]
    assert rest.get(f"{ALL}/{made}").json()["status"] == "running"
    assert execute(rest, made, "echo hi")["stdout"] == "hi\n"
    assert made in [s["id"] for s in rest.get(ALL).json()["sandboxes"]]
    assert rest.request("DELETE", f"{ALL}/{made}").status == 204
    assert rest.get(f"/sandboxes/{made}").status == 404
    assert rest.get(f"{ALL}/{made}").json()["status"] == "terminated"


@pytest.mark.timeout(180)
def test_rows_and_sandboxes_agree_after_a_crash(make_server):
    server = make_server()
    rest = Rest(server)
    kept, lost = make(rest), make(rest)
    execute(rest, kept, "echo 1 > ~/kept")
    server.crash()
    # One of them dies while nobody looks.
    census.kill_sandbox(server, lost)
    server.restart()
    assert execute(rest, kept, "cat ~/kept")["stdout"] == "1\n"
    gone = rest.get(f"{ALL}/{lost}").json()
    assert gone["status"] == "terminated" and gone["last_error"] == "gone", gone


def health_of(server: CaissonServer) -> dict:
    return Rest(server).get("/api/v1/health/detailed").json()["checks"]["provider"]


@pytest.mark.timeout(180)
def test_another_server_can_supply_the_sandboxes(make_server):
    supplier = make_server()
    server = make_server(["--set", "provider=e2b", "--set", f"e2b_api_url={supplier.url}",
                          "--set", f"e2b_api_key={supplier.api_key}"])
    rest = Rest(server)
    made = make(rest)
    assert execute(rest, made, "echo from afar")["stdout"] == "from afar\n"
    assert rest.request("PUT", f"{ALL}/{made}/files?path=f", b"x", OCTETS).status == 204
    assert rest.get(f"{ALL}/{made}/files?path=f").body == b"x"
    assert not census.sandbox_pids(server) and len(census.sandbox_pids(supplier)) >= 1
    assert rest.request("DELETE", f"{ALL}/{made}").status == 204
    assert Rest(supplier).get("/v2/sandboxes").json() == []
    lines = [json.loads(line) for line in server.log_since(0).splitlines()]
    calls = {line["call"]: line for line in lines if line["message"] == "the sandbox server was called"}
    backend = next(call for call in calls if call.startswith("DELETE /sandboxes/"))
    for call in ("POST /sandboxes", backend):
        assert calls[call]["outcome"] == "ok" and calls[call]["attempts"] == 1 and calls[call]["ms"] >= 0
    assert health_of(server)["status"] == "ok"


@pytest.mark.timeout(180)
def test_the_key_and_the_template_of_the_supplier_are_used(make_server):
    supplier = make_server()
    known = ["--set", "provider=e2b", "--set", f"e2b_api_url={supplier.url}"]
    key = ["--set", f"e2b_api_key={supplier.api_key}"]
    server = make_server(known + key, env={"E2B_TEMPLATE_ID": "no-such-template"})
    refused = Rest(server).request("POST", ALL, {})
    assert refused.status == 404 and b"no-such-template" in refused.body, refused
    server = make_server([*known, "--set", "e2b_api_key=e2b_wrong"])
    refused = Rest(server).request("POST", ALL, {})
    assert refused.status == 503 and code_of(refused) == "backend_unauthenticated", refused
    assert health_of(server)["status"] == "failed"


def test_without_a_key_of_the_supplier_it_is_not_configured(make_server):
    server: CaissonServer = make_server(["--set", "provider=e2b"])
    refused = Rest(server).request("POST", ALL, {})
    assert refused.status == 503 and code_of(refused) == "backend_not_configured"
    warned = [line for line in server.log_since(0).splitlines() if "E2B_API_KEY" in line]
    assert len(warned) == 1 and json.loads(warned[0])["level"] == "warn", warned


def refusals_told(rest: Rest) -> list[dict]:
    """The events about refused keys; they are written a moment after the call."""
    deadline = time.monotonic() + 30
    while not (told := rest.get("/api/v1/events/history?type=provider_key_refused").json()["events"]):
        assert time.monotonic() < deadline
    return told


def test_a_wrong_key_of_the_supplier_is_in_the_health(make_server):
    supplier: CaissonServer = make_server()
    wrong = "e2b_" + "0" * 40
    rest = Rest(make_server(["--set", "provider=e2b", "--set", f"e2b_api_url={supplier.url}"],
                            env={"E2B_API_KEY": wrong}))
    refused = rest.request("POST", ALL, {})
    assert refused.status == 503 and code_of(refused) == "backend_unauthenticated", refused
    health = rest.get("/api/v1/health/detailed").json()
    assert health["status"] == "degraded" and health["checks"]["provider"]["status"] == "failed", health
    (told,) = refusals_told(rest)
    assert "next_key_id" not in told
    assert wrong not in refused.body.decode() + str(health) + rest.server.log_since(0)


@pytest.mark.timeout(180)
def test_a_refused_key_of_the_supplier_is_replaced_by_the_next(make_server):
    """S1-121, S1-114: without a restart, and everybody who looks can see it."""
    supplier = make_server()
    boss = Rest(supplier)
    old = boss.post("/api/v1/keys", {"name": "old"}).json()
    server = make_server(["--set", "provider=e2b", "--set", f"e2b_api_url={supplier.url}",
                          "--set", f"e2b_api_key={old['key']}, {supplier.api_key}"])
    rest = Rest(server)

    def calls(outcome: str) -> dict[str, float]:
        lines = rest.get("/metrics", key=None).body.decode().splitlines()
        found = (line.rpartition(" ") for line in lines
                 if line.startswith("caisson_provider_key_calls_total") and f'outcome="{outcome}"' in line)
        return {series.split('"')[1]: float(value) for series, _, value in found}

    first = make(rest)
    ids = calls("taken")
    assert len(ids) == 2 and sum(1 for n in ids.values() if n > 0) == 1, ids
    assert boss.request("DELETE", f"/api/v1/keys/{old['id']}").status == 204
    # Sandboxes of the old key are gone for the new one; new ones are made with it.
    made = make(rest)
    assert execute(rest, made, "echo still here")["stdout"] == "still here\n"
    assert all(n > 0 for n in calls("taken").values())
    assert sum(calls("refused").values()) == 1
    (told,) = refusals_told(rest)
    assert {told["key_id"], told["next_key_id"]} == set(ids)
    for secret in (old["key"], supplier.api_key):
        assert secret not in server.log_since(0) + str(told)
    assert rest.request("DELETE", f"{ALL}/{made}").status == 204
    assert first != made


@pytest.mark.skipif("CAISSON_TEST_E2B_API_KEY" not in os.environ,
                    reason="needs a key of E2B (CAISSON_TEST_E2B_API_KEY), which costs money")
@pytest.mark.timeout(180)
def test_e2b_itself_can_supply_the_sandboxes(make_server):
    supplier = {"E2B_API_KEY": os.environ["CAISSON_TEST_E2B_API_KEY"],
                "E2B_API_URL": os.environ.get("CAISSON_TEST_E2B_API_URL", "https://api.e2b.app")}
    rest = Rest(make_server(["--set", "provider=e2b"], env=supplier))
    made = make(rest, timeout_s=120)
    assert execute(rest, made, "echo from afar")["stdout"] == "from afar\n"
    assert rest.request("DELETE", f"{ALL}/{made}").status == 204
    assert rest.get(f"{ALL}/{made}").json()["status"] == "terminated"
