#!/usr/bin/env python3
"""Builds server, engine and envd with AddressSanitizer and UndefinedBehaviorSanitizer and runs the
end-to-end suites against them. ./test sanitizers calls this; by hand:

    tests/sanitizers/run.py [PYTEST ARGUMENT...]     e.g. tests/e2e/test_create.py -k twice

A report is a failed case, whatever the tests themselves say. The server and the engine write theirs
to build-asan/reports, leaks included. envd cannot: a report ends it inside its sandbox, which the
server's log shows as `envd_exited`; the envd unit tests of build-asan then show where.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build-asan"
REPORTS = BUILD / "reports"
SUITES = ["tests/e2e", "tests/sdk/python"]


def build() -> None:
    if not (BUILD / "build.ninja").exists():
        subprocess.run(["cmake", "--preset", "asan"], cwd=ROOT, check=True, timeout=120, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", str(BUILD), "caisson", "caisson-envd"], check=True, timeout=1500)


def environment() -> dict[str, str]:
    common = f"log_path={REPORTS}/report:halt_on_error=1:print_stacktrace=1"
    return dict(os.environ,
                CAISSON_BIN=str(BUILD / "bin/caisson"), KEEP_SERVER_LOGS=str(REPORTS),
                ASAN_OPTIONS=f"{common}:detect_leaks=1:detect_stack_use_after_return=1:quarantine_size_mb=64",
                UBSAN_OPTIONS=common, ASAN_SYMBOLIZER_PATH="/usr/bin/llvm-symbolizer-19")


def findings() -> list[tuple[str, str]]:
    """What the programs said, apart from what the tests saw."""
    found = [(path.name, path.read_text(errors="replace")) for path in sorted(REPORTS.glob("report.*"))]
    for path in sorted(REPORTS.glob("*.server.log")):
        lines = [line for line in path.read_text(errors="replace").splitlines() if "envd_exited" in line]
        if lines:
            found.append((path.name, "envd ended by itself:\n" + "\n".join(lines)))
    return found


def add_to_report(path: str, found: list[tuple[str, str]]) -> None:
    try:
        tree = ElementTree.parse(path)
    except (OSError, ElementTree.ParseError):
        return  # the exit code tells
    suite = ElementTree.SubElement(tree.getroot(), "testsuite", name="sanitizers")
    for name, text in found:
        case = ElementTree.SubElement(suite, "testcase", classname="sanitizers", name=name)
        ElementTree.SubElement(case, "failure", message="a sanitizer reported").text = text
    if not found:
        ElementTree.SubElement(suite, "testcase", classname="sanitizers", name="no report")
    tree.write(path)


def main() -> int:
    build()
    shutil.rmtree(REPORTS, ignore_errors=True)
    REPORTS.mkdir()
    REPORTS.chmod(0o1777)  # the server is not root when it writes
    arguments = sys.argv[1:] or SUITES
    junit = os.environ.get("JUNIT_XML", "")
    case = os.environ.get("TEST_CASE", "")
    command = [str(ROOT / "build/venv/bin/python"), "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider",
               "-c", "tests/pytest.ini", *([f"--junitxml={junit}"] if junit else []),
               *(["-k", case] if case else []), *arguments]
    code = subprocess.run(command, cwd=ROOT, env=environment()).returncode
    found = findings()
    for name, text in found:
        print(f"\n{name}\n{text}")
    if junit:
        add_to_report(junit, found)
    print(f"| {len(found)} reports of AddressSanitizer, LeakSanitizer and UndefinedBehaviorSanitizer")
    return code or (1 if found else 0)


if __name__ == "__main__":
    sys.exit(main())
