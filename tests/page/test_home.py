"""First run: what works here, what to do, and a task that needs no key."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from support.page import Browser
from support.server import CaissonServer


@pytest.fixture(scope="module")
def fresh():
    """A server without a credential for GitHub, as a newcomer starts it."""
    with CaissonServer() as instance:
        yield instance


def test_a_newcomer_sees_what_is_ready_and_runs_the_demo(browser: Browser, fresh: CaissonServer):
    with browser.window(fresh) as window:
        page = window.go(f"/#key={fresh.api_key}")
        expect(page.get_by_text("Sandboxes work here ready")).to_be_visible()
        assert fresh.api_key not in page.url and fresh.api_key not in page.content()
        expect(page.get_by_text("GitHub not set up")).to_be_visible()
        expect(page.get_by_text(f"export E2B_API_URL={fresh.url}")).to_be_visible()
        expect(page.get_by_text("No tasks yet")).to_be_visible()
        window.check_accessible()
        page.get_by_role("button", name="Run the demo task").click()
        page.wait_for_url("**/app/work/*")
        page.goto(f"{fresh.url}/app/")
        expect(page.get_by_text("In review")).to_be_visible()
        window.check_accessible()
        window.check_quiet("401")
