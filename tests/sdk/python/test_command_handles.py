"""Background commands: wait, stdin, connect, kill, disconnect, time limits."""

from __future__ import annotations

import asyncio
import uuid

import pytest
from e2b import CommandExitException, NotFoundException, SandboxException, TimeoutException
from flavors import Uniform, until


async def is_listed(sandbox: Uniform, pid: int) -> bool:
    return pid in [p.pid for p in await sandbox.commands.list()]


class Gate:
    """A command that waits at `wait` goes on when it is opened, however slow the machine is."""

    def __init__(self, sandbox: Uniform) -> None:
        self.sandbox = sandbox
        self.path = f"/tmp/{uuid.uuid4().hex}"
        self.wait = f"until [ -e {self.path} ]; do sleep 0.1; done"

    async def open(self) -> None:
        await self.sandbox.files.write(self.path, "")


async def gone_from_list(sandbox: Uniform, pid: int, deadline_s: float = 30) -> None:
    async def gone() -> bool:
        return not await is_listed(sandbox, pid)

    await until(gone, deadline_s, f"process {pid} leaving the list")


@pytest.mark.quick
async def test_background_command_and_wait(sandbox: Uniform):
    handle = await sandbox.commands.run("sleep 0.5; echo done; echo e >&2", background=True)
    assert handle.pid > 0
    result = await handle.wait()
    assert (result.stdout, result.stderr, result.exit_code) == ("done\n", "e\n", 0)


async def test_background_failure_is_raised_by_wait(sandbox: Uniform):
    handle = await sandbox.commands.run("echo partial; exit 9", background=True)
    with pytest.raises(CommandExitException) as caught:
        await handle.wait()
    assert caught.value.exit_code == 9 and caught.value.stdout == "partial\n"


@pytest.mark.quick
async def test_kill(sandbox: Uniform):
    handle = await sandbox.commands.run("echo begun; sleep 300", background=True)
    assert await handle.kill() is True
    with pytest.raises(CommandExitException) as caught:
        await handle.wait()
    assert caught.value.exit_code == -1
    assert caught.value.error == "signal: killed"
    await gone_from_list(sandbox, handle.pid)
    assert await handle.kill() is False


async def test_kill_ends_the_stream_though_a_child_holds_the_pipe(sandbox: Uniform):
    handle = await sandbox.commands.run("sleep 300 & echo $!; wait", background=True)
    await asyncio.sleep(0.5)
    assert await handle.kill() is True
    with pytest.raises(CommandExitException):
        await asyncio.wait_for(handle.wait(), 30)


@pytest.mark.quick
async def test_stdin_until_closed(sandbox: Uniform):
    gate = Gate(sandbox)
    handle = await sandbox.commands.run(f"cat; {gate.wait}", background=True, stdin=True)
    await sandbox.commands.send_stdin(handle.pid, "first ")
    await handle.send_stdin(b"second \xe2\x82\xac\n")
    await handle.close_stdin()
    await sandbox.commands.close_stdin(handle.pid)  # closing twice is fine
    await gate.open()
    result = await handle.wait()
    assert result.stdout == "first second €\n"


async def test_stdin_of_a_megabyte(sandbox: Uniform):
    handle = await sandbox.commands.run("wc -c", background=True, stdin=True)
    for _ in range(16):
        await handle.send_stdin("z" * 65536)
    await handle.close_stdin()
    assert (await handle.wait()).stdout.strip() == str(16 * 65536)


async def test_stdin_of_a_command_started_without(sandbox: Uniform):
    handle = await sandbox.commands.run("sleep 300", background=True, stdin=False)
    try:
        with pytest.raises(SandboxException):
            await sandbox.commands.send_stdin(handle.pid, "x")
    finally:
        await handle.kill()


async def test_interactive_program(sandbox: Uniform):
    handle = await sandbox.commands.run(
        'while read line; do echo "got $line"; done', background=True, stdin=True
    )
    for word in ("alpha", "beta"):
        await sandbox.commands.send_stdin(handle.pid, word + "\n")
    await handle.close_stdin()
    assert (await handle.wait()).stdout == "got alpha\ngot beta\n"


async def test_stream_input(sandbox: Uniform):
    handle = await sandbox.commands.run("cat", background=True, stdin=True)
    pieces = ["one ", b"two ", "three €\n"]
    if sandbox.flavor.is_async:
        stream = sandbox.target.commands.stream_input(handle.pid)
        for piece in pieces:
            await stream.send(piece)
        await stream.close()
    else:
        await sandbox.commands.stream_input(handle.pid, pieces)
    await handle.close_stdin()
    assert (await handle.wait()).stdout == "one two three €\n"


