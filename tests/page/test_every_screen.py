"""Every screen with something on it: readable for everybody, at any width, in both themes, without a complaint."""

from __future__ import annotations

import contextlib
import re
from urllib.parse import urlparse

import pytest
from playwright.sync_api import Error, Route, expect
from support.forge import Forge
from support.forge_plugin import FORGE_REPOSITORY, FORGE_TOKEN
from support.page import NARROW, WIDE, Browser, Held, Window
from support.server import CaissonServer
from support.showcase import Showcase
from support.work import settings_for

HUGE = {"width": 1920, "height": 1080}
# How a list says that it is empty.
NOTHING = re.compile(r"^(No|Nothing|None|There is no) ")


@pytest.fixture(scope="module")
def showcase():
    with Forge() as forge:
        forge.add_token(FORGE_TOKEN)
        forge.add_repository(FORGE_REPOSITORY)
        with CaissonServer(env=settings_for(forge)) as server:
            filled = Showcase(server)
            filled.fill()
            yield filled


@pytest.mark.timeout(900)
@pytest.mark.parametrize("size", [WIDE, NARROW, HUGE], ids=["wide", "narrow", "huge"])
def test_every_screen(browser: Browser, showcase: Showcase, size: dict):
    with browser.window(showcase.server, size) as window:
        window.sign_in()
        for name, path in showcase.paths().items():
            page = window.go(path)
            expect(page.locator("h1").first).to_be_attached()
            expect(page.get_by_role("status", name="Loading")).to_have_count(0)
            window.check_accessible()
            wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, f"{name} is {wide} pixels too wide for {size['width']}"
            window.check_quiet()


# What can be pressed and is smaller than a finger. A box is as large as its label, a row as the line that it covers;
# links in a text are as high as their line.
TOO_SMALL = """() => [...document.querySelectorAll(
    "button:not(.dense), select, textarea, input, summary, [role=menuitem], a:is(.flex, .inline-flex, .grid, .inline-grid), [data-row]")]
  .filter((each) => !each.closest(".xterm") && each.checkVisibility({visibilityProperty: true}))
  .map((each) => [each, (each.dataset.row ? each.closest("tr, li") : each.closest("label") ?? each).getBoundingClientRect()])
  .filter(([, {width, height}]) => width > 1 && (width < 43.5 || height < 43.5))
  .map(([each, {width, height}]) => `${Math.round(width)}x${Math.round(height)} ${each.outerHTML.slice(0, 160)}`)"""


@pytest.mark.timeout(600)
def test_what_can_be_pressed_is_large_enough_for_a_finger(browser: Browser, showcase: Showcase):
    with browser.window(showcase.server, NARROW, has_touch=True, is_mobile=True) as window:
        window.sign_in()
        small: list[str] = []
        for name, path in showcase.paths().items():
            page = window.go(path)
            expect(page.locator("h1").first).to_be_attached()
            expect(page.locator(".animate-pulse")).to_have_count(0)
            small += [f"{name}: {each}" for each in page.evaluate(TOO_SMALL)]
            wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, f"{name} is {wide} pixels too wide by finger"
        assert not small, "\n".join(small)


@pytest.mark.timeout(600)
def test_lists_are_walked_by_keys_and_enter_opens(browser: Browser, showcase: Showcase):
    with browser.window(showcase.server) as window:
        window.sign_in()
        for path in ("/board?layout=list", "/approvals", "/pulls", "/builds", "/sandboxes", "/runs", "/audit"):
            page = window.go(path)
            rows = page.locator("[data-row]")
            expect(rows.first).to_be_visible()
            expect(page.locator(".animate-pulse")).to_have_count(0)
            page.keyboard.press("ArrowDown")
            expect(rows.first, path).to_be_focused()
            if rows.count() > 1:
                page.keyboard.press("ArrowDown")
                expect(rows.nth(1), path).to_be_focused()
                page.keyboard.press("k")
                expect(rows.first, path).to_be_focused()
            if path != "/approvals":  # its rows are open already
                before = page.url
                page.keyboard.press("Enter")
                expect(page, path).not_to_have_url(before)
        # The last one was opened in its place.
        expect(page).to_have_url(re.compile(r"/audit\?entry=\d+$"))
        expect(page.get_by_role("button", name="Only these").first).to_be_visible()
        window.check_accessible()
        # In the pull requests Space looks into the row.
        page = window.go("/pulls")
        expect(page.locator("[data-row]").first).to_be_visible()
        page.keyboard.press("j")
        page.keyboard.press("Space")
        expect(page).to_have_url(re.compile(r"pull="))


