"""The runner must count honestly: crashes, silence, leftovers and empty suites are failures, and a second opinion
is for accidents only."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from runner import machine, opinion, program, suites
from runner.opinion import Failure
from runner.outcome import WHOLE, Outcome
from runner.program import OutOfTime, run_suite
from runner.suites import Suite

TESTS = Path(__file__).resolve().parents[1]
RUNNER = TESTS / "run.py"

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


@pytest.fixture(autouse=True)
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(program, "RESULTS", tmp_path)
    return tmp_path


def bash(script: str, kind: str = "node", **fields) -> Suite:
    return Suite("sample", kind, ("bash", "-c", script), **fields)


# ---- counting -------------------------------------------------------------------------------


@pytest.mark.quick
def test_counts_every_kind_of_case() -> None:
    outcome = run_suite(bash(f"cat > $JUNIT_XML <<'X'\n{JUNIT}\nX"))
    assert (outcome.passed, len(outcome.failed), len(outcome.skipped)) == (2, 2, 2)
    assert outcome.failed[0] == ("A.bad", "why it is bad")
    assert outcome.skipped == ["A.later: not now", "A.disabled"]
    assert outcome.summary() == "2 passed, 2 failed, 2 skipped"


@pytest.mark.quick
def test_a_crash_is_a_failure_with_the_case_that_was_running() -> None:
    outcome = run_suite(bash(f"printf '%s' '{GTEST_LOG}'; kill -SEGV $$", kind="gtest"))
    assert outcome.passed == 1
    assert [name for name, _ in outcome.failed] == ["A.Bad", "A.Crashing"]
    assert "SIGSEGV" in outcome.failed[1][1]


def test_success_without_a_report_is_a_failure() -> None:
    outcome = run_suite(bash("true"))
    assert outcome.passed == 0 and len(outcome.failed) == 1


def test_a_bad_exit_after_good_cases_is_a_failure() -> None:
    outcome = run_suite(bash("echo '<t><testcase name=\"a\"/></t>' > $JUNIT_XML; exit 4"))
    assert outcome.passed == 1 and "exit code 4" in outcome.failed[0][1]


def test_no_case_at_all_is_a_failure() -> None:
    assert run_suite(bash("echo '<t/>' > $JUNIT_XML")).failed == [(WHOLE, "ran no test")]


@pytest.mark.quick
def test_figures_of_a_suite_are_kept() -> None:
    outcome = run_suite(bash("echo '| 5 runs'; echo other; echo '<t><testcase name=\"a\"/></t>' > $JUNIT_XML"))
    assert outcome.figures == ["| 5 runs"] and outcome.passed == 1


@pytest.mark.quick
def test_filters_choose_suites_and_cases() -> None:
    known = [Suite("base_test", "gtest", (), quick=True), Suite("node-e2b", "node", ())]
    assert [s.name for s, _ in suites.select(known, [], quick=True)] == ["base_test"]
    assert [(s.name, c) for s, c in suites.select(known, ["node:list"], quick=False)] == [("node-e2b", "list")]
    assert suites.select(known, ["nothing"], quick=False) == []


# ---- ends -----------------------------------------------------------------------------------


def test_silence_stops_a_suite() -> None:
    outcome = run_suite(bash("sleep 600", silence=1))
    assert len(outcome.failed) == 1 and "was silent for too long" in outcome.failed[0][1]


def test_a_suite_that_goes_on_is_not_silent() -> None:
    talk = "for i in 1 2 3 4 5 6; do echo $i; sleep 0.6; done; echo '<t><testcase name=\"a\"/></t>' > $JUNIT_XML"
    assert run_suite(bash(talk, silence=2)).summary() == "1 passed, 0 failed"


def test_the_end_of_the_whole_run_stops_a_suite() -> None:
    with pytest.raises(OutOfTime):
        run_suite(bash("sleep 600"), until=0)


def test_processes_left_behind_are_killed_and_told(tmp_path: Path) -> None:
    # In a process of its own: becoming a subreaper must not change this one.
    script = (
        "import ctypes, pathlib, sys\n"
        f"sys.path.insert(0, {str(TESTS)!r})\n"
        "from runner import program\n"
        "from runner.suites import Suite\n"
        "ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\n"
        f"program.RESULTS = pathlib.Path({str(tmp_path)!r})\n"
        "program.ENDING_S = 1\n"
        "s = Suite('s', 'node', ('bash', '-c', 'setsid sleep 4242 & echo \"<testcase/>\" > $JUNIT_XML'))\n"
        "o = program.run_suite(s)\n"
        "print(o.passed, o.failed[0][1].splitlines()[1].split(' ', 1)[1], len(program.children()))\n")
    done = subprocess.run([sys.executable, "-c", script], text=True, stdout=subprocess.PIPE, timeout=50, check=True)
    assert done.stdout == "1 sleep 4242 0\n"


# ---- side by side ---------------------------------------------------------------------------

LANES = """import pathlib, signal, sys, time
sys.path.insert(0, "{tests}")
from runner import lanes, program
from runner.suites import Suite
program.RESULTS = pathlib.Path("{folder}")
program.ENDING_S = 1
begun = time.monotonic()
def suite(name, script, whole_host=False):
    return Suite(name, "node", ("bash", "-c", f"{{script}}; echo '<testcase/>' > $JUNIT_XML"), whole_host=whole_host), ""
