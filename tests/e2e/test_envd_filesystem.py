"""Filesystem calls by the raw protocol: errors, links, order, watches."""

from __future__ import annotations

import time

import pytest

from support.envd import Envd

FS = "filesystem.Filesystem/"


def code_of(envd: Envd, method: str, message: dict, **options) -> str:
    answer = envd.unary(FS + method, message, **options)
    return "ok" if answer.status == 200 else answer.json()["code"]


@pytest.mark.quick
def test_error_codes(envd: Envd, workdir: str):
    envd.run(f"cd {workdir} && touch file && mkdir dir && ln -s loop loop")
    assert code_of(envd, "Stat", {"path": f"{workdir}/none"}) == "not_found"
    assert code_of(envd, "ListDir", {"path": f"{workdir}/none"}) == "not_found"
    assert code_of(envd, "ListDir", {"path": f"{workdir}/file"}) == "invalid_argument"
    assert code_of(envd, "ListDir", {"path": f"{workdir}/loop"}) == "failed_precondition"
    assert code_of(envd, "MakeDir", {"path": f"{workdir}/dir"}) == "already_exists"
    assert code_of(envd, "MakeDir", {"path": f"{workdir}/file"}) == "invalid_argument"
    assert code_of(envd, "Move", {"source": f"{workdir}/none", "destination": "x"}) == "not_found"
    assert code_of(envd, "Remove", {"path": f"{workdir}/none"}) == "ok"
    assert code_of(envd, "Stat", {"path": "~ghost/x"}) == "invalid_argument"
    assert code_of(envd, "RemoveWatcher", {"watcherId": "w" + "0" * 20}) == "not_found"
    assert code_of(envd, "CreateWatcher", {"path": f"{workdir}/none"}) == "not_found"
    assert code_of(envd, "CreateWatcher", {"path": f"{workdir}/file"}) == "invalid_argument"


@pytest.mark.quick
def test_links_report_their_target(envd: Envd, workdir: str):
    envd.run(
        f"cd {workdir} && mkdir d && chmod 700 d && echo x > f && chmod 640 f"
        " && ln -s f lf && ln -s d ld && ln -s none lb && ln -s lf l2"
    )
    entries = {
        e["name"]: e for e in envd.ok(FS + "ListDir", {"path": workdir, "depth": 1})["entries"]
    }
    assert list(entries) == ["d", "f", "l2", "lb", "ld", "lf"]
    assert entries["lf"]["type"] == "FILE_TYPE_FILE" and entries["lf"]["mode"] == 0o640
    assert entries["lf"]["symlinkTarget"] == f"{workdir}/f"
    assert entries["lf"]["path"] == f"{workdir}/lf"
    assert entries["l2"]["symlinkTarget"] == f"{workdir}/f"
    assert entries["ld"]["type"] == "FILE_TYPE_DIRECTORY"
    assert entries["lb"].get("type", "FILE_TYPE_UNSPECIFIED") == "FILE_TYPE_UNSPECIFIED"
    assert entries["lb"].get("mode", 0) == 0
    assert entries["lb"]["symlinkTarget"] == f"{workdir}/lb"
    for name in ("lf", "ld", "lb", "l2"):
        assert entries[name]["permissions"].startswith("L"), name
        assert entries[name]["isSymlink"] is True
    assert "isSymlink" not in entries["f"] and "symlinkTarget" not in entries["f"]


@pytest.mark.quick
def test_order_is_by_bytes_within_each_directory(envd: Envd, workdir: str):
    envd.run(f"cd {workdir} && mkdir b B 'a b' && touch b/2 b/1 a é Z .x 'a b/y' a0")
    listed = envd.ok(FS + "ListDir", {"path": workdir, "depth": 5})["entries"]
    names = [e["path"].removeprefix(workdir + "/") for e in listed]
    assert names == [".x", "B", "Z", "a", "a b", "a b/y", "a0", "b", "b/1", "b/2", "é"]


def test_depth_zero_means_one(envd: Envd, workdir: str):
    envd.run(f"mkdir -p {workdir}/a/b")
    assert len(envd.ok(FS + "ListDir", {"path": workdir})["entries"]) == 1
    assert len(envd.ok(FS + "ListDir", {"path": workdir, "depth": 0})["entries"]) == 1


def test_paths_are_made_absolute_but_not_resolved(envd: Envd, workdir: str):
    envd.run(f"cd {workdir} && mkdir real && touch real/f && ln -s real link")
    relative = workdir.removeprefix("/home/user/")
    for path in (
        f"{relative}/link/f",
        f"~/{relative}/link/f",
        f"{workdir}/link/f",
    ):
        entry = envd.ok(FS + "Stat", {"path": path})["entry"]
        assert entry["path"] == f"{workdir}/link/f", path
    assert envd.ok(FS + "Stat", {"path": "~"})["entry"]["path"] == "/home/user"
    assert envd.ok(FS + "Stat", {"path": "."}, user="root")["entry"]["path"] == "/root"


