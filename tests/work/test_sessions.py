"""Sessions: a sandbox behind each, answers in order, pauses that lose nothing."""

from __future__ import annotations

import json
import os
import signal
import threading

import pytest
from support.forge import Forge
from support.forge_plugin import FORGE_REPOSITORY, FORGE_TOKEN
from support.hunt import KEPT, LIVE, SAVED, Hunt
from support.model import KEY, ScriptedModel
from support.rest import assert_refusal
from support.sessions import ECHO, Session, wait_until
from support.work import Platform, settings_for

pytestmark = pytest.mark.timeout(240)

SLOW = "echo begun; touch begun; while [ ! -e go ]; do sleep 0.1; done; " + ECHO
WRITES = 'echo "$CAISSON_MESSAGE" >> notes.txt'
# A server that counts, started by the agent and left running.
SERVER = """
import http.server
count = 0
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        global count
        count += 1
        body = str(count).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args):
        pass
http.server.HTTPServer(("127.0.0.1", 5173), Handler).serve_forever()
"""


@pytest.fixture
def quick(make_server) -> Platform:
    """A server whose sessions are put away after two seconds."""
    return Platform(make_server(env={"CAISSON_SESSION_IDLE_PAUSE_S": "2", "CAISSON_SESSION_CHECK_INTERVAL_MS": "200"}))


@pytest.fixture
def here(server) -> Platform:
    return Platform(server)


# ---- making ----------------------------------------------------------------------------------


@pytest.mark.quick
def test_a_session_has_a_sandbox_and_answers(here: Platform) -> None:
    session = Session.begin(here)
    assert session.made["status"] == "provisioning" and session.made["sandboxId"] is None
    answer = session.say("hello")
    assert answer["content"] == "you said: hello" and answer["parts"] == [
        {"type": "text", "text": "you said: hello"}]
    row = session.row()
    assert row["status"] == "active" and row["sandbox_id"]
    assert here.rest.detail(row["sandbox_id"])["metadata"]["sessionId"] == session.id
    events = here.events(session_id=session.id)
    kinds = [event["type"] for event in events]
    for kind in ("session_updated", "sandbox_created", "session_message", "message_delta"):
        assert kind in kinds, kinds
    (delta,) = [event for event in events if event["type"] == "message_delta"]
    assert delta["message_id"] == answer["id"] and delta["text"].strip() == "you said: hello"
    here.ask("DELETE", session.path, status=204)


def test_messages_per_minute_are_limited(make_server) -> None:
    here = Platform(make_server(env={"CAISSON_START_RATE_LIMIT": "1"}))
    session = Session.begin(here)
    session.say("hello")
    refused = here.ask("POST", session.path + "/messages", {"text": "more"})
    assert_refusal(refused, 429)
    assert 1 < int(refused.header("Retry-After")) <= 60
    assert len(session.messages("user")) == 1


def test_models_that_can_be_chosen(make_server) -> None:
    here = Platform(make_server(env={"CAISSON_LLM_MODEL": "large"}))
    assert here.get("/models/available")["models"] == [{"id": "large", "agents": [], "builds": True, "offered": False}]
    ada = {"name": "ada", "role": "developer", "adapter": "claude", "config": {"model": "small"}}
    agent = here.ask("POST", "/agents", ada, 201).json()
    assert here.get("/models/available")["models"][1] == {
        "id": "small", "agents": [{"id": agent["id"], "name": "ada"}], "builds": False, "offered": False}
    eve = here.ask("POST", "/users", {"name": "eve", "role": "member", "password": "a long password"}, 201).json()
    key = here.ask("POST", "/keys", {"name": "test", "user_id": eve["id"]}, 201).json()["key"]
    assert [one["id"] for one in here.ask("GET", "/models/available", key=key).json()["models"]] == ["large"]


ASKS_A_MODEL = """
curl -s -m 30 -H 'Content-Type: application/json' -d '{"messages":[{"role":"user","content":"hello"}]}' \
  http://127.0.0.1:49990/model/scripted/chat/completions > answer.json
curl -s -m 30 -o /dev/null -w '%{http_code}' \
  'http://127.0.0.1:49990/octo/hello.git/info/refs?service=git-upload-pack' > git.txt
"""


