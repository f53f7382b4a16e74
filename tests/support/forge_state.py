"""What the forge double remembers: accounts, repositories, pull requests, issues."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from support.forge_git import GitRepository


@dataclass
class Account:
    """Whom a token stands for, and what it may."""

    login: str
    write: bool = True
    pull_requests: bool = True  # may open them; a fine-grained token may be without
    repositories: set[str] | None = None  # "owner/name"; None = all
    limit: int = 5000
    remaining: int = 5000
    resets_at: float = field(default_factory=lambda: time.time() + 3600)
    expires_at: float | None = None  # of an installation's token

    def sees(self, repo: Repository) -> bool:
        return self.repositories is None or repo.full_name in self.repositories


@dataclass
class Comment:
    id: int
    author: str
    body: str
    path: str = ""  # these four: of a review comment
    line: int = 0
    in_reply_to: int = 0
    review_id: int = 0
    created_at: float = field(default_factory=time.time)


@dataclass
class Review:
    id: int
    author: str
    body: str
    state: str  # "APPROVED", "CHANGES_REQUESTED", "COMMENTED"
    created_at: float = field(default_factory=time.time)


@dataclass
class CheckRun:
    id: int
    name: str
    sha: str
    status: str
    conclusion: str | None
    created_at: float = field(default_factory=time.time)


@dataclass
class Issue:
    repo: Repository
    number: int
    author: str
    title: str
    body: str | None = None
    state: str = "open"
    labels: list[str] = field(default_factory=list)
    assignees: list[str] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    created_at: float = field(default_factory=time.time)
    updated_at: float = field(default_factory=time.time)
    closed_at: float | None = None


@dataclass
class Pull(Issue):
    head: str = ""
    base: str = ""
    head_sha: str = ""
    draft: bool = False
    reviewers: list[str] = field(default_factory=list)
    reviews: list[Review] = field(default_factory=list)
    review_comments: list[Comment] = field(default_factory=list)
    merged: bool = False
    merged_by: str = ""
    merge_sha: str | None = None
    final_statistics: dict[str, int] | None = None  # what a merged one had

    def mergeable(self) -> bool:
        return self.repo.git.mergeable(self.base, self.head_sha)

    def behind(self) -> bool:
        """The base has commits that the branch has not."""
        return bool(self.repo.git.commits(self.head_sha, self.base))

    def mergeable_state(self) -> str:
        if self.state == "closed":
            return "unknown"
        if self.draft:
            return "draft"
        if not self.mergeable():
            return "dirty"
        return "behind" if self.repo.strict and self.behind() else "clean"

    def statistics(self) -> dict[str, int]:
        if self.final_statistics is None:
            return self.repo.git.statistics(self.base, self.head_sha)
        return self.final_statistics

    def close(self, merged_by: str = "") -> None:
        self.final_statistics = self.statistics()
        self.state, self.merged, self.merged_by = "closed", bool(merged_by), merged_by
        self.closed_at = time.time()

    def reopen(self) -> None:
        self.state, self.closed_at, self.final_statistics = "open", None, None


@dataclass
class Repository:
    owner: str
    name: str
    private: bool
    default_branch: str
    git: GitRepository
    api: str  # the URL of the REST API
    protected: set[str] = field(default_factory=set)
    strict: bool = False  # branches must be up to date before they are merged; else nobody is "behind"
    items: dict[int, Issue] = field(default_factory=dict)  # issues and pull requests count together
    checks: list[CheckRun] = field(default_factory=list)
    created_at: float = field(default_factory=time.time)

    @property
    def full_name(self) -> str:
        return f"{self.owner}/{self.name}"

    @property
    def pulls(self) -> list[Pull]:
        return [item for item in self.items.values() if isinstance(item, Pull)]

    def add(self, item: Issue) -> None:
        self.items[item.number] = item

    def next_number(self) -> int:
        return len(self.items) + 1

    def follow_branches(self) -> list[Pull]:
        """After a push: the open pull requests that got new commits."""
        branches, moved = self.git.branches(), []
        for pull in self.pulls:
            if pull.state == "open" and branches.get(pull.head, pull.head_sha) != pull.head_sha:
                pull.head_sha, pull.updated_at = branches[pull.head], time.time()
                moved.append(pull)
        return moved


class App:
    """A GitHub App with one installation. It checks its JWTs as GitHub does."""

    id = "4711"
    installation_id = "815"
    token_seconds = 3600

    def __init__(self, directory: Path) -> None:
        self.key_file = directory / "app-key.pem"
        self._openssl("genrsa", "-traditional", "-out", str(self.key_file), "2048")
        text = self._openssl("rsa", "-in", str(self.key_file), "-noout", "-modulus")
        self._modulus = int(text.strip().partition("=")[2], 16)

    @staticmethod
    def _openssl(*arguments: str) -> str:
        done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=True, timeout=60)
        return done.stdout

    def problem_of(self, jwt: str) -> str:
        """Why GitHub would not take this JWT; "" if it would."""
        try:
            head, claims, signature = (
                base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in jwt.split(".")
            )
            if json.loads(head) != {"alg": "RS256", "typ": "JWT"}:
                return "the algorithm is not RS256"
            claim = json.loads(claims)
            issued, expires = int(claim["iat"]), int(claim["exp"])
        except (ValueError, KeyError, TypeError):
            return "A JSON web token could not be decoded"
        signed = jwt.rpartition(".")[0].encode()
        if not self._signed(signed, signature):
            return "the signature is not of the App's key"
        if str(claim.get("iss")) != self.id:
            return "'Issuer' claim ('iss') must be the App's id"
        now = time.time()
        if issued > now + 5:
            return "'Issued at' claim ('iat') must be in the past"
        if not now < expires <= issued + 660 or expires > now + 605:
            return "'Expiration time' claim ('exp') is too far in the future"
        return ""

    def _signed(self, text: bytes, signature: bytes) -> bool:
        """RSASSA-PKCS1-v1_5 with SHA-256."""
        size = (self._modulus.bit_length() + 7) // 8
        info = bytes.fromhex("3031300d060960864801650304020105000420") + hashlib.sha256(text).digest()
        padded = b"\x00\x01" + b"\xff" * (size - len(info) - 3) + b"\x00" + info
        return pow(int.from_bytes(signature, "big"), 65537, self._modulus) == int.from_bytes(padded, "big")

    def new_account(self) -> tuple[str, Account]:
        account = Account("caisson-app[bot]", limit=15000, remaining=15000)
        account.expires_at = time.time() + self.token_seconds
        return "ghs_" + secrets.token_hex(18), account
