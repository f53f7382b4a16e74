"""Sessions of one server, as a user of /api/v1 sees them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from support.work import Platform

DEADLINE_S = 90
# An agent that says back what it was told.
ECHO = 'printf \'{"caisson":"message","text":"you said: %s"}\\n\' "$CAISSON_MESSAGE"'


def wait_until(ask: Callable[[], object], what: str, deadline_s: float = DEADLINE_S) -> object:
    """What `ask` says once it says something true. A server that is away is asked again."""
    end = time.monotonic() + deadline_s
    while True:
        try:
            found = ask()
        except (ConnectionError, TimeoutError):
            found = None
        if found:
            return found
        assert time.monotonic() < end, f"after {deadline_s} s still not: {what}"
        time.sleep(0.05)


class Session:
    def __init__(self, platform: Platform, made: dict) -> None:
        self.platform = platform
        self.made = made
        self.id = made["id"]
        self.path = f"/sessions/{self.id}"

    @classmethod
    def begin(cls, platform: Platform, script: str | None = ECHO, **fields: object) -> Session:
        """With an agent that is this shell script, unless it is None."""
        if script is not None:
            fields["agent_id"] = platform.add_agent(script)["id"]
        return cls(platform, platform.ask("POST", "/sessions", fields, 201).json())

    def ready(self) -> Session:
        """Once its sandbox runs."""
        wait_until(lambda: self.row()["status"] == "active", "the session is active")
        return self

    def row(self) -> dict:
        return self.platform.get(self.path)

    def sandbox_id(self) -> str:
        return self.row()["sandbox_id"]

    def send(self, text: str, **fields: object) -> dict:
        """The answer, which is being written."""
        answer = self.platform.ask("POST", self.path + "/messages", {"text": text, **fields}, 202)
        return answer.json()["answer"]

    def history(self, **query: object) -> dict:
        return self.platform.get(self.path + "/messages", **query)

    def messages(self, role: str | None = None) -> list[dict]:
        found = self.history(limit=200)["messages"]
        return [one for one in found if role in (None, one["role"])]

    def wait(self, answer: dict, state: str = "done", deadline_s: float = DEADLINE_S) -> dict:
        def ended() -> dict | None:
            (now,) = [one for one in self.messages() if one["id"] == answer["id"]]
            return now if now["state"] not in ("queued", "running") else None

        now = wait_until(ended, "the answer has ended", deadline_s)
        assert now["state"] == state, json.dumps(now, indent=1)
        return now

    def say(self, text: str, **fields: object) -> dict:
        return self.wait(self.send(text, **fields))

    def run(self, command: str) -> str:
        """The output of a shell command in its sandbox."""
        answer = self.platform.ask("POST", f"/sandboxes/{self.sandbox_id()}/execute",
                                   {"argv": ["bash", "-c", command]}, 200).json()
        assert answer["exit_code"] == 0, answer
        return answer["stdout"]

    def pause(self) -> dict:
        return self.platform.ask("POST", self.path + "/sandbox/pause", status=200).json()

    def resume(self) -> dict:
        return self.platform.ask("POST", self.path + "/sandbox/provision", status=200).json()

    def sandbox(self) -> dict:
        return self.platform.get(self.path + "/sandbox")

    def wait_for_status(self, status: str, deadline_s: float = DEADLINE_S) -> dict:
        return wait_until(lambda: (row := self.row())["status"] == status and row,
                          f"the session is {status}", deadline_s)

    def ask_port(self, port: int, path: str = "/"):
        """A request for a server inside, as a browser would send it."""
        headers = {"Host": f"{port}-{self.sandbox_id()}.caisson.localhost"}
        return self.platform.rest.request("GET", path, headers=headers, key=None)
