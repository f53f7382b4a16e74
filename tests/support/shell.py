"""A terminal of a sandbox as the page has one: a WebSocket to the server."""

from __future__ import annotations

import json
import re
import time
from urllib.parse import urlencode

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from support.server import CaissonServer

DEADLINE_S = 40
LONGEST = 1000  # bytes that a pattern may match


class Shell:
    """Bytes both ways, and what the server says besides."""

    def __init__(self, server: CaissonServer, sandbox: str, headers: dict[str, str] | None = None, **query) -> None:
        path = f"/api/v1/sandboxes/{sandbox}/terminal"
        if query:
            path += "?" + urlencode(query)
        self.socket = connect(
            f"ws://127.0.0.1:{server.port}{path}",
            additional_headers={"X-API-KEY": server.api_key} if headers is None else headers,
            open_timeout=DEADLINE_S, close_timeout=DEADLINE_S, max_size=None, compression=None, proxy=None)
        self.shown = bytearray()
        self.told: list[dict] = []
        self._read_until(lambda: self.told)
        self.ready = self.told.pop(0)
        assert self.ready["type"] == "ready", self.ready

    @property
    def id(self) -> str:
        return self.ready["terminal"]

    def _read_until(self, done) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not done():
            try:
                message = self.socket.recv(timeout=max(0.1, deadline - time.monotonic()))
            except TimeoutError:
                raise AssertionError(f"it did not come: {bytes(self.shown[-2000:])!r} {self.told}") from None
            if isinstance(message, bytes):
                self.shown += message
            else:
                self.told.append(json.loads(message))

    def type(self, text: str) -> None:
        self.socket.send(text.encode())

    def until(self, pattern: str) -> re.Match[bytes]:
        """What is shown has it. Ask for what only the answer has: the shell echoes what is typed."""
        wanted, found, searched = re.compile(pattern.encode()), None, 0

        def look() -> re.Match[bytes] | None:
            nonlocal found, searched
            found = wanted.search(self.shown, max(0, searched - LONGEST))
            searched = len(self.shown)
            return found

        self._read_until(look)
        self.shown = self.shown[found.end():]
        return found

    def resize(self, cols: int, rows: int) -> None:
        self.socket.send(json.dumps({"type": "resize", "cols": cols, "rows": rows}))

    def end(self) -> tuple[dict, int]:
        """The last thing the server says, and the code it closes with."""
        try:
            self._read_until(lambda: False)
        except ConnectionClosed as closed:
            return (self.told[-1] if self.told else {}), closed.rcvd.code if closed.rcvd else 0
        raise AssertionError("unreachable")

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Shell:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
