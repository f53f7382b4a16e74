"""One stream of Server-Sent Events, read as a browser reads it."""

from __future__ import annotations

import http.client
import json
import socket
import zlib
from types import TracebackType

from support.rest import Rest

DEADLINE_S = 60


class Inflated:
    """Lines of a compressed answer, each as soon as its bytes are there."""

    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self._answer = answer
        self._gzip = zlib.decompressobj(wbits=31)
        self._text = b""
        self.received = self.inflated = 0

    def readline(self) -> bytes:
        while b"\n" not in self._text and (piece := self._answer.read1()):
            self.received += len(piece)
            text = self._gzip.decompress(piece)
            self.inflated += len(text)
            self._text += text
        line, end, self._text = self._text.partition(b"\n")
        return line + end

    @property
    def whole(self) -> bool:
        """The end of the stream was the end of the answer, with its check sum."""
        return self._gzip.eof


class Stream:
    def __init__(self, rest: Rest, path: str, key: str = "", last_id: int | None = None, accept: str = "",
                 receive_buffer: int = 0) -> None:
        """`receive_buffer`: so few bytes wait in the kernel for a client that does not read."""
        self._connection = http.client.HTTPConnection("127.0.0.1", rest.server.port, timeout=DEADLINE_S)
        if receive_buffer:
            self._connection.sock = socket.socket()
            self._connection.sock.settimeout(DEADLINE_S)
            self._connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            self._connection.sock.connect(("127.0.0.1", rest.server.port))
        headers = {"X-API-KEY": key or rest.server.api_key}
        if last_id is not None:
            headers["Last-Event-ID"] = str(last_id)
        if accept:
            headers["Accept-Encoding"] = accept
        self._connection.request("GET", path, headers=headers)
        self.answer = self._connection.getresponse()
        self.lines = Inflated(self.answer) if self.answer.headers["Content-Encoding"] == "gzip" else self.answer
        self.retry_ms = 0

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()
        self.answer.close()

    def next(self) -> dict:
        """The next event with its `event` and `id`; {} at the end of the stream."""
        found: dict = {}
        while line := self.lines.readline().decode().rstrip("\n"):
            name, _, value = line.partition(": ")
            if name == "data":
                found |= json.loads(value)
            elif name == "retry":
                self.retry_ms = int(value)
            elif name == "event":
                found["event"] = value
        return found

    def take(self, count: int) -> list[dict]:
        """So many events of the log: neither the beginning nor heartbeats."""
        found = []
        while len(found) < count:
            event = self.next()
            assert event, f"the stream ended after {found}"
            if event["event"] not in ("connected", "heartbeat"):
                found.append(event)
        return found

    def until(self, kind: str) -> list[dict]:
        """The events up to the first of this kind."""
        found = self.take(1)
        while found[-1]["event"] != kind:
            found += self.take(1)
        return found
