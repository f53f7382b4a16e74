"""Looks for secrets wherever a server and its sandboxes could leave them, and asks neither of them.

What comes out of a sandbox by an event or a command has been redacted, so a search inside proves
nothing. This one reads processes, disks, saved memory and rows from the host. Decoys prove that it
finds: a script plants one in each place, put together there, so that no text of it tells one.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import secrets
import sqlite3
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from support import census
from support.server import CaissonServer
from support.work import Platform

CHUNK = 8 << 20
SHADOW = 1 << 40  # AddressSanitizer maps terabytes of marks about memory, no contents; nothing else is as large
# Where a secret could be, and the decoys that are found there when the search works.
LIVE = {"environ": {"environ"}, "cmdline": {"cmdline"}, "memory": {"memory"}, "files": {"file", "basic"}}
SAVED = {"saved memory": {"memory", "environ", "cmdline"}, "disks": {"file", "basic"}}
KEPT = {"data": {"output"}, "rows": {"output"}, "events": {"output"}, "log": {"setting"}}
# Below the data directory; all else there is "data".
FOLDERS = {"engine/saved": "saved memory", "engine/disks": "disks", "engine/layers": "disks"}
DECOYS = ("environ", "cmdline", "memory", "file", "basic", "output", "setting")


def forms(secret: str) -> list[bytes]:
    """As it is, and as it stands in a text that was encoded with base64, at each of the three offsets."""
    found = [secret.encode()]
    for offset in range(3):
        text = base64.b64encode(b"\0" * offset + secret.encode())
        found.append(text[4 if offset else 0 : (offset + len(secret)) // 3 * 4])
    return found


class Hunt:
    """`found` grows with every search: the name of a secret, then where, then the places."""

    def __init__(self, **wanted: str) -> None:
        self.decoys = {name: f"decoy-{secrets.token_hex(12)}" for name in DECOYS}
        self.secrets = set(wanted)
        # Every form costs a pass over all there is; of the decoys one is encoded.
        encoded = {**wanted, "basic": self.decoys["basic"]}
        self.forms = {name: [text.encode()] for name, text in self.decoys.items()}
        self.forms |= {name: forms(text) for name, text in encoded.items()}
        self.longest = max(len(form) for forms in self.forms.values() for form in forms)
        self.found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))

    @property
    def settings(self) -> dict[str, str]:
        """Of the server: a decoy that it writes into its log."""
        return {"CAISSON_GIT_USER_NAME": self.decoys["setting"]}

    def planting(self) -> str:
        """A shell script that plants the others and leaves processes behind that hold them."""
        told = {name: f"$(echo {text[::-1]} | rev)" for name, text in self.decoys.items()}
        hold = "import sys, time; held = sys.stdin.read().strip()[::-1]; sys.stdin.close(); time.sleep(3600)"
        return f"""
