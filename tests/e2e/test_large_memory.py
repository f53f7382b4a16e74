"""Large areas of memory, which do not go CRIU's way: every byte is there after each resume."""

from __future__ import annotations

import copy
import hashlib
import random
from pathlib import Path

import pytest

from support.envd import Envd
from support.rest import Rest, assert_error

MEGABYTES = 24
# Holds memory that is its own (argv[1] = "alone") or that it shares with its child, and a thread.
# On request it changes some of it, and says what all of it is now.
HOLDER = f"""
import hashlib, os, random, sys, threading, time
memory = bytearray(random.Random(7).randbytes({MEGABYTES} << 20))
threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
name = "parent" if sys.argv[1] == "alone" or os.fork() else "child"
turn = 0
while True:
    open(f"/tmp/{{name}}-ready-{{turn}}", "w").close()
    while not os.path.exists(f"/tmp/ask-{{turn}}"):
        time.sleep(0.01)
    for at in range(turn, len(memory), 1 << 16):
        memory[at] ^= 0xFF
    pss = next(line for line in open("/proc/self/smaps_rollup") if line.startswith("Pss:"))
    with open(f"/tmp/{{name}}-answer-{{turn}}.tmp", "w") as answer:
        answer.write(f"{{hashlib.sha256(memory).hexdigest()}} {{pss.split()[1]}}")
    os.rename(f"/tmp/{{name}}-answer-{{turn}}.tmp", f"/tmp/{{name}}-answer-{{turn}}")
    turn += 1
"""


def act(rest: Rest, made: dict, action: str, body: object = None):
    answer = rest.post(f"/sandboxes/{made['sandboxID']}/{action}", body)
    assert answer.status in (201, 204), answer
    return answer


def wait_for_file(envd: Envd, path: str) -> str:
    script = f"for i in $(seq 300); do [ -e {path} ] && exec cat {path}; sleep 0.05; done; exit 1"
    out, _, end = envd.run(script)
    assert end.get("exitCode", 0) == 0, path
    return out.decode()


class Expected:
    """What the holder must say, turn by turn."""

    def __init__(self) -> None:
        self.memory = bytearray(random.Random(7).randbytes(MEGABYTES << 20))
        self.turn = 0

    def check(self, envd: Envd, names: list[str]) -> list[int]:
        """Asks everyone for the next turn; returns the memory each has, as its share in KB."""
        for at in range(self.turn, len(self.memory), 1 << 16):
            self.memory[at] ^= 0xFF
        for name in names:
            wait_for_file(envd, f"/tmp/{name}-ready-{self.turn}")
        envd.run(f"touch /tmp/ask-{self.turn}")
        answers = [wait_for_file(envd, f"/tmp/{name}-answer-{self.turn}").split() for name in names]
        want = hashlib.sha256(self.memory).hexdigest()
        assert [answer[0] for answer in answers] == [want] * len(names), self.turn
        self.turn += 1
        return [int(answer[1]) for answer in answers]


def start(rest: Rest, made: dict, how: str) -> Envd:
    envd = Envd(rest.server, made)
    stream = envd.start(f"exec python3 - {how} <<'END'\n{HOLDER}\nEND")
    stream.next()
    stream.close()
    return envd


def large_files(rest: Rest, made: dict) -> list[Path]:
    saved = Path(rest.server.data_dir) / "engine/saved" / made["sandboxID"]
    return list(saved.glob("memory/large-*.img"))


@pytest.mark.quick
def test_it_survives(rest: Rest):
    with rest.sandbox(timeout=300) as made:
        envd = start(rest, made, "alone")
        expected = Expected()
        expected.check(envd, ["parent"])
        for _ in range(3):
            act(rest, made, "pause", {})
            assert large_files(rest, made), "nothing was saved as a large area"
            act(rest, made, "connect", {"timeout": 300})
            expected.check(envd, ["parent"])
        forks = act(rest, made, "fork", {"count": 3, "timeout": 60}).json()
        for each in [made, *(fork["sandbox"] for fork in forks)]:
            copy.deepcopy(expected).check(Envd(rest.server, each), ["parent"])
        for fork in forks:
            rest.kill(fork["sandbox"])


def test_relatives_still_share(rest: Rest):
    with rest.sandbox(timeout=300) as made:
        envd = start(rest, made, "shared")
        expected = Expected()
        before = expected.check(envd, ["parent", "child"])
        act(rest, made, "pause", {})
        act(rest, made, "connect", {"timeout": 300})
        after = expected.check(envd, ["parent", "child"])
        assert sum(after) < 1.2 * sum(before), (before, after)


def test_a_damaged_area_is_refused(rest: Rest):
    with rest.sandbox(timeout=300) as made:
        envd = start(rest, made, "alone")
        wait_for_file(envd, "/tmp/parent-ready-0")
        act(rest, made, "pause", {})
        for path in large_files(rest, made):
            with path.open("r+b") as file:
                file.truncate(path.stat().st_size - 4096)
        answer = rest.post(f"/sandboxes/{made['sandboxID']}/connect", {"timeout": 300})
        assert_error(answer, answer.status, "damaged")
        assert rest.detail(made)["state"] == "paused"
