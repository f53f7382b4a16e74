"""Directories and entries: list, stat, exists, make, move, remove."""

from __future__ import annotations

import datetime

import pytest
from e2b import FileNotFoundException, FileType, InvalidArgumentException, SandboxException
from flavors import Uniform


@pytest.mark.quick
async def test_list_is_sorted_and_complete(sandbox: Uniform, workdir: str):
    await sandbox.commands.run(f"cd {workdir} && mkdir d && touch b a .hidden Z d/inner")
    entries = await sandbox.files.list(workdir)
    assert [e.name for e in entries] == [".hidden", "Z", "a", "b", "d"]
    assert [e.path for e in entries] == [f"{workdir}/{e.name}" for e in entries]
    assert [e.type for e in entries] == [FileType.FILE] * 4 + [FileType.DIR]


async def test_list_depth(sandbox: Uniform, workdir: str):
    await sandbox.commands.run(f"cd {workdir} && mkdir -p b/c/d a && touch a/1 b/2 b/c/3 b/c/d/4")

    async def names(depth: int) -> list[str]:
        found = await sandbox.files.list(workdir, depth=depth)
        return [e.path.removeprefix(workdir + "/") for e in found]

    assert await names(1) == ["a", "b"]
    assert await names(2) == ["a", "a/1", "b", "b/2", "b/c"]
    assert await names(3) == ["a", "a/1", "b", "b/2", "b/c", "b/c/3", "b/c/d"]
    assert (await names(10))[-1] == "b/c/d/4"
    for depth in (0, -1):
        with pytest.raises(InvalidArgumentException):
            await names(depth)


async def test_list_of_what_is_no_directory(sandbox: Uniform, workdir: str):
    with pytest.raises(FileNotFoundException):
        await sandbox.files.list(f"{workdir}/none")
    await sandbox.files.write(f"{workdir}/file", "1")
    with pytest.raises(InvalidArgumentException):
        await sandbox.files.list(f"{workdir}/file")
    assert await sandbox.files.list(workdir + "/")  # a trailing slash is fine


async def test_list_of_an_empty_directory(sandbox: Uniform, workdir: str):
    assert await sandbox.files.list(workdir) == []


async def test_list_skips_what_is_neither_file_nor_directory(sandbox: Uniform, workdir: str):
    await sandbox.commands.run(f"cd {workdir} && mkfifo pipe && ln -s nowhere broken && touch file")
    assert [e.name for e in await sandbox.files.list(workdir)] == ["file"]


async def test_list_through_links(sandbox: Uniform, workdir: str):
    await sandbox.commands.run(f"cd {workdir} && mkdir real && touch real/f && ln -s real link")
    through = await sandbox.files.list(f"{workdir}/link")
    assert [e.path for e in through] == [f"{workdir}/link/f"]
    # A linked directory is shown but not entered.
    deep = await sandbox.files.list(workdir, depth=3)
    assert [e.path.removeprefix(workdir + "/") for e in deep] == ["link", "real", "real/f"]
    await sandbox.commands.run(f"cd {workdir} && ln -s loop loop")
    with pytest.raises(SandboxException):
        await sandbox.files.list(f"{workdir}/loop")


async def test_large_directory(sandbox: Uniform, workdir: str):
    await sandbox.commands.run(f"cd {workdir} && seq -f 'f%05g' 1 5000 | xargs touch")
    names = [e.name for e in await sandbox.files.list(workdir)]
    assert names == [f"f{i:05d}" for i in range(1, 5001)]


@pytest.mark.quick
async def test_info_of_a_file(sandbox: Uniform, workdir: str):
    path = f"{workdir}/file.txt"
    await sandbox.files.write(path, "12345")
    await sandbox.commands.run(f"chmod 640 {path}")
    entry = await sandbox.files.get_info(path)
    assert (entry.name, entry.path, entry.type) == ("file.txt", path, FileType.FILE)
    assert (entry.size, entry.mode, entry.permissions) == (5, 0o640, "-rw-r-----")
    assert (entry.owner, entry.group) == ("user", "user")
    assert entry.symlink_target is None and entry.metadata is None
    now = datetime.datetime.now(datetime.UTC)
    modified = entry.modified_time
    if modified.tzinfo is None:
        modified = modified.replace(tzinfo=datetime.UTC)
    assert abs((now - modified).total_seconds()) < 60


async def test_info_of_a_directory(sandbox: Uniform, workdir: str):
    entry = await sandbox.files.get_info(workdir)
    assert (entry.type, entry.mode, entry.permissions) == (FileType.DIR, 0o755, "drwxr-xr-x")
    root = await sandbox.files.get_info("/")
    assert (root.type, root.path) == (FileType.DIR, "/")


