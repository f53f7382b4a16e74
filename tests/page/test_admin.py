"""Screens for those who run the server: health, costs, audit log, settings."""

from __future__ import annotations

import re

from playwright.sync_api import expect
from support.forge_plugin import FORGE_REPOSITORY, FORGE_TOKEN
from support.page import PASSWORD, Browser, Window
from support.work import Platform


def test_health_costs_and_audit_show_what_is(window: Window, platform: Platform):
    page = window.go("/health")
    expect(page.get_by_text("Everything works")).to_be_visible()
    expect(page.get_by_text("Provider of sandboxes")).to_be_visible()
    window.check_accessible()
    page = window.go("/costs")
    expect(page.get_by_text("Nothing was spent yet")).to_be_visible()
    window.check_accessible()
    agent = platform.add_agent("echo hello > file")
    platform.wait(platform.start(agent))
    expect(page.get_by_text("worker")).to_be_visible()  # by an event, without a reload
    page.get_by_label("Group by").select_option("kind")
    expect(page.get_by_text("sandbox", exact=True)).to_be_visible()
    expect(page).to_have_url(re.compile("by=kind"))
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()
    assert download.value.suggested_filename == "costs-by-kind.csv"
    page = window.go("/audit")
    expect(page.get_by_role("cell", name="POST /api/v1/agents", exact=True)).to_be_visible()
    window.check_accessible()
    page.get_by_label("User").fill("nobody-of-that-name")
    expect(page.get_by_text("Nothing matches")).to_be_visible()
    page.get_by_role("button", name="Clear the filters").click()
    expect(page.get_by_role("cell", name="POST /api/v1/agents", exact=True)).to_be_visible()
    window.check_quiet()


def test_keys_are_made_shown_once_and_revoked(window: Window):
    page = window.go("/settings/keys")
    expect(page.get_by_text("No API keys yet")).to_be_visible()
    page.get_by_role("button", name="New key").click()
    page.get_by_label("Name").fill("laptop")
    page.get_by_role("button", name="Create", exact=True).click()
    key = page.get_by_role("dialog").locator("code").inner_text()
    assert key.startswith("e2b_")
    assert window.context.request.get(f"{window.server.url}/api/v1/keys", headers={"X-API-KEY": key}).ok
    page.get_by_role("button", name="I have it").click()
    assert key not in page.content()
    window.check_accessible()
    page.get_by_role("button", name="Revoke laptop").click()
    expect(page.get_by_role("dialog", name="Revoke the key laptop?")).to_be_visible()
    page.get_by_role("button", name="Revoke", exact=True).click()
    expect(page.get_by_text("The key laptop is revoked")).to_be_visible()
    answer = window.context.request.get(f"{window.server.url}/api/v1/keys",
                                        headers={"X-API-KEY": key, "Cookie": ""})
    assert answer.status == 401


def test_an_admin_makes_users_who_see_less(window: Window, browser: Browser):
    page = window.go("/settings/users")
    page.get_by_role("button", name="New user").click()
    page.get_by_label("Name").fill("grace")
    page.get_by_label("Role", exact=True).select_option("member")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_label("Role of grace")).to_have_value("member")
    window.check_accessible()
    with browser.window(window.server) as other:
        page = other.go("/settings")
        page.get_by_role("button", name="Use a name and a password").click()
        page.get_by_label("Name").fill("grace")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in", exact=True).click()
        expect(page.get_by_role("link", name="API keys")).to_be_visible()
        expect(page.get_by_role("link", name="Users")).to_have_count(0)
        expect(page.get_by_role("link", name="Audit log")).to_have_count(0)


def test_github_and_all_settings_are_shown_without_secrets(window: Window, platform: Platform):
    page = window.go("/settings/github")
    expect(page.get_by_text("Works", exact=True)).to_be_visible()
    page.get_by_label("Check its rights in a repository").fill(FORGE_REPOSITORY)
    page.get_by_role("button", name="Check", exact=True).click()
    expect(page.get_by_text("push: true")).to_be_visible()
    expect(page.get_by_text("No deliveries yet")).to_be_visible()
    expect(page.get_by_text("opened by the server's bot")).to_be_visible()
    page.get_by_label("Your GitHub token").fill(FORGE_TOKEN)
    page.get_by_role("button", name="Give it").click()
    expect(page.get_by_text("A token of octo-dev")).to_be_visible()
    window.check_accessible()
    page.get_by_role("button", name="Delete your token").click()
    expect(page.get_by_text("No token of yours", exact=True)).to_be_visible()
    page = window.go("/settings/all")
    page.get_by_label("Find a setting").fill("github_token")
    expect(page.get_by_text("secret", exact=True)).to_be_visible()
    assert FORGE_TOKEN not in page.content()
    window.check_accessible()
    window.check_quiet()
