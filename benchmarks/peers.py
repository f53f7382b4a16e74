"""The peers of the create table, doing the same no-op, and nginx for the transfer table."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

# crun refuses a hybrid cgroup tree whose v2 part owns a controller; in a mount namespace of its own
# that part is hidden. Every peer runs in such a namespace, so that all start from the same place.
HIDE_V2 = "umount -l /sys/fs/cgroup/unified 2>/dev/null; "


def rootfs():
    cache = pathlib.Path(os.environ.get("CAISSON_CACHE_DIR", "/var/cache/caisson")) / "templates"
    found = sorted(cache.glob("base-*/rootfs"), key=lambda p: p.stat().st_mtime)
    if not found:
        raise SystemExit("no base template; run ./run or tools/prepare-template base first")
    return found[-1]


def write_bundle(work, runtime):
    """An OCI bundle that runs /bin/true in the base template, as the runtime itself would set it up."""
    bundle = pathlib.Path(work) / runtime
    bundle.mkdir()
    subprocess.run([runtime, "spec"], cwd=bundle, check=True)
    config = json.loads((bundle / "config.json").read_text())
    config["root"] = {"path": str(rootfs()), "readonly": True}
    config["process"]["args"] = ["/bin/true"]
    config["process"]["terminal"] = False
    config["process"].pop("rlimits", None)  # root without CAP_SYS_RESOURCE cannot raise them
    (bundle / "config.json").write_text(json.dumps(config))
    return bundle


def commands(work):
    """Name -> command line; "{}" becomes a unique number."""
    found = {}
    for runtime in ("crun", "runc"):
        if shutil.which(runtime):
            bundle = write_bundle(work, runtime)
            found[f"{runtime} run"] = [runtime, "run", "--bundle", str(bundle), "bench{}"]
    if shutil.which("bwrap"):
        found["bwrap --unshare-all"] = ["bwrap", "--unshare-all", "--ro-bind", str(rootfs()), "/",
                                        "--proc", "/proc", "--dev", "/dev", "/bin/true"]
    found["fork + exec"] = ["/bin/true"]
    return found


_MEASURE = """
import concurrent.futures, json, subprocess, sys, time
command, n, concurrency = json.loads(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
def once(i):
    argv = [part.replace("{}", f"{i}-{time.monotonic_ns()}") for part in command]
    start = time.perf_counter()
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE)
    if done.returncode:
        sys.exit(f"{argv}: {done.stderr.decode()}")
    return (time.perf_counter() - start) * 1000
once("warm")
with concurrent.futures.ThreadPoolExecutor(concurrency) as pool:
    print(json.dumps(list(pool.map(once, range(n)))))
"""


def measure(command, n, concurrency):
    """Wall times in ms of n runs of a command, `concurrency` at a time."""
    script = HIDE_V2 + 'exec python3 -c "$0" "$@"'
    done = subprocess.run(["unshare", "-m", "--propagation", "private", "sh", "-c", script, _MEASURE,
                           json.dumps(command), str(n), str(concurrency)],
                          capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise SystemExit(f"peer {command[0]} failed: {done.stderr}")
    return json.loads(done.stdout)


def measure_one(name, n):
    """One peer of commands(), one at a time."""
    with tempfile.TemporaryDirectory() as work:
        return measure(commands(work)[name], n=n, concurrency=1)


def free_port():
    import socket
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def nginx_download(get, size):
    """Serves a file of `size` bytes with nginx and returns get(port)."""
    port = free_port()
    with tempfile.TemporaryDirectory() as work:
        os.chmod(work, 0o755)
        root = pathlib.Path(work)
        with open(root / "file", "wb") as file:
            file.write(b"x" * size)
        (root / "nginx.conf").write_text(
            f"daemon off; worker_processes 1; pid {work}/pid; error_log {work}/error;\n"
            "events {}\n"
            f"http {{ access_log off; sendfile on; server {{ listen 127.0.0.1:{port}; root {work}; }} }}\n")
        server = subprocess.Popen(["nginx", "-c", str(root / "nginx.conf"), "-p", work],
                                  stderr=subprocess.PIPE)
        try:
            wait_for_port(port, server)
            return get(port)
        finally:
            server.terminate()
            server.wait(10)


def wait_for_port(port, process):
    import socket
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise SystemExit(f"nginx ended: {process.stderr.read().decode()}")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise SystemExit("nginx did not start")
