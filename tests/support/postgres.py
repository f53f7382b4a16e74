"""A PostgreSQL of one's own, for tests: in a temporary directory, as an unprivileged user.

As a library: `Postgres` (see `support/plugin.py` for the pytest fixtures). As a program:
`python3 tests/support/postgres.py` starts one, prints the URL of its administrator and stops it when
standard input ends; this is what the C++ tests do when CAISSON_TEST_POSTGRES names none.

Debian's own cluster is neither used nor started. Only the standard library is needed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.server import free_port, release_port, server_user

START_DEADLINE_S = 60
STOP_DEADLINE_S = 30
ADMINISTRATOR = "caisson"
# The tests shall not wait for disks. A commit reaches the kernel, so a PostgreSQL that is killed loses none.
SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "on",
    "full_page_writes": "off",
    "max_connections": "200",
    "shared_buffers": "32MB",
    "listen_addresses": "127.0.0.1",
    "log_statement": "none",
}


class PostgresError(Exception):
    """PostgreSQL did not do what was asked of it; the message holds the end of its log."""


def _end_with_parent() -> None:
    """Runs in the child: a test that is killed leaves no server behind."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGINT)


def find_programs() -> Path:
    """The directory of PostgreSQL 15's programs."""
    for directory in (Path("/usr/lib/postgresql/15/bin"), *map(Path, os.get_exec_path())):
        if (directory / "initdb").exists() and (directory / "postgres").exists():
            return directory
    raise PostgresError("PostgreSQL 15 is not installed: apt-get install postgresql-15")


class Postgres:
    """One server with one data directory; may be stopped and started many times."""

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="caisson-postgres-"))
        self.directory.chmod(0o755)  # clients of other users reach the socket in it
        self.data = self.directory / "data"
        self.log_path = self.directory / "log"
        self.password = secrets.token_hex(8)
        self.process: subprocess.Popen[bytes] | None = None
        self.port = free_port()
        # PostgreSQL refuses to run as root.
        self._identity: dict[str, object] = {}
        if os.geteuid() == 0:
            entry = pwd.getpwnam("postgres")
            self._identity = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
            os.chown(self.directory, entry.pw_uid, entry.pw_gid)
        try:
            self._initialize()
        except BaseException:
            shutil.rmtree(self.directory, ignore_errors=True)
            raise

    def url(self, database: str = "postgres", user: str = ADMINISTRATOR) -> str:
        """Over TCP, with a password."""
        return f"postgresql://{user}:{self.password}@127.0.0.1:{self.port}/{database}"

    def socket_url(self, database: str, user: str) -> str:
        """Over the Unix socket, as the Linux user of the same name."""
        return f"postgresql://{user}@/{database}?host={self.directory}&port={self.port}"

    def _initialize(self) -> None:
        password_file = self.directory / "password"
        password_file.write_text(self.password)
        self._run(
            "initdb",
            f"--pgdata={self.data}",
            f"--username={ADMINISTRATOR}",
            "--encoding=UTF8",
            "--no-locale",
            "--no-sync",
            "--auth=scram-sha-256",
            f"--pwfile={password_file}",
        )
        password_file.unlink()
        access = self.data / "pg_hba.conf"
        access.write_text(f"local all {server_user()} peer\n" + access.read_text())
        lines = [f"{name} = '{value}'" for name, value in SETTINGS.items()]
        lines += [f"port = {self.port}", f"unix_socket_directories = '{self.directory}'"]
        with open(self.data / "postgresql.conf", "a") as settings:
            settings.write("\n".join(lines) + "\n")

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(find_programs() / program), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self.directory,
            timeout=START_DEADLINE_S,
            **self._identity,
        )
        if done.returncode != 0:
            raise PostgresError(f"{program} failed:\n{done.stdout.decode(errors='replace')}")

    def start(self) -> Postgres:
        assert self.process is None, "PostgreSQL is already running"
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [str(find_programs() / "postgres"), "-D", str(self.data)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.directory,
                start_new_session=True,
                preexec_fn=_end_with_parent,
                **self._identity,
            )
        deadline = time.monotonic() + START_DEADLINE_S
        while not self._accepts():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise PostgresError(f"PostgreSQL did not start:\n{self.log_tail()}")
            time.sleep(0.05)
        return self

    def _accepts(self) -> bool:
        command = [str(find_programs() / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(command, timeout=30).returncode == 0

    def stop(self) -> None:
        """As an administrator does: connections are cut, transactions undone."""
        self._end(signal.SIGINT)

    def crash(self) -> None:
        """As a power cut does, apart from the disks."""
        self._end(signal.SIGQUIT)

    def kill(self) -> None:
        """All its processes at once: nobody is left who could tidy up."""
        if self.process is not None and self.process.poll() is None:
            pid = self.process.pid
            self.process.send_signal(signal.SIGSTOP)  # it makes no new ones
            for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(child), signal.SIGKILL)
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        if self.process is None:
            return
        process, self.process = self.process, None
        if process.poll() is None:
            process.send_signal(number)
        try:
            process.wait(STOP_DEADLINE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(30)
            raise PostgresError(f"PostgreSQL did not stop:\n{self.log_tail()}") from None

    def close(self) -> None:
        try:
            self.stop()
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)
            release_port(self.port)

    def __enter__(self) -> Postgres:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def query(self, sql: str, database: str = "postgres") -> list[list[str]]:
        """Runs one statement as the administrator; the rows as texts."""
        command = [str(find_programs() / "psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", "-F", "\t"]
        done = subprocess.run(
            [*command, "-d", self.url(database), "-c", sql],
            capture_output=True,
            text=True,
            timeout=60,
        )
        if done.returncode != 0:
            raise PostgresError(done.stderr)
        return [line.split("\t") for line in done.stdout.splitlines()]

    def create_database(self, owner: str = ADMINISTRATOR) -> str:
        """A new empty database; returns its name."""
        name = f"test_{secrets.token_hex(6)}"
        self.query(f'CREATE DATABASE {name} OWNER "{owner}"')
        return name

    def log_tail(self, lines: int = 40) -> str:
        text = self.log_path.read_text(errors="replace") if self.log_path.exists() else ""
        return "\n".join(text.splitlines()[-lines:])


def main() -> int:
    with Postgres() as postgres:
        print(postgres.url(), flush=True)
        sys.stdin.buffer.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())
