"""Live events over real connections: who sees what, from where, and what happens at the edges."""

from __future__ import annotations

import sqlite3
import time

import pytest
from support.archive import archive_output
from support.forge import Forge
from support.rest import Rest, assert_refusal
from support.sessions import wait_until
from support.streams import Inflated, Stream
from support.work import BUSY, Platform, settings_for

ALL = "/api/v1/events"
LOUD = 16  # MB; at most 4 MB of an answer wait in the kernel
QUEUE = 100  # events


@pytest.fixture
def platform(make_server) -> Platform:
    return Platform(make_server(["--set", "sse_max_per_user=3", "--set", "sse_heartbeat_ms=300"]))


def rename(platform: Platform, agent: dict, name: str) -> None:
    platform.ask("PATCH", f"/agents/{agent['id']}", {"name": name}, 200)


def names(events: list[dict]) -> list[str]:
    return [event["name"] for event in events]


@pytest.mark.quick
def test_a_stream_shows_what_was_asked_for(platform: Platform) -> None:
    a, b, c = (platform.add_agent("true", name) for name in "abc")
    one = f"/api/v1/sse?replay=0&agent_id={a['id']}"
    with Stream(platform.rest, one) as of_one, Stream(platform.rest, f"{one}&agent_id={b['id']}") as of_two:
        assert of_one.answer.headers["Content-Type"].startswith("text/event-stream")
        assert "no-cache" in of_one.answer.headers["Cache-Control"]
        assert of_one.answer.headers["X-Accel-Buffering"] == "no"
        assert of_one.next()["event"] == "connected" and of_one.retry_ms > 0
        for agent, name in ((c, "c1"), (b, "b1"), (a, "a1"), (c, "c2"), (b, "b2"), (a, "a2")):
            rename(platform, agent, name)
        assert names(of_one.take(2)) == ["a1", "a2"]
        assert names(of_two.take(4)) == ["b1", "a1", "b2", "a2"]


@pytest.mark.quick
def test_a_stream_begins_where_the_last_one_ended(platform: Platform) -> None:
    agent = platform.add_agent("true", "0")
    for number in range(1, 15):
        rename(platform, agent, str(number))
    path = f"{ALL}?agent_id={agent['id']}"
    with Stream(platform.rest, path) as stream:
        shown = stream.take(10)  # the newest ten, if nothing is said
        assert names(shown) == [str(number) for number in range(5, 15)]
    rename(platform, agent, "15")
    with Stream(platform.rest, path, last_id=shown[-3]["id"]) as stream:
        rename(platform, agent, "16")
        assert names(stream.take(4)) == ["13", "14", "15", "16"]
    platform.server.crash()
    platform.server.restart()
    with Stream(platform.rest, path, last_id=shown[-1]["id"]) as stream:
        assert names(stream.take(2)) == ["15", "16"]
    with Stream(platform.rest, path, last_id=1_000_000) as stream:  # this log never had it
        first, *rest = stream.take(18)
        assert first["event"] == "reset" and names(rest) == [str(number) for number in range(17)]
    refused = platform.ask("GET", "/events", headers={"Last-Event-ID": "yesterday"})
    assert_refusal(refused, 400, contains="Last-Event-ID")


@pytest.mark.quick
def test_streams_are_counted_and_limited(platform: Platform) -> None:
    streams = [Stream(platform.rest, ALL) for _ in range(3)]
    stats = platform.get("/sse/stats")
    assert stats["total_connections"] == 3 and sum(stats["streams"].values()) == 3
    assert_refusal(platform.ask("GET", "/events"), 429, "resource_exhausted", "3 streams")
    for stream in streams:
        stream.close()
    deadline = time.monotonic() + 30
    while platform.get("/sse/stats")["total_connections"]:
        assert time.monotonic() < deadline
    with Stream(platform.rest, ALL) as stream:
        assert stream.answer.status == 200


