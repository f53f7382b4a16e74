"""`caisson sandbox shell` at a real terminal, as a person sits at one."""

from __future__ import annotations

import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import termios
import time

import pytest

from support.cli import CLEAN, caisson
from support.rest import Rest
from support.server import CaissonServer, find_binary

DEADLINE_S = 40


class Terminal:
    """A window with `caisson sandbox shell` in it. The test holds both ends, so it outlives the program."""

    def __init__(self, server: CaissonServer, *args: str, rows: int = 40, cols: int = 100) -> None:
        self.mine, self.its = os.openpty()
        self.resize(rows, cols)
        self.before = self.settings()
        self.shown = b""
        environment = {**CLEAN, "CAISSON_URL": server.url, "CAISSON_DATA_DIR": str(server.data_dir), "TERM": "vt220"}
        self.process = subprocess.Popen(
            [str(find_binary()), "sandbox", "shell", *args], env=environment,
            stdin=self.its, stdout=self.its, stderr=self.its, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    def settings(self) -> list:
        return termios.tcgetattr(self.its)

    def resize(self, rows: int, cols: int) -> None:
        fcntl.ioctl(self.its, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def type(self, text: str) -> None:
        os.write(self.mine, text.encode())

    def until(self, pattern: str) -> str:
        """What is shown has it. Ask for what only the answer has: the shell echoes what is typed."""
        deadline = time.monotonic() + DEADLINE_S
        while not (found := re.search(pattern.encode(), self.shown)):
            ready, _, _ = select.select([self.mine], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"{pattern} did not come: {self.shown[-2000:]!r}"
            self.shown += os.read(self.mine, 65536)
        self.shown = self.shown[found.end():]
        return found.group(0).decode()

    def end(self) -> int:
        """The exit status; the terminal is as it was."""
        status = self.process.wait(DEADLINE_S)
        assert self.settings() == self.before
        return status

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.mine)
        os.close(self.its)


@pytest.fixture(scope="module")
def made(rest: Rest):
    with rest.sandbox(timeout=600) as sandbox:
        yield sandbox["sandboxID"]


@pytest.mark.quick
def test_a_person_works_in_a_shell(server: CaissonServer, made: str):
    with Terminal(server, made, "-e", "A=b c", "--cwd", "/tmp") as terminal:
        terminal.type("echo \"$A $(id -un) $PWD $TERM\" | tr a-z A-Z; stty size\r")
        terminal.until(r"B C USER /TMP VT220\r\n40 100\r\n")
        assert terminal.settings() != terminal.before  # keys go to the sandbox one by one
        terminal.resize(50, 120)
        terminal.type("until [ \"$(stty size)\" = '50 120' ]; do sleep 0.1; done; echo re''sized\r")
        terminal.until("resized")
        # What it prints shows that it has the terminal and starts nothing more: shells that are just about to start
        # a program do not pass Ctrl-C on to it.
        terminal.type("python3 -c 'import time; print(\"go\" + \"ing\", flush=True); time.sleep(321)'\r")
        terminal.until("going")
        terminal.type("\x03")
        terminal.until(r"/tmp\$ ")
        terminal.type("echo status''=$?\r")
        terminal.until("status=130")
        terminal.type("exit 7\r")
        assert terminal.end() == 7


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_shell_too(server: CaissonServer, made: str, number: signal.Signals):
    with Terminal(server, made) as terminal:
        terminal.type("sleep 4321 & echo started''=$!\r")
        terminal.until(r"started=\d+")
        terminal.process.send_signal(number)
        assert terminal.end() == 128 + number
    deadline = time.monotonic() + DEADLINE_S
    while caisson(server, "sandbox", "exec", made, "--", "pgrep", "-fx", "sleep 4321|/bin/bash -i -l").returncode == 0:
        assert time.monotonic() < deadline, "the shell goes on without anybody"
        time.sleep(0.1)


def test_the_end_of_the_sandbox_ends_the_command(server: CaissonServer, rest: Rest):
    with rest.sandbox() as sandbox, Terminal(server, sandbox["sandboxID"]) as terminal:
        terminal.type("echo u''p\r")
        terminal.until("up\r\n")
        rest.kill(sandbox["sandboxID"])
        terminal.until("caisson: ")
        assert terminal.end() == 125


@pytest.mark.quick
def test_without_a_terminal_it_says_what_to_do(server: CaissonServer, made: str):
    done = caisson(server, "sandbox", "shell", made)
    assert done.returncode == 125 and not done.stdout
    assert b"needs a terminal" in done.stderr and b"sandbox exec" in done.stderr
    with Terminal(server, "i" + "0" * 20) as terminal:
        terminal.until("does not exist")
        assert terminal.end() == 125
