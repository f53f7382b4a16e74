"""Pause, resume, auto-pause, auto-resume."""

from __future__ import annotations

import datetime

import pytest
from e2b import (
    CommandExitException,
    SandboxException,
    SandboxNotFoundException,
    SandboxQuery,
    SandboxState,
)
from flavors import Flavor, Terminal, Uniform, until

from support.programs import HTTP_SERVER
from support.rest import Rest

pytestmark = pytest.mark.sanitized

BOOT_ID = "cat /proc/sys/kernel/random/boot_id"
COUNTER = "i=0; while :; do i=$((i+1)); echo $i > /tmp/new; mv /tmp/new /tmp/count; sleep 0.05; done"


async def output(sandbox: Uniform, command: str) -> str:
    return (await sandbox.commands.run(command)).stdout.strip()


async def state(sandbox: Uniform) -> SandboxState:
    return (await sandbox.get_info()).state


@pytest.mark.quick
async def test_processes_and_files_survive(flavor: Flavor, fresh: Uniform):
    boot_id = await output(fresh, BOOT_ID)
    await fresh.files.write("kept.txt", "kept")
    counter = await fresh.commands.run(COUNTER, background=True, timeout=0)
    await until(lambda: fresh.files.exists("/tmp/count"))

    assert await fresh.pause() is True
    assert await fresh.is_running() is False
    assert await state(fresh) == SandboxState.PAUSED
    assert await fresh.pause() is False  # it is already

    again = await flavor.api.connect(fresh.sandbox_id, timeout=120)
    assert again.sandbox_id == fresh.sandbox_id
    assert await state(again) == SandboxState.RUNNING
    assert await again.files.read("kept.txt") == "kept"
    assert await output(again, BOOT_ID) == boot_id
    assert counter.pid in [p.pid for p in await again.commands.list()]
    before = int(await output(again, "cat /tmp/count"))

    async def counts() -> bool:
        return int(await output(again, "cat /tmp/count") or 0) > before

    await until(counts, what="the counter goes on")
    assert await again.commands.kill(counter.pid) is True


async def test_a_server_in_it_goes_on(flavor: Flavor, fresh: Uniform, rest: Rest):
    await fresh.files.write("/tmp/serve.py", HTTP_SERVER)
    await fresh.commands.run("exec python3 /tmp/serve.py 3210 127.0.0.1", background=True, timeout=0)
    host = {"Host": await fresh.get_host(3210)}

    def status() -> int:
        return rest.request("GET", "/", headers=host, key=None).status

    await until(lambda: status() == 200)
    for _ in range(3):
        await fresh.pause()
        assert status() == 502
        await fresh.connect()
        assert status() == 200


async def test_environment_and_user_survive(flavor: Flavor):
    sandbox = await flavor.api.create(envs={"KEPT": "env"}, timeout=300)
    try:
        before = await output(sandbox, "echo $KEPT; whoami; pwd")
        assert before.startswith("env")
        for mode in ("full", "filesystem"):
            await sandbox.pause(mode=mode)
            await sandbox.connect()
            assert await output(sandbox, "echo $KEPT; whoami; pwd") == before
    finally:
        await sandbox.kill()


async def test_without_memory_it_boots_anew(flavor: Flavor, fresh: Uniform):
    boot_id = await output(fresh, BOOT_ID)
    await fresh.files.write("kept.txt", "kept")
    await fresh.commands.run("exec -a forgotten sleep 1000", background=True, timeout=0)
    assert await fresh.pause(mode="filesystem") is True
    await fresh.connect()
    assert await fresh.files.read("kept.txt") == "kept"
    second = await output(fresh, BOOT_ID)
    assert second != boot_id
    assert await output(fresh, "pgrep -f '[f]orgotten' || true") == ""
    # The same of one that was paused with its memory.
    await fresh.pause()
    await fresh.connect(on_resume="reboot")
    assert await output(fresh, BOOT_ID) not in (boot_id, second)
    assert await fresh.files.read("kept.txt") == "kept"


