"""The forge double behaves as a forge does: git and the API see the same repositories."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from support.forge import Forge
from support.forge_plugin import FORGE_REPOSITORY, FORGE_TOKEN

PULLS = f"/repos/{FORGE_REPOSITORY}/pulls"


def call(forge: Forge, method: str, path: str, body: object = None, token: str = FORGE_TOKEN):
    """Status and decoded body."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(forge.url + path, data=data, method=method)
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, json.loads(answer.read() or "null")
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def git(where: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    identity = ["-c", "user.name=Dev", "-c", "user.email=dev@example.com", "-c", "credential.helper="]
    return subprocess.run(
        ["git", *identity, *arguments],
        cwd=where,
        env={"PATH": "/usr/bin:/bin", "GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_GLOBAL": "/dev/null", "LC_ALL": "C"},
        capture_output=True,
        text=True,
        timeout=60,
    )


def clone_url(forge: Forge, token: str = FORGE_TOKEN, repository: str = FORGE_REPOSITORY) -> str:
    return f"http://x-access-token:{token}@127.0.0.1:{forge.port}/{repository}.git"


def push_branch(forge: Forge, where: Path, branch: str) -> None:
    assert git(where, "clone", "-q", clone_url(forge), "checkout").returncode == 0
    tree = where / "checkout"
    (tree / "feature.txt").write_text("a feature\n")
    for words in (["checkout", "-q", "-b", branch], ["add", "."], ["commit", "-q", "-m", "feat: a feature"]):
        assert git(tree, *words).returncode == 0
    done = git(tree, "push", "-q", "origin", branch)
    assert done.returncode == 0, done.stderr


def test_a_push_becomes_a_pull_request_and_a_merge_reaches_git(forge: Forge, tmp_path: Path):
    push_branch(forge, tmp_path, "feature")
    status, pull = call(forge, "POST", PULLS, {"title": "A feature", "head": "feature", "base": "main"})
    assert status == 201 and pull["number"] == 1 and pull["mergeable"] is True
    assert (pull["commits"], pull["additions"], pull["changed_files"]) == (1, 1, 1)
    status, merged = call(forge, "PUT", f"{PULLS}/1/merge", {"merge_method": "squash"})
    assert status == 200
    assert git(tmp_path / "checkout", "fetch", "-q", "origin", "main").returncode == 0
    repo = forge.repositories[FORGE_REPOSITORY]
    assert repo.git.sha("main") == merged["sha"] and repo.git.file("main", "feature.txt") == "a feature\n"
    status, again = call(forge, "GET", f"{PULLS}/1")
    assert again["merged"] is True and again["state"] == "closed"


@pytest.mark.parametrize("method", ["merge", "squash", "rebase"])
def test_every_merge_method_keeps_the_base_commits(forge: Forge, method: str):
    repo = forge.repositories[FORGE_REPOSITORY]
    for name in ("one", "two"):
        repo.git.commit("feature", {f"{name}.txt": name}, f"feat: {name}", base="main")
    repo.git.commit("main", {"other.txt": "other"}, "feat: other")
    assert call(forge, "POST", PULLS, {"title": "T", "head": "feature", "base": "main"})[0] == 201
    body = {"merge_method": method, "commit_title": "the title"}
    assert call(forge, "PUT", f"{PULLS}/1/merge", body)[0] == 200
    log = repo.git.log("main")
    assert "feat: other" in log and repo.git.file("main", "two.txt") == "two"
    expected = {
        "merge": ["the title", "feat: two", "feat: one"],
        "squash": ["the title"],
        "rebase": ["feat: two", "feat: one"],
    }
    assert set(expected[method]) == set(log) - {"feat: other", "chore: first commit"}


def test_a_branch_is_updated_from_its_base(forge: Forge):
    repo = forge.repositories[FORGE_REPOSITORY]
    repo.git.commit("feature", {"a": "1"}, "feat: a", base="main")
    assert call(forge, "POST", PULLS, {"title": "T", "head": "feature", "base": "main"})[0] == 201
    path, head = f"{PULLS}/1/update-branch", repo.git.sha("feature")
    status, body = call(forge, "PUT", path, {})
    assert status == 422 and body["message"] == "There are no new commits on the base branch."
    repo.git.commit("main", {"b": "1"}, "feat: b")
    assert call(forge, "GET", f"{PULLS}/1")[1]["mergeable_state"] == "clean"  # nobody asks for more
    repo.strict = True
    assert call(forge, "GET", f"{PULLS}/1")[1]["mergeable_state"] == "behind"
    status, body = call(forge, "PUT", path, {"expected_head_sha": "0" * 40})
    assert status == 422 and body["message"].startswith("expected head sha")
    assert call(forge, "PUT", path, {"expected_head_sha": head})[0] == 202
    assert repo.git.file("feature", "b") == "1" and repo.pulls[0].head_sha == repo.git.sha("feature") != head
    repo.git.commit("main", {"a": "2"}, "feat: another a")
    assert call(forge, "PUT", path, {})[1]["message"] == "merge conflict between base and head"


def test_what_github_refuses_is_refused_in_its_words(forge: Forge):
    repo = forge.repositories[FORGE_REPOSITORY]
    repo.git.run("branch", "empty", "main")
    repo.git.commit("feature", {"a": "1"}, "feat: a", base="main")

    def refused(head: str, base: str = "main") -> dict:
        status, body = call(forge, "POST", PULLS, {"title": "T", "head": head, "base": base})
        assert status == 422 and body["message"] == "Validation Failed"
        return body["errors"][0]

    assert refused("nowhere") == {"resource": "PullRequest", "field": "head", "code": "invalid"}
    assert refused("feature", "nowhere") == {"resource": "PullRequest", "field": "base", "code": "invalid"}
    assert refused("empty")["message"] == "No commits between main and empty"
    assert call(forge, "POST", PULLS, {"title": "T", "head": "octo-org:feature", "base": "main"})[0] == 201
    assert refused("feature")["message"] == "A pull request already exists for octo-org:feature."
    repo.git.commit("main", {"a": "2"}, "feat: another a")
    assert call(forge, "PUT", f"{PULLS}/1/merge", {})[0] == 405
    assert call(forge, "PUT", f"{PULLS}/1/merge", {"sha": "0" * 40})[0] == 409


def test_a_private_repository_needs_the_right_token(forge: Forge, tmp_path: Path):
    forge.add_repository("octo-org/secret", private=True)
    forge.add_token("ghp_reader", write=False)
    forge.add_token("ghp_stranger", repositories=set())
    for number, (token, works) in enumerate([(FORGE_TOKEN, True), ("ghp_reader", True), ("ghp_wrong", False)]):
        done = git(tmp_path, "clone", "-q", clone_url(forge, token, "octo-org/secret"), f"c{number}")
        assert (done.returncode == 0) == works, done.stderr
    plain = f"http://127.0.0.1:{forge.port}/octo-org/secret.git"
    assert git(tmp_path, "clone", "-q", plain, "c3").returncode != 0
    pushed = git(tmp_path / "c1", "push", clone_url(forge, "ghp_reader", "octo-org/secret"), "HEAD:refs/heads/x")
    assert "403" in pushed.stderr
    assert call(forge, "GET", "/repos/octo-org/secret", token="ghp_stranger")[0] == 404
    assert call(forge, "GET", "/repos/octo-org/secret", token="ghp_wrong")[0] == 401
    assert call(forge, "POST", PULLS, {"title": "T"}, token="ghp_reader")[0] == 403


def test_planted_faults_strike_as_often_as_asked(forge: Forge):
    forge.plant("status", method="GET", path="/user", status=503, times=2)
    assert [call(forge, "GET", "/user")[0] for _ in range(3)] == [503, 503, 200]
    forge.plant("lose", path="/issues$")
    with pytest.raises(OSError):
        call(forge, "POST", f"/repos/{FORGE_REPOSITORY}/issues", {"title": "T"})
    assert len(forge.repositories[FORGE_REPOSITORY].items) == 1  # carried out all the same
    forge.plant("drop", path="/issues$")
    with pytest.raises(OSError):
        call(forge, "POST", f"/repos/{FORGE_REPOSITORY}/issues", {"title": "T"})
    assert len(forge.repositories[FORGE_REPOSITORY].items) == 1
    assert [one.status for one in forge.seen("POST", ".*/issues")] == [0, 0]


def test_the_budget_is_spent_and_ends(forge: Forge):
    account = forge.add_token("ghp_poor", limit=2, remaining=2)
    assert [call(forge, "GET", "/user", token="ghp_poor")[0] for _ in range(3)] == [200, 200, 403]
    status, body = call(forge, "GET", "/rate_limit", token="ghp_poor")
    assert status == 200 and body["rate"]["remaining"] == 0 and body["rate"]["reset"] == int(account.resets_at)
