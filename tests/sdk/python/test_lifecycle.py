"""Create, connect, inspect, extend, kill."""

from __future__ import annotations

import datetime
import re

import pytest
from e2b import (
    AuthenticationException,
    SandboxException,
    SandboxNotFoundException,
    SandboxNotRunningException,
    SandboxState,
)
from flavors import Flavor, Uniform, until


@pytest.mark.quick
async def test_create_run_kill(flavor: Flavor):
    sandbox = await flavor.api.create()
    try:
        assert re.fullmatch(r"i[a-z0-9]{20}", sandbox.sandbox_id)
        assert await sandbox.is_running() is True
        result = await sandbox.commands.run("echo hello")
        assert (result.stdout, result.stderr, result.exit_code, result.error) == (
            "hello\n",
            "",
            0,
            None,
        )
    finally:
        assert await sandbox.kill() is True
    assert await sandbox.is_running() is False


async def test_info_of_a_default_sandbox(flavor: Flavor):
    before = datetime.datetime.now(datetime.UTC)
    sandbox = await flavor.api.create()
    try:
        info = await sandbox.get_info()
        assert info.sandbox_id == sandbox.sandbox_id
        assert info.name == "base"
        assert info.template_id
        assert info.metadata == {}
        assert info.state == SandboxState.RUNNING
        assert info.cpu_count >= 1 and info.memory_mb >= 128
        assert re.fullmatch(r"\d+\.\d+\.\d+", info.envd_version)
        assert abs((info.started_at - before).total_seconds()) < 60
        # The v2 route's default lifetime is 300 s.
        assert (info.end_at - info.started_at).total_seconds() == pytest.approx(300, abs=5)
        by_id = await flavor.api.get_info(sandbox.sandbox_id)
        assert by_id == info
    finally:
        await sandbox.kill()


@pytest.mark.quick
async def test_create_with_metadata_and_environment(flavor: Flavor):
    metadata = {"purpose": "test", "odd key": "a&b=c %41 é"}
    envs = {"GREETING": "hello world", "QUOTES": 'it\'s "fine"', "EMPTY": ""}
    sandbox = await flavor.api.create(metadata=metadata, envs=envs, timeout=77)
    try:
        info = await sandbox.get_info()
        assert info.metadata == metadata
        assert (info.end_at - info.started_at).total_seconds() == pytest.approx(77, abs=3)
        shown = await sandbox.commands.run(
            'printf "%s|%s|%s|%s" "$GREETING" "$QUOTES" "${EMPTY-unset}" "$E2B_SANDBOX"'
        )
        assert shown.stdout == 'hello world|it\'s "fine"||true'
        ids = await sandbox.commands.run('echo "$E2B_SANDBOX_ID"')
        assert ids.stdout.strip() == sandbox.sandbox_id
        overridden = await sandbox.commands.run("echo $GREETING", envs={"GREETING": "mine"})
        assert overridden.stdout == "mine\n"
    finally:
        await sandbox.kill()


@pytest.mark.parametrize("timeout", [0, -5])
async def test_create_refuses_a_timeout_that_is_over(flavor: Flavor, timeout: int):
    with pytest.raises(SandboxException) as caught:
        await flavor.api.create(timeout=timeout)
    assert caught.value.status_code == 400
    assert "Timeout must be greater than 0" in str(caught.value)


@pytest.mark.quick
async def test_create_of_an_unknown_template(flavor: Flavor):
    with pytest.raises(SandboxException) as caught:
        await flavor.api.create("no-such-template")
    assert caught.value.status_code == 404
    assert "no-such-template" in str(caught.value)


@pytest.mark.quick
async def test_wrong_api_key(flavor: Flavor, sandbox: Uniform):
    wrong = "e2b_" + "0" * 40
    for call in (
        flavor.api.create(api_key=wrong),
        flavor.api.get_info(sandbox.sandbox_id, api_key=wrong),
        flavor.api.kill(sandbox.sandbox_id, api_key=wrong),
        flavor.api.connect(sandbox.sandbox_id, api_key=wrong),
    ):
        with pytest.raises(AuthenticationException):
            await call
    assert await sandbox.is_running() is True


async def test_expiry_ends_the_sandbox(flavor: Flavor):
    sandbox = await flavor.api.create(timeout=3)

    async def gone() -> bool:
        return not await sandbox.is_running()

    await until(gone, 30, "the end of a sandbox with timeout=3")
    with pytest.raises(SandboxNotFoundException):
        await sandbox.get_info()
    with pytest.raises(SandboxNotRunningException):
        await sandbox.commands.run("echo too late")
    assert await sandbox.kill() is False


