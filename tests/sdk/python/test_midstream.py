"""A sandbox that dies while it is being used: an error that says so, and never a hang."""

from __future__ import annotations

import asyncio
import uuid

import pytest
from e2b import TimeoutException
from flavors import Flavor, Terminal, Uniform, Watch, until

DIED = "The sandbox was killed or reached its end of life while the request was in flight"
DEADLINE_S = 30


async def expect_death(waiting) -> None:
    with pytest.raises(TimeoutException, match=DIED):
        await asyncio.wait_for(waiting, DEADLINE_S)


async def start(sandbox: Uniform) -> asyncio.Future:
    """A command in the foreground that has begun: its client has heard of it, so it is in flight."""
    heard: list[str] = []
    command = "echo begun; sleep 300"
    running = asyncio.ensure_future(sandbox.commands.run(command, timeout=0, on_stdout=heard.append))
    await until(lambda: heard or running.done(), DEADLINE_S, "the first line of the command")
    return running


@pytest.mark.quick
async def test_foreground_command(flavor: Flavor, fresh: Uniform):
    running = await start(fresh)
    assert await fresh.kill() is True
    await expect_death(running)


async def test_background_command(flavor: Flavor, fresh: Uniform):
    handle = await fresh.commands.run("while :; do echo tick; sleep 0.1; done", background=True)
    waiting = asyncio.ensure_future(handle.wait())
    await asyncio.sleep(0.5)
    assert await flavor.api.kill(fresh.sandbox_id) is True
    await expect_death(waiting)


async def test_terminal(flavor: Flavor, fresh: Uniform):
    terminal = await Terminal.open(fresh)
    await terminal.send("echo here\n")
    await terminal.expect("here")
    assert await fresh.kill() is True
    await expect_death(terminal.wait())


async def test_expiry_while_a_command_runs(flavor: Flavor):
    sandbox = await flavor.api.create(timeout=300)
    running = await start(sandbox)
    await sandbox.set_timeout(2)
    await expect_death(running)
    assert await sandbox.is_running() is False


async def test_watch(flavor: Flavor, fresh: Uniform):
    await fresh.files.make_dir("/home/user/watched")
    watch = await Watch.start(fresh, "/home/user/watched")
    assert await fresh.kill() is True
    if flavor.is_async:
        await until(lambda: watch.exits, DEADLINE_S, "the end of the watch")
        assert isinstance(watch.exits[0], TimeoutException)
        assert DIED in str(watch.exits[0])
    else:
        with pytest.raises(TimeoutException):
            await asyncio.wait_for(watch.poll(), DEADLINE_S)


async def test_many_streams_are_cut_together(flavor: Flavor, fresh: Uniform):
    handles = await asyncio.gather(
        *(fresh.commands.run("sleep 300", background=True, timeout=0) for _ in range(20))
    )
    waiting = [asyncio.ensure_future(h.wait()) for h in handles]
    await asyncio.sleep(0.3)
    assert await fresh.kill() is True
    for task in waiting:
        await expect_death(task)


async def test_another_sandbox_is_not_disturbed(flavor: Flavor, fresh: Uniform, sandbox: Uniform):
    go_on = f"/tmp/{uuid.uuid4().hex}"
    waiting = f"until [ -e {go_on} ]; do sleep 0.1; done; echo untouched"
    other = asyncio.ensure_future(sandbox.commands.run(waiting, timeout=100))
    running = await start(fresh)
    await fresh.kill()
    await expect_death(running)
    await sandbox.files.write(go_on, "")
    assert (await other).stdout == "untouched\n"
