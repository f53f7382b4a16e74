"""What a template says about itself: its tools, and where work happens inside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.builds import Builds, page
from support.forge import Forge
from support.forge_plugin import FORGE_REPOSITORY
from support.server import find_templates
from support.work import settings_for

pytestmark = pytest.mark.timeout(300)

TOOLS = [{"name": "git", "version": "1:2.47"}, {"name": "jq", "version": "1.7"}]


@pytest.fixture
def templates(tmp_path: Path) -> Path:
    """`base`, and `own`: the same tree, with a workspace and a list of tools."""
    base = (find_templates(tmp_path) / "base").resolve()
    folder = tmp_path / "mine"
    settings = json.loads((base / "template.json").read_text())
    said = {"own": {"workspace": "/home/user/here", "tools": TOOLS, "aliases": []}, "base": {"tools": []}}
    for name, more in said.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "rootfs").symlink_to(base / "rootfs")
        (folder / name / "template.json").write_text(json.dumps({**settings, "id": name, **more}))
    for parent in (folder, *folder.parents):
        if parent.stat().st_mode & 0o5 != 0o5:
            parent.chmod(parent.stat().st_mode | 0o005)  # the server process is not root
    return folder


@pytest.fixture
def builds(make_server, forge: Forge, templates: Path) -> Builds:
    return Builds(make_server(env=settings_for(forge, CAISSON_TEMPLATE_DIR=str(templates), CAISSON_BUILD_TIER="none",
                                               CAISSON_TASK_TEMPLATE="own")))


def test_the_list_names_the_tools_inside(builds: Builds) -> None:
    listed = {one["templateID"]: one for one in builds.rest.get("/templates").json()}
    assert listed["own"]["tools"] == TOOLS and listed["base"]["tools"] == []
    assert listed["own"]["cpuCount"] == 2 and listed["own"]["memoryMB"] == 1024


def test_work_happens_where_the_template_says(builds: Builds, forge: Forge) -> None:
    started = builds.start(builds.add_agent("pwd > where.txt"))
    super(Builds, builds).wait(started)
    (pull,) = forge.repositories[FORGE_REPOSITORY].pulls
    assert forge.repositories[FORGE_REPOSITORY].git.file(pull.head, "where.txt") == "/home/user/here/widget\n"

    build = builds.ready(files={"index.html": page("Here")}, template="own", checks=["pwd"])
    assert build["workspace_path"] == "/home/user/here/project" and "Here" in builds.open(build)
    assert "/home/user/here/project" in [line["text"] for line in builds.log(build)]
    # A copy of a sandbox has the workspace of what it was copied from.
    builds.ask("DELETE", f"/sandboxes/{build['sandbox_id']}")
    again = builds.ready(parent_id=build["id"], files={"index.html": page("Again")})
    assert again["workspace_path"] == "/home/user/here/project" and "Again" in builds.open(again)
    other = builds.ready(project="other", files={"index.html": page("There")}, template="base")
    assert other["workspace_path"] == "/home/user/project" and "There" in builds.open(other)
