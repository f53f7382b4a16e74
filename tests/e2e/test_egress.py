"""What sandboxes reach, through the API, in an internet of the test's own."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from support import internet
from support.envd import Envd
from support.rest import Rest
from support.server import CaissonServer

ROOT = {"user": "root"}


@pytest.fixture
def world() -> Iterator[Rest]:
    """A server in a network of its own, next to a web server and a nameserver."""
    settings = {"CAISSON_DNS": internet.NAMESERVER}
    with internet.Internet(), CaissonServer(env=settings) as server:
        yield Rest(server)


def fetch(envd: Envd, where: str) -> str:
    """The page, or "" when there is no way there."""
    out, _, end = envd.run(f"curl -s --max-time 10 http://{where}/", **ROOT)
    return out.decode() if end.get("exitCode", 0) == 0 else ""


def blocked(rest: Rest, made: dict) -> list[dict]:
    entries = rest.get(f"/v2/sandboxes/{made['sandboxID']}/logs?level=warn").json()["logs"]
    return [entry["fields"] for entry in entries if "blocked" in entry["message"]]


def wait_for_blocked(rest: Rest, made: dict, destination: str) -> dict:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        for fields in blocked(rest, made):
            if fields.get("destination") == destination:
                return fields
        time.sleep(0.1)
    raise AssertionError(f"{destination} was not reported: {blocked(rest, made)}")


@pytest.mark.timeout(180)
def test_rules_hold_and_change_and_survive(world: Rest):
    rules = {"allowOut": ["good.example", "rebound.example"], "denyOut": ["0.0.0.0/0"]}
    with world.sandbox(network=rules, timeout=600) as made, world.sandbox(timeout=600) as free:
        envd, path = Envd(world.server, made), f"/sandboxes/{made['sandboxID']}/network"

        def check_rules() -> None:
            assert fetch(envd, "good.example") == "hello"
            assert fetch(envd, "GOOD.example.") == "hello"
            assert fetch(envd, internet.GOOD) == "hello", "its address is admitted"
            assert fetch(envd, "evil.example") == ""
            assert fetch(envd, internet.EVIL) == ""
            assert fetch(envd, "rebound.example") == "", "a name leads to a private address"
            assert fetch(Envd(world.server, free), "evil.example") == "hello"

        assert fetch(envd, internet.GOOD) == "", "nobody has asked for its name yet"
        check_rules()
        world.server.crash()
        world.server.restart()
        check_rules()
        assert world.request("PUT", path, {"denyOut": [internet.GOOD]}).status == 204
        assert fetch(envd, "evil.example") == "hello"
        assert fetch(envd, "good.example") == ""
        assert world.request("PUT", path, {"allow_internet_access": False}).status == 204
        for where in ("good.example", "evil.example", internet.GOOD, internet.EVIL):
            assert fetch(envd, where) == ""
        assert world.request("PUT", path, {}).status == 204
        assert fetch(envd, "good.example") == "hello"
        assert fetch(envd, internet.EVIL) == "hello"


@pytest.mark.timeout(120)
def test_blocked_attempts_are_reported(world: Rest):
    rules = {"allowOut": ["good.example"], "denyOut": ["0.0.0.0/0"]}
    with world.sandbox(network=rules) as made:
        envd = Envd(world.server, made)
        assert fetch(envd, "evil.example") == ""
        assert wait_for_blocked(world, made, "evil.example")["protocol"] == "dns"
        assert fetch(envd, "169.254.169.254") == ""
        fields = wait_for_blocked(world, made, "169.254.169.254")
        assert fields["port"] == "80" and fields["protocol"] == "tcp"
        # A socket that lives on tells whose it is.
        program = (
            "import socket, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM);"
            f"s.sendto(b'x', ('{internet.HOST}', 8000)); time.sleep(30)"
        )
        stream = envd.start(f'exec python3 -c "{program}"', **ROOT)
        pid = stream.next()["event"]["start"]["pid"]
        fields = wait_for_blocked(world, made, internet.HOST)
        stream.close()
        assert fields["protocol"] == "udp" and fields["port"] == "8000"
        assert fields["command"].startswith("python3") and fields["pid"] == str(pid)


@pytest.mark.timeout(120)
def test_attacks_on_the_rules(world: Rest):
    """Probes of the network: metadata, host, neighbours, other resolvers, IPv6, forged packets."""
    rules = {"allowOut": ["good.example", "0.0.0.0/1"], "denyOut": ["0.0.0.0/0"]}
    with world.sandbox(network=rules) as made, world.sandbox() as neighbour:
        envd = Envd(world.server, made)
        other = Envd(world.server, neighbour)
        address = other.run("hostname -I", **ROOT)[0].decode().strip()
        for where in (
            "169.254.169.254",
            "100.100.100.200",
            "[fd00:ec2::254]",
            f"[::ffff:{internet.EVIL}]",
            f"{internet.HOST}:{world.server.port}",
            f"127.0.0.1:{world.server.port}",
            f"{internet.NAMESERVER}:53",
            f"{internet.EVIL}:80",
            address,
        ):
            assert fetch(envd, where) == "", where
        # Other nameservers, and a name that only looks allowed.
        for query in (
            f"@{internet.EVIL} good.example",
            f"@{internet.NAMESERVER} evil.example",
            "evil.example",
            "+tcp evil.example",
            "good.example.evil.example",
            "EVIL.EXAMPLE.",
        ):
            out = envd.run(f"dig +short +tries=1 +time=2 {query}", **ROOT)[0].decode()
            assert not {internet.EVIL, internet.GOOD} & set(out.splitlines()), query
        out = envd.run("dig +short +tries=1 +time=5 GoOd.example.", **ROOT)[0].decode()
        assert out.strip() == internet.GOOD
        # Root inside owns no address but its own, and no right to take one.
        _, _, end = envd.run(f"ip addr add {internet.GOOD}/32 dev eth0", **ROOT)
        assert end["exitCode"] != 0
