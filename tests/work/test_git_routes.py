"""Git by hand: the routes of a sandbox, from a clone to a pull request."""

from __future__ import annotations

import re
import threading

from support import census
from support.forge import Forge
from support.forge_plugin import FORGE_REPOSITORY
from support.rest import Response, assert_refusal
from support.sessions import wait_until
from support.work import Platform, settings_for

OTHER = "octo-org/gadget"


class Desk:
    """One sandbox and its git routes."""

    def __init__(self, platform: Platform, sandbox: str = "") -> None:
        self.platform = platform
        self.id = sandbox or platform.ask("POST", "/sandboxes", {}, 201).json()["id"]

    def git(self, operation: str, status: int = 200, **body: object) -> Response:
        return self.platform.ask("POST", f"/sandboxes/{self.id}/git/{operation}", body, status)

    def show(self, name: str, **query: object) -> dict:
        return self.platform.get(f"/sandboxes/{self.id}/git/{name}", **query)

    def write(self, path: str, text: str) -> None:
        self.platform.ask("PUT", f"/sandboxes/{self.id}/files?path={path}", text.encode(), 204,
                          headers={"Content-Type": "application/octet-stream"})

    def told(self) -> list[tuple[str, str]]:
        """What git did, as the events say it, without its progress."""
        events = self.platform.events(type="git_operation", sandbox_id=self.id)
        return [(e["operation"], e["status"]) for e in events if e["status"] != "in_progress"]


def test_a_sandbox_of_the_e2b_api(platform: Platform, forge: Forge) -> None:
    made = platform.rest.post("/v2/sandboxes", {"templateID": "base", "timeout": 300})
    desk = Desk(platform, made.json()["sandboxID"])
    git = forge.repositories[FORGE_REPOSITORY].git
    cloned = desk.git("clone", repo_url=FORGE_REPOSITORY).json()
    assert cloned["head_sha"] == git.sha("main")
    desk.git("branch", name="by-e2b")
    desk.write(f"{cloned['path']}/e2b.txt", "text\n")
    made = desk.git("commit", message="feat: add a file").json()
    assert desk.git("push").json()["sha"] == made["sha"] == git.sha("by-e2b")
    platform.ask("DELETE", f"/sandboxes/{desk.id}", status=204)


def metrics_of(platform: Platform, name: str) -> dict[str, float]:
    """The series of one metric, by their labels."""
    lines = platform.rest.get("/metrics", key=None).body.decode().splitlines()
    found = (line.rpartition(" ") for line in lines if line.startswith((name + "{", name + " ")))
    return {series.removeprefix(name): float(value) for series, _, value in found}


def test_from_a_clone_to_a_pull_request(platform: Platform, forge: Forge) -> None:
    desk = Desk(platform)
    git = forge.repositories[FORGE_REPOSITORY].git
    cloned = desk.git("clone", repo_url=FORGE_REPOSITORY).json()
    assert cloned["cloned"] and cloned["head_sha"] == git.sha("main")
    assert desk.git("branch", name="feature").json()["created"] is True
    assert desk.git("branch", name="feature").json()["created"] is False
    desk.write(f"{cloned['path']}/new.txt", "text\n")
    refused = assert_refusal(desk.git("commit", 400, message="Added a file"), 400)
    assert "Suggestion: chore: Added a file" in refused["message"]
    made = desk.git("commit", message="feat: add a file").json()
    assert made["committed"] and made["files"] == ["new.txt"]
    assert desk.git("commit", message="feat: add nothing").json()["committed"] is False
    assert desk.git("push").json() == {"branch": "feature", "sha": made["sha"]}
    assert git.sha("feature") == made["sha"]
    first = desk.git("pr", 201, title="A file").json()
    again = desk.git("pr", 200, title="A file").json()
    assert first["number"] == again["number"] == 1 and first["url"] == again["url"]
    told = desk.told()
    for name in ("clone", "branch", "commit", "push"):
        begun, ended = told.count((name, "started")), told.count((name, "completed"))
        assert begun == ended > 0, told
        assert told.index((name, "started")) < told.index((name, "completed"))
    (event,) = platform.events(type="pr_created", sandbox_id=desk.id)
    assert event["pr_number"] == 1 and event["pr_url"] == first["url"]
    assert [c["sha"] for c in desk.show("history", limit=1)["commits"]] == [made["sha"]]
    platform.ask("DELETE", f"/sandboxes/{desk.id}", status=204)
    (ended,) = platform.events(type="sandbox_terminated", sandbox_id=desk.id)
    assert ended["runtime_seconds"] > 0


