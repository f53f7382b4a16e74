"""Who is shut out does not go on in what was opened before."""

from __future__ import annotations

import http.client
import uuid

import pytest
from support.cookies import PASSWORD
from support.rest import Rest
from support.shell import Shell
from support.streams import Stream
from websockets.exceptions import ConnectionClosed


@pytest.fixture
def somebody(rest: Rest):
    """The id of a member, their key and a sandbox of theirs, which is killed at the end."""
    made = rest.post("/api/v1/users", {"name": f"shut-out-{uuid.uuid4()}", "password": PASSWORD}).json()
    key = rest.post("/api/v1/keys", {"name": "test", "user_id": made["id"]}).json()
    sandbox = rest.post("/v2/sandboxes", {"templateID": "base", "timeout": 300}, key=key["key"]).json()
    yield made["id"], key, sandbox["sandboxID"]
    rest.delete(f"/api/v1/sandboxes/{sandbox['sandboxID']}?all=true")


def await_end(stream: Stream) -> None:
    try:
        while stream.answer.read(1):
            pass
    except TimeoutError:
        raise AssertionError("the stream goes on") from None
    except (OSError, http.client.HTTPException):
        pass  # cut off


@pytest.mark.parametrize("how", ["revoked", "disabled", "another role"])
def test_streams_and_terminals_end(rest: Rest, somebody, how: str) -> None:
    user, key, sandbox = somebody
    shell = Shell(rest.server, sandbox, {"X-API-KEY": key["key"]})
    shell.type("echo $((40+2))\n")
    shell.until("42")
    with Stream(rest, "/api/v1/sse?replay=0", key["key"]) as theirs, Stream(rest, "/api/v1/sse?replay=0") as ours:
        assert theirs.next()["event"] == "connected" and ours.next()["event"] == "connected"
        if how == "revoked":
            answer = rest.request("DELETE", f"/api/v1/keys/{key['id']}")
        else:
            change = {"disabled": True} if how == "disabled" else {"role": "viewer"}
            answer = rest.request("PATCH", f"/api/v1/users/{user}", change)
        assert answer.status in (200, 204), answer
        await_end(theirs)
        with pytest.raises(ConnectionClosed):
            shell.until("never shown")
        rest.post("/api/v1/agents", {"name": f"agent {how}", "adapter": "command", "config": {"command": ["true"]}})
        assert ours.next()["event"]  # of others nothing ends


def test_who_only_looks_gets_no_token_of_a_sandbox(rest: Rest, somebody) -> None:
    user, key, sandbox = somebody
    path = f"/sandboxes/{sandbox}"
    assert rest.get(path, key=key["key"]).json()["envdAccessToken"]
    assert rest.request("PATCH", f"/api/v1/users/{user}", {"role": "viewer"}).status == 200
    shown = rest.get(path, key=key["key"]).json()
    assert shown["sandboxID"] == sandbox and "envdAccessToken" not in shown
