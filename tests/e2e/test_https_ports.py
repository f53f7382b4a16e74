"""Ports of a sandbox where its server speaks TLS (network.httpsPorts), with E2B's own client."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest
from e2b import Sandbox

from support.rest import Response, Rest

SERVER = """
import http.server, ssl, sys
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), http.server.SimpleHTTPRequestHandler)
if sys.argv[2] == "tls":
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("/tmp/cert.pem", "/tmp/key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""
TLS, PLAIN = 8443, 8080
LONG = "x" * 3_000_000


@pytest.fixture
def box(rest: Rest, tmp_path: Path):
    """A server with TLS, and one without that is said to have it."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=nobody",
                    "-keyout", "key.pem", "-out", "cert.pem"], cwd=tmp_path, check=True, timeout=60, capture_output=True)
    made = Sandbox.create(network={"https_ports": [TLS, PLAIN]}, timeout=300, **options(rest))
    for name in ("key.pem", "cert.pem"):
        made.files.write(f"/tmp/{name}", (tmp_path / name).read_text())
    made.files.write("/tmp/serve.py", SERVER)
    made.files.write("/tmp/site/long.txt", LONG)
    for port, kind in ((TLS, "tls"), (PLAIN, "plain")):
        made.commands.run(f"python3 /tmp/serve.py {port} {kind}", background=True, timeout=0, cwd="/tmp/site")
    yield made
    made.kill()


def options(rest: Rest) -> dict[str, str]:
    variables = rest.server.sdk_environment
    return {"api_key": variables["E2B_API_KEY"], "api_url": variables["E2B_API_URL"],
            "sandbox_url": variables["E2B_SANDBOX_URL"]}


def ask(rest: Rest, box: Sandbox, port: int, path: str) -> Response:
    """Once somebody listens there."""
    headers = {"E2b-Sandbox-Id": box.sandbox_id, "E2b-Sandbox-Port": str(port)}
    deadline = time.monotonic() + 60
    while "not open" in str((answer := rest.request("GET", path, headers=headers, key=None)).body[:300]):
        assert time.monotonic() < deadline, answer
        time.sleep(0.1)
    return answer


@pytest.mark.timeout(180)
def test_a_server_with_tls_is_reached(rest: Rest, box: Sandbox):
    """Its certificate is the sandbox's own, which nobody can check."""
    for _ in range(3):
        answer = ask(rest, box, TLS, "/long.txt")
        assert answer.status == 200 and answer.body == LONG.encode()
    wrong = ask(rest, box, PLAIN, "/long.txt")
    assert wrong.status == 502 and "does not speak TLS" in wrong.json()["message"], wrong


@pytest.mark.timeout(180)
def test_the_ports_stay_when_the_rest_changes(rest: Rest, box: Sandbox):
    box.update_network({"deny_out": ["10.0.0.0/8"]})
    assert sorted(box.get_info().network["https_ports"]) == [PLAIN, TLS]
    box.pause()
    Sandbox.connect(box.sandbox_id, timeout=300, **options(rest))
    assert ask(rest, box, TLS, "/long.txt").status == 200
    assert sorted(box.get_info().network["https_ports"]) == [PLAIN, TLS]