async def test_stream_input_to_an_unknown_process(sandbox: Uniform):
    with pytest.raises(NotFoundException):
        if sandbox.flavor.is_async:
            stream = sandbox.target.commands.stream_input(4_000_000)
            await stream.send("x")
            await asyncio.wait_for(stream.close(), 20)
        else:
            await sandbox.commands.stream_input(4_000_000, ["x"])


async def test_connect_to_a_running_command(sandbox: Uniform):
    gate = Gate(sandbox)
    handle = await sandbox.commands.run(
        f"for i in $(seq 1 12); do [ $i != 11 ] || {{ {gate.wait}; }}; echo line$i; done; exit 5", background=True
    )
    other = await sandbox.commands.connect(handle.pid)
    assert other.pid == handle.pid
    await gate.open()
    with pytest.raises(CommandExitException) as first:
        await handle.wait()
    with pytest.raises(CommandExitException) as second:
        await other.wait()
    assert first.value.exit_code == second.value.exit_code == 5
    assert first.value.stdout == "".join(f"line{i}\n" for i in range(1, 13))
    assert second.value.stdout.endswith("line11\nline12\n")


async def test_connect_right_after_the_end(sandbox: Uniform):
    handle = await sandbox.commands.run("exit 3", background=True)
    with pytest.raises(CommandExitException):
        await handle.wait()
    assert not await is_listed(sandbox, handle.pid)
    late = await sandbox.commands.connect(handle.pid)
    with pytest.raises(CommandExitException) as caught:
        await late.wait()
    assert caught.value.exit_code == 3


async def test_disconnect_leaves_the_command_running(sandbox: Uniform):
    name = f"/tmp/{uuid.uuid4().hex}"
    gate = Gate(sandbox)
    handle = await sandbox.commands.run(f"{gate.wait}; echo survived > {name}", background=True)
    await handle.disconnect()
    assert await is_listed(sandbox, handle.pid)
    await gate.open()

    async def written() -> bool:
        return await sandbox.files.exists(name)

    await until(written, 30, "the file of a disconnected command")


@pytest.mark.quick
async def test_foreground_timeout(sandbox: Uniform):
    loop = asyncio.get_running_loop()
    begun = loop.time()
    with pytest.raises(TimeoutException):
        await asyncio.wait_for(sandbox.commands.run("sleep 300", timeout=1), 60)
    assert loop.time() - begun >= 0.9


async def test_the_server_kills_the_tree_when_the_time_is_over(sandbox: Uniform):
    mark = "sleep 7" + str(uuid.uuid4().int)[:8]
    with pytest.raises(TimeoutException):
        await sandbox.commands.run(f"{mark} & {mark} & echo $!; wait", timeout=1.5)

    async def nothing_left() -> bool:
        count = await sandbox.commands.run(f"pgrep -cf '^{mark}' || true")
        return count.stdout.strip() == "0"

    await until(nothing_left, 30, "the end of the whole process tree")


async def test_background_command_dies_at_its_timeout_though_nobody_listens(sandbox: Uniform):
    handle = await sandbox.commands.run("sleep 300", background=True, timeout=6)
    await handle.disconnect()
    assert await is_listed(sandbox, handle.pid)
    await gone_from_list(sandbox, handle.pid)


async def test_no_limit_with_timeout_zero(sandbox: Uniform):
    result = await sandbox.commands.run("sleep 2; echo late", timeout=0)
    assert result.stdout == "late\n"


async def test_the_timeout_of_a_connection_does_not_kill(sandbox: Uniform):
    handle = await sandbox.commands.run("sleep 300", background=True, timeout=0)
    try:
        other = await sandbox.commands.connect(handle.pid, timeout=4)
        with pytest.raises(TimeoutException):
            await other.wait()
        assert await is_listed(sandbox, handle.pid)
    finally:
        assert await handle.kill() is True


async def test_many_background_commands_at_once(sandbox: Uniform):
    handles = await asyncio.gather(
        *(sandbox.commands.run("sleep 120", background=True) for _ in range(30))
    )
    pids = {h.pid for h in handles}
    assert len(pids) == 30
    listed = {p.pid for p in await sandbox.commands.list()}
    assert pids <= listed
    assert all(await asyncio.gather(*(h.kill() for h in handles)))
