"""A host that really has no space and no process left: a clear answer, and nothing is lost."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_disk import SmallDisk
from subject import Subject, wait_for

from support import census
from support.rest import Response, Rest, assert_error
from support.server import CaissonServer

pytestmark = pytest.mark.timeout(240)

HELD = {"memory_kb": 32768, "file_kb": 1024}


@pytest.fixture
def small() -> Iterator[tuple[CaissonServer, SmallDisk]]:
    server = CaissonServer(["--set", "min_free_disk_mb=0", "--set", "hold_free_disk_mb=0"])
    try:
        with SmallDisk(server, 768) as disk:
            try:
                yield server.start(), disk
            finally:
                server.close()
    finally:
        shutil.rmtree(server.scratch, ignore_errors=True)


class ProcessTable:
    """The server's own processes in a cgroup that lets them start only so many more."""

    def __init__(self, server: CaissonServer) -> None:
        root = Path("/sys/fs/cgroup/pids")
        self.root = root if root.exists() else Path("/sys/fs/cgroup")
        self.cgroup = self.root / f"caisson-full-{server.port}"
        self.server = server

    def __enter__(self) -> ProcessTable:
        self.cgroup.mkdir()
        for pid in self.server.program_pids():
            (self.cgroup / "cgroup.procs").write_text(str(pid))
        return self

    def __exit__(self, *_: object) -> None:
        self.empty()
        for pid in (self.cgroup / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                (self.root / "cgroup.procs").write_text(pid)
        self.cgroup.rmdir()

    def fill(self) -> None:
        (self.cgroup / "pids.max").write_text((self.cgroup / "pids.current").read_text())

    def empty(self) -> None:
        (self.cgroup / "pids.max").write_text("max")


def create(rest: Rest) -> Response:
    return rest.post("/v2/sandboxes", {"templateID": "base", "timeout": 60})


def traces(server: CaissonServer) -> dict[str, list[str]]:
    """What lies on the disk and lives on the host because of this server."""
    return {
        **{kind: sorted(names) for kind, names in census.take(server).items()},
        "saved": sorted(census.saved(server)),
        "layers": sorted(census.layers(server)),
        "disks": sorted(path.name for path in (server.data_dir / "engine/disks").rglob("*.img")),
    }


def start_two(server: CaissonServer) -> tuple[Subject, Subject]:
    """One that runs and one that is paused, of which nothing is left but what is saved."""
    rest = Rest(server)
    running, paused = Subject.start(rest, **HELD), Subject.start(rest, seed=1, **HELD)
    paused.pause()
    wait_for(lambda: len(traces(server)["links"]) == 1, "the kernel has taken away the other's link")
    return running, paused


def check_nothing_is_left(server: CaissonServer, before: dict[str, list[str]]) -> None:
    """The kernel takes a moment to remove what a sandbox had that could not be made."""
    end = time.monotonic() + 20
    while (now := traces(server)) != before:
        assert time.monotonic() < end, (before, now)
        time.sleep(0.1)


def check_everything_works(rest: Rest, running: Subject, paused: Subject) -> None:
    running.check()
    running.pause()
    for subject in (running, paused):
        subject.connect()
        subject.check()
    running.copy_of(running.snapshot()).check()
    with rest.sandbox():
        pass


def test_no_space_while_saving_and_creating(small):
    server, disk = small
    rest = Rest(server)
    running, paused = start_two(server)
    before = traces(server)
    disk.fill(left_mb=8)  # less than the memory of one
    for action in ("pause", "snapshots", "fork"):
        assert_error(running.post(action, {}), 503, "no room")
        assert running.state() == "running"
        running.check()
        check_nothing_is_left(server, before)
    disk.fill(left_mb=0)
    assert_error(create(rest), 503)
    check_nothing_is_left(server, before)
    assert paused.state() == "paused"
    running.check()
    disk.empty()
    check_everything_works(rest, running, paused)


def test_no_process_while_saving_and_creating(make_server):
    server = make_server()
    rest = Rest(server)
    running, paused = start_two(server)
    before = traces(server)
    with ProcessTable(server) as table:
        table.fill()
        assert_error(create(rest), 503)
        for action in ("pause", "snapshots"):
            assert_error(running.post(action, {}), 503)
            assert running.state() == "running"
            running.check()
        assert_error(paused.post("connect", {"timeout": 60}), 503)
        assert paused.state() == "paused"
        check_nothing_is_left(server, before)
        table.empty()
        check_everything_works(rest, running, paused)