def is_asked_for(address: str) -> bool:
    """What a screen reads, apart from who reads it and the stream of events."""
    path = urlparse(address).path
    if path == "/api/v1/auth/github-token":
        return True
    if path.startswith(("/app", "/api/v1/auth/")) or path in ("/api/v1/events", "/api/v1/usage"):
        return False
    return path.startswith("/api/v1/") or path.split("/")[1] in ("v2", "sandboxes", "templates", "snapshots")


def refuse(route: Route) -> None:
    # Not a 500: those are asked for again before anything is shown.
    if route.request.method == "GET":
        route.fulfill(status=400, json={"error": {"code": "broken", "message": "the shelf is empty", "debug_id": "d1"}})
    else:
        route.fallback()


def inner_lists(showcase: Showcase) -> list[tuple[str, str, str]]:
    """Screens, a request of one part of theirs, and what must not be said before its answer is there."""
    task, agent = showcase.reviewed["task_id"], showcase.idle["id"]
    return [
        ("/", "**/templates", "prepares the template"),
        ("/work?list=1", "**/api/v1/board?*", "No tasks yet"),
        ("/work?list=1", "**/api/v1/agents?*", "No agents yet"),
        ("/work?list=1", "**/api/v1/sessions?*", "No sessions yet"),
        (f"/work?agent={agent}", "**/api/v1/agents?*", "does not exist"),
        (f"/work?agent={agent}", "**/api/v1/tasks?*", "has not worked"),
        (f"/work/{showcase.running['task_id']}?tab=history", "**/git/history*", "No commit yet"),
        (f"/work/{task}?tab=preview", "**/api/v1/sandboxes/*", "no sandbox yet"),
        (f"/work/{task}?tab=events", "**/api/v1/events/history*", "No event yet"),
        (f"/builds/{showcase.build['id']}", "**/api/v1/builds?*", "No version"),
        ("/settings/github", "**/api/v1/health/detailed", "Does not work"),
        ("/settings/github", "**/api/v1/webhooks/github/test", "The secret is set"),
        ("/sandboxes?scope=all", "**/api/v1/admin/sandboxes?*", "No sandbox"),
    ]


def expect_failed_then_mended(window: Window, path: str, requests: object, wrong: str | re.Pattern) -> None:
    window.page.route(requests, refuse)
    page = window.go(path)
    again = page.get_by_role("button", name="Try again")
    expect(again.first, path).to_be_visible()
    broken = page.get_by_text("The shelf is empty")
    expect(broken.first, path).to_be_visible()
    expect(page.locator("main").get_by_text(wrong), path).to_have_count(0)
    page.unroute(requests)
    # An event may have read a part again meanwhile, so that it fails once more or is mended already.
    while broken.count() or page.locator(".animate-pulse").count():
        with contextlib.suppress(Error):
            if again.count():
                again.first.click(timeout=2000)
        page.wait_for_timeout(50)


@pytest.mark.timeout(600)
def test_what_cannot_be_read_is_said_and_read_again(browser: Browser, showcase: Showcase):
    """A failure is never shown as "none"."""
    with browser.window(showcase.server) as window:
        window.sign_in()
        for name, path in showcase.paths().items():
            if name != "settings":  # of this browser alone
                expect_failed_then_mended(window, path, is_asked_for, NOTHING)
        for path, requests, wrong in inner_lists(showcase):
            expect_failed_then_mended(window, path, requests, wrong)


@pytest.mark.timeout(600)
def test_what_is_not_read_yet_is_a_skeleton(browser: Browser, showcase: Showcase):
    """Loading is never shown as "none"."""
    with browser.window(showcase.server) as window:
        window.sign_in()
        screens = [(path, is_asked_for, NOTHING) for name, path in showcase.paths().items() if name != "settings"]
        for path, requests, wrong in [*screens, *inner_lists(showcase)]:
            held = Held(window.page, requests)
            page = window.go(path)
            bones = page.locator(".animate-pulse")
            expect(bones.first, path).to_be_visible()
            expect(page.locator("main").get_by_text(wrong), path).to_have_count(0)
            held.let_go()
            expect(bones, path).to_have_count(0)
