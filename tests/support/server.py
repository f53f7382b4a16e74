"""Starts, stops, crashes and restarts a real `caisson serve` for tests.

As a library: `CaissonServer` (see `support/plugin.py` for the pytest fixtures).
As a program: `python3 tests/support/server.py [--serve-arg ARG]... -- CMD...` starts a server,
exports the variables the E2B SDKs read, runs CMD, stops the server and returns CMD's status.

Only the standard library is used, so that the node suites need no Python packages.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pwd
import random
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
TEMPLATE_CACHE = Path("/var/cache/caisson/templates")
READY_DEADLINE_S = 90
STOP_DEADLINE_S = 30
READY_LINE = re.compile(r"^caisson: ready on (https?)://(\S+):(\d+)\s*$")


class ServerError(Exception):
    """The server did not do what was asked of it; the message holds the end of its log."""


def find_binary() -> Path:
    """The program under test: $CAISSON_BIN, else build/bin/caisson of this checkout."""
    path = Path(os.environ.get("CAISSON_BIN") or REPOSITORY / "build/bin/caisson")
    if not path.exists():
        raise ServerError(f"{path} does not exist: build the project first")
    return path


def find_templates(scratch: Path) -> Path:
    """The directory of templates to serve from.

    `$CAISSON_TEMPLATE_DIR`, else `.caisson/templates` of the checkout (what `./run` prepares),
    else the newest base template in the machine's cache, linked under `scratch`.
    """
    for candidate in (os.environ.get("CAISSON_TEMPLATE_DIR"), REPOSITORY / ".caisson/templates"):
        if candidate and (Path(candidate) / "base").exists():
            return Path(candidate)
    cached = [p for p in TEMPLATE_CACHE.glob("base-*") if (p / "template.json").exists()]
    if not cached:
        raise ServerError(
            "no base template found: run ./run once, or point CAISSON_TEMPLATE_DIR at one"
        )
    newest = max(cached, key=lambda p: p.stat().st_mtime)
    templates = scratch / "templates"
    templates.mkdir(exist_ok=True)
    link = templates / "base"
    if not link.exists():
        link.symlink_to(newest)
    return templates


_reserved: dict[int, socket.socket] = {}


def free_port() -> int:
    """One that nobody has; not of those that the kernel gives to connections, which would take it meanwhile.

    It stays reserved for the caller, also while nobody listens on it (before the first start, between a stop and
    a start), until `release_port` or the end of this process: no other test process gets it. What reserves it is a
    name of a Unix socket, which belongs to the network namespace as the port does, and which no crash leaves behind.
    """
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        name = socket.socket(socket.AF_UNIX)
        with socket.socket() as s, contextlib.suppress(OSError):
            name.bind(f"\0caisson-test-port-{port}")
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind(("127.0.0.1", port))
            _reserved[port] = name
            return port
        name.close()


def release_port(port: int) -> None:
    if name := _reserved.pop(port, None):
        name.close()


def process_tree(root: int) -> list[int]:
    """Pids of `root` and its descendants, parents first."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text()
        except OSError:
            continue
        parent = int(stat.rpartition(")")[2].split()[1])
        children.setdefault(parent, []).append(int(entry.name))
    tree, queue = [], [root]
    while queue:
        pid = queue.pop(0)
        tree.append(pid)
        queue.extend(children.get(pid, []))
    return tree


def server_user() -> str:
    """Who the server process is, with the setting `user` as it comes."""
    try:
        return pwd.getpwnam("caisson").pw_name
    except KeyError:
        return "nobody"


def executable_of(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)")
    except OSError:
        return ""


def programs_of(root: int) -> list[int]:
    """`root` and its descendants that are programs of ours, not of sandboxes."""
    program = executable_of(root)
    ours = {program, str(Path(program).with_name("caisson-net"))} if program else set()
    return [pid for pid in process_tree(root) if pid == root or executable_of(pid) in ours]


