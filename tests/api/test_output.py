"""What commands printed: backwards by pages, searched, as one text; also when it lies in the archive."""

from __future__ import annotations

import time
from urllib.parse import quote

import pytest
from support.archive import archive_output
from support.rest import assert_refusal
from support.work import Platform

ROWS = 3000
# A piece of output for each of the first ones; a token of GitHub's form; a line without an end.
SCRIPT = f"""
for i in $(seq 1 30); do echo "piece $i"; sleep 0.02; done
seq -f "row %.0f of many" 1 {ROWS}
printf '\\033[1;31mRed\\033[0m Alert\\n10 %%\\r100 %%\\n'
echo "token ghp_{'a1B2' * 9}" >&2
printf 'the last word'
"""


@pytest.fixture
def platform(make_server) -> Platform:
    return Platform(make_server())


def printed(here: Platform) -> str:
    """A sandbox in which all of it was printed and is in the log."""
    sandbox = here.ask("POST", "/sandboxes", {}, 201).json()["id"]
    here.ask("POST", f"/sandboxes/{sandbox}/execute", {"command": SCRIPT}, 200)
    deadline = time.monotonic() + 60
    while "the last word" not in here.output(sandbox_id=sandbox):  # it is written a moment later
        assert time.monotonic() < deadline, "the output is not in the log"
        time.sleep(0.05)
    return sandbox


def backwards(here: Platform, limit: int, **about: object) -> list[dict]:
    """All events, read from the newest to the oldest."""
    events: list[dict] = []
    before = 2**53 - 1
    while True:
        page = here.get("/events/history", before=before, limit=limit, **about)
        assert len(page["events"]) <= limit and "next" not in page
        events = page["events"] + events
        if "previous" not in page:
            return events
        assert page["previous"] == page["events"][0]["id"]
        before = page["previous"]


def search(here: Platform, sandbox: str, text: str, **more: object) -> dict:
    """The whole search, part by part."""
    found: dict = {"hits": [], "searched": 0}
    after = 0
    while True:
        part = here.get(f"/sandboxes/{sandbox}/output/search", q=text, after=after, **more)
        found["hits"] += part["hits"]
        found["searched"] += part["searched"]
        if "next" not in part:
            return found
        assert part["next"] > after
        after = part["next"]


def text_at(events: list[dict], hit: dict) -> str:
    """The line that a hit names, found as a reader of the log finds it."""
    at = next(index for index, event in enumerate(events) if event["id"] == hit["event_id"])
    stream = events[at]["stream"]
    text = "".join(event["output"] for event in events[at:] if event["stream"] == stream)
    return text.split("\n")[hit["line"]]


def check_all(here: Platform, sandbox: str) -> None:
    about = {"type": "command_output", "sandbox_id": sandbox}
    events = here.events(**about)
    assert len(events) > 5
    assert backwards(here, 4, **about) == events
    middle = events[len(events) // 2]["id"]
    between = here.get("/events/history", after=events[0]["id"], before=middle, limit=1000, **about)
    assert [e["id"] for e in between["events"]] == [e["id"] for e in events if events[0]["id"] < e["id"] < middle]
    others = here.get("/events/history", sandbox_id=sandbox, not_type="command_output", limit=1000)["events"]
    assert others and all(event["type"] != "command_output" for event in others)

    found = search(here, sandbox, "OF MANY")
    assert found["searched"] > ROWS
    assert [hit["text"] for hit in found["hits"]] == [f"row {n} of many" for n in range(1, ROWS + 1)]
    places = [(hit["event_id"], hit["line"]) for hit in found["hits"]]
    assert places == sorted(set(places))
    for hit in (found["hits"][0], found["hits"][1777], found["hits"][-1]):
        assert text_at(events, hit) == hit["text"]
    (red,) = search(here, sandbox, "red alert")["hits"]
    assert red["text"] == "Red Alert" and red["stream"] == "stdout"
    assert [hit["text"] for hit in search(here, sandbox, "0 %")["hits"]] == ["100 %"]
    assert [hit["text"] for hit in search(here, sandbox, "token")["hits"]] == ["token ***"]
    assert search(here, sandbox, "token", stream="stdout")["hits"] == []
    assert search(here, sandbox, "nobody said this") == {"hits": [], "searched": found["searched"]}

    # By smaller parts: nothing is missing and nothing comes twice.
    first = here.get(f"/sandboxes/{sandbox}/output/search", q="piece", limit=7)
    assert len(first["hits"]) >= 7 and "next" in first
    pieces = search(here, sandbox, "piece", limit=7)["hits"]
    assert [hit["text"] for hit in pieces] == [f"piece {n}" for n in range(1, 31)]

    answer = here.ask("GET", f"/sandboxes/{sandbox}/output?stream=stdout", status=200)
    assert answer.header("Content-Type") == "text/plain; charset=utf-8"
    assert answer.header("Content-Disposition") == f'attachment; filename="output-{sandbox}.txt"'
    assert answer.header("X-Content-Type-Options") == "nosniff"
    wanted = [f"piece {n}" for n in range(1, 31)] + [f"row {n} of many" for n in range(1, ROWS + 1)]
    assert answer.body.decode() == "\n".join([*wanted, "Red Alert", "100 %", "the last word", ""])
    whole = here.ask("GET", f"/sandboxes/{sandbox}/output", status=200).body.decode()
    assert sorted(whole.splitlines()) == sorted([*answer.body.decode().splitlines(), "token ***"])


def test_output_is_read_backwards_searched_and_taken_away(platform: Platform) -> None:
    check_all(platform, printed(platform))


def test_archived_output_is_as_good(platform: Platform) -> None:
    sandbox = printed(platform)
    archive_output(platform.server, "of many")
    assert list((platform.server.data_dir / "db/archive").iterdir())
    check_all(platform, sandbox)


def test_questions_that_make_no_sense_and_things_of_others_are_refused(platform: Platform) -> None:
    sandbox = platform.ask("POST", "/sandboxes", {}, 201).json()["id"]
    path = f"/api/v1/sandboxes/{sandbox}/output"
    rest = platform.rest
    for query in ("", "?q=", "?q=" + "x" * 201, "?q=" + quote("two\nlines")):
        assert_refusal(rest.get(f"{path}/search{query}"), 422, "validation_failed", "q must be")
    for query in ("q=a&limit=0", "q=a&limit=1001", "q=a&after=x", "q=a&stream=system", "q=a&regex=1"):
        assert_refusal(rest.get(f"{path}/search?{query}"), 422, "validation_failed")
    assert_refusal(rest.get(f"{path}?stream=both"), 422, "validation_failed")
    assert_refusal(rest.get("/api/v1/events/history?before=x"), 422, "validation_failed")
    # Somebody else's does not exist, and neither does what nobody has.
    user = rest.post("/api/v1/users", {"name": "otto", "role": "member"}).json()
    other = rest.post("/api/v1/keys", {"name": "otto", "user_id": user["id"]}).json()["key"]
    for kind, id in (("sandboxes", sandbox), ("tasks", "no-task"), ("sessions", "no-session")):
        for area in ("output", "output/search?q=a"):
            assert_refusal(rest.get(f"/api/v1/{kind}/{id}/{area}", key=other), 404, "not_found")
    assert_refusal(rest.get("/api/v1/sandboxes/none/output"), 404, "not_found")
    assert rest.get(path).body == b""
