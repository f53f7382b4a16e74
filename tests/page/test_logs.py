"""The log viewer: a long log scrolls and is searched as a whole, a failure shows itself, lines have addresses."""

from __future__ import annotations

import json
import re

from playwright.sync_api import Locator, Page, expect
from support.page import Window
from support.work import Platform

MANY = 100_000
# Prints nothing else to its output, so that the number of a line tells its place.
LONG = f'seq -f "row %06.0f of the log" 1 {MANY}; echo the end of it'
BROKEN = r"""
printf '\033[1;31mred\033[0m and plain\n'
for i in $(seq 1 300); do echo "quiet $i"; done
echo "cannot open the door" >&2
exit 3
"""

# Frames that took longer than one should, while something is done.
WATCH = """() => {
  window.gaps = [];
  let last = performance.now();
  const tick = (now) => { window.gaps.push(now - last); last = now; window.watching = requestAnimationFrame(tick); };
  window.watching = requestAnimationFrame(tick);
}"""
WATCHED = "() => { cancelAnimationFrame(window.watching); return {frames: gaps.length, longest: Math.round(Math.max(...gaps.slice(1))), over50: gaps.slice(1).filter((gap) => gap > 50).length}; }"
SCROLL = """async (log) => {
  const steps = 120;
  for (let at = 1; at <= steps; at += 1) {
    log.scrollTop = (log.scrollHeight * at) / steps;
    await new Promise(requestAnimationFrame);
  }
}"""
# A new sandbox on this host makes a browser drop what it is loading; the page asks for it again.
NETWORK = "ERR_NETWORK_CHANGED"


# Prints until it is told to go on, and then for good.
PATIENT = """
seq -f "early %.0f" 1 300
for part in one two; do
  until [ -e /tmp/$part ]; do sleep 0.1; done
  seq -f "$part %.0f" 1 40
done
sleep 600
"""


def log_of(page: Page) -> Locator:
    return page.get_by_role("log")


def line(page: Page, text: str) -> Locator:
    return log_of(page).get_by_text(text, exact=True)


def ended_task(platform: Platform, script: str, state: str) -> str:
    started = platform.start(platform.add_agent(script))
    platform.wait(started, state)
    return started["task_id"]


def test_a_hundred_thousand_lines_scroll_and_are_searched(window: Window, platform: Platform, figure):
    task = ended_task(platform, LONG, "succeeded")
    page = window.go(f"/work/{task}?tab=logs")
    work = log_of(page).get_by_role("button", name="Work")
    expect(work).to_contain_text(f"{MANY + 1} lines")
    work.click()
    find = page.get_by_role("searchbox", name="Find in")

    page.evaluate(WATCH)
    log_of(page).evaluate(SCROLL)
    scrolled = page.evaluate(WATCHED)
    assert log_of(page).evaluate("(log) => log.scrollTop + log.clientHeight >= log.scrollHeight - 2")
    expect(line(page, "the end of it")).to_be_visible()
    assert log_of(page).evaluate("(log) => log.querySelectorAll('a').length") < 200

    page.evaluate(WATCH)
    find.fill("of the log")
    expect(page.get_by_text(f"1 of {MANY}", exact=True)).to_be_visible()
    searched = page.evaluate(WATCHED)
    expect(line(page, "row 000001 of the log")).to_be_visible()
    find.press("Shift+Enter")
    expect(page.get_by_text(f"{MANY} of {MANY}", exact=True)).to_be_visible()
    expect(line(page, f"row {MANY} of the log")).to_be_visible()
    find.press("Enter")
    expect(line(page, "row 000001 of the log")).to_be_visible()

    # What is folded is found, too, and shown.
    find.fill("")
    log_of(page).evaluate("(log) => { log.scrollTop = 0; }")
    work.click()
    expect(line(page, "row 000001 of the log")).to_have_count(0)
    find.fill("row 077777")
    expect(line(page, "row 077777 of the log")).to_be_visible()
    figure(f"page: {MANY} lines: scrolling {scrolled}, searching {searched}")
    window.check_quiet(NETWORK)


