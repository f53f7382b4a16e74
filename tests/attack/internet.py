"""A network of our own: `host` (this process, the server, its sandboxes) and, behind a cable, the
`internet` with everything an attacker would like to reach. No packet leaves the machine.

    sandbox ── server's rules ── host 192.0.2.1 ── 192.0.2.2 internet: every address of ADDRESSES

The internet answers on TCP port 80 and UDP/TCP port 53 of each address and writes down who asked.
Without the server's rules a sandbox would reach all of it: the host does, which is checked first.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

CLONE_NEWNET = 0x40000000
PUBLIC = "93.184.215.14"
OTHER_PUBLIC = "93.184.215.15"
METADATA = ["169.254.169.254", "100.100.100.200", "169.254.170.2"]
PRIVATE = ["10.1.2.3", "172.20.0.5", "192.168.7.7", "100.64.0.9"]
ADDRESSES = [PUBLIC, OTHER_PUBLIC, *METADATA, *PRIVATE]
ADDRESSES_V6 = ["fd00:ec2::254", "2606:2800:21f::1"]
HOST = "192.0.2.1"
SCRIPT = Path(__file__).with_name("internet_side.py")

_libc = ctypes.CDLL(None, use_errno=True)


def _run(command: str) -> None:
    subprocess.run(command.split(), check=True, timeout=60)


class Internet:
    resolver = PUBLIC

    def __init__(self) -> None:
        self.outside = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        self.process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Internet:
        if _libc.unshare(CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "a network namespace for the attacks")
        try:
            self._connect()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _connect(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(SCRIPT)], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._read() == "alone"
        _run("ip link set lo up")
        _run(f"ip link add uplink0 type veth peer name eth0 netns {self.process.pid}")
        _run(f"ip addr add {HOST}/24 dev uplink0")
        _run("ip -6 addr add fd99::1/64 dev uplink0 nodad")
        _run("ip link set uplink0 up")
        _run("ip route add default via 192.0.2.2")
        _run("ip -6 route add default via fd99::2")
        assert self._ask({"up": ADDRESSES, "up_v6": ADDRESSES_V6}) == "up"

    def _read(self) -> object:
        line = self.process.stdout.readline()
        assert line, "the other side of the network ended"
        return json.loads(line)

    def _ask(self, message: dict) -> object:
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()
        return self._read()

    def seen(self) -> list[str]:
        """What arrived since the last call: "tcp 10.1.2.3:80 from 192.0.2.1" and the like."""
        return self._ask({"seen": True})

    def outside_command(self, command: list[str], **options) -> subprocess.CompletedProcess:
        """Runs a command in the machine's real network, e.g. to fetch a tool."""

        def leave() -> None:
            _libc.setns(self.outside, CLONE_NEWNET)

        return subprocess.run(command, preexec_fn=leave, **options)

    def __exit__(self, *_: object) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(10)
        _libc.setns(self.outside, CLONE_NEWNET)
        os.close(self.outside)
