"""The objects of GitHub's API and webhooks, with every field its schemas require."""

from __future__ import annotations

import base64
import hashlib
from datetime import datetime, timezone
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from support.forge_state import CheckRun, Comment, Issue, Pull, Repository, Review

USER_URLS = (
    "followers following{/other_user} gists{/gist_id} starred{/owner}{/repo} subscriptions "
    "organizations=orgs repos events{/privacy} received_events"
).split()
REPOSITORY_URLS = (
    "forks keys{/key_id} collaborators{/collaborator} teams hooks issue_events=issues/events{/number} events "
    "assignees{/user} branches{/branch} tags blobs=git/blobs{/sha} git_tags=git/tags{/sha} git_refs=git/refs{/sha} "
    "trees=git/trees{/sha} statuses=statuses/{sha} languages stargazers contributors subscribers subscription "
    "commits{/sha} git_commits=git/commits{/sha} comments{/number} issue_comment=issues/comments{/number} "
    "contents=contents/{+path} compare=compare/{base}...{head} merges archive={archive_format}{/ref} downloads "
    "issues{/number} pulls{/number} milestones{/number} notifications{?since,all,participating} labels{/name} "
    "releases{/id} deployments"
).split()


def moment(at: float | None) -> str | None:
    if at is None:
        return None
    return datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def number_of(*parts: object) -> int:
    """A stable id for a thing that has none of its own."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:4], "big")


def node_id(kind: str, *parts: object) -> str:
    return base64.urlsafe_b64encode(f"{kind}:{'/'.join(map(str, parts))}".encode()).decode().rstrip("=")


def urls(prefix: str, words: list[str]) -> dict[str, str]:
    """`forks{/id}` is forks_url, at `prefix`/forks{/id}; `a=b` is a_url, at `prefix`/b."""
    fields = {}
    for word in words:
        name, _, path = word.partition("=")
        fields[name.partition("{")[0] + "_url"] = f"{prefix}/{path or name}".replace("/{/", "{/")
    return fields


def user(api: str, login: str) -> dict:
    site = api.removesuffix("/api/v3")
    return {
        "login": login,
        "id": number_of("user", login),
        "node_id": node_id("User", login),
        "avatar_url": f"{site}/{login}.png",
        "gravatar_id": "",
        "url": f"{api}/users/{login}",
        "html_url": f"{site}/{login}",
        **urls(f"{api}/users/{login}", USER_URLS),
        "type": "Bot" if login.endswith("[bot]") else "User",
        "site_admin": False,
    }


def repository(repo: Repository, site: str) -> dict:
    """As a webhook or a pull request shows it."""
    url = f"{repo.api}/repos/{repo.full_name}"
    counts = dict.fromkeys(
        "forks forks_count open_issues open_issues_count size stargazers_count watchers watchers_count".split(), 0
    )
    features = dict.fromkeys(
        "has_issues has_projects has_downloads has_wiki has_discussions allow_forking".split(), True
    )
    absent = dict.fromkeys("description homepage language license mirror_url".split())
    off = dict.fromkeys("archived disabled fork has_pages is_template web_commit_signoff_required".split(), False)
    return {
        "id": number_of("repo", repo.full_name),
        "node_id": node_id("Repository", repo.full_name),
        "name": repo.name,
        "full_name": repo.full_name,
        "private": repo.private,
        "owner": user(repo.api, repo.owner),
        "html_url": f"{site}/{repo.full_name}",
        "url": url,
        **urls(url, REPOSITORY_URLS),
        "created_at": moment(repo.created_at),
        "updated_at": moment(repo.created_at),
        "pushed_at": moment(repo.created_at),
        "git_url": f"git://{site.partition('://')[2]}/{repo.full_name}.git",
        "ssh_url": f"git@{site.partition('://')[2]}:{repo.full_name}.git",
        "clone_url": f"{site}/{repo.full_name}.git",
        "svn_url": f"{site}/{repo.full_name}",
        **counts,
        **features,
        **absent,
        **off,
        "default_branch": repo.default_branch,
        "topics": [],
        "visibility": "private" if repo.private else "public",
        "custom_properties": {},
    }


def full_repository(repo: Repository, site: str, permissions: dict[str, bool]) -> dict:
    return repository(repo, site) | {
        "permissions": permissions,
        "network_count": 0,
        "subscribers_count": 0,
        "allow_merge_commit": True,
        "allow_squash_merge": True,
        "allow_rebase_merge": True,
    }


def label(repo: Repository, name: str) -> dict:
    return {
        "id": number_of("label", repo.full_name, name),
        "node_id": node_id("Label", repo.full_name, name),
        "url": f"{repo.api}/repos/{repo.full_name}/labels/{name}",
        "name": name,
        "description": "",
        "color": "ededed",
        "default": False,
    }


def _side(repo: Repository, site: str, ref: str, sha: str) -> dict:
    return {
        "label": f"{repo.owner}:{ref}",
        "ref": ref,
        "sha": sha,
        "user": user(repo.api, repo.owner),
        "repo": repository(repo, site),
    }


def simple_pull(pull: Pull, site: str) -> dict:
    """As a list and a review's webhook show it."""
    repo = pull.repo
    url = f"{repo.api}/repos/{repo.full_name}/pulls/{pull.number}"
    issue = f"{repo.api}/repos/{repo.full_name}/issues/{pull.number}"
    html = f"{site}/{repo.full_name}/pull/{pull.number}"
    links = {
        "self": url,
        "html": html,
        "issue": issue,
        "comments": f"{issue}/comments",
        "review_comments": f"{url}/comments",
        "review_comment": f"{repo.api}/repos/{repo.full_name}/pulls/comments{{/number}}",
        "commits": f"{url}/commits",
        "statuses": f"{repo.api}/repos/{repo.full_name}/statuses/{pull.head_sha}",
    }
    return {
        "url": url,
        "id": number_of("pull", repo.full_name, pull.number),
        "node_id": node_id("PullRequest", repo.full_name, pull.number),
        "html_url": html,
        "diff_url": f"{html}.diff",
        "patch_url": f"{html}.patch",
        "issue_url": issue,
        "number": pull.number,
        "state": pull.state,
        "locked": False,
        "title": pull.title,
        "user": user(repo.api, pull.author),
        "body": pull.body,
        "created_at": moment(pull.created_at),
        "updated_at": moment(pull.updated_at),
        "closed_at": moment(pull.closed_at),
        "merged_at": moment(pull.closed_at) if pull.merged else None,
        "merge_commit_sha": pull.merge_sha,
        "assignee": None,
        "assignees": [],
        "requested_reviewers": [user(repo.api, login) for login in pull.reviewers],
        "requested_teams": [],
        "labels": [label(repo, name) for name in pull.labels],
        "milestone": None,
        "draft": pull.draft,
        **{f"{name}_url": links[name] for name in links if name not in ("self", "html", "issue")},
        "head": _side(repo, site, pull.head, pull.head_sha),
        "base": _side(repo, site, pull.base, repo.git.sha(pull.base) or "0" * 40),
        "_links": {name: {"href": link} for name, link in links.items()},
        "author_association": "CONTRIBUTOR",
        "auto_merge": None,
        "active_lock_reason": None,
    }


