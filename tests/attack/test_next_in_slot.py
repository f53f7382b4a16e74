"""Row 44: a sandbox gets the address of one that has ended, and with it nothing that was open."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from guest import Guest
from internet import OTHER_PUBLIC, PUBLIC, Internet
from probes import probe

from support.connections import connections
from support.rest import Rest
from support.server import CaissonServer
from support.waiting import wait_until_gone

pytestmark = pytest.mark.timeout(300)

SLOTS = 40  # after so many creations an address comes back
PORT = 40_000

# A datagram and an echo request from numbers of our choice, a connection that stays open, and many datagrams more.
OPEN = """
import os, socket, time
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.bind(("", args[1]))
u.sendto(args[2].encode(), (args[0], 9999))
i = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
i.sendto(bytes([8, 0, 0xf7, 0xff, 0, 0, 0, 0]), (args[0], 0))
t = socket.socket()
t.bind(("", args[1]))
t.settimeout(args[3])
try:
    t.connect((args[0], 80))
    connected = True
except OSError:
    connected = False
for number in range(args[4]):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.sendto(b"more", (args[0], 9999))
if connected and os.fork() == 0:
    os.setsid()
    [os.close(fd) for fd in (0, 1, 2)]
    time.sleep(1000)
print(json.dumps(connected))
"""


@pytest.fixture(scope="module")
def few_slots(internet: Internet, small_template) -> Iterator[CaissonServer]:
    server = CaissonServer(["--set", f"max_slots={SLOTS}"],
                           {"CAISSON_DNS": internet.resolver, "CAISSON_TEMPLATE_DIR": str(small_template)})
    try:
        yield server.start()
    finally:
        server.close()


def address_of(guest: Guest) -> str:
    return guest.run("hostname -I").out.split()[0]


def next_with(address: str, server: CaissonServer, rest: Rest, calls: bytes, **fields) -> Guest:
    """A new sandbox that has this address."""
    for _ in range(10 * SLOTS):
        guest = Guest(server, rest.create(timeout=600, **fields), "root", calls)
        if address_of(guest) == address:
            return guest
        rest.kill(guest.made)
    raise AssertionError(f"no sandbox got the address {address} again")


def killed(rest: Rest, guest: Guest) -> None:
    rest.kill(guest.made)


def out_of_time(rest: Rest, guest: Guest) -> None:
    rest.post(f"/sandboxes/{guest.id}/timeout", {"timeout": 0})


def paused(rest: Rest, guest: Guest) -> None:
    assert rest.post(f"/sandboxes/{guest.id}/pause", {}).status == 204


@probe(44)
@pytest.mark.parametrize("end", [killed, out_of_time, paused])
def test_what_was_open_is_not_the_next_ones(end: Callable, few_slots: CaissonServer, calls: bytes,
                                            internet: Internet, world):
    rest = Rest(few_slots)
    before = Guest(few_slots, rest.create(timeout=600), "root", calls)
    address = address_of(before)
    internet.seen()
    assert before.python(OPEN, PUBLIC, PORT, "mine", 30, 500) is True
    assert len(connections(address)) > 400  # some ports come twice
    end(rest, before)
    wait_until_gone(lambda: connections(address), "connections of a sandbox that has ended")
    after = next_with(address, few_slots, rest, calls, allow_internet_access=False)
    try:
        internet.seen()
        assert after.python(OPEN, PUBLIC, PORT, "theirs", 2, 0) is False
        time.sleep(1)  # whatever is under way has arrived
        assert [entry for entry in internet.seen() if not entry.startswith("dns")] == []
        assert connections(address) == []
    finally:
        rest.kill(after.made)
        rest.kill(before.made)


@probe(44)
def test_a_paused_one_takes_nothing_along(few_slots: CaissonServer, calls: bytes, internet: Internet, world):
    """It comes back in another slot, and what others do with its old address does not reach it."""
    rest = Rest(few_slots)
    guest = Guest(few_slots, rest.create(timeout=600), "root", calls)
    address = address_of(guest)
    assert guest.python(OPEN, PUBLIC, PORT, "mine", 30, 0) is True
    paused(rest, guest)
    other = next_with(address, few_slots, rest, calls)
    try:
        assert rest.post(f"/sandboxes/{guest.id}/connect", {"timeout": 600}).status in (200, 201)
        assert address_of(guest) != address
        assert connections(address) == []
        assert other.python(OPEN, OTHER_PUBLIC, PORT, "theirs", 30, 0) is True
        assert {one.target for one in connections(address)} == {OTHER_PUBLIC}
    finally:
        rest.kill(other.made)
        rest.kill(guest.made)
