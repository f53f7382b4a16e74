"""Row 38: addresses that a client names and the server connects to. That is git, for tasks, squads,
sessions and sandboxes; models, GitHub's API and proxies are named by the operator."""

from __future__ import annotations

import http.server
import os
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from internet import ADDRESSES_V6, HOST, METADATA, PRIVATE, PUBLIC, Internet
from probes import probe

from support.rest import Response
from support.server import CaissonServer
from support.sessions import Session, wait_until
from support.work import Platform

pytestmark = pytest.mark.timeout(300)  # steps are tried again, and the machine may be busy
NOT_THE_INTERNET = "its address is not one of the internet"


class Doorbell:
    """Listens on all addresses of the host and counts who connects, whatever they speak."""

    def __init__(self) -> None:
        self.rings: list[str] = []
        self._socket = socket.create_server(
            ("::", 0), family=socket.AF_INET6, dualstack_ipv6=True, backlog=64
        )
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._answer, daemon=True).start()

    def _answer(self) -> None:
        while True:
            try:
                connection, peer = self._socket.accept()
            except OSError:
                return
            self.rings.append(peer[0])
            connection.close()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


@pytest.fixture
def doorbell(internet: Internet) -> Iterator[Doorbell]:
    """Nobody rang at the end of the test, except the test itself, which sees that it works."""
    bell = Doorbell()
    for address in ("127.0.0.1", "::1", HOST):
        socket.create_connection((address, bell.port), timeout=5).close()
    wait_until(lambda: len(bell.rings) == 3, "the bell rings")
    bell.rings.clear()
    yield bell
    bell.close()
    assert bell.rings == [], "the server connected to the host for a client"


@pytest.fixture
def platform(server: CaissonServer) -> Platform:
    return Platform(server)


@pytest.fixture
def sandbox(platform: Platform) -> Iterator[str]:
    made = platform.ask("POST", "/sandboxes", {}, 201).json()["id"]
    yield made
    platform.ask("DELETE", f"/sandboxes/{made}")


def connections(internet: Internet) -> list[str]:
    return [entry for entry in internet.seen() if not entry.startswith("dns")]


def clone(platform: Platform, sandbox: str, url: str) -> Response:
    return platform.ask("POST", f"/sandboxes/{sandbox}/git/clone", {"repo_url": url}, timeout=120)