@pytest.mark.timeout(120)
def test_a_stream_begins_at_a_time(platform: Platform) -> None:
    """OA-79: replay from a moment, as a stream and by pages."""
    agent = platform.add_agent("true", "0")
    for number in range(1, 4):
        rename(platform, agent, str(number))
    path = f"agent_id={agent['id']}&type=agent_updated"
    told = platform.get(f"/events/history?{path}")["events"]
    moment = next(event["timestamp"] for event in told if event["name"] == "2")
    assert names(platform.get(f"/events/history?{path}&since={moment}")["events"]) == ["2", "3"]
    with Stream(platform.rest, f"{ALL}?{path}&since={moment}") as stream:
        rename(platform, agent, "4")
        assert names(stream.take(3)) == ["2", "3", "4"]
    later = platform.get(f"/events/history?{path}&since=2100-01-01T00:00:00Z")["events"]
    assert later == []
    for wrong in (f"/events/history?{path}&since=noon", f"/events?{path}&since=noon"):
        assert_refusal(platform.ask("GET", wrong), 400, contains="since")


def test_events_come_together_if_that_is_wished(platform: Platform) -> None:
    agent = platform.add_agent("true", "0")
    with Stream(platform.rest, f"{ALL}?agent_id={agent['id']}&replay=0&batch_ms=300") as stream:
        for number in range(1, 11):
            rename(platform, agent, str(number))
        assert names(stream.take(10)) == [str(number) for number in range(1, 11)]
    assert_refusal(platform.ask("GET", "/events?batch_ms=10001"), 422)


@pytest.mark.quick
def test_streams_are_compressed_if_both_sides_wish_it(make_server) -> None:
    """OA-79: each event can be read when it is sent, compressed or not."""
    platform = Platform(make_server(["--set", "sse_compression=true"]))
    agent = platform.add_agent("true", "0")
    path = f"{ALL}?replay=0&agent_id={agent['id']}"
    for refuses in ("", "identity", "gzip;q=0", "br"):
        with Stream(platform.rest, path, accept=refuses) as stream:
            assert stream.next()["event"] == "connected" and "Content-Encoding" not in stream.answer.headers
    with Stream(platform.rest, path, accept="br, gzip") as stream:
        assert isinstance(stream.lines, Inflated) and stream.answer.headers["Vary"] == "Accept-Encoding"
        for number in range(1, 101):
            rename(platform, agent, str(number))
            assert names(stream.take(1)) == [str(number)]  # nothing waits for the next
        assert stream.lines.received < stream.lines.inflated / 2
        platform.server.stop()
        while stream.next():
            pass
        assert stream.lines.whole
    platform.server.restart()


def test_streams_are_not_compressed_unless_the_server_wishes_it(platform: Platform) -> None:
    with Stream(platform.rest, ALL, accept="gzip") as stream:
        assert stream.next()["event"] == "connected" and "Content-Encoding" not in stream.answer.headers


def test_two_hundred_readers_hear_all_in_order(make_server) -> None:
    platform = Platform(make_server(["--set", "sse_max_per_user=0"]))
    agent = platform.add_agent("true", "0")
    streams = [Stream(platform.rest, f"{ALL}?replay=0&agent_id={agent['id']}") for _ in range(200)]
    try:
        assert platform.get("/sse/stats")["total_connections"] == 200
        for number in range(1, 21):
            rename(platform, agent, str(number))
        for stream in streams:
            assert names(stream.take(20)) == [str(number) for number in range(1, 21)]
    finally:
        for stream in streams:
            stream.close()


def through_falls(stream: Stream, count: int) -> list[dict]:
    """So many events of the log; it may fall behind again meanwhile."""
    found: list[dict] = []
    while len(found) < count:
        found += [event for event in stream.take(1) if event["event"] != "overflow"]
    return found


