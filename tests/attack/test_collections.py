"""Checks of public collections of container escapes, built from Go's module proxy and run inside.

They are fetched when the test runs (a Go compiler and the proxy are needed, else the test is
skipped and says why) and kept in build/attack-tools. Rows of probes.py that they belong to are named here.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from guest import Guest
from internet import Internet
from probes import probe

from support.server import REPOSITORY

pytestmark = pytest.mark.timeout(240)
TOOLS = REPOSITORY / "build/attack-tools"


def build(internet: Internet, module: str, version: str, package: str) -> bytes:
    """The program of a Go module, static."""
    target = TOOLS / f"{Path(module).name}-{version}"
    if not target.exists():
        go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
        if not go:
            pytest.skip(f"{module} is not run: there is no Go compiler to build it with")
        work = TOOLS / f"work-{os.getpid()}"
        work.mkdir(parents=True, exist_ok=True)
        (work / "go.mod").write_text(f"module probe\n\ngo 1.20\n\nrequire {module} {version}\n")
        environment = {
            **os.environ,
            "CGO_ENABLED": "0",
            "GOPATH": str(TOOLS / "go"),
            "GOCACHE": str(TOOLS / "cache"),
            "GOFLAGS": "-mod=mod -modcacherw",
            "GOTOOLCHAIN": "local",
        }
        made = work / "program"
        done = internet.outside_command(
            [go, "build", "-o", str(made), module + package],
            cwd=work,
            env=environment,
            capture_output=True,
            text=True,
            timeout=200,
        )
        if done.returncode != 0:
            shutil.rmtree(work, ignore_errors=True)
            pytest.skip(f"{module} is not run: it could not be built: {done.stderr.strip()[-300:]}")
        made.rename(target)
        shutil.rmtree(work, ignore_errors=True)
    return target.read_bytes()


@probe(3)
@probe(16)
def test_amicontained(guest: Guest, internet: Internet):
    """Prints what a container is made of and which system calls are blocked."""
    program = build(internet, "github.com/genuinetools/amicontained", "v0.4.9", "")
    path = f"/tmp/amicontained-{guest.account}"
    guest.sandbox.files.write(path, program, user=guest.account)
    # It tries ptrace(TRACEME), too, and would stop for good; one who is traced already may not.
    done = guest.run(
        f"chmod +x {path}; timeout -s KILL 40 strace -qq -f -e trace=none -o /dev/null {path} 2>&1",
        60,
    )
    assert re.search(r"pid:\s+true", done.out), done.out
    assert re.search(r"user:\s+true", done.out), done.out
    assert re.search(r"Seccomp: filtering", done.out), done.out
    bounding = re.search(r"BOUNDING -> (.*)", done.out).group(1).split()
    dangerous = {
        "sys_admin",
        "sys_module",
        "sys_rawio",
        "net_admin",
        "sys_boot",
        "sys_time",
        "dac_read_search",
        "mknod",
        "syslog",
        "sys_resource",
        "mac_admin",
        "bpf",
        "perfmon",
    }
    assert not dangerous & set(bounding), bounding
    blocked = set(
        re.search(r"Blocked Syscalls \(\d+\):\s*(.*?)(?:\n\S|\Z)", done.out, re.S).group(1).split()
    )
    needed = {
        "MOUNT",
        "UMOUNT2",
        "PIVOT_ROOT",
        "SETNS",
        "BPF",
        "PERF_EVENT_OPEN",
        "KEXEC_LOAD",
        "INIT_MODULE",
        "FINIT_MODULE",
        "OPEN_BY_HANDLE_AT",
        "USERFAULTFD",
        "SWAPON",
        "ACCT",
        "IOPL",
        "IOPERM",
        "SETTIMEOFDAY",
        "CLOCK_SETTIME",
    }
    assert needed <= blocked, needed - blocked


@probe(21)
@probe(34)
def test_cdk(guest: Guest, internet: Internet):
    """CDK looks for ways out (`evaluate`) and has the exploits themselves (`run`)."""
    program = build(internet, "github.com/cdk-team/CDK", "v1.0.6", "/cmd/cdk")
    path, escaped = f"/tmp/cdk-{guest.account}", f"/tmp/escaped-{guest.id}"
    guest.sandbox.files.write(path, program, user=guest.account)
    guest.run(f"chmod +x {path}")
    found = guest.run(f"cd /tmp && timeout 60 {path} evaluate 2>&1", 90).out
    assert "Information Gathering" in found, found[-500:]
    for sentence in (
        "Critical",
        "Possible Privileged Container",
        "CAP_SYS_ADMIN enabled",
        "docker.sock",
    ):
        assert sentence not in found, (sentence, found)
    exploits = [
        f"mount-cgroup 'touch {escaped}'",
        f"mount-procfs /proc 'touch {escaped}'",
        "mount-disk",
        "rewrite-cgroup-devices",
        f"shim-pwn 'touch {escaped}'",
        "docker-sock-check /var/run/docker.sock",
        "cap-dac-read-search",
        "lxcfs-rw",
    ]
    for exploit in exploits:
        done = guest.run(f"cd /tmp && timeout 20 {path} run {exploit} 2>&1; exit 0", 40)
        lines = [line for line in done.out.splitlines() if "if you see" not in line]
        assert not [line for line in lines if "core dumped" in line or "success" in line], done.out
    assert not os.path.exists(escaped)
