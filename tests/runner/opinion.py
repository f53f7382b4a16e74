"""A second opinion on what failed, in the open: each case again, alone, twice.

One case in five thousand that fails once in a hundred runs would hold up everybody else's work. A case
that passes both times counts as passed and is told as UNSTABLE; it is a mistake in the test or in
the product all the same. What no chance explains has no second opinion: a crash, a sanitizer's
report, a loss, a sandbox that is doubled or orphaned, a touched canary.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from runner.outcome import WHOLE, Outcome
from runner.suites import Suite, alone

MOST = 20  # more failed cases are no accident
SECONDS = 360
TIMES = 2
MOST_UNSTABLE = 10  # in one run

GRAVE = re.compile(
    r"the program was killed by SIG|the server ended with status -|the server stopped with status -|survived SIGKILL"
    r"|AddressSanitizer|LeakSanitizer|UndefinedBehaviorSanitizer|runtime error:|a sanitizer reported|envd_exited"
    r"|listed twice|not one envd each|doubled|orphan|canary|secrets were found|left processes behind",
)


@dataclass(frozen=True)
class Failure:
    suite: Suite
    case: str
    text: str

    @property
    def title(self) -> str:
        return f"{self.suite.name}: {self.case}"

    @property
    def grave(self) -> bool:
        return self.case == WHOLE or bool(GRAVE.search(claimed(self.text)))


def claimed(text: str) -> str:
    """What the case itself says is wrong; of pytest not the source and the logs around it."""
    said = [line for line in text.splitlines() if line.startswith("E ")]
    return "\n".join(said) or text


def unstable_among(failures: list[Failure], run: Callable[[Suite], Outcome]) -> list[Failure]:
    """Those that `run` finds to pass when they are alone."""
    if len(failures) > MOST:
        return []
    until = time.monotonic() + SECONDS
    unstable = []
    for failure in failures:
        again = None if failure.grave else alone(failure.suite, failure.case, "again")
        if again and all(time.monotonic() < until and passes(run(again)) for _ in range(TIMES)):
            unstable.append(failure)
    return unstable


def passes(outcome: Outcome) -> bool:
    return outcome.passed > 0 and not outcome.failed


def write(path: Path, unstable: list[Failure]) -> None:
    told = [{"suite": one.suite.name, "case": one.case, "text": one.text} for one in unstable]
    path.write_text(json.dumps(told, indent=2) + "\n")
