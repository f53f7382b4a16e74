"""Waiting until something is gone: cgroups, namespaces, mounts, loop devices, processes. The kernel and the engine
take them away a moment after their user has ended, on a busy machine a long one."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

GONE_DEADLINE_S = 30


def wait_until_gone(left: Callable[[], Collection], what: str, deadline_s: float = GONE_DEADLINE_S) -> None:
    """Asks what is left until nothing is; fails with what there still is after the deadline."""
    end = time.monotonic() + deadline_s
    while found := left():
        assert time.monotonic() < end, f"after {deadline_s} s there is still: {what}: {found}"
        time.sleep(0.05)
