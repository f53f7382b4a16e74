"""Rows 39 to 42: files that clients upload and download, while the sandbox moves things about."""

from __future__ import annotations

import gzip
import io
import tarfile
import time
from urllib.parse import quote, urlencode

import pytest
from e2b.sandbox.signature import get_signature
from guest import Guest
from probes import probe
from world import World

from support.envd import Envd
from support.rest import Response, Rest
from support.server import CaissonServer

BYTES = {"Content-Type": "application/octet-stream"}


@pytest.fixture
def envd(server: CaissonServer, guest: Guest) -> Envd:
    return Envd(server, guest.made)


def put(envd: Envd, path: str, data: bytes, user: str) -> Response:
    return envd.request("POST", f"/files?path={quote(path, safe='')}&username={user}", data, BYTES)


def get(envd: Envd, path: str, user: str) -> Response:
    return envd.request("GET", f"/files?path={quote(path, safe='')}&username={user}")


def odd_paths(world: World) -> list[str]:
    canary = str(world.file)
    return [
        canary,
        f"/proc/self/root{canary}",
        f"/proc/1/root{canary}",
        f"/proc/self/cwd{canary}",
        "../" * 60 + canary.lstrip("/"),
        f"/home/user/{'../' * 60}{canary.lstrip('/')}",
        f"/proc/self/fd/0/../../..{canary}",
        f"/proc/thread-self/root/../..{canary}",
    ]


@probe(39)
def test_uploads_to_odd_paths(guest: Guest, envd: Envd, world: World):
    for path in odd_paths(world):
        put(envd, path, b"taken", guest.account)  # at best a file of the sandbox's own
    assert world.file.read_text() == world.secret
    for path, statuses in (
        ("/home/user/a\0b", {400}),
        ("/home/user/" + "n" * 300, {400, 500, 507}),
        ("/home/user/" + "d/" * 3000, {400, 500}),
        ("", {200, 400}),
        ("/", {400}),
        ("/proc/1/mem", {400, 403, 500}),
        ("/proc/sys/kernel/core_pattern", {400, 403, 500}),
        ("/dev/null", {400}),
        ("/.caisson/envd", {400, 403, 500}),
    ):
        answer = put(envd, path, b"x", guest.account)
        assert answer.status in statuses, (path[:60], answer)
    guest.run(f"rm -rf {world.directory}", user="root")


@probe(39)
def test_uploads_to_what_is_no_file(guest: Guest, envd: Envd):
    guest.run(
        "rm -f /tmp/fifo /tmp/sock; mkfifo -m 666 /tmp/fifo; "
        "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"/tmp/sock\")'; "
        "ln -sfn /tmp/fifo /tmp/to-fifo; ln -sfn /dev/zero /tmp/to-zero; "
        "ln -sfn /tmp/loop2 /tmp/loop1; ln -sfn /tmp/loop1 /tmp/loop2",
        user="root",
    )
    for path in (
        "/tmp/fifo",
        "/tmp/sock",
        "/tmp/to-fifo",
        "/dev/pts/ptmx",
        "/dev/tty",
        "/tmp/loop1",
        "/dev/full",
        "/dev/random",
    ):
        answer = put(envd, path, b"x" * 100_000, guest.account)
        assert 400 <= answer.status < 600, (path, answer)
        assert get(envd, path, guest.account).status in (400, 404, 500), path
    assert get(envd, "/tmp/to-zero", guest.account).status == 400
    assert guest.run("echo well").out == "well\n"


SWAP = """
import time
os.makedirs("/tmp/race/real", exist_ok=True)
end = time.time() + float(args[1])
count = 0
while time.time() < end:
    for make in (lambda: os.symlink(args[0], "/tmp/race/next"), lambda: os.mkdir("/tmp/race/next")):
        try:
            make()
            if os.path.lexists("/tmp/race/dir"):
                os.rename("/tmp/race/dir", "/tmp/race/old%d" % count)
            os.rename("/tmp/race/next", "/tmp/race/dir")
        except OSError:
            pass
        count += 1
    try:
        os.unlink("/tmp/race/file") if os.path.lexists("/tmp/race/file") else None
        os.symlink(args[0] + "/canary" if count % 3 else "/dev/zero", "/tmp/race/file")
    except OSError:
        pass
print(json.dumps(count))
"""


