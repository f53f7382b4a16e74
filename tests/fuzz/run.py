#!/usr/bin/env python3
"""Builds the fuzzers and runs each for a while. ./test fuzz calls this; by hand:

    tests/fuzz/run.py [--seconds N] [--jobs N] [WORD...]     only targets whose name contains a WORD

In the gate each runs its seeds and then as many inputs as always, made of them by the same dice: what
passed yesterday passes today. With seconds (60 in `./test full fuzz`) the search is random; inputs that
reach new code are then kept in build-asan/corpus, so that a later run goes on where this one ended.

An input that breaks something is kept in build/test-results/fuzz; the report says how to run
it again, and it belongs into tests/fuzz/corpus once the mistake is mended.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from runner import sanitized  # noqa: E402
from runner.sanitized import TREE as BUILD  # noqa: E402
from runner.suites import ROOT  # noqa: E402

HERE = ROOT / "tests/fuzz"
ARTIFACTS = ROOT / "build/test-results/fuzz"

DICTIONARIES = {"http": "http.dict", "gateway": "http.dict", "git_broker": "http.dict", "connect": "json.dict", "e2b_body": "json.dict",
                "envd": "json.dict", "engine": "json.dict", "saved": "json.dict",
                "build_files": "json.dict", "build_project": "json.dict", "build_answer": "json.dict"}
RUNS = 20_000  # of each in the gate
FULL_SECONDS = 60
# What a single input may take: time shows what is quadratic, memory what trusts a length it was told.
BOUNDS = ("-timeout=5", "-malloc_limit_mb=64", "-rss_limit_mb=1024", "-max_len=32768")


@dataclass
class Finding:
    target: str
    failure: str = ""
    figures: str = ""


def targets() -> list[str]:
    return re.findall(r"^caisson_fuzzer\((\w+)\)", (HERE / "CMakeLists.txt").read_text(), re.MULTILINE)


def describe(log: str) -> str:
    """The last line of counters, in words."""
    done = re.findall(r"^#(\d+)\s+DONE\s+cov: (\d+) ft: (\d+) corp: (\d+)/\S+ .*exec/s: (\d+) rss: (\d+)Mb", log,
                      re.MULTILINE)
    if not done:
        return ""
    runs, edges, features, corpus, rate, memory = done[-1]
    return (f"{int(runs):>10,} executions, {int(rate):>7,}/s, {edges:>5} edges, {features:>6} features, "
            f"corpus {corpus:>4}, {memory} MB")


def run(name: str, seconds: int, found: Path) -> Finding:
    """`seconds`: of random search; 0 is what the gate does. Into `found` goes what reaches new code."""
    (found / name).mkdir(parents=True, exist_ok=True)
    program = BUILD / "fuzz" / f"fuzz_{name}"
    extent = [f"-max_total_time={seconds}"] if seconds else [f"-runs={RUNS}", "-seed=1"]
    command = [str(program), *extent, *BOUNDS, "-print_final_stats=1",
               f"-artifact_prefix={ARTIFACTS}/{name}-", str(found / name), str(HERE / "corpus" / name)]
    command += [f"-dict={HERE / file}" for prefix, file in DICTIONARIES.items() if name.startswith(prefix)]
    environment = dict(os.environ, ASAN_OPTIONS="quarantine_size_mb=32:allocator_may_return_null=0",
                       UBSAN_OPTIONS="print_stacktrace=1", ASAN_SYMBOLIZER_PATH="/usr/bin/llvm-symbolizer-19",
                       LLVM_PROFILE_FILE="/dev/null")  # what a fuzzer reaches, no test has looked at
    log_path = ARTIFACTS / f"{name}.log"
    with open(log_path, "wb") as log:
        try:
            code = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
                                  timeout=seconds + 600).returncode
        except subprocess.TimeoutExpired:
            code = -1
    text = log_path.read_text(errors="replace")
    if code == 0:
        return Finding(name, figures=describe(text))
    written = re.findall(r"Test unit written to (\S+)", text)
    again = f"{program.relative_to(ROOT)} {written[-1]}" if written else "there is no input to repeat"
    end = "\n".join(text.splitlines()[-60:])
    return Finding(name, failure=f"exit code {code}; to see it again: {again}\nlog: {log_path}\n{end}")


def write_report(path: str, findings: list[Finding]) -> None:
    suite = ElementTree.Element("testsuite", name="fuzz")
    for finding in findings:
        case = ElementTree.SubElement(suite, "testcase", classname="fuzz", name=finding.target)
        if finding.failure:
            printable = re.sub(r"[^\t\n\x20-\x7e]", "?", finding.failure)
            ElementTree.SubElement(case, "failure", message="the fuzzer found something").text = printable
    ElementTree.ElementTree(suite).write(path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    full = FULL_SECONDS if os.environ.get("TEST_SIZE") == "full" else 0
    parser.add_argument("--seconds", type=int, default=int(os.environ.get("FUZZ_SECONDS") or full))
    parser.add_argument("--jobs", type=int, default=2 * (os.cpu_count() or 1))
    parser.add_argument("words", nargs="*", default=[word for word in [os.environ.get("TEST_CASE")] if word])
    options = parser.parse_args()
    names = [name for name in targets() if not options.words or any(word in name for word in options.words)]
    sanitized.build(*(f"fuzz_{name}" for name in names))
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as thrown_away, ThreadPoolExecutor(options.jobs) as pool:
        found = BUILD / "corpus" if options.seconds else Path(thrown_away)
        findings = list(pool.map(lambda name: run(name, options.seconds, found), names))
    for finding in findings:
        print(f"| {finding.target:15} {finding.figures or finding.failure.splitlines()[0]}")
    if os.environ.get("JUNIT_XML"):
        write_report(os.environ["JUNIT_XML"], findings)
    return 1 if any(finding.failure for finding in findings) or not findings else 0


if __name__ == "__main__":
    sys.exit(main())
