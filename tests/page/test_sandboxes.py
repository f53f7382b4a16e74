"""Sandboxes in the page: the list, one of them, templates and snapshots."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path

from playwright.sync_api import Error, Locator, Page, Response, expect
from support.forge_plugin import FORGE_REPOSITORY, FORGE_TOKEN
from support.page import Browser, Window
from support.work import Platform

QUIET = "ERR_NETWORK_CHANGED"
WAITING = 'printf \'{"caisson":"message","text":"at it"}\\n\'; sleep 600'


def row(page: Page, sandbox: str) -> Locator:
    return page.get_by_role("row").filter(has_text=sandbox)


def choose(page: Page, sandbox: str, action: str) -> None:
    page.get_by_role("button", name=f"Actions of {sandbox}").click()
    page.get_by_role("menuitem", name=action).click()


def sandbox_of_ben(platform: Platform) -> tuple[str, str]:
    """Its id, and ben's key."""
    ben = platform.ask("POST", "/users", {"name": "ben", "role": "member"}, 201).json()
    key = platform.ask("POST", "/keys", {"name": "of ben", "user_id": ben["id"]}, 201).json()["key"]
    return platform.ask("POST", "/sandboxes", {}, 201, key=key).json()["id"], key


def test_the_list_shows_filters_and_changes_many_at_once(window: Window, platform: Platform):
    page = window.go("/sandboxes")
    expect(page.get_by_text("No sandboxes yet")).to_be_visible()
    window.check_accessible()

    one = platform.rest.create(timeout=3600, metadata={"purpose": "trying out"})["sandboxID"]
    two = platform.rest.create(timeout=3600)["sandboxID"]
    another, bens_key = sandbox_of_ben(platform)
    started = platform.start(platform.add_agent(WAITING, "ada"), "Wait for a while")
    platform.wait_for_event("sandbox_created", task_id=started["task_id"])
    page.reload()
    expect(row(page, one).get_by_text("Running")).to_be_visible()
    expect(row(page, one)).to_contain_text("purpose: trying out")
    for name in ("CPU", "Memory", "Disk"):
        expect(row(page, one).get_by_role("img", name=name)).to_be_visible()
    expect(row(page, one).locator("time", has_text=re.compile(r"\d+:\d\d|59 min"))).to_be_visible()  # what is left of the hour
    expect(page.get_by_text(re.compile(r"3 of \d+ running · 0 paused"))).to_be_visible()
    expect(page.get_by_role("link", name="Wait for a while")).to_have_attribute("href", f"/app/work/{started['task_id']}")
    window.check_accessible()
    page.get_by_role("button", name="All users").click()
    expect(page).to_have_url(re.compile("scope=all"))
    expect(row(page, another)).to_contain_text("User ben")
    expect(row(page, another).get_by_role("link")).to_have_count(0)
    page.get_by_role("button", name="All users").click()
    platform.ask("DELETE", f"/sandboxes/{another}", status=204, key=bens_key)

    page.get_by_role("button", name="By hand").click()
    expect(page.get_by_role("row")).to_have_count(3)
    page.keyboard.press("/")
    page.keyboard.type("trying")
    expect(page.get_by_role("row")).to_have_count(2)
    expect(page).to_have_url(re.compile(r"owner=user&q=trying|q=trying&owner=user"))
    page.get_by_label("Find a sandbox").fill("nothing has this")
    expect(page.get_by_text("No sandbox matches")).to_be_visible()
    page.get_by_role("button", name="Clear filters").click()
    expect(page.get_by_role("row")).to_have_count(4)

    for sandbox in (one, two):
        page.get_by_role("checkbox", name=f"Select {sandbox}").check()
    page.get_by_role("button", name="Pause 2").click()
    expect(row(page, one).get_by_text("Paused")).to_be_visible()
    expect(row(page, two).get_by_text("Paused")).to_be_visible()
    choose(page, one, "Resume")
    expect(row(page, one).get_by_text("Running")).to_be_visible()

    choose(page, one, "Kill")
    dialog = page.get_by_role("dialog", name=f"Kill {one}?")
    dialog.get_by_role("button", name="Keep").click()
    expect(row(page, one).get_by_text("Running")).to_be_visible()
    page.get_by_role("checkbox", name=f"Select {one}").check()
    page.get_by_role("checkbox", name=f"Select {two}").check()
    page.get_by_role("button", name="Kill 2").click()
    dialog = page.get_by_role("dialog", name="Kill 2 sandboxes?")
    expect(dialog.get_by_role("button", name="Kill", exact=True)).to_be_disabled()
    dialog.get_by_label("Type kill 2 to go on").fill("kill 2")
    dialog.get_by_role("button", name="Kill", exact=True).click()
    expect(row(page, one)).to_have_count(0)
    page.get_by_role("button", name="Ended").click()
    expect(row(page, two)).to_contain_text("Ended")
    expect(row(page, two)).to_contain_text("on request")
    window.check_quiet(QUIET)


