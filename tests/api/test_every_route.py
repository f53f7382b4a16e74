"""S3-70: every operation of the API works once and is refused once, on a real server.

What is counted is what the server answered. Who adds an operation adds a line to WORKS; the refusal
is found by itself: an unknown id, a body that is none, or nobody who asks.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.api_world import BROWSER, PASSWORD, WEBHOOK_SECRET, World
from support.forge import Forge
from support.forge_oauth import oauth_settings
from support.forge_plugin import FORGE_REPOSITORY, FORGE_TOKEN
from support.rest import Response
from support.work import settings_for

REPO = {"repo": FORGE_REPOSITORY}
OWNER, NAME = FORGE_REPOSITORY.split("/")
UPGRADE = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
           "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}

# A successful call of each operation.
WORKS: dict[str, Callable[[World], Response]] = {
    # the server
    "getHealth": lambda w: w.call(),
    "getDetailedHealth": lambda w: w.call(),
    "listAudit": lambda w: w.call(query={"limit": 5}),
    "getOpenApi": lambda w: w.call(),
    "getStorage": lambda w: w.call(),
    "listSettings": lambda w: w.call(),
    "drain": lambda w: w.call(),
    "endDrain": lambda w: w.call(),
    # users
    "login": lambda w: w.call({"name": w.user()["name"], "password": PASSWORD}, key=None),
    "refreshLogin": lambda w: w.call(headers=w.login(), key=None),
    "logout": lambda w: w.call(headers=w.login(), key=None),
    "getMe": lambda w: w.call(),
    "listSignInMethods": lambda w: w.call(key=None),
    "signInByGithub": lambda w: w.call(key=None),
    "returnFromGithub": lambda w: w.call(**w.back_from_github(), key=None),
    "getPreferences": lambda w: w.call(),
    "setPreferences": lambda w: w.call({"theme": "dark"}),
    "getGithubToken": lambda w: w.call(),
    "setGithubToken": lambda w: w.call({"token": FORGE_TOKEN}),
    "deleteGithubToken": lambda w: w.call(),
    "changePassword": lambda w: w.call(
        {"current_password": PASSWORD, "new_password": PASSWORD + "!"}, headers=w.login(), key=None),
    "listUsers": lambda w: w.call(),
    "addUser": lambda w: w.call({"name": w.name()}),
    "getUser": lambda w: w.call(id=w.user()["id"]),
    "changeUser": lambda w: w.call({"role": "viewer"}, id=w.user()["id"]),
    "listKeys": lambda w: w.call(),
    "addKey": lambda w: w.call({"name": w.name()}),
    "changeKey": lambda w: w.call({"limits": {"rate_limit": 100}}, id=w.key()["id"]),
    "revokeKey": lambda w: w.call(id=w.key()["id"]),
    # events
    "streamEvents": lambda w: w.call(),
    "listEvents": lambda w: w.call(query={"limit": 5}),
    "listEventTypes": lambda w: w.call(),
    "streamExecution": lambda w: w.call(id=w.finished["execution_id"]),
    "streamSquad": lambda w: w.call(id=w.squad()["id"]),
    "streamBuildEvents": lambda w: w.call(id=w.build["id"]),
    "streamStats": lambda w: w.call(),
    "downloadTaskOutput": lambda w: w.call(id=w.finished["task_id"]),
    "searchTaskOutput": lambda w: w.call(query={"q": "a"}, id=w.finished["task_id"]),
    "downloadSessionOutput": lambda w: w.call(id=w.session),
    "searchSessionOutput": lambda w: w.call(query={"q": "a"}, id=w.session),
    "downloadSandboxOutput": lambda w: w.call(id=w.sandbox),
    "searchSandboxOutput": lambda w: w.call(query={"q": "a"}, id=w.sandbox),
    # agents, squads, tasks
    "createAgent": lambda w: w.call(
        {"name": w.name(), "adapter": "command", "config": {"command": ["true"]}}),
    "listAgents": lambda w: w.call(),
    "getAgent": lambda w: w.call(id=w.agent()["id"]),
    "updateAgent": lambda w: w.call({"name": w.name()}, id=w.agent()["id"]),
    "deleteAgent": lambda w: w.call(id=w.agent()["id"]),
    "startTaskWithAgent": lambda w: w.call({"title": w.name(), "repo_url": FORGE_REPOSITORY}, id=w.agent()["id"]),
    "claimTask": lambda w: w.call({"wait_s": 0}, id=w.outside_agent()["id"]),
    "agentHeartbeat": lambda w: w.call(id=w.outside_agent()["id"]),
    "reportTask": lambda w: report(w),
    "createSquad": lambda w: w.call({"name": w.name()}),
    "listSquads": lambda w: w.call(),
    "getSquad": lambda w: w.call(id=w.squad()["id"]),
    "updateSquad": lambda w: w.call({"name": w.name()}, id=w.squad()["id"]),
    "deleteSquad": lambda w: w.call(id=w.squad()["id"]),
    "pauseSquad": lambda w: w.call(id=w.squad()["id"]),
    "resumeSquad": lambda w: w.call(id=w.squad()["id"]),
    "createTask": lambda w: w.call({"title": w.name()}),
    "listTasks": lambda w: w.call(),
    "getTask": lambda w: w.call(id=w.task()["id"]),
    "updateTask": lambda w: w.call({"title": w.name()}, id=w.task()["id"]),
    "deleteTask": lambda w: w.call(id=w.task()["id"]),
    "moveTask": lambda w: w.call({"status": "pending"}, id=w.task()["id"]),
    "getBoard": lambda w: w.call(),
    "startTask": lambda w: w.call({}, id=w.assigned_task()["id"]),
    "cancelTask": lambda w: w.call(id=w.platform.run(w.long_run())["task_id"]),
    "pauseTask": lambda w: w.call({"reason": "lunch"}, id=w.platform.run(w.long_run())["task_id"]),
    "resumeTask": lambda w: w.call(id=w.task()["id"]),
    "executeWorkflow": lambda w: w.call({"task_id": w.assigned_task()["id"]}),
    "listExecutions": lambda w: w.call(id=w.finished["task_id"]),
    "getExecution": lambda w: w.call(id=w.finished["execution_id"]),
    "listTaskOperations": lambda w: w.call(id=w.finished["task_id"]),
    "getTaskPullRequest": lambda w: w.call(id=w.finished["task_id"]),
    "refreshTaskPullRequest": lambda w: w.call(id=w.finished["task_id"]),
    "getTaskChanges": lambda w: w.call(id=w.finished["task_id"]),
    "getTaskGit": lambda w: w.call(id=w.finished["task_id"]),
    "listCheckouts": lambda w: w.call(),
    "deleteCheckout": lambda w: w.call(id=w.kept_checkout()["id"]),
    "shareTask": lambda w: w.call({}, id=w.finished["task_id"]),
    "listTaskShares": lambda w: w.call(id=w.finished["task_id"]),
    "revokeTaskShare": lambda w: w.call(id=w.finished["task_id"], share=w.share()["id"]),
    "getSharedTask": lambda w: w.call(token=w.share_token(), key=None),
    "listSharedEvents": lambda w: w.call(query={"limit": 5}, token=w.share_token(), key=None),
    "getSharedChanges": lambda w: w.call(token=w.share_token(), key=None),
    "startDemo": lambda w: w.call(),
    "listApprovals": lambda w: w.call(),
    "listSquadApprovals": lambda w: w.call(id=w.squad()["id"]),
    "getApproval": lambda w: w.call(id=w.approval()["id"]),
    "approve": lambda w: w.call({}, id=w.approval()["id"]),
    "reject": lambda w: w.call({}, id=w.approval()["id"]),
    "listCosts": lambda w: w.call(),
    "costStats": lambda w: w.call(query={"by": "agent"}),
    "costSummary": lambda w: w.call(query={"period": "week"}),
    "getBudget": lambda w: w.call(),
    "getUsage": lambda w: w.call(),
    # runs
    "listRuns": lambda w: w.call(),
    "getRun": lambda w: w.call(id=w.finished["run_id"]),
    "retryRun": lambda w: w.call({}, id=w.failed_run()),
    "cancelRun": lambda w: w.call({}, id=w.long_run()),
    "signalRun": lambda w: w.call({}, id=w.long_run()),
    # sandboxes
    "createSandbox": lambda w: w.call({}),
    "listSandboxes": lambda w: w.call(),
    "listAllSandboxes": lambda w: w.call(),
    "cleanUpSandboxes": lambda w: w.call(query={"dry_run": "true"}),
    "getSandbox": lambda w: w.call(id=w.sandbox),
    "destroySandbox": lambda w: w.call(id=w.new_sandbox()),
    "pauseSandbox": lambda w: w.call(id=w.new_sandbox()),
    "resumeSandbox": lambda w: resume(w),
    "executeInSandbox": lambda w: w.call({"command": "true"}, id=w.sandbox),
    "uploadFile": lambda w: w.call(b"text", query={"path": "/home/user/a.txt"}, id=w.sandbox),
    "downloadFile": lambda w: w.call(query={"path": "/etc/hostname"}, id=w.sandbox),
    "listFiles": lambda w: w.call(query={"path": "/"}, id=w.sandbox),
    "listPorts": lambda w: w.call(id=w.sandbox),
    "openEditor": lambda w: w.call(id=w.sandbox),
    "openTerminal": lambda w: w.call(headers=UPGRADE, id=w.sandbox),
    "listTerminals": lambda w: w.call(id=w.sandbox),
    "endTerminal": lambda w: w.call(id=w.sandbox, terminal=w.terminal()),
    "getSandboxTimeline": lambda w: w.call(id=w.sandbox),
    "getSandboxDiagnostics": lambda w: w.call(id=w.sandbox),
    "setSandboxLimits": lambda w: w.call({"pids": 200}, id=w.sandbox),
    # git
    "gitClone": lambda w: w.call({"repo_url": FORGE_REPOSITORY}, id=w.checkout),
    "gitBranch": lambda w: w.call({"name": "agent/work"}, id=w.checkout),
    "gitStage": lambda w: w.call({}, id=w.checkout),
    "gitCommit": lambda w: w.call({"message": "feat: nothing"}, id=w.checkout),
    "gitPush": lambda w: w.call({}, id=w.committed()),
    "gitPull": lambda w: w.call({}, id=w.pushed()),
    "gitTag": lambda w: w.call({"name": w.name()}, id=w.checkout),
    "gitOpenPullRequest": lambda w: w.call({"title": w.name()}, id=w.pushed()),
    "gitStatus": lambda w: w.call(id=w.checkout),
    "gitDiff": lambda w: w.call(id=w.checkout),
    "gitHistory": lambda w: w.call(query={"limit": 3}, id=w.checkout),
    # GitHub
    "createPullRequest": lambda w: w.call({**REPO, "title": w.name(), "head": w.branch()}),
    "listPullRequests": lambda w: w.call(query=REPO),
    "getPullRequest": lambda w: w.call(query=REPO, number=w.pull()),
    "updatePullRequest": lambda w: w.call({**REPO, "title": w.name()}, number=w.pull()),
    "mergePullRequest": lambda w: w.call(REPO, number=w.pull()),
    "updatePullRequestBranch": lambda w: update_branch(w),
    "markPullRequestReady": lambda w: w.call(REPO, number=w.pull(draft=True)),
    "listChecks": lambda w: w.call(query=REPO, number=w.pull()),
    "listReviewComments": lambda w: w.call(query=REPO, number=w.pull()),
    "createReviewComment": lambda w: remark(w),
    "replyToReviewComment": lambda w: reply(w),
    "listReviews": lambda w: w.call(query=REPO, number=w.pull()),
    "createReview": lambda w: w.call({**REPO, "event": "comment", "body": "Hm."}, number=w.pull()),
    "createIssue": lambda w: w.call({**REPO, "title": w.name()}),
    "getIssue": lambda w: w.call(query=REPO, number=w.issue()),
    "addComment": lambda w: w.call({**REPO, "body": "Text"}, number=w.issue()),
    "getRepository": lambda w: w.call(owner=OWNER, name=NAME),
    "getRepositoryRights": lambda w: w.call(owner=OWNER, name=NAME),
    "getGithubRateLimit": lambda w: w.call(),
    "receiveGithubWebhook": lambda w: w.webhook({"zen": "Keep it logically awesome."}),
    "testGithubWebhook": lambda w: w.call(key=None),
    "listGithubDeliveries": lambda w: w.call(query={"limit": 5}),
    # sessions
    "createSession": lambda w: w.call({"title": w.name()}),
    "listSessions": lambda w: w.call(),
    "getSession": lambda w: w.call(id=w.session),
    "updateSession": lambda w: w.call({"title": w.name()}, id=w.session),
    "setSessionModel": lambda w: w.call({"model": "small"}, id=w.new_session()),
    "listModels": lambda w: w.call(),
    "deleteSession": lambda w: w.call(id=w.new_session()),
    "deleteSessions": lambda w: w.call({"ids": [w.new_session()]}),
    "sendMessage": lambda w: w.call({"text": "Hello"}, id=w.session),
    "listMessages": lambda w: w.call(query={"limit": 5}, id=w.session),
    "stopAnswer": lambda w: w.call(id=w.session),
    "getSessionSandbox": lambda w: w.call(id=w.session),
    "provisionSessionSandbox": lambda w: w.call(id=w.session),
    "getSessionSandboxStatus": lambda w: w.call(id=w.session),
    "pauseSessionSandbox": lambda w: w.call(id=w.idle_session()),
    "createSandboxForSession": lambda w: w.call({"sessionId": w.session}),
    "getSandboxStatus": lambda w: w.call(id=w.sandbox),
    "putSandboxAway": lambda w: w.call(id=w.new_sandbox()),
    # builds
    "createBuild": lambda w: w.call({"project": w.name(), "files": {"index.html": "text"}}),
    "startGeneration": lambda w: w.call({"project": w.name(), "files": {"index.html": "text"}}),
    "listBuilds": lambda w: w.call(),
    "getBuildTimeline": lambda w: w.call(),
    "getBuild": lambda w: w.call(id=w.build["id"]),
    "getBuildFiles": lambda w: w.call(id=w.build["id"]),
    "downloadBuild": lambda w: w.call(id=w.build["id"]),
    "getBuildReadiness": lambda w: w.call(id=w.build["id"]),
    "getBuildChangeRequest": lambda w: w.call(id=w.iteration()["id"]),
    "getBuildDocs": lambda w: w.call(id=w.build["id"]),
    "downloadBuildDocs": lambda w: w.call(id=w.build["id"]),
    "diffBuild": lambda w: w.call(id=w.build["id"]),
    "getBuildLogs": lambda w: w.call(query={"limit": 5}, id=w.build["id"]),
    "streamBuildLogs": lambda w: w.call(id=w.build["id"]),
    "getBuildScreenshot": lambda w: w.call(id=w.build["id"]),
    "checkBuildPreview": lambda w: w.call(id=w.build["id"]),
    "viewBuildPreview": lambda w: w.call(id=w.build["id"]),
    "confirmBuild": lambda w: w.call(id=w.build["id"]),
    "cancelBuild": lambda w: w.call({}, id=w.new_build(checks=["sleep 600"])["id"]),
    "deleteBuild": lambda w: w.call(id=w.ended_build()["id"]),
    "extendBuildPreview": lambda w: w.call(id=w.build["id"]),
    "pauseBuildPreview": lambda w: w.call(id=w.build["id"]),
    "resumeBuildPreview": lambda w: w.call(id=w.build["id"]),
    "rollbackBuild": lambda w: w.call({"version": "build_v0_1"}, id=w.build["id"]),
    # tools
    "sendMcpMessage": lambda w: w.call({"jsonrpc": "2.0", "id": 1, "method": "ping"}),
}
# The body of a call about something that does not exist, where a good one is needed to get that far.
BODIES: dict[str, object] = {
    "changeUser": {"role": "viewer"},
    "changeKey": {"limits": {}},
    "startTaskWithAgent": {"title": "T", "repo_url": FORGE_REPOSITORY},
    "reportTask": {"execution_id": "none", "status": "failed"},
    "moveTask": {"status": "pending"},
    "executeInSandbox": {"command": "true"},
    "setSandboxLimits": {"pids": 200},
    "gitClone": {"repo_url": FORGE_REPOSITORY},
    "gitCommit": {"message": "feat: nothing"},
    "gitTag": {"name": "v1"},
    "updatePullRequest": {**REPO, "title": "T"},
    "createReviewComment": {**REPO, "path": "a", "line": 1, "body": "Why?"},
    "createReview": {**REPO, "event": "comment", "body": "Hm."},
    "replyToReviewComment": {**REPO, "body": "Because."},
    "addComment": {**REPO, "body": "Text"},
    "mergePullRequest": REPO,
    "markPullRequestReady": REPO,
    "updatePullRequestBranch": REPO,
    "rollbackBuild": {"version": "build_v0_1"},
    "sendMessage": {"text": "Hello"},
    "setSessionModel": {"model": "small"},
}


def report(world: World) -> Response:
    agent, execution = world.claimed()
    return world.call({"execution_id": execution["id"], "status": "failed"}, id=agent["id"])


def resume(world: World) -> Response:
    sandbox = world.new_sandbox()
    world.make(f"/sandboxes/{sandbox}/pause", {})
    return world.call(id=sandbox)


def remark(world: World) -> Response:
    number = world.pull()
    return world.call(world.remark(number), number=number)


def update_branch(world: World) -> Response:
    number, name = world.pull(), world.name()
    world.forge.repositories[FORGE_REPOSITORY].git.commit("main", {f"{name}.txt": "text\n"}, "feat: more")
    return world.call(REPO, number=number)


def reply(world: World) -> Response:
    number = world.pull()
    comment = world.make(f"/github/pull-requests/{number}/comments", world.remark(number))
    return world.call({**REPO, "body": "Because."}, number=number, comment=comment["id"])


def is_success(status: int) -> bool:
    return status == 101 or 200 <= status < 400


def refuse(world: World, operation: str) -> Response:
    """Of what does not exist; else without sense; else for nobody."""
    described = world.described(operation)
    parts = [p["name"] for p in described.get("parameters", []) if p["in"] == "path"]
    queries = [p["name"] for p in described.get("parameters", []) if p["in"] == "query"]
    if parts:
        query = {"repo": FORGE_REPOSITORY} if "github" in described["tags"] and "repo" in queries else {}
        if operation in ("uploadFile", "downloadFile"):
            query = {"path": "/none"}
        return world.call(BODIES.get(operation), query=query, **dict.fromkeys(parts, 999999))
    if "requestBody" in described and operation != "setPreferences":  # which takes any object
        return world.call({"no_such_field": True})
    if described["x-role"] != "nobody":
        return world.call(key=None)
    return world.call(query={"no_such_parameter": 1}, key=None)


@pytest.fixture
def world(make_server, forge: Forge) -> World:
    return World(make_server(env=settings_for(forge, GITHUB_WEBHOOK_SECRET=WEBHOOK_SECRET, CAISSON_CHECKOUT_CACHE_MAX="3",
                                          CAISSON_EDITOR_COMMAND="exec python3 -m http.server -b 127.0.0.1 $PORT",
                                          **BROWSER, **oauth_settings())), forge)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_every_operation_works_and_is_refused(world: World) -> None:
    missing, gone = set(world.operations) - set(WORKS), set(WORKS) - set(world.operations)
    assert not missing, f"add them to WORKS: {sorted(missing)}"
    assert not gone, f"no operation has this name any more: {sorted(gone)}"
    wrong = []
    for operation in WORKS:  # in the order of the table: draining ends before the rest begins
        world.turn_to(operation)
        for answer, good in ((WORKS[operation](world), True), (refuse(world, operation), False)):
            described = world.described(operation)["responses"]
            as_hoped = is_success(answer.status) if good else 400 <= answer.status < 500
            if not as_hoped or (str(answer.status) not in described and "default" not in described):
                wrong.append(f"{operation} {'works' if good else 'is refused'}: {answer}")
    assert not wrong, "\n".join(wrong)
    # Counted from the answers, not from the table.
    for operation in world.operations:
        statuses = world.statuses[operation]
        assert any(map(is_success, statuses)) and any(400 <= status < 500 for status in statuses), (operation, statuses)
