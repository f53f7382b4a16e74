"""Which suites there are, how each is started, and how a single case of it is."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
VENV = BUILD / "venv"

PYTEST = (str(VENV / "bin/python"), "-m", "pytest", "-p", "no:cacheprovider", "-c", "tests/pytest.ini")
# Of what suites with a server cannot count (envd is out of reach inside its sandbox) or cannot bring about.
SANITIZED_TESTS = ("envd_test",)
SANITIZED = ("caisson", "caisson-envd", *SANITIZED_TESTS)
SILENCE_S = 300  # in which at least one case of a suite ends


@dataclass(frozen=True)
class Suite:
    """One program. `kind` says how its cases are counted and how a case is selected.

    gtest | pytest | node | vitest | script (any program that puts a JUnit report at $JUNIT_XML)"""

    name: str
    kind: str
    command: tuple[str, ...]
    quick: bool = False  # has a part that `./test quick` runs
    node: bool = False  # needs node and npm
    whole_host: bool = False  # counts things of the whole host, or burdens it: no suite runs beside it
    silence: int = SILENCE_S
    # What runs single cases when their names follow; without it a failed case has had its one chance.
    alone: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict, hash=False)
    sanitized: tuple[str, ...] = ()  # targets of build-asan, built before any suite runs


def workers(count: int, dist: str = "worksteal") -> tuple[str, ...]:
    """pytest on so many processes. Much of what they do is waiting, so there are more of them than CPUs; who has
    nothing left takes from the others, so that no suite ends with one process at work."""
    return (*PYTEST, "-n", str(count), "--dist", dist)


# Losses are never unsteady: integrity has no second opinion.
SUITES = [
    Suite("repo", "pytest", (*PYTEST, "tests/repo"), quick=True, alone=PYTEST),
    Suite("tools", "pytest", (*PYTEST, "tests/tools"), quick=True, alone=PYTEST),
    Suite("sdk-python", "pytest", (*workers(4), "tests/sdk/python"), quick=True, alone=PYTEST),
    Suite("e2e", "pytest", (*workers(6), "tests/e2e"), quick=True, alone=PYTEST),
    Suite("forge", "pytest", (*workers(2, "loadgroup"), "tests/forge"), quick=True, alone=PYTEST, node=True),
    Suite("work", "pytest", (*workers(6), "tests/work"), quick=True, alone=PYTEST),
    Suite("api", "pytest", (*workers(3), "tests/api"), quick=True, alone=PYTEST),
    Suite("web", "vitest", ("web/test",), quick=True, node=True, alone=("web/test",)),
    Suite("page", "pytest", (*workers(2), "tests/page"), quick=True, alone=PYTEST),
    Suite("integrity", "pytest", (*workers(3), "tests/integrity"), whole_host=True, silence=900),
    Suite("attack", "pytest", (*workers(2, "loadfile"), "tests/attack"), whole_host=True, alone=PYTEST),
]


def gtest_suites() -> list[Suite]:
    """Every gtest program that CMake registered. Those labelled `unit` are the quick ones."""
    shown = subprocess.run(["ctest", "--test-dir", str(BUILD), "--show-only=json-v1"], text=True,
                           stdout=subprocess.PIPE, timeout=60, check=True).stdout
    suites = []
    for test in json.loads(shown)["tests"]:
        properties = {item["name"]: item["value"] for item in test.get("properties", [])}
        unit = (properties.get("LABELS") or ["unit"])[0] == "unit"
        command = tuple(test.get("command") or [f"{test['name']} is registered but not built"])
        suites.append(Suite(test["name"], "gtest", command, quick=unit, alone=command))
    return suites


def node_suites() -> list[Suite]:
    """Folders of tests/sdk/node with a run.sh, which puts its JUnit report at $JUNIT_XML."""
    scripts = sorted((ROOT / "tests/sdk/node").glob("*/run.sh"))
    return [Suite(f"node-{script.parent.name}", "node", (str(script),), node=True, alone=(str(script),))
            for script in scripts]


def script_suites() -> list[Suite]:
    """The builds with sanitizers. What a fuzzer finds stays found: it has no second opinion."""
    sanitizers = ("tests/sanitizers/run.py",)
    return [Suite("fuzz", "script", ("tests/fuzz/run.py",), silence=1800, sanitized=("fuzzers",)),
            Suite("sanitizers", "script", sanitizers, alone=sanitizers, silence=1800, sanitized=SANITIZED)]


def all_suites() -> list[Suite]:
    return [*gtest_suites(), *SUITES, *node_suites(), *script_suites()]


def select(suites: list[Suite], filters: list[str], quick: bool) -> list[tuple[Suite, str]]:
    """Suites whose name contains a word of the filters, and the case that stands behind its colon."""
    chosen = []
    for suite in suites:
        if quick and not suite.quick:
            continue
        cases = [case for word, _, case in (f.partition(":") for f in filters) if word in suite.name]
        if cases or not filters:
            chosen.append((suite, cases[0] if cases else ""))
    return chosen


def node_of(name: str) -> str:
    """What pytest calls a case of the report: work.test_pause.test_x[1] is tests/work/test_pause.py::test_x[1]."""
    path, bracket, parameters = name.partition("[")
    words = path.split(".")
    for end in range(len(words) - 1, 0, -1):
        file = Path("tests", *words[:end]).with_suffix(".py")
        if (ROOT / file).is_file():
            return "::".join([str(file), *words[end:]]) + bracket + parameters
    return ""


def alone(suite: Suite, case: str, tag: str) -> Suite | None:
    """The suite with only this case of its report, or None if it cannot be started by itself."""
    if not suite.alone:
        return None
    name, command, environment = f"{suite.name}-{tag}", suite.alone, {}
    if suite.kind == "gtest":
        command = (*command, f"--gtest_filter={case}")
    elif suite.kind == "node":
        environment = {"TEST_CASE": f"^{re.escape(case.removeprefix('test.'))}$"}
    elif suite.kind == "vitest":
        command = (*command, "-t", f"{re.escape(case.partition('.ts.')[2].replace(' > ', ' '))}$")
    elif node := node_of(case):
        command = (*command, node)
    else:
        return None
    return Suite(name, suite.kind, command, silence=suite.silence, environment=environment)


def command_of(suite: Suite, case: str, quick: bool, report: Path) -> list[str]:
    command = list(suite.command)
    if suite.kind == "gtest":
        command.append(f"--gtest_output=xml:{report}")
        command += [f"--gtest_filter=*{case}*"] if case else []
    if suite.kind == "pytest":
        command.append(f"--junitxml={report}")
        command += ["-k", case] if case else []
        command += ["-m", "quick"] if quick else []
    if suite.kind == "vitest":
        command += ["-t", case] if case else []
    return command


def environment_of(suite: Suite, case: str, quick: bool, report: Path) -> dict[str, str]:
    return {**os.environ, "JUNIT_XML": str(report), "TEST_CASE": case, "TEST_QUICK": "1" if quick else "",
            **suite.environment}
