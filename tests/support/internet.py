"""A small internet in network namespaces, for tests of what sandboxes reach.

As a library: `Internet`, inside which this thread (and the servers it starts) live in a network of
their own, with one neighbour. As a program: that neighbour, a web server and a nameserver.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import subprocess
import sys
import threading

HOST = "203.0.113.1"
GOOD, EVIL = "203.0.113.80", "203.0.113.81"
NAMESERVER = "10.1.2.3"  # private: sandboxes cannot ask it themselves
NAMES = {"good.example": GOOD, "evil.example": EVIL, "rebound.example": NAMESERVER}

CLONE_NEWNET = 0x40000000


class Internet:
    """A context manager: leaves this thread's network for another one, and comes back."""

    def __enter__(self) -> Internet:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        self._call("unshare", CLONE_NEWNET)
        self._neighbour = subprocess.Popen(
            ["unshare", "-n", sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            self._connect()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._neighbour.kill()
        self._neighbour.communicate()
        self._call("setns", self._home, CLONE_NEWNET)
        os.close(self._home)

    def _call(self, name: str, *arguments: int) -> None:
        if getattr(self._libc, name)(*arguments) != 0:
            raise OSError(ctypes.get_errno(), f"{name} failed")

    def _connect(self) -> None:
        assert self._neighbour.stdout is not None and self._neighbour.stdin is not None
        assert self._neighbour.stdout.readline() == b"here\n"
        there = ["nsenter", "-t", str(self._neighbour.pid), "-n"]
        for prefix, words in [
            ([], "link set lo up"),
            ([], f"link add up0 type veth peer name pub0 netns {self._neighbour.pid}"),
            ([], f"addr add {HOST}/24 dev up0"),
            ([], "link set up0 up"),
            (there, "link set lo up"),
            (there, "link set pub0 up"),
            (there, f"addr add {GOOD}/24 dev pub0"),
            (there, f"addr add {EVIL}/24 dev pub0"),
            (there, f"addr add {NAMESERVER}/32 dev lo"),
            ([], f"route add default via {GOOD}"),
        ]:
            subprocess.run([*prefix, "ip", *words.split()], check=True, timeout=30)
        self._neighbour.stdin.write(b"go\n")
        self._neighbour.stdin.flush()
        assert self._neighbour.stdout.readline() == b"serving\n"


def answer(query: bytes) -> bytes:
    """To a query for an address: what NAMES says, else that there is no such name."""
    at, labels = 12, []
    while query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode())
        at += 1 + query[at]
    question = query[12 : at + 5]
    kind = struct.unpack(">H", query[at + 1 : at + 3])[0]
    name = ".".join(labels).lower()
    address = NAMES.get(name)
    records = b""
    if address and kind == 1:
        records = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 1, 4) + socket.inet_aton(address)
    flags = 0x8180 if name in NAMES else 0x8183
    return query[:2] + struct.pack(">HHHHH", flags, 1, int(bool(records)), 0, 0) + question + records


def serve_pages(listener: socket.socket) -> None:
    page = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"
    while True:
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(5)
            try:
                connection.recv(4096)
                connection.sendall(page)
            except OSError:
                pass


def main() -> None:
    print("here", flush=True)
    sys.stdin.readline()
    names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    names.bind((NAMESERVER, 53))
    listener = socket.create_server(("0.0.0.0", 80))
    threading.Thread(target=serve_pages, args=(listener,), daemon=True).start()
    print("serving", flush=True)
    while True:
        query, client = names.recvfrom(4096)
        names.sendto(answer(query), client)


if __name__ == "__main__":
    main()
