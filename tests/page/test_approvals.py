"""The inbox of questions that wait for a person, worked through by keys."""

from __future__ import annotations

import re

from playwright.sync_api import expect
from support.forge import Forge
from support.forge_plugin import FORGE_REPOSITORY
from support.page import Window
from support.work import Platform


def test_questions_are_answered_by_keys(window: Window, platform: Platform, forge: Forge):
    """OA-99 (approval cards): a says yes, d says no and asks why."""
    page = window.go("/approvals")
    expect(page.get_by_text("Nothing waits for you")).to_be_visible()
    window.check_accessible()
    started = {}
    for name in ("ada", "bob"):
        agent = platform.add_agent(f"echo {name} > {name}.txt", name)
        started[name] = platform.start(agent, f"A file of {name}", options={"approve_push": True})
    for name in started:
        expect(page.get_by_role("listitem", name=f"Push the changes for: A file of {name}")).to_be_visible()
    expect(page.get_by_role("navigation").get_by_text("2 waiting")).to_be_visible()
    window.check_accessible()

    page.keyboard.press("j")
    yes = page.get_by_role("listitem", name="A file of bob")
    while not yes.evaluate("element => element === document.activeElement"):
        page.keyboard.press("j")
    page.keyboard.press("a")
    expect(yes).to_have_count(0)
    platform.wait(started["bob"])
    assert [pull.title for pull in forge.repositories[FORGE_REPOSITORY].pulls] == ["chore: A file of bob"]

    no = page.get_by_role("listitem", name="A file of ada")
    expect(no).to_be_focused()
    page.keyboard.press("d")
    dialog = page.get_by_role("dialog", name="Deny: Push the changes for: A file of ada")
    expect(dialog.get_by_role("button", name="Deny")).to_be_disabled()
    page.keyboard.type("It says nothing")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Nothing waits for you")).to_be_visible()
    assert "It says nothing" in platform.wait_for_error(started["ada"])

    page.get_by_role("tab", name="Decided").click()
    expect(page.get_by_role("listitem", name="A file of ada")).to_contain_text("It says nothing")
    expect(page.get_by_role("listitem", name="A file of bob")).to_contain_text("Approved")
    expect(page).to_have_url(re.compile("tab=decided$"))
    window.check_quiet("ERR_NETWORK_CHANGED")


def test_in_the_feed_a_no_needs_a_reason_and_what_failed_is_red(window: Window, platform: Platform):
    """OA-91 (red on failure): the keys are those of the inbox, wherever the focus is."""
    agent = platform.add_agent("echo x > x.txt", "ada")
    started = platform.start(agent, "A file of ada", options={"approve_push": True})
    page = window.go(f"/work/{started['task_id']}")
    card = page.get_by_role("group", name="Approval")
    expect(card.get_by_text("Waiting for you")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog").get_by_text("Deny", exact=True)).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("d")
    dialog = page.get_by_role("dialog", name="Deny: Push the changes for: A file of ada")
    expect(dialog.get_by_role("button", name="Deny")).to_be_disabled()
    page.keyboard.press("Control+Enter")
    page.keyboard.type("It says nothing")
    page.keyboard.press("Control+Enter")
    expect(card).to_contain_text("It says nothing")
    bar = page.get_by_role("progressbar")
    expect(bar).to_have_attribute("aria-valuetext", re.compile("failed$"))
    expect(bar.locator(".bg-bad")).to_have_count(1)
