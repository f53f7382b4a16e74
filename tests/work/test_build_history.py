"""The timeline of builds, logs that were moved out of the database, and what is deleted."""

from __future__ import annotations

import http.client
import json
import sqlite3
from urllib.parse import urlencode

import pytest
from support.builds import Builds, page
from support.cli import caisson
from support.rest import assert_refusal

pytestmark = pytest.mark.timeout(300)

SLOW = "while [ ! -e /tmp/go ]; do sleep 0.1; done"


def board(builds: Builds, **query: object) -> dict[str, list[str]]:
    """Ids by column, for columns that have any."""
    shown = builds.get("/builds/timeline", **query)
    assert [column["id"] for column in shown["columns"]] == ["waiting", "running", "ready", "failed"]
    assert shown["total"] == sum(column["count"] for column in shown["columns"])
    for column in shown["columns"]:
        assert all(build["state"] in column["states"] for build in column["builds"])
    return {column["id"]: [build["id"] for build in column["builds"]] for column in shown["columns"] if column["count"]}


def test_the_timeline_is_a_board_with_filters(make_server) -> None:
    builds = Builds(make_server(env={"CAISSON_BUILD_TIER": "small", "CAISSON_BUILD_TIERS": "small=1/1/20/20/0"}))
    first = builds.ready(goal="a page about ships", files={"index.html": page("Ships")})
    second = builds.ready(parent_id=first["id"], goal="Brighter SAILS", files={"index.html": page("Sails")})
    failed = builds.wait(builds.create(parent_id=second["id"], goal="no sails", files={"index.html": page("No")},
                                       checks=["false"]), "failed")
    back = builds.wait(builds.ask("POST", f"/builds/{second['id']}/rollback", {"version": "build_v0_1"}, 201).json())
    running = builds.create(project="other", files={"index.html": page("Other")}, checks=[SLOW])
    waiting = builds.create(project="other", files={"index.html": page("Later")})
    first, second, failed, back, running, waiting = (one["id"] for one in (first, second, failed, back, running, waiting))

    assert board(builds) == {"waiting": [waiting], "running": [running], "ready": [back, second, first],
                             "failed": [failed]}
    assert board(builds, project="shop") == {"ready": [back, second, first], "failed": [failed]}
    assert board(builds, q="sails") == {"ready": [second], "failed": [failed]}
    assert board(builds, q="BUILD_v0_1") == {"ready": [back, first]}  # the version, and what goes back to it
    assert board(builds, q="nothing has this") == {}
    assert board(builds, type="rollback") == {"ready": [back]}
    assert board(builds, type=["first", "iteration"], project="shop") == {"ready": [second, first], "failed": [failed]}
    assert [builds.show({"id": one})["type"] for one in (first, second, back)] == ["first", "iteration", "rollback"]
    limited = builds.get("/builds/timeline", limit=1)["columns"][2]
    assert limited["count"] == 3 and [build["id"] for build in limited["builds"]] == [back]

    begun = builds.show({"id": second})["enqueued_at"]
    assert board(builds, to=begun) == {"ready": [first]}
    assert board(builds, **{"from": begun}, project="shop") == {"ready": [back, second], "failed": [failed]}
    day = begun[:10]
    assert first in board(builds, to=builds.show({"id": waiting})["enqueued_at"][:10], **{"from": day})["ready"]
    assert board(builds, to="2020-01-31") == {} and board(builds, **{"from": "2100-01-01"}) == {}
    for wrong in ({"from": "yesterday"}, {"to": "2026-13-01"}, {"type": "odd"}, {"limit": "0"}):
        assert builds.ask("GET", "/builds/timeline?" + urlencode(wrong)).status in (400, 422), wrong

    eve = builds.ask("POST", "/users", {"name": "eve", "role": "member", "password": "a long password"}, 201).json()
    key = builds.ask("POST", "/keys", {"name": "test", "user_id": eve["id"]}, 201).json()["key"]
    assert builds.ask("GET", "/builds/timeline", key=key).json()["total"] == 0
    assert_refusal(builds.ask("GET", "/builds/timeline?all=true", key=key), 403)
    for one in (waiting, running):
        builds.ask("POST", f"/builds/{one}/cancel", status=200)


def streamed(builds: Builds, build: dict) -> list[dict]:
    connection = http.client.HTTPConnection("127.0.0.1", builds.server.port, timeout=120)
    connection.request("GET", f"/api/v1/builds/{build['id']}/logs/stream", headers={"X-API-Key": builds.server.api_key})
    lines = connection.getresponse().read().decode().splitlines()
    connection.close()
    return timeless([json.loads(line[6:]) for line in lines if line.startswith("data: ") and '"text"' in line])


def timeless(lines: list[dict]) -> list[dict]:
    return [{name: value for name, value in line.items() if name != "ts"} for line in lines]


