"""A program of its own, started by test_egress.py in the network of its server: the SDK keeps threads
for connections, and those of the test program live in another network."""

from __future__ import annotations

import asyncio
import os
import sys

from flavors import Flavor, Uniform

from support.internet import EVIL, GOOD

BY_NAME = {"good.example": GOOD, "evil.example": EVIL}
EVERYTHING = "0.0.0.0/0"


async def reached(sandbox: Uniform) -> set[str]:
    """Which of both pages of this internet it gets, by their names and by their addresses."""
    script = "; ".join(
        f"curl -s --max-time 10 -o /dev/null http://{place}/ && echo {place}"
        for place in (*BY_NAME, *BY_NAME.values())
    )
    return set((await sandbox.commands.run(f"{script}; true", timeout=90)).stdout.split())


async def rules_hold_and_change(flavor: Flavor) -> None:
    good, evil = {"good.example", GOOD}, {"evil.example", EVIL}
    sandbox = await flavor.api.create(
        timeout=600, network={"allow_out": ["good.example"], "deny_out": [EVERYTHING]}
    )
    assert await reached(sandbox) == good
    await sandbox.update_network({"deny_out": [GOOD]})
    assert await reached(sandbox) == evil
    await sandbox.update_network({"allow_out": [EVIL], "deny_out": [EVERYTHING]})
    assert await reached(sandbox) == {EVIL}
    await sandbox.pause()
    await sandbox.connect()
    assert await reached(sandbox) == {EVIL}
    await sandbox.update_network({"deny_out": [EVERYTHING]})
    assert await reached(sandbox) == set()
    await sandbox.update_network({})
    assert await reached(sandbox) == good | evil


async def rules_may_be_functions(flavor: Flavor) -> None:
    """`ctx.all_traffic` is how the SDK says "everything"."""
    sandbox = await flavor.api.create(
        timeout=600, network={"deny_out": lambda ctx: [ctx.all_traffic], "allow_out": [EVIL]}
    )
    assert await reached(sandbox) == {EVIL}
    closed = await flavor.api.create(timeout=600, allow_internet_access=False)
    assert await reached(closed) == set()


if __name__ == "__main__":
    asyncio.run(globals()[sys.argv[1]](Flavor(sys.argv[2])))
    print("held", flush=True)
    # The HTTP library of the SDK (pyqwest) hands results over from threads of its own. One that is about to take the
    # GIL back while the interpreter ends is unwound by CPython < 3.14 through frames that cannot be: abort(), without
    # a word. So this interpreter does not end, it is left.
    os._exit(0)
