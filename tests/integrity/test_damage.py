"""Saved state that is damaged or foreign is refused with a reason, and what is intact is used."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from subject import OCTETS, Subject, wait_for

from support.envd import Envd
from support.rest import Rest, assert_error
from support.server import CaissonServer

SMALL = {"memory_kb": 512, "file_kb": 512}
ANOTHER_BOOT = "00000000-0000-0000-0000-000000000000"


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at % len(data)] ^= 0x55
    path.write_bytes(data)


def flip_core(saved: Path) -> None:
    flip(next(saved.glob("memory/images.pack")), 40)


def flip_pages(saved: Path) -> None:
    """As if the host had been restarted: only then the pages, which may be many, are looked at."""
    change_manifest(saved, host_boot_id=ANOTHER_BOOT)
    flip(max(saved.glob("memory/pages-*.img"), key=lambda p: p.stat().st_size), 12345)


def cut_pages(saved: Path) -> None:
    path = max(saved.glob("memory/pages-*.img"), key=lambda p: p.stat().st_size)
    path.write_bytes(path.read_bytes()[:-4096])


def lose_a_file(saved: Path) -> None:
    next(saved.glob("memory/pages-*.img")).unlink()


def change_manifest(folder: Path, **changes) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def another_format(saved: Path) -> None:
    change_manifest(saved, format=99)


def half_a_manifest(saved: Path) -> None:
    path = saved / "manifest.json"
    path.write_bytes(path.read_bytes()[:100])


def no_manifest(saved: Path) -> None:
    (saved / "manifest.json").unlink()


def anothers_manifest(saved: Path) -> None:
    manifest = json.loads((saved / "manifest.json").read_text())
    change_manifest(saved, saved={**manifest["saved"], "id": "i" + "0" * 20})


def saved_dir(server: CaissonServer, saved_id: str) -> Path:
    return server.data_dir / "engine/saved" / saved_id


def tree_of(subject: Subject) -> bytes:
    out = Envd(subject.rest.server, subject.made).run(
        "cd held && find . -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum"
    )[0]
    assert len(out) > 64
    return out


def clocks(envd: Envd) -> dict[str, float]:
    """What a process inside reads from its clocks."""
    names = {"monotonic": "CLOCK_MONOTONIC", "boot": "CLOCK_BOOTTIME", "real": "CLOCK_REALTIME"}
    reads = ", ".join(f"'{name}': t.clock_gettime(t.{clock})" for name, clock in names.items())
    return json.loads(envd.run(f'python3 -c "import json, time as t; print(json.dumps({{{reads}}}))"')[0])


# The damage and what the answer says of it.
MEMORY = [
    (flip_core, "damaged"),
    (flip_pages, "damaged"),
    (cut_pages, "damaged"),
    (lose_a_file, "missing"),
]
MANIFEST = [
    (another_format, "another version of Caisson (format 99"),
    (half_a_manifest, "manifest is damaged"),
    (no_manifest, "manifest is missing"),
    (anothers_manifest, "manifest is another's"),
]


def prepared(server: CaissonServer, count: int) -> list[tuple[Subject, bytes]]:
    rest = Rest(server)
    made = []
    for index in range(count):
        subject = Subject.start(rest, index, **SMALL)
        subject.step(index)
        made.append((subject, tree_of(subject)))
        subject.pause()
    return made


def damage(server: CaissonServer, subjects: list[Subject], how: list[Callable]) -> None:
    """While the server is away."""
    server.stop()
    for subject, change in zip(subjects, how, strict=True):
        change(saved_dir(server, subject.id))
    server.restart()


@pytest.mark.timeout(180)
def test_damaged_memory_is_refused_and_the_files_are_kept(make_server):
    server = make_server()
    made = prepared(server, len(MEMORY))
    damage(server, [subject for subject, _ in made], [change for change, _ in MEMORY])
    for (subject, tree), (_, text) in zip(made, MEMORY, strict=True):
        assert subject.state() == "paused"
        answer = subject.post("connect", {"timeout": 60})
        assert 400 <= answer.status < 600, answer
        assert_error(answer, answer.status, text)
        assert subject.state() == "paused"
        # Its files are there, and the sandbox lives on with them.
        subject.connect(memory=False)
        assert tree_of(subject) == tree
        subject.pause()
        subject.connect()
        assert tree_of(subject) == tree


@pytest.mark.timeout(120)
def test_intact_memory_is_continued_after_a_restart_of_the_host(make_server):
    """As far as a test can tell: all pages are compared with their checksums, and the clocks inside
    go on. Real restarts also set the host's monotonic clock back."""
    server = make_server()
    ((subject, tree),) = prepared(server, 1)
    subject.connect()
    envd = Envd(server, subject.made)
    before = clocks(envd)
    subject.pause()
    damage(server, [subject], [lambda saved: change_manifest(saved, host_boot_id=ANOTHER_BOOT)])
    outside = time.monotonic()
    subject.connect()
    subject.check()
    assert tree_of(subject) == tree
    first, second = clocks(envd), clocks(envd)
    for name, value in before.items():
        assert value <= first[name] <= second[name], name
    # Nobody waits inside for a time that never comes.
    assert envd.run("timeout 20 sleep 0.2 && echo slept")[0] == b"slept\n"
    assert second["monotonic"] - before["monotonic"] < 60 + time.monotonic() - outside
    assert abs(second["real"] - time.time()) < 30