def test_an_archived_log_is_still_there(make_server) -> None:
    server = make_server(env={"CAISSON_BUILD_TIER": "none", "CAISSON_BUILD_LOG_HOURS": "1",
                              "CAISSON_BUILD_LOG_ARCHIVE": "old-logs"})
    builds = Builds(server)
    colours = "for i in $(seq 120); do printf '\\033[31mline %s\\033[0m\\n' $i; done"
    build = builds.ready(files={"index.html": page("Logged")}, checks=[colours])
    before, told = timeless(builds.log(build)), streamed(builds, build)
    assert len([line for line in before if line.get("raw", "").startswith("\x1b[31mline")]) == 120
    server.stop()
    with sqlite3.connect(server.data_dir / "db/caisson.db") as database:
        for change in ("build_logs SET at = at - {}", "builds SET completed_at = completed_at - {}"):
            database.execute("UPDATE " + change.format(2 * 3600 * 10**9))
    database.close()
    server.start()
    file = server.data_dir / f"db/old-logs/{build['id']}.ndjson"
    builds.wait_until(file.exists, "the log is archived")
    builds.wait_until(lambda: stored_lines(server) == 0, "its rows are gone")
    assert timeless(builds.log(build)) == before == told and streamed(builds, build) == told


def snapshots(builds: Builds) -> set[str]:
    return {name for one in builds.rest.get("/snapshots").json() for name in one["names"]}


def test_a_deleted_build_leaves_nothing(builds: Builds) -> None:
    first = builds.ready(files={"index.html": page("One")})
    second = builds.ready(parent_id=first["id"], files={"index.html": page("Two")})
    slow = builds.create(parent_id=second["id"], files={"index.html": page("Three")}, checks=[SLOW])
    for one in (second, slow):
        assert_refusal(builds.ask("DELETE", f"/builds/{one['id']}"), 409)
    builds.ask("POST", f"/builds/{slow['id']}/cancel", status=200)
    builds.wait(slow, "failed")
    assert snapshots(builds) == {f"build-{one['id']}:default" for one in (first, second)}
    builds.ask("DELETE", f"/builds/{first['id']}", status=204)
    assert "Two" in builds.open(second)
    for path in ("", "/files", "/logs", "/archive", "/screenshot"):
        assert_refusal(builds.ask("GET", f"/builds/{first['id']}{path}"), 404)
    assert [one["id"] for one in builds.get("/builds")["builds"]] == [slow["id"], second["id"]]
    assert board(builds) == {"ready": [second["id"]], "failed": [slow["id"]]}
    gone = caisson(builds.server, "build", "delete", second["id"])
    assert gone.returncode == 0, gone.stderr
    assert caisson(builds.server, "build", "delete", second["id"]).returncode == 1
    assert snapshots(builds) == set() and builds.live_sandboxes() == []
    with sqlite3.connect(builds.server.data_dir / "db/caisson.db", timeout=30) as database:
        left = database.execute("SELECT DISTINCT build_id FROM build_files UNION SELECT build_id FROM build_logs").fetchall()
    database.close()
    assert left == [(slow["id"],)]
    assert builds.ready(files={"index.html": page("Next")})["build_version"] == "build_v0_3"


def test_old_versions_go_by_a_setting(make_server) -> None:
    server = make_server(env={"CAISSON_BUILD_TIER": "none"})
    builds = Builds(server)
    made = [builds.ready(files={"index.html": page("0")})]
    for i in range(1, 4):
        made.append(builds.ready(parent_id=made[-1]["id"], files={"index.html": page(str(i))}))
    server.stop()
    server.env["CAISSON_BUILD_KEEP_VERSIONS"] = "2"
    server.start()
    builds.wait_until(lambda: builds.get("/builds")["total"] == 2, "old versions are deleted")
    assert [one["id"] for one in builds.get("/builds")["builds"]] == [made[3]["id"], made[2]["id"]]
    builds.wait_until(lambda: snapshots(builds) == {f"build-{one['id']}:default" for one in made[2:]}, "so are snapshots")
    assert "3" in builds.open(made[3])


def test_a_snapshot_that_nobody_knows_goes_with_its_build(make_server) -> None:
    """The server dies when the snapshot is there; the next one finds that the page does not start again."""
    server = make_server(env={"CAISSON_BUILD_TIER": "none", "CAISSON_FLOW_CRASH_AT": "serve:after_snapshot"})
    builds = Builds(server)
    once = "[ -e /tmp/once ] && exit 1; touch /tmp/once; exec python3 -m http.server 3000"
    builds.create(files={"index.html": page("Once")}, start_command=once, port=3000)
    server.process.wait(timeout=120)
    server.crash()
    del server.env["CAISSON_FLOW_CRASH_AT"]
    server.start()
    (listed,) = builds.get("/builds")["builds"]
    builds.wait(listed, "failed")
    assert snapshots(builds) == set()


def stored_lines(server) -> int:
    with sqlite3.connect(server.data_dir / "db/caisson.db", timeout=30) as database:
        (count,) = database.execute("SELECT count(*) FROM build_logs").fetchone()
    database.close()
    return count
