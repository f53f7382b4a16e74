"""A sandbox that holds what held.py describes, and what a test does with it."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from held import Held

from support.envd import Envd
from support.rest import Response, Rest

OCTETS = {"Content-Type": "application/octet-stream"}
PORT = 7000
PROGRAM = Path(__file__).with_name("held.py")
# What must be the same after anything that is not a step.
KEPT = ("tree", "entries", "times", "memory", "nameless", "pid")
# What of it a copy outside knows, too.
KNOWN = ("tree", "entries", "memory", "nameless")


def number_from(variable: str, gate: int, full: int) -> int:
    """How much of something: in the gate, in a full run, or what the environment variable says."""
    return int(os.environ.get(variable) or (full if os.environ.get("TEST_SIZE") == "full" else gate))


def wait_for(condition: Callable[[], object], what: str, deadline_s: float = 30) -> None:
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, f"after {deadline_s} s still not: {what}"
        time.sleep(0.05)


class Subject:
    """One sandbox; `seen` is what it held when somebody last looked."""

    def __init__(self, rest: Rest, made: dict, seen: dict | None = None) -> None:
        """`seen`: what it must hold, of the sandbox it is a copy of, which counts on."""
        self.rest = rest
        self.made = made
        self.id = made["sandboxID"]
        self.seen: dict = {**(seen or {}), "count": 0}

    @classmethod
    def start(
        cls, rest: Rest, seed: int = 0, memory_kb: int = 4096, file_kb: int = 16384, **fields
    ) -> Subject:
        made = rest.create(**{"timeout": 900, **fields})
        return cls.inhabit(rest, made, seed, memory_kb, file_kb)

    @classmethod
    def inhabit(
        cls, rest: Rest, made: dict, seed: int = 0, memory_kb: int = 4096, file_kb: int = 16384
    ) -> Subject:
        """Puts the program into a sandbox that is there."""
        subject = cls(rest, made)
        envd = Envd(rest.server, made)
        sent = envd.request("POST", "/files?path=held.py", PROGRAM.read_bytes(), OCTETS)
        assert sent.status == 200, sent
        arguments = f"{PORT} /home/user/held {seed} {memory_kb} {file_kb}"
        stream = envd.start(f"exec python3 /home/user/held.py {arguments}")
        stream.next()
        stream.close()
        wait_for(lambda: subject.ask("/count").status == 200, "the program inside answers")
        subject.look()
        return subject

    # -- the program inside ------------------------------------------------------------------

    def ask(self, path: str) -> Response:
        headers = {"Host": f"{PORT}-{self.id}.caisson.localhost"}
        return self.rest.request("GET", path, headers=headers, key=None)

    def _told(self, path: str) -> dict:
        answer = self.ask(path)
        assert answer.status == 200, (self.id, answer)
        return answer.json()

    def look(self) -> dict:
        self.seen = self._told("/state")
        return self.seen

    def step(self, number: int) -> dict:
        self.seen = self._told(f"/step/{number}")
        return self.seen

    def losses(self) -> list[str]:
        """What is not as it was when somebody last looked; [] is how it should be."""
        before = self.seen
        answer = self.ask("/state")
        if answer.status != 200:
            return [f"the program inside does not answer: {answer}"]
        now = answer.json()
        lost = [f"{name}: {before[name]} became {now[name]}" for name in KEPT if before[name] != now[name]]
        if now["count"] < before["count"]:
            lost.append(f"count: {before['count']} became {now['count']}")
        self.seen = now
        return lost

    def check(self) -> None:
        lost = self.losses()
        assert lost == [], f"{self.id} lost {lost}"

    # -- its life --------------------------------------------------------------------------

    def post(self, action: str, body: object = None) -> Response:
        return self.rest.post(f"/sandboxes/{self.id}/{action}", body)

    def pause(self, **body) -> None:
        answer = self.post("pause", body or None)
        assert answer.status == 204, answer

    def connect(self, **body) -> None:
        answer = self.post("connect", {"timeout": 900, **body})
        assert answer.status == 201, answer

    def state(self) -> str:
        return self.rest.detail(self.id)["state"]

    def snapshot(self) -> str:
        answer = self.post("snapshots", {})
        assert answer.status == 201, answer
        return answer.json()["snapshotID"]

    def copy_of(self, snapshot: str) -> Subject:
        """A sandbox made of a snapshot of this one, which must hold what this one was seen with."""
        return Subject(self.rest, self.rest.create(templateID=snapshot, timeout=900), self.seen)

    def fork(self, count: int = 1) -> list[Subject]:
        answer = self.post("fork", {"count": count, "timeout": 900})
        assert answer.status == 201, answer
        assert all("sandbox" in one for one in answer.json()), answer
        return [Subject(self.rest, one["sandbox"], self.seen) for one in answer.json()]

    def kill(self) -> None:
        answer = self.rest.kill(self.id)
        assert answer.status == 204, answer


class Mirror:
    """The same steps, outside."""

    def __init__(self, seed: int = 0, memory_kb: int = 4096, file_kb: int = 16384) -> None:
        self._scratch = tempfile.mkdtemp(prefix="caisson-mirror-")
        self._held = Held(f"{self._scratch}/held", seed, memory_kb, file_kb)

    def step(self, number: int) -> None:
        self._held.step(number)

    def differences(self, seen: dict) -> list[str]:
        known = self._held.digests()
        return [
            f"{name}: {seen[name]} should be {known[name]}"
            for name in KNOWN
            if known[name] != seen[name]
        ]

    def __enter__(self) -> Mirror:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._scratch)
