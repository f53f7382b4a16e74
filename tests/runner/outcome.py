"""What became of the cases of a suite, read from its report, its log and its exit code."""

from __future__ import annotations

import re
import signal
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

WHOLE = "(whole suite)"


@dataclass
class Outcome:
    passed: int = 0
    skipped: list[str] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)  # case, message
    seconds: list[tuple[float, str]] = field(default_factory=list)  # of each case
    figures: list[str] = field(default_factory=list)  # lines of the log that begin with "| "

    @property
    def total(self) -> int:
        return self.passed + len(self.skipped) + len(self.failed)

    def summary(self) -> str:
        skipped = f", {len(self.skipped)} skipped" if self.skipped else ""
        return f"{self.passed} passed, {len(self.failed)} failed{skipped}"


def count_junit(path: Path) -> Outcome:
    """Counts the cases of a JUnit report; gtest, pytest and node write close enough dialects."""
    outcome = Outcome()
    for case in ElementTree.parse(path).iter("testcase"):
        name = ".".join(filter(None, (case.get("classname"), case.get("name"))))
        outcome.seconds.append((float(case.get("time") or 0), name))
        problems = case.findall("failure") + case.findall("error")
        if problems:
            outcome.failed.append((name, "\n".join(p.text or p.get("message") or "" for p in problems)))
        elif (skipped := case.find("skipped")) is not None or case.get("status") == "notrun":
            why = skipped.get("message") if skipped is not None else ""
            outcome.skipped.append(f"{name}: {why}" if why else name)
        else:
            outcome.passed += 1
    return outcome


def count_gtest_output(text: str) -> tuple[Outcome, str]:
    """What a gtest program got done before it ended early, and the case it was in."""
    outcome = Outcome(passed=len(re.findall(r"^\[       OK \]", text, re.MULTILINE)))
    for name in re.findall(r"^\[  FAILED  \] (\S+) \(\d+ ms\)", text, re.MULTILINE):
        outcome.failed.append((name, "see the log"))
    started = re.findall(r"^\[ RUN      \] (\S+)", text, re.MULTILINE)
    finished = set(re.findall(r"^\[ .{8} \] (\S+) \(\d+ ms\)", text, re.MULTILINE))
    return outcome, next((name for name in reversed(started) if name not in finished), "")


def explain(code: int | None) -> str:
    if code is None:
        return "was silent for too long and was stopped"
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"


def count(kind: str, code: int | None, report: Path, log: str) -> Outcome:
    """Turns what a suite left (report, log, exit code) into cases; a crash is one failed case."""
    end = "\n".join(log.splitlines()[-40:])
    running = ""
    try:
        outcome = count_junit(report)
    except (OSError, ElementTree.ParseError):
        outcome, running = count_gtest_output(log) if kind == "gtest" else (Outcome(), "")
        outcome.failed.append((running or WHOLE, f"the program {explain(code)} and left no readable report\n{end}"))
    if code != 0 and not outcome.failed:
        outcome.failed.append((WHOLE, f"the program {explain(code)}\n{end}"))
    outcome.figures = [line for line in log.splitlines() if line.startswith("| ")]
    return outcome


def shown(text: str) -> str:
    """What a case said, indented; what pytest found wrong comes first."""
    lines = text.strip().splitlines()
    lines = [*(line for line in lines if line.startswith("E ")), *lines]
    if len(lines) > 60:
        lines = [*lines[:30], f"... {len(lines) - 60} lines left out ...", *lines[-30:]]
    return "  " + "\n  ".join(lines)
