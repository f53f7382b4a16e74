"""Runs the program of a suite, ends what it leaves behind, and counts."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

from runner.outcome import WHOLE, Outcome, count
from runner.suites import BUILD, ROOT, Suite, command_of, environment_of

RESULTS = BUILD / "test-results"
ENDING_S = 30  # what ends by itself meanwhile was not left behind


class OutOfTime(Exception):
    """The whole run has taken too long."""


def children() -> set[int]:
    found = set()
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid() and fields[0] != "Z":
            found.add(int(entry.parent.name))
    return found


def reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def wait_for(process: subprocess.Popen, log: Path, silence: float, until: float) -> int | None:
    """The exit code, or None once the log has not grown for so long: every case that ends writes a word there.
    Orphans that end meanwhile are reaped as init would."""
    size, heard, looked = -1, time.monotonic(), 0.0
    while True:
        now = time.monotonic()
        if now > until:
            raise OutOfTime
        if now - looked > 1:
            looked, before, size = now, size, log.stat().st_size
            heard = heard if size == before else now
            if now - heard > silence:
                return None
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is None:
            time.sleep(0.02)
        elif ended.si_pid == process.pid:
            return process.wait()
        else:
            os.waitpid(ended.si_pid, 0)


def end_leftovers(ours: frozenset[int] = frozenset()) -> list[str]:
    """Processes the suite left behind. As a subreaper we inherit them all; each but our own is killed."""
    deadline = time.monotonic() + ENDING_S
    while children() - ours and time.monotonic() < deadline:
        time.sleep(0.05)
    left = []
    deadline = time.monotonic() + 10
    while children() - ours and time.monotonic() < deadline:  # killing one may hand us its children
        for pid in children() - ours:
            try:
                command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                os.kill(pid, signal.SIGKILL)
                left.append(f"{pid} {command.strip()[:120]}")
            except OSError:
                pass
        time.sleep(0.05)
    reap()
    return sorted(set(left))


def stop(process: subprocess.Popen) -> None:
    """Interrupt first, so that fixtures can clean up; then by force."""
    for number, patience in ((signal.SIGINT, 20), (signal.SIGTERM, 5), (signal.SIGKILL, 5)):
        try:
            os.killpg(process.pid, number)
            process.wait(patience)
            return
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def run_suite(suite: Suite, case: str = "", quick: bool = False, slowness: float = 1,
              until: float = float("inf"), ours: frozenset[int] = frozenset()) -> Outcome:
    """`until`: when the whole run is over, whatever the suite still has to do. `ours`: children of the caller's."""
    report, log_path = RESULTS / f"{suite.name}.xml", RESULTS / f"{suite.name}.log"
    report.unlink(missing_ok=True)
    with open(log_path, "wb") as log:
        try:
            process = subprocess.Popen(command_of(suite, case, quick, report), cwd=ROOT,
                                       env=environment_of(suite, case, quick, report),
                                       stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        except OSError as error:
            return Outcome(failed=[(WHOLE, f"could not be started: {error}")])
        try:
            code = wait_for(process, log_path, suite.silence * slowness, until)
            if code is None:
                stop(process)
        except (KeyboardInterrupt, OutOfTime):
            stop(process)
            end_leftovers(ours)
            raise
    outcome = count(suite.kind, code, report, log_path.read_text(errors="replace"))
    left = end_leftovers(ours)
    if left:
        outcome.failed.append((WHOLE, "left processes behind, now killed:\n" + "\n".join(left)))
    if outcome.total == 0 and not case and not quick:
        outcome.failed.append((WHOLE, "ran no test"))
    return outcome
