#!/usr/bin/env python3
"""Builds server, engine and envd with AddressSanitizer and UndefinedBehaviorSanitizer and runs the
suites that need a server against them. ./test sanitizers calls this: in the gate the cases marked
`quick` or `sanitized`, in `./test full` all of them. By hand:

    tests/sanitizers/run.py [PYTEST ARGUMENT...]     e.g. tests/e2e/test_create.py -k twice

A report is a failed case, whatever the tests themselves say. The server and the engine write theirs
to build-asan/reports, leaks included. envd cannot: a report ends it inside its sandbox, which the
server's log shows as `envd_exited`; the envd unit tests of build-asan then show where.

The same programs count the lines they run (line_coverage.py). After a full run every module has
to have its share of them covered; a smaller one is not measured.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import line_coverage

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from runner import sanitized  # noqa: E402
from runner.sanitized import TREE as BUILD  # noqa: E402
from runner.suites import ROOT, SANITIZED, SANITIZED_TESTS  # noqa: E402

REPORTS = BUILD / "reports"
PROFILES = BUILD / "profiles"
# What is about programs in the sandbox, about time or about the host tells nothing more here.
ELSEWHERE = ("e2e/test_deploy", "e2e/test_kernels", "e2e/test_large_memory", "e2e/test_neighbours", "e2e/test_readme",
             "e2e/test_tools_inside", "work/test_build_frameworks")
SUITES = ["tests/e2e", "tests/sdk/python", "tests/api", "tests/work",
          *(f"--ignore=tests/{name}.py" for name in ELSEWHERE)]


def environment() -> dict[str, str]:
    common = f"log_path={REPORTS}/report:halt_on_error=1:print_stacktrace=1"
    return dict(os.environ,
                CAISSON_BIN=str(BUILD / "bin/caisson"), KEEP_SERVER_LOGS=str(REPORTS),
                LLVM_PROFILE_FILE=line_coverage.prepare(PROFILES),
                ASAN_OPTIONS=f"{common}:detect_leaks=1:detect_stack_use_after_return=1:quarantine_size_mb=64",
                UBSAN_OPTIONS=common, ASAN_SYMBOLIZER_PATH="/usr/bin/llvm-symbolizer-19")


def findings() -> list[tuple[str, str]]:
    """What the programs said, apart from what the tests saw."""
    found = [(path.name, path.read_text(errors="replace")) for path in sorted(REPORTS.glob("report.*"))]
    for path in sorted(REPORTS.glob("*.server.log")):
        log = path.read_text(errors="replace")
        lines = [line for line in log.splitlines() if "envd_exited" in line]
        if lines:
            found.append((path.name, "envd ended by itself:\n" + "\n".join(lines)))
        said = re.search(r"(ERROR: \w+Sanitizer|runtime error:)[\s\S]{0,4000}", log)  # caisson-net
        if said:
            found.append((path.name, said[0]))
    return found


def run_unit_tests(env: dict[str, str]) -> list[tuple[str, str]]:
    """The output of those that failed."""
    failed = []
    for name in SANITIZED_TESTS:
        ran = subprocess.run([str(BUILD / "tests" / name), "--gtest_brief=1"], cwd=ROOT, env=env, text=True,
                             errors="replace", timeout=300, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if ran.returncode:
            failed.append((name, ran.stdout))
    return failed


def measure() -> list[line_coverage.Verdict]:
    programs = [BUILD / "bin/caisson", BUILD / "bin/caisson-net", *(BUILD / "tests" / name for name in SANITIZED_TESTS)]
    files = line_coverage.by_file(line_coverage.measure(PROFILES, programs, BUILD), ROOT / "src")
    verdicts = line_coverage.judge(files)
    print("\n".join(f"| {verdict}" for verdict in verdicts))
    print("\nmost lines that nothing ran:", *line_coverage.worst(files, 30), sep="\n  ")
    return verdicts


def add_case(suite: ElementTree.Element, name: str, failure: str) -> None:
    case = ElementTree.SubElement(suite, "testcase", classname=suite.get("name", ""), name=name)
    if failure:
        ElementTree.SubElement(case, "failure", message=failure.splitlines()[0]).text = failure


def add_to_report(path: str, found: list[tuple[str, str]], verdicts: list[line_coverage.Verdict]) -> None:
    try:
        tree = ElementTree.parse(path)
    except (OSError, ElementTree.ParseError):
        return  # the exit code tells
    suite = ElementTree.SubElement(tree.getroot(), "testsuite", name="sanitizers")
    for name, text in found or [("no report", "")]:
        add_case(suite, name, text and f"a sanitizer reported\n{text}")
    suite = ElementTree.SubElement(tree.getroot(), "testsuite", name="coverage")
    for verdict in verdicts:
        add_case(suite, verdict.name, verdict.failure)
    tree.write(path)


def main() -> int:
    sanitized.build(*SANITIZED)
    shutil.rmtree(REPORTS, ignore_errors=True)
    REPORTS.mkdir()
    REPORTS.chmod(0o1777)  # the server is not root when it writes
    junit = os.environ.get("JUNIT_XML", "")
    case = os.environ.get("TEST_CASE", "")
    whole = len(sys.argv) == 1 and not case
    full = whole and os.environ.get("TEST_SIZE") == "full"
    marked = ["-m", "quick or sanitized"] if whole and not full else []
    env = environment()
    command = [str(ROOT / "build/venv/bin/python"), "-m", "pytest", "-q", "-n", "6", "--dist", "worksteal",
               "-p", "no:cacheprovider",
               "-c", "tests/pytest.ini", *([f"--junitxml={junit}"] if junit else []),
               *(["-k", case] if case else []), *marked, *(sys.argv[1:] or SUITES)]
    code = subprocess.run(command, cwd=ROOT, env=env).returncode
    found = (run_unit_tests(env) if whole else []) + findings()
    for name, text in found:
        print(f"\n{name}\n{text}")
    print(f"| {len(found)} reports of AddressSanitizer, LeakSanitizer and UndefinedBehaviorSanitizer")
    verdicts = measure() if full else []
    if junit:
        add_to_report(junit, found, verdicts)
    return code or (1 if found or any(verdict.failure for verdict in verdicts) else 0)


if __name__ == "__main__":
    sys.exit(main())
