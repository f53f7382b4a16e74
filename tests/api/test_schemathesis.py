"""The server's description of its API, tried against the server by schemathesis."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.forge import Forge
from support.forge_plugin import FORGE_REPOSITORY
from support.rest import Rest
from support.server import CaissonServer
from support.work import settings_for

# Not called at random, and why.
EXCLUDED = {
    "drain": "pauses every sandbox of the server",
    "endDrain": "belongs to drain",
    "changePassword": "would end with a password of the admin that nobody knows",
}
EXCLUDED_PATHS = {
    "^/api/v1/webhooks/": "takes only what GitHub has signed",
}
# Checks that are off, and why.
NO_CHECKS = {
    "positive_data_acceptance": "a body of the right shape can still name what does not exist",
    "use_after_free": "a revoked key and an ended sandbox stay in their lists",
}
SECONDS = 30  # for made-up requests; the cases that cover the description take as long as they take


def streams(document: dict) -> list[str]:
    """Operations whose answer has no end to wait for."""
    return [
        operation["operationId"]
        for item in document["paths"].values()
        for operation in item.values()
        if "text/event-stream" in operation["responses"].get("200", {}).get("content", {})
    ]


def aim(document: dict) -> dict:
    """Made-up names would only ever be 404: of repositories there is one, with one pull request."""
    owner, name = FORGE_REPOSITORY.split("/")
    known = {"repo": FORGE_REPOSITORY, "owner": owner, "name": name, "number": "1"}
    for path, item in document["paths"].items():
        for operation in item.values() if path.startswith("/api/v1/github/") else ():
            for parameter in operation.get("parameters", ()):
                if parameter["name"] in known:
                    parameter["schema"]["enum"] = [known[parameter["name"]]]
    for schema in document["components"]["schemas"].values():
        if "repo" in schema.get("properties", {}):
            schema["properties"]["repo"]["enum"] = [FORGE_REPOSITORY]
    return document


def unreached(server: CaissonServer, document: dict) -> list[str]:
    """Routes of GitHub's that nothing was read from."""
    counted = Rest(server).get("/metrics").body.decode()
    done = set(re.findall(r'^caisson_http_requests_total\{route="([^"]+)",status="2xx"\}', counted, re.MULTILINE))
    wanted = [path for path, item in document["paths"].items() if path.startswith("/api/v1/github/") and "get" in item]
    assert len(wanted) > 5
    return [path for path in wanted if path not in done]


def excluded(document: dict) -> list[str]:
    known = {o["operationId"] for item in document["paths"].values() for o in item.values()}
    assert set(EXCLUDED) <= known, "something is excluded that does not exist"
    options = []
    for name in [*EXCLUDED, *streams(document)]:
        options += ["--exclude-operation-id", name]
    return [*options, "--exclude-path-regex", "|".join(EXCLUDED_PATHS)]  # this one counts once


@pytest.mark.timeout(500)
@pytest.mark.slow
def test_the_api_is_as_described(make_server, forge: Forge, tmp_path: Path, figure):
    server: CaissonServer = make_server(["--set", "max_sandboxes=300"], settings_for(forge))
    document = Rest(server).get("/api/v1/openapi.json", key=None).json()
    git = forge.repositories[FORGE_REPOSITORY].git
    git.commit("feature", {"feature.txt": "text\n"}, "feat: a feature", base="main")
    opened = {"repo": FORGE_REPOSITORY, "title": "A feature", "head": "feature"}
    assert Rest(server).post("/api/v1/github/pull-requests", opened).json()["number"] == 1
    description = tmp_path / "openapi.json"
    description.write_text(json.dumps(aim(document)))
    command = [
        str(Path(sys.executable).parent / "schemathesis"), "run",
        str(description), "--url", server.url,
        "--header", f"X-API-KEY: {server.api_key}",
        "--checks", "all",
        "--exclude-checks", ",".join(NO_CHECKS),
        "--max-examples", "5",
        "--workers", "1",  # with more, Python 3.11 fails at times: its ast.parse counts for all threads
        "--generation-deterministic",
        "--generation-allow-x00", "false",
        "--no-shrink",
        "--request-timeout", "30",
        "--suppress-health-check", "all",
        "--no-color",
        *excluded(document),
    ]
    for phases, more in (("examples,coverage", []), ("fuzzing", ["--max-time", str(SECONDS)])):
        done = subprocess.run([*command, "--phases", phases, *more], cwd=tmp_path, capture_output=True, text=True,
                              timeout=400, check=False)
        output = re.sub(re.escape(server.api_key), "***", done.stdout + done.stderr)
        assert done.returncode == 0, output[-20000:]
        counted = re.search(r"(\d+) generated, (\d+) passed", output)
        assert counted and int(counted[2]) > 0, output[-3000:]
        figure(f"schemathesis: {phases}: {counted[1]} cases, {counted[2]} passed")
    assert unreached(server, document) == []
