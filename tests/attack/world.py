"""What the attackers are after, and how it is seen whether they got it."""

from __future__ import annotations

import http.server
import os
import secrets
import socket
import threading
import time
from hashlib import sha256
from pathlib import Path

from internet import Internet

from support import census
from support.envd import Envd
from support.rest import Rest
from support.server import CaissonServer, find_binary

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
SETTLE_S = 20


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

    def host_pids(self) -> list[int]:
        """Processes an attacker would like to touch: server, engine, the neighbour's."""
        mine = self.neighbour["sandboxID"]
        others = [
            pid
            for pid in census.sandbox_pids(self.server)
            if mine in Path(f"/proc/{pid}/cgroup").read_text()
        ]
        return self.server.program_pids() + others


def _digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


class Canaries:
    """The state of the host at one moment, to be compared with later."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.before = self._fixed()
        self.descriptors = self._descriptors()
        self.others = census.take(world.server).get("mounts", [])

    def _fixed(self) -> dict[str, str]:
        server = self.world.server
        envds = sorted((server.data_dir / "engine").glob("envd-*/envd"))
        state = {str(p): _digest(p) for p in [find_binary(), *envds, server.data_dir / "secret"]}
        state["canary"] = self.world.file.read_text()
        state["beside the canary"] = str(sorted(os.listdir(self.world.directory)))
        state["programs"] = str(server.program_pids())
        for path in HOST_SETTINGS:
            if os.path.exists(path):
                state[path] = Path(path).read_text(errors="replace")
        return state

    def _descriptors(self) -> int:
        return sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in self.world.server.program_pids())

    def check(self) -> None:
        world = self.world
        after = self._fixed()
        for name, value in self.before.items():
            assert after[name] == value, f"changed on the host: {name}"
        assert world.listener.hits == [], f"reached the host's listener: {world.listener.hits}"
        assert census.take(world.server).get("mounts", []) == self.others, "mounts on the host"
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
