"""Runs in the page: the list with its filters, the bars with retries, the failure first, retry, cancel, download."""

from __future__ import annotations

import json
import re

from playwright.sync_api import expect
from support.forge import Forge
from support.page import Window
from support.work import BUSY, Platform


def test_a_run_that_failed_is_read_and_retried(window: Window, platform: Platform, forge: Forge):
    page = window.go("/runs")
    expect(page.get_by_text("Nothing has run yet")).to_be_visible()
    window.check_accessible()

    # The pull request is refused until the run is given up.
    agent = platform.add_agent(BUSY.format(file="a.txt"))
    fault = forge.plant("status", method="POST", path="/pulls$", status=503, times=100)
    started = platform.start(agent, "Write a file")
    platform.wait(started, "dead")
    row = page.get_by_role("link", name="#1 Write a file")
    expect(page.get_by_role("row").filter(has=row)).to_contain_text("Given up")
    window.check_accessible()

    # Filters are in the address, and nothing that matches is told.
    page.get_by_label("State").select_option("succeeded")
    expect(page.get_by_text("No run matches")).to_be_visible()
    expect(page).to_have_url(re.compile("state=succeeded"))
    page.get_by_role("button", name="Clear the filters").click()
    page.get_by_label("Workflow").select_option("task")
    page.get_by_role("heading", name="Runs", level=1).click()
    page.keyboard.press("j")
    expect(row).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Run of #1 Write a file", level=1)).to_be_visible()

    # The failure first: which step, how often, what was said.
    failure = page.get_by_role("region", name="Failure")
    expect(failure).to_contain_text("PR failed")
    attempts = next(step for step in platform.run(started["run_id"])["steps"] if step["name"] == "pull_request")["attempt"]
    steps = page.get_by_role("list", name="Steps")
    bar = steps.get_by_role("button", name="PR")
    assert attempts > 1
    expect(bar.locator("[data-attempt]")).to_have_count(attempts)
    expect(bar).to_contain_text(f"{attempts} attempts")
    expect(steps.get_by_role("button", name="clone").locator("[data-attempt]")).to_have_count(1)
    bar.click()
    expect(page.get_by_role("region", name="Step")).to_contain_text(f"{attempts} of at most")
    window.check_accessible()

    # The same as a list and as JSON, and as a file.
    page.get_by_role("tab", name="List").click()
    expect(page.get_by_role("cell", name="PR", exact=True)).to_have_count(attempts)
    window.check_accessible()
    page.get_by_role("tab", name="JSON").click()
    expect(page.get_by_label("The run as JSON")).to_contain_text('"definition": "task"')
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    assert json.loads(download.value.path().read_text())["id"] == started["run_id"]

    # It goes on at the step once the forge answers again.
    fault.times = 0
    page.get_by_role("tab", name="Timeline").click()
    page.get_by_role("button", name="Retry from PR").click()
    expect(page.get_by_text("Succeeded", exact=True)).to_be_visible()
    expect(failure).to_have_count(0)
    window.check_quiet("ERR_NETWORK_CHANGED")


def test_a_run_is_canceled_after_a_question(window: Window, platform: Platform):
    agent = platform.add_agent("echo at it; sleep 600")
    started = platform.start(agent, "Take long")
    platform.wait_for_event("command_output", task_id=started["task_id"])
    page = window.go(f"/runs/{started['run_id']}")
    expect(page.get_by_text("Running", exact=True).first).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Cancel the run of #1 Take long")
    dialog.get_by_role("button", name="Cancel the run").click()
    expect(page.get_by_text("Canceled", exact=True).first).to_be_visible()
    platform.wait(started, "canceled")
