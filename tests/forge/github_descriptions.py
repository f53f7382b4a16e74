"""What GitHub and its community publish about the API, from npm, and Prism in front of the double."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from support.server import free_port, release_port

NODE = Path(__file__).resolve().parent / "node"
MODULES = NODE / "node_modules"
INSTALL_DEADLINE_S = 300
START_DEADLINE_S = 60


def install() -> None:
    """npm ci, unless the lock file is what was installed last."""
    stamp, lock = MODULES / ".installed", (NODE / "package-lock.json").read_text()
    if stamp.exists() and stamp.read_text() == lock:
        return
    npm = shutil.which("npm")
    assert npm, "npm is missing; ./test installs it"
    command = [npm, "ci", "--no-audit", "--no-fund", "--loglevel=error"]
    subprocess.run(command, cwd=NODE, check=True, timeout=INSTALL_DEADLINE_S)
    stamp.write_text(lock)


def webhook_examples() -> dict[str, list[dict]]:
    examples = json.loads((MODULES / "@octokit/webhooks-examples/api.github.com/index.json").read_text())
    return {event["name"]: event["examples"] for event in examples}


def webhook_schema() -> dict:
    return json.loads((MODULES / "@octokit/webhooks-schemas/schema.json").read_text())


def graphql_problems(query: str) -> list[str]:
    """What GitHub's GraphQL schema has against a query."""
    script = (
        "import(process.argv[1]).then(async m => {"
        "const found = await m.validate(process.argv[2]);"
        "console.log(JSON.stringify(found.map(e => e.message)))})"
    )
    module = str(MODULES / "@octokit/graphql-schema/index.js")
    done = subprocess.run(
        ["node", "-e", script, module, query], capture_output=True, text=True, check=True, timeout=60
    )
    return json.loads(done.stdout)


def _references(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for inner in value.values():
            yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)


def api_description(paths: list[str]) -> dict:
    """GitHub's OpenAPI description, cut down to these paths: Prism reads the whole for a minute."""
    whole = json.loads((MODULES / "@octokit/openapi/generated/api.github.com.json").read_text())
    cut = {"openapi": whole["openapi"], "info": whole["info"], "paths": {path: whole["paths"][path] for path in paths}}
    parts: dict[str, dict] = {}
    todo: list[object] = [cut["paths"]]
    while todo:
        for reference in list(_references(todo.pop())):
            _, _, kind, name = reference.split("/", 3)
            if name not in parts.setdefault(kind, {}):
                parts[kind][name] = whole["components"][kind][name]
                todo.append(parts[kind][name])
    return cut | {"components": parts}


class Prism:
    """Stands before a server and answers itself when a request or an answer is not as described."""

    def __init__(self, description: dict, upstream: str, directory: Path) -> None:
        file = directory / "description.json"
        file.write_text(json.dumps(description))
        self.port = free_port()
        self.log = directory / "prism.log"
        command = ["node", str(MODULES / ".bin/prism"), "proxy", "--errors", "--port", str(self.port)]
        with open(self.log, "wb") as log:
            self._process = subprocess.Popen(
                [*command, str(file), upstream], cwd=NODE, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, "NO_COLOR": "1"},
            )
        end = time.monotonic() + START_DEADLINE_S
        while "Prism is listening" not in self.log.read_text(errors="replace"):
            assert self._process.poll() is None and time.monotonic() < end, self.log.read_text(errors="replace")[-2000:]
            time.sleep(0.05)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(30)
        release_port(self.port)
