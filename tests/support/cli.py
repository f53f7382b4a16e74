"""The program `caisson` as a person runs it."""

from __future__ import annotations

import os
import subprocess

from support.server import CaissonServer, find_binary

CLEAN = {k: v for k, v in os.environ.items() if not k.startswith(("E2B_", "CAISSON_"))}


def caisson(server: CaissonServer | None, *args: str, stdin: bytes = b"", **env: str):
    """Runs the program; `server` gives it the address and the key."""
    environment = {**CLEAN, **env}
    if server:
        environment |= {"CAISSON_URL": server.url, "CAISSON_DATA_DIR": str(server.data_dir)}
    return subprocess.run(
        [str(find_binary()), *args],
        input=stdin,
        capture_output=True,
        env=environment,
        timeout=60,
        check=False,
        cwd="/",
    )
