"""A sandbox that dies while it is being used: an error that says so, and never a hang."""

from __future__ import annotations

import asyncio

import pytest
from e2b import TimeoutException
from flavors import Flavor, Terminal, Uniform, Watch, until

DIED = "The sandbox was killed or reached its end of life while the request was in flight"
DEADLINE_S = 30


async def expect_death(waiting) -> None:
    with pytest.raises(TimeoutException, match=DIED):
        await asyncio.wait_for(waiting, DEADLINE_S)


@pytest.mark.quick
async def test_foreground_command(flavor: Flavor, fresh: Uniform):
    running = asyncio.ensure_future(fresh.commands.run("sleep 300", timeout=0))
    await asyncio.sleep(0.7)
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
    sandbox = await flavor.api.create(timeout=3)
    await expect_death(sandbox.commands.run("sleep 300", timeout=0))
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
    other = asyncio.ensure_future(sandbox.commands.run("sleep 3; echo untouched"))
    running = asyncio.ensure_future(fresh.commands.run("sleep 300", timeout=0))
    await asyncio.sleep(0.7)
    await fresh.kill()
    await expect_death(running)
    assert (await other).stdout == "untouched\n"
