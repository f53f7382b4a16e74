"""The list of ways out that are tried, and the table of what became of them.

`python3 tests/attack/probes.py` prints docs/attack-probes.md, with `groups` the table of
docs/isolation.md; a test sees to it that both are up to date. A test says with `@probe(7)` which row it tries. What a row promises:

  blocked         every attempt is refused
  contained       something may be done, but it stays inside and nobody else feels it
  not applicable  the server has no such feature yet; the test sees that it really has not
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

BLOCKED, CONTAINED, NOT_APPLICABLE = "blocked", "contained", "not applicable"


@dataclass(frozen=True)
class Probe:
    number: int
    group: str
    name: str
    promise: str


_GROUPS: dict[str, list[tuple[int, str, str]]] = {
    "system calls": [
        (1, "mount, umount, and the new mount calls", BLOCKED),
        (2, "pivot_root; chroot with a kept descriptor", CONTAINED),
        (3, "new namespaces by unshare, clone and clone3", BLOCKED),
        (4, "setns into every namespace in sight", BLOCKED),
        (5, "ptrace, process_vm_readv, pidfd_getfd and kill on processes of the host", BLOCKED),
        (6, "bpf, perf_event_open, userfaultfd, io_uring", BLOCKED),
        (7, "kernel keyrings", BLOCKED),
        (8, "kexec, modules, reboot, swap, accounting, quota", BLOCKED),
        (9, "open_by_handle_at of the host's root", BLOCKED),
        (10, "port access, memory devices, device nodes", BLOCKED),
        (11, "clocks and host name", BLOCKED),
        (12, "personality, PR_SET_MM, x32 and i386 numbers", BLOCKED),
        (13, "socket families, routes by netlink, raw sockets", CONTAINED),
        (14, "typing into a terminal, line disciplines", BLOCKED),
    ],
    "kernel files": [
        (15, "writing to /proc, /proc/sys and /sys", BLOCKED),
        (16, "reading kernel memory, keys, firmware, and who else lives here", BLOCKED),
        (17, "undoing what is masked", BLOCKED),
        (18, "/proc/PID/root and overwriting envd or the server", BLOCKED),
        (19, "inherited descriptors", BLOCKED),
        (20, "a working directory outside", CONTAINED),
    ],
    "cgroups": [
        (21, "release_agent, moving to the parent, devices.allow", BLOCKED),
        (22, "raising one's own limits", BLOCKED),
    ],
    "resources": [
        (23, "fork bomb", CONTAINED),
        (24, "memory bombs, locked memory, huge pages", CONTAINED),
        (25, "full disk, inodes, sparse files, deep directories", CONTAINED),
        (26, "descriptors, inotify, epoll, sockets", CONTAINED),
        (27, "output floods, clients that never read, terminals", CONTAINED),
        (28, "spinning on every CPU", CONTAINED),
        (29, "killing and stopping envd", CONTAINED),
    ],
    "network": [
        (30, "metadata services", BLOCKED),
        (31, "the host, its ports, its network, other sandboxes", BLOCKED),
        (32, "names that point inside, IPv6, mapped addresses, tunnels", BLOCKED),
        (33, "getting around a list of allowed names", BLOCKED),
        (34, "sockets of the host: abstract, D-Bus, X11, docker.sock", BLOCKED),
        (35, "forged packets: ARP, MAC, source address, DHCP", BLOCKED),
    ],
    "proxy": [
        (36, "the gateway: other sandboxes, smuggling, missing tokens", BLOCKED),
        (37, "cookies and cross-origin reads", BLOCKED),
        (38, "addresses the server connects to for a client", BLOCKED),
    ],
    "files API": [
        (39, "uploads through swapped links, odd paths, devices", CONTAINED),
        (40, "downloads, watches and renames through links", CONTAINED),
        (41, "archives: traversal, links, bombs", CONTAINED),
        (42, "signed URLs: replay, other path, user, sandbox", BLOCKED),
    ],
    "state": [
        (43, "snapshots of others, equal randomness after a fork", BLOCKED),
        (44, "what a deleted sandbox left on the disk and in the network", BLOCKED),
    ],
    "secrets": [
        (45, "planted keys and tokens: environment, files, memory, logs, database", BLOCKED),
        (46, "placeholder secrets", NOT_APPLICABLE),
    ],
    "git": [
        (47, "hostile repositories", CONTAINED),
        (48, "pushing elsewhere with a task's credential", BLOCKED),
    ],
    "API": [
        (49, "guessed ids, other keys, keys in logs, bombs, slow clients", BLOCKED),
        (50, "the page: scripts, frames, cookies", BLOCKED),
    ],
}

PROBES = {
    n: Probe(n, group, name, promise)
    for group, rows in _GROUPS.items()
    for n, name, promise in rows
}
HERE = Path(__file__).resolve().parent
DOCUMENT = HERE.parents[1] / "docs/attack-probes.md"


def probe(number: int) -> Callable:
    """Marks a test as an attempt of this row."""
    import pytest  # not needed to print the document

    assert number in PROBES, number
    return pytest.mark.probe(number)


@dataclass
class Attempts:
    tests: list[str]  # "file.py::test"
    accounts: set[str]  # of a sandbox, as which they try

    def told(self) -> str:
        return ", ".join(sorted(self.accounts)) or "-"


def _accounts(test: ast.FunctionDef, source: str) -> set[str]:
    """As whom a test attacks: the fixture `guest` is both accounts, `fresh` is root."""
    fixtures = {argument.arg for argument in test.args.args}
    if "guest" in fixtures or '("root", "user")' in (ast.get_source_segment(source, test) or ""):
        return {"root", "user"}
    return {"root"} if "fresh" in fixtures else set()


def attempts() -> dict[int, Attempts]:
    """Where each row is tried, and as whom, read from the sources."""
    found = {number: Attempts([], set()) for number in PROBES}
    for file in sorted(HERE.glob("test_*.py")):
        source = file.read_text()
        for test in ast.parse(source).body:
            if not isinstance(test, ast.FunctionDef):
                continue
            for mark in test.decorator_list:
                if isinstance(mark, ast.Call) and getattr(mark.func, "id", "") == "probe":
                    row = found[ast.literal_eval(mark.args[0])]
                    row.tests.append(f"{file.name}::{test.name}")
                    row.accounts |= _accounts(test, source)
    return found


def render() -> str:
    """The document."""
    tried = attempts()
    lines = [
        "# The ways out that are tried",
        "",
        "Written by `python3 tests/attack/probes.py`; do not edit. `./test attack` tries every row",
        "and prints what became of it. *As* are the accounts of a sandbox that a row is tried as;",
        "where there is none, the attacker is a client, a page or a repository, to which accounts make",
        "no difference. What the words mean, what watches over the host meanwhile:",
        "[isolation.md](isolation.md#attacks-that-are-tried). Tests are in `tests/attack`.",
        "",
        "| # | group | attempt | as | promise | tests |",
        "|---|---|---|---|---|---|",
    ]
    for one in PROBES.values():
        row = tried[one.number]
        where = "<br>".join(f"`{name}`" for name in row.tests)
        lines.append(
            f"| {one.number} | {one.group} | {one.name} | {row.told()} | {one.promise} | {where} |"
        )
    return "\n".join(lines) + "\n"


def groups() -> str:
    """The table by groups: how many rows promise what, and which have nothing to try."""
    lines = [
        "| group | rows | blocked | contained | not applicable |",
        "|---|---|---|---|---|",
    ]
    for group, rows in _GROUPS.items():
        number = {
            promise: str(sum(p == promise for _, _, p in rows) or "")
            for promise in (BLOCKED, CONTAINED)
        }
        absent = ", ".join(f"{name} ({n})" for n, name, p in rows if p == NOT_APPLICABLE)
        span = f"{rows[0][0]}-{rows[-1][0]}"
        cells = [group, span, number[BLOCKED], number[CONTAINED], absent]
        lines.append("|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|")
    return "\n".join(lines) + "\n"


def summary(results: dict[int, list[tuple[str, str]]]) -> list[str]:
    """The table of a run. `results`: row -> (test, outcome) of every test that tried it."""
    lines, counts = [], dict.fromkeys([BLOCKED, CONTAINED, NOT_APPLICABLE, "FAILED", "skipped"], 0)
    for number, outcomes in sorted(results.items()):
        one = PROBES[number]
        failed = [test for test, outcome in outcomes if outcome == "failed"]
        passed = [test for test, outcome in outcomes if outcome == "passed"]
        verdict = "FAILED" if failed else one.promise if passed else "skipped"
        counts[verdict] += 1
        note = f"  <- {', '.join(failed)}" if failed else ""
        skipped = len(outcomes) - len(failed) - len(passed)
        note += f"  ({skipped} of {len(outcomes)} attempts skipped)" if skipped else ""
        lines.append(f"{number:3} {one.group:13} {verdict:15} {one.name}{note}")
    end = (
        f"{counts[BLOCKED]} blocked, {counts[CONTAINED]} contained, "
        f"{counts[NOT_APPLICABLE]} not applicable"
    )
    for word in ("skipped", "FAILED"):
        end += f", {counts[word]} {word}" if counts[word] else ""
    return [*lines, "", end]


if __name__ == "__main__":
    print(groups() if sys.argv[1:] == ["groups"] else render(), end="")