def test_a_slow_client_is_told_and_misses_nothing(make_server) -> None:
    """More is said than the kernel and the server hold for a client that does not read."""
    settings = ["--set", f"sse_queue={QUEUE}", "--set", "http_body_stall_timeout_ms=600000"]
    platform = Platform(make_server(settings))
    sandbox = platform.ask("POST", "/sandboxes", {}, 201).json()["id"]
    about = {"type": "command_output", "sandbox_id": sandbox}

    def say(command: str) -> None:
        platform.ask("POST", f"/sandboxes/{sandbox}/execute", {"command": command}, 200)

    say("echo the beginning")
    path = f"{ALL}?after=0&type=command_output&sandbox_id={sandbox}"
    with (Stream(platform.rest, path, receive_buffer=4096) as patient,
          Stream(platform.rest, path, receive_buffer=4096) as hasty):
        stayed, left = patient.take(1), hasty.take(1)
        for _ in range(LOUD):
            say("head -c 1000000 /dev/zero | tr '\\0' x | fold; echo")
        say("echo the end")
        wait_until(lambda: platform.output(sandbox_id=sandbox).endswith("the end\n"), "all is written")
        log = platform.events(**about)
        assert len(log) > 2 * QUEUE
        stayed += patient.until("overflow")
        assert stayed.pop()["missed"] > QUEUE
        stayed += through_falls(patient, len(log) - len(stayed))
        left += hasty.until("overflow")[:-1]
    with Stream(platform.rest, path, last_id=left[-1]["id"]) as again:
        left += through_falls(again, len(log) - len(left))
    told = [(event["id"], event["output"]) for event in log]
    for heard in (stayed, left):
        assert [(event["id"], event["output"]) for event in heard] == told


@pytest.mark.quick
def test_everybody_sees_their_own(platform: Platform) -> None:
    user = platform.ask("POST", "/users", {"name": "ada"}, 201).json()
    key = platform.ask("POST", "/keys", {"name": "k", "user_id": user["id"]}, 201).json()["key"]
    mine = platform.add_agent("true", "mine")
    squad = platform.ask("POST", "/squads", {"name": "mine"}, 201).json()
    with Stream(platform.rest, f"{ALL}?after=0", key=key) as stream:
        rename(platform, mine, "still mine")
        hers = {"name": "hers", "adapter": "command", "config": {"command": ["true"]}}
        platform.ask("POST", "/agents", hers, 201, key=key)
        assert names(stream.take(1)) == ["hers"]
    for path in (f"/sse/squad/{squad['id']}", "/sse/squad/none", "/sse/execution/none"):
        assert_refusal(platform.ask("GET", path, key=key), 404, "not_found")


@pytest.mark.quick
def test_a_silent_stream_has_a_heartbeat_and_ends_with_the_server(platform: Platform) -> None:
    with Stream(platform.rest, f"{ALL}?replay=0") as stream:
        assert [stream.next()["event"] for _ in range(3)] == ["connected", "heartbeat", "heartbeat"]
        platform.server.stop()  # with status 0
        while event := stream.next():
            assert event["event"] == "heartbeat"
    platform.server.restart()


@pytest.mark.quick
def test_every_type_has_a_schema(platform: Platform) -> None:
    types = platform.get("/events/types")
    wanted = {
        "sandbox_created": {"status"},
        "sandbox_status": {"status"},
        "sandbox_terminated": {"runtime_seconds"},
        "sandbox_error": {"operation", "error_message"},
        "git_operation": {"operation", "status"},
        "command_output": {"output", "stream"},
        "pr_created": {"pr_number", "pr_url"},
        "message": {"message"},
        "status_update": {"status"},
        "log": {"level", "message"},
        "progress": {"percent"},
        "error": {"message"},
        "completed": {"message"},
        "execution_started": {"status"},
        "execution_completed": {"status"},
        "connected": set(),
        "heartbeat": set(),
    }
    assert {name: set(types[name].get("required", [])) for name in wanted} == wanted


