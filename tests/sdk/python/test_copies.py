"""Snapshots and forks."""

from __future__ import annotations

import uuid

import pytest
from e2b import SandboxException, SandboxNotFoundException
from flavors import Flavor, Uniform, until

pytestmark = pytest.mark.sanitized

SECRET = "import secrets,time\nopen('/tmp/token','w').write(secrets.token_hex())\ntime.sleep(1000)\n"


async def output(sandbox: Uniform, command: str) -> str:
    return (await sandbox.commands.run(command)).stdout.strip()


async def snapshots(flavor: Flavor, **query) -> list[str]:
    found = []
    paginator = await flavor.api.list_snapshots(**query)
    while paginator.has_next:
        found += [one.snapshot_id for one in await paginator.next_items()]
    return found


@pytest.mark.quick
async def test_a_snapshot_is_a_template(flavor: Flavor, fresh: Uniform):
    await fresh.files.write("kept.txt", "kept")
    process = await fresh.commands.run("exec sleep 1000", background=True, timeout=0)
    snapshot = await fresh.create_snapshot()
    assert snapshot.snapshot_id.endswith(":default")
    assert await fresh.is_running() is True
    await fresh.files.write("kept.txt", "changed later")
    copy = await flavor.api.create(snapshot.snapshot_id, timeout=120)
    try:
        assert copy.sandbox_id != fresh.sandbox_id
        assert await copy.files.read("kept.txt") == "kept"
        assert process.pid in [p.pid for p in await copy.commands.list()]
        await copy.files.write("kept.txt", "of the copy")
        assert await fresh.files.read("kept.txt") == "changed later"
        assert await snapshots(flavor, sandbox_id=fresh.sandbox_id) == [snapshot.snapshot_id]
        assert await flavor.api.delete_snapshot(snapshot.snapshot_id) is True
        assert await flavor.api.delete_snapshot(snapshot.snapshot_id) is False
        assert await copy.files.read("kept.txt") == "of the copy"  # what it shares stays
    finally:
        await copy.kill()
    with pytest.raises(SandboxException):
        await flavor.api.create(snapshot.snapshot_id)


async def test_names_and_pages(flavor: Flavor, fresh: Uniform):
    name = f"mine-{uuid.uuid4().hex[:8]}"
    made = [await fresh.create_snapshot(name=f"{name}:v{i}") for i in range(3)]
    try:
        assert [one.names for one in made] == [[f"{name}:v{i}"] for i in range(3)]
        ids = [one.snapshot_id for one in reversed(made)]
        assert await snapshots(flavor, name=name) == ids
        assert await snapshots(flavor, name=f"{name}:v1") == [made[1].snapshot_id]
        assert await snapshots(flavor, sandbox_id=fresh.sandbox_id, limit=1) == ids
        copy = await flavor.api.create(f"{name}:v1", timeout=60)
        await copy.kill()
    finally:
        for one in made:
            assert await flavor.api.delete_snapshot(one.snapshot_id) is True


async def test_a_snapshot_outlives_its_sandbox(flavor: Flavor):
    source = await flavor.api.create(timeout=60, envs={"KEPT": "env"})
    await source.files.write("kept.txt", "kept")
    snapshot = await source.create_snapshot()
    await source.kill()
    try:
        copy = await flavor.api.create(snapshot.snapshot_id, timeout=60)
        assert await output(copy, "cat kept.txt; echo -n $KEPT") == "keptenv"
        await copy.kill()
        with pytest.raises(SandboxNotFoundException):
            await flavor.api.create_snapshot(source.sandbox_id)
    finally:
        assert await flavor.api.delete_snapshot(snapshot.snapshot_id) is True


async def test_forks_run_at_once(flavor: Flavor):
    metadata = {"team": "red"}
    source = await flavor.api.create(timeout=300, metadata=metadata, envs={"KEPT": "env"})
    forks = []
    try:
        await source.files.write("/tmp/secret.py", SECRET)
        process = await source.commands.run(
            "exec python3 /tmp/secret.py", background=True, timeout=0
        )
        await until(lambda: source.files.exists("/tmp/token"))
        before = await source.get_info()
        forks = [source._wrap(fork) for fork in await source.fork(count=3, timeout=60)]
        assert not [fork for fork in forks if isinstance(fork, Exception)]
        ids = {source.sandbox_id} | {fork.sandbox_id for fork in forks}
        assert len(ids) == 4
        after = await source.get_info()
        assert (after.end_at, after.started_at) == (before.end_at, before.started_at)
        for fork in forks:
            info = await fork.get_info()
            assert info.metadata == metadata
            assert (info.end_at - info.started_at).total_seconds() == pytest.approx(60, abs=2)
            assert process.pid in [p.pid for p in await fork.commands.list()]
            assert await output(fork, "echo $KEPT") == "env"
            assert await output(fork, "echo $E2B_SANDBOX_ID") == fork.sandbox_id
        # Each has its own disk.
        for index, fork in enumerate(forks):
            await fork.files.write("mine.txt", str(index))
        for index, fork in enumerate(forks):
            assert await fork.files.read("mine.txt") == str(index)
        assert await source.files.exists("mine.txt") is False
    finally:
        for fork in forks:
            await fork.kill()
        await source.kill()


async def test_what_cannot_be_forked(flavor: Flavor, fresh: Uniform):
    for count in (0, 101):
        with pytest.raises(SandboxException):
            await fresh.fork(count=count)
    await fresh.pause()
    with pytest.raises(SandboxException, match="resume it first"):
        await fresh.fork()
    with pytest.raises(SandboxNotFoundException):
        await flavor.api.fork("i" + "0" * 20)
