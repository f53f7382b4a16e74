"""A small forge that speaks enough of GitHub: REST, GraphQL, git over smart HTTP, webhooks.

As a library: `Forge` (the pytest fixture `forge` is in support/forge_plugin.py). As a program:

    python3 tests/support/forge.py --port 8090 --repo owner/name --token T

It keeps state: a pull request needs a pushed branch, merging it changes the bare repository, and a
change of one sends a signed webhook. Faults can be planted to see how a client takes them.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import hmac
import itertools
import json
import queue
import re
import shutil
import signal
import socket
import ssl
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
import uuid
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

if not __package__:  # started as a program
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support import forge_json as render  # noqa: E402
from support.forge_api import Refusal, Request, dispatch  # noqa: E402
from support.forge_git import GitRepository, http_backend  # noqa: E402
from support.forge_oauth import OAuthApp  # noqa: E402
from support.forge_state import Account, App, Comment, Pull, Repository, Review  # noqa: E402

GIT_PATH = re.compile(r"/(?P<owner>[^/]+)/(?P<name>[^/]+?)(\.git)?/(?P<rest>info/refs|git-upload-pack|git-receive-pack)$")
IDLE_S = 60  # of a connection
PREFIX = "/api/v3"  # as GitHub Enterprise has it; works with and without


@dataclass
class Fault:
    """What happens to the next `times` requests that match."""

    kind: str  # "status", "drop" (before the request is carried out), "lose" (after), "delay", "hold"
    method: str = ""
    path: str = ""  # a regular expression, searched in the path
    times: int = 1
    status: int = 500
    headers: dict[str, str] = field(default_factory=dict)
    message: str = "Server Error"
    body: object = None  # instead of the message
    after_bytes: int = 0  # of the answer that still arrive when it is lost
    seconds: float = 0.0
    held: threading.Event = field(default_factory=threading.Event)  # a request waits for `go`
    go: threading.Event = field(default_factory=threading.Event)

    def matches(self, method: str, path: str) -> bool:
        return self.times > 0 and self.method in ("", method) and bool(re.search(self.path, path))


@dataclass
class Seen:
    """One request that arrived."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]  # names in lower case
    body: bytes
    status: int = 0  # 0: it got no answer

    @property
    def json(self) -> dict:
        return json.loads(self.body)


@dataclass
class Delivery:
    """One webhook; `answers` are the status codes of each attempt, 0 = it could not be sent."""

    id: str
    event: str
    payload: dict
    answers: list[int] = field(default_factory=list)
    answer_body: str = ""


