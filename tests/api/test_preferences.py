"""What a page keeps for its user."""

from __future__ import annotations

import json

from support.rest import Rest, assert_refusal


def test_preferences_are_kept_per_user(rest: Rest) -> None:
    assert rest.get("/api/v1/auth/preferences").json() == {}
    kept = {"theme": "dark", "shortcuts": {"new": "n", "größer": [1, None]}}
    assert rest.request("PUT", "/api/v1/auth/preferences", kept).json() == kept
    key = rest.post("/api/v1/keys", {"name": "another", "own_user": True}).json()["key"]
    assert rest.get("/api/v1/auth/preferences", key=key).json() == {}
    rest.server.crash()
    rest.server.start()
    assert rest.get("/api/v1/auth/preferences").json() == kept
    assert rest.request("PUT", "/api/v1/auth/preferences", {"theme": "light"}).json() == {"theme": "light"}
    large = {str(i): "x" * 1000 for i in range(17)}
    assert len(json.dumps(large)) > 16_384
    assert_refusal(rest.request("PUT", "/api/v1/auth/preferences", large), 422, contains="16384 bytes")
    assert rest.request("PUT", "/api/v1/auth/preferences", [1]).status in (400, 422)
    assert rest.get("/api/v1/auth/preferences").json() == {"theme": "light"}
    assert rest.get("/api/v1/auth/preferences", key=None).status == 401