@pytest.mark.timeout(180)
def test_a_foreign_manifest_is_refused_and_nothing_is_deleted(make_server):
    server = make_server()
    made = prepared(server, len(MANIFEST))
    originals = {
        subject.id: (saved_dir(server, subject.id) / "manifest.json").read_bytes()
        for subject, _ in made
    }
    damage(server, [subject for subject, _ in made], [change for change, _ in MANIFEST])
    for (subject, _), (_, text) in zip(made, MANIFEST, strict=True):
        assert subject.state() == "paused"
        answer = subject.post("connect", {"timeout": 60})
        assert 400 <= answer.status < 600, answer
        assert_error(answer, answer.status, text)
        assert subject.state() == "paused"
    # Whoever puts the manifest back has the sandbox back.
    server.stop()
    for subject, _ in made:
        (saved_dir(server, subject.id) / "manifest.json").write_bytes(originals[subject.id])
    server.restart()
    for subject, tree in made:
        subject.connect()
        subject.check()
        assert tree_of(subject) == tree


@pytest.mark.timeout(120)
def test_a_damaged_snapshot_is_refused(make_server):
    server = make_server()
    rest = Rest(server)
    subject = Subject.start(rest, **SMALL)
    names = [subject.snapshot() for _ in range(3)]
    folders = {path.name for path in saved_dir(server, "").iterdir()}
    assert len(folders) == 3
    ids = [name.partition(":")[0].rpartition("/")[2] for name in names]
    server.stop()
    another_format(saved_dir(server, ids[0]))
    flip_core(saved_dir(server, ids[1]))
    server.restart()
    for name, text in zip(names, ("another version of Caisson", "damaged"), strict=False):
        answer = rest.post("/v2/sandboxes", {"templateID": name, "timeout": 60})
        assert 400 <= answer.status < 600, answer
        assert_error(answer, answer.status, text)
    copy = Subject(rest, rest.create(templateID=names[2]), subject.seen)
    copy.check()
    # They can be deleted like any other.
    for name in names:
        assert rest.delete("/templates/" + name).status == 204
    copy.check()
    subject.check()


@pytest.mark.timeout(120)
def test_a_missing_layer_is_named(make_server):
    server = make_server()
    rest = Rest(server)
    subject = Subject.start(rest, **SMALL)
    name = subject.snapshot()
    server.stop()
    layers = list((server.data_dir / "engine/layers").glob("*.img"))
    assert len(layers) == 1
    hidden = layers[0].rename(server.scratch / "hidden.img")
    server.restart()
    answer = rest.post("/v2/sandboxes", {"templateID": name, "timeout": 60})
    assert_error(answer, answer.status, "layer")
    server.stop()
    hidden.rename(layers[0])
    server.restart()
    Subject(rest, rest.create(templateID=name), subject.seen).check()