def test_a_session_without_a_repository_reaches_the_models_only(make_server, forge: Forge) -> None:
    """And nowhere is a key of theirs: not while a model thinks, not in the session when it sleeps."""
    asked, go = threading.Event(), threading.Event()

    def think(messages: list[dict]) -> str:
        asked.set()
        go.wait(60)
        return f"you said {messages[0]['content']}"

    hunt = Hunt(model=KEY, token=FORGE_TOKEN)
    model = ScriptedModel(think)
    try:
        routes = f"scripted=http://127.0.0.1:{model.server.server_port}/v1 SCRIPTED_KEY"
        env = settings_for(forge, CAISSON_MODEL_ROUTES=routes, SCRIPTED_KEY=KEY, **hunt.settings)
        here = Platform(make_server(env=env))
        session = Session.begin(here, hunt.planting() + ASKS_A_MODEL + ECHO)
        answer = session.send("hello")
        assert asked.wait(60), "nobody asked the model"
        hunt.live(here.server)
        hunt.check(LIVE)
        go.set()
        session.wait(answer)
        assert json.loads(session.run("cat answer.json"))["choices"][0]["message"]["content"] == "you said hello"
        assert model.keys == [f"Bearer {KEY}"]
        # Not even a repository that this server has the key to.
        assert session.run("cat git.txt") == "403"
        session.pause()
        hunt.kept(here)
        hunt.check(SAVED, KEPT)
    finally:
        go.set()
        model.close()


