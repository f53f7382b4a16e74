"""Reading and writing files."""

from __future__ import annotations

import io
import os
import re

import pytest
from e2b import (
    AuthenticationException,
    FileNotFoundException,
    FileType,
    InvalidArgumentException,
    SandboxException,
    WriteInfo,
)
from flavors import Uniform


async def read_stream(sandbox: Uniform, path: str, **options) -> bytes:
    reader = await sandbox.files.read(path, format="stream", **options)
    if sandbox.flavor.is_async:
        return b"".join([piece async for piece in reader])
    return b"".join(reader)


def chunks(sandbox: Uniform, pieces: list[bytes]):
    """An iterable of the kind the client takes."""
    if not sandbox.flavor.is_async:
        return iter(pieces)

    async def generate():
        for piece in pieces:
            yield piece

    return generate()


@pytest.mark.quick
async def test_write_and_read_text(sandbox: Uniform, workdir: str):
    path = f"{workdir}/hello.txt"
    info = await sandbox.files.write(path, "hello ☃\nsecond line\r\n")
    assert info == WriteInfo(name="hello.txt", type=FileType.FILE, path=path)
    assert await sandbox.files.read(path) == "hello ☃\nsecond line\r\n"
    assert (await sandbox.commands.run(f"cat {path}")).stdout == "hello ☃\nsecond line\r\n"


@pytest.mark.quick
async def test_every_byte_value(sandbox: Uniform, workdir: str):
    data = bytes(range(256)) * 257
    path = f"{workdir}/bytes.bin"
    await sandbox.files.write(path, data)
    assert bytes(await sandbox.files.read(path, format="bytes")) == data
    assert await read_stream(sandbox, path) == data


@pytest.mark.quick
async def test_empty_file(sandbox: Uniform, workdir: str):
    path = f"{workdir}/empty"
    await sandbox.files.write(path, "")
    assert await sandbox.files.read(path) == ""
    assert await sandbox.files.read(path, format="bytes") == b""
    assert await read_stream(sandbox, path) == b""
    assert (await sandbox.files.get_info(path)).size == 0


async def test_overwriting_truncates(sandbox: Uniform, workdir: str):
    path = f"{workdir}/file"
    await sandbox.files.write(path, "a long first content")
    await sandbox.files.write(path, "short")
    assert await sandbox.files.read(path) == "short"


async def test_parents_are_created_and_belong_to_the_user(sandbox: Uniform, workdir: str):
    await sandbox.files.write(f"{workdir}/a/b/c/file", "1")
    modes = await sandbox.commands.run(
        f"stat -c '%U:%G %a' {workdir}/a {workdir}/a/b/c {workdir}/a/b/c/file"
    )
    assert modes.stdout.split("\n")[:3] == ["user:user 755", "user:user 755", "user:user 644"]


async def test_relative_and_home_paths(sandbox: Uniform, workdir: str):
    relative = workdir.removeprefix("/home/user/") + "/r.txt"
    info = await sandbox.files.write(relative, "relative")
    assert info.path == f"{workdir}/r.txt"
    assert await sandbox.files.read(f"~/{relative}") == "relative"
    assert await sandbox.files.read(f"{workdir}/r.txt") == "relative"
    assert await sandbox.files.read(f"{workdir}/../{relative}") == "relative"


async def test_as_root(sandbox: Uniform):
    info = await sandbox.files.write("root-file.txt", "for root", user="root")
    assert info.path == "/root/root-file.txt"
    assert await sandbox.files.read("root-file.txt", user="root") == "for root"
    entry = await sandbox.files.get_info("/root/root-file.txt", user="root")
    assert (entry.owner, entry.group) == ("root", "root")
    await sandbox.files.remove("/root/root-file.txt", user="root")


async def test_unknown_user(sandbox: Uniform):
    with pytest.raises(AuthenticationException):
        await sandbox.files.read("x", user="nobody-here")
    with pytest.raises(AuthenticationException):
        await sandbox.files.write("x", "1", user="nobody-here")
    with pytest.raises(AuthenticationException):
        await sandbox.files.list(".", user="nobody-here")


@pytest.mark.quick
async def test_missing_file(sandbox: Uniform, workdir: str):
    with pytest.raises(FileNotFoundException, match=f"path '{workdir}/none' does not exist"):
        await sandbox.files.read(f"{workdir}/none")
    with pytest.raises(FileNotFoundException):
        await read_stream(sandbox, f"{workdir}/none")


async def test_reading_and_writing_a_directory(sandbox: Uniform, workdir: str):
    with pytest.raises(InvalidArgumentException, match=f"path '{workdir}' is a directory"):
        await sandbox.files.read(workdir)
    with pytest.raises(InvalidArgumentException):
        await sandbox.files.write(workdir, "x")


async def test_a_file_in_the_way_of_a_directory(sandbox: Uniform, workdir: str):
    await sandbox.files.write(f"{workdir}/file", "1")
    with pytest.raises(SandboxException):
        await sandbox.files.write(f"{workdir}/file/below", "2")
    assert await sandbox.files.read(f"{workdir}/file") == "1"


async def test_files_of_proc_are_read_to_their_end(sandbox: Uniform):
    boot = await sandbox.files.read("/proc/sys/kernel/random/boot_id")
    assert re.fullmatch(r"[0-9a-f-]{36}\n", boot)
    assert "processor" in await sandbox.files.read("/proc/cpuinfo")


async def test_through_a_symlink(sandbox: Uniform, workdir: str):
    await sandbox.files.write(f"{workdir}/target", "old")
    await sandbox.commands.run(f"ln -s target {workdir}/link")
    assert await sandbox.files.read(f"{workdir}/link") == "old"
    await sandbox.files.write(f"{workdir}/link", "new")
    assert await sandbox.files.read(f"{workdir}/target") == "new"