def test_numeric_owner(envd: Envd, workdir: str):
    envd.run(f"touch {workdir}/n && chown 4321:8765 {workdir}/n", user="root")
    entry = envd.ok(FS + "Stat", {"path": f"{workdir}/n"})["entry"]
    assert (entry["owner"], entry["group"]) == ("4321", "8765")


@pytest.mark.parametrize(
    "mode,text",
    [("644", "-rw-r--r--"), ("4755", "urwxr-xr-x"), ("000", "----------"), ("1777", "trwxrwxrwx")],
)
def test_permission_strings(envd: Envd, workdir: str, mode: str, text: str):
    envd.run(f"touch {workdir}/p && chmod {mode} {workdir}/p")
    entry = envd.ok(FS + "Stat", {"path": f"{workdir}/p"})["entry"]
    assert entry["permissions"] == text
    assert entry.get("mode", 0) == int(mode[-3:], 8)


def test_names_that_are_not_utf8_do_not_break_the_list(envd: Envd, workdir: str):
    envd.run(f"cd {workdir} && touch $'bad-\\xff-name' good")
    names = [e["name"] for e in envd.ok(FS + "ListDir", {"path": workdir})["entries"]]
    assert len(names) == 2 and "good" in names


@pytest.mark.quick
def test_watch_stream(envd: Envd, workdir: str):
    stream = envd.open(FS + "WatchDir", {"path": workdir, "recursive": True, "includeEntry": True})
    assert stream.next() == {"start": {}}
    envd.run(f"cd {workdir} && mkdir sub && echo 1 > sub/file")
    seen: dict[tuple[str, str], dict] = {}
    for message in stream:
        event = message.get("filesystem", {})
        if event:
            seen[event["type"], event["name"]] = event
        if ("EVENT_TYPE_WRITE", "sub/file") in seen:
            break
    assert ("EVENT_TYPE_CREATE", "sub") in seen
    entry = seen["EVENT_TYPE_CREATE", "sub"]["entry"]
    assert entry["path"] == f"{workdir}/sub" and entry["type"] == "FILE_TYPE_DIRECTORY"
    stream.close()


def test_watch_keepalive_and_deadline(envd: Envd, workdir: str):
    stream = envd.open(
        FS + "WatchDir",
        {"path": workdir},
        headers={"Keepalive-Ping-Interval": "1", "Connect-Timeout-Ms": "8000"},
    )
    kinds = [next(iter(m)) for m in stream]
    assert kinds[0] == "start" and kinds.count("keepalive") >= 2
    assert stream.error["code"] == "deadline_exceeded"


def test_polled_watch_drains(envd: Envd, workdir: str):
    watcher = envd.ok(FS + "CreateWatcher", {"path": workdir})["watcherId"]
    envd.run(f"touch {workdir}/one")
    events: list[dict] = []
    end = time.monotonic() + 30
    while not any(e["name"] == "one" for e in events):
        assert time.monotonic() < end
        events += envd.ok(FS + "GetWatcherEvents", {"watcherId": watcher}).get("events", [])
        time.sleep(0.05)
    time.sleep(0.5)
    # What was given does not come again, or this never ended; what envd had not read yet may still come.
    while late := envd.ok(FS + "GetWatcherEvents", {"watcherId": watcher}).get("events", []):
        assert time.monotonic() < end, late
        time.sleep(0.5)
    envd.ok(FS + "RemoveWatcher", {"watcherId": watcher})


def test_moved_into_and_out_of_a_recursive_watch(envd: Envd, workdir: str):
    envd.run(f"mkdir -p {workdir}/in {workdir}/out/tree/deep && touch {workdir}/out/tree/deep/f")
    watcher = envd.ok(FS + "CreateWatcher", {"path": f"{workdir}/in", "recursive": True})[
        "watcherId"
    ]
    seen: set[tuple[str, str]] = set()

    def until_seen(kind: str, name: str, command: str, again: str = "true") -> None:
        end = time.monotonic() + 30
        envd.run(command)
        while (kind, name) not in seen:
            assert time.monotonic() < end, seen
            for event in envd.ok(FS + "GetWatcherEvents", {"watcherId": watcher}).get("events", []):
                seen.add((event["type"], event["name"]))
            time.sleep(0.05)
            envd.run(again)

    until_seen("EVENT_TYPE_CREATE", "tree", f"mv {workdir}/out/tree {workdir}/in/")
    # Its directories are watched from a moment after it was moved.
    write = f"echo x > {workdir}/in/tree/deep/new"
    until_seen("EVENT_TYPE_WRITE", "tree/deep/new", write, write)
    until_seen("EVENT_TYPE_RENAME", "tree", f"mv {workdir}/in/tree {workdir}/out/")
    envd.ok(FS + "RemoveWatcher", {"watcherId": watcher})


def test_legacy_python_client_gets_short_entries(envd: Envd, workdir: str):
    envd.run(f"touch {workdir}/f")
    answer = envd.unary(
        FS + "Stat", {"path": f"{workdir}/f"}, headers={"User-Agent": "connect-python"}
    )
    assert sorted(answer.json()["entry"]) == ["name", "path", "type"]
    assert answer.header("x-e2b-legacy-sdk") == "true"