def test_a_sandbox_from_its_making_to_its_end(window: Window, platform: Platform):
    page = window.go("/templates")
    window.check_accessible()
    page.get_by_role("button", name="New sandbox from base").click()
    page.get_by_label("Purpose").fill("a look around")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("navigation", name="Breadcrumb")).to_contain_text("a look around")
    sandbox = page.url.split("/")[-1]
    platform.ask("POST", f"/sandboxes/{sandbox}/execute",
                 {"command": "setsid -f python3 -m http.server 3000 >/dev/null 2>&1"}, 200)
    page.reload()
    link = page.get_by_role("link", name="3000-")
    expect(link).to_be_visible()
    assert sandbox in (link.get_attribute("href") or "")
    expect(page.get_by_text("Sandbox created from template base")).to_be_visible()
    window.check_accessible()

    before = platform.get(f"/sandboxes/{sandbox}")["endAt"]
    page.get_by_role("button", name="Extend").click()
    page.get_by_role("menuitem", name="1 hour more").click()
    expect(page.get_by_text("Its time is extended")).to_be_visible()
    assert platform.get(f"/sandboxes/{sandbox}")["endAt"] > before

    page.get_by_role("tab", name="Metrics").click()
    expect(page.get_by_role("figure", name="Memory").locator("canvas")).to_be_visible()
    page.get_by_role("button", name="1 hour").click()
    expect(page).to_have_url(re.compile(r"tab=metrics&range=1h"))
    window.check_accessible()
    page.get_by_role("tab", name="Audit").click()
    expect(page.get_by_role("cell", name="POST /api/v1/sandboxes/{id}/execute")).to_be_visible()

    page.get_by_role("button", name="More actions").click()
    with page.expect_download() as download:
        page.get_by_role("menuitem", name="Download diagnostics").click()
    assert json.loads(Path(download.value.path()).read_text())["sandbox"]["sandboxID"] == sandbox

    page.get_by_role("button", name="Pause", exact=True).click()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    expect(page.get_by_role("button", name="Extend")).to_have_count(0)
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("button", name="Pause", exact=True)).to_be_enabled()
    page.get_by_role("button", name="Kill").click()
    page.get_by_role("dialog", name=f"Kill {sandbox}?").get_by_role("button", name="Kill", exact=True).click()
    expect(page.get_by_text(re.compile("on request"))).to_be_visible()
    expect(page.get_by_role("button", name="Kill")).to_have_count(0)
    window.check_quiet(QUIET)


def test_the_editor_opens_in_a_tab_of_its_own(browser: Browser, make_server):
    command = "mkdir -p /tmp/e; cd /tmp/e; echo '<h1>The editor</h1>' > index.html; " \
              "exec python3 -m http.server -b $HOST $PORT"
    platform = Platform(make_server(env={"CAISSON_EDITOR_COMMAND": command}))
    sandbox = platform.ask("POST", "/sandboxes", {}, 201).json()["id"]
    with browser.window(platform.server) as window:
        window.sign_in()
        page = window.go(f"/sandboxes/{sandbox}?tab=preview")
        with page.expect_popup() as opened:
            page.get_by_role("button", name="Editor").click()
        editor = opened.value
        expect(editor.get_by_role("heading", name="The editor")).to_be_visible(timeout=60_000)
        assert editor.url.startswith(f"http://13337-{sandbox}.") and "caisson_editor" not in editor.url
        editor.reload()
        expect(editor.get_by_role("heading", name="The editor")).to_be_visible()
        editor.close()
        page.get_by_role("button", name="Look again").click()
        expect(page.get_by_text("Nothing listens yet")).to_be_visible()
        window.check_quiet()


