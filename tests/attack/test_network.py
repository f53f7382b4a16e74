"""Rows 30 to 35: the network. See internet.py for the world the sandbox is in."""

from __future__ import annotations

import json
import socket
import subprocess
import time

import pytest
from guest import Guest
from internet import ADDRESSES_V6, HOST, METADATA, OTHER_PUBLIC, PRIVATE, PUBLIC, Internet
from probes import probe
from world import World

from support.rest import Rest
from support.server import CaissonServer

# Tries to connect to each [address, port] and to read; prints what came back.
CONNECT = """
import socket
results = {}
for address, port in args[0]:
    try:
        s = socket.create_connection((address, port), timeout=args[1] if len(args) > 1 else 3)
        s.sendall(b"GET /x HTTP/1.0\\r\\nHost: x\\r\\n\\r\\n")
        results[f"{address} {port}"] = "OK " + s.recv(4096).decode("latin-1")[-60:]
    except OSError as error:
        results[f"{address} {port}"] = type(error).__name__
print(json.dumps(results))
"""


def reached(results: dict[str, str]) -> dict[str, str]:
    return {where: how for where, how in results.items() if how.startswith("OK")}


def host_reaches(address: str) -> bool:
    try:
        with socket.create_connection((address, 80), timeout=30) as connection:
            connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
            return b"reached" in connection.recv(4096)
    except OSError:
        return False


@pytest.fixture
def quiet(internet: Internet) -> Internet:
    """What tests before have sent has arrived: names are asked for again after who wanted them has gone."""
    end = time.monotonic() + 30
    internet.seen()
    time.sleep(0.5)
    while late := internet.seen():
        assert time.monotonic() < end, f"packets do not end: {late}"
        time.sleep(0.5)
    return internet


def asks(seen: list[str], *kinds: str) -> list[str]:
    """What arrived besides questions to the resolver."""
    return [entry for entry in seen if entry.startswith(kinds)]


@probe(30)
def test_metadata_services(guest: Guest, quiet: Internet):
    assert all(host_reaches(address) for address in METADATA), "the test's own network is broken"
    quiet.seen()
    where = [
        [a, p] for a in [*METADATA, "metadata.google.internal", "fd00:ec2::254"] for p in (80, 443)
    ]
    assert reached(guest.python(CONNECT, where, timeout=60)) == {}
    assert asks(quiet.seen(), "tcp", "http", "icmp") == []


@probe(30)
def test_the_public_internet_is_there(guest: Guest, quiet: Internet):
    """Without this the other tests of this file would prove nothing."""
    results = reached(guest.python(CONNECT, [[PUBLIC, 80], ["allowed.test", 80]], 30, timeout=90))
    assert len(results) == 2, results
    assert asks(quiet.seen(), f"tcp {PUBLIC}:80 from {HOST}")


@probe(31)
def test_the_host_and_its_network(
    guest: Guest, world: World, quiet: Internet, server: CaissonServer
):
    assert all(host_reaches(address) for address in PRIVATE)
    quiet.seen()
    gateway = guest.run("ip -4 -o addr show eth0").out.split()
    peer = gateway[gateway.index("peer") + 1].split("/")[0] if "peer" in gateway else "198.18.0.1"
    listener = world.listener.server_address[1]
    where = [
        [address, port]
        for address in (
            "127.0.0.1",
            "0.0.0.0",
            HOST,
            peer,
            "198.18.0.1",
            "192.0.2.255",
            "::1",
            "localhost",
        )
        for port in (listener, server.port, 2375, 22)
    ]
    where += [[address, 80] for address in [*PRIVATE, "224.0.0.1", "255.255.255.255"]]
    assert reached(guest.python(CONNECT, where, 2, timeout=100)) == {}
    assert asks(quiet.seen(), "tcp", "http") == []


@probe(31)
def test_other_sandboxes(guest: Guest, world: World):
    world.neighbour_envd.start("exec python3 -m http.server 8000").next()
    address = world.neighbour_envd.run("hostname -I")[0].decode().split()[0]
    own = guest.run("hostname -I").out.split()[0]
    assert address != own
    where = [[address, port] for port in (8000, 49983, 22)]
    assert reached(guest.python(CONNECT, where)) == {}
    if guest.account == "root":
        assert guest.run(f"ping -c 1 -W 1 {address}").code != 0
    world.neighbour_envd.run("pkill -f http.server")


