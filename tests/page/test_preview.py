"""The preview of a build goes through all its states; the frame and what surrounds it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Error, Page, Route, expect
from support.builds import Builds
from support.builds import page as html
from support.page import Browser, Held, Window

FREE = {"CAISSON_BUILD_TIER": "none"}


@pytest.fixture
def builds(make_server) -> Builds:
    return Builds(make_server(env=FREE))


@pytest.fixture
def window(browser: Browser, builds: Builds):
    with browser.window(builds.server, permissions=["clipboard-read", "clipboard-write"]) as instance:
        instance.sign_in()
        yield instance


def card(page: Page, state: str):
    return page.locator(f"section[data-state={state}]")


def change(page: Page, path: str, how: Callable[[dict], dict]) -> None:
    """Answers of the server, with some fields that are different."""
    def fulfill(route: Route) -> None:
        if route.request.method != "GET":
            return route.fallback()
        body = json.dumps(how(route.fetch().json()))
        try:
            route.fulfill(content_type="application/json", body=body)
        except Error as error:
            # The test went on to another answer while this one was fetched.
            assert "already handled" in str(error), error
        return None
    page.unroute(path)
    page.route(path, fulfill)


def test_the_preview_of_a_build_has_nine_states(window: Window, builds: Builds):
    build = builds.ready(files={"index.html": html("Hello"), "about.html": html("About")})
    api = f"**/api/v1/builds/{build['id']}"
    check = Held(window.page, f"{api}/preview-check")
    page = window.go(f"/builds/{build['id']}")

    # Real: asked, then shown.
    expect(card(page, "checking")).to_contain_text("Checking the preview")
    check.let_go()
    frame = page.locator("iframe[title=Preview]")
    inside = page.frame_locator("iframe[title=Preview]")
    expect(inside.get_by_role("heading", name="Hello")).to_be_visible()
    assert frame.get_attribute("sandbox") == "allow-scripts allow-forms allow-same-origin allow-popups"
    assert frame.get_attribute("referrerpolicy") == "no-referrer"
    builds.wait_until(lambda: builds.show(build)["viewed_at"], "the server knows that somebody has looked")
    window.check_accessible()

    # Real: put to sleep and woken.
    page.get_by_role("button", name="Pause").click()
    expect(card(page, "paused")).to_contain_text("The preview sleeps")
    window.check_accessible()
    resume = Held(page, f"{api}/resume", "POST")
    card(page, "paused").get_by_role("button", name="Resume").click()
    expect(card(page, "resuming")).to_contain_text("Start the server")
    resume.let_go()
    expect(inside.get_by_role("heading", name="Hello")).to_be_visible()

    # A page that forbids frames, and one that does not answer.
    change(page, f"{api}/preview-check", lambda it: it | {"state": "blocked", "embeddable": False,
                                                          "reason": "x_frame_options"})
    page.reload()
    expect(card(page, "blocked")).to_contain_text("X-Frame-Options")
    expect(card(page, "blocked").get_by_role("link", name="Open it")).to_have_attribute("href", build["preview_url"])
    window.check_accessible()
    change(page, f"{api}/preview-check", lambda it: it | {"state": "error", "embeddable": False,
                                                          "reason": "unreachable"})
    card(page, "blocked").get_by_role("button", name="Check again").click()
    expect(card(page, "error")).to_contain_text("The preview does not answer")
    page.unroute(f"{api}/preview-check")
    card(page, "error").get_by_role("button", name="Check again").click()
    expect(inside.get_by_role("heading", name="Hello")).to_be_visible()

    # A build that is not ready yet.
    change(page, api, lambda it: it | {"state": "deps", "stage_label": "Installing dependencies",
                                       "preview_state": "loading"})
    page.reload()
    expect(card(page, "loading")).to_contain_text("Installing dependencies")
    expect(page.get_by_role("button", name="Reload")).to_be_disabled()

    # Waking it fails, and works at the second attempt.
    change(page, api, lambda it: it | {"preview_state": "paused"})
    page.reload()
    refuse(page, f"{api}/resume", "sandbox_unreachable")
    card(page, "paused").get_by_role("button", name="Resume").click()
    expect(card(page, "resume_failed")).to_contain_text("does not come back")
    expect(card(page, "resume_failed").get_by_role("link", name="View logs")).to_be_visible()
    window.check_accessible()
    page.unroute(f"{api}/resume")
    page.unroute(api)
    card(page, "resume_failed").get_by_role("button", name="Try again").click()
    expect(inside.get_by_role("heading", name="Hello")).to_be_visible()

    # Real: its sandbox has ended. Building it again asks first.
    builds.ask("DELETE", f"/sandboxes/{build['sandbox_id']}")
    expect(card(page, "expired")).to_contain_text("The preview is gone")
    card(page, "expired").get_by_role("button", name="Rebuild").click()
    expect(page.get_by_role("dialog")).to_contain_text("This uses 1 build")
    page.get_by_role("button", name="Build it").click()
    expect(page.get_by_role("heading", name="shop build_v0_2", level=1)).to_be_visible()
    expect(inside.get_by_role("heading", name="Hello")).to_be_visible()


def refuse(page: Page, path: str, code: str) -> None:
    body = {"error": {"code": code, "message": "the preview does not come back", "debug_id": "dbg_x"}}
    page.route(path, lambda route: route.fulfill(status=503, content_type="application/json", body=json.dumps(body)))


def test_the_frame_is_a_small_browser_and_the_end_is_announced(window: Window, builds: Builds):
    build = builds.ready(files={"index.html": html("Hello"), "about.html": html("About")})
    soon = (datetime.now(UTC) + timedelta(minutes=4)).isoformat()
    api = f"**/api/v1/builds/{build['id']}"
    change(window.page, api, lambda it: it | {"sandbox_expires_at": soon})
    page = window.go(f"/builds/{build['id']}")
    inside = page.frame_locator("iframe[title=Preview]")
    expect(inside.get_by_role("heading", name="Hello")).to_be_visible()

    path = page.get_by_label("Path")
    path.fill("about.html")
    path.press("Enter")
    expect(inside.get_by_role("heading", name="About")).to_be_visible()
    expect(page.get_by_role("link", name="Open in a new tab")).to_have_attribute(
        "href", f"{build['preview_url']}/about.html")
    page.get_by_role("button", name="Copy the address").click()
    assert page.evaluate("navigator.clipboard.readText()") == f"{build['preview_url']}/about.html"
    page.get_by_role("button", name="Back").click()
    expect(inside.get_by_role("heading", name="Hello")).to_be_visible()
    page.get_by_role("button", name="Forward").click()
    expect(inside.get_by_role("heading", name="About")).to_be_visible()

    frame = page.locator("iframe[title=Preview]")
    for name, width in (("Phone, 390 px", 390), ("Tablet, 768 px", 768)):
        page.get_by_role("button", name=name).click()
        expect(frame).to_have_css("width", f"{width}px")
    expect(page).to_have_url(re.compile("device=tablet"))
    page.get_by_role("button", name="Free width").click()
    page.get_by_label("Width in pixels").fill("500")
    expect(frame).to_have_css("width", "500px")

    notice = page.get_by_role("status", name="Time left")
    expect(notice).to_contain_text("goes to sleep in")
    page.unroute(api)
    with page.expect_request(f"{api}/extend") as request:
        page.get_by_role("button", name="Keep 30 min more").click()
    assert request.value.method == "POST"
    expect(notice).to_have_count(0)
    expect(inside.get_by_role("heading", name="About")).to_be_visible()
