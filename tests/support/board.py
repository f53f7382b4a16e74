"""The board in a browser: its columns, its cards, and how cards are dragged."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from support.page import Window

# What screen readers are told.
PICKED_UP = re.compile(r"was picked up\.|is over ")


class BoardPage:
    def __init__(self, page: Page, window: Window | None = None) -> None:
        self.page, self.window = page, window

    def column(self, title: str) -> Locator:
        return self.page.get_by_role("region", name=title, exact=True)

    def card(self, title: str) -> Locator:
        """The button of the card; its text is what the card is called."""
        return self.page.locator("[data-row]").filter(has_text=title)

    def expect_in(self, column: str, title: str) -> Locator:
        found = self.column(column).get_by_role("button", name=title)
        expect(found).to_be_visible()
        return found

    def focus(self, title: str) -> None:
        self.card(title).focus()

    def middle(self, target: Locator) -> tuple[float, float]:
        box = target.bounding_box()
        assert box
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def drag(self, title: str, to: Locator) -> None:
        """By mouse."""
        mouse = self.page.mouse
        mouse.move(*self.middle(self.card(title)))
        mouse.down()
        x, y = self.middle(to)
        mouse.move(x, y, steps=8)
        expect(self.page.get_by_text(PICKED_UP)).to_be_attached()
        mouse.move(x + 2, y + 2)
        mouse.up()

    def touch_drag(self, title: str, to: Locator, over: str) -> None:
        """By finger: held until the card is picked up, then moved until it is told to be `over` it."""
        touch = self.page.context.new_cdp_session(self.page)

        def send(kind: str, *at: float) -> None:
            points = [{"x": at[0], "y": at[1]}] if at else []
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

        x, y = self.middle(self.card(title))
        send("touchStart", x, y)
        expect(self.page.get_by_text(PICKED_UP)).to_be_attached()
        far_x, far_y = self.middle(to)
        for part in (0.3, 0.7, 1.0):
            send("touchMove", x + (far_x - x) * part, y + (far_y - y) * part)
        told = self.page.get_by_text(re.compile(f" is over {over}"))
        for nudge in range(40):
            far_x, far_y = self.middle(to)  # the board scrolls to where the finger is
            send("touchMove", min(far_x, self.page.viewport_size["width"] - 40), far_y + nudge % 2)
            self.page.wait_for_timeout(100)
            if told.count():
                break
        expect(told).to_be_attached()
        send("touchEnd")
