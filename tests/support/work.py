"""The work platform of one server, as a user of /api/v1 sees it."""

from __future__ import annotations

import json
import time
from urllib.parse import urlencode

from support.forge import Forge
from support.forge_plugin import FORGE_REPOSITORY, FORGE_TOKEN
from support.rest import Response, Rest
from support.server import CaissonServer

# An agent that does something, and says so.
BUSY = "echo working on it; echo done > {file}; echo finished"
# One that says lines until it is told that they are enough, and writes down how many there were.
COUNTING = "i=0; while [ ! -e /tmp/enough ]; do i=$((i + 1)); echo line $i; sleep 0.05; done; echo $i > work.txt"
STEPS = ["provision", "clone", "branch", "agent", "commit", "push", "pull_request", "finish"]
ENDED = ("succeeded", "failed", "canceled", "dead")
DEADLINE_S = 90


def settings_for(forge: Forge, **more: str) -> dict[str, str]:
    """The environment of a server that works with this forge."""
    return {
        "GITHUB_TOKEN": FORGE_TOKEN,
        "GITHUB_API_URL": forge.api_url,
        "CAISSON_GITHUB_URL": forge.url,
        "CAISSON_CLONE_TIMEOUT_MS": "300000",  # a busy machine is no reason to give up
        "CAISSON_FLOW_RETRY_MIN_MS": "100",
        "CAISSON_FLOW_RETRY_MAX_MS": "1000",
        **more,
    }


class Platform:
    def __init__(self, server: CaissonServer) -> None:
        self.server = server
        self.rest = Rest(server)

    def ask(self, method: str, path: str, body: object = None, status: int | None = None, **options) -> Response:
        answer = self.rest.request(method, "/api/v1" + path, body, **options)
        if status is not None:
            assert answer.status == status, answer
        return answer

    def get(self, path: str, **query: object) -> dict:
        pairs = urlencode(query, doseq=True)
        return self.ask("GET", path + ("?" + pairs if pairs else ""), status=200).json()

    def add_agent(self, script: str, name: str = "worker", **fields: object) -> dict:
        """An agent that is a shell script, run in the checkout."""
        body = {"name": name, "role": "developer", "adapter": "command",
                "config": {"command": ["bash", "-c", script]}, **fields}
        return self.ask("POST", "/agents", body, 201).json()

    def start(self, agent: dict, title: str = "Write the file", **fields: object) -> dict:
        body = {"title": title, "repo_url": FORGE_REPOSITORY, **fields}
        return self.ask("POST", f"/agents/{agent['id']}/start-task", body, 202).json()

    def run(self, run_id: str) -> dict:
        return self.get(f"/runs/{run_id}")

    def wait(self, started: dict, state: str = "succeeded", deadline_s: float = DEADLINE_S) -> dict:
        """Waits for the end of the run, which must be as expected; the whole run is shown if not."""
        deadline = time.monotonic() + deadline_s
        while True:
            try:
                run = self.run(started["run_id"])
            except (ConnectionError, TimeoutError):
                run = {"state": "unknown"}
            if run["state"] in ENDED:
                assert run["state"] == state, json.dumps(run, indent=1)
                return run
            assert time.monotonic() < deadline, f"the run does not end: {json.dumps(run, indent=1)}"
            time.sleep(0.1)

    def wait_for_error(self, started: dict, deadline_s: float = DEADLINE_S) -> str:
        """Waits until the run has failed, or stands still until somebody helps; what it says then."""
        deadline = time.monotonic() + deadline_s
        while True:
            run = self.run(started["run_id"])
            if run["error"] and run["state"] in ("waiting", "failed", "dead"):
                return run["error"]
            assert time.monotonic() < deadline, f"the run does not fail: {json.dumps(run, indent=1)}"
            time.sleep(0.1)

    def wait_for_event(self, kind: str, deadline_s: float = DEADLINE_S, **about: object) -> dict:
        deadline = time.monotonic() + deadline_s
        while True:
            found = self.events(type=kind, **about)
            if found:
                return found[-1]
            assert time.monotonic() < deadline, f"no event {kind} came"
            time.sleep(0.05)

    def events(self, **about: object) -> list[dict]:
        """The whole log of what it is about, oldest first."""
        events, after = [], 0
        while True:
            page = self.get("/events/history", after=after, limit=1000, **about)
            events += page["events"]
            if "next" not in page:
                return events
            after = page["next"]

    def output(self, **about: object) -> str:
        return "".join(e["output"] for e in self.events(type="command_output", **about))

    def next_line(self, started: dict) -> None:
        """Waits until its agent has said more than so far."""
        told = len(self.output(execution_id=started["execution_id"]))
        deadline = time.monotonic() + DEADLINE_S
        while len(self.output(execution_id=started["execution_id"])) == told:
            assert time.monotonic() < deadline, "the agent says no more"
            time.sleep(0.05)

    def enough(self, started: dict) -> None:
        """Tells an agent that is COUNTING."""
        sandbox = self.get(f"/executions/{started['execution_id']}")["sandbox_id"]
        self.ask("POST", f"/sandboxes/{sandbox}/execute", {"command": "touch /tmp/enough"}, 200)

    def live_sandboxes(self) -> list[dict]:
        return self.rest.list()

    def check_events(self, started: dict, lines: list[str]) -> None:
        """An execution that succeeded: every event once and in its order, and the agent said these lines."""
        events = self.events(execution_id=started["execution_id"])
        ids = [event["id"] for event in events]
        assert ids == sorted(set(ids))
        kinds = [event["type"] for event in events]
        for once in ("execution_started", "pr_created", "execution_completed"):
            assert kinds.count(once) == 1, (once, kinds)
        done = [e["step"] for e in events if e["type"] == "execution_step" and e["state"] == "done"]
        assert done == STEPS
        said = self.output(execution_id=started["execution_id"]).splitlines()
        assert said == lines
