"""One case, many times, with all processors busy: how often does it fail?"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace

from runner.program import run_suite
from runner.suites import Suite

BUSY = "while True: pass"


def hunt(chosen: list[tuple[Suite, str]], times: int) -> int:
    """The exit code. `chosen` is one suite with one case."""
    if len(chosen) != 1 or not chosen[0][1]:
        print("hunt takes one SUITE:CASE, for example: ./test hunt e2e:test_reads_back --times 50")
        return 2
    suite, case = chosen[0]
    suite = replace(suite, name=f"{suite.name}-hunt")
    failed, ran = [], 0
    busy = [subprocess.Popen([sys.executable, "-c", BUSY], start_new_session=True) for _ in range(os.cpu_count() or 1)]
    try:
        for number in range(1, times + 1):
            begun = time.monotonic()
            outcome = run_suite(suite, case, ours=frozenset(one.pid for one in busy))
            ran += outcome.total
            failed += outcome.failed
            print(f"{number:4} {outcome.summary():30} {time.monotonic() - begun:7.1f} s", flush=True)
    finally:
        for one in busy:
            one.kill()
            one.wait()
    for name, text in failed[:3]:
        print(f"\nFAILED {name}\n{text}")
    print(f"\n{ran - len(failed)} passed, {len(failed)} failed")
    return 0 if ran and not failed else 1
