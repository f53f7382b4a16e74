"""The built-in agent in the feed of its task: its plan, its phases, its rest; and warnings, wherever the user is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect
from support.forge import Forge
from support.model import Says, ScriptedModel, budget
from support.page import Browser, Window
from support.work import Platform, settings_for

PLAN = [{"title": "Write it", "status": "in_progress", "files_to_modify": ["a.txt"]},
        {"title": "Look at it", "status": "pending", "files_to_modify": []}]
DONE = [{**step, "status": "completed"} for step in PLAN]
STEPS: list[Says] = [
    [("update_plan", {"steps": PLAN}), ("write_file", {"path": "a.txt", "content": "a\n"})],
    [("update_plan", {"steps": DONE})],
    "It is written.",
]
PRICES = {"price_in": 2, "price_out": 10}
QUESTION = 3_000  # microdollars, of one with these prices


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    said = ScriptedModel(lambda messages: STEPS[sum(one["role"] == "assistant" for one in messages)])
    yield said
    said.close()


def start(platform: Platform, **config: object) -> dict:
    agent = platform.ask("POST", "/agents", {"name": "inside", "adapter": "builtin", "config": config}, 201).json()
    return platform.start(agent, "Write a file")


def test_its_plan_and_its_phases_are_in_the_feed(window_of, model: ScriptedModel):
    window, platform = window_of(model.settings)
    started = start(platform)
    page = window.go(f"/work/{started['task_id']}")
    plan = page.get_by_role("list", name="Plan of the agent")
    expect(plan).to_have_count(1)
    expect(plan.get_by_role("listitem")).to_have_text(["Write it done", "Look at it done"])
    feed = page.get_by_role("region", name="Activity")
    expect(feed.get_by_text("Planning is done.")).to_be_visible()
    expect(feed.get_by_text("Executing is done.")).to_be_visible()
    expect(feed.get_by_text("The agent asks its model")).to_have_count(0)
    page.get_by_label("Details").check()
    expect(feed.get_by_text("The agent asks its model, question 1.")).to_be_visible()
    window.check_accessible()
    window.check_quiet("ERR_NETWORK_CHANGED")


def test_a_rest_counts_down(window_of, model: ScriptedModel):
    """OC-75 (resting)."""
    window, platform = window_of({**model.settings, **budget(QUESTION - 100)})
    started = start(platform, **PRICES)
    page = window.go(f"/work/{started['task_id']}")
    feed = page.get_by_role("region", name="Activity")
    expect(feed.get_by_text("The agent is resting")).to_be_visible()
    expect(feed.get_by_text("It goes on in")).to_be_visible()
    window.check_accessible()


def test_a_budget_that_is_nearly_spent_is_told_wherever_the_user_is(window_of, model: ScriptedModel):
    window, platform = window_of({**model.settings, "CAISSON_BUDGET_MONTH_DOLLARS": "0.01"})
    page = window.go("/board")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    start(platform, **PRICES)
    toast = page.get_by_role("listitem").filter(has_text="budget")
    expect(toast).to_contain_text("Most of this month's budget is used up")
    expect(toast).to_contain_text("of $0.0100")


@pytest.fixture
def window_of(browser: Browser, make_server, forge: Forge):
    """A window in front of a server with these settings."""
    opened = []

    def make(settings: dict[str, str]) -> tuple[Window, Platform]:
        platform = Platform(make_server(env={**settings_for(forge), **settings}))
        opened.append(browser.window(platform.server))
        window = opened[-1].__enter__()
        window.sign_in()
        return window, platform

    yield make
    for each in opened:
        each.__exit__(None, None, None)
