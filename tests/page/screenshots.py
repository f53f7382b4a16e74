"""Pictures of every screen: screenshots.py OUT_DIR. Called by tools/screenshots."""

from __future__ import annotations

import sys
from pathlib import Path

from playwright.sync_api import expect
from support.forge import Forge
from support.forge_plugin import FORGE_REPOSITORY, FORGE_TOKEN
from support.page import NARROW, WIDE, Browser, Window
from support.server import CaissonServer
from support.showcase import Showcase
from support.work import settings_for

OFTEN = {"CAISSON_METRICS_INTERVAL_MS": "1000"}  # the curves of so young a sandbox
# What lies over a screen, by its keys, and what is no screen.
OVER = {"not-found": ("/nowhere",), "palette": ("/board", "Control+k"), "shortcuts": ("/board", "?"), "new-task": ("/board", "c")}
PHONE = {"has_touch": True, "is_mobile": True}
SETTLE_MS = 800  # charts, terminals and fonts


def take(window: Window, path: str, file: Path, *keys: str) -> None:
    """Of what is at the address, after these keys were pressed there."""
    page = window.go(path)
    for key in keys:
        expect(page.get_by_text("Live", exact=True)).to_be_visible()
        page.keyboard.press(key)
    expect(page.get_by_role("status", name="Loading")).to_have_count(0)
    expect(page.locator(".animate-pulse")).to_have_count(0)
    page.wait_for_timeout(SETTLE_MS)
    page.screenshot(path=file)


def main() -> None:
    out = Path(sys.argv[1])
    with Forge() as forge, Browser() as browser:
        forge.add_token(FORGE_TOKEN)
        forge.add_repository(FORGE_REPOSITORY)
        with CaissonServer(env={**settings_for(forge), **OFTEN}) as server:
            showcase = Showcase(server)
            showcase.fill()
            for width, size, kind in (("wide", WIDE, {}), ("narrow", NARROW, PHONE)):
                for theme in ("light", "dark"):
                    with browser.window(server, size, color_scheme=theme, **kind) as window:
                        take(window, "/sign-in", out / f"sign-in-{width}-{theme}.png")
                        window.sign_in()
                        for name, path in showcase.paths().items():
                            take(window, path, out / f"{name}-{width}-{theme}.png")
                        for name, (path, *keys) in OVER.items():
                            take(window, path, out / f"{name}-{width}-{theme}.png", *keys)
    print(f"{len(list(out.glob('*.png')))} pictures in {out}")


if __name__ == "__main__":
    main()
