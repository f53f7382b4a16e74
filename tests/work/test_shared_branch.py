"""OA-116: somebody else commits to the branch of a task while it is worked on."""

from __future__ import annotations

from support.forge import Forge
from support.forge_plugin import FORGE_REPOSITORY
from support.work import BUSY, Platform

# Whoever pushes finds that another one was faster, again and again.
ALWAYS_LATE = """#!/bin/sh
tip=$(git rev-parse -q --verify "$1" || git rev-parse main)
who="-c user.name=Other -c user.email=other@example.com"
git update-ref "$1" "$(echo faster | git $who commit-tree -p "$tip" "$tip^{tree}")"
echo "somebody was faster" >&2
exit 1
"""


def work_to_push(platform: Platform) -> dict:
    """A task whose work is committed and waits for a person's word."""
    started = platform.start(platform.add_agent(BUSY.format(file="work.txt")), options={"approve_push": True})
    platform.wait_for_event("approval_requested", task_id=started["task_id"])
    return started


def agree(platform: Platform) -> None:
    (approval,) = platform.get("/approvals", state="pending")["approvals"]
    platform.ask("POST", f"/approvals/{approval['id']}/approve", {}, 200)


def branch_of(platform: Platform, started: dict) -> str:
    return platform.get(f"/tasks/{started['task_id']}")["git_branch"]


def operations(platform: Platform, started: dict) -> list[tuple[str, str]]:
    listed = platform.get(f"/tasks/{started['task_id']}/operations", limit=100)["operations"]
    return [(one["operation"], one["error_type"]) for one in listed if one["operation"] in ("push", "pull")]


def test_the_work_goes_on_top_of_what_came_meanwhile(platform: Platform, forge: Forge) -> None:
    started = work_to_push(platform)
    branch, git = branch_of(platform, started), forge.repositories[FORGE_REPOSITORY].git
    theirs = git.commit(branch, {"human.txt": "by hand\n"}, "feat: by hand", base="main")
    agree(platform)
    platform.wait(started)
    assert git.sha(f"{branch}~1") == theirs
    assert git.run("show", f"{branch}:work.txt").stdout == "done\n"
    (execution,) = platform.get(f"/tasks/{started['task_id']}/executions")["executions"]
    assert execution["head_sha"] == git.sha(branch)
    assert [one["sha"] for one in execution["commits"]] == [git.sha(branch)]
    assert [name for name, _ in operations(platform, started)] == ["push", "pull", "push"]
    assert len(forge.repositories[FORGE_REPOSITORY].pulls) == 1


def test_a_conflict_is_for_a_person(platform: Platform, forge: Forge) -> None:
    started = work_to_push(platform)
    branch, git = branch_of(platform, started), forge.repositories[FORGE_REPOSITORY].git
    theirs = git.commit(branch, {"work.txt": "by hand\n"}, "feat: by hand", base="main")
    agree(platform)
    error = platform.wait_for_error(started)
    assert "work.txt" in error and branch in error, error
    run = platform.run(started["run_id"])
    assert (run["state"], run["error_class"]) == ("waiting", "user_action")
    assert git.sha(branch) == theirs and forge.repositories[FORGE_REPOSITORY].pulls == []
    # A person thinks better of it, and says so.
    git.run("branch", "-D", branch)
    platform.ask("POST", f"/runs/{started['run_id']}/signal", {}, 200)
    platform.wait(started)
    assert git.run("show", f"{branch}:work.txt").stdout == "done\n"


def test_a_branch_that_never_rests_is_for_a_person(platform: Platform, forge: Forge) -> None:
    started = work_to_push(platform)
    branch, git = branch_of(platform, started), forge.repositories[FORGE_REPOSITORY].git
    hook = git.path / "hooks/update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(ALWAYS_LATE)
    hook.chmod(0o755)
    agree(platform)
    assert "tried 3 times" in platform.wait_for_error(started)
    assert [name for name, _ in operations(platform, started)] == ["push", "pull"] * 3 + ["push"]
    hook.unlink()
    platform.ask("POST", f"/runs/{started['run_id']}/signal", {}, 200)
    platform.wait(started)
    assert git.run("show", f"{branch}:work.txt").stdout == "done\n"


def test_what_a_rule_forbids_fails_at_once(platform: Platform, forge: Forge) -> None:
    started = work_to_push(platform)
    hook = forge.repositories[FORGE_REPOSITORY].git.path / "hooks/update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho not on fridays >&2\nexit 1\n")
    hook.chmod(0o755)
    agree(platform)
    run = platform.wait(started, state="failed")
    assert "not on fridays" in run["error"], run["error"]
