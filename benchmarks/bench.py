#!/usr/bin/env python3
"""Prints the tables of SPECIFICATION.md: ours beside the peers, in one run on one machine.

    ./bench [TABLE ...]     tables: create pool churn exec transfer density pause fork warm paused flow
                            events task clone sessions api

Timings depend on the machine; the ratios between columns are what counts. Every table says how
many samples it is made of. Peers: crun, runc, bwrap, plain fork+exec, nginx.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

import clone
import flow
import peers
import platform_load
import saving
import sessions
import work
from api import Api
from tables import p50_p99, percentile, settled_kb, title

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from support.server import CaissonServer  # noqa: E402

LOAD = ROOT / "build/bin/caisson-load"


def load(server, mode, **options):
    command = [str(LOAD), mode, "--url", f"127.0.0.1:{server.port}", "--key", server.api_key]
    for name, value in options.items():
        command += [f"--{name}", str(value)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    Api.operations += options.get("n", 1)
    if done.returncode != 0:
        sys.exit(f"caisson-load {mode} failed: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def cpu_seconds(server):
    """CPU time that the server's own processes have used so far."""
    ticks = 0
    for pid in server.program_pids():
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def create_table(server):
    title("Create (ms, p50 and p99): ours is API call to envd ready, with every limit and the network")
    print(f"{'':34}{'1 at a time':>18}{'10 at a time':>18}{'50 at a time':>18}")
    counts = {1: 200, 10: 300, 50: 500}
    ours = {c: load(server, "create", n=n, c=c) for c, n in counts.items()}
    rows = {"caisson create": [ours[c]["create_ms"] for c in counts],
            "caisson create + first exec": [ours[c]["first_exec_ms"] for c in counts]}
    with tempfile.TemporaryDirectory() as work:
        for name, command in peers.commands(work).items():
            rows[name] = [peers.measure(command, n=max(40, n // 5), concurrency=c)
                          for c, n in counts.items()]
    for name, columns in rows.items():
        print(f"{name:34}" + "".join(f" {p50_p99(values)}" for values in columns))
    ratio = percentile(rows["caisson create"][0], 0.5) / percentile(rows["crun run"][0], 0.5)
    spread = percentile(rows["caisson create"][2], 0.99) / percentile(rows["caisson create"][2], 0.5)
    print(f"\ncaisson create p50 / crun run p50: {ratio:.2f} (goal <= 0.60)")
    print(f"p99 / p50 at 50 concurrent: {spread:.2f} (goal < 5)")


def pool_table(_):
    title("Create from the warm pool (ms, p50 and p99), 1 at a time, as long as it lasts")
    size = 100
    with CaissonServer(["--set", f"warm_pool=base={size}"]) as server:
        deadline = time.monotonic() + 60
        while f"caisson_pool_ready {size}" not in metrics_text(server):
            if time.monotonic() > deadline:
                sys.exit("the warm pool does not fill")
            time.sleep(0.1)
        values = load(server, "create", n=size, c=1)["create_ms"]
        misses = 'caisson_pool_takes_total{result="miss"} 0' not in metrics_text(server)
    crun = peers.measure_one("crun run", n=60)
    print(f"caisson create, pooled {p50_p99(values)}" + ("   (the pool ran dry)" if misses else ""))
    print(f"crun run               {p50_p99(crun)}")
    ratio = percentile(values, 0.5) / percentile(crun, 0.5)
    print(f"\npooled create p50 / crun run p50: {ratio:.2f} (goal <= 0.25)")


def metrics_text(server):
    with urllib.request.urlopen(f"{server.url}/metrics", timeout=10) as answer:
        return answer.read().decode()


def churn_table(server):
    title("Create + destroy per second (sustained)")
    for concurrency in (1, 4, 16):
        rate = load(server, "churn", n=1000, c=concurrency)["per_second"][0]
        print(f"{concurrency:3} at a time: {rate:7.1f} per second (goal 300)")


def exec_table(server):
    title("Command round trip through the SDK's protocol (ms), /bin/true in a live sandbox")
    values = load(server, "exec", n=1000)["exec_ms"]
    spawn = peers.measure(["/bin/true"], n=500, concurrency=1)
    print(f"caisson exec          {p50_p99(values)}   (goal p50 < 1.5)")
    print(f"plain fork+exec+wait  {p50_p99(spawn)}")
    before = cpu_seconds(server)
    n = 20000
    result = load(server, "proxy", n=n)
    used = cpu_seconds(server) - before
    print(f"proxied request (GET /health of envd): {result['request_us'][0]:.0f} us round trip, "
          f"{used / n * 1e6:.1f} us of server CPU")


def transfer_table(server):
    title("64 MB files (MB/s, median of 10): ours passes the gateway and envd")
    ours = load(server, "transfer", n=10, size=64 << 20)
    nginx = peers.nginx_download(lambda port: load_get(port), size=64 << 20)
    upload, download = (statistics.median(ours[k]) for k in ("upload_mbs", "download_mbs"))
    print(f"caisson upload    {upload:8.0f}")
    print(f"caisson download  {download:8.0f}")
    print(f"nginx download    {nginx:8.0f}")
    print(f"download / nginx: {download / nginx:.2f} (goal >= 0.80)")


def load_get(port):
    done = subprocess.run([str(LOAD), "get", "--url", f"127.0.0.1:{port}", "--path", "/file",
                           "--n", "10"], capture_output=True, text=True, check=True, timeout=120)
    return statistics.median(json.loads(done.stdout)["mbs"])


def density_table(server):
    title("Memory of an idle sandbox (difference of MemAvailable / n)")
    for n in (200, 1000):
        before = settled_kb()
        start = time.monotonic()
        holder = subprocess.Popen([str(LOAD), "hold", "--url", f"127.0.0.1:{server.port}", "--key",
                                   server.api_key, "--n", str(n), "--c", "8"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        held = json.loads(holder.stdout.readline())["held"]
        took = time.monotonic() - start
        each = (before - settled_kb()) / held
        holder.communicate("\n", timeout=600)
        print(f"{held:5} sandboxes: {each / 1024:6.2f} MB each (goal < 3), created in {took:.1f} s, "
              f"left behind afterwards: {(before - settled_kb()) / 1024:.0f} MB")


TABLES = {"create": create_table, "pool": pool_table, "churn": churn_table, "exec": exec_table,
          "transfer": transfer_table, "density": density_table, **saving.TABLES, **flow.TABLES,
          **work.TABLES, **clone.TABLES, **sessions.TABLES, **platform_load.TABLES}


def main():
    wanted = sys.argv[1:] or list(TABLES)
    unknown = [name for name in wanted if name not in TABLES]
    if unknown:
        sys.exit(f"no such table: {', '.join(unknown)}; there are: {', '.join(TABLES)}")
    print(f"# caisson benchmarks, {os.cpu_count()} CPUs, Linux {os.uname().release}")
    settings = {"CAISSON_MAX_SANDBOXES": "2000", "CAISSON_MAX_SLOTS": "16000"}
    with CaissonServer(env=settings) as server:
        for name in wanted:
            TABLES[name](server)
    print(f"\n{Api.operations} operations, {len(Api.failures)} failed (goal 0)")
    for failure in Api.failures[:20]:
        print(f"  {failure}")
    return 1 if Api.failures else 0


if __name__ == "__main__":
    sys.exit(main())
