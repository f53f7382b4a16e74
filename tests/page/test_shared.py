"""A link by which anybody can read a task, until it is revoked."""

from __future__ import annotations

from playwright.sync_api import expect
from support.page import Browser, Window
from support.work import Platform

SCRIPT = """printf '{"caisson":"message","text":"I write the file"}\\n'; echo shown > shown.txt; echo this was printed"""


def test_a_task_is_shared_read_and_the_link_revoked(browser: Browser, window: Window, platform: Platform):
    started = platform.start(platform.add_agent(SCRIPT, "ada"), "Show the work", description="For everybody to see.")
    platform.wait(started)
    page = window.go(f"/board?task={started['task_id']}")
    panel = page.get_by_role("complementary", name="Show the work")
    panel.get_by_label("The link works for").select_option("24")
    panel.get_by_role("button", name="Create a link").click()
    link = panel.get_by_role("textbox", name="Link").input_value()
    assert link.startswith(f"{window.server.url}/app/shared/")
    window.check_accessible()

    with browser.window(window.server) as stranger:
        read = stranger.go(link.removeprefix(f"{window.server.url}/app"))
        expect(read.get_by_role("heading", level=1, name="Show the work")).to_be_visible()
        expect(read.get_by_text("For everybody to see.")).to_be_visible()
        expect(read.get_by_text("In review")).to_be_visible()
        expect(read.get_by_role("list", name="Steps")).to_contain_text("Push: Done")
        expect(read.get_by_text("I write the file")).to_be_visible()
        expect(read.get_by_text("shown.txt").first).to_be_visible()
        output = read.get_by_role("log", name="Lines of Output of #1")
        if not output.get_by_text("this was printed", exact=True).is_visible():
            read.get_by_role("button", name="Open all groups").click()
        expect(output.get_by_text("this was printed", exact=True)).to_be_visible()
        # Nothing can be changed here, and nothing else is known.
        for name in ("Start", "Send back", "Delete", "Save", "Merge"):
            expect(read.get_by_role("button", name=name, exact=True)).to_have_count(0)
        sandboxes = {event["sandbox_id"] for event in platform.events(type="sandbox_created")}
        assert sandboxes and not any(each in read.content() for each in sandboxes)
        stranger.check_accessible()
        stranger.check_quiet("ERR_NETWORK_CHANGED")

        panel.get_by_role("button", name="Revoke").click()
        page.get_by_role("dialog", name="Revoke the link").get_by_role("button", name="Revoke").click()
        expect(panel.get_by_text("Works until")).to_have_count(0)
        read.reload()
        expect(read.get_by_text("This link does not work")).to_be_visible()
        stranger.check_accessible()
