"""Builds from files: versions, iterations, rollbacks, logs, limits. No network needed."""

from __future__ import annotations

import http.client
import io
import json
import subprocess
import tarfile
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from support.builds import Builds, page
from support.cli import caisson
from support.rest import assert_refusal
from support.server import REPOSITORY

pytestmark = pytest.mark.timeout(300)


def test_a_static_site_is_served(builds: Builds) -> None:
    made = builds.create(files={"index.html": page("Hello"), "data/words.txt": "äöü\n", "empty.txt": ""})
    assert made["state"] in ("queued", "starting") and made["preview_state"] == "loading"
    build = builds.wait(made)
    assert build["build_version"] == "build_v0_1" and build["framework"] == "static"
    assert build["preview_state"] == "active" and build["sandbox_expires_at"]
    assert build["services"]["preview"]["url"] == build["preview_url"]
    assert build["workspace_path"] == "/home/user/project"
    assert urlsplit(build["preview_url"]).hostname.startswith(f"3000-{build['sandbox_id']}.")
    assert "Hello" in builds.open(build)
    assert builds.open(build, "/data/words.txt") == "äöü\n"
    assert builds.open(build, "/empty.txt") == ""
    stages = [e["stage"] for e in builds.events(build, "build.stage.started")]
    assert stages == ["starting", "scaffold", "code", "deps", "checks"]
    assert builds.get(f"/builds/{build['id']}/files")["files"]["data/words.txt"] == "äöü\n"


def test_an_iteration_is_the_next_version_at_the_same_address(builds: Builds) -> None:
    first = builds.ready(files={"index.html": page("One"), "old.html": "old"})
    second = builds.ready(parent_id=first["id"], goal="another title",
                          files=[{"path": "index.html", "new_content": page("Two")},
                                 {"path": "old.html", "delete": True}])
    assert second["build_version"] == "build_v0_2"
    assert (second["preview_url"], second["sandbox_id"]) == (first["preview_url"], first["sandbox_id"])
    assert "Two" in builds.open(second)
    assert builds.status(second, "/old.html") == 404
    changes = {f["path"]: f for f in builds.get(f"/builds/{second['id']}/diff")["files"]}
    assert changes["old.html"]["change"] == "deleted" and changes["index.html"]["change"] == "modified"
    assert builds.show(first)["preview_state"] == "expired"
    (told,) = builds.events(second, "iteration_completed")
    assert told["build_version"] == "build_v0_2"


def test_the_version_of_a_build_is_predicted(builds: Builds) -> None:
    asked = {"project": "shop", "files": {"index.html": page("One")}}
    started = builds.ask("POST", "/generation/start", asked, 201).json()
    assert started["build_version"] == "build_v0_1" and started["status"] in ("queued", "starting")
    first = builds.wait({"id": started["job_id"]})
    assert first["build_version"] == first["predicted_version"] == "build_v0_1"
    slow = builds.create(parent_id=first["id"], files={"index.html": page("Slow")},
                         checks=["while [ ! -e /tmp/go ]; do sleep 0.1; done"])
    assert slow["predicted_version"] == "build_v0_2" and slow["build_version"] is None
    quick = builds.ready(files={"index.html": page("Quick")})
    assert quick["build_version"] == "build_v0_2" and builds.show(slow)["predicted_version"] == "build_v0_3"
    builds.ask("POST", f"/builds/{slow['id']}/cancel", status=200)
    assert builds.wait(slow, "failed")["predicted_version"] is None


