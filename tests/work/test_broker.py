"""Git through the broker when the network is not well. What an agent may not do: tests/attack."""

from __future__ import annotations

import time

import pytest
from support.forge import Forge
from support.forge_plugin import FORGE_REPOSITORY
from support.work import Platform

pytestmark = pytest.mark.sanitized


def test_faults_of_the_network_are_survived(platform: Platform, forge: Forge) -> None:
    forge.plant("drop", method="POST", path="git-receive-pack", times=1)
    forge.plant("status", method="GET", path="info/refs", status=503, times=1)
    forge.plant("lose", method="POST", path="/pulls$", times=1)
    agent = platform.add_agent("echo z > z")
    platform.wait(platform.start(agent))
    assert len(forge.repositories[FORGE_REPOSITORY].pulls) == 1


def number_of(platform: Platform, name: str) -> float:
    lines = platform.rest.get("/metrics", key=None).body.decode().splitlines()
    return next((float(line.rpartition(" ")[2]) for line in lines if line.startswith(name + " ")), -1)


def test_clones_are_timed(platform: Platform) -> None:
    count = 'caisson_git_operation_duration_seconds_count{operation="clone"}'
    platform.wait(platform.start(platform.add_agent("echo z > z")))
    deadline = time.monotonic() + 30
    while number_of(platform, count) < 1:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert number_of(platform, count.replace("_count", "_sum")) > 0


def test_the_broker_is_counted(platform: Platform, forge: Forge) -> None:
    kinds = ("fetch", "push", "model", "refused")
    numbers = {kind: f'caisson_broker_requests_total{{kind="{kind}"}}' for kind in kinds}
    assert [number_of(platform, numbers[kind]) for kind in kinds] == [0, 0, 0, 0]
    agent = platform.add_agent("echo z > z; git ls-remote http://127.0.0.1:49990/octo-org/other.git; true")
    platform.wait(platform.start(agent))
    assert number_of(platform, numbers["fetch"]) >= 1
    assert number_of(platform, numbers["push"]) == 1
    assert number_of(platform, numbers["refused"]) >= 1  # a repository that is not the task's
    assert number_of(platform, numbers["model"]) == 0
    assert number_of(platform, "caisson_broker_sandboxes") == 0  # the task's is gone
