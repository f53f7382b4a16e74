"""A client for the tables whose operations take milliseconds: one connection, every answer counted."""

import base64
import http.client
import json
import struct
import time

ENVD_PORT = "49983"


class Failed(Exception):
    pass


class Api:
    operations = 0  # of all clients together
    failures = []

    def __init__(self, server):
        self.server = server
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)

    def call(self, method, path, body=None, expect=(200, 201, 204), headers=None):
        """Returns the decoded answer and how many ms it took; anything unexpected is a failure."""
        sent = {"X-API-KEY": self.server.api_key, "Content-Type": "application/json", **(headers or {})}
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        Api.operations += 1
        start = time.perf_counter()
        try:
            self.connection.request(method, path, data, sent)
            answer = self.connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.connection.close()
            return self._fail(method, path, repr(error))
        took = (time.perf_counter() - start) * 1000
        if answer.status not in expect:
            return self._fail(method, path, f"{answer.status} {text[:300].decode(errors='replace')}")
        kind = answer.headers.get("Content-Type", "")
        return (json.loads(text) if text and kind == "application/json" else text), took

    def _fail(self, method, path, why):
        Api.failures.append(f"{method} {path}: {why}")
        raise Failed(Api.failures[-1])

    # -- sandboxes ---------------------------------------------------------------------------

    def create(self, template="base", **fields):
        body = {"templateID": template, "timeout": 3600, **fields}
        return self.call("POST", "/v2/sandboxes", body)

    def act(self, sandbox, action, body=None):
        return self.call("POST", f"/sandboxes/{sandbox['sandboxID']}/{action}", body)

    def kill(self, sandbox):
        return self.call("DELETE", f"/sandboxes/{sandbox['sandboxID']}")

    def delete_snapshot(self, name):
        return self.call("DELETE", f"/templates/{name}")

    def inside(self, sandbox, port, path="/", expect=(200,)):
        """A request to a server inside."""
        host = {"Host": f"{port}-{sandbox['sandboxID']}.caisson.localhost"}
        return self.call("GET", path, headers=host, expect=expect)

    def start(self, sandbox, *command):
        """Starts a program and leaves it running."""
        process = {"cmd": command[0], "args": list(command[1:])}
        message = json.dumps({"process": process, "stdin": False}).encode()
        headers = {
            "E2b-Sandbox-Id": sandbox["sandboxID"],
            "E2b-Sandbox-Port": ENVD_PORT,
            "X-Access-Token": sandbox.get("envdAccessToken") or "",
            "Authorization": "Basic " + base64.b64encode(b"user:").decode(),
            "Content-Type": "application/connect+json",
            "Connect-Protocol-Version": "1",
        }
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        Api.operations += 1
        connection.request("POST", "/process.Process/Start",
                           struct.pack(">BI", 0, len(message)) + message, headers)
        answer = connection.getresponse()
        if answer.status != 200:
            self._fail("POST", "/process.Process/Start", f"{answer.status} {answer.read(300)}")
        answer.read(5)  # the first message has come: it runs
        connection.close()

    def wait_inside(self, sandbox, port, seconds=60):
        """Until a server inside answers; not counted as operations."""
        deadline = time.monotonic() + seconds
        headers = {"Host": f"{port}-{sandbox['sandboxID']}.caisson.localhost"}
        while True:
            self.connection.request("GET", "/", headers=headers)
            answer = self.connection.getresponse()
            answer.read()
            if answer.status == 200:
                return
            if time.monotonic() > deadline:
                self._fail("GET", f"port {port} inside", f"still {answer.status}")
            time.sleep(0.005)
