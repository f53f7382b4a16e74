"""The tables of the work platform: live events, and from a task to a pull request."""

import json
import selectors
import socket
import sys
import time
from pathlib import Path

from tables import p50_p99, percentile, title

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from support.forge import Forge  # noqa: E402
from support.forge_plugin import FORGE_REPOSITORY, FORGE_TOKEN  # noqa: E402
from support.server import CaissonServer  # noqa: E402
from support.work import Platform, settings_for  # noqa: E402

STREAMS = 200
CHANGES = 50
TASKS = 10


def open_stream(server):
    stream = socket.create_connection(("127.0.0.1", server.port))
    stream.sendall(b"GET /api/v1/events?type=task_updated&replay=0 HTTP/1.1\r\nHost: localhost\r\n"
                   b"X-API-KEY: " + server.api_key.encode() + b"\r\n\r\n")
    received = b""
    while b"event: connected" not in received:
        received += stream.recv(4096)
    stream.setblocking(False)
    return stream


def collect(streams, sent_at, latencies, until):
    """Reads what has arrived; a change's title is the index of the moment it was sent."""
    selector = selectors.DefaultSelector()
    for stream in streams:
        selector.register(stream, selectors.EVENT_READ, bytearray())
    while len(latencies) < until:
        ready = selector.select(timeout=5)
        if not ready:
            sys.exit(f"{until - len(latencies)} events did not arrive")
        now = time.perf_counter()
        for key, _ in ready:
            key.data.extend(key.fileobj.recv(1 << 16))
            *lines, rest = bytes(key.data).split(b"\n")
            key.data[:] = rest
            for line in lines:
                if line.startswith(b"data: ") and b'"title"' in line:
                    latencies.append((now - sent_at[int(json.loads(line[6:])["title"])]) * 1000)
    selector.close()


def events_table(_):
    title(f"Live events (ms, p50 and p99): from sending a change to its event on {STREAMS} streams")
    with CaissonServer(env={"CAISSON_SSE_MAX_PER_USER": "0"}) as server:
        platform = Platform(server)
        task = platform.ask("POST", "/tasks", {"title": "0"}, 201).json()
        streams = [open_stream(server) for _ in range(STREAMS)]
        sent_at, latencies = {}, []
        for n in range(1, CHANGES + 1):
            sent_at[n] = time.perf_counter()
            platform.ask("PATCH", f"/tasks/{task['id']}", {"title": str(n)}, 200)
            collect(streams, sent_at, latencies, n * STREAMS)
        for stream in streams:
            stream.close()
    print(f"caisson               {p50_p99(latencies)}   ({len(latencies)} deliveries, none missing)")


def task_table(_):
    title(f"From a task to a pull request (ms) with an agent that only writes a file, {TASKS} in a row")
    with Forge() as forge:
        forge.add_token(FORGE_TOKEN)
        forge.add_repository(FORGE_REPOSITORY)
        with CaissonServer(env=settings_for(forge)) as server:
            platform = Platform(server)
            agent = platform.add_agent("echo done > work.txt")
            whole, steps = [], {}
            for _ in range(TASKS):
                begin = time.perf_counter()
                started = platform.start(agent)
                run = platform.wait(started)
                whole.append((time.perf_counter() - begin) * 1000)
                for step in run["steps"]:
                    steps.setdefault(step["name"], []).append(step["duration_ms"])
    print(f"all of it             {p50_p99(whole)}")
    for name, values in steps.items():
        print(f"  {name:20}{percentile(values, 0.5):9.0f}")


TABLES = {"events": events_table, "task": task_table}
