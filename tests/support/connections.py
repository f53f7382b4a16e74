"""The kernel's table of connections through this host, by netlink; what `conntrack -L` shows."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

NETLINK_NETFILTER = 12
GET_CONNECTIONS = 1 << 8 | 1
REQUEST_DUMP = 0x301
ERROR, DONE = 2, 3
ORIGINAL, ADDRESSES, PROTOCOL = 1, 1, 2  # CTA_TUPLE_ORIG; CTA_TUPLE_IP, CTA_TUPLE_PROTO in it


@dataclass(frozen=True)
class Connection:
    source: str
    target: str
    protocol: int
    source_port: int
    target_port: int


def _attributes(data: bytes) -> dict[int, bytes]:
    found = {}
    while len(data) >= 4:
        size, kind = struct.unpack_from("=HH", data)
        found[kind & 0x3FFF] = data[4:size]
        data = data[(size + 3) & ~3 :]
    return found


def _connection(message: bytes) -> Connection:
    original = _attributes(_attributes(message[4:])[ORIGINAL])
    addresses, protocol = _attributes(original[ADDRESSES]), _attributes(original[PROTOCOL])
    ports = [struct.unpack(">H", protocol[n])[0] if n in protocol else 0 for n in (2, 3)]
    return Connection(socket.inet_ntoa(addresses[1]), socket.inet_ntoa(addresses[2]), protocol[1][0], *ports)


def _messages(netlink: socket.socket) -> Iterator[bytes]:
    while True:
        data = netlink.recv(1 << 20)
        while data:
            size, kind = struct.unpack_from("=IH", data)
            if kind == DONE:
                return
            assert kind != ERROR, struct.unpack_from("=i", data, 16)
            yield data[16:size]
            data = data[(size + 3) & ~3 :]


def connections(source: str = "") -> list[Connection]:
    """Of this network namespace, IPv4; only those that begin at this address, if it is given."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER) as netlink:
        netlink.settimeout(30)
        netlink.send(struct.pack("=IHHIIBBH", 20, GET_CONNECTIONS, REQUEST_DUMP, 1, 0, socket.AF_INET, 0, 0))
        found = [_connection(message) for message in _messages(netlink)]
    return [one for one in found if not source or one.source == source]