def test_the_life_of_a_sandbox_is_told(platform: Platform) -> None:
    with Stream(platform.rest, f"{ALL}?replay=0") as stream:
        sandbox = platform.ask("POST", "/sandboxes", {}, 201).json()["id"]
        for action in ("pause", "resume"):
            platform.ask("POST", f"/sandboxes/{sandbox}/{action}", {}, 200)
        platform.ask("DELETE", f"/sandboxes/{sandbox}", status=204)
        life = stream.until("sandbox_terminated")
        assert {event["sandbox_id"] for event in life} == {sandbox}
        assert life[0]["event"] == "sandbox_created" and life[-1]["runtime_seconds"] > 0
        states = [event["status"] for event in life if event["event"] == "sandbox_status"]
        assert [one for one in states if one in ("paused", "running")] == ["paused", "running"]
        platform.ask("POST", "/sandboxes", {"template": "no-such-template"}, 404)
        failed = stream.until("sandbox_error")[-1]
        assert failed["operation"] == "create" and "no-such-template" in failed["error_message"]


def test_the_squad_hears_what_the_execution_hears(make_server, forge: Forge) -> None:
    platform = Platform(make_server(env=settings_for(forge)))
    agent = platform.add_agent(BUSY.format(file="a.txt"))
    squad = platform.ask("POST", "/squads", {"name": "s", "members": [{"agent_id": agent["id"]}]}, 201).json()
    started = platform.start(agent, squad_id=squad["id"])
    of_execution = f"/api/v1/sse/execution/{started['execution_id']}?after=0"
    of_squad = f"/api/v1/sse/squad/{squad['id']}?after=0"
    with Stream(platform.rest, of_execution) as own, Stream(platform.rest, of_squad) as all_of:
        heard = own.until("execution_completed")
        told = all_of.until("execution_completed")
    kinds = {event["event"] for event in heard}
    assert {"sandbox_created", "git_operation", "pr_created", "sandbox_terminated"} <= kinds, kinds
    missing = [event for event in heard if event not in told]
    assert not missing
    platform.wait(started)
    (ended,) = (event for event in heard if event["event"] == "sandbox_terminated")
    assert ended["runtime_seconds"] > 0
    # One word at the beginning and one at the end of each.
    git = [(event["operation"], event["status"]) for event in heard if event["event"] == "git_operation"]
    for operation in ("clone", "push"):
        assert git.count((operation, "started")) == git.count((operation, "completed")) == 1, git


def test_old_output_is_archived_and_nobody_notices(make_server) -> None:
    server = make_server()
    here = Platform(server)
    sandbox = here.ask("POST", "/sandboxes", {}, 201).json()["id"]
    for command in ("seq 1 2000", "echo last"):
        here.ask("POST", f"/sandboxes/{sandbox}/execute", {"command": command}, 200)
    about = {"type": "command_output", "sandbox_id": sandbox}
    deadline = time.monotonic() + 60
    while not (said := here.output(sandbox_id=sandbox)).endswith("last\n"):  # it is written a moment later
        assert time.monotonic() < deadline, said[-100:]
        time.sleep(0.05)
    assert said.startswith("1\n2\n") and said.endswith("2000\nlast\n")
    database = server.data_dir / "db/caisson.db"
    archive_output(server, "2000")
    (file,) = (server.data_dir / "db/archive").iterdir()
    assert file.name.endswith(".ndjson.gz") and file.stat().st_mode & 0o077 == 0
    server.crash()  # it is on disk
    server.restart()
    assert here.output(sandbox_id=sandbox) == said
    events = here.events(**about)
    with Stream(here.rest, f"{ALL}?after=0&type=command_output&sandbox_id={sandbox}") as stream:
        assert "".join(event["output"] for event in stream.take(len(events))) == said
    # With its events the file goes, too.
    server.crash()
    with sqlite3.connect(database, timeout=30) as change:
        change.execute("UPDATE events SET at = at - ?", (40 * 24 * 3600 * 10**9,))
    change.close()
    server.restart()
    deadline = time.monotonic() + 60
    while here.events(**about):
        assert time.monotonic() < deadline, "old events stay"
        time.sleep(0.1)
    server.crash()
    server.restart()
    deadline = time.monotonic() + 60
    while file.exists():
        assert time.monotonic() < deadline, "the file of deleted events stays"
        time.sleep(0.1)
