"""A log that is longer than what the page holds: earlier lines come when asked for, a search finds what is not
loaded and goes there, everything can be taken away, and what is missing is said."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect
from support.builds import Builds
from support.page import Browser, Window
from support.work import Platform, settings_for

MANY = 30_000
# So long that three parts are needed for all of them.
LONG = "." * 380
PIECES = f"""
seq -f "row %06.0f of the log {LONG}" 1 5010
echo "The Needle in the hay"
seq -f "row %06.0f of the log {LONG}" 5011 {MANY}
echo the end of it
"""
NETWORK = "ERR_NETWORK_CHANGED"
PHONE = {"width": 375, "height": 800}


def log_of(page: Page) -> Locator:
    return page.get_by_role("log")


def line(page: Page, text: str) -> Locator:
    return log_of(page).get_by_text(text, exact=True)


def row(page: Page, number: int) -> Locator:
    return log_of(page).get_by_text(re.compile(f"^row {number:06} of the log"))


def last_in_sight(page: Page) -> str:
    """The last row of the log that is in the window."""
    texts = log_of(page).evaluate("""(log) => {
      const edge = log.getBoundingClientRect().bottom;
      const rows = [...log.querySelectorAll('div.group')].filter((row) => row.getBoundingClientRect().bottom <= edge);
      return rows.map((row) => row.innerText);
    }""")
    return [found[0] for text in texts if (found := re.search(r"row \d{6} of the log", text))][-1]


def place_of(page: Page, text: str) -> float:
    return log_of(page).get_by_text(text).bounding_box()["y"]


def to_the_top(page: Page) -> None:
    log_of(page).evaluate("(log) => { log.scrollTop = 0; }")


@pytest.mark.timeout(400)
def test_thirty_thousand_lines_are_read_searched_and_taken_away(window: Window, platform: Platform) -> None:
    started = platform.start(platform.add_agent(PIECES))
    platform.wait(started, deadline_s=200)
    page = window.go(f"/work/{started['task_id']}?tab=logs")
    work = log_of(page).get_by_role("button", name="Work")
    expect(work).to_contain_text("lines loaded")
    loaded = int(re.search(r"(\d+) lines", work.inner_text())[1])
    assert 0 < loaded < MANY
    work.click()
    earlier = page.get_by_role("button", name="Load earlier")
    expect(earlier).to_be_visible()
    window.check_accessible()

    # What is in sight stays in sight.
    to_the_top(page)
    log_of(page).evaluate("(log) => { log.scrollTop = 90; }")
    expect(log_of(page).get_by_text(re.compile("row .* of the log")).first).to_be_visible()
    read = last_in_sight(page)
    before = place_of(page, read)
    height = log_of(page).evaluate("(log) => log.scrollHeight")
    # Not by the mouse, for which the row would first be scrolled into sight.
    earlier.evaluate("(button) => button.click()")
    page.wait_for_function("(height) => document.querySelector('[role=log]').scrollHeight > height", arg=height)
    assert abs(place_of(page, read) - before) < 2

    # Found on the server, in any case, and gone to.
    find = page.get_by_role("searchbox", name="Find in")
    find.fill("the needle")
    expect(line(page, "The Needle in the hay")).to_be_in_viewport()
    expect(page.get_by_text("1 of 1", exact=True)).to_be_visible()
    expect(row(page, 5010)).to_be_visible()
    later = page.get_by_role("button", name="Load later")
    log_of(page).evaluate("(log) => { log.scrollTop = log.scrollHeight; }")
    expect(later).to_be_visible()
    window.check_accessible()
    shown = last_in_sight(page)
    later.click()
    expect(log_of(page).get_by_text(shown)).to_be_visible()

    # Hits before, in and behind what is loaded, round and back.
    find.fill("00 of the log")
    status = page.get_by_role("status").filter(has_text="of 300")
    expect(status).to_have_text(re.compile(r"^\d+ of 300$"))
    at = int(status.inner_text().split()[0])
    find.press("Enter")
    expect(status).to_have_text(f"{at + 1} of 300")
    expect(row(page, (at + 1) * 100)).to_be_in_viewport()
    find.fill("row 029900")
    expect(row(page, 29_900)).to_be_in_viewport()
    find.fill("row 000100")
    expect(row(page, 100)).to_be_in_viewport()

    # From the beginning on lines have numbers, else the address names the place.
    expect(log_of(page).get_by_role("link", name=re.compile(r"^Line \d+$")).first).to_be_visible()
    find.fill("row 015000")
    hit = log_of(page).locator("div.group", has_text="row 015000")
    expect(hit).to_be_in_viewport()
    hit.get_by_role("link").click()
    expect(page).to_have_url(re.compile(r"#E\d+\.\d+$"))
    address = page.url
    page.get_by_role("button", name="Jump to latest").click()
    expect(line(page, "the end of it")).to_be_in_viewport()
    page.goto("about:blank")
    page.goto(address)
    expect(row(page, 15_000)).to_be_in_viewport()
    expect(page.get_by_role("button", name=re.compile(r"^Copy line \d+\.\d+$"))).to_be_visible()

    # All of it, as the server has it.
    to_the_top(page)
    with page.expect_download() as download:
        page.get_by_role("link", name="Download full").click()
    text = download.value.path().read_text().splitlines()
    wanted = [f"row {n:06} of the log {LONG}" for n in range(1, MANY + 1)]
    assert [each for each in text if each.startswith("row ")] == wanted
    assert text[-1] == "the end of it" and text[5010] == "The Needle in the hay"

    page.set_viewport_size(PHONE)
    expect(earlier).to_be_in_viewport()
    expect(page.get_by_role("link", name="Download full")).to_be_in_viewport()
    window.check_accessible()
    window.check_quiet(NETWORK)


@pytest.mark.timeout(400)
def test_a_log_that_was_cut_says_how_much_is_missing(make_server, forge, browser: Browser) -> None:
    builds = Builds(make_server(env=settings_for(forge, CAISSON_BUILD_LOG_LINES="100")))
    build = builds.ready(files={"index.html": "x"}, checks=["seq -f 'line %.0f' 1 300"])
    texts = [each["text"] for each in builds.log(build)]
    kept = sum(text.startswith("line ") for text in texts)
    assert 0 < kept <= 100
    (cut,) = (text for text in texts if text.startswith("Output cut"))
    assert cut == f"Output cut: {300 - kept} lines omitted."
    with browser.window(builds.server) as window:
        window.sign_in()
        page = window.go(f"/builds/{build['id']}?tab=logs")
        page.get_by_role("searchbox", name="Find in").fill("output cut")
        expect(line(page, cut)).to_be_visible()
        # All that there is, is loaded.
        expect(page.get_by_role("button", name="Load earlier")).to_have_count(0)
        window.check_accessible()
