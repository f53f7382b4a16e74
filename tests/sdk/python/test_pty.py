"""Pseudo-terminals."""

from __future__ import annotations

import re

import pytest
from e2b import CommandExitException, NotFoundException, SandboxException
from flavors import Terminal, Uniform, until


def terminal_over(sandbox: Uniform, handle: Uniform) -> Terminal:
    """A Terminal over a command that has none."""
    terminal = Terminal(sandbox)
    terminal.handle = handle
    return terminal


@pytest.mark.quick
async def test_a_shell_with_a_size(sandbox: Uniform):
    terminal = await Terminal.open(sandbox, rows=33, cols=111)
    await terminal.send("stty size; echo $TERM-$LANG; tty\n")
    await terminal.expect("33 111")
    await terminal.expect("xterm-256color-C.UTF-8")
    await terminal.expect("/dev/pts/")
    await terminal.send("exit\n")
    result = await terminal.wait()
    assert result.exit_code == 0


async def test_resize(sandbox: Uniform):
    terminal = await Terminal.open(sandbox, rows=24, cols=80)
    await terminal.send("trap 'echo resized:$(stty size)' WINCH; echo ready$((1+1))\n")
    await terminal.expect("ready2")
    await terminal.resize(rows=50, cols=132)
    await terminal.send("\n")
    await terminal.expect("resized:50 132")
    await terminal.send("tput cols; tput lines\n")
    await terminal.expect("132\r\n50")
    assert await sandbox.pty.kill(terminal.pid) is True


async def test_environment_directory_and_user(sandbox: Uniform):
    terminal = await Terminal.open(sandbox, cwd="/tmp", envs={"MARK": "seen", "TERM": "dumb"})
    await terminal.send("echo $MARK:$TERM:$(pwd):$(whoami)\n")
    await terminal.expect("seen:dumb:/tmp:user")
    await terminal.send("exit\n")
    await terminal.wait()
    root = await Terminal.open(sandbox, user="root")
    await root.send("echo I-am-$(whoami)\n")
    await root.expect("I-am-root")
    await root.send("exit\n")
    await root.wait()


async def test_exit_code(sandbox: Uniform):
    terminal = await Terminal.open(sandbox)
    await terminal.send("exit 7\n")
    with pytest.raises(CommandExitException) as caught:
        await terminal.wait()
    assert caught.value.exit_code == 7


@pytest.mark.quick
async def test_kill(sandbox: Uniform):
    terminal = await Terminal.open(sandbox)
    assert terminal.pid in [p.pid for p in await sandbox.commands.list()]
    assert await sandbox.pty.kill(terminal.pid) is True
    with pytest.raises(CommandExitException) as caught:
        await terminal.wait()
    assert caught.value.exit_code == -1

    async def gone() -> bool:
        return await sandbox.pty.kill(terminal.pid) is False

    await until(gone)


async def test_control_characters_reach_the_program(sandbox: Uniform):
    terminal = await Terminal.open(sandbox)
    # What it prints shows that it has the terminal; a shell that is about to start a program does not pass Ctrl-C on.
    await terminal.send("sh -c 'echo go$((1+1))ing; exec sleep 300'\n")
    await terminal.expect("go2ing")
    await terminal.send(b"\x03")
    await terminal.send("echo status=$?\n")
    await terminal.expect("status=130")
    await terminal.send(b"\x04")
    assert (await terminal.wait()).exit_code == 0


async def test_bytes_pass_unchanged(sandbox: Uniform):
    terminal = await Terminal.open(sandbox)
    await terminal.send("stty raw -echo; echo raw$((1+1)); head -c 6 | od -An -tx1; stty sane\n")
    await terminal.expect("raw2")
    await terminal.send(bytes([0x00, 0xFF, 0xFE, 0x80, 0x0D, 0x1B]))
    await terminal.expect("00 ff fe 80 0d 1b")
    await sandbox.pty.kill(terminal.pid)


async def test_connect_to_a_running_terminal(sandbox: Uniform):
    terminal = await Terminal.open(sandbox)
    await terminal.send("echo first-$((20+3))\n")
    await terminal.expect("first-23")
    other = await Terminal.connect(sandbox, terminal.pid)
    assert other.pid == terminal.pid
    await other.send("echo second-$((40+5))\n")
    await other.expect("second-45")
    await terminal.expect("second-45")
    await other.send("exit\n")
    assert (await terminal.wait()).exit_code == 0
    assert (await other.wait()).exit_code == 0


async def test_wrong_use(sandbox: Uniform):
    with pytest.raises(NotFoundException):
        await Terminal.connect(sandbox, 4_000_000)
    plain = await sandbox.commands.run("sleep 300", background=True)
    try:
        with pytest.raises(SandboxException):
            await sandbox.pty.send_stdin(plain.pid, b"x")
        with pytest.raises(SandboxException):
            await terminal_over(sandbox, plain).resize(rows=10, cols=10)
    finally:
        await plain.kill()
    terminal = await Terminal.open(sandbox)
    with pytest.raises(SandboxException):
        await sandbox.commands.send_stdin(terminal.pid, "x")
    await sandbox.pty.kill(terminal.pid)


async def test_much_output(sandbox: Uniform):
    terminal = await Terminal.open(sandbox)
    await terminal.send("seq 1 50000; echo all-$((1+1))-done\n")
    await terminal.expect("all-2-done", 60)
    numbers = [int(n) for n in re.findall(rb"[\r\n](\d+)(?=\r\n)", terminal.output)]
    assert numbers == list(range(1, 50001))
    await sandbox.pty.kill(terminal.pid)


async def test_stream_input(sandbox: Uniform):
    terminal = await Terminal.open(sandbox)
    pieces = [b"echo pie", b"ce-$((", b"40+2))\n"]
    if sandbox.flavor.is_async:
        stream = sandbox.target.pty.stream_input(terminal.pid)
        for piece in pieces:
            await stream.send(piece)
        await stream.close()
    else:
        await sandbox.pty.stream_input(terminal.pid, pieces)
    await terminal.expect("piece-42")
    await sandbox.pty.kill(terminal.pid)