KEPT_FILE = b"kept by the layer " * 16


def place_of(image: int, data: bytes) -> int:
    """Where in a sparse file this is."""
    end = os.fstat(image).st_size
    at = os.lseek(image, 0, os.SEEK_DATA)
    while at < end:
        hole = os.lseek(image, at, os.SEEK_HOLE)
        found = os.pread(image, hole - at, at).find(data)
        if found >= 0:
            return at + found
        at = os.lseek(image, hole, os.SEEK_DATA)
    raise AssertionError("it is not there")


def flip_layer(layer: Path) -> int:
    """One bit of file contents, which no checksum of the file system in it covers; says where."""
    image = os.open(layer, os.O_RDWR)
    at = place_of(image, KEPT_FILE) + 100
    os.pwrite(image, bytes([KEPT_FILE[100] ^ 1]), at)
    os.close(image)
    return at


@pytest.mark.timeout(180)
def test_a_flipped_bit_in_a_layer_is_refused_and_nothing_is_deleted(make_server):
    server = make_server()
    rest = Rest(server)
    made = rest.create(timeout=900)
    written = Envd(server, made).request("POST", "/files?path=kept", KEPT_FILE, OCTETS)
    assert written.status == 200, written
    name = rest.post(f"/sandboxes/{made['sandboxID']}/snapshots", {}).json()["snapshotID"]
    copy = rest.create(templateID=name, timeout=900)
    assert rest.post(f"/sandboxes/{copy['sandboxID']}/pause").status == 204
    (layer,) = (server.data_dir / "engine/layers").glob("*.img")
    intact = layer.stat()
    at = flip_layer(layer)
    # Without a restart of anything: the file is not the one that was looked at before.
    for refused in (
        rest.post("/v2/sandboxes", {"templateID": name, "timeout": 60}),
        rest.post(f"/sandboxes/{copy['sandboxID']}/connect", {"timeout": 60}),
    ):
        assert_error(refused, refused.status, f"layer {layer.name[:12]} of its disk is damaged")
    assert rest.detail(copy)["state"] == "paused"
    # Not even its time tells: only a restart of the host would make anybody look again.
    os.utime(layer, ns=(intact.st_atime_ns, intact.st_mtime_ns))
    server.stop()
    os.removexattr(layer, "user.caisson.checked")
    server.restart()
    wait_for(lambda: "cannot be started any more" in server.log_since(0), "the log says so at the start")
    answer = rest.post("/v2/sandboxes", {"templateID": name, "timeout": 60})
    assert_error(answer, answer.status, "damaged")
    assert layer.exists()
    with open(layer, "r+b") as image:
        image.seek(at)
        image.write(KEPT_FILE[100:101])
    with rest.sandbox(templateID=name) as whole:
        assert Envd(server, whole).run("cat kept")[0] == KEPT_FILE
    assert rest.post(f"/sandboxes/{copy['sandboxID']}/connect", {"timeout": 60}).status == 201
    assert Envd(server, copy).run("cat kept")[0] == KEPT_FILE


@pytest.mark.timeout(120)
def test_holes_and_zeros_of_a_layer_are_the_same(make_server):
    """Who copies a data directory to another disk may get other holes, and nothing is damaged."""
    server = make_server()
    rest = Rest(server)
    subject = Subject.start(rest, **SMALL)
    name = subject.snapshot()
    server.stop()
    (layer,) = (server.data_dir / "engine/layers").glob("*.img")
    before = layer.stat()
    image = os.open(layer, os.O_WRONLY)
    os.pwrite(image, bytes(4096), os.lseek(image, 0, os.SEEK_HOLE))  # a block, no hole is smaller
    os.fsync(image)
    os.close(image)
    assert layer.stat().st_blocks > before.st_blocks and layer.stat().st_size == before.st_size
    server.restart()
    subject.copy_of(name).check()
