"""The examples of the README, copied out of it word for word and run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

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
        subprocess.run(["npm", "install", "--no-audit", "--no-fund"], cwd=NODE_SUITE, check=True,
                       timeout=200, capture_output=True)
    latest = modules / "e2b" if (modules / "e2b").exists() else modules / "e2b-latest"
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules/e2b").symlink_to(latest.resolve())
    example = tmp_path / "example.mjs"
    example.write_text(block("ts", "Sandbox.create"))
    output = run(["node", "--preserve-symlinks-main", str(example)], server)
    assert "Linux x86_64\nuser\n" in output
    assert output.count("<h1>Hello from a sandbox</h1>") == 2


@pytest.mark.timeout(60)
def test_shell_example(server):
    output = run(["bash", "-ec", block("sh", "sandbox exec")], server)
    assert "42" in output
