"""The table of sessions: what ten thousand of them cost asleep, and a thousand woken in a minute."""

import os
import sqlite3
import sys
import time
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tables import p50_p99, title

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from support.server import CaissonServer  # noqa: E402
from support.work import Platform  # noqa: E402

# Smaller, to try it out: BENCH_SESSIONS=20 ./bench sessions
WOKEN = int(os.environ.get("BENCH_SESSIONS", "1000"))
STORED = 10 * WOKEN  # those included
MINUTE_S = 60
COLUMNS = {"title": "a session", "repo_url": "", "base_branch": "", "branch": "", "agent_id": "", "model": "",
           "template_name": "", "sandbox_id": "", "status": "paused", "status_reason": "idle", "error": "",
           "options": "{}", "pull_request_url": "", "pull_request_number": 0, "running_ms": 0}


def resident_mb(server):
    """Of the server's own processes: HTTP and database, engine, launchers."""
    total = 0
    for pid in server.program_pids():
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                total += int(line.split()[1])
    return total / 1024


def put_to_sleep(platform):
    """Sessions with a sandbox of their own, paused with its memory."""

    def make(_):
        session = platform.ask("POST", "/sessions", {}, 201).json()["id"]
        for what in ("provision", "pause"):
            answer = platform.ask("POST", f"/sessions/{session}/sandbox/{what}", timeout=300)
            if answer.status not in (200, 201):
                sys.exit(f"a session could not be put to sleep: {answer}")
        return session

    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(make, range(WOKEN)))


def store_sessions(server):
    """The others: straight into the database of a server that does not run."""
    database = sqlite3.connect(Path(server.data_dir) / "db/caisson.db")
    (owner,) = database.execute("SELECT id FROM users WHERE role = 'admin'").fetchone()
    now = time.time_ns()
    names = ", ".join(["id", "owner_id", *COLUMNS, "created_at", "last_used_at"])
    marks = ", ".join("?" * (len(COLUMNS) + 4))
    with database:
        database.executemany(f"INSERT INTO sessions ({names}) VALUES ({marks})",
                             [(str(uuid.uuid4()), owner, *COLUMNS.values(), now, now) for _ in range(STORED - WOKEN)])
    database.close()


def wake_all(platform, ids):
    """Evenly over a minute. How long each took, and how many came back, were made anew, and failed."""
    took, answers = [], Counter()

    def wake(item):
        number, session = item
        time.sleep(max(0, begin + number * MINUTE_S / WOKEN - time.perf_counter()))
        sent = time.perf_counter()
        answer = platform.ask("POST", f"/sessions/{session}/sandbox/provision", timeout=300)
        took.append((time.perf_counter() - sent) * 1000)
        answers[{200: "resumed", 201: "made"}.get(answer.status, "failed")] += 1

    begin = time.perf_counter()
    with ThreadPoolExecutor(32) as pool:
        list(pool.map(wake, enumerate(ids)))
    return took, answers, time.perf_counter() - begin


def sessions_table(_):
    title(f"Sessions: {STORED:,} stored, {WOKEN:,} with saved memory woken over a minute (memory of the server)")
    # Nobody is put away while they are counted.
    settings = {"CAISSON_MAX_SANDBOXES": "2000", "CAISSON_MAX_SLOTS": "16000", "CAISSON_SESSION_IDLE_PAUSE_S": "0"}
    with CaissonServer(env=settings) as server:
        platform = Platform(server)
        empty = resident_mb(server)
        ids = put_to_sleep(platform)
        server.stop()
        store_sessions(server)
        server.start()
        platform.get("/sessions", limit=200)
        time.sleep(2)
        stored = resident_mb(server)
        took, answers, lasted = wake_all(platform, ids)
        awake = platform.get("/sessions", status="active", limit=1)["total"]
        woken = resident_mb(server)
        print(f"server without sessions       {empty:8.1f} MB")
        print(f"{STORED:,} stored                 {stored:8.1f} MB "
              f"({(stored - empty) * 1024 / STORED:.2f} KB each)")
        print(f"{WOKEN:,} woken in {lasted:.0f} s           {woken:8.1f} MB "
              f"({(woken - stored) * 1024 / WOKEN:.1f} KB each)")
        print(f"awake at the end              {awake:8,}: {answers['resumed']:,} resumed from memory, "
              f"{answers['made']:,} made anew, {answers['failed']:,} failed")
        print(f"waking (ms, p50 and p99)      {p50_p99(took)}")
    if answers["resumed"] != WOKEN or awake != WOKEN:
        sys.exit(f"of {WOKEN:,} sessions {answers['resumed']:,} were resumed and {awake:,} are awake")


TABLES = {"sessions": sessions_table}
