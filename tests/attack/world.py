"""What the attackers are after, and how it is seen whether they got it."""

from __future__ import annotations

import contextlib
import http.server
import os
import secrets
import socket
import tempfile
import threading
import time
from hashlib import sha256
from pathlib import Path

from internet import Internet

from support import census
from support.envd import Envd
from support.processes import envd_pid
from support.rest import Rest
from support.server import CaissonServer, executable_of, find_binary, process_tree
from support.waiting import wait_until_gone

# Of the whole machine. No other test changes them, so they can be compared.
HOST_SETTINGS = [
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/domainname",
    "/proc/sys/kernel/randomize_va_space",
    "/proc/sys/kernel/tainted",
    "/proc/sys/kernel/sysrq",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/vm/panic_on_oom",
    "/proc/sys/fs/suid_dumpable",
    "/proc/sys/kernel/yama/ptrace_scope",
    "/proc/swaps",
    "/proc/modules",
]
SETTLE_S = 30


class _Listener(http.server.ThreadingHTTPServer):
    """Answers on the host's loopback, and on its address, and remembers who asked."""

    daemon_threads = True

    def __init__(self, secret: str) -> None:
        super().__init__(("0.0.0.0", 0), _Handler)
        self.secret, self.hits = secret, []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.hits.append(f"{self.client_address[0]} {self.path}")
        body = self.server.secret.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class World:
    def __init__(self, server: CaissonServer, internet: Internet, directory: Path) -> None:
        self.server, self.internet, self.directory = server, internet, directory
        self.secret = f"host-{secrets.token_hex(16)}"
        self.neighbour_secret = f"neighbour-{secrets.token_hex(16)}"

    def __enter__(self) -> World:
        self.file = self.directory / "canary"
        self.file.write_text(self.secret)
        self.file.chmod(0o666)  # the walls protect it, not its mode
        self.listener = _Listener(self.secret)
        self.abstract_name = f"\0caisson-canary-{os.getpid()}"
        self.abstract = socket.socket(socket.AF_UNIX)
        self.abstract.bind(self.abstract_name)
        self.abstract.listen()
        self.neighbour = Rest(self.server).create(
            timeout=1800, envVars={"NEIGHBOUR_SECRET": self.neighbour_secret}
        )
        self.neighbour_envd = Envd(self.server, self.neighbour)
        self.neighbour_envd.run(f"echo {self.neighbour_secret} > /home/user/secret")
        # Holds the secret in its memory, under a name of the neighbour's.
        self.neighbour_envd.start(f"exec -a {self.neighbour_secret} sleep 3000").next()
        wait_until_gone(lambda: not self.holders(), "the shell that becomes the holder of the secret")
        return self

    def __exit__(self, *_: object) -> None:
        self.listener.shutdown()
        self.listener.server_close()
        self.abstract.close()

    @property
    def secrets(self) -> list[str]:
        """What no attacker may ever see."""
        secret = (self.server.data_dir / "secret").read_bytes().strip()
        return [
            self.secret,
            self.neighbour_secret,
            self.server.api_key,
            self.neighbour["envdAccessToken"],
            secret.decode("latin-1"),
        ]

    def programs(self, launchers: bool = False) -> set[int]:
        """The server's own processes that live as long as it does; or else the launchers, helpers of the engine, of
        which there are more while there is more to do."""
        found = set()
        for pid in self.server.program_pids():
            with contextlib.suppress(OSError):
                title = Path(f"/proc/{pid}/cmdline").read_bytes()  # empty of one that is just ending
                if title and title.startswith(b"caisson: launcher") == launchers:
                    found.add(pid)
        return found

    def neighbour_answers(self) -> None:
        out, _, end = self.neighbour_envd.run("echo well")
        assert out == b"well\n" and end.get("exited"), end

    def holders(self) -> list[int]:
        """The process of the neighbour that holds its secret."""
        found = []
        for pid in census.processes_by_sandbox(self.server)[self.neighbour["sandboxID"]]:
            with contextlib.suppress(OSError):  # others of the neighbour end meanwhile
                if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(self.neighbour_secret.encode()):
                    found.append(pid)
        return found

    def watched_pids(self) -> list[int]:
        """Processes that live as long as the server does: its own, and two of the neighbour."""
        holders = self.holders()
        assert len(holders) == 1, holders
        return [*self.programs(), envd_pid(self.neighbour["sandboxID"]), *holders]

    def strangers(self) -> list[str]:
        """Processes on the host that come from the server and are neither its own nor in the cgroup
        of a sandbox: where one would be that got out."""
        programs, tag = set(self.server.program_pids()), census.tag_of(self.server)
        found = []
        for pid in process_tree(self.server.process.pid):
            try:
                inside = f"/caisson-{tag}/" in Path(f"/proc/{pid}/cgroup").read_text()
                name = Path(f"/proc/{pid}/comm").read_text().strip()
            except OSError:
                continue  # it has just ended
            if not inside and pid not in programs and executable_of(pid):
                found.append(f"{pid} {name}")
        return found

    def odd_cgroups(self) -> list[str]:
        """Cgroups below the server's that are not the one of a sandbox that lives."""
        records = self.server.data_dir / "engine/sandboxes"
        alive = {path.stem for path in records.glob("*.json")}
        mark = f"/caisson-{census.tag_of(self.server)}/"
        names = census.take(self.server).get("cgroups", [])
        return [name for name in names if name.partition(mark)[2] not in alive]

    def host_pids(self) -> list[int]:
        """Processes an attacker would like to touch: server, engine, the neighbour's."""
        others = census.processes_by_sandbox(self.server)[self.neighbour["sandboxID"]]
        return self.server.program_pids() + others


