"""`--tls auto`: a local authority, and host names that the certificate covers."""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
import stat
import subprocess
import sys
import time

import pytest

from support.programs import HTTP_SERVER
from support.server import CaissonServer

pytestmark = pytest.mark.sanitized


def call(
    server: CaissonServer,
    host: str,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: dict | None = None,
) -> tuple[int, bytes]:
    """HTTPS to the server's address under any name, verified against the server's own CA."""
    trust = ssl.create_default_context(cafile=str(server.data_dir / "tls/ca.pem"))
    raw = socket.create_connection(("127.0.0.1", server.port), timeout=30)
    with trust.wrap_socket(raw, server_hostname=host) as secured:
        connection = http.client.HTTPConnection(host, server.port)
        connection.sock = secured
        connection.request(method, path, body, {"Host": f"{host}:{server.port}", **(headers or {})})
        answer = connection.getresponse()
        return answer.status, answer.read()


@pytest.fixture(scope="module")
def secured():
    with CaissonServer(["--tls", "auto"]) as server:
        yield server


def api(server: CaissonServer, method: str, path: str, body: object = None) -> tuple[int, object]:
    headers = {"X-API-KEY": server.api_key, "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    status, text = call(server, "api.caisson.localhost", method, path, data, headers)
    return status, json.loads(text) if text else None


@pytest.mark.timeout(120)
def test_sandbox_names_are_covered(secured: CaissonServer):
    assert secured.scheme == "https"
    status, made = api(secured, "POST", "/v2/sandboxes", {"templateID": "base", "timeout": 120})
    assert status == 201
    try:
        assert made["domain"] == f"caisson.localhost:{secured.port}"
        envd = f"49983-{made['sandboxID']}.caisson.localhost"
        token = {"X-Access-Token": made["envdAccessToken"]}
        assert call(secured, envd, "GET", "/health")[0] == 204
        upload = {**token, "Content-Type": "application/octet-stream"}
        assert (
            call(secured, envd, "POST", "/files?path=/tmp/serve.py", HTTP_SERVER.encode(), upload)[
                0
            ]
            == 200
        )
        message = json.dumps(
            {"process": {"cmd": "/usr/bin/python3", "args": ["/tmp/serve.py", "3000", "127.0.0.1"]}}
        ).encode()
        start = {**token, "Content-Type": "application/connect+json", "Connect-Timeout-Ms": "600000"}
        raw = b"\x00" + len(message).to_bytes(4, "big") + message
        host = f"3000-{made['sandboxID']}.caisson.localhost"
        trust = ssl.create_default_context(cafile=str(secured.data_dir / "tls/ca.pem"))
        plain = socket.create_connection(("127.0.0.1", secured.port), timeout=30)
        with trust.wrap_socket(plain, server_hostname=envd) as stream:
            connection = http.client.HTTPConnection(envd)
            connection.sock = stream
            connection.request("POST", "/process.Process/Start", raw, {"Host": envd, **start})
            answer = connection.getresponse()
            size = int.from_bytes(answer.read(5)[1:], "big")
            assert b'"start"' in answer.read(size)  # the stream stays open; its start is enough for us
        end = time.monotonic() + 30
        while (answer := call(secured, host, "GET", "/p"))[0] != 200:
            assert time.monotonic() < end, answer
            time.sleep(0.2)
        assert json.loads(answer[1])["path"] == "/p"
    finally:
        assert api(secured, "DELETE", f"/sandboxes/{made['sandboxID']}")[0] == 204


def test_authority_is_kept_private_and_reused(secured: CaissonServer):
    directory = secured.data_dir / "tls"
    authority = (directory / "ca.pem").read_bytes()
    assert b"PRIVATE KEY" not in authority
    keys = [p for p in directory.iterdir() if b"PRIVATE KEY" in p.read_bytes()]
    assert keys
    for key in keys:
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
    secured.stop()
    secured.restart()
    assert (directory / "ca.pem").read_bytes() == authority


def test_a_stranger_does_not_trust_it(secured: CaissonServer):
    with pytest.raises(ssl.SSLCertVerificationError):
        raw = socket.create_connection(("127.0.0.1", secured.port), timeout=10)
        ssl.create_default_context().wrap_socket(raw, server_hostname="caisson.localhost")


def test_plain_http_on_the_tls_port_does_not_hang(secured: CaissonServer):
    with socket.create_connection(("127.0.0.1", secured.port), timeout=30) as plain:
        plain.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        try:
            answer = plain.recv(4096)
        except ConnectionResetError:
            answer = b""
    assert not answer.startswith(b"HTTP/1.1 2")


@pytest.mark.timeout(180)
def test_sdk_over_https_with_its_plain_settings(secured: CaissonServer):
    """Only domain, key and the CA: what a user has who does not set E2B_SANDBOX_URL.

    Names under .localhost need no DNS where the resolver knows them; here they are mapped.
    """
    program = (
        "import socket\n"
        "real = socket.getaddrinfo\n"
        "socket.getaddrinfo = lambda host, *a, **k: real('127.0.0.1', *a, **k)\n"
        "from e2b import Sandbox\n"
        "s = Sandbox.create(timeout=60)\n"
        "print(s.commands.run('echo over tls').stdout, end='')\n"
        "s.kill()\n"
        # See tests/sdk/python/egress_rules.py: the end of the interpreter is not what is tested.
        "import os, sys\n"
        "sys.stdout.flush()\n"
        "os._exit(0)\n"
    )
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith("E2B_")},
        "E2B_API_KEY": secured.api_key,
        "E2B_DOMAIN": f"caisson.localhost:{secured.port}",
        "SSL_CERT_FILE": str(secured.data_dir / "tls/ca.pem"),
    }
    run = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert (run.returncode, run.stdout) == (0, "over tls\n"), run.stderr[-2000:]