class CaissonServer:
    """One server on one port with one data directory; may be stopped and started many times."""

    def __init__(self, args: list[str] | None = None, env: dict[str, str] | None = None) -> None:
        self.scratch = Path(tempfile.mkdtemp(prefix="caisson-test-"))
        self.scratch.chmod(0o755)  # the server process is not root and must reach its data
        self.data_dir = self.scratch / "data"
        self.log_path = self.scratch / "server.log"
        self.stdout_path = self.scratch / "stdout.log"
        self.port = free_port()
        self.scheme = "http"
        self.args = list(args or [])
        self.env = dict(env or {})
        self.process: subprocess.Popen[bytes] | None = None
        self._ready = threading.Event()

    # -- addresses -------------------------------------------------------------------------

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    @property
    def api_key(self) -> str:
        return (self.data_dir / "api-key").read_text().strip()

    @property
    def sdk_environment(self) -> dict[str, str]:
        """What an unmodified SDK needs to talk to this server."""
        return {
            "E2B_API_KEY": self.api_key,
            "E2B_API_URL": self.url,
            "E2B_SANDBOX_URL": self.url,
            "E2B_DOMAIN": f"caisson.localhost:{self.port}",
            "E2B_VALIDATE_API_KEY": "true",
        }

    def command(self) -> list[str]:
        """What start() runs."""
        listen = f"127.0.0.1:{self.port}"
        return [str(find_binary()), "serve", "--listen", listen, "--data-dir", str(self.data_dir), *self.args]

    # -- life ------------------------------------------------------------------------------

    def start(self) -> CaissonServer:
        """Starts the server and returns when it has printed its ready line."""
        assert self.process is None, "the server is already running"
        self._ready.clear()
        environment = {
            k: v for k, v in os.environ.items() if not k.startswith(("E2B_", "CAISSON_"))
        }
        environment["CAISSON_TEMPLATE_DIR"] = str(find_templates(self.scratch))
        environment["CAISSON_LOG_FORMAT"] = "json"
        environment["CAISSON_ALERT_CHECK_S"] = "0"  # that a test is slow or does much is no news to its page
        environment.update(self.env)
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                self.command(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                start_new_session=True,
            )
        threading.Thread(target=self._read_stdout, args=(self.process,), daemon=True).start()
        deadline = time.monotonic() + READY_DEADLINE_S
        while not self._ready.wait(0.05):
            if self.process.poll() is not None:
                status = self.process.returncode
                self.process = None
                raise ServerError(f"the server ended with status {status}\n{self.log_tail()}")
            if time.monotonic() > deadline:
                self.crash()
                raise ServerError(f"not ready after {READY_DEADLINE_S} s\n{self.log_tail()}")
        return self

    def _read_stdout(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        with open(self.stdout_path, "ab", buffering=0) as copy:
            for line in process.stdout:
                copy.write(line)
                match = READY_LINE.match(line.decode(errors="replace"))
                if match and process is self.process:
                    self.scheme = match.group(1)
                    self._ready.set()

    def stop(self) -> None:
        """Ends the server gracefully. Sandboxes stay, as they do for a user."""
        if self.process is None:
            return
        process, self.process = self.process, None
        process.send_signal(signal.SIGTERM)
        try:
            status = process.wait(STOP_DEADLINE_S)
        except subprocess.TimeoutExpired:
            self._kill_programs(process.pid)
            process.wait(30)
            raise ServerError(
                f"the server did not stop within {STOP_DEADLINE_S} s\n{self.log_tail()}"
            ) from None
        if status != 0:
            raise ServerError(f"the server stopped with status {status}\n{self.log_tail()}")

    def crash(self) -> None:
        """SIGKILL to the server process and the engine process, as a power cut would."""
        if self.process is None:
            return
        process, self.process = self.process, None
        self._kill_programs(process.pid)
        process.wait(30)

    def restart(self) -> CaissonServer:
        """Starts again on the same data directory and port, after `stop` or `crash`."""
        return self.start()

    @staticmethod
    def _kill_programs(root: int) -> None:
        """Kills `root` and its descendants that are programs of ours (not the sandboxes)."""
        pids = programs_of(root)
        programs = {executable_of(pid) for pid in pids} - {""}
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        deadline = time.monotonic() + 30
        while any(executable_of(pid) in programs for pid in pids[1:]):
            if time.monotonic() > deadline:
                raise ServerError(f"processes {pids} survived SIGKILL")
            time.sleep(0.02)

    def program_pids(self) -> list[int]:
        """Pids of the server process, the engine process and those of the engine, in this order."""
        assert self.process is not None
        return programs_of(self.process.pid)

    def close(self) -> None:
        """Kills every sandbox, stops the server and removes its files."""
        try:
            if self.process is None and self.data_dir.exists():
                self.start()
            self.kill_all_sandboxes()
            self.stop()
            if self._kill_left_sandboxes():
                # The engine tidies up after them. Work that goes on must not make new ones.
                self.env["CAISSON_ENGINE_FAIL_AT"] = "slot"
                self.start()
                self.stop()
        finally:
            self.crash()
            self._kill_left_sandboxes()  # nobody finds them when their records are gone
            if kept := os.environ.get("KEEP_SERVER_LOGS"):
                shutil.copy(self.log_path, Path(kept) / f"{self.scratch.name}.server.log")
            shutil.rmtree(self.scratch, ignore_errors=True)
            release_port(self.port)

    def __enter__(self) -> CaissonServer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- small conveniences ------------------------------------------------------------------

    def request(self, method: str, path: str, body: object = None) -> tuple[int, object]:
        """One authenticated control-plane call; returns (status, decoded JSON or None)."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method)
        request.add_header("X-API-KEY", self.api_key)
        if data is not None:
            request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=60, context=self._trust()) as response:
                status, text = response.status, response.read()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read()
        return status, (json.loads(text) if text else None)

    def _trust(self) -> ssl.SSLContext | None:
        if self.scheme == "http":
            return None
        return ssl.create_default_context(cafile=str(self.data_dir / "tls/ca.pem"))

    def kill_all_sandboxes(self) -> None:
        for _ in range(20):
            _, listed = self.request("GET", "/v2/sandboxes?limit=100")
            if not isinstance(listed, list) or not listed:
                return
            for sandbox in listed:
                self.request("DELETE", f"/sandboxes/{sandbox['sandboxID']}")
        raise ServerError("sandboxes keep appearing while they are being killed")

    def _kill_left_sandboxes(self) -> int:
        """Those of other users, and those that work in progress made while the others were killed."""
        killed = 0
        with contextlib.suppress(FileNotFoundError):  # the engine has just removed the last of them
            for record in list((self.data_dir / "engine/sandboxes").iterdir()):
                if record.suffix == ".json":
                    killed += 1
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(json.loads(record.read_text())["pid"], signal.SIGKILL)
        return killed

    def log_size(self) -> int:
        return self.log_path.stat().st_size if self.log_path.exists() else 0

    def log_since(self, offset: int) -> str:
        if not self.log_path.exists():
            return ""
        with open(self.log_path, "rb") as log:
            log.seek(offset)
            return log.read().decode(errors="replace")

    def log_tail(self, lines: int = 60) -> str:
        text = self.log_since(max(0, self.log_size() - 65536))
        return "--- end of the server's log ---\n" + "\n".join(text.splitlines()[-lines:])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--serve-arg", action="append", default=[], help="passed to caisson serve")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="-- CMD...")
    options = parser.parse_args()
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        parser.error("say what to run: -- CMD...")
    server = CaissonServer(options.serve_arg)
    with server:
        environment = {**os.environ, **server.sdk_environment}
        status = subprocess.run(command, env=environment, check=False).returncode
        if status != 0:
            print(server.log_tail(), file=sys.stderr)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main())