@pytest.mark.quick
async def test_kill_twice_and_what_follows(flavor: Flavor):
    sandbox = await flavor.api.create()
    assert await flavor.api.kill(sandbox.sandbox_id) is True
    assert await flavor.api.kill(sandbox.sandbox_id) is False
    assert await sandbox.kill() is False
    assert await sandbox.is_running() is False
    with pytest.raises(SandboxNotFoundException):
        await flavor.api.get_info(sandbox.sandbox_id)
    with pytest.raises(SandboxNotFoundException):
        await flavor.api.connect(sandbox.sandbox_id)
    with pytest.raises(SandboxNotFoundException):
        await sandbox.set_timeout(30)
    with pytest.raises(SandboxNotFoundException):
        await sandbox.get_metrics()
    with pytest.raises(SandboxNotRunningException):
        await sandbox.commands.run("true")
    with pytest.raises(SandboxNotRunningException):
        await sandbox.files.list("/")
    with pytest.raises(SandboxNotRunningException):
        await sandbox.files.read("/etc/hostname")


async def test_kill_of_an_unknown_sandbox(flavor: Flavor):
    assert await flavor.api.kill("i" + "0" * 20) is False


@pytest.mark.quick
async def test_connect_reaches_the_same_machine(flavor: Flavor, fresh: Uniform):
    await fresh.files.write("note.txt", "left here")
    other = await flavor.api.connect(fresh.sandbox_id)
    assert other.sandbox_id == fresh.sandbox_id
    assert await other.is_running() is True
    assert await other.files.read("note.txt") == "left here"
    assert (await other.commands.run("cat note.txt")).stdout == "left here"


async def test_connect_never_shortens_the_life(flavor: Flavor, fresh: Uniform):
    before = (await fresh.get_info()).end_at
    await flavor.api.connect(fresh.sandbox_id, timeout=10)
    assert (await fresh.get_info()).end_at == before
    await fresh.connect(timeout=1000)
    after = (await fresh.get_info()).end_at
    assert 600 < (after - before).total_seconds() < 710


async def test_set_timeout_moves_the_end_both_ways(flavor: Flavor, fresh: Uniform):
    for seconds in (900, 60):
        now = datetime.datetime.now(datetime.UTC)
        await fresh.set_timeout(seconds)
        end = (await fresh.get_info()).end_at
        assert -1 < (end - now).total_seconds() - seconds < 30  # the call itself may take its time
    await flavor.api.set_timeout(fresh.sandbox_id, 500)
    await fresh.set_timeout(0)

    async def gone() -> bool:
        return not await fresh.is_running()

    await until(gone, 30, "the end after set_timeout(0)")


async def test_sandboxes_do_not_see_each_other(flavor: Flavor, fresh: Uniform, sandbox: Uniform):
    await fresh.files.write("/tmp/mine.txt", "secret")
    assert await sandbox.files.exists("/tmp/mine.txt") is False
    handle = await fresh.commands.run("exec -a lonely-process sleep 300", background=True)
    found = await sandbox.commands.run("ps aux | grep -c '[l]onely-process' || true")
    assert found.stdout.strip() == "0"
    await handle.kill()


async def test_metrics(flavor: Flavor, sandbox: Uniform):
    metrics = await until(sandbox.get_metrics, 40, "a first metric")
    latest = metrics[-1]
    assert latest.cpu_count >= 1 and latest.cpu_used_pct >= 0
    assert 0 < latest.mem_used <= latest.mem_total
    assert 0 <= latest.mem_cache
    assert 0 < latest.disk_used <= latest.disk_total
    assert latest.timestamp.tzinfo is not None
    long_ago = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    outside = await sandbox.get_metrics(
        start=long_ago, end=long_ago + datetime.timedelta(minutes=1)
    )
    assert outside == []


async def test_idempotency_key_creates_once(flavor: Flavor):
    key = f"caisson-test-{datetime.datetime.now().timestamp():.6f}".replace(".", "-")
    first = await flavor.api.create(idempotency_key=key, timeout=60)
    try:
        again = await flavor.api.create(idempotency_key=key, timeout=60)
        assert again.sandbox_id == first.sandbox_id
        assert (await again.commands.run("echo same")).stdout == "same\n"
    finally:
        await first.kill()


@pytest.mark.quick
async def test_context_manager_kills(flavor: Flavor):
    created = await flavor.api.create()
    if flavor.is_async:
        async with created.target as inside:
            await inside.commands.run("true")
    else:
        with created.target as inside:
            inside.commands.run("true")
    assert await created.is_running() is False
