"""Which ports of a sandbox are open, and that they are reached where the answer says."""

from __future__ import annotations

import http.client
import time
from urllib.parse import urlsplit

from support.rest import Rest, assert_refusal

ALL = "/api/v1/sandboxes"
SERVERS = ("cd /tmp && (python3 -m http.server 3000 --bind 127.0.0.1 > /dev/null 2>&1 &) && "
           "(python3 -m http.server 8080 --bind :: > /dev/null 2>&1 &)")


def test_ports_are_found_and_reached(rest: Rest):
    sandbox = rest.post("/v2/sandboxes", {"templateID": "base", "timeout": 300}).json()["sandboxID"]
    path = f"{ALL}/{sandbox}/ports"
    assert rest.get(path).json() == {"ports": [], "total": 0, "services": {}}
    assert rest.post(f"{ALL}/{sandbox}/execute", {"command": SERVERS}).status == 200
    deadline = time.monotonic() + 60
    while (found := rest.get(path).json())["total"] < 2:
        assert time.monotonic() < deadline, found
        time.sleep(0.1)
    assert [port["port"] for port in found["ports"]] == [3000, 8080]
    assert all(port["process"].startswith("python3") for port in found["ports"]), found
    for port in found["ports"]:
        url = urlsplit(port["url"])
        assert url.netloc == f"{port['port']}-{sandbox}.caisson.localhost:{rest.server.port}"
        connection = http.client.HTTPConnection("127.0.0.1", rest.server.port, timeout=60)
        connection.request("GET", "/", headers={"Host": url.netloc})
        assert connection.getresponse().status == 200
        connection.close()

    stranger = rest.post("/api/v1/keys", {"name": "stranger", "own_user": True}).json()["key"]
    assert_refusal(rest.get(path, key=stranger), 404)
    assert rest.post(f"{ALL}/{sandbox}/pause", {}).status == 200
    assert_refusal(rest.get(path), 409)
    assert rest.get(f"{ALL}/{sandbox}").json()["status"] == "paused"
    assert rest.request("DELETE", f"{ALL}/{sandbox}").status == 204
    assert_refusal(rest.get(path), 409)
