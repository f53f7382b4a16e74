"""Output that was printed long ago."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

from support.server import CaissonServer

LONG_AGO_NS = 200 * 3600 * 10**9


def archive_output(server: CaissonServer, text: str) -> None:
    """Makes all output old. The server crashes and starts; then `text` leaves the database."""
    database = server.data_dir / "db/caisson.db"
    server.crash()
    with sqlite3.connect(database, timeout=30) as change:
        change.execute("UPDATE events SET at = at - ? WHERE type = 'command_output'", (LONG_AGO_NS,))
    change.close()
    server.start()
    deadline = time.monotonic() + 60
    while _rows_with(database, text) > 0:
        assert time.monotonic() < deadline, "the output stays in the database"
        time.sleep(0.1)


def _rows_with(database: Path, text: str) -> int:
    with sqlite3.connect(database, timeout=30) as reader:
        (count,) = reader.execute("SELECT count(*) FROM events WHERE type = 'command_output' AND data LIKE ?",
                                  (f"%{text}%",)).fetchone()
    reader.close()
    return count
