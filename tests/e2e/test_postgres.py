"""The server on PostgreSQL: the same sandboxes, the same restarts, and a database that goes away."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator

import pytest

from support import census
from support.cli import caisson
from support.envd import Envd
from support.postgres import Postgres
from support.rest import Rest
from support.server import CaissonServer, ServerError, server_user
from support.streams import Stream
from support.work import Platform


def on(postgres: Postgres, database: str) -> dict[str, str]:
    """The environment of a server that uses this database, by TCP and with a password."""
    return {"CAISSON_DATABASE_URL": postgres.url(database)}


@pytest.mark.timeout(180)
@pytest.mark.parametrize("how", ["stop", "crash"])
def test_sandboxes_outlive_the_server(postgres: Postgres, make_server, how: str):
    database = postgres.create_database()
    server = make_server(env=on(postgres, database))
    rest = Rest(server)
    made = rest.create(timeout=900, metadata={"kept": "yes"})
    envd = Envd(server, made)
    assert envd.run("echo hello > kept; cat kept")[0] == b"hello\n"
    assert postgres.query("SELECT id, state FROM sandboxes", database) == [
        [made["sandboxID"], "running"]
    ]
    getattr(server, how)()
    assert census.sandbox_pids(server), "the sandbox died with the server"
    server.restart()
    assert [s["sandboxID"] for s in rest.list()] == [made["sandboxID"]]
    assert rest.detail(made)["metadata"] == {"kept": "yes"}
    assert Envd(server, made).run("cat kept")[0] == b"hello\n"
    assert rest.kill(made).status == 204
    census.wait_until_empty(server)
    assert postgres.query("SELECT state, env FROM sandboxes", database) == [["killed", "{}"]]
    assert not (server.data_dir / "db").exists()
    assert postgres.password not in server.log_since(0)


@pytest.mark.timeout(120)
def test_the_server_is_who_it_runs_as(postgres: Postgres, make_server):
    """Peer authentication: the socket tells PostgreSQL that it is the server's own user."""
    user = server_user()
    if not postgres.query(f"SELECT 1 FROM pg_roles WHERE rolname = '{user}'"):
        postgres.query(f"CREATE ROLE {user} LOGIN")
    database = postgres.create_database(owner=user)
    url = postgres.socket_url(database, user)
    server = make_server(["--database-url", url], {})
    rest = Rest(server)
    made = rest.create()
    assert Envd(server, made).run("id -u")[0]
    assert rest.kill(made).status == 204


@pytest.mark.timeout(120)
def test_two_servers_share_a_database(postgres: Postgres, make_server):
    env = on(postgres, postgres.create_database())
    first, second = Rest(make_server(env=env)), Rest(make_server(env=env))
    made = first.create()
    other = second.create()
    assert [s["sandboxID"] for s in first.list()] == [made["sandboxID"]]
    assert [s["sandboxID"] for s in second.list()] == [other["sandboxID"]]
    # A server that starts again corrects the rows of its own sandboxes, not those of others.
    second.server.stop()
    second.server.restart()
    assert Envd(first.server, made).run("echo here")[0] == b"here\n"
    assert first.kill(made).status == 204
    assert second.kill(other).status == 204


@pytest.mark.timeout(120)
def test_events_of_all_servers_reach_the_streams_of_each(postgres: Postgres, make_server):
    """OA-79: one log for all servers of a database, in one order."""
    env = on(postgres, postgres.create_database())
    servers = [Platform(make_server(env=env)), Platform(make_server(env=env))]
    agent = servers[0].add_agent("true", "0")
    path = f"/api/v1/events?after=0&type=agent_updated&agent_id={agent['id']}"
    expected = [str(number) for number in range(21)]
    with Stream(servers[0].rest, path) as one, Stream(servers[1].rest, path) as other:
        for number in expected[1:]:  # written by both in turn
            by = servers[int(number) % 2]
            by.ask("PATCH", f"/agents/{agent['id']}", {"name": number}, 200)
        seen = [stream.take(len(expected)) for stream in (one, other)]
    assert seen[0] == seen[1]
    assert [event["name"] for event in seen[0]] == expected
    ids = [event["id"] for event in seen[0]]
    assert ids == sorted(set(ids))
    # Who was at one server goes on at the other.
    with Stream(servers[1].rest, path, last_id=ids[10]) as stream:
        assert [event["id"] for event in stream.take(10)] == ids[11:]


def use(rest: Rest, made: dict, stop: threading.Event, statuses: list[int]) -> None:
    while not stop.is_set():
        answer = rest.post(f"/sandboxes/{made['sandboxID']}/timeout", {"timeout": 600})
        statuses.append(answer.status)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("how", ["stop", "crash"])
