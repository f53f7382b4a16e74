"""Every adapter that starts a program, from a task to a pull request, with a stand-in for the program."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from support.forge import Forge
from support.forge_plugin import FORGE_REPOSITORY
from support.work import Platform, settings_for

pytestmark = pytest.mark.timeout(240)

KEY = "model-key-51c7e2a940bd4f68"
STAND_IN = Path(__file__).resolve().parents[1] / "support/stand_in.py"

# By program: what the adapter adds to its command line, where it asks its model, the tool it tells of, and its cost.
EXPECTED = {
    "claude": (["-p", "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions"],
               "/anthropic/v1/messages", "Write", ("claude-test", 1010, 42, 0.25)),
    "codex": (["exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"],
              "/openai/v1/responses", "command", ("", 300, 30, 0)),
    "opencode": (["run", "--format", "json"],
                 "/anthropic/v1/messages", "write", ("", 110, 25, 0.5)),
    "gemini": (["--output-format", "stream-json", "--approval-mode", "yolo"],
               "/google/v1beta/models/gemini-pro:generateContent", "write_file", ("gemini-test", 20, 10, 0)),
    "aider": (["--yes-always", "--no-auto-commits", "--no-dirty-commits"],
              "/openai/v1/chat/completions", "", ("gpt-test", 1600, 90, 0.03)),
}


class Models:
    """The servers of all models: each question, and the key it came with."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.keys: set[str] = set()
        models = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:  # noqa: N802
                self.rfile.read(int(self.headers["Content-Length"]))
                models.asked.append(self.path)
                models.keys.update(value for name, value in self.headers.items() if "key" in value)
                body = json.dumps({"said": f"the model at {self.path}"}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def routes(self) -> str:
        base = f"http://127.0.0.1:{self.server.server_port}"
        return ", ".join(f"{name}={base}/{name} MODEL_KEY" for name in ("anthropic", "openai", "google"))

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def models() -> Iterator[Models]:
    models = Models()
    yield models
    models.close()


@pytest.fixture
def here(make_server, forge: Forge, models: Models) -> Platform:
    """With a template `programs`: the base, and every program where its installer would put it."""
    here = Platform(make_server(env=settings_for(forge, CAISSON_MODEL_ROUTES=models.routes(), MODEL_KEY=KEY)))
    box = here.ask("POST", "/sandboxes", {}, 201).json()
    program = base64.b64encode(STAND_IN.read_bytes()).decode()
    install = f"for name in {' '.join(EXPECTED)}; do echo {program} | base64 -d > /usr/local/bin/$name; " \
              "chmod 755 /usr/local/bin/$name; done"
    done = here.ask("POST", f"/sandboxes/{box['id']}/execute", {"argv": ["bash", "-c", install], "user": "root"}, 200)
    assert done.json()["exit_code"] == 0, done
    made = here.rest.post(f"/sandboxes/{box['id']}/snapshots", {"name": "programs", "memory": False})
    assert made.status == 201, made
    here.ask("DELETE", f"/sandboxes/{box['id']}", status=204)
    return here


def check(here: Platform, forge: Forge, models: Models, name: str, started: dict) -> None:
    options, path, tool, (model, tokens_in, tokens_out, dollars) = EXPECTED[name]
    here.wait(started)
    task = here.get(f"/tasks/{started['task_id']}")
    (pull,) = [one for one in forge.repositories[FORGE_REPOSITORY].pulls if one.head == task["git_branch"]]
    assert task["status"] == "in_review" and task["pull_request_number"] == pull.number
    git = forge.repositories[FORGE_REPOSITORY].git
    assert git.file(pull.head, f"{name}.txt") == f"the model at {path}\n"

    seen = json.loads(git.file(pull.head, "seen.json"))
    assert seen["arguments"][:len(options)] == options
    assert f"Task: Let {name} do it" in seen["task"] and seen["key"] == "caisson-broker"
    assert path in models.asked

    execution = here.get(f"/executions/{started['execution_id']}")
    assert execution["summary"] == f"{name} did it." and execution["exit_code"] == 0
    events = here.events(execution_id=started["execution_id"])
    told = {kind: [one for one in events if one["type"] == kind] for kind in ("message", "agent_tool", "file_changed")}
    assert [one["tool"] for one in told["agent_tool"]] == ([tool] if tool else [])
    assert [Path(one["path"]).name for one in told["file_changed"]] == [f"{name}.txt"]
    assert told["message"][-1]["message"].strip().endswith("it.")

    (cost,) = here.get("/costs", task_id=started["task_id"], kind="model")["costs"]
    assert (cost["model"], cost["tokens_in"], cost["tokens_out"]) == (model, tokens_in, tokens_out)
    assert abs(cost["dollars"] - dollars) < 1e-9
    assert KEY not in json.dumps(events) and KEY not in json.dumps(seen)


def test_each_adapter_makes_a_pull_request(here: Platform, forge: Forge, models: Models) -> None:
    """All at the same time, with one server."""
    runs = {}
    for name in EXPECTED:
        agent = {"name": name, "adapter": name, "config": {"template": "programs:default"}}
        runs[name] = here.start(here.ask("POST", "/agents", agent, 201).json(), f"Let {name} do it")
    wrong = {}
    for name, started in runs.items():
        try:
            check(here, forge, models, name, started)
        except AssertionError as error:
            wrong[name] = str(error)
    assert not wrong, "\n\n".join(f"{name}: {what}" for name, what in wrong.items())
    assert len(models.asked) == len(EXPECTED) and models.keys == {f"Bearer {KEY}"}
