"""Shells of a sandbox in the page: typing, sizes, tabs, and coming back after a reload and after a restart."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect
from support.page import NARROW, Browser, Window
from support.work import Platform

# What a browser reports when its server is gone, and when a sandbox changes the host's network.
GONE = ("ERR_NETWORK_CHANGED", "ERR_CONNECTION_REFUSED", "WebSocket connection", "ERR_INCOMPLETE_CHUNKED",
        "ERR_EMPTY_RESPONSE", "ERR_CONNECTION_RESET", "status of 404")


def shell(page: Page) -> Locator:
    """The shell that is shown, once it is connected."""
    panel = page.locator("[role=tabpanel][data-state=ready]:visible")
    expect(panel).to_be_visible()
    return panel.locator(".xterm-rows")


def run(page: Page, command: str) -> None:
    shell(page).locator("..").click()
    page.keyboard.type(command)
    page.keyboard.press("Enter")


def open_terminal(window: Window, platform: Platform) -> Page:
    sandbox = platform.rest.create(timeout=3600)["sandboxID"]
    return window.go(f"/sandboxes/{sandbox}?tab=terminal")


@pytest.fixture
def terminal(window: Window, platform: Platform) -> Page:
    return open_terminal(window, platform)


def size_shown(page: Page) -> list[int]:
    found = re.search(r"size: (\d+) (\d+)", shell(page).inner_text())
    assert found
    return [int(side) for side in found.groups()]


def test_what_is_typed_runs_and_the_shell_has_the_size_of_the_window(terminal: Page, window: Window):
    run(terminal, "echo $((6*7))")
    expect(shell(terminal)).to_contain_text("42")
    # A colour that is not of the palette, and the policy of the page does not hinder it.
    run(terminal, r"printf '\033[38;2;200;30;30mcolou''red\033[0m\n'")
    expect(shell(terminal).locator("span", has_text=re.compile("^coloured$"))).to_have_attribute("style", re.compile("color"))
    run(terminal, r"clear; while sleep 0.2; do printf '\rsize: %s %s   ' $(stty size); done")
    expect(shell(terminal)).to_contain_text(re.compile(r"size: \d+ \d+"))
    rows, columns = size_shown(terminal)
    terminal.set_viewport_size({"width": 1100, "height": 600})
    expect(shell(terminal)).not_to_contain_text(f"size: {rows} {columns}")
    fewer_rows, fewer_columns = size_shown(terminal)
    assert fewer_rows < rows and fewer_columns < columns
    terminal.keyboard.press("Control+c")
    window.check_accessible()
    window.check_quiet("ERR_NETWORK_CHANGED")


def test_tabs_find_read_only_and_the_end_of_a_shell(terminal: Page, window: Window):
    run(terminal, "echo needle$((1+1))")
    expect(shell(terminal)).to_contain_text("needle2")
    terminal.get_by_role("button", name="New shell").click()
    expect(terminal.get_by_role("tab", name="Shell 2", selected=True)).to_be_visible()
    run(terminal, "echo second$((1+1))")
    expect(shell(terminal)).to_contain_text("second2")
    expect(terminal).to_have_url(re.compile(r"shells=t_\w+(,|%2C)t_\w+"))
    # Control and full stop leave the terminal, arrows move between the tabs.
    terminal.keyboard.press("Control+.")
    terminal.keyboard.press("ArrowLeft")
    expect(shell(terminal)).to_contain_text("needle2")
    terminal.get_by_role("button", name="Find").click()
    terminal.get_by_label("Find in the terminal").fill("needle2")
    terminal.keyboard.press("Enter")
    expect(terminal.locator(".xterm-selection div").first).to_be_attached()
    terminal.keyboard.press("Escape")

    terminal.get_by_role("button", name="Read only").click()
    run(terminal, "echo never$((1+1))")
    terminal.get_by_role("button", name="Read only").click()
    run(terminal, "echo again$((1+1))")
    expect(shell(terminal)).to_contain_text("again2")
    expect(shell(terminal)).not_to_contain_text("never")

    terminal.get_by_role("button", name="Screen reader mode").click()
    expect(terminal.locator(".xterm-accessibility:visible")).to_be_attached()
    terminal.get_by_role("button", name="End this shell").click()
    terminal.get_by_role("dialog", name="End shell 1?").get_by_role("button", name="End the shell").click()
    expect(terminal.get_by_role("tab", name="Shell")).to_have_count(1)
    expect(shell(terminal)).to_contain_text("second2")
    run(terminal, "exit 3")
    expect(terminal.get_by_text("The shell ended with code 3.")).to_be_visible()
    terminal.get_by_text("New shell", exact=True).click()
    run(terminal, "echo fresh$((1+1))")
    expect(shell(terminal)).to_contain_text("fresh2")
    window.check_quiet("ERR_NETWORK_CHANGED")


def test_a_reload_and_a_restart_of_the_server_come_back_to_the_same_shell(terminal: Page, window: Window):
    run(terminal, "secret=7; echo first$((1+1))")
    expect(shell(terminal)).to_contain_text("first2")
    expect(terminal).to_have_url(re.compile(r"shell=t_"))
    terminal.reload()
    expect(shell(terminal)).to_contain_text("first2")  # what it printed is there again
    run(terminal, "echo reloaded$secret")
    expect(shell(terminal)).to_contain_text("reloaded7")

    window.server.crash()
    expect(terminal.get_by_text("The connection was lost.")).to_be_visible()
    expect(terminal.locator(".xterm-rows:visible")).to_contain_text("reloaded7")
    window.server.start()
    run(terminal, "echo restarted$secret")
    expect(shell(terminal)).to_contain_text("restarted7")
    assert shell(terminal).inner_text().count("reloaded7") == 1
    window.check_quiet(*GONE)


def test_the_drawer_of_a_task_comes_back_to_its_shell(window: Window, platform: Platform):
    started = platform.start(platform.add_agent("echo at it; sleep 600"), "Take long")
    platform.wait_for_event("command_output", task_id=started["task_id"])
    page = window.go(f"/work/{started['task_id']}")
    expect(page.get_by_role("link", name="Sandbox running")).to_be_visible()
    page.keyboard.press("Control+`")
    run(page, "kept=5; echo typed$((1+1))")
    expect(shell(page)).to_contain_text("typed2")
    expect(page).to_have_url(re.compile(r"drawer=open.*shell=t_"))
    height = page.get_by_role("separator", name="Height of the terminal")
    before = int(height.get_attribute("aria-valuenow") or 0)
    height.focus()
    page.keyboard.press("ArrowUp")
    expect(height).to_have_attribute("aria-valuenow", str(before + 20))
    window.check_accessible()

    page.reload()
    expect(shell(page)).to_contain_text("typed2")
    run(page, "echo again$kept")
    expect(shell(page)).to_contain_text("again5")
    expect(height).to_have_attribute("aria-valuenow", str(before + 20))
    page.get_by_role("button", name="Close the terminal").click()
    expect(page.locator(".xterm")).to_have_count(0)
    page.keyboard.press("Control+`")
    run(page, "echo once more$kept")
    expect(shell(page)).to_contain_text("more5")
    window.check_quiet("ERR_NETWORK_CHANGED")


def test_on_a_phone_a_terminal_is_read_only_until_it_is_unlocked(browser: Browser, platform: Platform):
    with browser.window(platform.server, NARROW) as window:
        window.sign_in()
        page = open_terminal(window, platform)
        shell(page)
        expect(page.get_by_role("button", name="Read only", pressed=True)).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
