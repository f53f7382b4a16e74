"""Builds in the page: made, changed, compared, brought back; and those that fail, wait or take long."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect
from support.builds import Builds
from support.builds import page as html
from support.page import NARROW, Browser, Window


@pytest.fixture
def builds(make_server) -> Builds:
    return Builds(make_server())


@pytest.fixture
def window(browser: Browser, builds: Builds):
    with browser.window(builds.server) as instance:
        instance.sign_in()
        yield instance


def shown(page: Page):
    return page.frame_locator("iframe[title=Preview]")


def heading(page: Page, name: str):
    return page.get_by_role("heading", name=name, level=1)


def test_a_project_is_built_changed_compared_and_brought_back(window: Window, tmp_path: Path):
    page = window.go("/builds")
    expect(page.get_by_text("Nothing was built yet")).to_be_visible()
    window.check_accessible()

    # A first version, from a file that is written in the dialog.
    page.get_by_role("button", name="New build").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Build", exact=True).click()
    expect(dialog.get_by_text("Choose at least one file.")).to_be_visible()
    window.check_accessible()
    dialog.get_by_label("Project").fill("shop")
    dialog.get_by_text("Write a file here").click()
    dialog.get_by_label("Content").fill(html("One"))
    dialog.get_by_role("button", name="Add the file").click()
    dialog.get_by_label("Content").press("Control+Enter")
    expect(heading(page, "shop build_v0_1")).to_be_visible()
    expect(page.get_by_text("Built in")).to_be_visible()
    expect(page.get_by_role("list", name="Stages").get_by_label("done")).to_have_count(6)
    expect(shown(page).get_by_role("heading", name="One")).to_be_visible()

    # A change of it is the next version.
    (tmp_path / "index.html").write_text(html("Two"))
    (tmp_path / "about.html").write_text("<p>About</p>\n")
    page.get_by_role("button", name="Change").click()
    dialog.get_by_label("What shall change").fill("Another title")
    dialog.get_by_label("Files to build").set_input_files([tmp_path / "index.html", tmp_path / "about.html"])
    expect(dialog.get_by_role("list", name="Chosen files").get_by_text("about.html")).to_be_visible()
    dialog.get_by_role("button", name="Build", exact=True).click()
    expect(heading(page, "shop build_v0_2")).to_be_visible()
    expect(shown(page).get_by_role("heading", name="Two")).to_be_visible()
    expect(page.get_by_role("complementary", name="Details").get_by_text("Can be deployed")).to_be_visible()

    # What is different.
    page.keyboard.press("]")
    page.keyboard.press("]")
    expect(page.get_by_role("tab", name="Changes")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("region", name="about.html").get_by_text("<p>About</p>")).to_be_visible()
    changed = page.get_by_role("region", name="index.html")
    expect(changed.locator(".diff-code-delete")).to_contain_text("One")
    expect(changed.locator(".diff-code-insert")).to_contain_text("Two")
    window.check_accessible()

    # All files of it.
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    assert download.value.suggested_filename.endswith(".tar.gz")

    # The first version comes back, as the third. It asks first.
    page.get_by_role("button", name="Roll back").click()
    expect(dialog.get_by_text("This uses 1 build; 3 builds left today.")).to_be_visible()
    dialog.get_by_role("button", name="Build it").click()
    expect(heading(page, "shop build_v0_3")).to_be_visible()
    expect(shown(page).get_by_role("heading", name="One")).to_be_visible()
    page.reload()
    expect(heading(page, "shop build_v0_3")).to_be_visible()
    expect(page.get_by_text("Built in")).to_be_visible()
    sides = [page.get_by_role("complementary", name=name).bounding_box()["width"] for name in ("Versions", "Details")]
    assert sides == [280, 320]
    window.check_accessible()

    # The list: found by text, and told when nothing matches.
    page = window.go("/builds")
    rows = page.get_by_role("list", name="Builds of shop").get_by_role("listitem")
    expect(rows).to_have_count(3)
    page.keyboard.press("/")
    page.keyboard.type("another")
    expect(rows).to_have_count(1)
    page.get_by_label("Find a build").fill("nothing like it")
    expect(page.get_by_text("No build matches")).to_be_visible()
    page.get_by_role("button", name="Clear the filters").click()
    expect(rows).to_have_count(3)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(heading(page, "shop build_v0_3")).to_be_visible()
    window.check_quiet("ERR_NETWORK_CHANGED")


def test_failures_confirmations_and_builds_that_take_long(browser: Browser, builds: Builds, window: Window):
    failed = builds.wait(builds.create(project="broken", files={"index.html": "x"},
                                       checks=["echo this is no good >&2; false"]), "failed")
    page = window.go(f"/builds/{failed['id']}")
    failure = page.get_by_role("region", name="Failure")
    expect(failure.get_by_text("The checks of the code failed.")).to_be_visible()
    expect(failure.get_by_text(failed["debug_id"])).to_be_visible()
    failure.get_by_text("Technical details").click()
    expect(failure.get_by_text("this is no good", exact=True)).to_be_visible()
    expect(page.get_by_role("list", name="Stages").get_by_label("failed")).to_have_count(1)
    expect(page.get_by_role("tab", name="Logs")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("tabpanel").get_by_text("this is no good", exact=True)).to_be_visible()

    # As many changes as may be made without anybody's confirmation.
    build = builds.ready(project="shop", files={"index.html": html("One")})
    while builds.show(build)["usage"]["iterations_remaining"]:
        build = builds.ready(project="shop", parent_id=build["id"],
                             files=[{"path": "index.html", "new_content": html(build["id"])}])
    page = window.go(f"/builds/{build['id']}")
    page.get_by_role("button", name=f"Confirm {build['build_version']}").click()
    expect(page.get_by_role("button", name=f"Confirm {build['build_version']}")).to_have_count(0)

    # Six minutes at it, the last news five minutes ago, the first attempt at mending.
    begun = datetime.now(UTC) - timedelta(minutes=6)
    slow = builds.show(build) | {"state": "checks", "stage_label": "Checking the code", "preview_state": "loading",
                                 "started_at": begun.isoformat(), "completed_at": None, "duration_seconds": None}
    event = {"id": 1, "type": "build.autofix", "attempt": 1, "max": 5, "build_id": build["id"],
             "timestamp": (begun + timedelta(minutes=1)).isoformat()}
    answer(page, f"**/api/v1/builds/{build['id']}", slow)
    answer(page, "**/api/v1/events/history?*", {"events": [event]})
    page.reload()
    expect(page.get_by_text("Auto-fixing (attempt 1 of 5)")).to_be_visible()
    expect(page.get_by_text("Nothing new for")).to_be_visible()
    expect(page.get_by_role("button", name="Notify me")).to_be_visible()
    expect(page.get_by_role("button", name="Cancel")).to_be_visible()
    window.check_accessible()

    with browser.window(builds.server, NARROW) as phone:
        phone.sign_in()
        page = phone.go(f"/builds/{failed['id']}?tab=details")
        expect(page.get_by_text("Not ready to deploy")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_build_is_documented_deleted_and_its_log_outlives_a_busy_server(builds: Builds, window: Window):
    build = builds.ready(project="shop", files={"index.html": html("One")})
    page = window.page
    refused: list[str] = []

    def busy(route: Route) -> None:
        if refused:
            route.fallback()
        else:
            refused.append(route.request.url)
            route.fulfill(status=503, headers={"Retry-After": "3"}, json={"error": {"code": "unavailable", "message": "too many streams"}})
    page.route("**/logs/stream", busy)
    window.go(f"/builds/{build['id']}?tab=logs")
    panel = page.get_by_role("tabpanel")
    expect(panel.get_by_text("Too many streams")).to_be_visible()
    expect(panel.get_by_role("log")).to_be_visible()
    expect(panel.get_by_text("Too many streams")).to_have_count(0)

    page.get_by_role("button", name="More").click()
    with page.expect_download() as download:
        page.get_by_role("menuitem", name="Download the documentation").click()
    assert download.value.suggested_filename.endswith(".md")

    page.get_by_role("button", name="More").click()
    page.get_by_role("menuitem", name="Delete").click()
    dialog = page.get_by_role("dialog", name=f"Delete shop {build['build_version']}")
    expect(dialog.get_by_text("are lost")).to_be_visible()
    window.check_accessible()
    dialog.get_by_role("button", name="Delete the build").click()
    expect(page.get_by_text("Nothing was built yet")).to_be_visible()
    expect(page).to_have_url(re.compile("/builds$"))
    # The second is the build that is not there any more, if its event comes before the answer.
    window.check_quiet("ERR_NETWORK_CHANGED", "status of 503", "status of 404")


def answer(page: Page, path: str, body: object) -> None:
    def fulfill(route: Route) -> None:
        route.fulfill(content_type="application/json", body=json.dumps(body))
    page.route(path, fulfill)