@probe(39)
def test_links_swapped_during_uploads(guest: Guest, envd: Envd, world: World):
    """The target becomes a link, a directory, a device, a link to a path of the host, and back,
    hundreds of times while files are written and read."""
    guest.run("rm -rf /tmp/race", user="root")
    name = "/tmp/swap.py"
    script = f"import json, os\nargs = [{str(world.directory)!r}, 4]\n" + SWAP
    guest.sandbox.files.write(name, script, user="root")
    handle = guest.sandbox.commands.run(
        f"python3 {name}", background=True, user=guest.account, timeout=30
    )
    end = time.monotonic() + 4
    seen = set()
    while time.monotonic() < end:
        for path in ("/tmp/race/dir/canary", "/tmp/race/file"):
            seen.add(put(envd, path, b"taken", guest.account).status)
            answer = get(envd, path, guest.account)
            assert world.secret.encode() not in answer.body
    handle.wait()
    assert seen <= {200, 400, 401, 403, 404, 409, 500, 507}, seen
    guest.run(f"rm -rf /tmp/race {world.directory}", user="root")


@probe(40)
def test_downloads_and_lists_through_links(guest: Guest, envd: Envd, world: World):
    guest.run(
        f"ln -sfn {world.file} /tmp/link; ln -sfn {world.directory} /tmp/dirlink; "
        f"ln -sfn /proc/1/root /tmp/rootlink",
        user="root",
    )
    for path in [
        "/tmp/link",
        "/tmp/dirlink/canary",
        f"/tmp/rootlink{world.file}",
        *odd_paths(world),
    ]:
        answer = get(envd, path, guest.account)
        assert answer.status in (400, 404, 500) and world.secret.encode() not in answer.body, path
    listed = envd.unary(
        "filesystem.Filesystem/ListDir", {"path": "/tmp/dirlink"}, user=guest.account
    )
    assert b"canary" not in listed.body
    inside = {e["name"] for e in envd.ok("filesystem.Filesystem/ListDir", {"path": "/"})["entries"]}
    through = envd.unary(
        "filesystem.Filesystem/ListDir", {"path": "/tmp/rootlink"}, user=guest.account
    )
    if through.status == 200:
        assert {e["name"] for e in through.json().get("entries", [])} <= inside | {""}


@probe(40)
def test_watches_and_renames_through_links(guest: Guest, envd: Envd, world: World):
    guest.run(f"ln -sfn {world.directory} /tmp/dirlink", user="root")
    guest.run(f"mkdir -p {world.directory}", user="root")  # the same name, inside
    made = envd.ok(
        "filesystem.Filesystem/CreateWatcher", {"path": "/tmp/dirlink"}, user=guest.account
    )
    (world.directory / "touched").write_text("x")
    (world.directory / "touched").unlink()
    guest.run(f"touch {world.directory}/mine", user="root")
    end, told = time.monotonic() + 20, ""
    while "mine" not in told:
        assert time.monotonic() < end, "no event of the sandbox's own directory"
        told += str(envd.ok("filesystem.Filesystem/GetWatcherEvents", made))
    assert "touched" not in told
    guest.run(f"rm -rf {world.directory}", user="root")
    for source, target in (
        ("/tmp/dirlink/canary", "/tmp/stolen"),
        (str(world.file), "/tmp/stolen"),
        ("/.caisson/envd", "/tmp/stolen"),
        ("/proc/1/exe", "/tmp/stolen"),
        ("/tmp/link", f"/proc/1/root{world.directory}/placed"),
    ):
        envd.unary(
            "filesystem.Filesystem/Move",
            {"source": source, "destination": target},
            user=guest.account,
        )
    assert guest.run("test -s /tmp/stolen").code != 0
    for path in ("/.caisson/envd", "/proc/meminfo", "/proc/1/exe"):
        assert guest.run(f"ln {path} /tmp/hard").code != 0, path
    removed = envd.unary("filesystem.Filesystem/Remove", {"path": "/.caisson/envd"}, user="root")
    assert removed.status != 200, removed
    assert guest.run("echo well").out == "well\n"


@probe(40)
def test_removing_everything_hurts_only_oneself(fresh: Guest, server: CaissonServer, rest: Rest):
    Envd(server, fresh.made).unary("filesystem.Filesystem/Remove", {"path": "/"}, user="root")
    with rest.sandbox() as other:  # from the same template
        out, _, end = Envd(server, other).run("ls /bin | wc -l; id -un")
        assert int(out.split()[0]) > 100 and out.split()[1] == b"user" and end["exited"], out


