"""The tools at /mcp, with the reference client of the Model Context Protocol (OA-117)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import TypeVar

import httpx2
import mcp_types as types
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from support.forge import Forge
from support.forge_plugin import FORGE_REPOSITORY, FORGE_TOKEN
from support.rest import assert_refusal
from support.work import Platform

READING = {"git_status", "git_diff", "get_environment"}
WRITING = {"git_clone", "git_pull", "git_push", "execute_code", "run_script", "install_package"}
T = TypeVar("T")
HELLO = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


class Tools:
    """A client of one server; each `run` is a connection."""

    def __init__(self, platform: Platform, key: str = "", query: str = "", mode: str = "auto") -> None:
        self.url = f"{platform.server.url}/mcp{query}"
        self.headers = {"Authorization": f"Bearer {key or platform.server.api_key}"}
        self.mode = mode

    def run(self, steps: Callable[[Client], Awaitable[T]]) -> T:
        async def connect() -> T:
            async with httpx2.AsyncClient(headers=self.headers, timeout=60) as http:
                transport = streamable_http_client(self.url, http_client=http)
                async with Client(transport, mode=self.mode) as client:
                    return await steps(client)

        return asyncio.run(connect())

    def names(self) -> set[str]:
        async def steps(client: Client) -> set[str]:
            return {tool.name for tool in (await client.list_tools()).tools}

        return self.run(steps)

    def call(self, tool: str, **arguments: object) -> types.CallToolResult:
        async def steps(client: Client) -> types.CallToolResult:
            return await client.call_tool(tool, arguments)

        return self.run(steps)

    def refusal(self, tool: str, **arguments: object) -> types.ErrorData:
        """Of a call that the protocol refuses."""

        async def steps(client: Client) -> types.ErrorData:
            with pytest.raises(MCPError) as caught:
                await client.call_tool(tool, arguments)
            return caught.value.error

        return self.run(steps)

    def do(self, tool: str, **arguments: object) -> dict:
        """What a successful call gives; its text says the same."""
        result = self.call(tool, **arguments)
        assert not result.is_error, result
        assert json.loads(result.content[0].text) == result.structured_content
        return result.structured_content


@pytest.fixture
def sandbox(platform: Platform) -> str:
    return platform.ask("POST", "/sandboxes", {}, 201).json()["id"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_reference_client_connects(platform: Platform, mode: str) -> None:
    async def steps(client: Client) -> list[types.Tool]:
        assert client.server_info.name == "caisson" and client.server_capabilities.tools
        assert client.protocol_version == "2025-11-25"
        return (await client.list_tools()).tools

    tools = Tools(platform, mode=mode).run(steps)
    assert {tool.name for tool in tools} == READING | WRITING
    for tool in tools:
        assert tool.description and tool.input_schema["type"] == "object"
        assert tool.annotations.read_only_hint is (tool.name in READING)


def test_git_through_tools(platform: Platform, forge: Forge, sandbox: str) -> None:
    tools, repo = Tools(platform, query=f"?sandbox_id={sandbox}"), forge.repositories[FORGE_REPOSITORY]
    cloned = tools.do("git_clone", repo_url=FORGE_REPOSITORY)
    assert cloned["cloned"] is True and cloned["head_sha"] == repo.git.sha("main")
    platform.ask("POST", f"/sandboxes/{sandbox}/git/branch", {"name": "agent/tools"}, 200)
    tools.do("execute_code", language="bash", code="echo one > one.txt; echo two >> README.md", cwd=cloned["path"])
    assert tools.do("git_status")["untracked"] == ["one.txt"]
    diff = tools.do("git_diff", file=["README.md"])
    assert "+two" in diff["diff"] and [one["path"] for one in diff["files"]] == ["README.md"]
    platform.ask("POST", f"/sandboxes/{sandbox}/git/commit", {"message": "feat: two files"}, 200)
    pushed = tools.do("git_push")
    assert pushed["branch"] == "agent/tools" and pushed["sha"] == repo.git.sha("agent/tools")
    repo.git.commit("agent/tools", {"three.txt": "3"}, "feat: from elsewhere")
    assert tools.do("git_pull")["head_sha"] == repo.git.sha("agent/tools")
    repo.protected.add("main")
    refused = tools.call("git_push", branch="main")
    assert refused.is_error and "protected" in refused.content[0].text
    assert FORGE_TOKEN not in tools.do("execute_code", language="bash", code="env; cat ~/.git* || true")["stdout"]


def test_code_and_scripts(platform: Platform, sandbox: str) -> None:
    tools = Tools(platform)
    assert tools.do("execute_code", sandbox_id=sandbox, code="print(6 * 7)")["stdout"] == "42\n"
    failed = tools.do("execute_code", sandbox_id=sandbox, code="import sys; sys.exit('no')")
    assert failed["exit_code"] == 1 and failed["stderr"] == "no\n"
    tools.do("execute_code", sandbox_id=sandbox, language="bash", code="echo 'import sys; print(sys.argv[1])' > a.py")
    assert tools.do("run_script", sandbox_id=sandbox, path="a.py", args=["x y"])["stdout"] == "x y\n"
    late = tools.call("execute_code", sandbox_id=sandbox, language="bash", code="sleep 60", timeout_s=0.5)
    assert late.is_error and late.content[0].text.startswith("command_timeout: ")
    asked = tools.do("install_package", sandbox_id=sandbox, packages=["no-such-package-of-ours"], timeout_s=50)
    assert asked["exit_code"] != 0 and "no-such-package-of-ours" in asked["stderr"]
    assert tools.do("get_environment", sandbox_id=sandbox)["status"] == "running"


def test_wrong_calls_say_what_is_wrong(platform: Platform, sandbox: str) -> None:
    tools = Tools(platform)

    def refused(tool: str, **arguments: object) -> str:
        error = tools.refusal(tool, **arguments)
        assert error.code == -32602
        return error.message

    assert "fly" in refused("fly")
    assert "sandbox_id" in refused("git_status")
    assert "code" in refused("execute_code", sandbox_id=sandbox)
    assert "wings" in refused("git_status", sandbox_id=sandbox, wings=2)
    assert "packages" in refused("install_package", sandbox_id=sandbox, packages=["--index-url=http://evil"])
    unknown = tools.call("git_status", sandbox_id="nothing")
    assert unknown.is_error and unknown.content[0].text.startswith("not_found: ")


def test_roles_decide_about_tools(platform: Platform) -> None:
    user = platform.ask("POST", "/users", {"name": "eve"}, 201).json()
    key = platform.ask("POST", "/keys", {"name": "k", "user_id": user["id"]}, 201).json()["key"]
    own = platform.ask("POST", "/sandboxes", {}, 201, key=key).json()["id"]
    foreign = platform.ask("POST", "/sandboxes", {}, 201).json()["id"]
    eve = Tools(platform, key)
    assert eve.names() == READING | WRITING
    assert eve.call("get_environment", sandbox_id=foreign).is_error
    assert eve.call("execute_code", sandbox_id=foreign, code="1").content[0].text.startswith("not_found: ")
    platform.ask("PATCH", f"/users/{user['id']}", {"role": "viewer"}, 200)
    assert eve.names() == READING
    assert eve.do("get_environment", sandbox_id=own)["status"] == "running"
    assert "may not be used here" in eve.refusal("execute_code", sandbox_id=own, code="1").message
    # What belongs to somebody else is not cleaned up with the server.
    platform.ask("PATCH", f"/users/{user['id']}", {"role": "member"}, 200)
    platform.ask("DELETE", f"/sandboxes/{own}", None, 204, key=key)


@pytest.mark.parametrize(
    ("fields", "allowed"),
    [
        ({"role": "developer"}, READING | WRITING),
        ({"role": "reviewer"}, READING),
        ({"role": "reviewer", "mcp_tools": ["git_diff", "git_push"]}, {"git_diff", "git_push"}),
    ],
)
def test_the_agents_role_decides_about_its_sandbox(platform: Platform, fields: dict, allowed: set[str]) -> None:
    config = {name: fields[name] for name in ("mcp_tools",) if name in fields}
    config["command"] = ["bash", "-c", "sleep 600"]
    started = platform.start(platform.add_agent("", role=fields["role"], config=config))
    created = platform.wait_for_event("sandbox_created", task_id=started["task_id"])
    tools = Tools(platform, query=f"?sandbox_id={created['sandbox_id']}")
    assert tools.names() == allowed
    if "execute_code" in allowed:
        assert tools.do("execute_code", code="print(1)")["stdout"] == "1\n"
    else:
        assert "may not be used here" in tools.refusal("execute_code", code="print(1)").message


def test_calls_are_in_the_audit_log(platform: Platform, sandbox: str) -> None:
    Tools(platform).do("execute_code", sandbox_id=sandbox, code="1")
    entries = platform.get("/audit", target=f"execute_code {sandbox}")["entries"]
    assert [(one["action"], one["status"]) for one in entries] == [("POST /mcp", 200)]


def test_the_transport(platform: Platform) -> None:
    rest = platform.rest
    assert_refusal(rest.post("/mcp", HELLO, key=None), 401)
    assert rest.post("/mcp", HELLO).json() == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert rest.post("/mcp", {"jsonrpc": "2.0", "method": "notifications/initialized"}).status == 202
    assert rest.post("/mcp", {**HELLO, "method": "resources/list"}).json()["error"]["code"] == -32601
    for method in ("GET", "DELETE"):  # there are no streams, and no sessions to end
        assert rest.request(method, "/mcp").status == 405
    assert_refusal(rest.post("/mcp", b"{", headers={"Content-Type": "application/json"}), 400)
    assert_refusal(rest.post("/mcp", [HELLO]), 422)
    assert_refusal(rest.post("/mcp", HELLO, headers={"MCP-Protocol-Version": "1999-01-01"}), 400, contains="1999")
    assert_refusal(rest.post("/mcp", HELLO, headers={"Origin": "http://evil.example"}), 403)
    own = {"Origin": platform.server.url, "Host": platform.server.url.partition("://")[2]}
    assert rest.post("/mcp", HELLO, headers=own).status == 200
