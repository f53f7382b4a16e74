"""Keys take turns at what is slow."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.envd import Envd
from support.rest import Rest
from support.waiting import wait_until_gone

PROCESSES = 500


def wait_for_processes(envd: Envd) -> None:
    envd.run(f"for _ in $(seq {PROCESSES}); do sleep 1000 & done > /dev/null 2>&1; true")
    envd.run(f"until [ $(pgrep -c -x sleep) -ge {PROCESSES} ]; do sleep 0.1; done")


@pytest.mark.timeout(300)
def test_who_saves_a_lot_does_not_keep_others_waiting(make_server):
    """One more large sandbox is paused than there are launchers; another key makes one meanwhile."""
    server = make_server(["--set", "launchers=3", "--set", "save_timeout_ms=240000"])
    rest = Rest(server)
    other = rest.post("/api/v1/keys", {"name": "other", "own_user": True})
    assert other.status == 201, other
    large = [rest.create(timeout=600) for _ in range(4)]
    for made in large:
        wait_for_processes(Envd(server, made, 120))

    def pause(made: dict) -> float:
        assert rest.post(f"/sandboxes/{made['sandboxID']}/pause", {}, timeout=240).status == 204
        return time.monotonic()

    with ThreadPoolExecutor(len(large)) as pool:
        paused = [pool.submit(pause, made) for made in large]
        wait_until_gone(lambda: [one for one in large if rest.detail(one)["state"] != "paused"], "running")
        assert not any(future.done() for future in paused), "this shows nothing: pausing was too quick"
        made = rest.post("/v2/sandboxes", {"templateID": "base", "timeout": 60}, key=other.json()["key"])
        created_at = time.monotonic()
        assert made.status == 201, made
        # First come first served it would have waited for two of them.
        assert created_at < sorted(future.result() for future in paused)[1]
    for one in large:
        rest.kill(one)