def test_the_database_restarts_under_load(own_postgres: Postgres, make_server, how: str):
    database = own_postgres.create_database()
    server = make_server(env=on(own_postgres, database))
    rest = Rest(server)
    boxes = [rest.create(timeout=600) for _ in range(3)]
    stop = threading.Event()
    statuses: list[int] = []
    users = [threading.Thread(target=use, args=(rest, box, stop, statuses)) for box in boxes]
    for user in users:
        user.start()
    try:
        for _ in range(3):
            seen = len(statuses)
            while len(statuses) < seen + 20:
                time.sleep(0.05)
            getattr(own_postgres, how)()
            time.sleep(0.5)
            # Those who wait for it hold up nobody who does not need it.
            assert rest.get("/health").status == 200
            assert Envd(server, boxes[0]).run("echo meanwhile")[0] == b"meanwhile\n"
            own_postgres.start()
    finally:
        stop.set()
        for user in users:
            user.join(60)
    # Calls wait for the database; only one that was just being finished may not know how it ended.
    assert statuses.count(204) >= len(statuses) - 3 * len(boxes), sorted(set(statuses))
    assert set(statuses) <= {204, 503}, set(statuses)
    for box in boxes:
        assert Envd(server, box).run("echo alive")[0] == b"alive\n"
        assert rest.kill(box).status == 204
    rows = own_postgres.query("SELECT DISTINCT state FROM sandboxes", database)
    assert rows == [["killed"]]


@pytest.mark.timeout(120)
def test_operators_see_and_change_the_schema(postgres: Postgres, make_server):
    database = postgres.create_database()
    env = on(postgres, database)
    server = make_server(env=env)

    def run(*args: str):
        return caisson(None, "database", *args, "--data-dir", str(server.data_dir), **env)

    steps = json.loads(run("status", "--json").stdout)
    assert [step["version"] for step in steps] == list(range(1, len(steps) + 1))
    assert all(step["appliedAt"] for step in steps)
    # Not under a server that runs.
    refused = run("rollback", "--to", "3")
    assert refused.returncode == 1 and b"is running" in refused.stderr
    server.stop()
    done = run("rollback", "--to", "3")
    assert done.returncode == 0, done.stderr
    assert b"paused sandboxes and snapshots" in done.stdout
    steps = json.loads(run("status", "--json").stdout)
    assert [step["version"] for step in steps if step["appliedAt"]] == [1, 2, 3]
    done = run("migrate", "--json")
    assert all(step["appliedAt"] for step in json.loads(done.stdout)), done.stderr

    postgres.query("INSERT INTO schema_version VALUES (99, 'from the future', 0)", database)
    with pytest.raises(ServerError, match="schema version 99"):
        server.restart()
    postgres.query("DELETE FROM schema_version WHERE version = 99", database)
    server.restart()


@pytest.mark.timeout(120)
def test_a_database_that_cannot_be_used_is_said(postgres: Postgres):
    server = CaissonServer(env={"CAISSON_DATABASE_URL": postgres.url("no_such_database")})
    try:
        with pytest.raises(ServerError, match="no_such_database.* does not exist") as failed:
            server.start()
        assert postgres.password not in str(failed.value)
    finally:
        server.env = on(postgres, postgres.create_database())
        server.close()


def await_waiting(server: CaissonServer) -> None:
    deadline = time.monotonic() + 60
    while not server.log_path.exists() or "waiting for the database" not in server.log_since(0):
        assert time.monotonic() < deadline, server.log_tail()
        time.sleep(0.1)


@pytest.fixture
def late(own_postgres: Postgres) -> Iterator[CaissonServer]:
    """A server, not started, whose PostgreSQL does not run."""
    server = CaissonServer(env=on(own_postgres, own_postgres.create_database()))
    own_postgres.stop()
    yield server
    if own_postgres.process is None:
        own_postgres.start()
    server.close()


@pytest.mark.timeout(180)
def test_a_database_that_comes_up_late_is_waited_for(own_postgres: Postgres, late: CaissonServer):
    starting = threading.Thread(target=late.start)
    starting.start()
    await_waiting(late)
    own_postgres.start()
    starting.join(90)
    assert Rest(late).list() == []
    assert own_postgres.password not in late.log_since(0)


@pytest.mark.timeout(120)
def test_a_database_that_does_not_come_up_is_said(late: CaissonServer):
    late.env["CAISSON_DATABASE_WAIT_S"] = "2"
    with pytest.raises(ServerError, match=r"did not come up within 2 s \(database_wait_s\)"):
        late.start()


@pytest.mark.timeout(120)
def test_a_server_that_waits_for_its_database_can_be_stopped(late: CaissonServer):
    late.env["CAISSON_DATABASE_WAIT_S"] = "600"
    starting = threading.Thread(target=lambda: pytest.raises(ServerError, late.start))
    starting.start()
    await_waiting(late)
    late.process.terminate()
    starting.join(30)
    assert not starting.is_alive()
    assert "stopping before the database was there" in late.log_since(0)
