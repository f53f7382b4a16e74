"""Listing: filters, order, pages."""

from __future__ import annotations

import asyncio
import datetime
import uuid

import pytest
from e2b import SandboxException, SandboxQuery, SandboxState
from flavors import Flavor


async def pages(paginator) -> list:
    items = []
    while paginator.has_next:
        items.append(await paginator.next_items())
    return items


async def all_ids(flavor: Flavor, **options) -> list[str]:
    paginator = await flavor.api.list(**options)
    return [item.sandbox_id for page in await pages(paginator) for item in page]


@pytest.fixture(scope="module")
async def three(flavor: Flavor):
    """Three sandboxes made one after the other, found by a tag nobody else has."""
    tag = uuid.uuid4().hex
    made = []
    for index in range(3):
        made.append(
            await flavor.api.create(timeout=600, metadata={"tag": tag, "index": str(index)})
        )
    yield tag, [s.sandbox_id for s in made]
    await asyncio.gather(*(s.kill() for s in made))


@pytest.mark.quick
async def test_newest_first_and_filtered_by_metadata(flavor: Flavor, three):
    tag, ids = three
    query = SandboxQuery(metadata={"tag": tag})
    assert await all_ids(flavor, query=query) == ids[::-1]
    one = SandboxQuery(metadata={"tag": tag, "index": "1"})
    assert await all_ids(flavor, query=one) == [ids[1]]
    none = SandboxQuery(metadata={"tag": tag, "index": "7"})
    assert await all_ids(flavor, query=none) == []


async def test_what_an_entry_says(flavor: Flavor, three):
    tag, ids = three
    paginator = await flavor.api.list(query=SandboxQuery(metadata={"tag": tag, "index": "0"}))
    (entry,) = await paginator.next_items()
    assert entry.sandbox_id == ids[0]
    assert entry.name == "base"
    assert entry.state == SandboxState.RUNNING
    assert entry.metadata == {"tag": tag, "index": "0"}
    assert entry.end_at > entry.started_at
    assert entry.cpu_count >= 1 and entry.memory_mb >= 128


@pytest.mark.quick
@pytest.mark.parametrize("order", ["asc", "desc"])
async def test_pages_of_one(flavor: Flavor, three, order: str):
    tag, ids = three
    expected = ids if order == "asc" else ids[::-1]
    query = SandboxQuery(metadata={"tag": tag})
    paginator = await flavor.api.list(query=query, limit=1, order=order)
    found = await pages(paginator)
    assert [[item.sandbox_id for item in page] for page in found if page] == [[i] for i in expected]
    with pytest.raises(Exception, match="No more items"):
        await paginator.next_items()


async def test_a_page_token_works_in_a_new_paginator(flavor: Flavor, three):
    tag, ids = three
    query = SandboxQuery(metadata={"tag": tag})
    first = await flavor.api.list(query=query, limit=2)
    page = await first.next_items()
    assert [s.sandbox_id for s in page] == ids[:0:-1]
    assert first.has_next and first.next_token
    rest = await all_ids(flavor, query=query, limit=2, next_token=first.next_token)
    assert rest == [ids[0]]


async def test_a_token_of_the_other_order_is_refused(flavor: Flavor, three):
    tag, _ = three
    query = SandboxQuery(metadata={"tag": tag})
    first = await flavor.api.list(query=query, limit=1, order="desc")
    await first.next_items()
    with pytest.raises(SandboxException) as caught:
        await all_ids(flavor, query=query, limit=1, order="asc", next_token=first.next_token)
    assert caught.value.status_code == 400


async def test_filter_by_state(flavor: Flavor, three):
    tag, ids = three
    running = SandboxQuery(metadata={"tag": tag}, state=[SandboxState.RUNNING])
    assert await all_ids(flavor, query=running) == ids[::-1]
    paused = SandboxQuery(metadata={"tag": tag}, state=[SandboxState.PAUSED])
    assert await all_ids(flavor, query=paused) == []
    both = SandboxQuery(metadata={"tag": tag}, state=[SandboxState.RUNNING, SandboxState.PAUSED])
    assert await all_ids(flavor, query=both) == ids[::-1]


async def test_filter_by_template(flavor: Flavor, three):
    tag, ids = three
    by_name = SandboxQuery(metadata={"tag": tag}, template="base")
    assert await all_ids(flavor, query=by_name) == ids[::-1]
    info = await flavor.api.get_info(ids[0])
    by_id = SandboxQuery(metadata={"tag": tag}, template=info.template_id)
    assert await all_ids(flavor, query=by_id) == ids[::-1]
    unknown = SandboxQuery(metadata={"tag": tag}, template="no-such-template")
    assert await all_ids(flavor, query=unknown) == []
    with pytest.raises(SandboxException) as caught:
        await all_ids(flavor, query=SandboxQuery(template="base:some-tag"))
    assert caught.value.status_code == 400


async def test_started_after_is_inclusive(flavor: Flavor, three):
    tag, ids = three
    info = await flavor.api.get_info(ids[1])
    exactly = SandboxQuery(metadata={"tag": tag}, started_after=info.started_at)
    assert await all_ids(flavor, query=exactly) == [ids[2], ids[1]]
    # A client that knows milliseconds only must find the sandbox with what it was told.
    cut = info.started_at.replace(microsecond=info.started_at.microsecond // 1000 * 1000)
    assert ids[1] in await all_ids(
        flavor, query=SandboxQuery(metadata={"tag": tag}, started_after=cut)
    )
    later = info.started_at + datetime.timedelta(hours=1)
    assert await all_ids(flavor, query=SandboxQuery(started_after=later)) == []


@pytest.mark.parametrize(
    "metadata",
    [
        {"plain": "value"},
        {"a b": "c&d=e"},
        {"percent": "100%", "encoded": "%41%2F"},
        {"unicode": "naïve ☃ 漢字"},
        {"plus": "a+b", "slash/key": "x/y"},
        {"empty": ""},
        {"q?k": "#;,:@"},
    ],
)
async def test_metadata_survives_the_triple_encoding(flavor: Flavor, metadata: dict):
    tag = uuid.uuid4().hex
    sandbox = await flavor.api.create(timeout=60, metadata={**metadata, "tag": tag})
    try:
        found = await all_ids(flavor, query=SandboxQuery(metadata={**metadata, "tag": tag}))
        assert found == [sandbox.sandbox_id]
        changed = {key: value + "x" for key, value in metadata.items()}
        missing = await all_ids(flavor, query=SandboxQuery(metadata={**changed, "tag": tag}))
        assert missing == []
    finally:
        await sandbox.kill()


async def test_killed_sandboxes_leave_the_list(flavor: Flavor):
    tag = uuid.uuid4().hex
    sandbox = await flavor.api.create(timeout=60, metadata={"tag": tag})
    query = SandboxQuery(metadata={"tag": tag})
    assert await all_ids(flavor, query=query) == [sandbox.sandbox_id]
    await sandbox.kill()
    assert await all_ids(flavor, query=query) == []
