"""What versions hold of what was done in their sandboxes, and what is no text: pictures, fonts and the like."""

from __future__ import annotations

import base64
import io
import tarfile

import pytest
from support.builds import Builds, page
from support.cli import caisson
from support.rest import assert_refusal

pytestmark = pytest.mark.timeout(300)

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40
OTHER = b"\xff\xd8\xff" + bytes(reversed(range(256)))


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def held(builds: Builds, build: dict) -> dict[str, bytes]:
    binary = builds.get(f"/builds/{build['id']}/files")["binary_files"]
    return {path: base64.b64decode(content, validate=True) for path, content in binary.items()}


def test_bytes_are_kept_served_compared_and_brought_back(builds: Builds) -> None:
    first = builds.ready(files={"index.html": page("One"), "a.png": {"new_content_base64": encoded(PICTURE)}})
    assert builds.fetch_bytes(first, "/a.png") == (200, PICTURE)
    assert held(builds, first) == {"a.png": PICTURE}
    assert set(builds.get(f"/builds/{first['id']}/files")["files"]) == {"index.html"}
    archive = builds.ask("GET", f"/builds/{first['id']}/archive", status=200).body
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        assert opened.extractfile("shop/a.png").read() == PICTURE
    second = builds.ready(parent_id=first["id"], files=[{"path": "a.png", "new_content_base64": encoded(OTHER)}])
    assert builds.fetch_bytes(second, "/a.png") == (200, OTHER)
    (change,) = builds.get(f"/builds/{second['id']}/diff")["files"]
    assert (change["path"], change["change"], change["patch"]) == ("a.png", "modified", "")
    failed = builds.wait(builds.create(parent_id=second["id"], checks=["false"], files=[
        {"path": "a.png", "delete": True}]), "failed")
    assert failed["restored_version_of"] == second["id"] and builds.fetch_bytes(second, "/a.png") == (200, OTHER)
    back = builds.ask("POST", f"/builds/{second['id']}/rollback", {"version": "build_v0_1"}, 201).json()
    assert builds.fetch_bytes(builds.wait(back), "/a.png") == (200, PICTURE)


def test_an_agent_changes_and_makes_pictures(builds: Builds) -> None:
    first = builds.ready(files={"index.html": page("One"), "a.png": {"new_content_base64": encoded(PICTURE)},
                                "same.png": {"new_content_base64": encoded(OTHER)}})
    agent = builds.add_agent("cp a.png b.png; printf '\\000\\377' > a.png")
    second = builds.ready(parent_id=first["id"], goal="pictures", runner="command", agent_id=agent["id"])
    assert held(builds, second) == {"a.png": b"\x00\xff", "b.png": PICTURE, "same.png": OTHER}
    changes = {one["path"]: one["change"] for one in builds.get(f"/builds/{second['id']}/diff")["files"]}
    assert changes == {"a.png": "modified", "b.png": "added"}


def test_bytes_have_the_limits_of_texts(make_server) -> None:
    builds = Builds(make_server(env={"CAISSON_BUILD_TIER": "none", "CAISSON_BUILD_MAX_FILE_BYTES": "1000"}))
    for wrong, why in ((encoded(bytes(1001)), "1001 bytes"), ("no base64!", "base64")):
        asked = {"project": "p", "files": {"index.html": "x", "a.bin": {"new_content_base64": wrong}}}
        assert_refusal(builds.ask("POST", "/builds", asked), 422, contains=why)
    build = builds.ready(files={"index.html": "x", "a.bin": {"new_content_base64": encoded(bytes(1000))}})
    assert held(builds, build) == {"a.bin": bytes(1000)}


def test_a_folder_with_pictures_is_built_from_a_terminal(builds: Builds, tmp_path) -> None:
    (tmp_path / "index.html").write_text(page("One"))
    (tmp_path / "a.png").write_bytes(PICTURE)
    made = caisson(builds.server, "build", "create", "shop", str(tmp_path))
    assert made.returncode == 0, made.stderr
    build = builds.wait({"id": made.stdout.decode().strip()})
    assert builds.fetch_bytes(build, "/a.png") == (200, PICTURE)


SPOILS = "mkdir -p new/deep; echo a > new/deep/left.html; echo b > style.css; rm index.html; mkdir index.html; "