def work(suite, case):
    return program.run_suite(suite, until=begun + 30)
def told(chosen, most):
    return [(one.suite.name, one.outcome.summary(), *(text for _, text in one.outcome.failed))
            for one in lanes.run_side_by_side(chosen, most, work)]
"""


def in_lanes(folder: Path, script: str) -> str:
    """What a program prints that runs suites side by side, in a process of its own."""
    whole = LANES.format(tests=TESTS, folder=folder) + script
    return subprocess.run([sys.executable, "-c", whole], text=True, stdout=subprocess.PIPE, timeout=60, check=True).stdout


@pytest.mark.quick
def test_suites_run_side_by_side(tmp_path: Path) -> None:
    """Two that wait for each other, and then one for itself, which finds nobody beside it."""
    wait = "touch {0}; until [ -e {1} ]; do sleep 0.05; done"
    said = in_lanes(tmp_path, f"""
a = suite("a", "cd {tmp_path}; {wait.format("one", "two")}")
b = suite("b", "cd {tmp_path}; {wait.format("two", "one")}; sleep 0.5; rm one two")
alone = suite("alone", "[ ! -e {tmp_path}/one ] && [ ! -e {tmp_path}/two ] || exit 5", whole_host=True)
print(sorted(one[:2] for one in told([alone, a, b], 2)[:2]), told([a, b, alone], 2)[2])
""")
    assert said == "[('a', '1 passed, 0 failed'), ('b', '1 passed, 0 failed')] ('alone', '1 passed, 0 failed')\n"


def test_each_lane_ends_only_what_its_own_suite_left_behind(tmp_path: Path) -> None:
    said = in_lanes(tmp_path, """
for one in sorted(told([suite("leaves", "setsid sleep 4242 & true"), suite("stays", "sleep 3 & wait $!")], 2)): print(one)
""")
    assert re.fullmatch(r"""\('leaves', '1 passed, 1 failed', 'left processes behind, now killed:\\n\d+ sleep 4242'\)
\('stays', '1 passed, 0 failed'\)
""", said), said


def test_a_lane_that_dies_is_a_failed_suite(tmp_path: Path) -> None:
    said = in_lanes(tmp_path, """
print(told([suite("deadly", "kill -KILL $PPID"), suite("other", "sleep 1")], 2))
""")
    assert "('deadly', '0 passed, 1 failed', 'the process that ran this suite died')" in said
    assert "('other', '1 passed, 0 failed')" in said


def test_who_has_enough_stops_what_is_under_way(tmp_path: Path) -> None:
    said = in_lanes(tmp_path, f"""
