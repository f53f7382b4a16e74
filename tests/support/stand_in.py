#!/usr/bin/env python3
"""Stands in for the programs that adapters start, by the name it is called by; runs inside a sandbox.

It takes its task and the address of its model where the real program does, asks the model once, writes a file
and prints the events that the program is documented to print. What it was given it leaves in seen.json.
"""

import json
import os
import re
import sys
import urllib.request

NAME, ARGUMENTS = os.path.basename(sys.argv[0]), sys.argv[1:]
FILE = f"{NAME}.txt"


def after(option: str) -> str:
    return ARGUMENTS[ARGUMENTS.index(option) + 1]


def given() -> tuple[str, str, str]:
    """The task, the address to ask the model at, the key."""
    env = os.environ
    if NAME == "claude":
        return sys.stdin.read(), env["ANTHROPIC_BASE_URL"] + "/v1/messages", env["ANTHROPIC_API_KEY"]
    if NAME == "codex":
        assert ARGUMENTS[0] == "exec" and ARGUMENTS[-1] == "-"
        base = re.search(r'base_url="([^"]+)"', " ".join(ARGUMENTS)).group(1)
        return sys.stdin.read(), base + "/responses", env["OPENAI_API_KEY"]
    if NAME == "opencode":
        options = json.loads(env["OPENCODE_CONFIG_CONTENT"])["provider"]["anthropic"]["options"]
        return ARGUMENTS[-1], options["baseURL"] + "/messages", options["apiKey"]
    if NAME == "gemini":
        url = env["GOOGLE_GEMINI_BASE_URL"] + "/v1beta/models/gemini-pro:generateContent"
        return after("-p"), url, env["GEMINI_API_KEY"]
    return after("--message"), env["OPENAI_API_BASE"] + "/chat/completions", env["OPENAI_API_KEY"]


def events() -> list[dict]:
    path = os.path.abspath(FILE)
    if NAME == "claude":
        write = {"type": "tool_use", "id": "1", "name": "Write", "input": {"file_path": path, "content": "x"}}
        usage = {"input_tokens": 10, "cache_read_input_tokens": 1000, "output_tokens": 42}
        return [{"type": "system", "subtype": "init", "model": "claude-test"},
                {"type": "assistant", "message": {"content": [{"type": "text", "text": "I write it."}]}},
                {"type": "assistant", "message": {"content": [write]}},
                {"type": "result", "subtype": "success", "result": "claude did it.", "total_cost_usd": 0.25,
                 "usage": usage}]
    if NAME == "codex":
        command = {"type": "command_execution", "command": "ls", "exit_code": 0}
        return [{"type": "item.completed", "item": command},
                {"type": "item.completed", "item": {"type": "file_change", "changes": [{"path": FILE, "kind": "add"}]}},
                {"type": "item.completed", "item": {"type": "agent_message", "text": "codex did it."}},
                {"type": "turn.completed", "usage": {"input_tokens": 300, "output_tokens": 30}}]
    if NAME == "opencode":
        tokens = {"input": 100, "output": 20, "reasoning": 5, "cache": {"read": 7, "write": 3}}
        tool = {"type": "tool", "tool": "write", "state": {"status": "completed", "input": {"filePath": path}}}
        return [{"type": "tool_use", "part": tool},
                {"type": "text", "part": {"type": "text", "text": "opencode did it."}},
                {"type": "step_finish", "part": {"type": "step-finish", "cost": 0.5, "tokens": tokens}}]
    return [{"type": "init", "model": "gemini-test"},
            {"type": "tool_use", "tool_name": "write_file", "parameters": {"file_path": FILE}},
            {"type": "message", "role": "assistant", "content": "gemini ", "delta": True},
            {"type": "message", "role": "assistant", "content": "did it.", "delta": True},
            {"type": "result", "status": "success", "stats": {"input_tokens": 20, "output_tokens": 10}}]


AIDER = f"""Aider v0.86
Main model: gpt-test with diff edit format
I write it.
Tokens: 1.0k sent, 40 received. Cost: $0.01 message, $0.01 session.
Applied edit to {FILE}
aider did it.
Tokens: 600 sent, 50 received. Cost: $0.02 message, $0.03 session.
"""

task, url, key = given()
question = urllib.request.Request(url, b"{}", {"Content-Type": "application/json", "Authorization": f"Bearer {key}"})
with urllib.request.urlopen(question, timeout=60) as answer:
    said = json.loads(answer.read())["said"]
with open(FILE, "w", encoding="utf-8") as file:
    file.write(said + "\n")
with open("seen.json", "w", encoding="utf-8") as file:
    json.dump({"arguments": ARGUMENTS, "task": task, "key": key}, file)
print(AIDER if NAME == "aider" else "\n".join(map(json.dumps, events())), flush=True)
