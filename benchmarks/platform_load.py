"""The table of /api/v1 under load: reads at a steady rate, bursts, PostgreSQL."""

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from api import Api
from tables import percentile, title
from work import open_stream

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from support.postgres import Postgres  # noqa: E402
from support.server import CaissonServer  # noqa: E402

SECONDS = 5
WORKERS = 16
READS = ("/api/v1/tasks", "/api/v1/agents", "/api/v1/sandboxes", "/api/v1/events/history?limit=20")


class Clients(threading.local):
    """One connection for each thread."""

    def __init__(self, server):
        self.api = Api(server)


def at_rate(server, rate, request):
    """The ms that each of `rate` requests per second took from the moment it was due."""
    clients = Clients(server)
    begin = time.perf_counter()

    def one(number):
        due = begin + number / rate
        time.sleep(max(0.0, due - time.perf_counter()))
        request(clients.api, number)
        return (time.perf_counter() - due) * 1000

    with ThreadPoolExecutor(WORKERS) as pool:
        return list(pool.map(one, range(rate * SECONDS)))


def at_once(count, request):
    """The ms that each of `count` requests took which all begin together."""
    gate = threading.Barrier(count)

    def one(number):
        gate.wait()
        begin = time.perf_counter()
        request(number)
        return (time.perf_counter() - begin) * 1000

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def row(name, values, goal):
    print(f"{name:52}{percentile(values, 0.5):9.1f}{percentile(values, 0.95):9.1f}{max(values):9.1f}   {goal}",
          flush=True)


def read(api, number):
    api.call("GET", READS[number % len(READS)])


def read_or_write(api, number):
    if number % 5 == 0:
        api.call("POST", "/api/v1/tasks", {"title": f"task {number}"})
    else:
        read(api, number)


def bursts(server):
    made = []
    row("10 creates at once", at_once(10, lambda _: made.append(
        Api(server).call("POST", "/api/v1/sandboxes", {})[0]["id"])), "goal: all < 1000")
    for sandbox in made:
        Api(server).call("DELETE", f"/api/v1/sandboxes/{sandbox}")
    streams = []
    row("50 streams at once, until connected", at_once(50, lambda _: streams.append(open_stream(server))),
        "goal: all < 1000")
    row("100 calls at once, beside the streams", at_once(100, lambda n: read(Api(server), n)),
        "goal: all < 1000")
    for stream in streams:
        stream.close()


def api_table(_):
    title("The platform's API (ms)")
    print(f"{'':52}{'p50':>9}{'p95':>9}{'longest':>9}")
    with CaissonServer(env={"CAISSON_SSE_MAX_PER_USER": "0"}) as server:
        row("reads, 50 per second", at_rate(server, 50, read), "goal: p95 < 100")
        bursts(server)
    postgres = Postgres().start()
    try:
        settings = {"CAISSON_DATABASE_URL": postgres.url(), "CAISSON_DATABASE_POOL_MIN": "5",
                    "CAISSON_DATABASE_POOL_MAX": "20"}
        with CaissonServer(env=settings) as server:
            row("PostgreSQL, pool 5 to 20: 80 reads, 20 writes per s", at_rate(server, 100, read_or_write),
                "goal: none times out")
    finally:
        postgres.stop()


TABLES = {"api": api_table}