ODD_NAMES = [
    "with space",
    "ünïcödé-☃-漢字",
    "line\nbreak",
    "-dash",
    "--help",
    "per%cent",
    "per%20cent",
    "plus+plus",
    'quote"double',
    "quote'single",
    "back\\slash",
    "semi;colon&amp",
    "hash#mark?",
    ".hidden",
    "tab\there",
    "a" * 255,
]


@pytest.mark.parametrize("name", ODD_NAMES, ids=lambda n: repr(n[:20]))
async def test_odd_names(sandbox: Uniform, workdir: str, name: str):
    path = f"{workdir}/{name}"
    info = await sandbox.files.write(path, "content of " + name)
    assert (info.path, info.name) == (path, name)
    assert await sandbox.files.read(path) == "content of " + name
    assert await sandbox.files.exists(path) is True
    entry = await sandbox.files.get_info(path)
    assert (entry.name, entry.path, entry.type) == (name, path, FileType.FILE)
    assert [e.name for e in await sandbox.files.list(workdir)] == [name]
    moved = await sandbox.files.rename(path, path[: -(len(name))] + "moved")
    assert moved.name == "moved"
    await sandbox.files.remove(f"{workdir}/moved")
    assert await sandbox.files.list(workdir) == []


async def test_a_name_that_is_too_long(sandbox: Uniform, workdir: str):
    with pytest.raises(SandboxException):
        await sandbox.files.write(f"{workdir}/{'n' * 256}", "x")


@pytest.mark.quick
async def test_from_file_objects_and_iterables(sandbox: Uniform, workdir: str, tmp_path):
    local = tmp_path / "local.bin"
    local.write_bytes(os.urandom(300_000))
    with open(local, "rb") as opened:
        await sandbox.files.write(f"{workdir}/opened", opened)
    assert await sandbox.files.read(f"{workdir}/opened", format="bytes") == local.read_bytes()
    await sandbox.files.write(f"{workdir}/memory", io.BytesIO(b"in memory"))
    assert await sandbox.files.read(f"{workdir}/memory") == "in memory"
    await sandbox.files.write(f"{workdir}/text", io.StringIO("text ☃"))
    assert await sandbox.files.read(f"{workdir}/text") == "text ☃"
    await sandbox.files.write(f"{workdir}/pieces", chunks(sandbox, [b"one ", b"", b"two"]))
    assert await sandbox.files.read(f"{workdir}/pieces") == "one two"


async def test_octet_stream(sandbox: Uniform, workdir: str):
    path = f"{workdir}/octets"
    info = await sandbox.files.write(path, b"\x00raw\xff", use_octet_stream=True)
    assert info == WriteInfo(name="octets", type=FileType.FILE, path=path)
    assert await sandbox.files.read(path, format="bytes") == b"\x00raw\xff"


async def test_gzip_both_ways(sandbox: Uniform, workdir: str):
    text = "compress me " * 10_000
    path = f"{workdir}/zipped"
    await sandbox.files.write(path, text, gzip=True)
    assert (await sandbox.files.get_info(path)).size == len(text)
    assert await sandbox.files.read(path, gzip=True) == text
    assert await sandbox.files.read(path) == text
    assert await read_stream(sandbox, path, gzip=True) == text.encode()


async def test_several_files_at_once(sandbox: Uniform, workdir: str):
    assert await sandbox.files.write_files([]) == []
    files = [{"path": f"{workdir}/many/{i}.txt", "data": f"number {i}"} for i in range(20)]
    infos = await sandbox.files.write_files(files)
    assert [i.path for i in infos] == [f["path"] for f in files]
    for file in files:
        assert await sandbox.files.read(file["path"]) == file["data"]
    mixed = await sandbox.files.write_files(
        [
            {"path": f"{workdir}/t", "data": "text"},
            {"path": f"{workdir}/b", "data": b"\x00\x01"},
            {"path": f"{workdir}/o", "data": io.BytesIO(b"object")},
        ]
    )
    assert [i.name for i in mixed] == ["t", "b", "o"]
    assert await sandbox.files.read(f"{workdir}/o") == "object"


@pytest.mark.parametrize("name", ["with space", "ünï-☃", "back\\slash", "per%20cent", ".dot"])
async def test_odd_names_in_a_multi_write(sandbox: Uniform, workdir: str, name: str):
    infos = await sandbox.files.write_files(
        [{"path": f"{workdir}/{name}", "data": "1"}, {"path": f"{workdir}/other", "data": "2"}]
    )
    assert [i.name for i in infos] == [name, "other"]
    assert await sandbox.files.read(f"{workdir}/{name}") == "1"


async def test_metadata(sandbox: Uniform, workdir: str):
    path = f"{workdir}/tagged"
    info = await sandbox.files.write(path, "1", metadata={"Author": "me", "note": "two words"})
    expected = {"author": "me", "note": "two words"}
    assert info.metadata == expected
    assert (await sandbox.files.get_info(path)).metadata == expected
    assert [e.metadata for e in await sandbox.files.list(workdir)] == [expected]
    moved = await sandbox.files.rename(path, f"{workdir}/renamed")
    assert moved.metadata == expected
    again = await sandbox.files.write(f"{workdir}/renamed", "2", metadata={"only": "this"})
    assert again.metadata == {"only": "this"}
    await sandbox.files.write(f"{workdir}/renamed", "3")
    assert (await sandbox.files.get_info(f"{workdir}/renamed")).metadata is None
