"""The repository checks itself: layers, sizes, words that may not appear, formatting."""

import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.quick

# Bottom up: a module may include itself and what stands before it.
LAYERS = ["base", "http", "envd", "sdk", "store", "events", "engine", "sandbox", "flow", "git", "forge",
          "account", "work", "session", "build", "terminal", "gateway", "e2b", "api", "mcp", "cli"]
# envd is a program of its own: only tests, which start it, include it, and it sees base and http only.
ALLOWED = {name: set(LAYERS[: i + 1]) - {"envd"} for i, name in enumerate(LAYERS)}
ALLOWED["envd"] = {"base", "http", "envd"}
# store and engine are neighbours, not a stack.
ALLOWED["engine"] -= {"store", "http", "sdk", "events"}
ALLOWED["store"] -= {"http", "sdk"}
ALLOWED["flow"] -= {"engine", "sandbox"}
ALLOWED["git"] -= {"store", "events", "engine", "sandbox", "flow"}
ALLOWED["forge"] -= {"store", "events", "engine", "sandbox", "flow", "git", "sdk"}
ALLOWED["account"] -= {"engine", "sandbox", "flow", "git", "forge", "sdk"}

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
        is_test = file.name.startswith("test_") or file.stem.endswith("_test")
        allowed = ALLOWED[module] | ({"envd"} if is_test else set())
        for used in re.findall(r'#include "([a-z0-9_]+)/', file.read_text()):
            if used in LAYERS and used not in allowed:
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


def server_code(*modules):
    """Sources without tests and what only tests use."""
    helpers = re.compile(r"_test\.cc$|_fixture\.h$|test_support|^fake_|_test_program")
    return [f for f in sources() if not helpers.search(f.name)
            and (not modules or f.relative_to(ROOT / "src").parts[0] in modules)]


def matches(files, pattern):
    wanted = re.compile(pattern)
    return [f"{f.relative_to(ROOT)}: {found.group(0)}" for f in files for found in [wanted.search(f.read_text())] if found]


def test_calls_to_sandboxes_do_not_block():
    """They are coroutines on one thread: none is put on another, none waits in the kernel."""
    modules = ("sdk", "sandbox", "git", "forge", "work", "session", "build", "e2b", "api")
    blocking = (r"\b(RunBlocking|thread_pool|use_future|sleep_for|usleep|getaddrinfo|popen)\b"
                r"|std::(jthread|thread|async|future|promise)\b|[^\w.>](connect|recv|poll|select|system)\((?!\))")
    assert len(server_code(*modules)) > 100
    assert not matches(server_code(*modules), blocking)


def test_what_the_first_pipeline_got_wrong_stays_out():
    """A preview has the port of its framework, a change of a file is `new_content`, and what is behind
    a sandbox is reached by public calls of its provider."""
    assert not matches(server_code(), r"\b8080\b")
    # file_change.cc refuses it by name; messages of a chat (llm_*) have one.
    readers = [f for f in server_code("build") if f.stem != "file_change" and not f.stem.startswith("llm_")]
    assert not matches(readers, r'"content"')
    above = server_code("work", "session", "build")
    assert not matches(above, r'#include "(engine/|sandbox/manager\.h)')


def test_the_environment_is_not_a_place_for_users_keys():
    """It is of the whole process: only the programs' own start writes to it."""
    allowed = {"src/engine/program.cc", "src/cli/privileges.cc"}
    wrong = matches(server_code(), r"\b(setenv|putenv|clearenv)\b")
    assert not [one for one in wrong if one.split(":")[0] not in allowed]


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


def test_requirements_are_shown_by_what_exists():
    """Every path in docs/requirements.md is in the tree; `*` may stand for some of a name."""
    text = (ROOT / "docs/requirements.md").read_text()
    paths = set(re.findall(r"`((?:src|tests|tools|docs|web|examples|benchmarks)/[^`\s]+)`", text))
    assert len(paths) > 50
    wrong = [path for path in sorted(paths) if not list(ROOT.glob(path))]
    assert not wrong, wrong


# What a provider's key looks like, and what marks one that somebody made up for a test.
KEYS = re.compile(r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|e2b_[0-9a-f]{40}|AKIA[0-9A-Z]{16}|glpat-[\w-]{20,}"
                  r"|sk-[A-Za-z0-9_-]{32,}|-----BEGIN [A-Z ]*PRIVATE KEY-----\\?n?[A-Za-z0-9+/]{16,}")
INVENTED = re.compile(r"0123456789|EXAMPLE|Planted|(.)\1{15}", re.IGNORECASE)


def test_no_keys_in_the_tree():
    found = [f"{f.relative_to(ROOT)}: {key[:12]}…" for f in tracked()
             for key in (m.group() for m in KEYS.finditer(f.read_text(errors="replace")))
             if not INVENTED.search(key)]
    assert not found, found
    planted = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0" + "xYz"
    assert KEYS.search(planted) and not INVENTED.search(planted)


def test_settings_are_documented():
    """Every setting is explained in docs/, but those that only tests have."""
    without = {"overlay_by_path", "engine_fail_at"}
    names = set(re.findall(r"FIELD\((\w+)\),", (ROOT / "src/base/config.cc").read_text())) - without
    text = "\n".join(f.read_text() for f in (ROOT / "docs").glob("*.md"))
    borrowed = set(re.findall(r'std::pair\{"(\w+)"', (ROOT / "src/base/config.cc").read_text()))
    assert len(names) > 150 and len(borrowed) > 5
    missing = [name for name in sorted(names | borrowed) if f"`{name}" not in text and f"{name}`" not in text]
    assert not missing, missing


def test_the_client_library_is_documented():
    """S3-167: every header says what it is for, and is compiled with warnings about its comments."""
    headers = [f for f in sources() if f.parent == ROOT / "src/sdk" and f.suffix == ".h" and f.name != "test_support.h"]
    assert len(headers) > 5
    assert not [f.name for f in headers if not f.read_text().startswith("// ")]
    compiled = (ROOT / "src/sdk/documentation.cc").read_text()
    assert not [f.name for f in headers if f'#include "sdk/{f.name}"' not in compiled]
    assert "-Wdocumentation" in (ROOT / "src/sdk/CMakeLists.txt").read_text()


def test_formatting():
    names = [str(f) for f in sources() + [f for f in tracked(".cc") if f.parent == ROOT / "examples"]]
    done = subprocess.run(["clang-format-19", "--dry-run", "-Werror", *names],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:2000]