@probe(32)
def test_names_and_notations_that_lead_inside(guest: Guest, world: World, quiet: Internet):
    port = world.listener.server_address[1]
    where = [
        ["rebind.test", 80],
        ["metadata.google.internal", 80],
        ["::ffff:169.254.169.254", 80],
        ["::ffff:10.1.2.3", 80],
        [f"::ffff:{HOST}", port],
        ["0x0a010203", 80],
        ["167837955", 80],
        ["012.1.2.3", 80],
        ["10.66051", 80],
        [f"::{HOST}", port],
        ["64:ff9b::a01:203", 80],
        ["2002:a01:203::1", 80],
    ]
    where += [[address, 80] for address in ADDRESSES_V6]
    assert reached(guest.python(CONNECT, where, 2, timeout=90)) == {}
    assert asks(quiet.seen(), "tcp", "http") == []


TUNNEL = """
import socket
for address in args[0]:
    for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
        try:
            s = socket.socket(socket.AF_INET, kind)
            s.settimeout(1)
            s.connect((address, 53))
            s.send(b"\\0\\1\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0\\6tunnel\\4test\\0\\0\\1\\0\\1")
            s.recv(100)
        except OSError:
            pass
    try:
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)
        s.sendto(b"\\10\\0\\0\\0\\0\\0\\0\\1" + b"tunnel", (address, 0))
    except OSError:
        pass
try:
    socket.gethostbyname("secret.tunnel.test")
except OSError:
    pass
print(json.dumps("done"))
"""


@probe(32)
def test_tunnels_of_a_sandbox_without_internet(server, rest: Rest, quiet: Internet, calls: bytes):
    with rest.sandbox(allow_internet_access=False) as made:
        for account in ("root", "user"):
            guest = Guest(server, made, account, calls)
            # The server's own resolver at 198.18.0.1 answers; nothing it is asked gets further.
            where = [[PUBLIC, 80], [OTHER_PUBLIC, 53], *([a, 80] for a in PRIVATE)]
            assert reached(guest.python(CONNECT, where, 1, timeout=40)) == {}
            guest.python(TUNNEL, [PUBLIC, OTHER_PUBLIC, "198.18.0.1"], timeout=60)
    assert quiet.seen() == []


@probe(32)
def test_tunnels_to_private_addresses(guest: Guest, quiet: Internet):
    guest.python(TUNNEL, [*PRIVATE, *METADATA], timeout=60)
    seen = [entry for entry in quiet.seen() if not entry.startswith("dns secret.tunnel.test")]
    assert seen == [], seen


@probe(33)
def test_allow_lists_cannot_be_talked_around(server, rest: Rest, quiet: Internet, calls: bytes):
    rules = {"allowOut": ["allowed.test"], "denyOut": ["0.0.0.0/0"]}
    made = rest.create(timeout=120, network=rules)
    try:
        for account in ("root", "user"):
            guest = Guest(server, made, account, calls)
            tricks = [
                f"curl -sm 3 http://{OTHER_PUBLIC}/ -H 'Host: allowed.test'",
                f"curl -sm 3 --resolve allowed.test:80:{OTHER_PUBLIC} http://allowed.test/",
                f"curl -sm 3 --connect-to allowed.test:80:{OTHER_PUBLIC}:80 http://allowed.test/",
                "curl -sLm 3 http://allowed.test/redirect",
                "curl -sm 3 http://other.test/ -H 'Host: allowed.test'",
                "curl -sm 3 http://allowed.test.other.test/",
                "curl -sm 3 http://xn--allowed-test.test/",
                f"curl -sm 3 -x http://allowed.test:8080 http://{OTHER_PUBLIC}/ -p",
                f"curl -sm 3 http://{METADATA[0]}/ -H 'Host: allowed.test'",
                f"curl -ksm 3 --resolve allowed.test:443:{OTHER_PUBLIC} https://allowed.test/",
                f"printf 'x' | nc -u -w 1 {OTHER_PUBLIC} 53",
            ]
            for trick in tricks:
                guest.run(trick)
            # Other spellings of the allowed name are that name.
            guest.run("curl -sm 3 http://ALLOWED.test./")
    finally:
        rest.kill(made)
    seen = quiet.seen()
    wrong = [e for e in seen if e.startswith(("tcp", "http", "udp")) and f" {PUBLIC}" not in e]
    assert wrong == [], wrong


