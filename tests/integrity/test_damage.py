"""Saved state that is damaged or foreign is refused with a reason, and what is intact is used."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from subject import Subject

from support.envd import Envd
from support.rest import Rest, assert_error
from support.server import CaissonServer

SMALL = {"memory_kb": 512, "file_kb": 512}


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at % len(data)] ^= 0x55
    path.write_bytes(data)


def flip_core(saved: Path) -> None:
    flip(next(saved.glob("memory/images.pack")), 40)


def flip_pages(saved: Path) -> None:
    """As if the host had been restarted: only then the pages, which may be many, are looked at."""
    change_manifest(saved, host_boot_id="00000000-0000-0000-0000-000000000000")
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
    change_manifest(saved, format=2)


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


# The damage and what the answer says of it.
MEMORY = [
    (flip_core, "damaged"),
    (flip_pages, "damaged"),
    (cut_pages, "damaged"),
    (lose_a_file, "missing"),
]
MANIFEST = [
    (another_format, "another version of Caisson (format 2"),
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
