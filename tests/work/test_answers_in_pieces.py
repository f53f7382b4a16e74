"""An answer is read while it is written: message_delta events whose texts together are the answer."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator

import pytest
from support.model import Says, ScriptedModel
from support.sessions import Session, wait_until
from support.work import Platform

pytestmark = pytest.mark.timeout(240)

ANSWER = "The fence is mended now. I took oak, as you said, and two coats of paint."


class Gate:
    """Lets the model say one word, and the others when it is opened."""

    def __init__(self) -> None:
        self.opened = threading.Event()

    def __call__(self) -> None:
        assert self.opened.wait(120), "nobody opened the gate"


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.opened.set()


@pytest.fixture
def begin(make_server, gate: Gate) -> Iterator[Callable[..., Session]]:
    """A session whose agent is the built-in one with a scripted model."""
    models = []

    def make(think: Callable[[list[dict]], Says], *, streams: bool = True) -> Session:
        models.append(ScriptedModel(think, streams=streams, between=gate))
        here = Platform(make_server(env={**models[-1].settings, "CAISSON_FLOW_RETRY_MIN_MS": "100"}))
        agent = here.ask("POST", "/agents", {"name": "ida", "adapter": "builtin"}, 201).json()
        return Session.begin(here, None, agent_id=agent["id"])

    yield make
    gate.opened.set()
    for model in models:
        model.close()


def deltas_of(session: Session, answer: dict) -> list[dict]:
    found = session.platform.events(session_id=session.id, type="message_delta")
    assert all(one["message_id"] == answer["id"] for one in found)
    return found


def test_the_words_come_before_the_answer_ends(begin: Callable[..., Session], gate: Gate) -> None:
    def think(messages: list[dict]) -> Says:
        return ANSWER if messages[-1]["role"] == "tool" else [("bash", {"command": "echo oak > fence.txt"})]

    session = begin(think)
    answer = session.send("mend the fence")
    (first,) = wait_until(lambda: deltas_of(session, answer), "the first word is told")
    assert first["text"] == "The " and session.row()["generating"]
    gate.opened.set()
    done = session.wait(answer)
    deltas = deltas_of(session, answer)
    assert len(deltas) > 1 and all(one["part"] == 0 and "restart" not in one for one in deltas)
    assert "".join(one["text"] for one in deltas).strip() == done["content"] == ANSWER
    # The tokens of both questions: they stand in the last piece of a stream.
    assert (done["tokens_in"], done["tokens_out"]) == (2000, 200)
    assert session.run("cat fence.txt") == "oak\n"


def test_after_kill_9_no_word_is_told_twice(begin: Callable[..., Session], gate: Gate) -> None:
    session = begin(lambda messages: ANSWER)
    answer = session.send("mend the fence")
    wait_until(lambda: deltas_of(session, answer), "the first word is told")
    session.platform.server.crash()
    gate.opened.set()
    session.platform.server.start()
    assert session.wait(answer)["content"] == ANSWER
    deltas = deltas_of(session, answer)
    assert "".join(one["text"] for one in deltas).strip() == ANSWER
    assert not any(one.get("restart") for one in deltas)


def test_what_is_said_in_other_words_takes_back_the_first(begin: Callable[..., Session], gate: Gate) -> None:
    said = iter(["Perhaps it can be mended.", ANSWER])
    session = begin(lambda messages: next(said))
    answer = session.send("mend the fence")
    wait_until(lambda: deltas_of(session, answer), "the first word is told")
    session.platform.server.crash()
    gate.opened.set()
    session.platform.server.start()
    assert session.wait(answer)["content"] == ANSWER
    first, *again = deltas_of(session, answer)
    assert first["text"] == "Perhaps "
    assert [bool(one.get("restart")) for one in again] == [True] + [False] * (len(again) - 1)
    assert "".join(one["text"] for one in again).strip() == ANSWER


def test_what_was_said_stays_when_it_is_stopped(begin: Callable[..., Session]) -> None:
    session = begin(lambda messages: ANSWER)
    answer = session.send("mend the fence")
    wait_until(lambda: deltas_of(session, answer), "the first word is told")
    session.platform.ask("POST", session.path + "/stop", status=202)
    assert session.wait(answer, "stopped")["content"].strip() == "The"


def test_a_server_that_does_not_stream_answers_as_a_whole(begin: Callable[..., Session]) -> None:
    session = begin(lambda messages: ANSWER, streams=False)
    answer = session.send("mend the fence")
    done = session.wait(answer)
    (delta,) = deltas_of(session, answer)
    assert delta["text"].strip() == done["content"] == ANSWER
    assert (done["tokens_in"], done["tokens_out"]) == (1000, 100)


def piece(text: str) -> dict:
    return {"type": "stream_event", "parent_tool_use_id": None,
            "event": {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}}


CLAUDE = "\n".join([
    "#!/bin/sh",
    'echo "$*" > ~/arguments',
    "cat > /dev/null",
    *(f"echo '{json.dumps(one)}'" for one in (
        {"type": "system", "subtype": "init", "model": "claude-test"},
        piece("I look "), piece("at it."))),
    "while [ ! -e ~/go ]; do sleep 0.1; done",
    *(f"echo '{json.dumps(one)}'" for one in (
        {"type": "assistant", "message": {"content": [{"type": "text", "text": "I look at it."}]}},
        {"type": "assistant", "message": {"content": [{"type": "text", "text": "Done."}]}},
        {"type": "result", "subtype": "success", "result": "Done.", "usage": {}})),
])


def test_partial_messages_of_claude(server) -> None:
    """A stand-in prints them as the program does with --include-partial-messages."""
    here = Platform(server)
    agent = here.ask("POST", "/agents", {
        "name": "ada", "adapter": "claude",
        "config": {"model_keys": "environment", "env": {"PATH": "/home/user/bin:/usr/bin:/bin"}}}, 201).json()
    session = Session.begin(here, None, agent_id=agent["id"]).ready()
    session.run(f"mkdir -p ~/bin; cat > ~/bin/claude <<'END'\n{CLAUDE}\nEND\nchmod +x ~/bin/claude")
    answer = session.send("mend the fence")
    (first,) = wait_until(lambda: deltas_of(session, answer), "the first words are told")
    assert first["text"] == "I look " and first["part"] == 0
    assert session.run("cat ~/arguments").split()[-1] == "--include-partial-messages"
    session.run("touch ~/go")
    assert session.wait(answer)["content"] == "I look at it.\n\nDone."
    deltas = deltas_of(session, answer)
    assert "".join(one["text"] for one in deltas) == "I look at it.\n\nDone.\n\n"
    assert [one["part"] for one in deltas] == [0, 0, 1]
    here.ask("DELETE", session.path, status=204)
