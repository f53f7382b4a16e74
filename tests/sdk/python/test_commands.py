"""Running commands: results, users, environments, directories, errors."""

from __future__ import annotations

import asyncio
import uuid

import pytest
from e2b import (
    AuthenticationException,
    CommandExitException,
    InvalidArgumentException,
    NotFoundException,
)
from flavors import Uniform, until


@pytest.mark.quick
async def test_stdout_and_stderr_are_apart(sandbox: Uniform):
    result = await sandbox.commands.run("echo out; echo err >&2")
    assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 0)
    assert result.error is None


@pytest.mark.quick
@pytest.mark.parametrize("code", [1, 2, 42, 127, 255])
async def test_exit_codes(sandbox: Uniform, code: int):
    with pytest.raises(CommandExitException) as caught:
        await sandbox.commands.run(f"echo before; echo trouble >&2; exit {code}")
    assert caught.value.exit_code == code
    assert caught.value.stdout == "before\n"
    assert caught.value.stderr == "trouble\n"
    assert caught.value.error == f"exit status {code}"


async def test_unknown_program(sandbox: Uniform):
    with pytest.raises(CommandExitException) as caught:
        await sandbox.commands.run("no-such-program-anywhere")
    assert caught.value.exit_code == 127
    assert "not found" in caught.value.stderr


@pytest.mark.parametrize(
    "signal,text", [("KILL", "signal: killed"), ("TERM", "signal: terminated")]
)
async def test_ended_by_a_signal(sandbox: Uniform, signal: str, text: str):
    with pytest.raises(CommandExitException) as caught:
        await sandbox.commands.run(f"kill -{signal} $$; sleep 30")
    assert caught.value.exit_code == -1
    assert caught.value.error == text


@pytest.mark.quick
async def test_default_user_directory_and_environment(sandbox: Uniform):
    result = await sandbox.commands.run('echo "$USER|$LOGNAME|$HOME|$(pwd)|$(whoami)|$(id -un)"')
    assert result.stdout.strip() == "user|user|/home/user|/home/user|user|user"
    path = (await sandbox.commands.run("echo $PATH")).stdout
    assert "/usr/bin" in path


@pytest.mark.quick
async def test_as_root(sandbox: Uniform):
    result = await sandbox.commands.run('echo "$(whoami)|$HOME|$USER|$(id -u)"', user="root")
    assert result.stdout.strip() == "root|/root|root|0"


async def test_sudo_needs_no_password(sandbox: Uniform):
    result = await sandbox.commands.run("sudo -n id -u")
    assert result.stdout == "0\n"


@pytest.mark.quick
async def test_unknown_user(sandbox: Uniform):
    with pytest.raises(AuthenticationException, match="invalid username: 'nobody-here'"):
        await sandbox.commands.run("true", user="nobody-here")


async def test_working_directory(sandbox: Uniform, workdir: str):
    assert (await sandbox.commands.run("pwd", cwd="/tmp")).stdout == "/tmp\n"
    relative = workdir.removeprefix("/home/user/")
    assert (await sandbox.commands.run("pwd", cwd=relative)).stdout == workdir + "\n"
    assert (await sandbox.commands.run("pwd", cwd=f"~/{relative}")).stdout == workdir + "\n"


@pytest.mark.quick
async def test_missing_working_directory(sandbox: Uniform):
    with pytest.raises(InvalidArgumentException, match="cwd '/no/such/dir' does not exist"):
        await sandbox.commands.run("true", cwd="/no/such/dir")


async def test_environment_of_one_command(sandbox: Uniform):
    odd = {"A": "one two", "B": "x=y", "C": "line\nbreak", "UNI": "žluťoučký"}
    result = await sandbox.commands.run('printf "%s|%s|%s|%s" "$A" "$B" "$C" "$UNI"', envs=odd)
    assert result.stdout == "one two|x=y|line\nbreak|žluťoučký"
    assert (await sandbox.commands.run("echo ${A-unset}")).stdout == "unset\n"


async def test_the_command_runs_in_a_login_bash(sandbox: Uniform):
    result = await sandbox.commands.run(
        "shopt -q login_shell && echo login; echo ${BASH_VERSION%%.*}"
    )
    first, version = result.stdout.split()
    assert first == "login" and int(version) >= 4


@pytest.mark.quick
async def test_stdin_is_empty_unless_asked_for(sandbox: Uniform):
    result = await sandbox.commands.run("cat; echo end")
    assert result.stdout == "end\n"