def test_a_failed_step_shows_itself_and_lines_have_addresses(window: Window, platform: Platform):
    task = ended_task(platform, BROKEN, "failed")
    page = window.go(f"/work/{task}?tab=logs")
    # Open and scrolled to, without a click; the others are folded.
    expect(line(page, "cannot open the door")).to_be_in_viewport()
    expect(log_of(page).get_by_role("button", name="Clean up")).to_have_attribute("aria-expanded", "false")
    log_of(page).evaluate("(log) => { log.scrollTop = 0; }")
    expect(log_of(page).get_by_role("button", name="Work")).to_have_attribute("aria-expanded", "true")
    expect(log_of(page).get_by_role("button", name="Clone")).to_have_attribute("aria-expanded", "false")

    # Its colours are classes, and it is found as it is read.
    find = page.get_by_role("searchbox", name="Find in")
    page.keyboard.press("/")
    expect(find).to_be_focused()
    find.fill("red and plain")
    expect(page.get_by_text("1 of 1", exact=True)).to_be_visible()
    expect(log_of(page).locator(".ansi-red-fg.ansi-bold")).to_have_text("red")
    window.check_accessible()
    # What is searched for is in the address.
    expect(page).to_have_url(re.compile("find=red"))
    page.reload()
    expect(find).to_have_value("red and plain")
    expect(page.get_by_text("1 of 1", exact=True)).to_be_visible()
    find.press("Escape")
    expect(find).to_have_value("")

    # A line's number is its address, also for somebody else.
    find.fill("quiet 150")
    found = log_of(page).locator("div.group", has_text=re.compile("quiet 150$"))
    number = found.get_by_role("link").inner_text()
    found.get_by_role("link").click()
    expect(page.get_by_role("button", name=f"Copy line {number}")).to_be_visible()
    expect(page).to_have_url(re.compile(f"#L{number}$"))
    page.goto("about:blank")
    window.go(f"/work/{task}?tab=logs#L{number}")
    expect(line(page, "quiet 150")).to_be_in_viewport()
    expect(page.get_by_role("button", name=f"Copy line {number}")).to_be_visible()

    # Streams, timestamps, wrapping.
    page.get_by_label("Stream", exact=True).select_option("stderr")
    expect(line(page, "cannot open the door")).to_be_visible()
    expect(line(page, "quiet 150")).to_have_count(0)
    expect(page).to_have_url(re.compile("stream=stderr"))
    page.get_by_label("Stream", exact=True).select_option("all")
    log_of(page).focus()
    page.keyboard.press("t")
    expect(log_of(page).locator("time").first).to_contain_text("+")
    page.keyboard.press("w")
    expect(page.get_by_role("button", name="Wrap long lines")).to_have_attribute("aria-pressed", "true")

    page.get_by_role("button", name="Download").click()
    with page.expect_download() as download:
        page.get_by_role("menuitem", name="As text").click()
    text = download.value.path().read_text()
    assert "red and plain\nquiet 1\n" in text and "cannot open the door\n" in text
    window.check_quiet(NETWORK)


def tell(platform: Platform, started: dict, name: str) -> None:
    sandbox = platform.get(f"/executions/{started['execution_id']}")["sandbox_id"]
    platform.ask("POST", f"/sandboxes/{sandbox}/execute", {"command": f"touch /tmp/{name}"}, 200)


def test_a_log_is_followed_until_somebody_reads_and_can_be_taken_away(window: Window, platform: Platform):
    window.context.grant_permissions(["clipboard-read", "clipboard-write"])
    started = platform.start(platform.add_agent(PATIENT))
    page = window.go(f"/work/{started['task_id']}?tab=logs")
    expect(line(page, "early 300")).to_be_in_viewport()

    # Whoever scrolls up stays where they are, and is told what is new.
    pill = page.get_by_role("button", name="Jump to latest")
    log_of(page).hover()
    page.mouse.wheel(0, -2000)
    expect(line(page, "early 300")).not_to_be_in_viewport()
    expect(pill).to_have_count(0)
    place = log_of(page).evaluate("(log) => log.scrollTop")
    tell(platform, started, "one")
    expect(pill).to_contain_text("new line")
    assert log_of(page).evaluate("(log) => log.scrollTop") == place
    window.check_accessible()
    pill.click()
    expect(line(page, "one 40")).to_be_in_viewport()
    expect(pill).to_have_count(0)
    tell(platform, started, "two")
    expect(line(page, "two 40")).to_be_in_viewport()

    # Copied as a whole and by the line, without colours; saved as text and as records.
    page.get_by_role("button", name="Copy all").click()
    expect(page.get_by_text(re.compile(r"Copied \d+ lines"))).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    wanted = [f"early {n}" for n in range(1, 301)] + [f"{part} {n}" for part in ("one", "two") for n in range(1, 41)]
    assert [text for text in copied.splitlines() if text in set(wanted)] == wanted
    log_of(page).locator("div.group", has_text=re.compile("two 40$")).get_by_role("link").click()
    page.get_by_role("button", name="Copy line").click()
    assert page.evaluate("navigator.clipboard.readText()") == "two 40"

    def saved(kind: str, ending: str) -> str:
        page.get_by_role("button", name="Download", exact=True).click()
        with page.expect_download() as download:
            page.get_by_role("menuitem", name=kind).click()
        assert download.value.suggested_filename.endswith(ending)
        return download.value.path().read_text()

    assert saved("As text", ".txt") == copied
    records = [json.loads(text) for text in saved("As NDJSON", ".ndjson").splitlines()]
    assert [record["text"] for record in records] == copied.splitlines()
    printed = [record for record in records if record["text"] in set(wanted)]
    assert {record["stream"] for record in printed} == {"stdout"} and all(record["time"] for record in printed)
    window.check_quiet(NETWORK)
