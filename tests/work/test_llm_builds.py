"""Builds whose files a model writes: a goal becomes a page that answers, and a wish a further version."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from support.builds import Builds, page
from support.model import KEY, ScriptedModel

pytestmark = pytest.mark.timeout(300)


def answer(note: str, *changes: dict) -> str:
    return json.dumps({"changes": changes, "note": note})


def think(messages: list[dict]) -> str:
    """Its first answer to a goal cannot be used; what it is told of that lets it do better."""
    said = messages[-1]["content"]
    if "cannot be used" in said:
        return answer("A page about ships.", {"path": "index.html", "new_content": page("Ships")},
                      {"path": "old.html", "new_content": page("Old")})
    if "What shall change:" not in said:
        return "Gladly! Here is your page."
    if "What went wrong:" in said:
        return answer("Mended.", {"path": "index.html", "new_content": page("Sails")})
    return answer("Sails.", {"path": "index.html", "new_content": "<p>no heading</p>"}, {"path": "old.html", "delete": True})


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    scripted = ScriptedModel(think)
    yield scripted
    scripted.close()


def test_a_goal_becomes_a_page_and_a_wish_its_next_version(make_server, model: ScriptedModel) -> None:
    builds = Builds(make_server(env={"CAISSON_BUILD_TIER": "none", "CAISSON_BUILD_RUNNER": "llm", **model.settings}))
    first = builds.ready(goal="A page about ships")
    assert first["runner"] == "llm" and first["build_version"] == "build_v0_1"
    assert "Ships" in builds.open(first) and "Old" in builds.open(first, "/old.html")
    assert len(model.questions) == 2 and set(model.keys) == {f"Bearer {KEY}"}
    assert "A page about ships" in model.questions[0]["messages"][-1]["content"]
    texts = [line["text"] for line in builds.log(first)]
    assert "A page about ships." in texts and KEY not in "\n".join(texts)

    second = builds.ready(parent_id=first["id"], goal="Add sails",
                          checks=["grep -q '<h1>' index.html || { echo there is no heading >&2; exit 1; }"])
    assert second["build_version"] == "build_v0_2" and second["preview_url"] == first["preview_url"]
    assert "Sails" in builds.open(second) and builds.status(second, "/old.html") == 404
    change, mend = (question["messages"][-1]["content"] for question in model.questions[2:])
    assert "Add sails" in change and "Ships" in change  # it is shown what there is
    assert "there is no heading" in mend and builds.fixes(second) == [(1, 2)]