@probe(41)
def test_compressed_bombs(fresh: Guest, server: CaissonServer, world: World):
    """A gigabyte of zeros in a megabyte: ends at the limit of the disk, in bounded memory."""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=6) as out:
        piece = bytes(1 << 24)
        for _ in range(48):
            out.write(piece)
    envd = Envd(server, fresh.made, timeout=60)
    answer = envd.request(
        "POST",
        "/files?path=/home/user/bomb&username=root",
        packed.getvalue(),
        {**BYTES, "Content-Encoding": "gzip"},
    )
    assert answer.status == 507, answer
    fresh.run("rm -f /home/user/bomb")
    broken = envd.request(
        "POST",
        "/files?path=/home/user/x&username=root",
        packed.getvalue()[:5000],
        {**BYTES, "Content-Encoding": "gzip"},
    )
    assert broken.status == 400, broken
    assert fresh.run("echo well").out == "well\n"


@probe(41)
def test_archives_are_unpacked_only_inside(guest: Guest, world: World):
    """The server itself unpacks nothing for a client; what a guest unpacks stays with the guest."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:

        def add(
            name: str, kind: bytes = tarfile.REGTYPE, link: str = "", data: bytes = b"x"
        ) -> None:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname, entry.size, entry.mode = kind, link, 0, 0o4755
            entry.devmajor, entry.devminor = 8, 0
            if kind == tarfile.REGTYPE:
                entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data) if kind == tarfile.REGTYPE else None)

        add("../" * 40 + str(world.directory / "placed"))
        add(str(world.directory / "absolute"))
        add("link", tarfile.SYMTYPE, str(world.directory))
        add("link/through")
        add("hard", tarfile.LNKTYPE, "/.caisson/envd")
        add("disk", tarfile.BLKTYPE)
    guest.sandbox.files.write("/tmp/a.tgz", packed.getvalue(), user="root")
    guest.run("mkdir -p /tmp/out && tar -P -xzf /tmp/a.tgz -C /tmp/out")
    assert sorted(p.name for p in world.directory.iterdir()) == ["canary"]
    assert guest.run("find / -xdev -type b").out == ""
    guest.run(f"rm -rf /tmp/out {world.directory}", user="root")


def signed(
    path: str,
    user: str,
    token: str,
    operation: str = "read",
    expires: int | None = None,
    changes: dict | None = None,
) -> str:
    """A signed URL; `changes`: what an attacker makes of its parameters afterwards."""
    made = get_signature(path, operation, user, token, expires)
    query = {
        "path": path,
        "username": user,
        "signature": made["signature"],
        "signature_expiration": made["expiration"],
        **(changes or {}),
    }
    return "/files?" + urlencode({k: v for k, v in query.items() if v is not None})


@probe(42)
def test_signed_urls(server: CaissonServer, rest: Rest, guest: Guest, world: World):
    token, user = guest.made["envdAccessToken"], guest.account
    envd = Envd(server, guest.made)
    path, other = "/tmp/signed", "/etc/shadow"
    assert put(envd, path, b"mine", user).status == 200

    def ask(url: str, method: str = "GET", body: bytes | None = None, **headers: str) -> int:
        return rest.request(method, url, body, headers=headers, key=None).status

    good = signed(path, user, token)
    assert ask(good) == 200
    other_user = "user" if user == "root" else "root"
    later = int(time.time()) + 900
    refused = [
        *(
            signed(path, user, token, changes=changes)
            for changes in (
                {"path": other},
                {"path": path + "/../../etc/shadow"},
                {"username": other_user},
                {"username": None},
                {"signature": "v1_" + "A" * 43},
                {"signature": ""},
                {"signature_expiration": later},
                {"signature_expiration": "9" * 20},
            )
        ),
        signed(path, user, token, expires=-10),
        signed(path, user, token, expires=-10, changes={"signature_expiration": later}),
        signed(path, user, token, expires=60, changes={"signature_expiration": None}),
        signed(path, user, token, operation="write"),
        signed(path, user, "x" * len(token)),
        signed(other, user, token).replace(quote(other, safe=""), quote(path, safe="")),
    ]
    for url in refused:
        assert ask(url) in (400, 401, 403), url
    assert ask(good, "POST", b"changed", **BYTES) in (401, 403)  # signed for reading
    # The signature of one sandbox, presented to another by header and by host name.
    neighbour = world.neighbour
    for headers in (
        {"E2b-Sandbox-Id": neighbour["sandboxID"], "E2b-Sandbox-Port": "49983"},
        {"Host": f"49983-{neighbour['sandboxID']}.{neighbour['domain']}"},
    ):
        assert ask(good, **headers) == 401, headers
    assert get(envd, path, user).body == b"mine"


@probe(42)
def test_a_signed_url_ends_with_its_sandbox(server: CaissonServer, rest: Rest, world: World):
    made = rest.create()
    url = signed("/etc/hostname", "user", made["envdAccessToken"])
    assert rest.get(url, key=None).status == 200
    rest.kill(made)
    assert rest.get(url, key=None).status in (401, 404, 502)
