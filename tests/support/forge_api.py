"""The REST and GraphQL routes of the forge double, as much of GitHub's as the platform uses."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from support import forge_json as render
from support.forge_git import NotMergeable
from support.forge_state import Account, CheckRun, Comment, Issue, Pull, Repository

if TYPE_CHECKING:
    from support.forge import Forge

MERGE_METHODS = ("merge", "squash", "rebase")
REVIEW_STATES = {"APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED", "COMMENT": "COMMENTED"}


class Refusal(Exception):
    """An answer that is not a success."""

    def __init__(self, status: int, message: str, errors: list[dict | str] | None = None) -> None:
        self.status = status
        self.body = {"message": message, "documentation_url": "https://docs.github.com/rest", "status": str(status)}
        if errors is not None:
            self.body["errors"] = errors


def invalid(resource: str, **error: str) -> Refusal:
    return Refusal(422, "Validation Failed", [{"resource": resource, **error}])


@dataclass
class Request:
    forge: Forge
    account: Account | None
    query: dict[str, str]
    body: dict
    bearer: str = ""
    repo: Repository | None = None
    path: str = ""  # as it was asked for
    link: str = ""  # set by a handler that answers one page of several

    def page(self, items: list) -> list:
        size = min(max(int(self.query.get("per_page", 30)), 1), 100)
        number = max(int(self.query.get("page", 1)), 1)
        last = max(-(-len(items) // size), 1)
        if number < last:
            self.link = f'<{self.forge.here(self, page=number + 1)}>; rel="next", '
            self.link += f'<{self.forge.here(self, page=last)}>; rel="last"'
        return items[(number - 1) * size : number * size]

    def text(self, resource: str, name: str) -> str:
        value = self.body.get(name)
        if not isinstance(value, str) or not value:
            raise invalid(resource, code="missing_field", field=name)
        return value


Handler = Callable[..., tuple[int, object]]
ROUTES: list[tuple[str, re.Pattern[str], Handler]] = []


def route(method: str, pattern: str) -> Callable[[Handler], Handler]:
    """`{name}` matches a segment, `{name*}` the rest of the path."""
    regex = re.sub(r"\{(\w+)\*\}", r"(?P<\1>.+)", pattern)
    regex = re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", regex) + "$")

    def add(handler: Handler) -> Handler:
        ROUTES.append((method, regex, handler))
        return handler

    return add


def dispatch(request: Request, method: str, path: str) -> tuple[int, object]:
    known = False
    for verb, regex, handler in ROUTES:
        found = regex.match(path)
        if not found:
            continue
        known = True
        if verb != method:
            continue
        arguments = {name: unquote(value) for name, value in found.groupdict().items()}
        if "owner" in arguments:
            request.repo = find_repository(request, arguments.pop("owner"), arguments.pop("name"), method)
        return handler(request, **arguments)
    raise Refusal(405 if known else 404, "Not Found")


def find_repository(request: Request, owner: str, name: str, method: str) -> Repository:
    repo = request.forge.repositories.get(f"{owner}/{name}".lower())
    # As with GitHub, what one may not see does not exist.
    if not repo or not (request.account and request.account.sees(repo) or not repo.private):
        raise Refusal(404, "Not Found")
    if method != "GET" and not (request.account and request.account.write and request.account.sees(repo)):
        raise Refusal(403, "Resource not accessible by personal access token")
    return repo


def find_pull(request: Request, number: str) -> Pull:
    pull = request.repo.items.get(int(number)) if number.isdigit() else None
    if not isinstance(pull, Pull):
        raise Refusal(404, "Not Found")
    return pull


def find_item(request: Request, number: str) -> Issue:
    item = request.repo.items.get(int(number)) if number.isdigit() else None
    if not item:
        raise Refusal(404, "Not Found")
    return item


# ---- accounts ---------------------------------------------------------------------------------


@route("GET", "/user")
def get_user(request: Request):
    if not request.account:
        raise Refusal(401, "Requires authentication")
    return 200, render.user(request.forge.api_url, request.account.login)


@route("GET", "/rate_limit")
def get_rate_limit(request: Request):
    account = request.account or request.forge.anonymous
    rate = {
        "limit": account.limit,
        "remaining": account.remaining,
        "reset": int(account.resets_at),
        "used": account.limit - account.remaining,
    }
    return 200, {"resources": {"core": rate, "search": rate}, "rate": rate}


@route("POST", "/app/installations/{installation}/access_tokens")
def create_installation_token(request: Request, installation: str):
    app = request.forge.app
    problem = app.problem_of(request.bearer)
    if problem:
        raise Refusal(401, problem)
    if installation != app.installation_id:
        raise Refusal(404, "Not Found")
    token, account = app.new_account()
    request.forge.tokens[token] = account
    return 201, {
        "token": token,
        "expires_at": render.moment(account.expires_at),
        "permissions": {"contents": "write", "pull_requests": "write", "metadata": "read"},
        "repository_selection": "all",
    }


# ---- repositories -----------------------------------------------------------------------------


@route("GET", "/repos/{owner}/{name}")
def get_repository(request: Request):
    account = request.account
    sees = bool(account and account.sees(request.repo))
    writes = bool(sees and account.write)
    permissions = {"admin": False, "maintain": False, "push": writes, "triage": writes, "pull": True}
    return 200, render.full_repository(request.repo, request.forge.url, permissions)


@route("GET", "/repos/{owner}/{name}/branches/{branch*}")
def get_branch(request: Request, branch: str):
    repo, sha = request.repo, request.repo.git.sha(branch)
    if not sha:
        raise Refusal(404, "Branch not found")
    url = f"{repo.api}/repos/{repo.full_name}"
    return 200, {
        "name": branch,
        "commit": {"sha": sha, "url": f"{url}/commits/{sha}"},
        "_links": {"html": f"{request.forge.url}/{repo.full_name}/tree/{branch}", "self": f"{url}/branches/{branch}"},
        "protected": branch in repo.protected,
        "protection": {"enabled": branch in repo.protected},
        "protection_url": f"{url}/branches/{branch}/protection",
    }


@route("POST", "/repos/{owner}/{name}/git/refs")
def create_ref(request: Request):
    repo, ref, sha = request.repo, request.text("Reference", "ref"), request.text("Reference", "sha")
    if repo.git.run("cat-file", "-e", sha, check=False).returncode != 0:
        raise Refusal(422, "Object does not exist")
    repo.git.run("update-ref", ref, sha)
    url = f"{repo.api}/repos/{repo.full_name}/git"
    commit = {"type": "commit", "sha": sha, "url": f"{url}/commits/{sha}"}
    return 201, {"ref": ref, "node_id": render.node_id("Ref", ref), "url": f"{url}/{ref}", "object": commit}


@route("DELETE", "/repos/{owner}/{name}/git/refs/{ref*}")
def delete_branch(request: Request, ref: str):
    branch = ref.removeprefix("heads/")
    if branch == ref or not request.repo.git.sha(branch):
        raise Refusal(422, "Reference does not exist")
    if branch in request.repo.protected:
        raise Refusal(422, "Cannot delete this protected branch")
    request.repo.git.delete(branch)
    return 204, None


@route("GET", "/repos/{owner}/{name}/commits/{ref}/check-runs")
def list_checks(request: Request, ref: str):
    checks = [check for check in request.repo.checks if check.sha == ref]
    shown = [render.check_run(request.repo, check, request.forge.url) for check in request.page(checks)]
    return 200, {"total_count": len(checks), "check_runs": shown}


@route("POST", "/repos/{owner}/{name}/check-runs")
def create_check(request: Request):
    body = request.body
    check = CheckRun(
        request.forge.next_id(),
        request.text("CheckRun", "name"),
        request.text("CheckRun", "head_sha"),
        "completed" if body.get("conclusion") else body.get("status", "queued"),
        body.get("conclusion"),
    )
    request.repo.checks.append(check)
    return 201, render.check_run(request.repo, check, request.forge.url)


# ---- pull requests ----------------------------------------------------------------------------


def branch_of(repo: Repository, text: str) -> str:
    owner, _, branch = text.rpartition(":")
    return branch if owner in ("", repo.owner) else ""


@route("POST", "/repos/{owner}/{name}/pulls")
def create_pull(request: Request):
    repo, kind = request.repo, "PullRequest"
    if not request.account.pull_requests:
        raise Refusal(403, "Resource not accessible by personal access token")
    title, base = request.text(kind, "title"), request.text(kind, "base")
    head = branch_of(repo, request.text(kind, "head"))
    head_sha = repo.git.sha(head) if head else None
    if not head_sha:
        raise invalid(kind, field="head", code="invalid")
    if not repo.git.sha(base):
        raise invalid(kind, field="base", code="invalid")
    if any(p.state == "open" and (p.head, p.base) == (head, base) for p in repo.pulls):
        message = f"A pull request already exists for {repo.owner}:{head}."
        raise invalid(kind, code="custom", message=message)
    if not repo.git.commits(base, head):
        raise invalid(kind, code="custom", message=f"No commits between {base} and {head}")
    pull = Pull(
        repo=repo,
        number=repo.next_number(),
        author=request.account.login,
        title=title,
        body=request.body.get("body"),
        head=head,
        base=base,
        head_sha=head_sha,
        draft=bool(request.body.get("draft")),
    )
    repo.add(pull)
    request.forge.announce(pull, "opened", request.account.login)
    return 201, render.pull_request(pull, request.forge.url)


@route("GET", "/repos/{owner}/{name}/pulls")
def list_pulls(request: Request):
    query, repo = request.query, request.repo
    state, base, head = query.get("state", "open"), query.get("base"), query.get("head")
    found = [
        pull
        for pull in reversed(repo.pulls)
        if state in ("all", pull.state) and (not base or pull.base == base)
        # GitHub ignores a head that is not "owner:branch".
        and (not head or ":" not in head or head == f"{repo.owner}:{pull.head}")
    ]
    return 200, [render.simple_pull(pull, request.forge.url) for pull in request.page(found)]


@route("GET", "/repos/{owner}/{name}/pulls/{number}")
def get_pull(request: Request, number: str):
    return 200, render.pull_request(find_pull(request, number), request.forge.url)


@route("PATCH", "/repos/{owner}/{name}/pulls/{number}")
def update_pull(request: Request, number: str):
    pull, body, actor = find_pull(request, number), request.body, request.account.login
    if "base" in body and not request.repo.git.sha(body["base"]):
        raise invalid("PullRequest", field="base", code="invalid")
    if pull.merged and body.get("state") == "open":
        raise invalid("PullRequest", code="invalid", field="state", message="The pull request cannot be reopened.")
    pull.title, pull.body = body.get("title", pull.title), body.get("body", pull.body)
    pull.base, pull.updated_at = body.get("base", pull.base), time.time()
    state = body.get("state", pull.state)
    if state == "closed" and pull.state == "open":
        pull.close()
        request.forge.announce(pull, "closed", actor)
    elif state == "open" and pull.state == "closed":
        pull.reopen()
        request.forge.announce(pull, "reopened", actor)
    else:
        changes = {name: {"from": ""} for name in ("title", "body") if name in body}
        request.forge.announce(pull, "edited", actor, changes=changes)
    return 200, render.pull_request(pull, request.forge.url)


@route("PUT", "/repos/{owner}/{name}/pulls/{number}/merge")
def merge_pull(request: Request, number: str):
    pull, body = find_pull(request, number), request.body
    method = body.get("merge_method", "merge")
    if method not in MERGE_METHODS:
        raise Refusal(422, "Invalid request.")
    if body.get("sha") not in (None, pull.head_sha):
        raise Refusal(409, "Head branch was modified. Review and try the merge again.")
    if pull.draft:
        raise Refusal(405, "Pull Request is still a draft")
    if pull.state == "closed":
        raise Refusal(405, "Pull Request is not mergeable")
    title = body.get("commit_title") or f"Merge pull request #{number} from {request.repo.owner}/{pull.head}"
    statistics = pull.statistics()
    try:
        pull.merge_sha = request.repo.git.merge(pull.base, pull.head_sha, method, title)
    except NotMergeable:
        raise Refusal(405, "Pull Request is not mergeable") from None
    pull.close(merged_by=request.account.login)
    pull.final_statistics = statistics
    request.forge.announce(pull, "closed", request.account.login)
    return 200, {"sha": pull.merge_sha, "merged": True, "message": "Pull Request successfully merged"}


@route("PUT", "/repos/{owner}/{name}/pulls/{number}/update-branch")
def update_branch(request: Request, number: str):
    pull, git = find_pull(request, number), request.repo.git
    if request.body.get("expected_head_sha") not in (None, pull.head_sha):
        raise Refusal(422, "expected head sha didn’t match current head ref.")
    if pull.state == "closed":
        raise Refusal(422, "Pull request is closed.")
    if not pull.behind():
        raise Refusal(422, "There are no new commits on the base branch.")
    before = pull.head_sha
    try:
        git.merge(pull.head, git.sha(pull.base), "merge", f"Merge branch '{pull.base}' into {pull.head}")
    except NotMergeable:
        raise Refusal(422, "merge conflict between base and head") from None
    for moved in request.repo.follow_branches():
        request.forge.announce(moved, "synchronize", request.account.login, before=before, after=moved.head_sha)
    url = f"{request.repo.api}/repos/{request.repo.full_name}/pulls/{number}"
    return 202, {"message": "Updating pull request branch.", "url": url}


@route("POST", "/repos/{owner}/{name}/pulls/{number}/requested_reviewers")
def request_reviewers(request: Request, number: str):
    pull = find_pull(request, number)
    for login in request.body.get("reviewers", []):
        if login == pull.author:
            raise Refusal(422, "Review cannot be requested from pull request author.")
        if login not in request.forge.people:
            raise Refusal(422, "Reviews may only be requested from collaborators.")
    pull.reviewers += [login for login in request.body.get("reviewers", []) if login not in pull.reviewers]
    return 201, render.simple_pull(pull, request.forge.url)


def remark(pull: Pull, body: dict) -> tuple[str, int, str]:
    """Path, line and text, if they are of the diff."""
    path, line, text = body.get("path"), body.get("line", 0), body.get("body")
    if not isinstance(text, str) or not text:
        raise invalid("PullRequestReviewComment", code="missing_field", field="body")
    if path not in pull.repo.git.changed_files(pull.base, pull.head_sha):
        raise invalid("PullRequestReviewComment", code="invalid", field="path")
    if not line and body.get("subject_type") != "file":
        raise invalid("PullRequestReviewComment", code="invalid", field="line")
    return path, line, text


@route("GET", "/repos/{owner}/{name}/pulls/{number}/reviews")
def list_reviews(request: Request, number: str):
    pull = find_pull(request, number)
    return 200, [render.review(pull, one, request.forge.url) for one in request.page(pull.reviews)]


@route("POST", "/repos/{owner}/{name}/pulls/{number}/reviews")
def create_review(request: Request, number: str):
    pull, body, author = find_pull(request, number), request.body, request.account.login
    state = REVIEW_STATES.get(body.get("event", ""))
    if not state:
        raise invalid("PullRequestReview", code="missing_field", field="event")
    if author == pull.author and state != "COMMENTED":
        wanted = "approve" if state == "APPROVED" else "request changes on"
        raise Refusal(422, "Unprocessable Entity", [f"Can not {wanted} your own pull request"])
    if state != "APPROVED" and not body.get("body"):
        raise Refusal(422, "Unprocessable Entity", ["Body can't be blank"])
    remarks = [remark(pull, one) for one in body.get("comments", [])]
    review = request.forge.review(pull, author, state, body.get("body", ""), remarks)
    return 200, render.review(pull, review, request.forge.url)


@route("GET", "/repos/{owner}/{name}/pulls/{number}/comments")
def list_review_comments(request: Request, number: str):
    pull = find_pull(request, number)
    return 200, [render.review_comment(pull, one, request.forge.url) for one in request.page(pull.review_comments)]


@route("POST", "/repos/{owner}/{name}/pulls/{number}/comments")
def create_review_comment(request: Request, number: str):
    pull = find_pull(request, number)
    if request.text("PullRequestReviewComment", "commit_id") != pull.head_sha:
        raise invalid("PullRequestReviewComment", code="invalid", field="commit_id")
    # A single comment is a review of its own.
    request.forge.review(pull, request.account.login, "COMMENTED", "", [remark(pull, request.body)])
    return 201, render.review_comment(pull, pull.review_comments[-1], request.forge.url)


@route("POST", "/repos/{owner}/{name}/pulls/{number}/comments/{comment}/replies")
def reply_to_review_comment(request: Request, number: str, comment: str):
    pull = find_pull(request, number)
    parent = next((one for one in pull.review_comments if str(one.id) == comment), None)
    if not parent:
        raise Refusal(404, "Not Found")
    text, author = request.text("Comment", "body"), request.account.login
    one = Comment(request.forge.next_id(), author, text, parent.path, parent.line, parent.id)
    pull.review_comments.append(one)
    return 201, render.review_comment(pull, one, request.forge.url)


@route("POST", "/graphql")
def graphql(request: Request):
    query, variables = request.text("Query", "query"), request.body.get("variables", {})
    if "markPullRequestReadyForReview" not in query:
        return 200, {"errors": [{"type": "undefinedField", "message": "This double knows no such field."}]}
    node = next((str(value) for value in variables.values()), "")
    for repo in request.forge.repositories.values():
        for pull in repo.pulls:
            if render.node_id("PullRequest", repo.full_name, pull.number) != node:
                continue
            if not (request.account and request.account.write and request.account.sees(repo)):
                return 200, {"data": None, "errors": [{"type": "FORBIDDEN", "message": "Resource not accessible"}]}
            pull.draft = False
            request.forge.announce(pull, "ready_for_review", request.account.login)
            return 200, {"data": {"markPullRequestReadyForReview": {"pullRequest": {"isDraft": False}}}}
    message = f"Could not resolve to a node with the global id of '{node}'"
    return 200, {"data": None, "errors": [{"type": "NOT_FOUND", "message": message}]}


# ---- issues -----------------------------------------------------------------------------------


@route("POST", "/repos/{owner}/{name}/issues")
def create_issue(request: Request):
    repo, body = request.repo, request.body
    issue = Issue(
        repo,
        repo.next_number(),
        request.account.login,
        request.text("Issue", "title"),
        body.get("body"),
        labels=list(body.get("labels", [])),
        assignees=list(body.get("assignees", [])),
    )
    repo.add(issue)
    return 201, render.issue(issue, request.forge.url)


@route("GET", "/repos/{owner}/{name}/issues/{number}")
def get_issue(request: Request, number: str):
    return 200, render.issue(find_item(request, number), request.forge.url)


@route("GET", "/repos/{owner}/{name}/issues/{number}/comments")
def list_comments(request: Request, number: str):
    item = find_item(request, number)
    return 200, [render.comment(item, one, request.forge.url) for one in request.page(item.comments)]


@route("POST", "/repos/{owner}/{name}/issues/{number}/comments")
def create_comment(request: Request, number: str):
    item = find_item(request, number)
    one = Comment(request.forge.next_id(), request.account.login, request.text("Comment", "body"))
    item.comments.append(one)
    return 201, render.comment(item, one, request.forge.url)


@route("POST", "/repos/{owner}/{name}/issues/{number}/labels")
def add_labels(request: Request, number: str):
    item = find_item(request, number)
    item.labels += [name for name in request.body.get("labels", []) if name not in item.labels]
    return 200, [render.label(request.repo, name) for name in item.labels]