endless = suite("endless", "trap 'touch {tmp_path}/was-told' EXIT; touch {tmp_path}/began; sleep 4242")
all_ended = lanes.run_side_by_side([suite("quick", "until [ -e {tmp_path}/began ]; do sleep 0.1; done"), endless], 2, work)
print(next(all_ended).outcome.summary())
all_ended.close()
print(time.monotonic() - begun < 25, pathlib.Path("{tmp_path}/was-told").exists(), program.children())
""")
    assert said == "1 passed, 0 failed\nTrue True set()\n"


# ---- the second opinion ---------------------------------------------------------------------

SAMPLE = """import os, pathlib, pytest, time

def first(name):
    seen = pathlib.Path(__file__).with_name(name)
    was_there = seen.exists()
    seen.touch()
    return not was_there

def test_good(): pass
def test_always(): assert False, "always"
def test_once(): assert not first("once"), "only the first time"
@pytest.mark.parametrize("n", ["a b", "c[d]"])
def test_named(n): assert not first(f"named {n}"), "only the first time"

@pytest.fixture
def shaky_begin(): assert not first("begin"), "set-up"
def test_begin(shaky_begin): pass

@pytest.fixture
def shaky_end():
    yield
    assert not first("end"), "tear-down"
def test_end(shaky_end): pass

def test_canary(): assert not first("canary"), "the canary was touched"
@pytest.mark.timeout(1)
def test_hangs():
    if first("hangs"): time.sleep(60)
