"""The editor of a sandbox: a program inside, behind our own login whatever the other ports are."""

from __future__ import annotations

import http.client
from urllib.parse import urlsplit

import pytest
from support.builds import Builds, page
from support.rest import Response, assert_refusal
from support.sessions import Session, wait_until
from support.work import Platform

pytestmark = pytest.mark.timeout(300)

# Says which process it is, where it stands, and what it was sent.
EDITOR = """
import http.server, json, os
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"pid": os.getpid(), "cwd": os.getcwd(), "path": self.path,
                           "headers": dict(self.headers.items())}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args):
        pass
http.server.HTTPServer((os.environ["HOST"], int(os.environ["PORT"])), Handler).serve_forever()
"""
COMMAND = f"exec python3 -c '{EDITOR}'"
# Of a sandbox that everybody may talk to.
PUBLIC = "setsid -f python3 -m http.server 3000 >/dev/null 2>&1"


@pytest.fixture
def here(make_server) -> Builds:
    return Builds(make_server(env={"CAISSON_EDITOR_COMMAND": COMMAND, "CAISSON_BUILD_TIER": "none"}))


def fetch(platform: Platform, host: str, path: str = "/", **headers: str) -> Response:
    """As a browser asks, by the name of the port."""
    connection = http.client.HTTPConnection("127.0.0.1", platform.server.port, timeout=60)
    try:
        connection.request("GET", path, headers={"Host": host, **headers})
        answer = connection.getresponse()
        return Response(answer.status, answer.headers, answer.read())
    finally:
        connection.close()


def editor_of(platform: Platform, sandbox_id: str) -> dict:
    return platform.ask("POST", f"/sandboxes/{sandbox_id}/editor", status=200, timeout=180).json()


def enter(platform: Platform, editor: dict) -> tuple[str, str]:
    """Follows the address that the API gave: the host, and the cookie that it set."""
    url = urlsplit(editor["url"])
    accepted = fetch(platform, url.netloc, f"{url.path}?{url.query}")
    assert accepted.status == 303 and accepted.headers["Location"] == "/", accepted
    cookie = accepted.headers["Set-Cookie"]
    assert "HttpOnly" in cookie and "SameSite=Lax" in cookie and "Domain" not in cookie
    return url.netloc, cookie.partition(";")[0]


@pytest.mark.quick
def test_only_its_owner_reaches_the_editor_and_it_outlives_the_server(here: Builds) -> None:
    session = Session.begin(here).ready()
    sandbox = session.sandbox_id()
    session.run(PUBLIC)
    services = here.get(f"/sandboxes/{sandbox}/ports")["services"]
    assert services["editor"]["port"] == 13337 and not services["editor"]["open"]

    editor = editor_of(here, sandbox)
    host, cookie = enter(here, editor)
    assert host.startswith(f"13337-{sandbox}.")
    # Another port of the same sandbox is public, this one is not.
    wait_until(lambda: fetch(here, host.replace("13337-", "3000-")).status == 200, "the public port answers")
    refused = fetch(here, host)
    assert refused.status == 403 and "/editor" in refused.json()["message"]
    assert fetch(here, host, "/?caisson_editor=9999999999.00").status == 403
    assert fetch(here, host, **{"X-API-Key": here.server.api_key}).status == 403
    assert fetch(here, host, **{"e2b-traffic-access-token": "0" * 64}).status == 403
    # Nor may the page of another port use the cookie.
    origin = f"http://{host.replace('13337-', '3000-')}"
    assert fetch(here, host, Cookie=cookie, Origin=origin).status == 403

    seen = fetch(here, host, "/x?y=1", Cookie=f"{cookie}; theme=dark", Origin=f"http://{host}").json()
    assert seen["path"] == "/x?y=1" and seen["headers"]["Cookie"] == "theme=dark"
    token = {"e2b-traffic-access-token": editor["traffic_access_token"]}
    assert fetch(here, host, **token).json()["pid"] == seen["pid"]
    assert editor["traffic_access_token"].encode() not in fetch(here, host, **token).body

    # Asked for again it is the same one, also by the next server; and so are those who may enter.
    assert fetch(here, enter(here, editor_of(here, sandbox))[0], Cookie=cookie).json()["pid"] == seen["pid"]
    here.server.crash()
    here.server.start()
    assert fetch(here, host, Cookie=cookie).json()["pid"] == seen["pid"]
    assert fetch(here, host).status == 403
    host, cookie = enter(here, editor_of(here, sandbox))
    assert fetch(here, host, Cookie=cookie).json()["pid"] == seen["pid"]

    # One that has ended is started anew.
    session.run(f"kill {seen['pid']}")
    host, cookie = enter(here, editor_of(here, sandbox))
    assert fetch(here, host, Cookie=cookie).json()["pid"] != seen["pid"]


def test_the_editor_stands_where_the_work_is(here: Builds) -> None:
    build = here.ready(files={"index.html": page("Here")})
    host, cookie = enter(here, editor_of(here, build["sandbox_id"]))
    assert fetch(here, host, Cookie=cookie).json()["cwd"] == build["workspace_path"]


def test_nobody_opens_the_editor_of_somebody_else(here: Builds) -> None:
    sandbox = here.ask("POST", "/sandboxes", {}, 201).json()["id"]
    eve = here.ask("POST", "/users", {"name": "eve", "role": "member", "password": "a long password"}, 201).json()
    key = here.ask("POST", "/keys", {"name": "test", "user_id": eve["id"]}, 201).json()["key"]
    assert_refusal(here.ask("POST", f"/sandboxes/{sandbox}/editor", key=key), 404)


def test_without_an_editor_the_refusal_says_so(server) -> None:
    here = Platform(server)
    sandbox = here.ask("POST", "/sandboxes", {}, 201).json()["id"]
    refused = here.ask("POST", f"/sandboxes/{sandbox}/editor")
    assert_refusal(refused, 409, "no_editor", "editor_command")
    assert here.get(f"/sandboxes/{sandbox}/ports")["services"] == {}
    # The port is one like all others then.
    host = f"13337-{sandbox}.caisson.localhost:{here.server.port}"
    assert b"port is not open" in fetch(here, host).body
    here.ask("DELETE", f"/sandboxes/{sandbox}", status=204)


@pytest.mark.parametrize(("command", "status", "code", "says"), [
    ("echo no such folder >&2; exit 7", 503, "editor_failed", "status 7: no such folder"),
    ("sleep 1000", 504, "editor_timeout", "13337"),
])
def test_an_editor_that_does_not_come_up_is_told(make_server, command: str, status: int, code: str, says: str) -> None:
    here = Platform(make_server(env={"CAISSON_EDITOR_COMMAND": command, "CAISSON_BUILD_READY_TIMEOUT_S": "2"}))
    sandbox = here.ask("POST", "/sandboxes", {}, 201).json()["id"]
    for _ in range(2):
        assert_refusal(here.ask("POST", f"/sandboxes/{sandbox}/editor", timeout=180), status, code, says)
