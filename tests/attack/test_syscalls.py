"""Rows 1 to 14: doors of the kernel, by raw system calls."""

from __future__ import annotations

from guest import REFUSED, Guest, assert_refused
from probes import probe
from world import World


@probe(1)
def test_mounts(guest: Guest):
    assert_refused(guest.calls("mounts"))


@probe(2)
def test_chroot_stays_inside(guest: Guest, world: World):
    results = guest.calls("chroot", world.file)
    assert results.pop("pivot_root") in REFUSED
    assert results.pop("chroot") == ("OK" if guest.account == "root" else "EPERM")
    assert results == {"root-same": "OK", "canary": "ENOENT", "canary-from-root": "ENOENT"}


@probe(3)
def test_namespaces(guest: Guest):
    assert_refused(guest.calls("namespaces"), REFUSED | {"EINVAL"})


@probe(4)
def test_setns(guest: Guest):
    results = guest.calls("setns")
    assert len(results) > (16 if guest.account == "root" else 8), results
    assert_refused(results)


@probe(5)
def test_processes_of_the_host(guest: Guest, world: World):
    pids = world.host_pids()
    assert len(pids) >= 4, pids
    # Numbers are those of the host: inside, nobody has them.
    assert_refused(guest.calls("processes", *pids), {"ESRCH"})


@probe(6)
def test_programmable_kernel(guest: Guest):
    assert_refused(guest.calls("kernel"))


@probe(7)
def test_keyrings(guest: Guest):
    assert_refused(guest.calls("keys"))


@probe(8)
def test_the_machine(guest: Guest):
    assert_refused(guest.calls("machine"))


@probe(9)
def test_files_by_handle(guest: Guest):
    assert_refused(guest.calls("handles"))


@probe(10)
def test_devices(guest: Guest):
    results = guest.calls("devices")
    assert_refused(results, REFUSED | {"ENOENT"})
    names = guest.run("find /dev -type b; find /dev -type c | sort").out.split()
    harmless = {
        "/dev/full",
        "/dev/fuse",
        "/dev/null",
        "/dev/random",
        "/dev/tty",
        "/dev/urandom",
        "/dev/zero",
        "/dev/pts/ptmx",
    }
    assert {n for n in names if not n.startswith("/dev/pts/")} <= harmless, names


@probe(11)
def test_clocks_and_names(guest: Guest):
    assert_refused(guest.calls("clocks"))


@probe(12)
def test_other_numbers(guest: Guest):
    # SEGV: a kernel without 32-bit calls.
    results = guest.calls("abi")
    assert results.pop("set-mm-14") == "EINVAL"  # PR_SET_MM_MAP: of a process's own, if well-formed
    assert_refused(results, REFUSED | {"SEGV"})


UNIX, INET, INET6, NETLINK = 1, 2, 10, 16
STREAM, DGRAM, RAW, SEQPACKET = 1, 2, 3, 5
ICMP, TCP, UDP, ICMPV6 = 1, 6, 17, 58
ROUTE, SOCK_DIAG = 0, 4


def kinds_in_daily_use() -> set[str]:
    kinds = {(UNIX, kind, protocol) for kind in (STREAM, DGRAM, RAW, SEQPACKET) for protocol in (0, UNIX)}
    kinds |= {(NETLINK, kind, protocol) for kind in (DGRAM, RAW) for protocol in (ROUTE, SOCK_DIAG)}
    for family, icmp in ((INET, ICMP), (INET6, ICMPV6)):
        kinds |= {(family, STREAM, protocol) for protocol in (0, TCP)}
        kinds |= {(family, DGRAM, protocol) for protocol in (0, UDP, icmp)}
        kinds |= {(family, RAW, protocol) for protocol in (TCP, UDP, icmp)}
    return {f"socket-{family}-{kind}-{protocol}" for family, kind, protocol in kinds}


@probe(13)
def test_kinds_of_sockets(guest: Guest):
    """Whatever else is asked for is answered by the filter: the kernel would look for a module to load."""
    results = guest.calls("sockets")
    opened = {name for name, how in results.items() if how == "OK" and name.startswith("socket-")}
    wanted = kinds_in_daily_use()
    assert opened <= wanted, opened - wanted
    assert {f"socket-{INET}-{STREAM}-0", f"socket-{INET6}-{DGRAM}-0", f"socket-{NETLINK}-{RAW}-0"} <= opened
    assert (f"socket-{INET}-{RAW}-{ICMP}" in opened) == (guest.account == "root")
    pairs = {name for name in results if name.startswith("pair-")}
    assert pairs == {f"pair-{UNIX}-{kind}" for kind in (STREAM, DGRAM, RAW, SEQPACKET)}
    # EINVAL, ESOCKTNOSUPPORT: types of AF_UNIX; EACCES, EPERM: ping and raw sockets, for users.
    refusals = {name.removeprefix("refused-") for name in results if name.startswith("refused-")}
    ours = {"EAFNOSUPPORT", "EPROTONOSUPPORT", "EOPNOTSUPP"}
    assert ours <= refusals <= ours | {"EINVAL", "ESOCKTNOSUPPORT", "EACCES", "EPERM"}
    rest = {name: how for name, how in results.items() if not name.startswith(("socket-", "pair-", "refused-"))}
    assert_refused(rest, {"EAFNOSUPPORT", "EPROTONOSUPPORT", "ENOPROTOOPT"})
    assert guest.run("ss -tln && ip addr").code == 0


@probe(13)
def test_network_settings(guest: Guest):
    assert_refused(guest.calls("netlink"), REFUSED | {"EPROTONOSUPPORT"})
    before = guest.run("ip addr; ip route; ip rule").out
    for command in (
        "ip link add x0 type dummy",
        "ip link set eth0 address 02:00:00:00:00:01",
        "ip addr add 10.9.9.9/32 dev eth0",
        "ip route add 10.0.0.0/8 dev eth0",
        "ip link set eth0 arp on",
        "ip link set eth0 down",
        "ip tuntap add mode tun",
        "ip link add v0 type veth",
    ):
        assert guest.run(command).code != 0, command
    assert guest.run("ip addr; ip route; ip rule").out == before


@probe(14)
def test_terminals(guest: Guest):
    assert_refused(guest.calls("terminal"), REFUSED | {"EIO", "EINVAL"})