async def test_special_characters_in_the_command(sandbox: Uniform):
    text = "quotes ' \" back\\slash $HOME `id` * ? ☃"
    result = await sandbox.commands.run(f"cat <<'END'\n{text}\nEND")
    assert result.stdout == text + "\n"


async def test_callbacks_see_the_output_as_it_comes(sandbox: Uniform):
    out: list[str] = []
    err: list[str] = []
    seen = f"/tmp/{uuid.uuid4().hex}"
    # The second line is only printed once the first was seen.
    script = (
        "for i in 1 2 3; do echo out$i; echo err$i >&2;"
        f" until [ -e {seen} ]; do sleep 0.1; done; done"
    )
    running = asyncio.ensure_future(
        sandbox.commands.run(script, on_stdout=out.append, on_stderr=err.append)
    )
    await until(lambda: out or running.done(), 30, "the first line")
    await sandbox.files.write(seen, "")
    result = await running
    assert "".join(out) == result.stdout == "out1\nout2\nout3\n"
    assert "".join(err) == result.stderr == "err1\nerr2\nerr3\n"
    assert len(out) > 1


@pytest.mark.timeout(180)
async def test_twenty_megabytes_of_output(sandbox: Uniform):
    size = 20 * 1024 * 1024
    result = await sandbox.commands.run(f"head -c {size} /dev/zero | tr '\\0' 'x'", timeout=120)
    assert len(result.stdout) == size
    assert result.stdout.strip("x") == ""


async def test_utf8_split_over_chunks(sandbox: Uniform):
    pieces = [r"\xe2", r"\x82", r"\xac\xf0\x9f", r"\x98\x80"]
    command = "; sleep 0.3; ".join(f"printf '{piece}'" for piece in pieces)
    assert (await sandbox.commands.run(command)).stdout == "€😀"


async def test_bytes_that_are_not_text(sandbox: Uniform):
    result = await sandbox.commands.run(r"printf 'a\xff\xfeb\x00c'")
    assert result.stdout == "a\ufffd\ufffdb\x00c"


async def test_very_long_line_and_no_line_end(sandbox: Uniform):
    result = await sandbox.commands.run("head -c 300000 /dev/zero | tr '\\0' 'y'")
    assert result.stdout == "y" * 300000


@pytest.mark.quick
@pytest.mark.timeout(120)
async def test_fifty_in_parallel(sandbox: Uniform):
    runs = [sandbox.commands.run(f"sleep 0.5; echo {i}; exit 0") for i in range(50)]
    results = await asyncio.gather(*runs)
    assert [r.stdout for r in results] == [f"{i}\n" for i in range(50)]


async def test_the_tools_of_a_development_machine(sandbox: Uniform):
    for command in (
        "git --version",
        "python3 --version",
        "node --version",
        "npm --version",
        "curl --version",
        "rg --version",
        "gcc --version",
        "make --version",
    ):
        result = await sandbox.commands.run(command)
        assert result.exit_code == 0, command
    node = await sandbox.commands.run("node --version")
    assert int(node.stdout[1:].split(".")[0]) >= 18, node.stdout


async def test_git_module(sandbox: Uniform, workdir: str):
    await sandbox.git.init(workdir)
    await sandbox.files.write(f"{workdir}/a.txt", "1")
    status = await sandbox.git.status(workdir)
    assert [entry.name for entry in status.file_status] == ["a.txt"]


async def test_list_shows_what_runs(sandbox: Uniform):
    handle = await sandbox.commands.run(
        "sleep 61", background=True, cwd="/tmp", envs={"MARK": "list"}
    )
    try:
        found = {p.pid: p for p in await sandbox.commands.list()}
        process = found[handle.pid]
        assert process.cmd == "/bin/bash"
        assert process.args == ["-l", "-c", "sleep 61"]
        assert process.envs == {"MARK": "list"}
        assert process.cwd == "/tmp"
        assert process.tag is None
    finally:
        assert await handle.kill() is True

    async def gone() -> bool:
        return handle.pid not in [p.pid for p in await sandbox.commands.list()]

    await until(gone)


@pytest.mark.quick
async def test_kill_of_an_unknown_process(sandbox: Uniform):
    assert await sandbox.commands.kill(4_000_000) is False
    with pytest.raises(NotFoundException, match="process with pid 4000000 not found"):
        await sandbox.commands.connect(4_000_000)
    with pytest.raises(NotFoundException):
        await sandbox.commands.send_stdin(4_000_000, "x")