@pytest.mark.parametrize("end", ["exit 3", "touch /tmp/written; sleep 600"])
def test_what_a_failed_agent_leaves_is_in_no_version(builds: Builds, end: str) -> None:
    first = builds.ready(files={"index.html": page("Good")}, checks=["echo kept > made.txt"])
    agent = builds.add_agent(SPOILS + end)
    broken = builds.create(parent_id=first["id"], goal="worse", runner="command", agent_id=agent["id"])
    if "sleep" in end:
        written = {"command": "test -e /tmp/written"}
        builds.wait_until(lambda: builds.ask("POST", f"/sandboxes/{first['sandbox_id']}/execute", written, 200)
                          .json()["exit_code"] == 0, "the agent has written")
        builds.ask("POST", f"/builds/{broken['id']}/cancel", status=200)
    failed = builds.wait(broken, "failed")
    assert failed["restored_version_of"] == first["id"]
    assert builds.show(first)["sandbox_id"] == first["sandbox_id"]
    assert "Good" in builds.open(first) and builds.open(first, "/made.txt") == "kept\n"
    gentle = builds.add_agent("echo '<p>more</p>' >> index.html", name="gentle")
    second = builds.ready(parent_id=first["id"], goal="more", runner="command", agent_id=gentle["id"])
    assert set(builds.get(f"/builds/{second['id']}/files")["files"]) == {"index.html", "made.txt"}
    for path in ("/new/deep/left.html", "/style.css"):
        assert builds.status(second, path) == 404


def test_what_a_failed_agent_deletes_comes_back_from_the_snapshot(builds: Builds) -> None:
    first = builds.ready(files={"index.html": page("Good")}, checks=["echo kept > made.txt"])
    agent = builds.add_agent("rm made.txt; exit 3")
    builds.wait(builds.create(parent_id=first["id"], goal="worse", runner="command", agent_id=agent["id"]), "failed")
    now = builds.show(first)
    assert now["preview_state"] == "active" and builds.open(now, "/made.txt") == "kept\n"
    assert [one["sandboxID"] for one in builds.live_sandboxes()] == [now["sandbox_id"]]


def test_an_agent_deletes_only_what_it_deletes(builds: Builds) -> None:
    first = builds.ready(files={"index.html": page("One"), "dist/index.html": page("Dist"), "dist/old.html": "old",
                                "build": "a script\n", "part": "a file"})
    agent = builds.add_agent("rm dist/old.html part; mkdir part; echo y > part/y.txt; echo new > dist/new.html; "
                             "mkdir -p sub/target; echo x > sub/target/x")
    second = builds.ready(parent_id=first["id"], goal="more", runner="command", agent_id=agent["id"])
    assert "Dist" in builds.open(second, "/dist/index.html")
    files = builds.get(f"/builds/{second['id']}/files")["files"]
    assert set(files) == {"index.html", "dist/index.html", "dist/new.html", "build", "part/y.txt"}
    changes = {f["path"]: f["change"] for f in builds.get(f"/builds/{second['id']}/diff")["files"]}
    assert changes == {"dist/old.html": "deleted", "dist/new.html": "added", "part": "deleted", "part/y.txt": "added"}


def test_an_agent_that_writes_too_much_fails(make_server) -> None:
    limits = {"CAISSON_BUILD_MAX_FILES": "10", "CAISSON_BUILD_MAX_FILE_BYTES": "10000"}
    builds = Builds(make_server(env={"CAISSON_BUILD_TIER": "none", **limits}))
    first = builds.ready(files={"index.html": page("One"), "list.txt": "short"})
    for script, why in (("for i in $(seq 11); do echo $i > $i.txt; done", "more than 10 files"),
                        ("head -c 20000 /dev/zero | tr '\\0' x > list.txt", "more than 10000 bytes")):
        agent = builds.add_agent(script, name=why)
        failed = builds.wait(builds.create(parent_id=first["id"], goal="more", runner="command",
                                           agent_id=agent["id"]), "failed")
        assert why in failed["error_summary"] and failed["restored_version_of"] == first["id"]
    large = builds.add_agent("head -c 20000 /dev/zero | tr '\\0' x > large.txt", name="large")
    second = builds.ready(parent_id=first["id"], goal="more", runner="command", agent_id=large["id"])
    assert "large.txt is in no version" in "\n".join(line["text"] for line in builds.log(second))
    assert set(builds.get(f"/builds/{second['id']}/files")["files"]) == {"index.html", "list.txt"}