def pull_request(pull: Pull, site: str) -> dict:
    mergeable = None if pull.state == "closed" else pull.mergeable()
    return simple_pull(pull, site) | {
        "merged": pull.merged,
        "mergeable": mergeable,
        "rebaseable": mergeable,
        "mergeable_state": pull.mergeable_state(),
        "merged_by": user(pull.repo.api, pull.merged_by) if pull.merged_by else None,
        "comments": len(pull.comments),
        "review_comments": len(pull.review_comments),
        "maintainer_can_modify": False,
        **pull.statistics(),
    }


def issue(item: Issue, site: str) -> dict:
    repo = item.repo
    url = f"{repo.api}/repos/{repo.full_name}/issues/{item.number}"
    return {
        "url": url,
        "repository_url": f"{repo.api}/repos/{repo.full_name}",
        **urls(url, ["labels{/name}", "comments", "events"]),
        "html_url": f"{site}/{repo.full_name}/issues/{item.number}",
        "id": number_of("issue", repo.full_name, item.number),
        "node_id": node_id("Issue", repo.full_name, item.number),
        "number": item.number,
        "title": item.title,
        "user": user(repo.api, item.author),
        "labels": [label(repo, name) for name in item.labels],
        "state": item.state,
        "locked": False,
        "assignee": user(repo.api, item.assignees[0]) if item.assignees else None,
        "assignees": [user(repo.api, login) for login in item.assignees],
        "milestone": None,
        "comments": len(item.comments),
        "created_at": moment(item.created_at),
        "updated_at": moment(item.updated_at),
        "closed_at": moment(item.closed_at),
        "author_association": "CONTRIBUTOR",
        "body": item.body,
    }


