"""tests/sanitizers/line_coverage.py: what it makes of llvm-cov's answer, and that it counts real programs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "sanitizers"))
import line_coverage as coverage  # noqa: E402

SOURCE = Path("/checkout/src")

PROGRAM = """
#include <cstdio>
#include <cstdlib>
#include <unistd.h>
int main(int count, char**) {
  if (count > 1) {
    std::puts("more");
  }
  std::puts("counting");
  std::fflush(stdout);
  pause();
}
"""


def export(*files: tuple[str, int, int]) -> dict:
    return {"data": [{"files": [{"filename": name, "summary": {"lines": {"count": count, "covered": covered}}}
                                for name, covered, count in files]}]}


def test_lines_are_counted_by_module_and_together():
    files = coverage.by_file(export(("/checkout/src/base/fd.cc", 90, 100), ("/checkout/src/base/fd.h", 0, 20),
                                    ("/checkout/src/http/server.cc", 80, 80)), SOURCE)
    verdicts = {verdict.name: verdict for verdict in coverage.judge(files)}
    assert list(verdicts) == ["base", "http", "all"]
    assert verdicts["base"].lines == coverage.Lines(90, 120)
    assert verdicts["all"].lines == coverage.Lines(170, 200)
    assert str(verdicts["base"]) == "base        75.0 % of    120 lines covered"
    assert not any(verdict.failure for verdict in verdicts.values())


def test_what_is_not_the_product_is_left_out():
    files = coverage.by_file(export(("/checkout/src/base/fd_test.cc", 1, 1), ("/checkout/src/store/testing.h", 1, 1),
                                    ("/checkout/src/work/fake_workshop.h", 1, 1), ("/usr/include/fmt/core.h", 1, 1),
                                    ("/checkout/build-asan/src/cli/page.cc", 1, 1),
                                    ("/checkout/src/engine/test_support.cc", 1, 1),
                                    ("/checkout/src/work/latest.cc", 1, 1)), SOURCE)
    assert list(files) == ["work/latest.cc"]


@pytest.mark.parametrize("covered, fails", [(69, ["base", "all"]), (70, ["all"]), (79, ["all"]), (80, [])])
def test_a_module_has_a_floor_and_all_together_a_higher_one(covered: int, fails: list[str]):
    verdicts = coverage.judge({"base/fd.cc": coverage.Lines(covered, 100)})
    assert [verdict.name for verdict in verdicts if verdict.failure] == fails


def test_the_largest_holes_are_named_first():
    files = {"a/small.cc": coverage.Lines(0, 5), "a/large.cc": coverage.Lines(10, 100), "a/whole.cc": coverage.Lines(9, 9)}
    assert coverage.worst(files, 3) == ["a/large.cc: 90 of 100 lines not covered", "a/small.cc: 5 of 5 lines not covered"]


def test_a_killed_program_has_counted(tmp_path: Path):
    """Compiled as cmake/caisson.cmake says; run twice, each time ended by force."""
    source = tmp_path / "src/base"
    source.mkdir(parents=True)
    (source / "waits.cc").write_text(PROGRAM)
    program = tmp_path / "waits"
    subprocess.run(["clang++-19", "-O1", "-fprofile-instr-generate", "-fcoverage-mapping", "-mllvm",
                    "-runtime-counter-relocation", "-o", str(program), str(source / "waits.cc")], check=True, timeout=60)
    profiles = tmp_path / "profiles"
    environment = dict(os.environ, LLVM_PROFILE_FILE=coverage.prepare(profiles))

    def run_and_kill(*arguments: str) -> coverage.Lines:
        with subprocess.Popen([str(program), *arguments], env=environment, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            while process.stdout.readline() != "counting\n":
                pass
            process.send_signal(signal.SIGKILL)
        return coverage.by_file(coverage.measure(profiles, [program], tmp_path), tmp_path / "src")["base/waits.cc"]

    first = run_and_kill()
    assert 0 < first.covered < first.count
    again = run_and_kill("more")
    assert again.covered == again.count == first.count
