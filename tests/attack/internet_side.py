"""The other side of internet.py: a process in a network namespace of its own that owns every
address and writes down what arrives. Talks JSON lines with its parent."""

from __future__ import annotations

import ctypes
import json
import socket
import struct
import subprocess
import sys
import threading

log: list[str] = []
# Names and where they lead. What is not listed leads to the first public address.
NAMES = {
    "metadata.google.internal": "169.254.169.254",
    "rebind.test": "10.1.2.3",
    "allowed.test": "93.184.215.14",
    "other.test": "93.184.215.15",
}
DEFAULT = "93.184.215.14"


def run(command: str) -> None:
    subprocess.run(command.split(), check=True, timeout=60)


def plain(address: str) -> str:
    return address.removeprefix("::ffff:")


def serve_http(connection: socket.socket, peer: tuple) -> None:
    with connection:
        connection.settimeout(30)
        where = plain(connection.getsockname()[0])
        log.append(f"tcp {where}:{connection.getsockname()[1]} from {plain(peer[0])}")
        try:
            data = connection.recv(65536)
            host = [line for line in data.split(b"\r\n") if line.lower().startswith(b"host:")]
            log.append(f"http {where} {data[:40]!r} {host}")
            body = f"reached {where}".encode()
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            if b"/redirect" in data[:60]:
                head = (
                    "HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\n"
                    f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
                )
            connection.sendall(head.encode() + body)
        except OSError:
            pass


def listen(port: int) -> None:
    server = socket.create_server(
        ("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=512
    )
    while True:
        connection, peer = server.accept()
        threading.Thread(target=serve_http, args=(connection, peer), daemon=True).start()


def read_name(data: bytes) -> str:
    labels, at = [], 12
    while data[at]:
        labels.append(data[at + 1 : at + 1 + data[at]].decode("latin-1"))
        at += 1 + data[at]
    return ".".join(labels)


def answer_names() -> None:
    server = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    server.setsockopt(socket.IPPROTO_IPV6, 49, 1)  # IPV6_RECVPKTINFO: answer from what was asked
    server.setsockopt(socket.IPPROTO_IP, 8, 1)  # IP_PKTINFO
    server.bind(("::", 53))
    while True:
        data, extra, _, peer = server.recvmsg(4096, 512)
        try:
            name = read_name(data)
            question = data[12 : 12 + len(name) + 6]
            kind = struct.unpack(">H", question[-4:-2])[0]
            log.append(f"dns {name} from {plain(peer[0])}")
            address = NAMES.get(name.lower().rstrip("."), DEFAULT)
            answers = b""
            if kind == 1:
                answers = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 1, 4) + socket.inet_aton(address)
            head = data[:2] + struct.pack(">HHHHH", 0x8180, 1, 1 if answers else 0, 0, 0)
            server.sendmsg([head + question + answers], extra, 0, peer)
        except (OSError, IndexError, struct.error):
            log.append(f"udp port 53 from {plain(peer[0])}")


def note_packets(port: int) -> None:
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("0.0.0.0", port))
    while True:
        data, peer = server.recvfrom(4096)
        log.append(f"udp port {port} from {peer[0]}: {data[:60]!r}")


def note_icmp() -> None:
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    while True:
        data, peer = raw.recvfrom(4096)
        if data[20] == 8:
            log.append(
                f"icmp echo to {socket.inet_ntoa(data[16:20])} from {peer[0]}: {data[28:60]!r}"
            )


def come_up(message: dict) -> None:
    run("ip link set lo up")
    run("ip addr add 192.0.2.2/24 dev eth0")
    run("ip -6 addr add fd99::2/64 dev eth0 nodad")
    run("ip link set eth0 up")
    for address in message["up"]:
        run(f"ip addr add {address}/32 dev lo")
    for address in message["up_v6"]:
        run(f"ip -6 addr add {address}/128 dev lo nodad")
    run("ip route add default via 192.0.2.1")
    for port in (80, 443, 53, 8080):
        threading.Thread(target=listen, args=(port,), daemon=True).start()
    for work, arguments in (
        (answer_names, ()),
        (note_packets, (67,)),
        (note_packets, (9999,)),
        (note_icmp, ()),
    ):
        threading.Thread(target=work, args=arguments, daemon=True).start()


def main() -> None:
    if ctypes.CDLL(None).unshare(0x40000000) != 0:  # CLONE_NEWNET
        sys.exit("no network namespace")
    print(json.dumps("alone"), flush=True)
    for line in sys.stdin:
        message = json.loads(line)
        if "up" in message:
            come_up(message)
            print(json.dumps("up"), flush=True)
        else:
            seen, log[:] = list(log), []
            print(json.dumps(seen), flush=True)


main()