def comment(item: Issue | Pull, one: Comment, site: str) -> dict:
    repo = item.repo
    return {
        "id": one.id,
        "node_id": node_id("IssueComment", one.id),
        "url": f"{repo.api}/repos/{repo.full_name}/issues/comments/{one.id}",
        "html_url": f"{site}/{repo.full_name}/issues/{item.number}#issuecomment-{one.id}",
        "issue_url": f"{repo.api}/repos/{repo.full_name}/issues/{item.number}",
        "body": one.body,
        "user": user(repo.api, one.author),
        "created_at": moment(one.created_at),
        "updated_at": moment(one.created_at),
        "author_association": "CONTRIBUTOR",
    }


def review_comment(pull: Pull, one: Comment, site: str) -> dict:
    repo = pull.repo
    url = f"{repo.api}/repos/{repo.full_name}/pulls/comments/{one.id}"
    html = f"{site}/{repo.full_name}/pull/{pull.number}#discussion_r{one.id}"
    fields = {
        "url": url,
        "pull_request_review_id": one.review_id or one.id,
        "id": one.id,
        "node_id": node_id("PullRequestReviewComment", one.id),
        "diff_hunk": "@@ -1 +1 @@",
        "path": one.path,
        "commit_id": pull.head_sha,
        "original_commit_id": pull.head_sha,
        "user": user(repo.api, one.author),
        "body": one.body,
        "created_at": moment(one.created_at),
        "updated_at": moment(one.created_at),
        "html_url": html,
        "pull_request_url": f"{repo.api}/repos/{repo.full_name}/pulls/{pull.number}",
        "author_association": "CONTRIBUTOR",
        "_links": {
            "self": {"href": url},
            "html": {"href": html},
            "pull_request": {"href": f"{repo.api}/repos/{repo.full_name}/pulls/{pull.number}"},
        },
        "side": "RIGHT",
        "subject_type": "line" if one.line else "file",
    }
    if one.line:
        fields["line"] = one.line
    if one.in_reply_to:
        fields["in_reply_to_id"] = one.in_reply_to
    return fields


def review(pull: Pull, one: Review, site: str) -> dict:
    repo = pull.repo
    html = f"{site}/{repo.full_name}/pull/{pull.number}#pullrequestreview-{one.id}"
    url = f"{repo.api}/repos/{repo.full_name}/pulls/{pull.number}"
    return {
        "id": one.id,
        "node_id": node_id("PullRequestReview", one.id),
        "user": user(repo.api, one.author),
        "body": one.body,
        "commit_id": pull.head_sha,
        "submitted_at": moment(one.created_at),
        "state": one.state,
        "html_url": html,
        "pull_request_url": url,
        "author_association": "COLLABORATOR",
        "_links": {"html": {"href": html}, "pull_request": {"href": url}},
    }


def check_run(repo: Repository, check: CheckRun, site: str) -> dict:
    url = f"{repo.api}/repos/{repo.full_name}/check-runs/{check.id}"
    return {
        "id": check.id,
        "name": check.name,
        "node_id": node_id("CheckRun", check.id),
        "head_sha": check.sha,
        "external_id": "",
        "url": url,
        "html_url": f"{site}/{repo.full_name}/runs/{check.id}",
        "details_url": f"{site}/{repo.full_name}/runs/{check.id}",
        "status": check.status,
        "conclusion": check.conclusion,
        "started_at": moment(check.created_at),
        "completed_at": moment(check.created_at) if check.conclusion else None,
        "output": {
            "title": None,
            "summary": None,
            "text": None,
            "annotations_count": 0,
            "annotations_url": f"{url}/annotations",
        },
        "check_suite": None,
        "app": None,
        "pull_requests": [],
    }
