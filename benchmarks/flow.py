"""The table of the workflow engine: steps that do nothing, on both databases."""

import json
import pathlib
import subprocess
import sys
import tempfile

from tables import p50_p99, title

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from support.postgres import Postgres  # noqa: E402

LOAD = ROOT / "build/bin/caisson-flow-load"
RATE = 100


def load(url, mode, **options):
    command = [str(LOAD), mode, "--url", url]
    for name, value in options.items():
        command += [f"--{name}", str(value)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        sys.exit(f"caisson-flow-load {mode} failed: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(name, new_url):
    """One line of the table; every measurement has a database of its own."""
    shallow = load(new_url(), "throughput", n=2000, steps=5, c=50)["steps_per_second"]
    deep = load(new_url(), "throughput", n=2000, steps=5, c=2000)["steps_per_second"]
    start = load(new_url(), "latency", n=1000, rate=RATE)["start_ms"]
    print(f"{name:12}{shallow:16.0f}{deep:18.0f} {p50_p99(start)}")


def flow_table(_):
    title("Runs of 5 steps that do nothing, one server: steps per second (2,000 runs), and ms from "
          f"starting a run to the first line of its first step, p50 and p99 ({RATE} runs per second)")
    print(f"{'':12}{'50 unfinished':>16}{'2,000 unfinished':>18}{'enqueue -> start':>18}")
    with tempfile.TemporaryDirectory() as work:
        paths = iter(range(100))
        measure("SQLite", lambda: f"sqlite://{work}/{next(paths)}.db")
    with Postgres() as postgres:
        # The tests do without what makes commits durable; here it counts.
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            postgres.query(f"ALTER SYSTEM SET {setting} = on")
        postgres.query("SELECT pg_reload_conf()")
        measure("PostgreSQL", lambda: postgres.url(postgres.create_database()))
    print("\nGoal: more than 1,000 steps per second and p50 below 5 ms on SQLite. One transaction per "
          "step;\nPostgreSQL waits for the disk at each, SQLite (WAL, synchronous=NORMAL) does not.\nPublished by others on their machines, not measured here: Hatchet ~40 ms to execute at "
          "100 runs/s\n(PostgreSQL, 8 vCPU), ~220 ms at 2,000/s; DBOS one write per step.")


TABLES = {"flow": flow_table}
