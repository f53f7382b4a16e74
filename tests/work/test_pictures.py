"""Pictures of previews by a real browser in the sandbox; one that hangs or is missing harms nothing."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest
from support import browser_inside
from support.builds import Builds

pytestmark = pytest.mark.timeout(400)

BLUE = (30, 144, 255)
# Bands of several colours, so that the picture is not taken for that of an empty page.
PAGE = ("<!doctype html><title>Blue</title><body style='margin:0;background:rgb(30,144,255)'><div style='height:90px'>"
        "</div>" + "".join(f"<h2 style='background:linear-gradient(90deg,hsl({i * 40} 80% 50%),white)'>Band {i}</h2>"
                           for i in range(8)) + "\n")


def server_with(make_server, browser: str, timeout_ms: int) -> Builds:
    return Builds(make_server(env={"CAISSON_BUILD_TIER": "none", "CAISSON_BROWSER": browser,
                                   "CAISSON_SCREENSHOT_TIMEOUT_MS": str(timeout_ms),
                                   "CAISSON_FILE_MAX_BYTES": str(1 << 30)}))


def template_with_browser(builds: Builds, folder: Path) -> str:
    """A snapshot of a sandbox into which this machine's Chromium was put."""
    archive = folder / "chromium.tar"
    browser_inside.write_archive(archive)
    made = builds.ask("POST", "/sandboxes", {}, 201).json()["id"]
    builds.ask("PUT", f"/sandboxes/{made}/files?path=/tmp/chromium.tar", archive.read_bytes(), 204,
               headers={"Content-Type": "application/octet-stream"})
    home = browser_inside.HOME
    unpack = f"sudo mkdir -p {home} && sudo tar -xf /tmp/chromium.tar -C {home} && rm /tmp/chromium.tar"
    done = builds.ask("POST", f"/sandboxes/{made}/execute", {"command": unpack, "timeout_s": 120}, 200).json()
    assert done["exit_code"] == 0, done
    assert builds.rest.post(f"/sandboxes/{made}/snapshots", {"name": "with-browser"}).status == 201
    builds.ask("DELETE", f"/sandboxes/{made}", status=204)
    return "with-browser"


def first_pixel(png: bytes) -> tuple[int, ...]:
    """Of the upper left corner; whatever the filter of its row, that one is stored as it is."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n" and png[12:16] == b"IHDR"
    width, height, depth, colour = struct.unpack(">IIBB", png[16:26])
    assert (width, height) == (1280, 800) and depth == 8 and colour in (2, 6)
    data, at = b"", 8
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at:at + 8])
        data += png[at + 8:at + 8 + size] if kind == b"IDAT" else b""
        at += 12 + size
    return tuple(zlib.decompress(data)[1:4])


@pytest.mark.slow
def test_chromium_takes_the_picture(make_server, tmp_path: Path) -> None:
    builds = server_with(make_server, browser_inside.PROGRAM, 180_000)
    template = template_with_browser(builds, tmp_path)
    build = builds.ready(files={"index.html": PAGE}, template=template)
    assert build["snapshot_url"], "\n".join(line["text"] for line in builds.log(build))
    answer = builds.ask("GET", f"/builds/{build['id']}/screenshot", status=200)
    assert answer.header("Content-Type") == "image/png" and first_pixel(answer.body) == BLUE
    (told,) = builds.events(build, "snapshot.updated")
    assert told["url"] == f"/api/v1/builds/{build['id']}/screenshot"


def test_any_program_may_be_the_browser(make_server) -> None:
    browser = "#!/bin/sh\nfor a; do case $a in --screenshot=*) head -c 9000 /dev/zero > ${a#*=};; esac; done\n"
    builds = server_with(make_server, "/home/user/project/browser", 60_000)
    build = builds.ready(files={"index.html": PAGE, "browser": browser}, checks=["chmod +x browser"])
    answer = builds.ask("GET", f"/builds/{build['id']}/screenshot", status=200)
    assert len(answer.body) == 9000 and answer.header("Content-Type") == "image/png"


@pytest.mark.parametrize("browser", ["hangs", "missing", "fails", "blank"])
def test_a_build_needs_no_picture(make_server, browser: str) -> None:
    programs = {"hangs": "sleep 600", "fails": "exit 9", "blank": "for a; do case $a in --screenshot=*) "
                "head -c 4999 /dev/zero > ${a#*=};; esac; done"}
    files = {"index.html": PAGE} | {name: f"#!/bin/sh\n{script}\n" for name, script in programs.items()}
    builds = server_with(make_server, f"/home/user/project/{browser}", 3_000)
    build = builds.ready(files=files, checks=["chmod +x hangs fails blank"])
    assert build["snapshot_url"] is None and builds.run(build["run_id"])["state"] == "succeeded"
    assert builds.ask("GET", f"/builds/{build['id']}/screenshot").status == 404
    assert "Band 7" in builds.open(build)
    look = {"command": "pgrep -fxc 'sleep 600' || true"}
    builds.wait_until(lambda: builds.ask("POST", f"/sandboxes/{build['sandbox_id']}/execute", look, 200)
                      .json()["stdout"] == "0\n", "the browser is gone")