async def test_timeouts_count_anew(flavor: Flavor, fresh: Uniform):
    before = await fresh.get_info()
    await fresh.pause()
    paused = await fresh.get_info()
    assert before.started_at <= paused.end_at < before.end_at  # when it was paused
    with pytest.raises(SandboxNotFoundException):
        await fresh.set_timeout(60)
    await fresh.connect(timeout=77)
    info = await fresh.get_info()
    assert info.started_at > before.started_at
    assert (info.end_at - info.started_at).total_seconds() == pytest.approx(77, abs=2)


async def test_paused_ones_are_listed(flavor: Flavor):
    sandbox = await flavor.api.create(metadata={"who": f"paused-{flavor.name}"}, timeout=300)
    metadata = {"who": f"paused-{flavor.name}"}

    async def listed(*states: SandboxState) -> list[str]:
        paginator = await flavor.api.list(query=SandboxQuery(metadata=metadata, state=list(states)))
        return [one.sandbox_id for one in await paginator.next_items()]

    try:
        await sandbox.pause()
        assert await listed(SandboxState.PAUSED) == [sandbox.sandbox_id]
        assert await listed(SandboxState.RUNNING) == []
        assert await listed(SandboxState.RUNNING, SandboxState.PAUSED) == [sandbox.sandbox_id]
    finally:
        assert await sandbox.kill() is True
    assert await listed(SandboxState.PAUSED) == []
    assert await sandbox.kill() is False
    with pytest.raises(SandboxNotFoundException):
        await flavor.api.connect(sandbox.sandbox_id)


async def test_paused_when_its_time_is_over(flavor: Flavor):
    sandbox = await flavor.api.create(timeout=300, lifecycle={"on_timeout": "pause"})
    try:
        await sandbox.files.write("kept.txt", "kept")
        info = await sandbox.get_info()
        assert info.lifecycle == {"on_timeout": "pause", "auto_resume": False}
        asked = datetime.datetime.now(datetime.UTC)
        await sandbox.set_timeout(2)

        async def paused() -> bool:
            return await state(sandbox) == SandboxState.PAUSED

        await until(paused, what="paused")
        ended = (await sandbox.get_info()).end_at
        assert 1.9 <= (ended - asked).total_seconds() < 32  # when it was paused, not when it would have been
        assert await sandbox.is_running() is False
        await sandbox.connect()
        assert await sandbox.files.read("kept.txt") == "kept"
    finally:
        await sandbox.kill()


async def test_only_files_when_its_time_is_over(flavor: Flavor):
    lifecycle = {"on_timeout": {"action": "pause", "mode": "filesystem"}}
    sandbox = await flavor.api.create(timeout=300, lifecycle=lifecycle)
    try:
        boot_id = await output(sandbox, BOOT_ID)
        await sandbox.set_timeout(2)

        async def paused() -> bool:
            return await state(sandbox) == SandboxState.PAUSED

        await until(paused, what="paused")
        await sandbox.connect()
        assert await output(sandbox, BOOT_ID) != boot_id
    finally:
        await sandbox.kill()


async def test_traffic_resumes_it(flavor: Flavor, rest: Rest):
    lifecycle = {"on_timeout": "pause", "auto_resume": True}
    sandbox = await flavor.api.create(timeout=300, lifecycle=lifecycle)
    try:
        await sandbox.files.write("/tmp/serve.py", HTTP_SERVER)
        await sandbox.commands.run(
            "exec python3 /tmp/serve.py 3211 127.0.0.1", background=True, timeout=0
        )
        host = {"Host": await sandbox.get_host(3211)}

        def status(**headers: str) -> int:
            return rest.request("GET", "/", headers={**host, **headers}, key=None).status

        await until(lambda: status() == 200)
        await sandbox.pause()
        assert await state(sandbox) == SandboxState.PAUSED
        assert status() == 200
        assert await state(sandbox) == SandboxState.RUNNING
        # By a command of the SDK as well.
        await sandbox.pause()
        assert await output(sandbox, "echo awake") == "awake"
        # Nobody else's request to envd does it.
        await sandbox.pause()
        envd = {"E2b-Sandbox-Id": sandbox.sandbox_id, "E2b-Sandbox-Port": "49983"}
        assert rest.request("GET", "/health", headers=envd, key=None).status == 403
        assert await state(sandbox) == SandboxState.PAUSED
        # Without its memory it waits for connect().
        await sandbox.connect()
        await sandbox.pause(mode="filesystem")
        assert status() == 502
        assert await state(sandbox) == SandboxState.PAUSED
    finally:
        await sandbox.kill()


