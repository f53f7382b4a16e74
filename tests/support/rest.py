"""Plain HTTP to a server: exact statuses, headers and bodies, no SDK in between."""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass

from support.server import CaissonServer


# What the SDKs need of every sandbox in a list or a detail.
LISTED_FIELDS = (
    "sandboxID", "templateID", "clientID", "startedAt", "endAt", "state",
    "cpuCount", "memoryMB", "diskSizeMB", "envdVersion",
)


@dataclass
class Response:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    def json(self) -> object:
        return json.loads(self.body)

    def header(self, name: str) -> str | None:
        return self.headers.get(name)

    def __repr__(self) -> str:
        return f"<{self.status} {self.body[:300]!r}>"


def assert_error(response: Response, status: int, contains: str = "") -> dict:
    """Checks E2B's error shape: an object with integer `code` (the status) and a `message`."""
    assert response.status == status, response
    assert (response.header("content-type") or "").startswith("application/json"), response.headers
    body = response.json()
    assert isinstance(body, dict), body
    assert body["code"] == status and isinstance(body["code"], int), body
    assert isinstance(body["message"], str) and body["message"], body
    assert contains.lower() in body["message"].lower(), body
    return body


def assert_refusal(response: Response, status: int, code: str = "", contains: str = "") -> dict:
    """Checks the error shape of /api/v1; `code` and `contains` if they are given."""
    assert response.status == status, response
    assert (response.header("content-type") or "").startswith("application/json"), response.headers
    body = response.json()
    assert set(body) == {"error"} and set(body["error"]) == {
        "code", "message", "debug_id", "retryable"}, body
    error = body["error"]
    assert error["debug_id"] == response.header("X-Request-Id"), body
    assert error["message"] and isinstance(error["retryable"], bool), body
    assert code in ("", error["code"]), body
    assert contains.lower() in error["message"].lower(), body
    return error


class Rest:
    """The control plane of one server."""

    def __init__(self, server: CaissonServer) -> None:
        self.server = server

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: dict[str, str] | None = None,
        key: str | None = "",
        timeout: float = 60,
    ) -> Response:
        """`body`: None, bytes as they are, or anything else as JSON. `key`: "" = the server's."""
        sent = {}
        if key is not None:
            sent["X-API-KEY"] = key or self.server.api_key
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            sent["Content-Type"] = "application/json"
        sent.update(headers or {})
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=timeout)
        try:
            connection.request(method, path, body=body, headers=sent)
            answer = connection.getresponse()
            return Response(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **options) -> Response:
        return self.request("GET", path, **options)

    def post(self, path: str, body: object = None, **options) -> Response:
        return self.request("POST", path, body, **options)

    def delete(self, path: str, **options) -> Response:
        return self.request("DELETE", path, **options)

    def create(self, **fields) -> dict:
        """Creates a sandbox by the v2 route and returns the decoded answer."""
        answer = self.post("/v2/sandboxes", {"templateID": "base", "timeout": 120, **fields})
        assert answer.status == 201, answer
        return answer.json()

    def kill(self, sandbox: dict | str) -> Response:
        sandbox_id = sandbox if isinstance(sandbox, str) else sandbox["sandboxID"]
        return self.delete(f"/sandboxes/{sandbox_id}")

    def detail(self, sandbox: dict | str) -> dict:
        sandbox_id = sandbox if isinstance(sandbox, str) else sandbox["sandboxID"]
        answer = self.get(f"/sandboxes/{sandbox_id}")
        assert answer.status == 200, answer
        return answer.json()

    @contextlib.contextmanager
    def sandbox(self, **fields) -> Iterator[dict]:
        """A sandbox for the length of a `with` block."""
        created = self.create(**fields)
        try:
            yield created
        finally:
            self.kill(created)

    def list(self, query: str = "") -> list[dict]:
        """Every page of the v2 listing."""
        items, token = [], ""
        while True:
            parts = [p for p in (query, f"nextToken={token}" if token else "") if p]
            answer = self.get("/v2/sandboxes" + ("?" + "&".join(parts) if parts else ""))
            assert answer.status == 200, answer
            items.extend(answer.json())
            token = answer.header("X-Next-Token") or ""
            if not token:
                return items
