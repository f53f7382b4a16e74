"""How long the sandbox of a build lives and its preview is shown."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime

import pytest
from support.builds import Builds, page
from support.rest import assert_refusal

pytestmark = pytest.mark.timeout(300)


def test_the_sandbox_of_a_build_lives_for_an_hour_from_each_start(builds: Builds) -> None:
    def seconds_left(build: dict) -> float:
        end = datetime.fromisoformat(builds.rest.detail(build["sandbox_id"])["endAt"])
        return (end - datetime.now(UTC)).total_seconds()

    first = builds.ready(files={"index.html": "1"})
    assert 3000 < seconds_left(first) <= 3600
    assert builds.rest.post(f"/sandboxes/{first['sandbox_id']}/timeout", {"timeout": 900}).status == 204
    assert seconds_left(first) <= 900
    second = builds.ready(parent_id=first["id"], files={"index.html": "2"})  # takes it over
    assert second["sandbox_id"] == first["sandbox_id"] and 3000 < seconds_left(second) <= 3600
    builds.rest.kill(second["sandbox_id"])
    third = builds.ready(parent_id=second["id"], files={"index.html": "3"})  # makes one
    assert third["sandbox_id"] != second["sandbox_id"] and 3000 < seconds_left(third) <= 3600


def test_previews_pause_and_come_back(builds: Builds) -> None:
    build = builds.ready(files={"index.html": page("Sleepy")})
    path = f"/builds/{build['id']}"
    for _ in range(2):  # a second time changes nothing
        assert builds.ask("POST", path + "/pause", status=200).json()["sandbox_paused"]
    assert builds.show(build)["preview_state"] == "paused"
    resumed = builds.ask("POST", path + "/resume", status=200).json()
    assert resumed["preview_state"] == "active"
    assert "Sleepy" in builds.open(resumed)
    builds.ask("DELETE", f"/sandboxes/{build['sandbox_id']}")
    assert_refusal(builds.ask("POST", path + "/resume"), 503, "sandbox_expired")
    assert builds.show(build)["preview_state"] == "expired"


def test_a_preview_is_shown_longer_by_the_same_server(make_server) -> None:
    builds = Builds(make_server(env={"CAISSON_BUILD_TIER": "none", "CAISSON_BUILD_VIEWING_S": "900",
                                     "CAISSON_BUILD_VIEWING_WARNING_S": "899"}))
    build = builds.ready(files={"index.html": page("Lasting")})
    path = f"/builds/{build['id']}"
    # Each process with the moment it began, so that a number that is used again is another one.
    living = ("for p in $(cat /tmp/.caisson/*/child); do "
              "[ -d /proc/$p ] && echo $p $(cut -d' ' -f22 /proc/$p/stat); done; true")

    def processes() -> str:
        body = {"command": living}
        return builds.ask("POST", f"/sandboxes/{build['sandbox_id']}/execute", body, 200).json()["stdout"]

    before = processes()
    assert before.strip()
    builds.wait_until(lambda: builds.events(build, "sandbox_expiring"), "it is told that it ends")
    longer = builds.ask("POST", path + "/extend", status=200).json()
    assert longer["sandbox_expires_at"] > build["sandbox_expires_at"]
    assert processes() == before and "Lasting" in builds.open(longer)
    builds.ask("POST", path + "/pause", status=200)
    assert builds.ask("POST", path + "/extend").status == 409


def test_whether_a_preview_may_be_shown_in_a_frame(builds: Builds) -> None:
    server = ("import http.server\nclass H(http.server.SimpleHTTPRequestHandler):\n"
              "    def end_headers(self):\n        self.send_header('X-Frame-Options', 'DENY')\n"
              "        super().end_headers()\nhttp.server.HTTPServer(('0.0.0.0', 3000), H).serve_forever()\n")
    free = builds.ready(files={"index.html": "x"})
    check = builds.get(f"/builds/{free['id']}/preview-check")
    assert check["state"] == "active" and check["embeddable"] and check["reason"] is None
    closed = builds.ready(project="closed", files={"index.html": "x", "serve.py": server},
                          start_command="python3 serve.py", port=3000)
    check = builds.get(f"/builds/{closed['id']}/preview-check")
    assert check["state"] == "blocked" and not check["embeddable"] and check["reason"] == "x_frame_options"
    assert builds.show(closed)["preview_state"] == "blocked" and builds.show(free)["preview_state"] == "active"


def test_a_preview_by_https(make_server) -> None:
    server = make_server(["--tls", "auto"], env={"CAISSON_BUILD_TIER": "none"})

    def ask(method: str, path: str, body: dict | None = None) -> dict:
        status, answer = server.request(method, "/api/v1" + path, body)
        assert status in (200, 201), answer
        return answer

    build = ask("POST", "/builds", {"project": "shop", "files": {"index.html": page("Sealed")}})
    deadline = time.monotonic() + 240
    while (build := ask("GET", f"/builds/{build['id']}"))["state"] not in ("ready", "failed"):
        assert time.monotonic() < deadline, build
        time.sleep(0.2)
    assert build["state"] == "ready", build
    assert build["preview_url"].startswith("https://3000-")
    check = ask("GET", f"/builds/{build['id']}/preview-check")
    assert check["state"] == "active" and check["embeddable"], check


def test_a_preview_that_is_asked_is_being_checked(builds: Builds) -> None:
    server = ("import http.server, os, time\nclass H(http.server.SimpleHTTPRequestHandler):\n"
              "    def do_GET(self):\n        while os.path.exists('/tmp/hold'): time.sleep(0.1)\n"
              "        super().do_GET()\nhttp.server.ThreadingHTTPServer(('0.0.0.0', 3000), H).serve_forever()\n")
    build = builds.ready(files={"index.html": "x", "serve.py": server}, start_command="python3 serve.py", port=3000)
    run(builds, build, "touch /tmp/hold")
    answers: list[dict] = []
    asking = threading.Thread(target=lambda: answers.append(builds.get(f"/builds/{build['id']}/preview-check")))
    asking.start()
    builds.wait_until(lambda: builds.show(build)["preview_state"] == "checking", "it is being checked")
    run(builds, build, "rm /tmp/hold")
    asking.join(timeout=60)
    assert answers[0]["state"] in ("active", "error")  # the server waits ten seconds for its answer
    assert builds.show(build)["preview_state"] == "active"


def test_a_server_that_does_not_start_again_is_unreachable(builds: Builds) -> None:
    once = "[ -e /tmp/once ] && exit 1; touch /tmp/once; exec python3 -m http.server 3000"
    build = builds.ready(files={"index.html": page("Once")}, start_command=once, port=3000)
    path = f"/builds/{build['id']}"
    builds.ask("POST", path + "/pause", status=200)
    refused = builds.ask("POST", path + "/resume")
    assert_refusal(refused, 503, "sandbox_unreachable")
    assert refused.json()["error"]["retryable"]
    assert builds.show(build)["preview_state"] == "resume_failed"
    run(builds, build, "rm /tmp/once")
    assert builds.ask("POST", path + "/resume", status=200).json()["preview_state"] == "active"
    assert "Once" in builds.open(build)


def run(builds: Builds, build: dict, command: str) -> None:
    answer = builds.ask("POST", f"/sandboxes/{build['sandbox_id']}/execute", {"command": command}, 200).json()
    assert answer["exit_code"] == 0, answer


def test_the_window_ends_with_a_warning(make_server) -> None:
    builds = Builds(make_server(env={"CAISSON_BUILD_TIER": "none", "CAISSON_BUILD_VIEWING_S": "8",
                                     "CAISSON_BUILD_VIEWING_WARNING_S": "6"}))
    build = builds.ready(files={"index.html": "x"})
    builds.wait_until(lambda: builds.show(build)["preview_state"] == "paused", "the preview is paused")
    (warning,) = builds.events(build, "sandbox_expiring")
    assert warning["ends_at"] == build["sandbox_expires_at"] and warning["seconds_left"] <= 6
