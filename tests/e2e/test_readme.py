"""The examples of the README, copied out of it word for word and run."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.cli import CLEAN, caisson
from support.rest import Rest
from support.server import free_port

ROOT = Path(__file__).resolve().parents[2]
NODE_SUITE = ROOT / "tests/sdk/node"


def block(language: str, containing: str) -> str:
    """The README's code block in `language` that contains a text."""
    blocks = re.findall(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    found = [b for b in blocks if containing in b]
    assert len(found) == 1, f"{len(found)} blocks of {language} with {containing!r}"
    return found[0]


def run(command: list[str], server, **more) -> str:
    done = subprocess.run(command, env={**os.environ, **server.sdk_environment}, cwd=ROOT,
                          capture_output=True, text=True, timeout=90, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.timeout(120)
def test_python_example(server):
    output = run([sys.executable, "-c", block("python", "Sandbox.create")], server)
    assert "Linux x86_64\nuser\n" in output
    assert output.count("<h1>Hello from a sandbox</h1>") == 2


@pytest.mark.timeout(240)
def test_typescript_example(server, tmp_path):
    """The block is plain JavaScript, so node runs it as it is; `e2b` is the newest of the suite."""
    modules = NODE_SUITE / "node_modules"
    if not modules.exists():
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--no-package-lock"], cwd=NODE_SUITE, check=True,
                       timeout=200, capture_output=True)
    latest = modules / "e2b" if (modules / "e2b").exists() else modules / "e2b-latest"
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules/e2b").symlink_to(latest.resolve())
    example = tmp_path / "example.mjs"
    example.write_text(block("ts", "Sandbox.create"))
    output = run(["node", "--preserve-symlinks-main", str(example)], server)
    assert "Linux x86_64\nuser\n" in output
    assert output.count("<h1>Hello from a sandbox</h1>") == 2


@pytest.mark.timeout(120)
def test_the_client_library_needs_no_server_of_ours(server):
    """S3-160: a program of its own, linked with the client library alone."""
    program = str(ROOT / "build/bin/example-run-command")
    command = [program, "bash", "-c", "echo hello; id -un"]
    assert run(command, server) == "hello\nuser\n"
    failed = subprocess.run([program, "bash", "-c", "exit 7"], env={**os.environ, **server.sdk_environment},
                            capture_output=True, timeout=90)
    assert failed.returncode == 7 and Rest(server).get("/v2/sandboxes").json() == []


@pytest.mark.timeout(120)
def test_shell_example(server):
    output = run(["bash", "-ec", block("sh", "sandbox exec")], server)
    assert "42" in output


@contextmanager
def terminal(typed: str, log: Path, **env: str) -> Iterator[subprocess.Popen[str]]:
    """Where somebody typed this; what runs there ends when it is closed."""
    with open(log, "w") as errors:
        process = subprocess.Popen(["bash", "-c", typed], cwd=ROOT, env={**CLEAN, **env}, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
                                   start_new_session=True)
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.stdout.read()  # to its end: nobody is left who could write
        process.wait(30)


def lines_until(process: subprocess.Popen[str], last: str, log: Path) -> list[str]:
    """What it prints, up to the line that begins so."""
    lines = [""]
    while not lines[-1].startswith(last):
        line = process.stdout.readline()
        assert line, f"it ended after {lines}:\n{log.read_text()[-5000:]}"
        lines.append(line.rstrip("\n"))
    return lines


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """One that the server's user can read, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="readme-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.timeout(240)
def test_task_example(tmp_path: Path, data_dir: Path, figure) -> None:
    """From nothing to a pull request; only the ports and the data directory are this test's own."""
    forge = f"127.0.0.1:{free_port()}"
    typed = block("sh", "forge.py").replace("127.0.0.1:8090", forge).replace("--port 8090", f"--port {forge[10:]}")
    assert typed.count(forge[10:]) == 3 and "8090" not in typed, typed
    log = tmp_path / "log"
    begun = time.monotonic()
    with terminal(typed, log, CAISSON_LISTEN=f"127.0.0.1:{free_port()}", CAISSON_DATA_DIR=str(data_dir)) as first:
        printed = lines_until(first, "open http", log)
        exports = dict(line.removeprefix("export ").split("=", 1) for line in printed if line.startswith("export "))
        assert set(exports) == {"E2B_API_KEY", "E2B_API_URL", "E2B_SANDBOX_URL"}, printed
        done = subprocess.run(["bash", "-ec", block("sh", "task create")], env={**CLEAN, **exports}, cwd=ROOT,
                              capture_output=True, text=True, timeout=120)
        took = time.monotonic() - begun
        assert done.returncode == 0, done.stdout + done.stderr + log.read_text()[-5000:]
        assert done.stdout.splitlines()[-1].strip() == f"http://{forge}/acme/widget/pull/1", done.stdout
        with urllib.request.urlopen(f"http://{forge}/repos/acme/widget/pulls/1", timeout=30) as answer:
            branch = json.load(answer)["head"]["ref"]
        subprocess.run(["git", "clone", "--quiet", "--branch", branch, f"http://{forge}/acme/widget.git", "widget"],
                       cwd=tmp_path, check=True, timeout=60)
        listed = caisson(None, "sandbox", "list", "--json", **exports)
        assert json.loads(listed.stdout) == [], listed
    assert (tmp_path / "widget/HELLO.md").read_text().startswith("Task: Say hello to the world\n")
    figure(f"readme: {took:.1f} s from two commands to a pull request")
