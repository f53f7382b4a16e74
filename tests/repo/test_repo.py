"""The repository checks itself: layers, sizes, words that may not appear, formatting."""

import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.quick

# Bottom up: a module may include itself and what stands before it.
LAYERS = ["base", "http", "envd", "store", "engine", "sandbox", "gateway", "e2b", "api", "cli"]
# envd is a program of its own: nobody includes it, and it sees base and http only.
ALLOWED = {name: set(LAYERS[: i + 1]) - {"envd"} for i, name in enumerate(LAYERS)}
ALLOWED["envd"] = {"base", "http", "envd"}
# store and engine are neighbours, not a stack.
ALLOWED["engine"] -= {"store", "http"}
ALLOWED["store"] -= {"http"}

MAX_LINES = {".h": 300, ".cc": 600, ".py": 500, ".mjs": 500, ".ts": 500}


def tracked(*suffixes):
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    files = [ROOT / n for n in names if n]
    return [f for f in files if f.is_file() and (not suffixes or f.suffix in suffixes)]


def sources():
    return [f for f in tracked(".h", ".cc") if f.is_relative_to(ROOT / "src")]


def test_includes_point_down():
    wrong = []
    for file in sources():
        module = file.relative_to(ROOT / "src").parts[0]
        for used in re.findall(r'#include "([a-z0-9_]+)/', file.read_text()):
            if used in LAYERS and used not in ALLOWED[module]:
                wrong.append(f"{file.relative_to(ROOT)} includes {used}/")
    assert not wrong, wrong


def test_beast_stays_in_http():
    allowed = {ROOT / "src/base/boost.cc"}
    wrong = [str(f.relative_to(ROOT)) for f in sources()
             if "boost/beast" in f.read_text() and f not in allowed
             and not f.is_relative_to(ROOT / "src/http")]
    assert not wrong, wrong


def test_sql_stays_in_store():
    wrong = [str(f.relative_to(ROOT)) for f in sources()
             if "sqlite3.h" in f.read_text() and not f.is_relative_to(ROOT / "src/store")]
    assert not wrong, wrong


def test_files_stay_small():
    wrong = []
    for file in tracked(*MAX_LINES):
        lines = len(file.read_text(errors="replace").splitlines())
        if lines > MAX_LINES[file.suffix]:
            wrong.append(f"{file.relative_to(ROOT)}: {lines} lines, at most {MAX_LINES[file.suffix]}")
    assert not wrong, wrong


def test_no_leftovers():
    banned = re.compile(r"\b(FIXME|XXX|HACK)\b|TODO(?!\()")
    here = pathlib.Path(__file__).resolve()
    wrong = [str(f.relative_to(ROOT)) for f in tracked(".h", ".cc", ".py", ".mjs", ".md", ".sh")
             if f != here and banned.search(f.read_text(errors="replace"))]
    assert not wrong, wrong


def test_cc_files_are_built():
    """A source that no CMakeLists names is dead."""
    lists = "\n".join(f.read_text() for f in (ROOT / "src").rglob("CMakeLists.txt"))
    wrong = [str(f.relative_to(ROOT)) for f in sources()
             if f.suffix == ".cc" and not re.search(rf"\b{re.escape(f.name)}\b", lists)]
    assert not wrong, wrong


def test_links_in_documents_lead_somewhere():
    wrong = []
    for file in tracked(".md"):
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", file.read_text()):
            if not (file.parent / target).exists():
                wrong.append(f"{file.relative_to(ROOT)} -> {target}")
    assert not wrong, wrong


def test_formatting():
    names = [str(f) for f in sources()]
    done = subprocess.run(["clang-format-19", "--dry-run", "-Werror", *names],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:2000]