def test_what_fails_is_told_once_and_counted(platform: Platform, forge: Forge) -> None:
    desk = Desk(platform)
    assert_refusal(desk.git("clone", 404, repo_url="octo-org/nothing"), 404)
    assert desk.told() == [("clone", "started"), ("clone", "failed")]
    cloned = desk.git("clone", repo_url=FORGE_REPOSITORY).json()
    desk.git("branch", name="feature")
    desk.write(f"{cloned['path']}/new.txt", "text\n")
    desk.git("commit", message="feat: add a file")
    repo = forge.repositories[FORGE_REPOSITORY].git
    repo.commit("feature", {"other.txt": "of somebody else\n"}, "feat: be quicker", base="main")
    assert_refusal(desk.git("push", 409), 409, contains="rejected")
    assert desk.told()[-2:] == [("push", "started"), ("push", "failed")]
    counted = lambda: metrics_of(platform, "caisson_git_operation_total")  # noqa: E731
    wait_until(lambda: '{operation="push",status="failed"}' in counted(), "the push is counted")
    done = counted()
    assert done['{operation="clone",status="failed"}'] == 1
    assert done['{operation="clone",status="completed"}'] == 1
    assert done['{operation="push",status="failed"}'] == 1
    errors = metrics_of(platform, "caisson_git_errors_total")
    assert errors == {
        '{error_type="not_found",operation="clone"}': 1,
        '{error_type="rejected",operation="push"}': 1,
    }
    assert metrics_of(platform, "caisson_git_operation_duration_seconds_count")['{operation="clone"}'] == 2


def ready_to_push(desk: Desk) -> str:
    path = desk.git("clone", repo_url=FORGE_REPOSITORY).json()["path"]
    desk.git("branch", name="feature")
    desk.write(f"{path}/new.txt", "text\n")
    return desk.git("commit", message="feat: add a file").json()["sha"]


def test_a_sandbox_that_dies_in_the_middle_of_a_push(platform: Platform, forge: Forge) -> None:
    """S1-113: the operation has failed, nothing is half done, and another attempt works."""
    desk, git = Desk(platform), forge.repositories[FORGE_REPOSITORY].git
    ready_to_push(desk)
    forge.plant("delay", path="info/refs", seconds=5)
    answers: list[Response] = []
    path = f"/sandboxes/{desk.id}/git/push"
    pushing = threading.Thread(target=lambda: answers.append(platform.ask("POST", path, {})))
    pushing.start()
    wait_until(lambda: ("push", "started") in desk.told(), "the push has begun")
    census.kill_sandbox(platform.server, desk.id)
    pushing.join(timeout=60)
    assert answers[0].status >= 400, answers
    assert git.sha("feature") is None
    wait_until(lambda: ("push", "failed") in desk.told(), "the failure is told")
    again = Desk(platform)
    sha = ready_to_push(again)
    assert again.git("push").json() == {"branch": "feature", "sha": sha}
    assert git.sha("feature") == sha


def test_failures_say_what_helps_and_are_counted(make_server, forge: Forge) -> None:
    """S4-67, OA-110: conflicts and repeated pushes have numbers of their own."""
    platform = Platform(make_server(env=settings_for(forge, CAISSON_GIT_RETRY_MIN_MS="100")))
    desk, git = Desk(platform), forge.repositories[FORGE_REPOSITORY].git
    path = desk.git("clone", repo_url=FORGE_REPOSITORY).json()["path"]
    desk.write(f"{path}/README.md", "ours\n")
    desk.git("commit", message="docs: say ours")
    git.commit("main", {"README.md": "theirs\n"}, "docs: say theirs")
    desk.git("pull")
    helps = {e["operation"]: e["recovery"] for e in platform.events(type="git_operation", sandbox_id=desk.id)
             if e["status"] == "failed"}
    other = Desk(platform)
    ready_to_push(other)
    forge.plant("status", method="GET", path="info/refs", status=503, times=1)
    other.git("push")
    wait_until(lambda: metrics_of(platform, "caisson_git_push_retry_count_total").get("") == 1, "the repetition")
    wait_until(lambda: metrics_of(platform, "caisson_git_conflicts_detected_total").get("") == 1, "the conflict")
    assert "resolve the conflict" in helps["pull"]


