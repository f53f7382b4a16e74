"""tests/run.py must count honestly: crashes, timeouts, leftovers and empty suites are failures."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

RUNNER = Path(__file__).resolve().parents[1] / "run.py"

GTEST_LOG = """[ RUN      ] A.Good
[       OK ] A.Good (1 ms)
[ RUN      ] A.Bad
[  FAILED  ] A.Bad (2 ms)
[ RUN      ] A.Crashing
"""

JUNIT = """<testsuites><testsuite>
<testcase classname="A" name="good"/>
<testcase classname="A" name="bad"><failure message="short">why it is bad</failure></testcase>
<testcase classname="A" name="broken"><error message="fixture"/></testcase>
<testcase classname="A" name="later"><skipped message="not now"/></testcase>
<testcase classname="A" name="disabled" status="notrun"/>
<testsuite><testcase name="nested"/></testsuite>
</testsuite></testsuites>"""


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    spec = importlib.util.spec_from_file_location("caisson_test_runner", RUNNER)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "RESULTS", tmp_path)
    return module


def run(runner, script: str, kind: str = "node", deadline: int = 20, quick: bool = False):
    suite = runner.Suite("sample", kind, ("bash", "-c", script), deadline)
    return runner.run_suite(suite, "", quick, dict(os.environ))


@pytest.mark.quick
def test_counts_every_kind_of_case(runner) -> None:
    outcome = run(runner, f"cat > $JUNIT_XML <<'X'\n{JUNIT}\nX")
    assert (outcome.passed, len(outcome.failed), len(outcome.skipped)) == (2, 2, 2)
    assert outcome.failed[0] == ("A.bad", "why it is bad")
    assert outcome.summary() == "2 passed, 2 failed, 2 skipped"


@pytest.mark.quick
def test_a_crash_is_a_failure_with_the_case_that_was_running(runner) -> None:
    outcome = run(runner, f"printf '%s' '{GTEST_LOG}'; kill -SEGV $$", kind="gtest")
    assert outcome.passed == 1
    assert [name for name, _ in outcome.failed] == ["A.Bad", "A.Crashing"]
    assert "SIGSEGV" in outcome.failed[1][1]


SAMPLE = """import pathlib, pytest
def test_bad(): assert False, "always"
@pytest.mark.parametrize("n", [1, 2])
def test_once(n):
    seen = pathlib.Path(__file__).with_name(f"seen{n}")
    first = not seen.exists()
    seen.touch()
    assert not first, "only the first time"
"""


@pytest.fixture
def sample(runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Runs a suite of which one case fails always and two fail the first time."""
    monkeypatch.setattr(runner, "ROOT", tmp_path)
    monkeypatch.setattr(runner, "PYTEST", (sys.executable, "-m", "pytest", "-c", "tests/pytest.ini"))
    folder = tmp_path / "tests/sample"
    folder.mkdir(parents=True)
    (folder / "test_some.py").write_text(SAMPLE)
    (tmp_path / "tests/pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n")

    def ran(**fields: object):
        suite = runner.Suite("sample", "pytest", (*runner.PYTEST, "tests/sample"), 60, **fields)
        outcome = runner.run_suite(suite, "", False, dict(os.environ))
        runner.run_again(suite, outcome, dict(os.environ))
        return outcome

    return ran


def test_what_fails_once_is_unsteady_and_told(sample, runner) -> None:
    outcome = sample(again=runner.PYTEST)
    assert [name for name, _ in outcome.unsteady] == ["sample.test_some.test_once[1]", "sample.test_some.test_once[2]"]
    assert "only the first time" in outcome.unsteady[0][1]
    assert outcome.summary() == "2 passed, 1 failed, 2 unsteady"


def test_a_suite_that_says_nothing_is_run_once(sample) -> None:
    assert sample().summary() == "0 passed, 3 failed"


def test_many_failures_are_no_accident(sample, runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "MOST_AGAIN", 2)
    assert sample(again=runner.PYTEST).summary() == "0 passed, 3 failed"


def test_success_without_a_report_is_a_failure(runner) -> None:
    outcome = run(runner, "true")
    assert outcome.passed == 0 and len(outcome.failed) == 1


def test_a_bad_exit_after_good_cases_is_a_failure(runner) -> None:
    outcome = run(runner, "echo '<t><testcase name=\"a\"/></t>' > $JUNIT_XML; exit 4")
    assert outcome.passed == 1 and "exit code 4" in outcome.failed[0][1]


def test_no_case_at_all_is_a_failure(runner) -> None:
    outcome = run(runner, "echo '<t/>' > $JUNIT_XML")
    assert outcome.failed == [("(whole suite)", "ran no test")]


def test_a_deadline_stops_the_whole_suite(runner) -> None:
    outcome = run(runner, "sleep 600", deadline=1)
    assert len(outcome.failed) == 1 and "deadline of 1 s" in outcome.failed[0][1]


def test_processes_left_behind_are_killed_and_told(tmp_path: Path) -> None:
    # In a process of its own: becoming a subreaper must not change this one.
    script = (
        "import ctypes, importlib.util, os, pathlib, sys\n"
        f"spec = importlib.util.spec_from_file_location('runner', {str(RUNNER)!r})\n"
        "m = importlib.util.module_from_spec(spec); sys.modules['runner'] = m; spec.loader.exec_module(m)\n"
        "ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\n"
        f"m.RESULTS = pathlib.Path({str(tmp_path)!r})\n"
        "s = m.Suite('s', 'node', ('bash', '-c', 'setsid sleep 4242 & echo \"<testcase/>\" > $JUNIT_XML'), 20)\n"
        "o = m.run_suite(s, '', False, dict(os.environ))\n"
        "print(o.passed, o.failed[0][1].splitlines()[1].split(' ', 1)[1], len(m.children()))\n")
    done = subprocess.run([sys.executable, "-c", script], text=True, stdout=subprocess.PIPE, timeout=50, check=True)
    assert done.stdout == "1 sleep 4242 0\n"


@pytest.mark.quick
def test_filters_choose_suites_and_cases(runner) -> None:
    suites = [runner.Suite("base_test", "gtest", (), 1, quick=True), runner.Suite("node-e2b", "node", (), 1)]
    assert [s.name for s, _ in runner.select(suites, [], quick=True)] == ["base_test"]
    assert [(s.name, c) for s, c in runner.select(suites, ["node:list"], quick=False)] == [("node-e2b", "list")]
    assert runner.select(suites, ["nothing"], quick=False) == []


@pytest.mark.quick
def test_figures_of_a_suite_are_kept(runner) -> None:
    outcome = run(runner, "echo '| 5 runs'; echo other; echo '<t><testcase name=\"a\"/></t>' > $JUNIT_XML", kind="script")
    assert outcome.figures == ["| 5 runs"] and outcome.passed == 1


def test_a_fuzzer_has_seeds_and_time(runner) -> None:
    folder = RUNNER.parent / "fuzz"
    targets = re.findall(r"^caisson_fuzzer\((\w+)\)", (folder / "CMakeLists.txt").read_text(), re.MULTILINE)
    assert len(targets) >= 15
    for target in targets:
        assert any((folder / "corpus" / target).iterdir()), target
    assert runner.fuzz_suite(60).deadline > 60 * len(targets) / 2
