"""A real sshd on the loopback that serves repositories the way GitHub does: a user `git`, a key, and
nothing but `git-upload-pack 'OWNER/NAME.git'` and `git-receive-pack '...'`."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from support.server import free_port, release_port, server_user

READY_S = 30
# What a login may run. SSH_ORIGINAL_COMMAND is what the client asked for.
FORCED = """#!/bin/bash
printf '%s %s\\n' "${{GIT_PROTOCOL:-version=0}}" "$SSH_ORIGINAL_COMMAND" >> {log}
if ! [[ $SSH_ORIGINAL_COMMAND =~ ^git-(upload|receive)-pack\\ \\'([A-Za-z0-9._-]+/[A-Za-z0-9._-]+\\.git)\\'$ ]]; then
  echo "Invalid command: $SSH_ORIGINAL_COMMAND" >&2
  exit 1
fi
path={root}/${{BASH_REMATCH[2]}}
if ! [[ -d $path ]]; then
  printf 'ERROR: Repository not found.\\nfatal: Could not read from remote repository.\\n' >&2
  exit 1
fi
for _ in $(seq 600); do [[ -e {hold} ]] || break; sleep 0.1; done
exec git "${{BASH_REMATCH[1]}}-pack" "$path"
"""


class Sshd:
    """`accept_protocol` False: a server that knows only the first version of git's protocol."""

    def __init__(self, repositories: Path, accept_protocol: bool = True) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="sshd-"))
        self.folder.chmod(0o755)
        self.port = free_port()
        self.log = self.folder / "commands"
        self.log.touch()
        self.hold = self.folder / "hold"  # while it is there, nobody is answered
        self.client_key = self._keygen("client")
        shutil.chown(self.client_key, server_user())
        self._configure(repositories, self._keygen("host"), accept_protocol)
        self.known_hosts = self.trust((self.folder / "host.pub").read_text())
        self.process = self._start()

    def _keygen(self, name: str) -> Path:
        path = self.folder / name
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", path], check=True, timeout=30)
        return path

    def trust(self, public_key: str) -> Path:
        """A file of known hosts with this key for the server; "" = with none."""
        kind_and_key = " ".join(public_key.split()[:2])
        path = Path(tempfile.mkstemp(dir=self.folder, prefix="known-hosts-")[1])
        path.write_text(f"[127.0.0.1]:{self.port} {kind_and_key}\n" if kind_and_key else "")
        path.chmod(0o644)
        return path

    def other_key(self) -> str:
        self._keygen("other")
        return (self.folder / "other.pub").read_text()

    def _configure(self, repositories: Path, host_key: Path, accept_protocol: bool) -> None:
        forced = self.folder / "forced"
        forced.write_text(FORCED.format(log=self.log, hold=self.hold, root=repositories))
        forced.chmod(0o755)
        (self.folder / "authorized").write_text(
            f'restrict,command="{forced}" {(self.folder / "client.pub").read_text()}')
        # The user exists for this sshd only. It is root, who owns the repositories.
        passwd = Path("/etc/passwd").read_text() + f"git:*:0:0::{self.folder}:/bin/bash\n"
        (self.folder / "passwd").write_text(passwd)
        (self.folder / "config").write_text("\n".join([
            f"ListenAddress 127.0.0.1:{self.port}",
            f"HostKey {host_key}",
            f"AuthorizedKeysFile {self.folder}/authorized",
            "AllowUsers git",
            "PermitRootLogin prohibit-password",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "StrictModes no",
            "UsePAM no",
            "PidFile none",
            "MaxStartups 100",
            "AcceptEnv GIT_PROTOCOL" if accept_protocol else "",
        ]))

    def _start(self) -> subprocess.Popen[bytes]:
        script = (f"mount --bind {self.folder}/passwd /etc/passwd && mount -t tmpfs tmpfs /run && mkdir -m 755 /run/sshd "
                  f"&& exec {shutil.which('sshd', path='/usr/sbin:/usr/bin')} -D -e -f {self.folder}/config")
        errors = open(self.folder / "errors", "wb")
        process = subprocess.Popen(["unshare", "--mount", "bash", "-c", script], stdin=subprocess.DEVNULL,
                                   stdout=errors, stderr=errors, start_new_session=True,
                                   env={"PATH": os.environ["PATH"], "LC_ALL": "C"})
        deadline = time.monotonic() + READY_S
        while b"Server listening" not in (self.folder / "errors").read_bytes():
            assert process.poll() is None and time.monotonic() < deadline, (self.folder / "errors").read_text()
            time.sleep(0.02)
        return process

    def url(self, repository: str) -> str:
        return f"ssh://git@127.0.0.1:{self.port}/{repository}.git"

    def commands(self) -> list[str]:
        return self.log.read_text().splitlines()

    def clients(self) -> list[int]:
        """Processes of the ssh program that talk to this server."""
        found = []
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = entry.read_bytes().split(b"\0")
            except OSError:
                continue
            if words[0] == b"ssh" and str(self.port).encode() in words:
                found.append(int(entry.parent.name))
        return found

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(30)
        shutil.rmtree(self.folder, ignore_errors=True)
        release_port(self.port)

    def __enter__(self) -> Sshd:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