def test_a_failed_iteration_brings_the_page_back(builds: Builds) -> None:
    first = builds.ready(files={"index.html": page("Good")})
    broken = builds.create(parent_id=first["id"], checks=["echo checking >&2; exit 3"],
                           files={"index.html": page("Broken"), "extra.html": "extra"})
    failed = builds.wait(broken, "failed")
    assert failed["debug_id"] and failed["error_summary"] and failed["needs_review"]
    assert failed["restored_version_of"] == first["id"] and failed["build_version"] is None
    assert "checking" in failed["error_message"]
    assert "Good" in builds.open(builds.show(first))
    assert builds.status(first, "/extra.html") == 404
    assert builds.show(first)["preview_state"] == "active"
    # The next one is counted as if this had never been.
    assert builds.ready(parent_id=first["id"], files={"index.html": page("Next")})["build_version"] == "build_v0_2"


def test_a_server_that_does_not_start_is_a_crash(builds: Builds) -> None:
    made = builds.create(files={"index.html": "x"}, start_command="echo it breaks; exit 7")
    failed = builds.wait(made, "failed")
    assert failed["error_category"] == "runtime_crash"
    assert "it breaks" in failed["error_message"]
    assert builds.live_sandboxes() == []


def test_a_version_is_downloaded(builds: Builds, tmp_path) -> None:
    files = {"index.html": page("One"), "d" * 90 + "/" + "ü" * 60 + ".txt": "äöü\n" * 5000, "empty.txt": ""}
    build = builds.ready(files=files)
    answer = builds.ask("GET", f"/builds/{build['id']}/archive", status=200)
    assert answer.header("Content-Disposition") == 'attachment; filename="shop-build_v0_1.tar.gz"'
    with tarfile.open(fileobj=io.BytesIO(answer.body)) as archive:
        found = {one.name: archive.extractfile(one).read().decode() for one in archive if one.isfile()}
    assert found == {f"shop/{path}": content for path, content in files.items()}
    done = caisson(builds.server, "build", "download", build["id"], str(tmp_path / "shop.tar.gz"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "shop.tar.gz").read_bytes() == answer.body
    assert caisson(builds.server, "build", "download", build["id"], "-").stdout == answer.body
    subprocess.run(["tar", "-xzf", tmp_path / "shop.tar.gz", "-C", tmp_path], check=True, timeout=60)
    assert (tmp_path / "shop/index.html").read_text() == page("One")
    missing = caisson(builds.server, "build", "download", "none", "-")
    assert missing.returncode == 1 and b"there is no build" in missing.stderr


def test_readiness_tells_what_stands_against_a_deployment(builds: Builds) -> None:
    key = "ghp_0123456789abcdef0123"
    first = builds.ready(files={"index.html": page("One")})
    assert builds.get(f"/builds/{first['id']}/readiness") == {
        "ready": True, "blocking_issues": [], "warnings": [],
        "recommended_path": {"target": "static", "install": [], "build": None, "start": None, "directory": "."}}
    second = builds.ready(files={"index.html": page("Two"), "call.js": f"// text\ncall('{key}')\n",
                                 "package.json": "{}"}, install_command="true",
                          start_command="python3 -m http.server 3000", port=3000)
    found = builds.get(f"/builds/{second['id']}/readiness")
    assert not found["ready"] and key not in json.dumps(found)
    (issue,) = found["blocking_issues"]
    assert (issue["code"], issue["path"], issue["line"]) == ("secret_in_file", "call.js", 2)
    assert [one["code"] for one in found["warnings"]] == ["no_lock_file"]
    assert found["recommended_path"]["install"] == ["true"]
    failed = builds.wait(builds.create(files={"index.html": "x"}, checks=["false"]), "failed")
    (issue,) = builds.get(f"/builds/{failed['id']}/readiness")["blocking_issues"]
    assert issue["code"] == "not_ready"


def test_a_change_request_tells_how_the_change_fits(builds: Builds) -> None:
    first = builds.ready(goal="a page about ships", files={"index.html": page("Ships")})
    refused = builds.ask("GET", f"/builds/{first['id']}/change-request")
    assert_refusal(refused, 404, contains="first one")
    second = builds.ready(parent_id=first["id"], goal="brighter sails",
                          files={"index.html": page("Ships with sails")})
    assert builds.get(f"/builds/{second['id']}/change-request") == {
        "build_id": second["id"], "parent_id": first["id"], "change_description": "brighter sails",
        "iteration_number": 1, "tier_limit": 0, "alignment_score": 1.0, "scope_creep_detected": False,
        "unrelated_files": []}
    third = builds.ready(parent_id=second["id"], goal="darker sails", files={
        "index.html": page("Ships with dark sails"), "prices.html": "<p>costs\n" * 20})
    change = builds.get(f"/builds/{third['id']}/change-request")
    assert change["iteration_number"] == 2 and change["scope_creep_detected"]
    assert 0 < change["alignment_score"] < 0.5 and change["unrelated_files"] == ["prices.html"]


def test_a_version_has_documentation(builds: Builds) -> None:
    first = builds.ready(goal="a page about ships",
                         files={"index.html": "<h1>Ships</h1><h2>Prices</h2>\n"})
    docs = builds.get(f"/builds/{first['id']}/docs")
    assert docs["version"] == "build_v0_1" and docs["overview"] == "a page about ships"
    assert first["docs_ready"]
    (told,) = builds.events(first, "documentation.updated")
    assert told["url"] == f"/api/v1/builds/{first['id']}/docs"
    assert docs["features"] == ["Ships", "Prices"] and docs["changelog"] == []
    assert first["preview_url"] in docs["getting_started"][0]
    assert all(one["question"] and one["answer"] for one in docs["faq"])
    second = builds.ready(parent_id=first["id"], goal="add sails", files={
        "README.md": "Ships and sails.\n\n## Features\n- Sails\n"})
    docs = builds.get(f"/builds/{second['id']}/docs")
    assert docs["overview"] == "add sails\n\nShips and sails." and docs["features"] == ["Sails"]
    assert [(one["version"], one["description"]) for one in docs["changelog"]] == [("build_v0_2", "add sails")]
    assert docs["markdown"].startswith("# shop\n\nadd sails")
    file = builds.ask("GET", f"/builds/{second['id']}/docs/download", status=200)
    assert file.body.decode() == docs["markdown"]
    assert file.header("Content-Disposition") == 'attachment; filename="shop-build_v0_2.md"'
    failed = builds.wait(builds.create(files={"index.html": "x"}, checks=["false"]), "failed")
    for path in ("docs", "docs/download"):
        assert_refusal(builds.ask("GET", f"/builds/{failed['id']}/{path}"), 409, contains="only a version")
    assert not builds.show(failed)["docs_ready"]


def test_a_server_on_the_wrong_port_is_told_with_what_runs(make_server) -> None:
    builds = Builds(make_server(env={"CAISSON_BUILD_TIER": "none", "CAISSON_BUILD_READY_TIMEOUT_S": "5"}))
    failed = builds.wait(builds.create(files={"index.html": "x"}, port=3000,
                                       start_command="python3 -m http.server 3001"), "failed")
    assert failed["error_category"] == "timeout"
    lines = [line["text"] for line in builds.log(failed)]
    start = lines.index("Ports that are listened on (it should be 3000):")
    end = lines.index("Processes:")
    assert any("3001" in line for line in lines[start + 1:end]), lines
    assert any("http.server 3001" in line for line in lines[end:]), lines


def test_rollback_brings_an_old_version_back(builds: Builds) -> None:
    first = builds.ready(files={"index.html": page("One")})
    second = builds.ready(parent_id=first["id"], files={"index.html": page("Two"), "new.html": "new"})
    back = builds.ask("POST", f"/builds/{second['id']}/rollback", {"version": "build_v0_1"}, 201).json()
    third = builds.wait(back)
    assert third["build_version"] == "build_v0_3"
    assert "One" in builds.open(third)
    assert builds.status(third, "/new.html") == 404
    refused = builds.ask("POST", f"/builds/{second['id']}/rollback", {"version": "build_v0_9"})
    assert_refusal(refused, 404)


def test_rollback_without_its_sandbox_uses_the_snapshot(builds: Builds) -> None:
    first = builds.ready(files={"index.html": page("One")},
                         checks=["echo made by a check > made.txt"])
    assert first["snapshot_id"]
    builds.ask("DELETE", f"/sandboxes/{first['sandbox_id']}")
    back = builds.ask("POST", f"/builds/{first['id']}/rollback", {"version": "build_v0_1"}, 201).json()
    second = builds.wait(back)
    assert second["sandbox_id"] != first["sandbox_id"]
    assert "One" in builds.open(second)
    assert builds.open(second, "/made.txt") == "made by a check\n"


def test_files_that_are_wrong_are_refused_at_once(builds: Builds) -> None:
    for files in ({"../escape": "x"}, {"/etc/passwd": "x"}, {"a//b": "x"}, {".git/config": "x"}, {"app.jsx": "x"},
                  [{"path": "a.txt", "content": "the wrong name"}]):
        assert_refusal(builds.ask("POST", "/builds", {"project": "p", "files": files}), 422)
    assert builds.get("/builds")["total"] == 0


def test_the_log_is_there_from_its_first_line(builds: Builds) -> None:
    build = builds.ready(files={"index.html": "x"}, checks=["for i in $(seq 300); do echo line $i; done"])
    lines = builds.log(build)
    assert [line["id"] for line in lines] == list(range(len(lines)))
    assert lines[0]["text"] == "Starting" and {line["source"] for line in lines} >= {"system", "stdout"}
    assert [line["text"] for line in lines if line["text"].startswith("line ")] == [f"line {i}" for i in range(1, 301)]
    page_ = builds.get(f"/builds/{build['id']}/logs", limit=10)
    assert len(page_["lines"]) == 10 and page_["has_more"] and page_["oldest_id"] == page_["lines"][0]["id"]
    streamed = list(stream(builds, build))
    assert [json.loads(data)["id"] for kind, data in streamed if kind == "log"] == [line["id"] for line in lines]
    assert streamed[-1] == ("done", '{"status":"ready"}')


def test_a_stream_shows_lines_while_they_come(builds: Builds) -> None:
    made = builds.create(files={"index.html": "x"}, checks=["echo first; while [ ! -e /tmp/go ]; do sleep 0.1; done; echo last"])
    seen = []
    for kind, data in stream(builds, made):
        seen.append(json.loads(data).get("text", kind))
        if seen[-1] == "first":  # the build still waits: this line came before its end
            sandbox = builds.show(made)["sandbox_id"]
            builds.ask("POST", f"/sandboxes/{sandbox}/execute", {"command": "touch /tmp/go"}, 200)
    assert seen.index("first") < seen.index("last") and seen[-1] == "done"


def test_streams_stay_alive_while_a_command_is_silent(make_server) -> None:
    builds = Builds(make_server(env={"CAISSON_BUILD_TIER": "none", "CAISSON_SSE_HEARTBEAT_MS": "100"}))
    other = builds.create(project="other", files={"index.html": "x"})
    made = builds.create(files={"index.html": "x"}, checks=["echo first; while [ ! -e /tmp/go ]; do sleep 0.1; done"])
    beats, silent, kind = 0, False, ""
    for kind, data in follow(builds, f"/builds/{made['id']}/logs/stream"):
        silent = silent or (kind == "log" and json.loads(data)["text"] == "first")
        beats += silent and kind == "heartbeat"
        if beats == 3:
            break
    assert beats == 3, kind
    builds.wait(other)
    stages = []
    for kind, data in follow(builds, f"/builds/{made['id']}/events/stream?after=0"):
        if kind == "heartbeat" and "checks" in stages:
            sandbox = builds.show(made)["sandbox_id"]
            builds.ask("POST", f"/sandboxes/{sandbox}/execute", {"command": "touch /tmp/go"}, 200)
        if kind == "build.stage.started":
            assert json.loads(data)["build_id"] == made["id"]
            stages.append(json.loads(data)["stage"])
        if kind == "build_updated" and json.loads(data)["state"] == "ready":
            break
    assert stages == ["starting", "scaffold", "code", "deps", "checks"]


def test_limits_slow_down_and_never_refuse(make_server) -> None:
    builds = Builds(make_server(env={"CAISSON_BUILD_TIER": "small", "CAISSON_BUILD_TIERS": "small=1/1/3/1/0"}))
    slow = {"files": {"index.html": "x"}, "checks": ["while [ ! -e /tmp/go ]; do sleep 0.1; done"]}
    running, waiting = builds.create(**slow), builds.create(**slow)
    assert waiting["state"] == "queued" and waiting["position"] == 1 and waiting["estimated_wait_s"] > 0
    assert waiting["usage"]["jobs_used"] == 2 and waiting["usage"]["jobs_remaining"] == 1
    builds.ask("POST", f"/builds/{waiting['id']}/cancel", status=200)
    assert_refusal(builds.ask("POST", f"/builds/{waiting['id']}/cancel"), 409)
    third = builds.create(files={"index.html": "x"})
    later = builds.create(files={"index.html": "x"})
    assert later["state"] == "scheduled" and later["scheduled_for"] == later["usage"]["daily_limit_resets_at"]
    builds.ask("POST", f"/builds/{running['id']}/cancel", {"reason": "enough"}, 200)
    canceled = builds.wait(running, "failed")
    assert canceled["error_category"] == "canceled" and canceled["error_message"] == "enough"
    assert builds.wait(third)["build_version"] == "build_v0_1"


def test_builds_of_others_do_not_exist(builds: Builds) -> None:
    build = builds.ready(files={"index.html": "x"})
    eve = builds.ask("POST", "/users", {"name": "eve", "role": "member", "password": "a long password"}, 201).json()
    key = builds.ask("POST", "/keys", {"name": "test", "user_id": eve["id"]}, 201).json()["key"]
    for path in ("", "/files", "/diff", "/logs", "/logs/stream", "/events/stream", "/preview-check", "/screenshot",
                 "/archive", "/readiness", "/docs", "/docs/download", "/change-request"):
        assert_refusal(builds.ask("GET", f"/builds/{build['id']}{path}", key=key), 404)
    for path in ("/cancel", "/confirm", "/pause", "/resume", "/preview-viewed"):
        assert_refusal(builds.ask("POST", f"/builds/{build['id']}{path}", key=key), 404)
    rollback = builds.ask("POST", f"/builds/{build['id']}/rollback", {"version": "build_v0_1"}, key=key)
    assert_refusal(rollback, 404)
    child = {"project": "shop", "files": {"index.html": "x"}, "parent_id": build["id"]}
    assert_refusal(builds.ask("POST", "/builds", child, key=key), 404)
    assert builds.ask("GET", "/builds", key=key).json()["total"] == 0


def test_the_agent_of_a_build_works_in_its_sandbox(builds: Builds) -> None:
    script = "echo thinking; mkdir -p css; echo '<h1>By an agent</h1>' > index.html; echo 'a{}' > css/a.css"
    agent = builds.add_agent(script)
    build = builds.ready(goal="a page", runner="command", agent_id=agent["id"])
    assert "By an agent" in builds.open(build)
    assert builds.get(f"/builds/{build['id']}/files")["files"]["css/a.css"] == "a{}\n"
    assert "thinking" in [line["text"] for line in builds.log(build)]


MENDS = """
echo run >> /home/user/runs
if grep -q 'checks failed' <<<"$CAISSON_TASK" && grep -q 'no heading' <<<"$CAISSON_TASK"; then
  echo '<h1>Mended</h1>' > index.html; rm bad.txt
else
  echo '<p>Text</p>' > index.html; echo bad > bad.txt
fi
"""
HEADING = "grep -q '<h1>' index.html || { echo there is no heading >&2; exit 1; }"


def test_an_agent_mends_what_the_checks_find(builds: Builds) -> None:
    agent = builds.add_agent(MENDS)
    build = builds.ready(goal="a page", runner="command", agent_id=agent["id"], checks=[HEADING])
    assert "Mended" in builds.open(build) and builds.status(build, "/bad.txt") == 404
    assert builds.fixes(build) == [(1, 2)]
    assert "Auto-fixing (attempt 1 of 2)" in [line["text"] for line in builds.log(build)]
    assert set(builds.get(f"/builds/{build['id']}/files")["files"]) == {"index.html"}


def test_mending_comes_to_an_end(builds: Builds) -> None:
    agent = builds.add_agent("echo '<p>Text</p>' > index.html")
    wanted = {"goal": "a page", "runner": "command", "agent_id": agent["id"], "checks": [HEADING]}
    failed = builds.wait(builds.create(**wanted, max_fixes=1), "failed")
    assert builds.fixes(failed) == [(1, 1)]
    assert "no heading" in failed["error_message"] and builds.live_sandboxes() == []
    assert_refusal(builds.ask("POST", "/builds", {"project": "shop", **wanted, "max_fixes": 6}), 422)


@pytest.mark.parametrize("point", ["after_claim", "after_effect"])
def test_a_crash_while_mending_asks_nobody_twice(make_server, point: str) -> None:
    server = make_server(env={"CAISSON_BUILD_TIER": "none", "CAISSON_FLOW_CRASH_AT": f"mend-1:{point}"})
    builds = Builds(server)
    agent = builds.add_agent(MENDS)
    builds.create(goal="a page", runner="command", agent_id=agent["id"], checks=[HEADING])
    server.process.wait(timeout=120)
    server.crash()
    del server.env["CAISSON_FLOW_CRASH_AT"]
    server.start()
    (listed,) = builds.get("/builds")["builds"]
    build = builds.wait(listed)
    assert build["build_version"] == "build_v0_1" and "Mended" in builds.open(build)
    assert builds.fixes(build) == [(1, 2)]
    runs = builds.ask("POST", f"/sandboxes/{build['sandbox_id']}/execute", {"command": "cat /home/user/runs"}, 200)
    assert runs.json()["stdout"] == "run\nrun\n"
    assert [line["text"] for line in builds.log(build)].count("Auto-fixing (attempt 1 of 2)") == 1


@pytest.mark.parametrize("step", ["starting", "scaffold", "code", "deps", "checks", "serve", "finish"])
@pytest.mark.parametrize("point", ["after_claim", "after_effect"])
def test_a_crash_ends_in_exactly_one_ready_version(make_server, step: str, point: str) -> None:
    server = make_server(env={"CAISSON_BUILD_TIER": "none", "CAISSON_FLOW_CRASH_AT": f"{step}:{point}"})
    builds = Builds(server)
    try:
        builds.create(files={"index.html": page("Still here")}, checks=["echo checked"])
    except (ConnectionError, http.client.HTTPException):
        pass  # it died before it could answer
    server.process.wait(timeout=120)
    server.crash()
    del server.env["CAISSON_FLOW_CRASH_AT"]
    server.start()
    (listed,) = builds.get("/builds")["builds"]
    build = builds.wait(listed)
    builds.wait_until(lambda: builds.run(build["run_id"])["state"] == "succeeded", "the run ends")
    assert build["build_version"] == "build_v0_1"
    assert "Still here" in builds.open(build)
    assert len(builds.live_sandboxes()) == 1
    texts = [line["text"] for line in builds.log(build)]
    for once in ("Starting", "Installing dependencies", "Running checks", "$ echo checked", "checked"):
        assert texts.count(once) == 1, texts


def test_a_crash_leaves_no_snapshot_that_nobody_knows(make_server) -> None:
    """It dies when the snapshot is there and the build does not know it."""
    server = make_server(env={"CAISSON_BUILD_TIER": "none", "CAISSON_FLOW_CRASH_AT": "serve:after_snapshot"})
    builds = Builds(server)
    builds.create(files={"index.html": page("Kept")})
    server.process.wait(timeout=120)
    server.crash()
    del server.env["CAISSON_FLOW_CRASH_AT"]
    server.start()
    (left,) = builds.rest.get("/snapshots").json()
    (listed,) = builds.get("/builds")["builds"]
    build = builds.wait(listed)
    (kept,) = builds.rest.get("/snapshots").json()
    assert kept == left and kept["names"] == [f"build-{build['id']}:default"]
    builds.ask("DELETE", f"/sandboxes/{build['sandbox_id']}")
    back = builds.ask("POST", f"/builds/{build['id']}/rollback", {"version": "build_v0_1"}, 201).json()
    assert "Kept" in builds.open(builds.wait(back))


def test_builds_from_a_terminal(builds: Builds, tmp_path) -> None:
    (tmp_path / "index.html").write_text(page("One"))
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules/junk.js").write_text("left out")
    server = builds.server
    made = caisson(server, "build", "create", "shop", str(tmp_path), "--watch")
    assert made.returncode == 0, made.stderr
    assert b"Starting the server" in made.stdout and b"preview_url" in made.stdout
    (first,) = builds.get("/builds")["builds"]
    (tmp_path / "index.html").write_text(page("Two"))
    second = caisson(server, "build", "create", "shop", str(tmp_path), "--parent", first["id"]).stdout.decode().strip()
    followed = caisson(server, "build", "logs", second, "--follow")
    assert followed.returncode == 0 and b"build_v0_2" in followed.stdout, followed
    assert b"build_v0_2" in caisson(server, "build", "list", "--project", "shop").stdout
    assert b"+<!doctype html><title>Two" in caisson(server, "build", "diff", second).stdout
    assert b"Build complete" in caisson(server, "build", "show", second).stdout
    logged = caisson(server, "build", "logs", second).stdout
    assert logged.startswith(b"Starting\n")
    back = caisson(server, "build", "rollback", second, "build_v0_1").stdout.decode().strip()
    assert builds.wait({"id": back})["build_version"] == "build_v0_3"
    over = caisson(server, "build", "cancel", back)
    assert over.returncode == 1 and b"the build is over" in over.stderr
    nothing = caisson(server, "build", "create", "shop")
    assert nothing.returncode != 0 and b"--goal" in nothing.stderr


def test_the_tests_of_the_workflow_need_no_network() -> None:
    """They have a workbench without sandboxes and pass where there is nothing but an own loopback."""
    tests = REPOSITORY / "build/tests/build_flow_test"
    alone = f"ip link set lo up && exec {tests} --gtest_filter=BuildFlowTest.*-*NetworkIsToBlame"
    done = subprocess.run(["unshare", "--net", "sh", "-c", alone], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0 and "OK ] BuildFlowTest.AFirstBuild" in done.stdout, done.stdout[-3000:]


def stream(builds: Builds, build: dict) -> Iterator[tuple[str, str]]:
    """Events of the log's stream, to its end."""
    for kind, data in follow(builds, f"/builds/{build['id']}/logs/stream"):
        if kind != "heartbeat":
            yield kind, data


def follow(builds: Builds, path: str) -> Iterator[tuple[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", builds.server.port, timeout=120)
    connection.request("GET", "/api/v1" + path, headers={"X-API-Key": builds.server.api_key})
    answer = connection.getresponse()
    assert answer.status == 200
    kind = ""
    started = time.monotonic()
    for raw in answer:
        assert time.monotonic() - started < 240
        line = raw.decode().rstrip("\n")
        if line.startswith("event: "):
            kind = line[7:]
        if line.startswith("data: "):
            yield kind, line[6:]
    connection.close()
