"""A server with something of everything in it, for tests that call each operation of /api/v1."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import itertools
import json
import time
from functools import cached_property
from http.cookies import SimpleCookie
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from support.forge import Forge
from support.forge_plugin import FORGE_REPOSITORY
from support.rest import Response
from support.server import CaissonServer
from support.shell import Shell
from support.work import Platform

WEBHOOK_SECRET = "a webhook secret"
PASSWORD = "correct horse battery"
DEADLINE_S = 60
# What a server of these tests takes for a browser: it makes a picture of nothing.
BROWSER = {"CAISSON_BROWSER": "/home/user/project/browser", "CAISSON_BUILD_TIER": "none"}
PAINTER = "#!/bin/sh\nfor a; do case $a in --screenshot=*) head -c 9000 /dev/zero > ${a#*=};; esac; done\n"


class World:
    """`call()` makes the operation that `turn_to()` named; what it needs is made when it is asked for."""

    def __init__(self, server: CaissonServer, forge: Forge) -> None:
        self.platform = Platform(server)
        self.rest = self.platform.rest
        self.forge = forge
        self.document = self.rest.get("/api/v1/openapi.json", key=None).json()
        self.statuses: dict[str, set[int]] = {}  # of each operation, as they were answered
        self._names = itertools.count(1)
        self._operations = {
            operation["operationId"]: (method.upper(), path, operation)
            for path, item in self.document["paths"].items()
            for method, operation in item.items()
        }
        self.now = ""
        self.path = ""  # of the checkout

    @property
    def operations(self) -> list[str]:
        """Those that are no other spelling of another."""
        return [name for name, (_, _, one) in self._operations.items() if not one.get("deprecated")]

    @property
    def aliases(self) -> list[str]:
        """The other spellings."""
        return [name for name, (_, _, one) in self._operations.items() if one.get("deprecated")]

    def described(self, operation: str) -> dict:
        return self._operations[operation][2]

    def method_of(self, operation: str) -> str:
        return self._operations[operation][0]

    def path_of(self, operation: str) -> str:
        return self._operations[operation][1]

    def fields_of(self, operation: str) -> set[str]:
        """Of its body."""
        content = self.described(operation).get("requestBody", {}).get("content", {})
        reference = content.get("application/json", {}).get("schema", {}).get("$ref", "")
        schema = self.document["components"]["schemas"].get(reference.rpartition("/")[2], {})
        return set(schema.get("properties", {}))

    def turn_to(self, operation: str) -> None:
        self.now = operation

    def name(self) -> str:
        return f"name-{next(self._names)}"

    # ---- calls --------------------------------------------------------------------------------

    def call(
        self,
        body: object = None,
        query: dict | None = None,
        headers: dict[str, str] | None = None,
        key: str | None = "",
        **params: object,
    ) -> Response:
        """`params` are the parts of the path."""
        method, pattern, operation = self._operations[self.now]
        path = pattern.format(**{name: quote(str(value), safe="") for name, value in params.items()})
        if query:
            path += "?" + urlencode(query)
        if "text/event-stream" in str(operation["responses"]) and method == "GET":
            answer = self._open_stream(path, key)
        else:
            answer = self.rest.request(method, path, body, headers=headers, key=key)
        self.statuses.setdefault(self.now, set()).add(answer.status)
        return answer

    def _open_stream(self, path: str, key: str | None) -> Response:
        """The head and the first event; a stream has no end to wait for."""
        connection = http.client.HTTPConnection("127.0.0.1", self.rest.server.port, timeout=DEADLINE_S)
        try:
            sent = {} if key is None else {"X-API-KEY": key or self.rest.server.api_key}
            connection.request("GET", path, headers=sent)
            answer = connection.getresponse()
            return Response(answer.status, answer.headers, answer.readline())
        finally:
            connection.close()

    def make(self, path: str, body: object) -> dict:
        answer = self.platform.ask("POST", path, body)
        assert answer.status in (200, 201, 202), (path, answer)
        return answer.json()

    def until(self, path: str, ready) -> dict:
        deadline = time.monotonic() + DEADLINE_S
        while not ready(found := self.platform.get(path)):
            assert time.monotonic() < deadline, (path, found)
            time.sleep(0.05)
        return found

    # ---- users ----------------------------------------------------------------------------------

    def user(self) -> dict:
        return self.make("/users", {"name": self.name(), "password": PASSWORD})

    def key(self) -> dict:
        return self.make("/keys", {"name": self.name(), "user_id": self.user()["id"]})

    def login(self) -> dict[str, str]:
        """The headers of a page that somebody has logged in with."""
        body = {"name": self.user()["name"], "password": PASSWORD}
        answer = self.rest.request("POST", "/api/v1/auth/login", body, key=None)
        cookies = SimpleCookie()
        for line in answer.headers.get_all("Set-Cookie"):
            cookies.load(line)
        text = "; ".join(f"{name}={cookie.value}" for name, cookie in cookies.items())
        return {"Cookie": text, "X-CSRF-Token": cookies["caisson_csrf"].value}

    def back_from_github(self) -> dict[str, object]:
        """What a browser sends that comes back with a code."""
        begun = self.rest.request("GET", "/api/v1/auth/github", key=None)
        cookie = begun.headers["Set-Cookie"].partition(";")[0]
        query = dict(parse_qsl(urlsplit(begun.headers["Location"]).query))
        back = dict(self.forge.oauth.authorize(query)[1])["Location"]
        return {"query": dict(parse_qsl(urlsplit(back).query)), "headers": {"Cookie": cookie}}

    # ---- work -----------------------------------------------------------------------------------

    def agent(self, script: str = "echo text > $RANDOM$RANDOM.txt", **config: object) -> dict:
        config = {"command": ["bash", "-c", script], **config}
        return self.make("/agents", {"name": self.name(), "adapter": "command", "config": config})

    def outside_agent(self) -> dict:
        return self.make("/agents", {"name": self.name(), "adapter": "external"})

    def squad(self) -> dict:
        return self.make("/squads", {"name": self.name()})

    def task(self, **fields: object) -> dict:
        return self.make("/tasks", {"title": self.name(), "repo_url": FORGE_REPOSITORY, **fields})

    def assigned_task(self) -> dict:
        return self.task(agent_id=self.agent()["id"])

    def claimed(self) -> tuple[dict, dict]:
        """An outside agent, and the execution it has taken."""
        agent = self.outside_agent()
        task = self.task(agent_id=agent["id"])
        self.make(f"/tasks/{task['id']}/start", {})
        claimed = self.make(f"/agents/{agent['id']}/claim", {"wait_s": 20})
        return agent, claimed["execution"]

    def started(self, script: str, **config: object) -> dict:
        agent = self.agent(script, **config)
        return self.make(f"/agents/{agent['id']}/start-task", {"title": self.name(), "repo_url": FORGE_REPOSITORY})

    @cached_property
    def finished(self) -> dict:
        """A task whose pull request is open."""
        started = self.started("echo text > $RANDOM$RANDOM.txt")
        self.platform.wait(started)
        return started

    def share(self) -> dict:
        """A link to the finished task."""
        return self.make(f"/tasks/{self.finished['task_id']}/shares", {})

    def kept_checkout(self) -> dict:
        """One that was kept after a task."""
        self.platform.wait(self.started("true"))
        return self.platform.get("/checkouts")["checkouts"][0]

    def share_token(self) -> str:
        return self.share()["url"].rpartition("/")[2]

    def failed_run(self) -> str:
        started = self.started("exit 3")
        self.until(f"/runs/{started['run_id']}", lambda run: run["state"] in ("failed", "dead"))
        return started["run_id"]

    def long_run(self) -> str:
        """One that works until it is canceled."""
        return self.started("sleep 600")["run_id"]

    def approval(self) -> dict:
        """A question that waits for its answer."""
        started = self.started("echo text > $RANDOM$RANDOM.txt", approve_push=True)
        mine = lambda one: one["task_id"] == started["task_id"]  # noqa: E731
        found = self.until("/approvals?state=pending", lambda page: any(map(mine, page["approvals"])))
        return next(filter(mine, found["approvals"]))

    # ---- sandboxes ------------------------------------------------------------------------------

    def new_sandbox(self) -> str:
        return self.make("/sandboxes", {})["id"]

    @cached_property
    def sandbox(self) -> str:
        return self.new_sandbox()

    def terminal(self) -> str:
        with Shell(self.rest.server, self.sandbox) as shell:
            return shell.id

    @cached_property
    def checkout(self) -> str:
        """A sandbox with a clone, on a branch of its own."""
        sandbox = self.new_sandbox()
        self.path = self.make(f"/sandboxes/{sandbox}/git/clone", {"repo_url": FORGE_REPOSITORY})["path"]
        self.make(f"/sandboxes/{sandbox}/git/branch", {"name": "agent/work"})
        return sandbox

    def committed(self) -> str:
        """The checkout with a commit that is not pushed."""
        sandbox = self.checkout
        self.make(f"/sandboxes/{sandbox}/execute", {"command": f"echo {self.name()} > file.txt", "cwd": self.path})
        assert self.make(f"/sandboxes/{sandbox}/git/commit", {"message": "feat: a change"})["committed"]
        return self.checkout

    def pushed(self) -> str:
        self.make(f"/sandboxes/{self.committed()}/git/push", {})
        return self.checkout

    # ---- sessions -------------------------------------------------------------------------------

    def new_session(self) -> str:
        return self.make("/sessions", {"title": self.name(), "agent_id": self.agent("true")["id"]})["id"]

    def idle_session(self) -> str:
        """One whose sandbox runs."""
        session = self.new_session()
        self.make(f"/sessions/{session}/sandbox/provision", {})
        return session

    @cached_property
    def session(self) -> str:
        return self.idle_session()

    # ---- builds ---------------------------------------------------------------------------------

    def new_build(self, **fields: object) -> dict:
        files = {"index.html": "<h1>text</h1>", "browser": PAINTER}
        return self.make("/builds", {"project": self.name(), "files": files, "checks": ["chmod +x browser"], **fields})

    def iteration(self) -> dict:
        """A further build of a project of its own."""
        first = self.new_build()
        self.until(f"/builds/{first['id']}", lambda build: build["state"] == "ready")
        return self.new_build(parent_id=first["id"], project=first["project"])

    def ended_build(self) -> dict:
        """One after which nothing is done any more."""
        made = self.new_build()
        build = self.until(f"/builds/{made['id']}", lambda build: build["state"] == "ready")
        self.until(f"/runs/{build['run_id']}", lambda run: run["finished_at"])
        return build

    @cached_property
    def build(self) -> dict:
        """One that is ready and has its picture."""
        made = self.new_build()
        return self.until(f"/builds/{made['id']}", lambda build: build["snapshot_url"])

    # ---- GitHub -----------------------------------------------------------------------------------

    def branch(self) -> str:
        name = self.name()
        repo = self.forge.repositories[FORGE_REPOSITORY]
        repo.git.commit(name, {f"{name}.txt": "text\n"}, "feat: text", base="main")
        return name

    def pull(self, **fields: object) -> int:
        new = {"repo": FORGE_REPOSITORY, "title": self.name(), "head": self.branch(), **fields}
        return self.make("/github/pull-requests", new)["number"]

    def remark(self, number: int) -> dict:
        (path,) = self.forge.repositories[FORGE_REPOSITORY].git.changed_files("main", self.head(number))
        return {"repo": FORGE_REPOSITORY, "path": path, "line": 1, "body": "Why?"}

    def head(self, number: int) -> str:
        return next(p.head_sha for p in self.forge.repositories[FORGE_REPOSITORY].pulls if p.number == number)

    def issue(self) -> int:
        return self.make("/github/issues", {"repo": FORGE_REPOSITORY, "title": self.name()})["number"]

    def webhook(self, body: dict, event: str = "ping") -> Response:
        text = json.dumps(body).encode()
        signature = hmac.new(WEBHOOK_SECRET.encode(), text, hashlib.sha256).hexdigest()
        headers = {
            "Content-Type": "application/json",
            "X-GitHub-Event": event,
            "X-GitHub-Delivery": self.name(),
            "X-Hub-Signature-256": f"sha256={signature}",
        }
        return self.call(text, headers=headers, key=None)
