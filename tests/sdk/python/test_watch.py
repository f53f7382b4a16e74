"""Watching directories: polled by the sync client, streamed to the async one."""

from __future__ import annotations

import pytest
from e2b import FileNotFoundException, FilesystemEventType, FileType, SandboxException
from flavors import Uniform, Watch, until

CREATE = FilesystemEventType.CREATE
WRITE = FilesystemEventType.WRITE
REMOVE = FilesystemEventType.REMOVE
RENAME = FilesystemEventType.RENAME
CHMOD = FilesystemEventType.CHMOD


@pytest.mark.quick
async def test_create_write_remove(sandbox: Uniform, workdir: str):
    watch = await Watch.start(sandbox, workdir)
    await sandbox.files.write(f"{workdir}/new.txt", "1")
    await watch.expect(CREATE, "new.txt")
    await watch.expect(WRITE, "new.txt")
    await sandbox.files.remove(f"{workdir}/new.txt")
    await watch.expect(REMOVE, "new.txt")
    await watch.stop()


async def test_overwrite_is_a_write(sandbox: Uniform, workdir: str):
    await sandbox.files.write(f"{workdir}/old.txt", "1")
    watch = await Watch.start(sandbox, workdir)
    await sandbox.files.write(f"{workdir}/old.txt", "2")
    await watch.expect(WRITE, "old.txt")
    assert CREATE not in [e.type for e in watch.events]
    await watch.stop()


async def test_rename_and_chmod(sandbox: Uniform, workdir: str):
    await sandbox.files.write(f"{workdir}/a", "1")
    watch = await Watch.start(sandbox, workdir)
    await sandbox.commands.run(f"chmod 600 {workdir}/a && mv {workdir}/a {workdir}/b")
    await watch.expect(CHMOD, "a")
    await watch.expect(RENAME, "a")
    await watch.expect(CREATE, "b")
    await watch.stop()


async def test_directories_are_reported_too(sandbox: Uniform, workdir: str):
    watch = await Watch.start(sandbox, workdir)
    await sandbox.files.make_dir(f"{workdir}/sub")
    await watch.expect(CREATE, "sub")
    await sandbox.files.remove(f"{workdir}/sub")
    await watch.expect(REMOVE, "sub")
    await watch.stop()


async def test_not_recursive_unless_asked(sandbox: Uniform, workdir: str):
    await sandbox.files.make_dir(f"{workdir}/sub")
    watch = await Watch.start(sandbox, workdir)
    await sandbox.files.write(f"{workdir}/sub/inner.txt", "1")
    await sandbox.files.write(f"{workdir}/marker.txt", "1")
    await watch.expect(CREATE, "marker.txt")
    assert not [e for e in watch.events if "inner" in e.name]
    await watch.stop()


@pytest.mark.quick
async def test_recursive(sandbox: Uniform, workdir: str):
    await sandbox.files.make_dir(f"{workdir}/sub/deep")
    watch = await Watch.start(sandbox, workdir, recursive=True)
    await sandbox.files.write(f"{workdir}/sub/deep/inner.txt", "1")
    await watch.expect(WRITE, "sub/deep/inner.txt")
    await watch.stop()


async def test_recursive_covers_directories_made_later(sandbox: Uniform, workdir: str):
    watch = await Watch.start(sandbox, workdir, recursive=True)
    await sandbox.files.make_dir(f"{workdir}/later")
    await watch.expect(CREATE, "later")
    await sandbox.files.write(f"{workdir}/later/file.txt", "1")
    await watch.expect(WRITE, "later/file.txt")
    await sandbox.files.make_dir(f"{workdir}/later/more")
    await watch.expect(CREATE, "later/more")
    await sandbox.files.write(f"{workdir}/later/more/f", "1")
    await watch.expect(WRITE, "later/more/f")
    await watch.stop()


async def test_include_entry(sandbox: Uniform, workdir: str):
    watch = await Watch.start(sandbox, workdir, include_entry=True)
    await sandbox.files.write(f"{workdir}/seen.txt", "12345")
    event = await watch.expect(WRITE, "seen.txt")
    assert event.entry is not None
    assert event.entry.name == "seen.txt"
    assert event.entry.path == f"{workdir}/seen.txt"
    assert event.entry.type == FileType.FILE
    await sandbox.files.remove(f"{workdir}/seen.txt")
    removed = await watch.expect(REMOVE, "seen.txt")
    assert removed.entry is None
    await watch.stop()


async def test_entry_is_absent_by_default(sandbox: Uniform, workdir: str):
    watch = await Watch.start(sandbox, workdir)
    await sandbox.files.write(f"{workdir}/plain.txt", "1")
    assert (await watch.expect(CREATE, "plain.txt")).entry is None
    await watch.stop()


async def test_odd_names(sandbox: Uniform, workdir: str):
    watch = await Watch.start(sandbox, workdir)
    for name in ("with space", "ünï-☃", "-dash", "line\nbreak", "per%20cent"):
        await sandbox.files.write(f"{workdir}/{name}", "1")
        await watch.expect(CREATE, name)
    await watch.stop()


async def test_many_events_all_arrive(sandbox: Uniform, workdir: str):
    watch = await Watch.start(sandbox, workdir)
    await sandbox.commands.run(f"cd {workdir} && for i in $(seq 1 500); do : > f$i; done")
    await watch.expect(CREATE, "f500", 30)
    created = {e.name for e in watch.events if e.type == CREATE}
    assert created == {f"f{i}" for i in range(1, 501)}
    await watch.stop()


async def test_two_watches_are_independent(sandbox: Uniform, workdir: str):
    first = await Watch.start(sandbox, workdir)
    second = await Watch.start(sandbox, workdir)
    await first.stop()
    await sandbox.files.write(f"{workdir}/still.txt", "1")
    await second.expect(CREATE, "still.txt")
    await second.stop()


@pytest.mark.quick
async def test_missing_directory_and_a_file(sandbox: Uniform, workdir: str):
    with pytest.raises(FileNotFoundException):
        await Watch.start(sandbox, f"{workdir}/nothing")
    await sandbox.files.write(f"{workdir}/file", "1")
    with pytest.raises(SandboxException, match="(?i)director"):
        await Watch.start(sandbox, f"{workdir}/file")


async def test_stopped_watch(sandbox: Uniform, workdir: str):
    watch = await Watch.start(sandbox, workdir)
    await sandbox.files.write(f"{workdir}/f", "1")
    await watch.expect(CREATE, "f")
    await watch.stop()
    if sandbox.flavor.is_async:
        await until(lambda: watch.exits == [None], 30, "on_exit after stop")
    else:
        with pytest.raises(SandboxException, match="already stopped"):
            await watch.handle.get_new_events()


async def test_stream_ends_with_its_timeout(sandbox: Uniform, workdir: str):
    if not sandbox.flavor.is_async:
        # The polled watch has no stream: it lives until it is stopped.
        watch = await Watch.start(sandbox, workdir)
        assert await watch.poll() == []
        await watch.stop()
        return
    watch = await Watch.start(sandbox, workdir, timeout=4)  # so long may its start take on a busy machine
    await until(lambda: watch.exits, 30, "the end of a watch with timeout=4")
    assert type(watch.exits[0]).__name__ == "TimeoutException"
