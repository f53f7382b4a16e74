"""Agents, tasks, runs and sessions from a terminal."""

from __future__ import annotations

import json
import subprocess

from support.forge import Forge
from support.forge_plugin import FORGE_REPOSITORY
from support.work import Platform
from support.server import find_binary


def caisson(platform: Platform, *arguments: str, status: int = 0) -> str:
    done = subprocess.run(
        [str(find_binary()), *arguments], capture_output=True, text=True, timeout=90,
        env={"CAISSON_URL": platform.server.url, "CAISSON_API_KEY": platform.server.api_key})
    assert done.returncode == status, (arguments, done)
    return done.stdout + done.stderr


def test_a_task_is_made_watched_and_shown(platform: Platform) -> None:
    caisson(platform, "agent", "add", "ada", "--", "bash", "-c", "echo hello; echo done > work.txt")
    assert "ada" in caisson(platform, "agent", "list")
    shown = caisson(platform, "task", "create", "--repo", FORGE_REPOSITORY, "--agent", "ada", "--watch",
                    "Write the work file")
    lines = shown.splitlines()
    assert [line.split("] ")[1].split()[0] for line in lines if line.startswith("[")] == [
        "provision", "clone", "branch", "agent", "commit", "push", "pull_request", "finish", "succeeded"], shown
    assert "  | hello" in lines and any("/pull/1" in line for line in lines), shown
    (task,) = json.loads(caisson(platform, "task", "list", "--json"))["tasks"]
    assert task["status"] == "in_review"
    # The end is shown again to whoever comes later.
    assert "succeeded" in caisson(platform, "task", "watch", task["id"])
    (run,) = json.loads(caisson(platform, "run", "list", "--json"))["runs"]
    assert "pull_request" in caisson(platform, "run", "show", run["id"])
    assert "only one that" in caisson(platform, "run", "retry", run["id"], status=1)
    caisson(platform, "agent", "rm", "ada")


def test_a_failure_is_told_by_the_status(platform: Platform) -> None:
    caisson(platform, "agent", "add", "bad", "--", "bash", "-c", "exit 3")
    shown = caisson(platform, "task", "create", "--repo", FORGE_REPOSITORY, "--agent", "bad", "--watch", "Fail",
                    status=1)
    assert "failed" in shown and "status 3" in shown, shown
    assert "there is no task" in caisson(platform, "task", "show", "nothing", status=1)


def test_a_run_that_failed_goes_on(platform: Platform, forge: Forge) -> None:
    looks = "git ls-remote --exit-code origin refs/heads/ready || exit 3; echo done > work.txt"
    caisson(platform, "agent", "add", "ada", "--", "bash", "-c", looks)
    caisson(platform, "task", "create", "--repo", FORGE_REPOSITORY, "--agent", "ada", "--watch", "Look", status=1)
    (run,) = json.loads(caisson(platform, "run", "list", "--json"))["runs"]
    assert run["state"] == "failed", run
    repository = forge.repositories[FORGE_REPOSITORY]
    repository.git.run("branch", "ready", "main")
    assert run["id"] in caisson(platform, "run", "retry", run["id"])
    platform.wait({"run_id": run["id"]})
    (pull,) = repository.pulls
    assert repository.git.file(pull.head, "work.txt") == "done\n"
    (task,) = json.loads(caisson(platform, "task", "list", "--json"))["tasks"]
    assert task["status"] == "in_review" and platform.live_sandboxes() == []
    assert [one["id"] for one in json.loads(caisson(platform, "run", "list", "--json"))["runs"]] == [run["id"]]


def test_a_conversation(platform: Platform) -> None:
    answers = 'if [ "$CAISSON_MESSAGE" = fail ]; then exit 3; fi; echo "you said $CAISSON_MESSAGE"'
    caisson(platform, "agent", "add", "ada", "--", "bash", "-c", answers)
    session = caisson(platform, "session", "create", "--agent", "ada", "A talk").strip()
    assert caisson(platform, "session", "send", session, "hello") == "you said hello\n"
    assert "status 3" in caisson(platform, "session", "send", session, "fail", status=1)
    history = caisson(platform, "session", "history", session)
    assert "user (" in history and "you said hello" in history and "failed" in history, history
    assert "no answer" in caisson(platform, "session", "stop", session, status=1)
    sandbox = caisson(platform, "session", "pause", session).strip()
    (row,) = json.loads(caisson(platform, "session", "list", "--status", "paused", "--json"))["sessions"]
    assert row["sandbox_id"] == sandbox and row["title"] == "A talk"
    caisson(platform, "session", "delete", session)
    assert "There are no sessions" in caisson(platform, "session", "list")
    assert "there is no session" in caisson(platform, "session", "history", session, status=1)