def _host_mounts() -> list[str]:
    """All of the host's, but for those of other tests that run meanwhile."""
    others = f" {tempfile.gettempdir()}/caisson-test-"
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return sorted(line for line in lines if others not in line)


def _digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


class Canaries:
    """The state of the host at one moment, to be compared with later."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.before = self._fixed()
        self.programs = world.programs()
        self.descriptors = self._descriptors()
        self.mounts = _host_mounts()
        self.cgroups = self._cgroups(world.watched_pids())

    def _fixed(self) -> dict[str, str]:
        server = self.world.server
        envds = sorted((server.data_dir / "engine").glob("envd-*/envd"))
        state = {str(p): _digest(p) for p in [find_binary(), *envds, server.data_dir / "secret"]}
        state["canary"] = self.world.file.read_text()
        state["beside the canary"] = str(sorted(os.listdir(self.world.directory)))
        for path in HOST_SETTINGS:
            if os.path.exists(path):
                state[path] = Path(path).read_text(errors="replace")
        return state

    @staticmethod
    def _cgroups(pids: list[int]) -> dict[int, str]:
        return {pid: Path(f"/proc/{pid}/cgroup").read_text() for pid in pids}

    def _descriptors(self) -> int:
        return sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in self.world.programs())

    def check(self) -> None:
        world = self.world
        after = self._fixed()
        for name, value in self.before.items():
            assert after[name] == value, f"changed on the host: {name}"
        assert world.listener.hits == [], f"reached the host's listener: {world.listener.hits}"
        assert self._cgroups(list(self.cgroups)) == self.cgroups, "moved to other cgroups"
        for pid in world.programs(launchers=True):
            with contextlib.suppress(OSError):  # one that was not needed any more
                assert Path(f"/proc/{pid}/cgroup").read_text() in self.cgroups.values(), "moved to other cgroups"
        # Sandboxes and helpers of the engine end a moment later than their tests.
        wait_until_gone(lambda: world.programs() ^ self.programs, "changed processes of the server")
        wait_until_gone(lambda: set(_host_mounts()) ^ set(self.mounts), "mounts that changed on the host")
        wait_until_gone(world.odd_cgroups, "cgroups that belong to no sandbox")
        wait_until_gone(world.strangers, "processes on the host")
        # The neighbour lives, has its secret, and its processes are its own.
        out, _, _ = world.neighbour_envd.run("cat /home/user/secret; ls /home/user | wc -l")
        assert out.decode() == f"{world.neighbour_secret}\n1\n", out
        assert Rest(world.server).get("/v2/sandboxes").status == 200
        self._wait_for_descriptors()

    def _wait_for_descriptors(self) -> None:
        """Connections end a moment later than their tests. A leak grows with every attempt."""
        slack, end = 64, time.monotonic() + SETTLE_S
        while (now := self._descriptors()) > self.descriptors + slack:
            assert time.monotonic() < end, f"the server holds {now - self.descriptors} more files"
            time.sleep(0.2)
