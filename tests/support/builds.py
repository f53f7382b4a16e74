"""Builds of one server, as a user of /api/v1 sees them."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable
from urllib.parse import urlsplit

from support.work import Platform

DEADLINE_S = 240


def page(title: str) -> str:
    return f"<!doctype html><title>{title}</title><h1>{title}</h1>\n"


class Builds(Platform):
    def create(self, project: str = "shop", **fields: object) -> dict:
        return self.ask("POST", "/builds", {"project": project, **fields}, 201).json()

    def show(self, build: dict) -> dict:
        return self.get(f"/builds/{build['id']}")

    def ready(self, **fields: object) -> dict:
        return self.wait(self.create(**fields))

    def wait(self, build: dict, state: str = "ready", deadline_s: float = DEADLINE_S) -> dict:
        """Waits until the build is over and nothing follows any more; shows its log if that is a surprise."""
        deadline = time.monotonic() + deadline_s
        while True:
            now = self.show(build)
            over = now["state"] in ("ready", "failed")
            if over and (not now["run_id"] or self.run(now["run_id"])["finished_at"]):
                log = "\n".join(line["text"] for line in self.log(now)[-60:])
                assert now["state"] == state, f"{json.dumps(now, indent=1)}\n{log}"
                return self.show(build)
            assert time.monotonic() < deadline, f"the build does not end: {json.dumps(now, indent=1)}"
            time.sleep(0.1)

    def wait_until(self, true: Callable[[], object], what: str, deadline_s: float = DEADLINE_S) -> None:
        deadline = time.monotonic() + deadline_s
        while not true():
            assert time.monotonic() < deadline, f"it does not come to this: {what}"
            time.sleep(0.1)

    def events(self, build: dict, kind: str) -> list[dict]:  # type: ignore[override]
        return super().events(build_id=build["id"], type=kind)

    def fixes(self, build: dict) -> list[tuple[int, int]]:
        return [(e["attempt"], e["max"]) for e in self.events(build, "build.autofix")]

    def log(self, build: dict) -> list[dict]:
        lines: list[dict] = []
        before: dict[str, object] = {}
        while True:
            part = self.get(f"/builds/{build['id']}/logs", limit=500, **before)
            lines = part["lines"] + lines
            if not part["has_more"]:
                return lines
            before = {"before_id": part["oldest_id"]}

    def fetch_bytes(self, build: dict, path: str = "/") -> tuple[int, bytes]:
        """What the preview answers, asked as a browser would: by its name."""
        host = urlsplit(build["preview_url"]).netloc
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        connection.request("GET", path, headers={"Host": host})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, content

    def fetch(self, build: dict, path: str = "/") -> tuple[int, str]:
        status, content = self.fetch_bytes(build, path)
        return status, content.decode()

    def open(self, build: dict, path: str = "/") -> str:
        status, text = self.fetch(build, path)
        assert status == 200, (status, text)
        return text

    def status(self, build: dict, path: str) -> int:
        return self.fetch(build, path)[0]