@probe(34)
def test_sockets_of_the_host(guest: Guest, world: World):
    script = """
import socket
s = socket.socket(socket.AF_UNIX)
try:
    s.connect("\\0" + args[0])
    print(json.dumps("connected"))
except OSError as error:
    print(json.dumps(type(error).__name__))
"""
    assert guest.python(script, world.abstract_name[1:]) == "ConnectionRefusedError"
    assert "caisson-canary" not in guest.run("cat /proc/net/unix").out
    for path in (
        "/var/run/docker.sock",
        "/run/docker.sock",
        "/run/containerd/containerd.sock",
        "/run/dbus/system_bus_socket",
        "/tmp/.X11-unix",
        "/run/systemd/private",
        "/run/caisson",
        "/run/user",
        "/var/run/crio/crio.sock",
    ):
        assert guest.run(f"test -e {path}").code != 0, path
    sockets = guest.run("find / -xdev -type s 2>/dev/null").out
    assert sockets == "", sockets


FORGE = """
import socket, struct
def packet(source, target, payload):
    udp = struct.pack(">HHHH", 1234, 9999, 8 + len(payload), 0) + payload
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0,
                     socket.inet_aton(source), socket.inet_aton(target))
    return ip + udp
results = {}
own, target, forged = args
try:
    s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
    s.setsockopt(socket.IPPROTO_IP, socket.IP_HDRINCL, 1)
    for source in forged:
        try:
            s.sendto(packet(source, target, b"forged"), (target, 0))
            results[source] = "sent"
        except OSError as error:
            results[source] = error.strerror
    s.sendto(packet(own, target, b"honest"), (target, 0))
    results["own"] = "sent"
except OSError as error:
    results["socket"] = error.strerror
try:
    d = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    d.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    d.bind(("", 68)) if os.getuid() == 0 else None
    d.sendto(b"\\1\\1\\6\\0" + bytes(236), ("255.255.255.255", 67))
except OSError as error:
    results["dhcp"] = error.strerror
print(json.dumps(results))
"""


@probe(35)
def test_forged_packets(guest: Guest, world: World, quiet: Internet):
    own = guest.run("hostname -I").out.split()[0]
    neighbour = world.neighbour_envd.run("hostname -I")[0].decode().split()[0]
    results = guest.python(
        FORGE, own, PUBLIC, [neighbour, HOST, OTHER_PUBLIC, "10.1.2.3", "127.0.0.1"]
    )
    time.sleep(1)  # whatever is under way has arrived
    seen = quiet.seen()
    end = time.monotonic() + 30
    while guest.account == "root" and not any("honest" in entry for entry in seen) and time.monotonic() < end:
        time.sleep(0.2)
        seen += quiet.seen()
    assert not [entry for entry in seen if "forged" in entry or "port 67" in entry], seen
    if guest.account == "root":
        assert results["own"] == "sent" and [e for e in seen if "honest" in e], (results, seen)
    else:
        assert results["socket"] == "Operation not permitted"


@probe(35)
def test_rules_of_the_host_stay(guest: Guest, server: CaissonServer):
    """The only table is the server's own; no sandbox changed it or the addresses of the host."""
    tables = subprocess.run(
        ["nft", "-j", "list", "tables"], capture_output=True, text=True, timeout=60
    ).stdout
    names = [entry["table"]["name"] for entry in json.loads(tables)["nftables"] if "table" in entry]
    assert names and all(name.startswith("caisson_") for name in names), names
    assert guest.run("nft list tables 2>&1 || iptables -L 2>&1; exit 0").out.find("caisson_") == -1
