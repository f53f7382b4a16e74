"""The exact events of one upload: clients count them, and ask right after the answer."""

from __future__ import annotations

import pytest

from support.envd import Envd

FS = "filesystem.Filesystem/"


def upload(envd: Envd, path: str, data: bytes = b"text") -> None:
    kind = {"Content-Type": "application/octet-stream"}
    assert envd.request("POST", f"/files?path={path}", data, kind).status == 200


def new_events(envd: Envd, watcher: str) -> list[tuple[str, str]]:
    events = envd.ok(FS + "GetWatcherEvents", {"watcherId": watcher}).get("events", [])
    return [(event["name"], event["type"].removeprefix("EVENT_TYPE_")) for event in events]


@pytest.mark.quick
@pytest.mark.parametrize("recursive", [False, True])
def test_a_new_file_is_three_events(envd: Envd, workdir: str, recursive: bool):
    inside = "in/" if recursive else ""
    envd.ok(FS + "MakeDir", {"path": f"{workdir}/in"})
    watcher = envd.ok(FS + "CreateWatcher", {"path": workdir, "recursive": recursive})["watcherId"]
    name = f"{inside}new.txt"
    upload(envd, f"{workdir}/{name}")
    assert new_events(envd, watcher) == [(name, "CREATE"), (name, "CHMOD"), (name, "WRITE")]
    upload(envd, f"{workdir}/{name}", b"other")
    assert (name, "WRITE") in new_events(envd, watcher)
    assert new_events(envd, watcher) == []
    envd.ok(FS + "RemoveWatcher", {"watcherId": watcher})


@pytest.mark.quick
def test_a_file_in_a_directory_made_a_moment_ago(envd: Envd, workdir: str):
    watcher = envd.ok(FS + "CreateWatcher", {"path": workdir, "recursive": True})["watcherId"]
    for number in range(10):
        deep = f"d{number}/a/b"
        upload(envd, f"{workdir}/{deep}/f")
        events = new_events(envd, watcher)
        assert (f"d{number}", "CREATE") in events
        assert (f"{deep}/f", "WRITE") in events or (f"{deep}/f", "CREATE") in events
    envd.ok(FS + "RemoveWatcher", {"watcherId": watcher})
