"""A socket that speaks HTTP byte by byte: for requests no HTTP library would send."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass, field


@dataclass
class RawResponse:
    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


class ConnectionEnded(Exception):
    """The server closed the connection before a complete response."""


class RawConnection:
    def __init__(self, port: int, timeout: float = 30) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self.buffer = b""

    def __enter__(self) -> RawConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> RawConnection:
        self.socket.sendall(data)
        return self

    def send_slowly(self, data: bytes, pause_s: float, limit_s: float) -> float:
        """Sends one byte per pause until the peer cuts the connection; returns the seconds."""
        begun = time.monotonic()
        self.socket.settimeout(pause_s)
        for byte in data:
            if time.monotonic() - begun > limit_s:
                break
            try:
                self.socket.sendall(bytes([byte]))
                piece = self.socket.recv(65536)
                if piece == b"":
                    return time.monotonic() - begun
                self.buffer += piece
            except TimeoutError:
                continue
            except (ConnectionResetError, BrokenPipeError):
                return time.monotonic() - begun
        raise AssertionError(f"the server kept a slow client for more than {limit_s} s")

    def _fill(self) -> None:
        try:
            piece = self.socket.recv(65536)
        except ConnectionResetError:
            piece = b""
        if not piece:
            raise ConnectionEnded(self.buffer[:200])
        self.buffer += piece

    def _line(self) -> bytes:
        while b"\r\n" not in self.buffer:
            self._fill()
        line, _, self.buffer = self.buffer.partition(b"\r\n")
        return line

    def _take(self, count: int) -> bytes:
        while len(self.buffer) < count:
            self._fill()
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def read_response(self, head: bool = False) -> RawResponse:
        """Reads one response. Raises ConnectionEnded if there is none."""
        status = int(self._line().split(b" ")[1])
        headers = {}
        while line := self._line():
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
        response = RawResponse(status, headers)
        if head or status in (204, 304) or 100 <= status < 200:
            return response
        if headers.get("transfer-encoding", "").lower() == "chunked":
            while size := int(self._line().split(b";")[0], 16):
                response.body += self._take(size)
                self._line()
            self._line()
        elif "content-length" in headers:
            response.body = self._take(int(headers["content-length"]))
        else:
            while not self.ended():
                pass
            response.body, self.buffer = self.buffer, b""
        return response

    def ended(self) -> bool:
        """True when the server has closed its side (waits up to the socket's timeout)."""
        try:
            self._fill()
        except ConnectionEnded:
            return True
        return False


def head_of(method: str, target: str, headers: dict[str, str]) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", *(f"{k}: {v}" for k, v in headers.items()), "", ""]
    return "\r\n".join(lines).encode("latin-1")
