"""An attacker: one account in one sandbox, with the means of the E2B SDK."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from e2b import CommandExitException, Sandbox

from support.server import CaissonServer

SOURCE = Path(__file__).with_name("calls.c")
PROGRAM = "/tmp/calls"
REFUSED = {"EPERM", "EACCES", "ENOSYS", "EROFS"}


def compile_calls(directory: Path) -> bytes:
    """calls.c as a static program that runs in any template."""
    compiler = shutil.which("gcc") or shutil.which("clang-19") or shutil.which("cc")
    assert compiler, "a C compiler is needed to build the program of raw system calls"
    target = directory / "calls"
    subprocess.run(
        [compiler, "-static", "-O1", "-w", "-o", str(target), str(SOURCE)], check=True, timeout=60
    )
    return target.read_bytes()


@dataclass
class Output:
    code: int
    out: str
    err: str


class Guest:
    def __init__(self, server: CaissonServer, made: dict, account: str, calls: bytes) -> None:
        variables = server.sdk_environment
        self.id, self.account, self._calls, self.made = made["sandboxID"], account, calls, made
        self.sandbox = Sandbox.connect(
            self.id,
            api_key=variables["E2B_API_KEY"],
            api_url=variables["E2B_API_URL"],
            sandbox_url=variables["E2B_SANDBOX_URL"],
        )

    def run(self, command: str, timeout: float = 60, **options) -> Output:
        """A shell command to its end, whatever its exit code."""
        options.setdefault("user", self.account)
        try:
            done = self.sandbox.commands.run(command, timeout=timeout, **options)
        except CommandExitException as failed:
            done = failed
        return Output(done.exit_code, done.stdout, done.stderr)

    def calls(self, group: str, *arguments: object) -> dict[str, str]:
        """Runs a group of calls.c: the name of each attempt and how it ended, "OK" or an errno."""
        if self.run(f"test -x {PROGRAM}").code != 0:
            self.sandbox.files.write(PROGRAM, self._calls, user="root")
            assert self.run(f"chmod 755 {PROGRAM}", user="root").code == 0
        words = " ".join(str(a) for a in (PROGRAM, group, *arguments))
        done = self.run(words)
        results = dict(line.rsplit(" ", 1) for line in done.out.splitlines())
        assert results and results.pop("end", "") == "OK", (group, done)
        return results

    def python(self, script: str, *arguments: object, timeout: float = 60) -> object:
        """Runs a script of Python with its arguments in `args`; what it prints is JSON."""
        name = f"/tmp/script-{os.urandom(6).hex()}.py"
        prologue = f"import json, os, sys\nargs = json.loads({json.dumps(json.dumps(arguments))})\n"
        self.sandbox.files.write(name, prologue + script, user=self.account)
        done = self.run(f"python3 {name}", timeout=timeout)
        assert done.code == 0, done
        return json.loads(done.out)


def assert_refused(results: dict[str, str], allowed: set[str] = REFUSED) -> None:
    """Every attempt was refused."""
    let = {name: how for name, how in results.items() if how not in allowed}
    assert not let, let
