"""GET /v2/sandboxes and GET /sandboxes, as bytes on the wire."""

from __future__ import annotations

import uuid
from urllib.parse import quote

import pytest

from support.rest import LISTED_FIELDS, Rest, assert_error


@pytest.fixture(scope="module")
def five(rest: Rest):
    """Five sandboxes with a tag of their own, oldest first."""
    tag = uuid.uuid4().hex
    made = [rest.create(timeout=600, metadata={"tag": tag, "n": str(i)}) for i in range(5)]
    yield tag, [m["sandboxID"] for m in made]
    for one in made:
        rest.kill(one)


def encoded(metadata: dict[str, str]) -> str:
    """The triple encoding of the SDKs, written out step by step."""
    pairs = [f"{quote(quote(k, safe=''))}={quote(quote(v, safe=''))}" for k, v in metadata.items()]
    return "metadata=" + quote("&".join(pairs), safe="")


def ids(items: list[dict]) -> list[str]:
    return [item["sandboxID"] for item in items]


@pytest.mark.quick
def test_pages_and_their_header(rest: Rest, five):
    tag, made = five
    query = encoded({"tag": tag})
    seen, token = [], ""
    for expected in (2, 2, 1):
        answer = rest.get(
            f"/v2/sandboxes?{query}&limit=2" + (f"&nextToken={token}" if token else "")
        )
        assert answer.status == 200
        page = answer.json()
        assert len(page) == expected
        seen += ids(page)
        token = answer.header("X-Next-Token") or ""
    assert token == ""
    assert seen == made[::-1]
    assert rest.get(f"/v2/sandboxes?{query}&limit=5").header("X-Next-Token") in (None, "")


@pytest.mark.quick
def test_order(rest: Rest, five):
    tag, made = five
    query = encoded({"tag": tag})
    assert ids(rest.list(f"{query}&order=asc&limit=2")) == made
    assert ids(rest.list(f"{query}&order=desc&limit=2")) == made[::-1]


def test_total_running(rest: Rest, five):
    tag, _ = five
    answer = rest.get(f"/v2/sandboxes?{encoded({'tag': tag})}&limit=1&state=running")
    assert answer.header("X-Total-Running") == "5"


def test_required_fields(rest: Rest, five):
    tag, _ = five
    for item in rest.list(encoded({"tag": tag})):
        for name in LISTED_FIELDS:
            assert item[name] is not None, name
        assert item["alias"] == "base"
        assert "envdAccessToken" not in item


@pytest.mark.quick
@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=101",
        "limit=-1",
        "limit=x",
        "order=upwards",
        "state=flying",
        "nextToken=!!!",
        "nextToken=AAAA",
        "startedAfter=yesterday",
        "template=base%3Atag",
        "metadata=novalue",
    ],
)
def test_refused_queries(rest: Rest, query: str):
    assert_error(rest.get(f"/v2/sandboxes?{query}"), 400)


def test_token_of_the_other_order(rest: Rest, five):
    tag, _ = five
    query = encoded({"tag": tag})
    token = rest.get(f"/v2/sandboxes?{query}&limit=1&order=asc").header("X-Next-Token")
    assert_error(
        rest.get(f"/v2/sandboxes?{query}&limit=1&order=desc&nextToken={token}"),
        400,
        "Invalid next token",
    )


def test_states_in_one_parameter(rest: Rest, five):
    tag, made = five
    query = encoded({"tag": tag})
    for state in ("running,paused", "running%2Cpaused", "running"):
        assert ids(rest.list(f"{query}&state={state}")) == made[::-1]
    assert rest.list(f"{query}&state=paused") == []


def test_old_route_lists_what_runs(rest: Rest, five):
    tag, made = five
    answer = rest.get(f"/sandboxes?{encoded({'tag': tag})}")
    assert answer.status == 200
    assert sorted(ids(answer.json())) == sorted(made)


def test_started_after_in_several_notations(rest: Rest, five):
    tag, made = five
    query = encoded({"tag": tag})
    started = rest.detail(made[2])["startedAt"]
    offset = started.replace("Z", "+00:00")
    for text in (started, quote(offset, safe="")):
        assert ids(rest.list(f"{query}&startedAfter={text}")) == made[:1:-1]


def test_strict_order_of_quick_creations(rest: Rest):
    """Two sandboxes of the same second still have an order."""
    tag = uuid.uuid4().hex
    made = [rest.create(timeout=60, metadata={"tag": tag}) for _ in range(8)]
    try:
        listed = rest.list(f"{encoded({'tag': tag})}&limit=3")
        assert ids(listed) == ids(made)[::-1]
        assert len({item["startedAt"] for item in listed}) == len(listed)
    finally:
        for one in made:
            rest.kill(one)


def test_another_key_sees_nothing(rest: Rest, five):
    assert_error(rest.get("/v2/sandboxes", key="e2b_" + "f" * 40), 401)
