"""Flows of E2B's documentation that span several calls, in both clients."""

from __future__ import annotations

import asyncio
import uuid

import pytest
from e2b import CommandExitException, SandboxException, SandboxQuery
from e2b.exceptions import GitUpstreamException
from flavors import Flavor, Uniform, until


@pytest.mark.quick
async def test_the_sandbox_tells_programs_what_it_is(sandbox: Uniform):
    for name, value in (("E2B_SANDBOX", "true"), ("E2B_SANDBOX_ID", sandbox.sandbox_id)):
        by_variable = await sandbox.commands.run(f'printf "%s" "${name}"')
        by_file = await sandbox.commands.run(f"cat /run/e2b/.{name}")
        assert by_variable.stdout == by_file.stdout.strip() == value


async def test_a_variable_of_one_command_is_not_seen_by_another(sandbox: Uniform):
    shown = await sandbox.commands.run("echo $SECRET", envs={"SECRET": "s"})
    assert shown.stdout == "s\n"
    for command in ("echo $SECRET", 'sudo echo "$SECRET"'):
        assert (await sandbox.commands.run(command)).stdout == "\n"


async def test_gateway_that_does_not_start_leaves_no_sandbox(flavor: Flavor):
    """The base template has no MCP gateway: create() fails, and cleans up after itself."""
    metadata = {"mcp": uuid.uuid4().hex}
    with pytest.raises(SandboxException, match="Failed to start MCP gateway"):
        await flavor.api.create("base", timeout=60, metadata=metadata, mcp={"none": {}})
    pages = await flavor.api.list(query=SandboxQuery(metadata=metadata))
    assert await pages.next_items() == []


async def test_git_over_a_daemon_in_the_sandbox(sandbox: Uniform, workdir: str):
    git, repository, port = sandbox.git, f"{workdir}/repo", 9999
    await git.init(repository, initial_branch="main")
    await git.configure_user("Bot", "bot@example.com")
    await sandbox.files.write(f"{repository}/README.md", "hello\n")
    await git.add(repository, all=True)
    await git.commit(repository, message="first")
    await sandbox.commands.run(f"git init --bare --initial-branch=main {workdir}/remote.git")
    daemon = await sandbox.commands.run(
        f"git daemon --reuseaddr --base-path={workdir} --export-all --enable=receive-pack "
        f"--listen=127.0.0.1 --port={port}",
        background=True,
    )
    url = f"git://127.0.0.1:{port}/remote.git"

    async def listens() -> bool:
        try:
            return (await sandbox.commands.run(f"git ls-remote {url}")).exit_code == 0
        except CommandExitException:
            return False

    await until(listens, what="the git daemon")
    await git.remote_add(repository, "origin", url)
    with pytest.raises(GitUpstreamException):
        await git.push(repository, set_upstream=False)
    await git.push(repository, remote="origin", branch="main", set_upstream=True)
    await git.clone(url, path=f"{workdir}/clone")
    await sandbox.files.write(f"{workdir}/clone/more", "1")
    await git.add(f"{workdir}/clone", all=True)
    await git.commit(f"{workdir}/clone", message="second")
    await git.push(f"{workdir}/clone")
    await git.pull(repository)
    assert await sandbox.files.read(f"{repository}/more") == "1"
    await daemon.kill()


async def test_many_clients_of_one_sandbox(flavor: Flavor, sandbox: Uniform, workdir: str):
    await sandbox.files.write(f"{workdir}/shared", "content")

    async def read() -> str:
        connected = await flavor.api.connect(sandbox.sandbox_id)
        return await connected.files.read(f"{workdir}/shared")

    assert await asyncio.gather(*[read() for _ in range(16)]) == ["content"] * 16


async def test_a_client_that_gives_up_leaves_the_command_running(sdk_environment):
    """Only the async client can be canceled in the middle of a call."""
    sandbox = await Flavor("async").api.create(timeout=120)
    try:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(sandbox.commands.run("sleep 50"), 1)
        assert [p.args[-1] for p in await sandbox.commands.list()] == ["sleep 50"]
        assert (await sandbox.commands.run("echo still here")).stdout == "still here\n"
    finally:
        await sandbox.kill()
