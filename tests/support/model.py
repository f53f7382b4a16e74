"""A server with OpenAI's chat completions, whose model does what a test says."""

from __future__ import annotations

import datetime
import json
import math
import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KEY = "model-key-7f3a9c51d2e84b60"
# What the model says next: a text ends its turn, a list is of (tool, arguments).
Says = str | list[tuple[str, dict]]


class ScriptedModel:
    """Asks `think` with all messages so far. What it answers depends on them alone, as a model's does.

    Whoever asks for a stream gets one, word by word, with `between` called after each word; unless `streams` is off.
    """

    def __init__(self, think: Callable[[list[dict]], Says], *, streams: bool = True,
                 between: Callable[[], None] = lambda: None, offers: list[str] | None = None) -> None:
        self.think = think
        self.streams = streams
        self.between = between
        self.offers = offers  # told to who asks; None: it does not tell
        self.questions: list[dict] = []
        self.keys: list[str] = []
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:  # noqa: N802
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                model.questions.append(body)
                model.keys.append(self.headers.get("Authorization", ""))
                says = model.think(body["messages"])
                whole = completion(says, len(model.questions))
                if body.get("stream") and model.streams:
                    try:
                        return self.stream(whole)
                    except ConnectionError:  # whoever asked was killed
                        return None
                answer = json.dumps(whole).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def do_GET(self) -> None:  # noqa: N802
                if self.path != "/v1/models" or model.offers is None:
                    return self.send_error(404)
                model.keys.append(self.headers.get("Authorization", ""))
                answer = json.dumps({"object": "list", "data": [{"id": name} for name in model.offers]}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)
                return None

            def stream(self, whole: dict) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for event in [*map(json.dumps, chunks(whole)), "[DONE]"]:
                    data = f"data: {event}\n\n".encode()
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                    if '"content": ' in event:
                        model.between()
                self.wfile.write(b"0\r\n\r\n")

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    @property
    def settings(self) -> dict[str, str]:
        return {"CAISSON_LLM_BASE_URL": f"http://127.0.0.1:{self.server.server_port}/v1",
                "CAISSON_LLM_API_KEY": KEY, "CAISSON_LLM_MODEL": "scripted-1"}

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def completion(says: Says, number: int) -> dict:
    message: dict = {"role": "assistant", "content": says if isinstance(says, str) else None}
    if not isinstance(says, str):
        message["tool_calls"] = [
            {"id": f"call-{number}-{i}", "type": "function",
             "function": {"name": name, "arguments": json.dumps(arguments)}}
            for i, (name, arguments) in enumerate(says)]
    return {"model": "scripted-1-2026", "usage": {"prompt_tokens": 1000, "completion_tokens": 100},
            "choices": [{"finish_reason": "stop" if isinstance(says, str) else "tool_calls", "message": message}]}


def chunks(whole: dict) -> list[dict]:
    """The same answer as a stream has it: its role, its words, its calls in two pieces each, its end, its tokens."""
    message = whole["choices"][0]["message"]
    deltas: list[dict] = [{"role": "assistant"}]
    deltas += [{"content": word} for word in re.findall(r"\S+\s*", message["content"] or "")]
    for index, call in enumerate(message.get("tool_calls", [])):
        function = call["function"]
        half = len(function["arguments"]) // 2
        deltas.append({"tool_calls": [{**call, "index": index,
                                       "function": {**function, "arguments": function["arguments"][:half]}}]})
        deltas.append({"tool_calls": [{"index": index, "function": {"arguments": function["arguments"][half:]}}]})
    ends = [None] * len(deltas) + [whole["choices"][0]["finish_reason"]]
    return [{"model": whole["model"], "choices": [{"index": 0, "delta": delta, "finish_reason": end}]}
            for delta, end in zip([*deltas, {}], ends)] + [
                {"model": whole["model"], "choices": [], "usage": whole["usage"]}]


def results(messages: list[dict]) -> list[str]:
    """What the tools have answered so far."""
    return [one["content"] for one in messages if one["role"] == "tool"]


def budget(day_limit: int, day_s: int = 0) -> dict[str, str]:
    """Settings of a server on which a day's part of the budget is about so many microdollars.

    Without a length the day is one that does not end while the test runs, nor is the month's last.
    """
    now = datetime.datetime.now(datetime.UTC)
    month = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    left = ((month + datetime.timedelta(days=32)).replace(day=1) - now).total_seconds()
    gone = (now - month).total_seconds()
    day_s = day_s or next(s for s in (86_400, 20_000, 7_000, 3_000, 1_100, 900)
                          if left > 2 * s and s - gone % s > 300)
    days = math.ceil(left / day_s)
    return {"CAISSON_BUDGET_ACTION": "pace", "CAISSON_BUDGET_DAY_S": str(day_s),
            "CAISSON_BUDGET_MONTH_DOLLARS": f"{day_limit * days / 1e6:.6f}",
            "CAISSON_SANDBOX_HOUR_DOLLARS": "0"}
