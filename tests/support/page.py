"""The page in a real browser: windows, signing in, and what every screen has to keep."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import BrowserContext, Error, Page, Route, expect, sync_playwright

from support.browser import steady_browser
from support.rest import Rest
from support.server import REPOSITORY, CaissonServer

# Software rendering on a busy machine takes its time.
DEADLINE_MS = 60_000
WIDE = {"width": 1440, "height": 900}
NARROW = {"width": 375, "height": 812}
PASSWORD = "a password of the tests"
AXE = REPOSITORY / "web/node_modules/axe-core/axe.min.js"
# The theme is the one that was asked for, and its colours have come to rest.
THEME_IS_SHOWN = """dark => document.documentElement.classList.contains("dark") === dark &&
  document.getAnimations().every((each) => each.playState !== "running")"""

expect.set_options(timeout=DEADLINE_MS)


class Browser:
    """One Chromium for many windows. Its own sandbox is off: tests run as root, which it refuses otherwise."""

    def __enter__(self) -> Browser:
        self._playwright = sync_playwright().start()
        self._chromium = self._playwright.chromium.launch(
            executable_path=steady_browser(), args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        return self

    def __exit__(self, *_: object) -> None:
        self._chromium.close()
        self._playwright.stop()

    @contextlib.contextmanager
    def window(self, server: CaissonServer, size: dict = WIDE, **options: object) -> Iterator[Window]:
        context = self._chromium.new_context(viewport=size, **options)
        context.set_default_timeout(DEADLINE_MS)
        try:
            yield Window(context, server)
        finally:
            context.close()


class Window:
    """A window with cookies of its own. `page` is Playwright's. Whatever the page reports as an error fails the
    test at `check_quiet`."""

    def __init__(self, context: BrowserContext, server: CaissonServer) -> None:
        self.context = context
        self.server = server
        self.complaints: list[str] = []
        self.page = self._open()

    def _open(self) -> Page:
        page = self.context.new_page()
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda line: line.type == "error" and self.complaints.append(f"{line.text} {line.location['url']}"))
        return page

    def sign_in(self) -> None:
        """As the user `admin`, who owns the key that the tests use besides."""
        change = Rest(self.server).request("PATCH", "/api/v1/users/admin", {"password": PASSWORD})
        assert change.status == 200, change
        answer = self.context.request.post(f"{self.server.url}/api/v1/auth/login",
                                           data={"name": "admin", "password": PASSWORD})
        assert answer.ok, answer.text()
        self.go("/")

    def go(self, path: str) -> Page:
        self.page.goto(f"{self.server.url}/app{path}")
        return self.page

    def dark(self, on: bool = True) -> None:
        self.page.emulate_media(color_scheme="dark" if on else "light")

    def check_quiet(self, *allowed: str) -> None:
        """Nothing was reported but what is expected (parts of texts)."""
        left = [text for text in self.complaints if not any(part in text for part in allowed)]
        assert not left, left

    def check_accessible(self) -> None:
        """axe finds nothing, in both themes. WCAG 2.2 AA and best practices; tips and menus lie outside of landmarks by
        their nature."""
        for theme in ("light", "dark"):
            self.page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            self.page.wait_for_function(THEME_IS_SHOWN, arg=theme == "dark")
            self.page.wait_for_timeout(150)  # what is drawn by scripts follows
            self.page.evaluate(Path(AXE).read_text() + ";0")
            found = self.page.evaluate("async () => (await axe.run(document, {rules: {region: {enabled: false}}})).violations")
            told = [{"rule": each["id"], "help": each["help"], "where": [n["html"][:200] for n in each["nodes"][:3]],
                     "why": each["nodes"][0].get("failureSummary", "")} for each in found]
            assert not found, f"{self.page.url} ({theme}): {json.dumps(told, indent=1)}"
        self.page.emulate_media(color_scheme="light")


class Held:
    """Requests that wait until they are let go: what is shown meanwhile stays."""

    def __init__(self, page: Page, path: str, method: str = "GET") -> None:
        self._page, self._path, self._method = page, path, method
        self._waiting: list[Route] = []
        page.route(path, self._hold)

    def _hold(self, route: Route) -> None:
        if route.request.method == self._method:
            self._waiting.append(route)
        else:
            route.fallback()

    @property
    def count(self) -> int:
        return len(self._waiting)

    def let_go(self) -> None:
        self._page.unroute(self._path)
        for route in self._waiting:
            with contextlib.suppress(Error):  # the page asked anew meanwhile
                route.continue_()