def test_a_silent_server_is_not_waited_for_without_end(make_server, forge: Forge) -> None:
    settings = settings_for(forge, CAISSON_CLONE_TIMEOUT_MS="1500", CAISSON_GIT_RETRY_MIN_MS="100")
    desk = Desk(Platform(make_server(env=settings)))
    forge.plant("delay", path="info/refs", times=9, seconds=30)
    refused = assert_refusal(desk.git("clone", 504, repo_url=FORGE_REPOSITORY), 504)
    assert refused["retryable"], refused
    assert desk.told() == [("clone", "started"), ("clone", "failed")]


def test_the_numbers_of_a_task(platform: Platform) -> None:
    for agent in ("echo a > a", "echo b > b"):
        platform.wait(platform.start(platform.add_agent(agent)))
    wanted = {
        "sandbox_creation_seconds_count": set(),
        "sandboxes_running": set(),
        "pool_takes_total": {"result"},
        "git_operation_total": {"operation", "status"},
        "git_operation_duration_seconds_count": {"operation"},
        "sandbox_hours_total": set(),
        "estimated_cost_dollars": {"period"},
    }

    def count() -> dict[str, dict[str, float]]:
        return {name: metrics_of(platform, f"caisson_{name}") for name in wanted}

    wait_until(lambda: count()["estimated_cost_dollars"]['{period="day"}'] > 0, "the costs are counted")
    pushes = '{operation="push",status="completed"}'
    wait_until(lambda: count()["git_operation_total"].get(pushes) == 2, "both pushes are counted")
    found = count()
    labels = {name: {label for one in series for label in re.findall(r"(\w+)=", one)} for name, series in found.items()}
    assert labels == wanted  # none of an id, so their number does not grow
    assert found["sandbox_creation_seconds_count"][""] == 2 and found["sandbox_hours_total"][""] > 0
    assert sum(map(len, found.values())) <= 50


def test_two_repositories_in_one_sandbox(platform: Platform, forge: Forge) -> None:
    forge.add_repository(OTHER)
    desk = Desk(platform)
    paths = [desk.git("clone", repo_url=name).json()["path"] for name in (FORGE_REPOSITORY, OTHER)]
    assert paths[0] != paths[1]
    refused = assert_refusal(desk.git("branch", 400, name="feature"), 400)
    assert "2 repositories" in refused["message"]  # none is guessed
    for name, path in zip((FORGE_REPOSITORY, OTHER), paths):
        desk.git("branch", name="feature", repo=name)
        desk.write(f"{path}/new.txt", f"of {name}\n")
        desk.git("commit", message="feat: add a file", repo=name)
        desk.git("push", repo=name)
        assert forge.repositories[name].git.file("feature", "new.txt") == f"of {name}\n"
        assert desk.git("pr", 201, title="A file", repo=name).json()["number"] == 1
    assert_refusal(desk.git("push", 404, repo="octo-org/nothing"), 404)
    assert desk.show("status", repo=OTHER)["current_branch"] == "feature"


def test_without_a_credential_the_rest_works(make_server, forge: Forge) -> None:
    platform = Platform(make_server(env={"GITHUB_API_URL": forge.api_url, "CAISSON_GITHUB_URL": forge.url}))
    desk = Desk(platform)
    assert_refusal(desk.git("pr", 503, title="A file"), 503, "github_not_configured")
    for method, path, body in (("GET", "/github/pull-requests?repo=octo-org/robot", None),
                               ("POST", "/github/issues", {"repo": "octo-org/robot", "title": "A bug"})):
        assert_refusal(platform.ask(method, path, body, 503), 503, "github_not_configured")
    ready_to_push(desk)  # everybody may read it
    assert_refusal(desk.git("push", 503), 503, "github_not_configured")
    platform.ask("POST", f"/sandboxes/{desk.id}/execute", {"command": "true"}, 200)