"""


@pytest.fixture
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """A suite of pytest in a tree of its own."""
    monkeypatch.setattr(program, "ROOT", tmp_path)
    monkeypatch.setattr(suites, "ROOT", tmp_path)
    folder = tmp_path / "tests/sample"
    folder.mkdir(parents=True)
    (folder / "test_some.py").write_text(SAMPLE)
    (tmp_path / "tests/pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n")
    command = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", "tests/pytest.ini")
    return Suite("sample", "pytest", (*command, "tests/sample"), alone=command)


def failures_of(suite: Suite) -> list[Failure]:
    return [Failure(suite, *failed) for failed in run_suite(suite).failed]


def test_what_fails_once_is_unstable(sample: Suite) -> None:
    failed = failures_of(sample)
    assert len(failed) == 8
    unstable = opinion.unstable_among(failed, run_suite)
    assert [one.case.removeprefix("sample.test_some.test_") for one in unstable] == [
        "once", "named[a b]", "named[c[d]]", "begin", "end", "hangs"]
    assert "only the first time" in unstable[0].text


def test_a_case_has_to_pass_twice(sample: Suite) -> None:
    answers = iter([Outcome(passed=1), Outcome(failed=[("x", "again")])])
    failure = Failure(sample, "sample.test_some.test_once", "E  no")
    assert opinion.unstable_among([failure], lambda _: next(answers)) == []
    assert opinion.unstable_among([failure], lambda _: Outcome(passed=1)) == [failure]
    assert opinion.unstable_among([failure], lambda _: Outcome()) == []


def test_many_failures_are_no_accident(sample: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opinion, "MOST", 7)
    assert opinion.unstable_among(failures_of(sample), run_suite) == []


@pytest.mark.parametrize("kind", ["gtest", "node"])
def test_what_crashes_or_hangs_has_no_second_opinion(kind: str, tmp_path: Path) -> None:
    script = f"[ -e {tmp_path}/seen ] && echo '<t><testcase name=\"a\"/></t>' > $JUNIT_XML && exit\n" \
             f"touch {tmp_path}/seen; printf '%s' '{GTEST_LOG.splitlines()[0]}'; kill -ABRT $$"
    suite = bash(script, kind=kind, alone=("bash", "-c", script))
    assert opinion.unstable_among(failures_of(suite), run_suite) == []


@pytest.mark.quick
@pytest.mark.parametrize("text", [
    "E  ServerError: the server ended with status -11", "E   AssertionError: not one envd each: ['i1']",
    "a sanitizer reported\nAddressSanitizer: heap-use-after-free", "E  envd_exited",
])
def test_grave_failures(text: str) -> None:
    suite = Suite("s", "pytest", ())
    assert Failure(suite, "s.test_x", text).grave
    assert not Failure(suite, "s.test_x", "E  assert 1 == 2\n" + text.replace("E ", "log: ")).grave
    assert Failure(suite, WHOLE, "").grave


@pytest.mark.quick
def test_selectors_are_exact() -> None:
    found = {
        kind: suites.alone(Suite("s", kind, ("x",), alone=("x",)), case, "again")
        for kind, case in [("gtest", "All/Both.Sort/0"), ("node", "test.a (b)"), ("vitest", "src/a.test.ts.page > goes")]}
    assert found["gtest"].command == ("x", "--gtest_filter=All/Both.Sort/0")
    assert re.fullmatch(found["node"].environment["TEST_CASE"], "a (b)")
    assert found["vitest"].command[1] == "-t" and re.search(found["vitest"].command[2], "page goes")
    assert suites.alone(Suite("fuzz", "script", ("x",)), "fuzz.gateway", "again") is None
    assert suites.node_of("tools.test_runner.test_selectors_are_exact") \
        == "tests/tools/test_runner.py::test_selectors_are_exact"


def test_unstable_cases_are_told_before_the_last_line(tmp_path: Path) -> None:
    script = (
        "import pathlib, sys\n"
        f"sys.path.insert(0, {str(TESTS)!r})\n"
        "import run\n"
        "from runner.suites import Suite\n"
        "r = run.Run(False, True)\n"
        "one = run.Failure(Suite('s', 'node', ('x',), alone=('x',)), 'test.shaky', 'why it was')\n"
        "r.passed, r.failed = 4, [one]\n"
        "run.run_suite = lambda suite, **_: run.Outcome(passed=1)\n"
        f"run.RESULTS = pathlib.Path({str(tmp_path)!r})\n"
        "r.second_opinion()\n"
        "sys.exit(r.tell())\n")
    done = subprocess.run([sys.executable, "-c", script], text=True, stdout=subprocess.PIPE, timeout=60, check=True)
    assert "UNSTABLE s: test.shaky\n  why it was" in done.stdout
    assert done.stdout.endswith("\n1 unstable\n5 passed, 0 failed\n")
    told = json.loads((tmp_path / "unstable.json").read_text())
    assert told == [{"suite": "s", "case": "test.shaky", "text": "why it was"}]


# ---- the rest -------------------------------------------------------------------------------


def test_slowness_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 1 <= machine.slowness() <= 4
    monkeypatch.setattr(machine, "measure", lambda: 100.0)
    assert machine.slowness() == 4


@pytest.mark.timeout(180)
def test_hunt_counts_the_failures_of_one_case() -> None:
    command = [sys.executable, str(RUNNER), "hunt", "tools:test_filters_choose_suites_and_cases", "--times", "2"]
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, timeout=150)
    assert done.returncode == 0 and done.stdout.endswith("\n2 passed, 0 failed\n"), done.stdout
    refused = subprocess.run([*command[:3], "tools"], text=True, stdout=subprocess.PIPE, timeout=60)
    assert refused.returncode == 2 and "hunt takes one SUITE:CASE" in refused.stdout


def test_every_fuzzer_has_seeds() -> None:
    folder = TESTS / "fuzz"
    targets = re.findall(r"^caisson_fuzzer\((\w+)\)", (folder / "CMakeLists.txt").read_text(), re.MULTILINE)
    assert len(targets) >= 15
    for target in targets:
        assert any((folder / "corpus" / target).iterdir()), target