class Forge:
    def __init__(self, port: int = 0, certificate: Path | None = None) -> None:
        """`certificate` is a PEM file with certificate and key: everything is by HTTPS then."""
        self.directory = Path(tempfile.mkdtemp(prefix="forge-"))
        self.repositories: dict[str, Repository] = {}  # by their names in lower case
        self.tokens: dict[str, Account] = {}
        self.anonymous = Account("", write=False, limit=60, remaining=60)
        self.people = {"reviewer", "octocat"}  # whom a review can be asked of
        self.connections = 0  # so many were made
        self.requests: list[Seen] = []
        self.deliveries: list[Delivery] = []
        self.oauth = OAuthApp()
        self.webhook_url = ""
        self.webhook_secret = ""
        self._faults: list[Fault] = []
        self._ids = itertools.count(1001)
        self._lock = threading.RLock()  # one REST request at a time
        self._webhooks: queue.Queue[Delivery | None] = queue.Queue(maxsize=1000)
        self._server = _Server(("127.0.0.1", port), self)
        self.scheme = "https" if certificate else "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            # The handshake is made by the thread of the connection.
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True,
                                                      do_handshake_on_connect=False)
        self.port = self._server.server_address[1]
        self._threads = [
            threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True),
            threading.Thread(target=self._send_webhooks, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    # ---- for tests ----------------------------------------------------------------------------

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    @property
    def api_url(self) -> str:
        return self.url + PREFIX

    @cached_property
    def app(self) -> App:
        return App(self.directory)

    def add_repository(
        self,
        full_name: str,
        private: bool = False,
        default_branch: str = "main",
        files: dict[str, str] | None = None,
    ) -> Repository:
        owner, _, name = full_name.partition("/")
        git = GitRepository(self.directory / "repositories" / owner / f"{name}.git")
        git.create(default_branch, {"README.md": f"# {name}\n"} if files is None else files)
        repo = Repository(owner, name, private, default_branch, git, self.api_url)
        self.repositories[full_name.lower()] = repo
        return repo

    def add_token(self, token: str, login: str = "octo-dev", **fields: object) -> Account:
        self.tokens[token] = Account(login, **fields)
        return self.tokens[token]

    def plant(self, kind: str, **fields: object) -> Fault:
        fault = Fault(kind, **fields)
        self._faults.append(fault)
        return fault

    def seen(self, method: str = "", path: str = "") -> list[Seen]:
        """The requests so far; `path` is a regular expression that matches the whole path."""
        found = [one for one in list(self.requests) if method in ("", one.method)]
        return [one for one in found if re.fullmatch(f"({PREFIX})?{path or '.*'}", one.path)]

    def review(
        self, pull: Pull, author: str, state: str, body: str = "", remarks: Iterable[tuple[str, int, str]] = ()
    ) -> Review:
        """As a reviewer would: "APPROVED", "CHANGES_REQUESTED" or "COMMENTED"; remarks are (path, line, text)."""
        review = Review(self.next_id(), author, body, state)
        pull.reviews.append(review)
        for path, line, text in remarks:
            pull.review_comments.append(Comment(self.next_id(), author, text, path, line, review_id=review.id))
        self.announce_review(pull, review)
        return review

    def wait_for_webhooks(self, count: int, deadline_s: float = 20) -> list[Delivery]:
        """Waits until so many deliveries were attempted."""
        end = time.monotonic() + deadline_s
        while True:
            done = [one for one in list(self.deliveries) if one.answers]
            if len(done) >= count:
                return done
            assert time.monotonic() < end, f"{len(done)} of {count} webhooks were sent in {deadline_s} s"
            time.sleep(0.02)

    def deliver_again(self, delivery: Delivery) -> None:
        """Sends it once more, as the button "Redeliver" does, and waits for the answer."""
        self._send(delivery)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._webhooks.put(None, timeout=5)
        for thread in self._threads:
            thread.join(10)
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Forge:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- webhooks -----------------------------------------------------------------------------

    def announce(self, pull: Pull, action: str, actor: str, **more: object) -> None:
        payload = {
            "action": action,
            "number": pull.number,
            "pull_request": render.pull_request(pull, self.url),
            **more,
        }
        self._announce("pull_request", pull.repo, actor, payload)

    def announce_review(self, pull: Pull, review: Review) -> None:
        shown = render.review(pull, review, self.url)
        shown["state"] = shown["state"].lower()  # webhooks spell it so
        payload = {"action": "submitted", "review": shown, "pull_request": render.simple_pull(pull, self.url)}
        self._announce("pull_request_review", pull.repo, review.author, payload)

    def _announce(self, event: str, repo: Repository, actor: str, payload: dict) -> None:
        payload |= {"repository": render.repository(repo, self.url), "sender": render.user(self.api_url, actor)}
        delivery = Delivery(str(uuid.uuid4()), event, payload)
        self.deliveries.append(delivery)
        if self.webhook_url:
            self._webhooks.put(delivery, timeout=5)

    def _send_webhooks(self) -> None:
        while (delivery := self._webhooks.get()) is not None:
            self._send(delivery)

    def _send(self, delivery: Delivery) -> None:
        body = json.dumps(delivery.payload).encode()
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "GitHub-Hookshot/044aadd",
            "X-GitHub-Event": delivery.event,
            "X-GitHub-Delivery": delivery.id,
            "X-GitHub-Hook-ID": "1",
        }
        if self.webhook_secret:
            digest = hmac.new(self.webhook_secret.encode(), body, hashlib.sha256).hexdigest()
            headers["X-Hub-Signature-256"] = f"sha256={digest}"
        request = urllib.request.Request(self.webhook_url, data=body, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                status, text = answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read().decode(errors="replace")
        except OSError as error:
            status, text = 0, str(error)
        delivery.answer_body = text
        delivery.answers.append(status)

    # ---- requests -----------------------------------------------------------------------------

    def next_id(self) -> int:
        return next(self._ids)

    def here(self, request: Request, **changes: object) -> str:
        return f"{self.url}{request.path}?{urlencode(request.query | changes)}"

    def take_fault(self, method: str, path: str) -> Fault | None:
        with self._lock:
            fault = next((one for one in self._faults if one.matches(method, path)), None)
            if fault:
                fault.times -= 1
            return fault

    def account_of(self, authorization: str) -> Account | None:
        """None: nobody. Raises a Refusal for a credential that is none."""
        scheme, _, credential = authorization.partition(" ")
        if not scheme:
            return None
        if scheme.lower() == "basic":
            credential = base64.b64decode(credential + "===").decode(errors="replace").rpartition(":")[2]
        account = self.tokens.get(credential)
        if login := self.oauth.tokens.get(credential):
            account = Account(login, write=False)
        if not account or (account.expires_at or time.time() + 1) < time.time():
            raise Refusal(401, "Bad credentials")
        return account

    def answer_rest(self, seen: Seen, path: str, target: str) -> tuple[int, dict[str, str], object]:
        """One call of the API: status, headers, the value of the body."""
        headers = {"X-GitHub-Media-Type": "github.v3; format=json"}
        try:
            bearer = seen.headers.get("authorization", "").partition(" ")[2]
            is_app = path.startswith("/app/")
            account = None if is_app else self.account_of(seen.headers.get("authorization", ""))
            self._spend(account or self.anonymous, path, headers)
            if "user-agent" not in seen.headers:
                raise Refusal(403, "Request forbidden by administrative rules. Add a User-Agent header.")
            request = Request(self, account, seen.query, self._body_of(seen), bearer, path=target)
            with self._lock:
                status, value = dispatch(request, seen.method, path)
            if request.link:
                headers["Link"] = request.link
            return status, headers, value
        except Refusal as refusal:
            return refusal.status, headers, refusal.body

    @staticmethod
    def _body_of(seen: Seen) -> dict:
        try:
            value = json.loads(seen.body) if seen.body else {}
        except ValueError:
            raise Refusal(400, "Problems parsing JSON") from None
        if not isinstance(value, dict):
            raise Refusal(400, "Body should be a JSON object")
        return value

    def _spend(self, account: Account, path: str, headers: dict[str, str]) -> None:
        with self._lock:
            if account.resets_at <= time.time():
                account.remaining, account.resets_at = account.limit, time.time() + 3600
            exhausted = account.remaining == 0 and path != "/rate_limit"
            if path != "/rate_limit" and account.remaining:
                account.remaining -= 1
            headers["X-RateLimit-Limit"] = str(account.limit)
            headers["X-RateLimit-Remaining"] = str(account.remaining)
            headers["X-RateLimit-Used"] = str(account.limit - account.remaining)
            headers["X-RateLimit-Reset"] = str(int(account.resets_at))
            headers["X-RateLimit-Resource"] = "core"
        if exhausted:
            raise Refusal(403, "API rate limit exceeded for user ID 1.")

    def answer_git(self, seen: Seen, found: re.Match[str]) -> tuple[int, list[tuple[str, str]], bytes]:
        """Git's own protocol: reading a public repository needs nobody, all else a token."""
        challenge = [("WWW-Authenticate", 'Basic realm="GitHub"')]
        repo = self.repositories.get(f"{found['owner']}/{found['name']}".lower())
        writes = "git-receive-pack" in (found["rest"], seen.query.get("service"))
        try:
            account = self.account_of(seen.headers.get("authorization", ""))
        except Refusal:
            return 401, challenge, b"Invalid username or password.\n"
        if not account and (writes or not repo or repo.private):
            return 401, challenge, b"Authentication is needed.\n"
        if not repo or (account and repo.private and not account.sees(repo)):
            return 404, [], b"Repository not found.\n"
        if writes and not (account and account.write and account.sees(repo)):
            return 403, [], b"Write access to repository not granted.\n"
        variables = {
            "REQUEST_METHOD": seen.method,
            "PATH_INFO": f"/{repo.full_name}.git/{found['rest']}",
            "QUERY_STRING": urlencode(seen.query),
            "CONTENT_TYPE": seen.headers.get("content-type", ""),
            "HTTP_GIT_PROTOCOL": seen.headers.get("git-protocol", ""),
            "REMOTE_USER": account.login if account else "",
        }
        body = seen.body
        if seen.headers.get("content-encoding") == "gzip":
            body = zlib.decompress(body, wbits=31)
        answer = http_backend(self.directory / "repositories", variables, body)
        if found["rest"] == "git-receive-pack":
            with self._lock:
                for pull in repo.follow_branches():
                    self.announce(pull, "synchronize", account.login, before="0" * 40, after=pull.head_sha)
        return answer


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], forge: Forge) -> None:
        super().__init__(address, _Handler)
        self.forge = forge

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away is nothing to report."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = IDLE_S
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.server.forge.connections += 1

    def log_message(self, *_: object) -> None:
        pass

    def _handle(self) -> None:
        forge, target = self.server.forge, urlsplit(self.path)
        query = dict(parse_qsl(target.query, keep_blank_values=True))
        headers = {name.lower(): value for name, value in self.headers.items()}
        seen = Seen(self.command, target.path, query, headers, self._read_body())
        forge.requests.append(seen)
        fault = forge.take_fault(seen.method, seen.path)
        if fault and fault.kind == "delay":
            time.sleep(fault.seconds)
        if fault and fault.kind == "hold":
            fault.held.set()
            fault.go.wait(IDLE_S)
        if fault and fault.kind == "drop":
            return self._drop()
        if fault and fault.kind == "status":
            body = {"message": fault.message} if fault.body is None else fault.body
            return self._answer(seen, fault.status, list(fault.headers.items()), json.dumps(body).encode())
        git = GIT_PATH.match(seen.path)
        if git:
            answer = forge.answer_git(seen, git)
        elif seen.path == "/login/oauth/authorize":
            answer = forge.oauth.authorize(query)
        elif seen.path == "/login/oauth/access_token":
            answer = forge.oauth.redeem(seen.body)
        else:
            path = seen.path.removeprefix(PREFIX)
            if path == "/api/graphql":  # where Enterprise has it
                path = "/graphql"
            status, extra, value = forge.answer_rest(seen, path, seen.path)
            body = b"" if value is None else json.dumps(value).encode()
            extra = {"Content-Type": "application/json; charset=utf-8", **extra}
            answer = status, list(extra.items()), body
        lose = fault.after_bytes if fault and fault.kind == "lose" else None
        self._answer(seen, *answer, lose=lose)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _handle

    def _read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return body

    def _answer(
        self, seen: Seen, status: int, headers: list[tuple[str, str]], body: bytes, lose: int | None = None
    ) -> None:
        text = f"HTTP/1.1 {status} {self.responses.get(status, ('',))[0]}\r\n"
        text += "".join(f"{name}: {value}\r\n" for name, value in headers)
        if status != 204:
            text += f"Content-Length: {len(body)}\r\n"
        data = text.encode() + b"\r\n" + body
        if lose is not None:
            self.wfile.write(data[:lose])
            return self._drop()
        seen.status = status
        self.wfile.write(data)

    def _drop(self) -> None:
        self.close_connection = True
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)


def main() -> None:
    parser = argparse.ArgumentParser(description="A small forge on 127.0.0.1 that speaks enough of GitHub.")
    parser.add_argument("--port", type=int, default=8090)
    parser.add_argument("--repo", action="append", default=[], metavar="OWNER/NAME", help="made with one commit")
    parser.add_argument("--private", action="store_true", help="the repositories are private")
    parser.add_argument("--token", action="append", default=[], help="a token that may do everything")
    parser.add_argument("--webhook-url", default="", help="where changes of pull requests are announced")
    parser.add_argument("--webhook-secret", default="", help="what the announcements are signed with")
    options = parser.parse_args()
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    with Forge(options.port) as forge:
        forge.webhook_url, forge.webhook_secret = options.webhook_url, options.webhook_secret
        for token in options.token:
            forge.add_token(token)
        for name in options.repo:
            forge.add_repository(name, options.private)
            print(f"forge: {forge.url}/{name}.git", flush=True)
        print(f"forge: ready, the API is at {forge.url}", flush=True)
        ended.wait()


if __name__ == "__main__":
    main()
