"""Makes calls of the platform's GitHub client: build/tests/forge_calls, one process per client."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[2] / "build/tests/forge_calls"
DEADLINE_S = 30


class CallFailed(Exception):
    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class Client:
    """`client("get", number=1)`; a failure is a CallFailed. `log` is what it wrote to stderr."""

    def __init__(self, api_url: str, repo: str, **settings: object) -> None:
        self.repo = repo
        self.warnings = 0  # about a low budget
        self._process = subprocess.Popen(
            [str(PROGRAM)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._write({"api_url": api_url, **settings})

    def _write(self, value: dict) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(value) + "\n")
        self._process.stdin.flush()

    def __call__(self, call: str, **arguments: object):
        assert self._process.stdout
        self._write({"call": call, "repo": self.repo, **arguments})
        answer = json.loads(self._process.stdout.readline())
        self.warnings = answer["low_budget_warnings"]
        if not answer["ok"]:
            raise CallFailed(answer["code"], answer["message"])
        return answer["value"]

    def close(self) -> str:
        """Ends the client; what it logged."""
        try:
            _, log = self._process.communicate(timeout=DEADLINE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            _, log = self._process.communicate()
        return log
