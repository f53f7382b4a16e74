"""A small client of envd (HTTP and Connect-RPC with the JSON codec) for protocol tests."""

from __future__ import annotations

import base64
import http.client
import json
import struct
from collections.abc import Iterator

from support.rest import Response, Rest
from support.server import CaissonServer

ENVD_PORT = 49983
END_STREAM = 0x02


def envelope(message: object, flags: int = 0) -> bytes:
    data = message if isinstance(message, bytes) else json.dumps(message).encode()
    return struct.pack(">BI", flags, len(data)) + data


def decode_envelopes(data: bytes) -> list[tuple[int, dict]]:
    """Splits a complete stream body into (flags, message) pairs."""
    frames = []
    while data:
        flags, length = struct.unpack(">BI", data[:5])
        assert len(data) >= 5 + length, "the stream ends inside an envelope"
        frames.append((flags, json.loads(data[5 : 5 + length])))
        data = data[5 + length :]
    return frames


class Stream:
    """A running server stream. Iterate for messages; `error` is set after the EndStream."""

    def __init__(self, connection: http.client.HTTPConnection, answer: http.client.HTTPResponse):
        self.connection = connection
        self.answer = answer
        self.error: dict | None = None
        self.ended = False

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self.answer.read(size - len(data))
            if not piece:
                raise EOFError("the stream was closed without an EndStream envelope")
            data += piece
        return data

    def __iter__(self) -> Iterator[dict]:
        while not self.ended:
            flags, length = struct.unpack(">BI", self._read(5))
            message = json.loads(self._read(length))
            if flags & END_STREAM:
                self.ended = True
                self.error = message.get("error")
                return
            yield message

    def next(self) -> dict:
        return next(iter(self))

    def rest(self) -> tuple[bytes, bytes, dict]:
        """Follows a command to its end: (stdout, stderr, end event)."""
        out, err, end = b"", b"", {}
        try:
            for message in self:
                event = message["event"]
                data = event.get("data", {})
                out += base64.b64decode(data.get("stdout", ""))
                err += base64.b64decode(data.get("stderr", ""))
                end = event.get("end", end)
            assert self.error is None, self.error
        finally:
            self.close()
        return out, err, end

    def close(self) -> None:
        self.answer.close()
        self.connection.close()


class Envd:
    """envd of one sandbox, reached through the server by header."""

    def __init__(self, server: CaissonServer, sandbox: dict, timeout: float = 60) -> None:
        self.server = server
        self.sandbox_id = sandbox["sandboxID"]
        self.token = sandbox.get("envdAccessToken")
        self.timeout = timeout

    def headers(self, user: str | None = None, token: str | None = "") -> dict[str, str]:
        """`token`: "" = the sandbox's own, None = none."""
        made = {"E2b-Sandbox-Id": self.sandbox_id, "E2b-Sandbox-Port": str(ENVD_PORT)}
        chosen = self.token if token == "" else token
        if chosen:
            made["X-Access-Token"] = chosen
        if user is not None:
            made["Authorization"] = "Basic " + base64.b64encode(f"{user}:".encode()).decode()
        return made

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
        token: str | None = "",
        user: str | None = None,
    ) -> Response:
        merged = {**self.headers(user, token), **(headers or {})}
        return Rest(self.server).request(
            method, path, body, headers=merged, key=None, timeout=self.timeout
        )

    def unary(self, method: str, message: object = None, **options) -> Response:
        """`method` like "process.Process/List"."""
        extra = {"Content-Type": "application/json", "Connect-Protocol-Version": "1"}
        extra.update(options.pop("headers", {}))
        body = message if isinstance(message, bytes) else json.dumps(message or {}).encode()
        return self.request("POST", f"/{method}", body, headers=extra, **options)

    def ok(self, method: str, message: object = None, **options) -> dict:
        answer = self.unary(method, message, **options)
        assert answer.status == 200, answer
        assert (answer.header("content-type") or "").startswith("application/json")
        return answer.json()

    def open(
        self,
        method: str,
        message: object,
        headers: dict[str, str] | None = None,
        user: str | None = None,
        token: str | None = "",
    ) -> Stream:
        """Opens a server stream; the HTTP status must be 200."""
        merged = {
            **self.headers(user, token),
            "Content-Type": "application/connect+json",
            "Connect-Protocol-Version": "1",
            **(headers or {}),
        }
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=self.timeout)
        connection.request("POST", f"/{method}", body=envelope(message), headers=merged)
        answer = connection.getresponse()
        assert answer.status == 200, (answer.status, answer.read())
        assert (answer.headers["content-type"] or "").startswith("application/connect+json")
        return Stream(connection, answer)

    def start(self, command: str, **options) -> Stream:
        """Starts `/bin/bash -c command`; keyword `fields` adds to the StartRequest."""
        fields = options.pop("fields", {"stdin": False})
        process = {"cmd": "/bin/bash", "args": ["-c", command], **options.pop("process", {})}
        return self.open("process.Process/Start", {"process": process, **fields}, **options)

    def run(self, command: str, **options) -> tuple[bytes, bytes, dict]:
        """Runs a command to its end: (stdout, stderr, end event)."""
        return self.start(command, **options).rest()
