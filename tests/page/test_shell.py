"""The frame of every screen: signing in, navigation, commands, shortcuts, theme, connection."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from support.page import NARROW, Browser, Held, Window
from support.work import Platform

NOTHING_MOVES = "() => document.getAnimations().every((each) => each.playState !== 'running')"


def test_signing_in_with_a_wrong_password_says_so_and_a_right_one_leads_on(browser: Browser, platform: Platform):
    with browser.window(platform.server) as window:
        window.sign_in()  # sets the password
        window.page.goto("about:blank")  # the screen that is there would go to sign in, too, and be in the way
        window.context.clear_cookies()
        page = window.go("/board?q=x")
        page.get_by_role("button", name="Use a name and a password").click()
        window.check_accessible()
        page.get_by_label("Name").fill("admin")
        page.get_by_label("Password").fill("not the password")
        page.get_by_role("button", name="Sign in", exact=True).click()
        expect(page.get_by_role("alert")).to_be_visible()
        page.get_by_label("Password").fill("a password of the tests")
        page.get_by_role("button", name="Sign in", exact=True).click()
        expect(page.get_by_role("heading", name="Board", level=1)).to_be_visible()
        assert page.url.endswith("/app/board?q=x")


@pytest.mark.quick
def test_places_are_reached_by_keys_and_by_the_palette(window: Window):
    page = window.page
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("s")
    expect(page.get_by_role("heading", name="Sandboxes", level=1)).to_be_visible()
    page.keyboard.press("Control+k")
    expect(page.get_by_placeholder("Type a place")).to_be_focused()
    window.check_accessible()
    page.get_by_placeholder("Type a place").fill("health")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Health", level=1)).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog").get_by_text("Go to Board")).to_be_visible()
    window.check_accessible()
    window.check_quiet()


def test_the_theme_is_kept_and_a_phone_has_a_drawer(browser: Browser, platform: Platform):
    with browser.window(platform.server, NARROW) as window:
        window.sign_in()
        page = window.page
        page.get_by_role("button", name="Signed in as admin").click()
        page.get_by_role("menuitem", name="Theme").click()
        page.get_by_role("button", name="Signed in as admin").click()
        page.get_by_role("menuitem", name="Theme: light").click()
        expect(page.locator("html.dark")).to_have_count(1)
        page.reload()
        expect(page.locator("html.dark")).to_have_count(1)
        page.get_by_role("button", name="Navigation").click()
        page.get_by_role("dialog").get_by_role("link", name="Board").click()
        expect(page.get_by_role("heading", name="Board", level=1)).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_server_that_goes_away_and_comes_back_is_shown(window: Window):
    page = window.page
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    window.server.crash()
    expect(page.get_by_text("Reconnecting in")).to_be_visible()
    window.server.start()
    expect(page.get_by_text("Live", exact=True)).to_be_visible()


def test_a_compressed_stream_is_live_as_any_other(browser: Browser, make_server):
    platform = Platform(make_server(["--set", "sse_compression=true"]))
    with browser.window(platform.server) as window:
        window.sign_in()
        with window.page.expect_response(lambda answer: "/api/v1/events" in answer.url) as answered:
            page = window.go("/board")
        assert answered.value.headers["content-encoding"] == "gzip"
        expect(page.get_by_text("Live", exact=True)).to_be_visible()
        platform.ask("POST", "/tasks", {"title": "Seen at once"}, 201)
        expect(page.get_by_text("Seen at once")).to_be_visible()
        window.check_quiet()


def test_a_machine_without_a_network_is_told_and_comes_back(window: Window, platform: Platform):
    page = window.go("/board")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    window.context.set_offline(True)
    expect(page.get_by_text("No network")).to_be_visible()
    task = platform.ask("POST", "/tasks", {"title": "Made meanwhile"}, 201).json()
    window.context.set_offline(False)
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    expect(page.get_by_text(task["title"])).to_be_visible()


def test_the_health_screen_tells_what_the_page_was_told_and_how_long_calls_took(window: Window, platform: Platform):
    page = window.go("/health")
    events = page.get_by_role("region", name="Stream of events")
    expect(events).to_contain_text("The connection is live.")
    platform.ask("POST", "/tasks", {"title": "Seen"}, 201)
    expect(events.get_by_role("list")).to_contain_text("task_created")
    calls = page.get_by_role("region", name="Calls to the server")
    expect(calls.get_by_text("/api/v1/health/detailed").first).to_be_visible()
    expect(calls).to_contain_text("half within")
    window.check_accessible()


def test_what_is_being_sent_is_not_sent_again(window: Window, platform: Platform):
    """Neither by a second click nor by a second press of the keys."""
    page = window.go("/work")
    asked = Held(page, "**/api/v1/agents", "POST")
    page.get_by_role("button", name="New agent").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("ada")
    dialog.get_by_label("Adapter").select_option("command")
    dialog.get_by_label("Command", exact=True).fill("true")
    create = dialog.get_by_role("button", name="Create")
    create.click()
    expect(create).to_be_disabled()
    create.click(force=True)
    dialog.get_by_label("Name").press("Enter")
    dialog.get_by_label("Name").press("Control+Enter")
    assert asked.count == 1
    asked.let_go()
    expect(page.get_by_role("heading", name="ada", level=1)).to_be_visible()
    assert [agent["name"] for agent in platform.get("/agents")["agents"]] == ["ada"]

    page = window.go("/board")
    expect(page.get_by_text("No tasks yet")).to_be_visible()
    asked = Held(page, "**/api/v1/tasks", "POST")
    page.keyboard.press("c")
    dialog.get_by_label("Title").fill("Only once")
    dialog.get_by_label("Title").press("Control+Shift+Enter")
    expect(dialog.get_by_role("button", name="Create and start")).to_be_disabled()
    dialog.get_by_label("Title").press("Control+Enter")
    dialog.get_by_label("Title").press("Enter")
    assert asked.count == 1
    asked.let_go()
    expect(dialog).to_have_count(0)
    assert platform.get("/tasks")["total"] == 1

    sandbox = platform.ask("POST", "/sandboxes", {}, 201).json()["id"]
    page = window.go(f"/sandboxes/{sandbox}")
    asked = Held(page, f"**/api/v1/sandboxes/{sandbox}/pause", "POST")
    pause = page.get_by_role("button", name="Pause", exact=True)
    pause.click()
    expect(pause).to_be_disabled()
    pause.click(force=True)
    for other in ("Extend", "Kill"):
        expect(page.get_by_role("button", name=other)).to_be_disabled()
    assert asked.count == 1
    asked.let_go()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()


def test_many_tabs_share_one_stream(window: Window, platform: Platform):
    """A browser opens six connections to a server; eight tabs work all the same."""
    tabs = [window.page, *(window.context.new_page() for _ in range(7))]
    for tab in tabs[1:]:
        tab.goto(f"{platform.server.url}/app/board")
    for tab in tabs:
        expect(tab.get_by_text("Live", exact=True)).to_be_visible()
    assert platform.get("/sse/stats")["total_connections"] == 1
    tabs[0].close()  # it was the first, so it read for all
    task = platform.ask("POST", "/tasks", {"title": "Seen everywhere"}, 201).json()
    for tab in tabs[1:]:
        expect(tab.get_by_text("Seen everywhere")).to_be_visible()
    assert task["title"] == "Seen everywhere"


def test_with_reduced_motion_nothing_moves(browser: Browser, platform: Platform):
    """Not even what would turn for ever: work goes on, and another screen is being read."""
    platform.start(platform.add_agent("sleep 600", "ada"), "Take your time")
    with browser.window(platform.server, reduced_motion="reduce") as window:
        window.sign_in()
        page = window.go("/work")
        expect(page.get_by_role("listitem").filter(has_text="Work: Running")).to_be_visible()
        assert page.locator(".animate-spin").count() > 0
        page.wait_for_function(NOTHING_MOVES)
        Held(page, "**/api/v1/runs*")
        page.get_by_role("navigation", name="Main").get_by_role("link", name="Runs").click()
        expect(page.locator(".animate-pulse").first).to_be_visible()
        page.wait_for_function(NOTHING_MOVES)
        page.keyboard.press("Control+k")
        expect(page.get_by_role("dialog")).to_be_visible()
        page.wait_for_function(NOTHING_MOVES)


BROKEN = "export default () => { throw new Error('the screen has a hole') }"


def test_a_screen_that_breaks_keeps_the_frame_and_the_next_one_is_whole(window: Window):
    page = window.page
    page.route("**/assets/Costs-*.js", lambda route: route.fulfill(content_type="text/javascript", body=BROKEN))
    rail = page.get_by_role("navigation", name="Main")
    rail.get_by_role("link", name="Costs").click()
    expect(page.get_by_role("heading", name="This screen broke", level=1)).to_be_visible()
    expect(page.get_by_role("alert")).to_have_text("the screen has a hole")
    window.check_accessible()
    rail.get_by_role("link", name="Board").click()
    expect(page.get_by_role("heading", name="Board", level=1)).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", name="This screen broke", level=1)).to_be_visible()
    page = window.go("/nowhere")
    expect(page.get_by_text("There is nothing at this address")).to_be_visible()
    window.check_accessible()
    rail.get_by_role("link", name="Board").click()
    expect(page.get_by_role("heading", name="Board", level=1)).to_be_visible()
    window.check_quiet("the screen has a hole")
