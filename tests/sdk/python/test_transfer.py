"""Large files and signed URLs."""

from __future__ import annotations

import hashlib
import json
import os
import urllib.error
import urllib.parse
import urllib.request

import pytest
from flavors import Uniform, in_thread

pytestmark = pytest.mark.sanitized

SIZE = 64 * 1024 * 1024


@pytest.fixture(scope="module")
def large() -> bytes:
    """64 MB that do not compress, with a known digest."""
    block = os.urandom(1024 * 1024)
    return b"".join(bytes([i]) + block[1:] for i in range(SIZE // len(block)))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("octets", [False, True], ids=["multipart", "octet-stream"])
async def test_64_megabytes_up_and_down(sandbox: Uniform, workdir: str, large: bytes, octets: bool):
    digest = hashlib.sha256(large).hexdigest()
    path = f"{workdir}/large.bin"
    await sandbox.files.write(path, large, use_octet_stream=octets, request_timeout=240)
    inside = await sandbox.commands.run(f"sha256sum {path}", timeout=120)
    assert inside.stdout.split()[0] == digest
    back = await sandbox.files.read(path, format="bytes", request_timeout=240)
    assert hashlib.sha256(back).hexdigest() == digest
    await sandbox.files.remove(path)


@pytest.mark.timeout(300)
async def test_streamed_both_ways(sandbox: Uniform, workdir: str, large: bytes, tmp_path):
    local = tmp_path / "large.bin"
    local.write_bytes(large)
    path = f"{workdir}/streamed.bin"
    with open(local, "rb") as opened:
        await sandbox.files.write(path, opened)
    digest = hashlib.sha256()
    size = 0
    reader = await sandbox.files.read(path, format="stream")
    if sandbox.flavor.is_async:
        async for piece in reader:
            digest.update(piece)
            size += len(piece)
    else:
        for piece in reader:
            digest.update(piece)
            size += len(piece)
    assert size == SIZE
    assert digest.hexdigest() == hashlib.sha256(large).hexdigest()
    await sandbox.files.remove(path)


def fetch(url: str, data: bytes | None = None, headers: dict | None = None) -> tuple[int, bytes]:
    """A third party without any of the SDK's headers."""
    request = urllib.request.Request(url, data=data, headers=headers or {})
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def multipart(content: bytes, filename: str = "ignored.txt") -> tuple[bytes, dict]:
    boundary = "------------------------caisson"
    head = (
        f"--{boundary}\r\n"
        f'Content-Disposition: form-data; name="file"; filename="{filename}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    ).encode()
    body = head + content + f"\r\n--{boundary}--\r\n".encode()
    return body, {"Content-Type": f"multipart/form-data; boundary={boundary}"}


@pytest.mark.quick
@pytest.mark.parametrize("name", ["plain.txt", "with space.txt", "ünï+☃%20.txt"])
async def test_signed_download(sandbox: Uniform, workdir: str, name: str):
    path = f"{workdir}/{name}"
    await sandbox.files.write(path, "by signature")
    for options in ({}, {"use_signature_expiration": 120}, {"user": "root"}):
        url = await sandbox.download_url(path, **options)
        assert await in_thread(fetch, url) == (200, b"by signature")


@pytest.mark.quick
async def test_signed_upload(sandbox: Uniform, workdir: str):
    path = f"{workdir}/uploaded file.txt"
    url = await sandbox.upload_url(path, use_signature_expiration=120)
    body, headers = multipart(b"sent by signature")
    status, answer = await in_thread(fetch, url, body, headers)
    assert status == 200
    assert json.loads(answer) == [{"path": path, "name": "uploaded file.txt", "type": "file"}]
    assert await sandbox.files.read(path) == "sent by signature"


async def test_signed_upload_as_root(sandbox: Uniform):
    url = await sandbox.upload_url("by-url.txt", user="root")
    body, headers = multipart(b"root's")
    status, _ = await in_thread(fetch, url, body, headers)
    assert status == 200
    entry = await sandbox.files.get_info("/root/by-url.txt", user="root")
    assert entry.owner == "root"
    download = await sandbox.download_url("by-url.txt", user="root")
    assert await in_thread(fetch, download) == (200, b"root's")
    await sandbox.files.remove("/root/by-url.txt", user="root")


def changed(url: str, **replace: str | None) -> str:
    parts = urllib.parse.urlsplit(url)
    query = dict(urllib.parse.parse_qsl(parts.query))
    for key, value in replace.items():
        if value is None:
            query.pop(key, None)
        else:
            query[key] = value
    return parts._replace(query=urllib.parse.urlencode(query)).geturl()


@pytest.mark.quick
async def test_expired_signature(sandbox: Uniform, workdir: str):
    path = f"{workdir}/old.txt"
    await sandbox.files.write(path, "1")
    url = await sandbox.download_url(path, use_signature_expiration=-120)
    status, body = await in_thread(fetch, url)
    assert status == 401
    assert json.loads(body) == {"code": 401, "message": "signature is already expired"}


async def test_signatures_that_do_not_fit(sandbox: Uniform, workdir: str):
    path = f"{workdir}/kept.txt"
    await sandbox.files.write(path, "secret")
    await sandbox.files.write(f"{workdir}/other.txt", "other")
    url = await sandbox.download_url(path, use_signature_expiration=120)
    assert (await in_thread(fetch, url))[0] == 200
    for bad in (
        changed(url, path=f"{workdir}/other.txt"),
        changed(url, signature="v1_" + "A" * 43),
        changed(url, signature_expiration="99999999999"),
        changed(url, signature_expiration=None),
        changed(url, username="root"),
        changed(url, signature=None),
    ):
        status, body = await in_thread(fetch, bad)
        assert 400 <= status < 500, (status, bad)
        assert b"secret" not in body and b"other" not in body
    # A signature for reading is none for writing.
    data, headers = multipart(b"overwritten")
    status, _ = await in_thread(fetch, url, data, headers)
    assert status == 401
    assert await sandbox.files.read(path) == "secret"


async def test_signature_of_a_dead_sandbox(flavor, fresh: Uniform):
    await fresh.files.write("f.txt", "1")
    url = await fresh.download_url("/home/user/f.txt")
    assert (await in_thread(fetch, url))[0] == 200
    await fresh.kill()
    status, _ = await in_thread(fetch, url)
    assert status in (400, 401, 404, 502)
