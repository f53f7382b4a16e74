"""The files of a sandbox in the page."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Page, expect
from support.page import Window
from support.work import Platform

DROP = """(text) => {
  const data = new DataTransfer();
  data.items.add(new File([text], "dropped.txt"));
  document.querySelector("section[aria-label=Files]").dispatchEvent(
      new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}));
}"""


def read(platform: Platform, sandbox: str, path: str) -> str:
    return platform.ask("GET", f"/sandboxes/{sandbox}/files?path={path}", status=200).body.decode()


def write(platform: Platform, sandbox: str, path: str, text: str) -> None:
    platform.ask("PUT", f"/sandboxes/{sandbox}/files?path={path}", text.encode(), 204,
                 headers={"Content-Type": "application/octet-stream"})


def open_file(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def test_files_are_browsed_uploaded_downloaded_and_edited(window: Window, platform: Platform, tmp_path: Path):
    sandbox = platform.rest.create(timeout=3600)["sandboxID"]
    write(platform, sandbox, "/home/user/notes/todo.txt", "one\n")
    page = window.go(f"/sandboxes/{sandbox}?tab=files")

    open_file(page, "Folder notes")
    expect(page).to_have_url(re.compile(r"tab=files&path=(%2F|/)home(%2F|/)user(%2F|/)notes$"))
    window.check_accessible()
    (tmp_path / "picked.bin").write_bytes(b"\0\1\2picked")
    page.get_by_label("Files to upload").set_input_files(tmp_path / "picked.bin")
    expect(page.get_by_role("button", name="File picked.bin")).to_be_visible()
    page.evaluate(DROP, "dropped here")
    expect(page.get_by_role("button", name="File dropped.txt")).to_be_visible()
    assert read(platform, sandbox, "/home/user/notes/dropped.txt") == "dropped here"
    with page.expect_download() as download:
        page.get_by_role("button", name="Download picked.bin").click()
    assert Path(download.value.path()).read_bytes() == b"\0\1\2picked"
    open_file(page, "File picked.bin")
    expect(page).to_have_url(re.compile(r"file=picked\.bin"))
    page.reload()
    expect(page.get_by_text("This is no text")).to_be_visible()
    page.get_by_role("button", name="Back").click()

    page.get_by_role("button", name="New folder").click()
    page.get_by_role("dialog").get_by_label("Name").fill("a b")
    page.get_by_role("button", name="Create", exact=True).click()
    open_file(page, "Folder a b")
    expect(page.get_by_text("This folder is empty")).to_be_visible()
    window.check_accessible()
    page.get_by_role("navigation", name="Folder").get_by_role("button", name="notes").click()

    open_file(page, "File todo.txt")
    text = page.get_by_label("Content of todo.txt")
    expect(text).to_have_value("one\n")
    text.fill("one\ntwo\n")
    text.press("Control+s")
    expect(page.get_by_text("todo.txt is saved")).to_be_visible()
    assert read(platform, sandbox, "/home/user/notes/todo.txt") == "one\ntwo\n"
    # Somebody else writes it while it is open.
    write(platform, sandbox, "/home/user/notes/todo.txt", "theirs\n")
    text.fill("mine\n")
    page.get_by_role("button", name="Save").click()
    dialog = page.get_by_role("dialog", name="todo.txt was changed meanwhile")
    dialog.get_by_role("button", name="Keep").click()
    assert read(platform, sandbox, "/home/user/notes/todo.txt") == "theirs\n"
    # However one leaves, what is not saved is asked about.
    leave = page.get_by_role("dialog", name="Leave todo.txt?")
    page.get_by_role("tab", name="Overview").click()
    leave.get_by_role("button", name="Keep").click()
    expect(text).to_have_value("mine\n")
    page.go_back()
    leave.get_by_role("button", name="Keep").click()
    expect(text).to_have_value("mine\n")
    page.get_by_role("button", name="Back").click()
    leave.get_by_role("button", name="Leave").click()
    expect(page.get_by_role("button", name="File todo.txt")).to_be_visible()

    page.get_by_role("button", name="Pause", exact=True).click()
    expect(page.get_by_text("The sandbox is paused")).to_be_visible()
    page.get_by_role("tabpanel").get_by_role("button", name="Resume").click()
    expect(page.get_by_role("button", name="File todo.txt")).to_be_visible()
    window.check_quiet("ERR_NETWORK_CHANGED")
