"""How many lines of src/ the sanitizer suite runs, module by module.

The programs of build-asan count while they run. Their counters lie in a mapped file, one per
program, so neither a `kill -9` nor the engine's way to end (`_exit`) loses any. envd counts only in
its unit tests: inside a sandbox it cannot reach the file. What follows a fork() in the same function
may count as not run, because both processes count in the same place; those are few lines.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

TOTAL = 80  # per cent of the lines of all modules together,
FLOOR = 70  # and of each
# What stands beside the code only for tests of it.
OF_TESTS = re.compile(r"(_test|testing|/test_\w+|/fake_\w+)\.(cc|h)$")


@dataclass
class Lines:
    covered: int = 0
    count: int = 0

    def add(self, covered: int, count: int) -> None:
        self.covered += covered
        self.count += count

    @property
    def percent(self) -> float:
        return 100 * self.covered / self.count if self.count else 100


@dataclass
class Verdict:
    name: str
    lines: Lines
    floor: int

    @property
    def failure(self) -> str:
        if self.lines.percent >= self.floor:
            return ""
        return f"{self.lines.percent:.1f} % of the lines are covered; at least {self.floor} % have to be"

    def __str__(self) -> str:
        return f"{self.name:10} {self.lines.percent:5.1f} % of {self.lines.count:>6,} lines covered"


def prepare(profiles: Path) -> str:
    """Empties the folder; the value of LLVM_PROFILE_FILE that fills it."""
    shutil.rmtree(profiles, ignore_errors=True)
    profiles.mkdir()
    profiles.chmod(0o1777)  # some programs are not root when they start
    return f"{profiles}/%m%c.profraw"  # one per program, counted in place


def measure(profiles: Path, programs: list[Path], build: Path) -> dict:
    """What llvm-cov knows of the programs after they ran. They were compiled in `build`."""
    merged = profiles / "all.profdata"
    raw = [str(path) for path in sorted(profiles.glob("*.profraw"))]
    subprocess.run(["llvm-profdata-19", "merge", "--sparse", "--failure-mode=all", "-o", str(merged), *raw],
                   check=True, timeout=300)
    objects = [word for program in programs[1:] for word in ("--object", str(program))]
    exported = subprocess.run(["llvm-cov-19", "export", "--summary-only", f"--compilation-dir={build}",
                               f"--instr-profile={merged}", str(programs[0]), *objects],
                              check=True, timeout=600, stdout=subprocess.PIPE)
    return json.loads(exported.stdout)


def by_file(export: dict, source: Path) -> dict[str, Lines]:
    """Files of the product below `source`: no tests, nothing generated, no library."""
    found: dict[str, Lines] = {}
    for file in export["data"][0]["files"]:
        path = Path(file["filename"])
        if path.is_relative_to(source) and not OF_TESTS.search(file["filename"]):
            lines = file["summary"]["lines"]
            found[str(path.relative_to(source))] = Lines(lines["covered"], lines["count"])
    return found


def judge(files: dict[str, Lines]) -> list[Verdict]:
    """Each module, and all of them as `all`."""
    modules: dict[str, Lines] = {}
    total = Lines()
    for name, lines in files.items():
        modules.setdefault(Path(name).parts[0], Lines()).add(lines.covered, lines.count)
        total.add(lines.covered, lines.count)
    verdicts = [Verdict(name, lines, FLOOR) for name, lines in sorted(modules.items())]
    return [*verdicts, Verdict("all", total, TOTAL)]


def worst(files: dict[str, Lines], count: int) -> list[str]:
    """The files with the most lines that nothing ran."""
    missed = sorted(files.items(), key=lambda item: item[1].covered - item[1].count)
    return [f"{name}: {lines.count - lines.covered} of {lines.count} lines not covered"
            for name, lines in missed[:count] if lines.covered < lines.count]
