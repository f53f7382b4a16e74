"""A real browser: the Chromium of this machine, driven by Playwright."""

from __future__ import annotations

import atexit
import contextlib
import functools
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

# Software rendering on a busy machine takes its time.
DEADLINE_MS = 120_000


def find_browser() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    assert found, "there is no Chromium: install the packages of tools/packages.txt"
    return found


@functools.cache
def steady_browser() -> str:
    """A program that starts Chromium so that links of sandboxes, which come and go, do not disturb it."""
    folder = Path(tempfile.mkdtemp(prefix="chromium-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    starter = Path(__file__).with_name("chromium_without_netlink.py")
    program = folder / "chromium"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{starter}" "{find_browser()}" "$@"\n')
    program.chmod(0o755)
    return str(program)


@contextlib.contextmanager
def browser_page() -> Iterator[Page]:
    """A fresh page. Its own sandbox is off: tests run as root, which it refuses otherwise."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=steady_browser(), args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(DEADLINE_MS)
        try:
            yield page
        finally:
            browser.close()
