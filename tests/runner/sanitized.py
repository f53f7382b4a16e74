"""build-asan: programs, fuzzers and unit tests with sanitizers. One tree serves all suites that want them."""

from __future__ import annotations

import fcntl
import subprocess

from runner.suites import ROOT

TREE = ROOT / "build-asan"


def build(*targets: str) -> None:
    """Brings these up to date, all without any; one at a time, since two builds of one tree get in each other's way."""
    with open(ROOT / "build/asan.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Each time: the preset may have changed since the folder was made.
        subprocess.run(["cmake", "--preset", "asan"], cwd=ROOT, check=True, timeout=120, stdout=subprocess.DEVNULL)
        with open(ROOT / "build/asan.log", "w") as log:
            done = subprocess.run(["ninja", "-C", str(TREE), *targets], timeout=3000, stdout=log, stderr=log)
        if done.returncode:
            raise subprocess.SubprocessError("build-asan\n" + (ROOT / "build/asan.log").read_text()[-4000:])