def test_what_happens_inside_is_seen_from_outside(window: Window, platform: Platform):
    """Its ports in a frame, what was printed, what was done with git, and a look from the list."""
    sandbox = platform.ask("POST", "/sandboxes", {"metadata": {"purpose": "a server"}}, 201).json()["id"]
    serve = "mkdir /tmp/site; cd /tmp/site; echo '<h1>From inside</h1>' > index.html; echo it is served; " \
            "setsid -f python3 -m http.server 3000 >/dev/null 2>&1"
    platform.ask("POST", f"/sandboxes/{sandbox}/execute", {"command": serve}, 200)
    platform.ask("POST", f"/sandboxes/{sandbox}/git/clone", {"repo_url": FORGE_REPOSITORY}, 200)

    page = window.go("/sandboxes")
    expect(row(page, sandbox)).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press(" ")
    panel = page.get_by_role("dialog", name=sandbox)
    expect(panel.get_by_text("a server")).to_be_visible()
    expect(panel.get_by_role("button", name="Pause")).to_be_enabled()
    expect(page).to_have_url(re.compile("peek="))
    window.check_accessible()
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    row(page, sandbox).get_by_text("Running").click()
    panel.get_by_role("link", name="Preview port 3000").click()
    inside = page.frame_locator("iframe[title=Preview]")
    expect(inside.get_by_role("heading", name="From inside")).to_be_visible()
    expect(page).to_have_url(re.compile(rf"/sandboxes/{sandbox}\?tab=preview&port=.?3000"))
    expect(page.get_by_label("Port")).to_have_value(re.compile("^3000"))
    window.check_accessible()

    page.get_by_role("tab", name="Logs").click()
    page.get_by_role("button", name="Open all groups").click()
    expect(page.get_by_role("log").get_by_text("it is served", exact=True)).to_be_visible()
    window.check_accessible()
    page.get_by_role("tab", name="Operations").click()
    expect(page.get_by_role("row").filter(has_text="clone").first).to_contain_text("Done")
    window.check_accessible()

    # Without what it needs a tab says so.
    page.get_by_role("tab", name="Preview").click()
    page.get_by_role("button", name="Pause", exact=True).click()
    expect(page.get_by_text("The sandbox is paused")).to_be_visible()
    window.check_quiet(QUIET)


def test_snapshots_and_forks(window: Window, platform: Platform):
    sandbox = platform.rest.create(timeout=3600)["sandboxID"]
    page = window.go(f"/sandboxes/{sandbox}")
    page.get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name="Snapshot").click()
    page.get_by_role("dialog").get_by_label("Name").fill("mine")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_text("Snapshot mine:default was created")).to_be_visible()
    page.get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name="Fork").click()
    expect(page.get_by_text("Forked as")).to_be_visible()
    expect(page).not_to_have_url(re.compile(sandbox))
    expect(page.get_by_text("Running")).to_be_visible()

    window.go("/templates")
    page.get_by_role("button", name="New sandbox from mine:default").click()
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_text("Sandbox created from")).to_be_visible()
    window.go("/templates")
    page.get_by_role("button", name="Delete mine:default").click()
    page.get_by_role("dialog", name="Delete mine:default?").get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("No snapshots yet")).to_be_visible()
    window.check_quiet(QUIET)


def test_an_unknown_sandbox_is_told(window: Window):
    page = window.go("/sandboxes/inobody00000000000000")
    expect(page.get_by_text("There is no such sandbox")).to_be_visible()
    window.check_accessible()


def test_the_page_never_holds_a_key_or_a_token(browser: Browser, platform: Platform):
    """Neither in what it is answered, nor in its document, its storage, its cookies, its code or its addresses."""
    made = platform.rest.create(timeout=3600)
    secrets = {"API key": platform.server.api_key, "forge token": FORGE_TOKEN, "envd token": made["envdAccessToken"]}
    bodies: list[tuple[str, str]] = []
    responses: list[Response] = []

    def read_responses() -> None:
        for response in responses:
            if re.search("json|javascript|html|css", response.headers.get("content-type", "")):
                with contextlib.suppress(Error):  # it was cut off
                    bodies.append((response.url, response.text()))
        responses.clear()

    with browser.window(platform.server) as window:
        window.sign_in()
        page = window.page
        page.on("response", lambda response: responses.append(response))
        for path in ("/sandboxes", f"/sandboxes/{made['sandboxID']}", f"/sandboxes/{made['sandboxID']}?tab=files",
                     f"/sandboxes/{made['sandboxID']}?tab=terminal", "/templates", "/settings"):
            window.go(path)
            expect(page.get_by_role("status", name="Loading")).to_have_count(0)
            bodies.append((f"document of {path}", page.content()))
            read_responses()
        bodies.append(("storage", page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")))
        readable = page.evaluate("document.cookie")
    assert re.fullmatch(r"caisson_csrf=[^;]+", readable), "only the token against forged requests can be read by scripts"
    assert any("/assets/" in where for where, _ in bodies) and any("/v2/sandboxes" in where for where, _ in bodies)
    for where, body in bodies:
        for name, secret in secrets.items():
            assert secret not in where + body, f"the {name} is in {where}"