async def test_a_command_ends_when_it_is_paused(flavor: Flavor, fresh: Uniform):
    handle = await fresh.commands.run("sleep 1000", background=True, timeout=0)
    await fresh.pause()
    with pytest.raises(SandboxException):
        await handle.wait()
    await fresh.connect()
    assert handle.pid in [p.pid for p in await fresh.commands.list()]


async def test_a_command_can_be_followed_after_a_pause(flavor: Flavor, fresh: Uniform):
    script = "read -r line; echo got-$line; read -r line; echo got-$line; exit 3"
    command = await fresh.commands.run(script, background=True, stdin=True, timeout=0)
    await fresh.pause()
    again = await flavor.api.connect(fresh.sandbox_id, timeout=120)
    followed = await again.commands.connect(command.pid, timeout=0)
    await again.commands.send_stdin(command.pid, "one\n")
    await again.commands.send_stdin(command.pid, "two\n")
    with pytest.raises(CommandExitException) as caught:
        await followed.wait()
    assert (caught.value.exit_code, caught.value.stdout) == (3, "got-one\ngot-two\n")


async def test_a_terminal_goes_on_after_a_pause(flavor: Flavor, fresh: Uniform):
    terminal = await Terminal.open(fresh, rows=33, cols=111)
    await terminal.send("MARK=kept; cd /tmp; echo ready$((1+1))\n")
    await terminal.expect("ready2")
    await fresh.pause()
    again = await flavor.api.connect(fresh.sandbox_id, timeout=120)
    followed = await Terminal.connect(again, terminal.pid)
    await followed.send("echo $MARK:$(pwd):$(stty size):$$\n")
    await followed.expect(f"kept:/tmp:33 111:{terminal.pid}")
    await followed.resize(rows=50, cols=132)
    await followed.send("stty size; exit 7\n")
    await followed.expect("50 132")
    with pytest.raises(CommandExitException) as caught:
        await followed.wait()
    assert caught.value.exit_code == 7


async def test_a_traced_process_is_frozen_and_goes_on(flavor: Flavor, fresh: Uniform, rest: Rest):
    """What cannot be saved stands still in memory; the API says so, and why."""
    await fresh.commands.run("mkfifo /tmp/fifo")
    traced = await fresh.commands.run(
        "exec strace -qq -o /tmp/trace -e trace=write cat /tmp/fifo", background=True, timeout=0
    )
    # strace traces a child of its own before, to see whether it can.
    tracer = "grep -l '^Name:.cat$' $(grep -lE 'TracerPid:\\s*[1-9]' /proc/[0-9]*/status) /dev/null || true"
    await until(lambda: output(fresh, tracer), what="strace holds its process")

    assert await fresh.pause() is True
    assert await state(fresh) == SandboxState.PAUSED
    saved = rest.get(f"/api/v1/sandboxes/{fresh.sandbox_id}").json()["saved"]
    assert saved["tier"] == "frozen" and "traced by a debugger" in saved["whyFrozen"]
    timeline = rest.get(f"/api/v1/sandboxes/{fresh.sandbox_id}/timeline").json()["events"]
    (paused,) = [event for event in timeline if event["type"] == "paused"]
    assert "stands still in memory" in paused["message"]
    assert "traced by a debugger" in paused["message"]

    await fresh.connect()
    assert await state(fresh) == SandboxState.RUNNING
    assert await output(fresh, tracer) != ""
    followed = await fresh.commands.connect(traced.pid, timeout=0)
    await fresh.commands.run("echo after > /tmp/fifo")
    assert (await followed.wait()).stdout == "after\n"
    assert 'write(1, "after\\n"' in await fresh.files.read("/tmp/trace")