def places(port: int) -> list[str]:
    """The host and what only the host reaches, in every way it can be written."""
    own = ["127.0.0.1", "127.8.9.10", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0.0.0.0"]
    own += ["localhost", "LOCALHOST.", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]"]
    own += [HOST, f"[::ffff:{HOST}]", "[fd99::1]"]
    far = [*METADATA, *PRIVATE, *(f"[{address}]" for address in ADDRESSES_V6[:1])]
    far += ["2852039166", "0xa9fea9fe", "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]"]
    return [f"{host}:{port}" for host in own] + [f"{host}:80" for host in far] + far


@probe(38)
def test_clones_from_what_only_the_server_reaches(
    platform: Platform, sandbox: str, doorbell: Doorbell, internet: Internet
):
    internet.seen()
    for place in places(doorbell.port):
        answer = clone(platform, sandbox, f"https://{place}/octo/repo.git")
        assert answer.status >= 400 and NOT_THE_INTERNET in answer.body.decode(), (place, answer)
    assert connections(internet) == []
    # What is refused is the address, not every foreign host.
    answer = clone(platform, sandbox, f"https://{PUBLIC}/octo/repo.git")
    assert answer.status >= 400 and NOT_THE_INTERNET not in answer.body.decode(), answer
    assert any(entry.startswith(f"tcp {PUBLIC}:443") for entry in connections(internet))


@probe(38)
def test_ssh_addresses_lead_nowhere_else(
    platform: Platform, sandbox: str, doorbell: Doorbell, internet: Internet
):
    """Without a deploy key they mean the same host by HTTPS; their port is SSH's, so it does not
    count."""
    internet.seen()
    for url in (
        "git@127.0.0.1:octo/repo.git",
        "git@localhost:octo/repo",
        f"ssh://git@127.0.0.1:{doorbell.port}/octo/repo.git",
        f"ssh://git@[::1]:{doorbell.port}/octo/repo.git",
        "ssh://git@169.254.169.254/octo/repo",
    ):
        answer = clone(platform, sandbox, url)
        assert answer.status >= 400 and NOT_THE_INTERNET in answer.body.decode(), (url, answer)
    assert connections(internet) == []


@probe(38)
def test_a_deploy_key_opens_no_port(make_server, doorbell: Doorbell, internet: Internet):
    """With one the server runs ssh, but only to hosts that the operator named."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        key, hosts = Path(folder, "key"), Path(folder, "hosts")
        key.write_text("never used\n")
        hosts.write_text("github.com ssh-ed25519 AAAA\n")
        settings = {"GIT_SSH_KEY_FILE": key, "GIT_SSH_KNOWN_HOSTS": hosts}
        platform = Platform(make_server(env={f"CAISSON_{k}": str(v) for k, v in settings.items()}))
        made = platform.ask("POST", "/sandboxes", {}, 201).json()["id"]
        internet.seen()
        for host in ("127.0.0.1", "localhost", "[::1]", HOST, METADATA[0]):
            answer = clone(platform, made, f"ssh://git@{host}:{doorbell.port}/octo/repo")
            assert answer.status >= 400, (host, answer)
            assert "connects only to hosts in git_ssh_known_hosts" in answer.body.decode(), answer
    assert connections(internet) == []


def no_addresses(port: int) -> list[str]:
    """What is no address of a repository, whoever reads it."""
    return [
        f"https://github.com@127.0.0.1:{port}/octo/repo",
        f"https://x:y@127.0.0.1:{port}/octo/repo",
        f"https://github.com%40127.0.0.1:{port}/octo/repo",
        f"https://github.com\\@127.0.0.1:{port}/octo/repo",
        f"https://127.0.0.1:{port}#@github.com/octo/repo",
        f"https://127.0.0.1:{port}?@github.com/octo/repo",
        f"http://127.0.0.1:{port}/octo/repo",
        f"git://127.0.0.1:{port}/octo/repo",
        f"ftp://127.0.0.1:{port}/octo/repo",
        f"gopher://127.0.0.1:{port}/octo/repo",
        f"root@127.0.0.1:{port}/octo/repo",
        f"ssh://root@127.0.0.1:{port}/octo/repo",
        "ssh://git@-oProxyCommand=id/octo/repo",
        "git@-oProxyCommand=id:octo/repo",
        "file:///etc/passwd",
        "file://localhost/octo/repo",
        "ext::sh -c id",
        "ext::nc% 127.0.0.1% 80/x",
        "fd::17/octo",
        "/etc/passwd",
        "../../octo",
        "--upload-pack=id/x",
        f"https://127.0.0.1:{port}/octo/repo\r\nHost: github.com",
        f"https://127.0.0.1:{port}/latest/meta-data/iam",
        f"https://127.0.0.1:{port}/octo/repo?x=y",
    ]


@probe(38)
def test_what_is_no_address_is_refused_at_once(
    platform: Platform, sandbox: str, doorbell: Doorbell, internet: Internet
):
    agent = platform.add_agent("true")["id"]
    task = platform.ask("POST", "/tasks", {"title": "x"}, 201).json()["id"]
    squad = platform.ask("POST", "/squads", {"name": "fetches"}, 201).json()["id"]
    internet.seen()
    for url in no_addresses(doorbell.port):
        for method, path, body in (
            ("POST", "/tasks", {"title": "x"}),
            ("PATCH", f"/tasks/{task}", {}),
            ("POST", f"/agents/{agent}/start-task", {"title": "x"}),
            ("POST", "/squads", {"name": "x"}),
            ("PATCH", f"/squads/{squad}", {}),
            ("POST", "/sessions", {"agent_id": agent}),
            ("POST", f"/sandboxes/{sandbox}/git/clone", {}),
        ):
            answer = platform.ask(method, path, {**body, "repo_url": url})
            assert answer.status in (400, 422), (method, path, url, answer)
            assert "repository" in answer.body.decode().lower() or "https" in answer.body.decode()
    assert connections(internet) == []


@probe(38)
def test_tasks_sessions_and_rows_lead_nowhere_else(
    platform: Platform, doorbell: Doorbell, internet: Internet
):
    """The other ways to git: the run of a task, an answer in a session, a row that names one."""
    url = f"https://localhost:{doorbell.port}/octo/repo"
    internet.seen()
    started = platform.start(platform.add_agent("true"), repo_url=url)
    assert NOT_THE_INTERNET in platform.wait_for_error(started)
    session = Session.begin(platform, "true", repo_url=url)
    assert NOT_THE_INTERNET in platform.wait_for_error(session.send("hello"))
    row = platform.ask("POST", "/sandboxes", {"repo_url": url}, 201).json()["id"]
    for operation, body in (("branch", {"name": "x"}), ("pull", {})):
        refused = platform.ask("POST", f"/sandboxes/{row}/git/{operation}", body, timeout=120)
        assert refused.status >= 400, refused
    platform.ask("DELETE", f"/sandboxes/{row}")
    assert connections(internet) == []


class _Elsewhere(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.send_response(302)
        self.send_header("Location", self.server.target + self.path)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@probe(38)
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", METADATA[0]])
def test_redirections_are_not_followed(make_server, doorbell: Doorbell, internet: Internet, host: str):
    """Even of the operator's own forge."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Elsewhere) as forge:
        port = 80 if host == METADATA[0] else doorbell.port
        forge.asked, forge.target = [], f"http://{host}:{port}"
        threading.Thread(target=forge.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{forge.server_address[1]}"
        platform = Platform(make_server(env={"CAISSON_GITHUB_URL": url}))
        made = platform.ask("POST", "/sandboxes", {}, 201).json()["id"]
        internet.seen()
        answer = clone(platform, made, "octo/repo")
        forge.shutdown()
    assert answer.status >= 400 and "which is not followed" in answer.body.decode(), answer
    assert forge.asked, "the forge was not asked at all"
    assert connections(internet) == []


@probe(38)
def test_nothing_else_takes_addresses(rest, internet: Internet):
    """Webhooks that call out and templates from elsewhere do not exist; whoever adds them adds
    their attempts."""
    internet.seen()
    target = "http://169.254.169.254/latest/meta-data"
    for path, body in (
        ("/templates", {"name": "x", "dockerfile": f"FROM {target}"}),
        ("/v2/templates", {"alias": "x"}),
        ("/v3/templates", {"name": "x"}),
        ("/events/webhooks", {"url": target}),
        ("/webhooks", {"url": target}),
        ("/api/v1/webhooks", {"url": target}),
    ):
        answer = rest.post(path, body)
        assert answer.status in (404, 405, 501), (path, answer)
    avatar = {"name": "seen", "role": "developer", "adapter": "command", "avatar_url": target,
              "config": {"command": ["true"]}}
    assert rest.post("/api/v1/agents", avatar).status == 201  # shown, never fetched
    assert connections(internet) == []