A_DECOY="{told['environ']}" setsid sleep 3600 > /dev/null 2>&1 &
setsid python3 -c 'import time; time.sleep(3600)' "{told['cmdline']}" > /dev/null 2>&1 &
echo {self.decoys['memory'][::-1]} | setsid python3 -c '{hold}' > /dev/null 2>&1 &
echo "{told['file']}" > /var/tmp/decoy
echo -n "x-access-token:{told['basic']}" | base64 -w 0 > /var/tmp/basic
echo "{told['output']}"
"""

    # ---- the searches -------------------------------------------------------------------------

    def live(self, server: CaissonServer) -> None:
        """All processes and files of the server's sandboxes, now."""
        sandboxes = census.processes_by_sandbox(server)
        assert sandboxes, "there is no sandbox to search"
        for pids in sandboxes.values():
            for pid in pids:
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
                    self._look("environ", f"/proc/{pid}/environ", [Path(f"/proc/{pid}/environ").read_bytes()])
                    self._look("cmdline", f"/proc/{pid}/cmdline", [Path(f"/proc/{pid}/cmdline").read_bytes()])
                    self._look("memory", f"/proc/{pid}/mem", memory_of(pid))
            for path in files_below(Path(f"/proc/{min(pids)}/root"), without=("dev", "proc", "sys")):
                self._look("files", str(path), pieces_of(path))

    def kept(self, platform: Platform) -> None:
        """All that the server has written down, sandboxes that are paused and snapshots among it."""
        server = platform.server
        for path in files_below(server.data_dir):
            about = path.relative_to(server.data_dir).parts[:2]
            self._look(FOLDERS.get("/".join(about), "data"), str(path), pieces_of(path))
        self._look("rows", "the database", cells(server.data_dir / "db/caisson.db"))
        self._look("events", "the event log", (json.dumps(event).encode() for event in platform.events()))
        for path in (server.log_path, server.stdout_path):
            self._look("log", str(path), pieces_of(path))

    def check(self, *kinds: dict[str, set[str]]) -> None:
        """Every decoy was found where it had to be, and the secrets nowhere at all."""
        for kind in kinds:
            for where, decoys in kind.items():
                missed = [name for name in decoys if not self.found[name][where]]
                assert not missed, f"the search of {where} does not see {missed}: {self._told()}"
        seen = {name: self._told()[name] for name in self.secrets if self.found[name]}
        assert not seen, f"secrets were found: {seen}"

    # ---- how ----------------------------------------------------------------------------------

    def _look(self, where: str, place: str, pieces: Iterable[bytes]) -> None:
        end = b""
        for piece in pieces:
            seam = end + piece[: self.longest]
            has_decoy = b"decoy-" in piece or b"decoy-" in seam
            for name, texts in self.forms.items():
                if len(texts) == 1 and not has_decoy:
                    continue
                if any(text in piece or text in seam for text in texts):
                    self.found[name][where].add(place)
            end = piece[-self.longest :]

    def _told(self) -> dict[str, dict[str, list[str]]]:
        return {name: {where: sorted(places)[:5] for where, places in found.items()}
                for name, found in self.found.items()}


def files_below(top: Path, without: tuple[str, ...] = ()) -> Iterator[Path]:
    for directory, folders, names in os.walk(top):
        if Path(directory) == top:
            folders[:] = [name for name in folders if name not in without]
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                if stat.S_ISREG((path := Path(directory, name)).lstat().st_mode):
                    yield path


def pieces_of(path: Path) -> Iterator[bytes]:
    """The contents of a file without its holes, a piece at a time."""
    with contextlib.suppress(FileNotFoundError), open(path, "rb", buffering=0) as file:
        at = 0
        with contextlib.suppress(OSError):  # ENXIO: only a hole is left
            while True:
                at = os.lseek(file.fileno(), at, os.SEEK_DATA)
                piece = os.pread(file.fileno(), min(CHUNK, os.lseek(file.fileno(), at, os.SEEK_HOLE) - at), at)
                if not piece:
                    return
                yield piece
                at += len(piece)


def memory_of(pid: int) -> Iterator[bytes]:
    ranges = re.findall(r"^([0-9a-f]+)-([0-9a-f]+) r", Path(f"/proc/{pid}/maps").read_text(), re.MULTILINE)
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for start, end in ((int(first, 16), int(last, 16)) for first, last in ranges):
            if end - start >= SHADOW:
                continue
            for at in range(start, end, CHUNK):
                with contextlib.suppress(OSError, OverflowError):  # of the kernel, or gone
                    memory.seek(at)
                    yield memory.read(min(CHUNK, end - at))


def cells(database: Path) -> Iterator[bytes]:
    """Every value of every row of every table."""
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=30)
    with contextlib.closing(connection):
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            for row in connection.execute(f'SELECT * FROM "{table}"'):
                yield b"\0".join(value if isinstance(value, bytes) else str(value).encode() for value in row)