def test_two_provisions_at_once_make_one_sandbox(here: Platform) -> None:
    session = Session.begin(here, None)
    answers = []

    def provision() -> None:
        answers.append(here.ask("POST", session.path + "/sandbox/provision"))

    threads = [threading.Thread(target=provision) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {answer.status for answer in answers} <= {200, 201}, answers
    assert len({answer.json()["sandboxId"] for answer in answers}) == 1
    mine = [one for one in here.live_sandboxes() if one["metadata"].get("sessionId") == session.id]
    assert len(mine) == 1
    here.ask("DELETE", session.path, status=204)


def test_the_routes_of_the_seed(here: Platform) -> None:
    made = here.rest.post("/api/sandbox", {})
    assert made.status == 201 and made.json()["status"] == "active", made
    sandbox = made.json()["sandboxId"]
    assert here.rest.get(f"/api/sandbox/{sandbox}/status").json()["status"] == "active"
    assert here.ask("POST", f"/sandbox/{sandbox}/pause", status=200).json()["status"] == "paused"
    # To look does not wake it, and the second time is fine.
    assert here.get(f"/sandbox/{sandbox}/status")["status"] == "paused"
    assert here.ask("POST", f"/sandbox/{sandbox}/pause", status=200).json()["status"] == "paused"
    assert here.rest.detail(sandbox)["state"] == "paused"
    assert_refusal(here.ask("GET", "/sandbox/nobody/status"), 404)
    assert_refusal(here.ask("POST", "/sandbox/nobody/pause"), 404)
    here.ask("DELETE", f"/sandboxes/{sandbox}", status=204)

    session = Session(here, here.rest.post("/api/sessions", {"title": "by the seed"}).json()).ready()
    shown = here.rest.get(f"/api/sessions/{session.id}/sandbox").json()
    assert shown["sandboxId"] == session.sandbox_id() and shown["status"] == "active"
    assert shown["createdAt"] and shown["sessionId"] == session.id
    again = here.ask("POST", "/sandbox", {"sessionId": session.id}, 200).json()
    assert again["sandboxId"] == shown["sandboxId"]
    assert here.get(session.path + "/sandbox/status")["status"] == "active"
    here.ask("DELETE", session.path, status=204)


def test_what_is_somebody_elses_does_not_exist(here: Platform) -> None:
    session = Session.begin(here, None).ready()
    sandbox = session.sandbox_id()
    other = here.ask("POST", "/users", {"name": "eve-of-sessions", "role": "member"}, 201).json()
    key = here.ask("POST", "/keys", {"name": "eve", "user_id": other["id"]}, 201).json()["key"]
    for method, path in [("GET", session.path), ("DELETE", session.path), ("GET", session.path + "/messages"),
                         ("POST", session.path + "/stop"), ("GET", session.path + "/sandbox"),
                         ("POST", session.path + "/sandbox/pause"), ("POST", session.path + "/sandbox/provision"),
                         ("GET", f"/sandbox/{sandbox}/status"), ("POST", f"/sandbox/{sandbox}/pause")]:
        answer = here.ask(method, path, key=key)
        assert answer.status == 404, (method, path, answer)
    assert session.sandbox()["status"] == "active"
    here.ask("DELETE", session.path, status=204)


def test_a_failed_provision_is_told_and_can_be_tried_again(here: Platform) -> None:
    session = Session.begin(here, template="no-such-template")
    row = session.wait_for_status("error")
    assert "no-such-template" in row["error"], row
    assert_refusal(here.ask("POST", session.path + "/sandbox/provision"), 404, "create_failed")
    assert_refusal(here.ask("GET", session.path + "/sandbox"), 404, "no_sandbox")
    answer = session.wait(session.send("hello"), "failed")
    assert "no-such-template" in answer["error"], answer
    here.ask("DELETE", session.path, status=204)


def test_a_provision_that_takes_too_long_is_told(make_server) -> None:
    here = Platform(make_server(env={"CAISSON_SESSION_PROVISION_WAIT_S": "10", "CAISSON_FLOW_ATTEMPTS": "1"}))
    session = Session.begin(here).ready()
    session.pause()
    _, *engine = here.server.program_pids()
    for pid in engine:
        os.kill(pid, signal.SIGSTOP)
    try:
        refused = assert_refusal(here.ask("POST", session.path + "/sandbox/provision"), 504)
        assert "provision_timeout" in (refused["code"], refused["message"].partition(":")[0]), refused
    finally:
        for pid in engine:
            os.kill(pid, signal.SIGCONT)
    session.wait_for_status("active")
    assert session.run("echo awake") == "awake\n"


# ---- talking ---------------------------------------------------------------------------------


def test_messages_are_answered_in_order_and_the_history_pages_backwards(here: Platform) -> None:
    session = Session.begin(here)
    answers = [session.send(f"number {n}") for n in range(5)]
    for n, answer in enumerate(answers):
        assert session.wait(answer)["content"] == f"you said: number {n}"
    finished = [one["finished_at"] for one in session.messages("assistant")]
    assert finished == sorted(finished)
    texts, before = [], {}
    while True:
        page = session.history(limit=3, **before)
        texts = [one["content"] for one in page["messages"]] + texts
        if "before" not in page:
            break
        before = {"before": page["before"]}
    assert texts == [t for n in range(5) for t in (f"number {n}", f"you said: number {n}")]
    here.ask("DELETE", session.path, status=204)


def test_the_agent_knows_what_was_said_before(here: Platform) -> None:
    session = Session.begin(here, 'cat > seen; printf \'{"caisson":"message","text":"%s"}\\n\' "$(grep -c ^User: seen)"')
    assert session.say("one")["content"] == "0"
    assert session.say("two", mode="plan")["content"] == "1"
    assert "Do not change any files" in session.run("cat ~/seen")
    here.ask("DELETE", session.path, status=204)


def test_stop_ends_the_agent_and_the_next_message_has_its_turn(here: Platform) -> None:
    session = Session.begin(here, SLOW + "; sleep 600 & wait")
    first, second = session.send("one"), session.send("two")
    here.wait_for_event("command_output", session_id=session.id)
    row = session.row()
    assert row["generating"] and row["answer_id"] == first["id"] and row["queued"] == 1
    assert_refusal(here.ask("PUT", session.path + "/model", {"model": "large"}), 409)
    assert_refusal(here.ask("POST", session.path + "/sandbox/pause"), 409)
    here.ask("POST", session.path + "/stop", status=202)
    stopped = session.wait(first, "stopped")
    assert "stopped by its user" in stopped["error"]
    wait_until(lambda: session.row()["answer_id"] == second["id"], "the second has its turn")
    here.ask("POST", session.path + "/stop", {"all": True}, 202)
    session.wait(second, "stopped")
    assert session.run("pgrep -c sleep || true").strip() == "0"
    assert_refusal(here.ask("POST", session.path + "/stop"), 409)
    assert here.ask("PUT", session.path + "/model", {"model": "large"}, 200).json()["model"] == "large"
    here.ask("DELETE", session.path, status=204)


def test_an_agent_that_fails_says_why(here: Platform) -> None:
    session = Session.begin(here, "echo oh no >&2; exit 3")
    failed = session.wait(session.send("hello"), "failed")
    assert "status 3" in failed["error"] and "oh no" in failed["error"]
    assert_refusal(here.ask("POST", Session.begin(here, None).path + "/messages", {"text": "x"}), 409, contains="agent")
    here.ask("DELETE", session.path, status=204)


BUSY = r"""
printf '{"caisson":"tool","name":"make","input":{"target":"all"}}\n'
echo x > made.txt
printf '{"caisson":"file","path":"made.txt","change":"added"}\n'
"""


def test_tools_and_files_of_an_answer_are_told(here: Platform) -> None:
    session = Session.begin(here, BUSY + ECHO)
    answer = session.say("build it")
    assert answer["parts"] == [{"type": "tool", "name": "make", "input": {"target": "all"}},
                               {"type": "file", "path": "made.txt", "change": "added"},
                               {"type": "text", "text": "you said: build it"}]
    told = [one for one in here.events(session_id=session.id, execution_id=answer["id"])
            if one["type"] in ("agent_tool", "file_changed", "message_delta")]
    assert [one["type"] for one in told] == ["agent_tool", "file_changed", "message_delta"]
    tool, file, _ = told
    assert tool["tool"] == "make" and tool["input"] == {"target": "all"}
    assert file["path"] == "made.txt" and file["change"] == "added"
    assert {one["sandbox_id"] for one in told} == {session.sandbox_id()}
    here.ask("DELETE", session.path, status=204)


def test_a_clone_that_fails_is_told_and_tried_again(platform: Platform, forge: Forge) -> None:
    session = Session.begin(platform, WRITES, repo_url="octo-org/later")
    failed = session.wait(session.send("remember the milk"), "failed")
    assert "octo-org/later" in failed["error"] or "not found" in failed["error"], failed["error"]
    assert session.row()["status"] == "active" and session.row()["branch"] == ""
    forge.add_repository("octo-org/later")
    answer = session.say("remember the milk")
    git = forge.repositories["octo-org/later"].git
    assert git.commits("main", session.row()["branch"]) == [answer["commit_sha"]]
    platform.ask("DELETE", session.path, status=204)


def test_every_answer_is_a_commit_and_the_first_opens_a_draft(platform: Platform, forge: Forge) -> None:
    session = Session.begin(platform, WRITES, repo_url=FORGE_REPOSITORY, title="Write notes")
    first = session.say("remember the milk")
    second = session.say("and the bread")
    row = session.row()
    git = forge.repositories[FORGE_REPOSITORY].git
    (pull,) = forge.repositories[FORGE_REPOSITORY].pulls
    assert pull.draft and pull.head == row["branch"] and pull.title == "Write notes"
    assert row["pull_request_number"] == pull.number and session.id in row["branch"]
    assert git.commits("main", row["branch"]) == [first["commit_sha"], second["commit_sha"]]
    assert git.file(row["branch"], "notes.txt") == "remember the milk\nand the bread\n"
    third = session.say("only think", mode="plan")
    assert third["commit_sha"] == "" and len(git.commits("main", row["branch"])) == 2
    # What stands there uncommitted is saved before the sandbox is put away.
    session.pause()
    assert len(git.commits("main", row["branch"])) == 3
    platform.ask("DELETE", session.path, status=204)


def test_an_agent_does_not_choose_what_it_may_push(platform: Platform, forge: Forge) -> None:
    """It checks out the base, and leaves a process that pushes it as soon as the server works with git again."""
    git = forge.repositories[FORGE_REPOSITORY].git
    before = git.run("rev-parse", "main").stdout
    session = Session.begin(
        platform, "git switch -q main; echo bad > bad.txt; git add bad.txt; git commit -qm 'fix: bad'; "
        "(for i in $(seq 60); do git push -q origin main; sleep 0.1; done > /tmp/push.log 2>&1; touch /tmp/over) &",
        repo_url=FORGE_REPOSITORY)
    session.say("one")
    session.say("two")
    wait_until(lambda: session.run("ls /tmp/over 2>/dev/null || true").strip(), "it tried all the time")
    assert "main" in session.run("cat /tmp/push.log")
    assert git.run("rev-parse", "main").stdout == before
    assert session.row()["pull_request_number"] == 0
    platform.ask("DELETE", session.path, status=204)


# ---- sleeping --------------------------------------------------------------------------------


def test_an_idle_session_sleeps_and_its_server_goes_on(quick: Platform) -> None:
    """The dev server that the agent started answers after the pause without being restarted."""
    session = Session.begin(quick, f"cat > server.py <<'END'\n{SERVER}\nEND\npython3 server.py >/dev/null 2>&1 &")
    session.say("start the server")
    sandbox = session.sandbox_id()
    wait_until(lambda: (answer := session.ask_port(5173)).status == 200 and answer, "the server answers")
    pid = session.run("pgrep -f [s]erver.py")
    count = int(session.ask_port(5173).body)
    row = session.wait_for_status("paused")
    assert row["status_reason"] == "idle" and row["running_ms"] > 0
    assert quick.rest.detail(sandbox)["state"] == "paused"
    assert session.sandbox()["status"] == "paused"  # to look does not wake it
    # A preview request wakes it ...
    assert int(session.ask_port(5173).body) == count + 1
    assert session.sandbox()["status"] == "active" and session.row()["status"] == "active"
    session.wait_for_status("paused")
    # ... a command does ...
    assert session.run("pgrep -f [s]erver.py") == pid
    session.wait_for_status("paused")
    # ... and so does a message.
    session.say("start another")
    assert int(session.ask_port(5173).body) == count + 2
    assert session.sandbox_id() == sandbox
    quick.ask("DELETE", session.path, status=204)
    assert quick.live_sandboxes() == []


def test_after_a_restart_the_first_command_finds_everything(quick: Platform) -> None:
    session = Session.begin(quick, None).ready()
    session.run("echo kept > ~/file; (while :; do sleep 1; done) >/dev/null 2>&1 & echo $! > ~/pid")
    session.wait_for_status("paused")
    sandbox = session.sandbox_id()
    quick.server.crash()
    quick.server.start()
    assert session.sandbox_id() == sandbox and session.row()["status"] == "paused"
    assert session.run("cat ~/file; kill -0 $(cat ~/pid) && echo lives") == "kept\nlives\n"
    assert session.sandbox_id() == sandbox
    quick.ask("DELETE", session.path, status=204)


def test_a_lost_sandbox_is_replaced_and_the_user_is_told(platform: Platform) -> None:
    session = Session.begin(platform, 'echo "$CAISSON_MESSAGE" >> notes.txt; echo; cat notes.txt',
                            repo_url=FORGE_REPOSITORY)
    session.say("one")
    lost = session.sandbox_id()
    session.pause()
    assert platform.rest.kill(lost).status == 204
    answer = session.say("two")
    assert answer["content"] == "one\ntwo" and session.sandbox_id() != lost
    (note,) = session.messages("system")
    assert "lost" in note["content"]
    platform.ask("DELETE", session.path, status=204)


def test_a_sandbox_that_comes_back_with_older_files_is_told(here: Platform) -> None:
    session = Session.begin(here, None).ready()
    session.pause()
    session.resume()
    assert session.messages("system") == []
    session.run("ln -sf /dev/null /tmp/.caisson/mark")  # what is written there before the pause gets lost
    session.pause()
    session.resume()
    (note,) = session.messages("system")
    assert "older" in note["content"]
    here.ask("DELETE", session.path, status=204)


def test_the_policies_of_old_sessions(make_server) -> None:
    here = Platform(make_server(env={
        "CAISSON_SESSION_IDLE_PAUSE_S": "4", "CAISSON_SESSION_CHECK_INTERVAL_MS": "200",
        "CAISSON_SESSION_IDLE_END_S": "8", "CAISSON_SESSION_IDLE_END": "destroy",
        "CAISSON_SESSION_MAX_RUNNING_PER_USER": "1"}))
    first = Session.begin(here, ECHO).ready()
    second = Session.begin(here, None)
    # The one that is used longest ago makes room.
    second.ready()
    assert first.row()["status"] == "paused"
    first.say("again")
    second.wait_for_status("paused")
    for session in (first, second):
        wait_until(lambda one=session: one.row()["status_reason"] == "idle_end", "its sandbox is ended")
        assert session.row()["sandbox_id"] is None
    assert here.live_sandboxes() == []
    assert first.say("once more")["content"] == "you said: once more"
    archived = here.ask("PATCH", second.path, {"archived": True}, 200).json()
    assert archived["status"] == "archived" and archived["archived_at"]
    assert [one["id"] for one in here.get("/sessions")["sessions"]] == [first.id]
    assert here.get("/sessions", status="archived")["total"] == 1
    gone = here.ask("POST", "/sessions/delete", {"ids": [first.id, second.id, "nobody"]}, 200).json()
    assert gone == {"deleted": [first.id, second.id], "missing": ["nobody"]}
    assert here.live_sandboxes() == [] and here.get("/sessions")["total"] == 0


# ---- crashes ---------------------------------------------------------------------------------


def test_kill_9_while_a_message_runs_and_while_others_wait(make_server) -> None:
    """Exactly one answer each, whenever the server dies."""
    here = Platform(make_server(env={"CAISSON_FLOW_RETRY_MIN_MS": "100"}))
    session = Session.begin(here, 'echo "$CAISSON_MESSAGE" >> ~/asked; ' + SLOW)
    answers = [session.send(f"number {n}") for n in range(3)]
    here.wait_for_event("command_output", session_id=session.id)
    here.server.crash()
    here.server.start()
    session.run("touch ~/go")
    for n, answer in enumerate(answers):
        assert session.wait(answer)["content"] == f"you said: number {n}"
    assert session.run("cat ~/asked") == "number 0\nnumber 1\nnumber 2\n"
    assert len(session.messages("assistant")) == 3
    deltas = here.events(session_id=session.id, type="message_delta")
    assert [one["text"].strip() for one in deltas] == [f"you said: number {n}" for n in range(3)]
    here.ask("DELETE", session.path, status=204)
    assert here.live_sandboxes() == []


@pytest.mark.parametrize("point", ["before_claim", "after_claim", "after_effect", "after_commit"])
@pytest.mark.parametrize("step", ["provision", "prepare", "agent", "commit", "publish", "finish"])
def test_a_crash_at_every_step_changes_nothing(make_server, forge: Forge, step: str, point: str) -> None:
    server = make_server(env=settings_for(forge, CAISSON_FLOW_CRASH_AT=f"{step}:{point}"))
    here = Platform(server)
    agent = here.add_agent('echo "$CAISSON_MESSAGE" >> notes.txt; ' + ECHO)
    try:
        here.ask("POST", "/sessions", {"agent_id": agent["id"], "repo_url": FORGE_REPOSITORY, "message": "one"})
    except ConnectionError:  # it died before it could answer
        pass
    server.process.wait(timeout=90)
    server.crash()
    del server.env["CAISSON_FLOW_CRASH_AT"]
    server.start()
    (row,) = here.get("/sessions")["sessions"]
    session = Session(here, row)
    (answer,) = session.messages("assistant")
    assert session.wait(answer)["content"] == "you said: one"
    repository = forge.repositories[FORGE_REPOSITORY]
    (pull,) = repository.pulls
    assert len(repository.git.commits("main", pull.head)) == 1
    assert repository.git.file(pull.head, "notes.txt") == "one\n"
    assert [one["role"] for one in session.messages()] == ["user", "assistant"]
    here.ask("DELETE", session.path, status=204)
    assert here.live_sandboxes() == []