async def test_info_of_links(sandbox: Uniform, workdir: str):
    await sandbox.commands.run(
        f"cd {workdir} && echo hello > target && chmod 600 target && mkdir dir "
        "&& ln -s target link && ln -s dir dirlink && ln -s nowhere broken && ln -s link second"
    )
    link = await sandbox.files.get_info(f"{workdir}/link")
    assert (link.name, link.path) == ("link", f"{workdir}/link")
    assert link.symlink_target == f"{workdir}/target"
    assert link.type == FileType.SYMLINK  # the newest client is told by `isSymlink`
    assert link.permissions.startswith("L")
    second = await sandbox.files.get_info(f"{workdir}/second")
    assert second.symlink_target == f"{workdir}/target"
    assert (await sandbox.files.get_info(f"{workdir}/dirlink")).symlink_target == f"{workdir}/dir"
    broken = await sandbox.files.get_info(f"{workdir}/broken")
    assert broken.symlink_target == f"{workdir}/broken"


async def test_info_of_something_missing(sandbox: Uniform, workdir: str):
    with pytest.raises(FileNotFoundException):
        await sandbox.files.get_info(f"{workdir}/none")


@pytest.mark.quick
async def test_exists(sandbox: Uniform, workdir: str):
    await sandbox.files.write(f"{workdir}/file", "")
    assert await sandbox.files.exists(f"{workdir}/file") is True
    assert await sandbox.files.exists(workdir) is True
    assert await sandbox.files.exists(f"{workdir}/none") is False
    assert await sandbox.files.exists(f"{workdir}/none/deeper") is False


@pytest.mark.quick
async def test_make_dir(sandbox: Uniform, workdir: str):
    assert await sandbox.files.make_dir(f"{workdir}/a/b/c") is True
    assert await sandbox.files.make_dir(f"{workdir}/a/b/c") is False
    assert await sandbox.files.make_dir(f"{workdir}/a") is False
    owners = await sandbox.commands.run(f"stat -c %U {workdir}/a {workdir}/a/b {workdir}/a/b/c")
    assert owners.stdout.split() == ["user"] * 3
    await sandbox.files.write(f"{workdir}/file", "1")
    with pytest.raises(InvalidArgumentException):
        await sandbox.files.make_dir(f"{workdir}/file")


async def test_make_dir_as_root(sandbox: Uniform):
    await sandbox.files.make_dir("/opt/of-root/inner", user="root")
    entry = await sandbox.files.get_info("/opt/of-root/inner")
    assert entry.owner == "root"
    await sandbox.files.remove("/opt/of-root", user="root")


async def test_rename(sandbox: Uniform, workdir: str):
    await sandbox.files.write(f"{workdir}/a", "content")
    entry = await sandbox.files.rename(f"{workdir}/a", f"{workdir}/new/parents/b")
    assert (entry.name, entry.path) == ("b", f"{workdir}/new/parents/b")
    assert (entry.type, entry.size) == (FileType.FILE, 7)
    assert await sandbox.files.exists(f"{workdir}/a") is False
    assert await sandbox.files.read(f"{workdir}/new/parents/b") == "content"


async def test_rename_overwrites_and_moves_directories(sandbox: Uniform, workdir: str):
    await sandbox.files.write(f"{workdir}/x", "new")
    await sandbox.files.write(f"{workdir}/y", "old")
    await sandbox.files.rename(f"{workdir}/x", f"{workdir}/y")
    assert await sandbox.files.read(f"{workdir}/y") == "new"
    await sandbox.files.write(f"{workdir}/dir/inner", "1")
    moved = await sandbox.files.rename(f"{workdir}/dir", f"{workdir}/dir2")
    assert moved.type == FileType.DIR
    assert await sandbox.files.read(f"{workdir}/dir2/inner") == "1"


async def test_rename_of_something_missing(sandbox: Uniform, workdir: str):
    with pytest.raises(FileNotFoundException):
        await sandbox.files.rename(f"{workdir}/none", f"{workdir}/other")


@pytest.mark.quick
async def test_remove(sandbox: Uniform, workdir: str):
    await sandbox.files.write(f"{workdir}/dir/a/b", "1")
    await sandbox.files.remove(f"{workdir}/dir")
    assert await sandbox.files.exists(f"{workdir}/dir") is False
    await sandbox.files.remove(f"{workdir}/dir")  # removing what is not there is fine
    await sandbox.files.write(f"{workdir}/file", "1")
    await sandbox.commands.run(f"ln -s file {workdir}/link")
    await sandbox.files.remove(f"{workdir}/link")
    assert await sandbox.files.read(f"{workdir}/file") == "1"
