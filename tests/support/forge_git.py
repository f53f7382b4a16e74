"""Bare repositories of the forge double, and git's smart HTTP in front of them."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

IDENTITY = {
    "GIT_AUTHOR_NAME": "Forge",
    "GIT_AUTHOR_EMAIL": "forge@example.com",
    "GIT_COMMITTER_NAME": "Forge",
    "GIT_COMMITTER_EMAIL": "forge@example.com",
}
PLAIN = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
DEADLINE_S = 60


class NotMergeable(Exception):
    """The branches change the same lines."""


class GitRepository:
    def __init__(self, path: Path) -> None:
        self.path = path

    def run(self, *arguments: str, check: bool = True, text: str = "") -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, **IDENTITY, **PLAIN}
        return subprocess.run(
            ["git", "-C", str(self.path), *arguments],
            env=environment,
            input=text,
            capture_output=True,
            text=True,
            check=check,
            timeout=DEADLINE_S,
        )

    def create(self, default_branch: str, files: dict[str, str]) -> None:
        self.path.mkdir(parents=True)
        self.run("init", "--quiet", "--bare", f"--initial-branch={default_branch}")
        self.run("config", "http.receivepack", "true")
        if files:
            self.commit(default_branch, files, "chore: first commit")

    def commit(self, branch: str, files: dict[str, str], message: str, base: str = "") -> str:
        """Adds a commit with these files to a branch, which starts at `base` if it is new."""
        parent = self.sha(branch) or (self.sha(base) if base else None)
        entries = {}
        if parent:
            for line in self.run("ls-tree", "-r", parent).stdout.splitlines():
                meta, _, name = line.partition("\t")
                entries[name] = meta.split()
        with tempfile.TemporaryDirectory() as scratch:
            index = {"GIT_INDEX_FILE": f"{scratch}/index"}
            for name, content in files.items():
                blob = self.run("hash-object", "-w", "--stdin", text=content).stdout.strip()
                entries[name] = ["100644", "blob", blob]
            lines = "".join(f"{mode} {sha}\t{name}\n" for name, (mode, _, sha) in entries.items())
            subprocess.run(
                ["git", "-C", str(self.path), "update-index", "--add", "--index-info"],
                env={**os.environ, **PLAIN, **index},
                input=lines,
                text=True,
                check=True,
                timeout=DEADLINE_S,
            )
            tree = subprocess.run(
                ["git", "-C", str(self.path), "write-tree"],
                env={**os.environ, **PLAIN, **index},
                capture_output=True,
                text=True,
                check=True,
                timeout=DEADLINE_S,
            ).stdout.strip()
        sha = self._commit_tree(tree, message, *([parent] if parent else []))
        self.run("update-ref", f"refs/heads/{branch}", sha)
        return sha

    def _commit_tree(self, tree: str, message: str, *parents: str) -> str:
        arguments = [word for parent in parents for word in ("-p", parent)]
        return self.run("commit-tree", tree, *arguments, "-m", message).stdout.strip()

    def branches(self) -> dict[str, str]:
        lines = self.run("for-each-ref", "--format=%(refname:lstrip=2) %(objectname)", "refs/heads").stdout
        return dict(line.rsplit(" ", 1) for line in lines.splitlines())

    def sha(self, branch: str) -> str | None:
        done = self.run("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}", check=False)
        return done.stdout.strip() or None

    def commits(self, base: str, head: str) -> list[str]:
        """What `head` has and `base` has not, oldest first."""
        return self.run("rev-list", "--reverse", f"{base}..{head}").stdout.split()

    def statistics(self, base: str, head: str) -> dict[str, int]:
        lines = [line.split("\t") for line in self.run("diff", "--numstat", f"{base}...{head}").stdout.splitlines()]
        return {
            "commits": len(self.commits(base, head)),
            "additions": sum(int(line[0]) for line in lines if line[0] != "-"),
            "deletions": sum(int(line[1]) for line in lines if line[1] != "-"),
            "changed_files": len(lines),
        }

    def changed_files(self, base: str, head: str) -> list[str]:
        return self.run("diff", "--name-only", f"{base}...{head}").stdout.splitlines()

    def file(self, branch: str, name: str) -> str:
        return self.run("show", f"refs/heads/{branch}:{name}").stdout

    def log(self, branch: str) -> list[str]:
        return self.run("log", "--format=%s", branch).stdout.splitlines()

    def delete(self, branch: str) -> None:
        self.run("update-ref", "-d", f"refs/heads/{branch}")

    def mergeable(self, base: str, head: str) -> bool:
        return self.run("merge-tree", "--write-tree", base, head, check=False).returncode == 0

    def merge(self, base: str, head: str, method: str, message: str) -> str:
        """Merges the commit `head` into the branch `base`; the new tip."""
        tip = self.sha(base)
        assert tip
        merged = self.run("merge-tree", "--write-tree", tip, head, check=False)
        if merged.returncode != 0:
            raise NotMergeable
        tree = merged.stdout.splitlines()[0]
        if method == "rebase":
            sha = self._rebase(tip, head)
        else:
            sha = self._commit_tree(tree, message, tip, *([head] if method == "merge" else []))
        self.run("update-ref", f"refs/heads/{base}", sha, tip)
        return sha

    def _rebase(self, tip: str, head: str) -> str:
        with tempfile.TemporaryDirectory() as scratch:
            self.run("worktree", "add", "--quiet", "--detach", f"{scratch}/tree", head)
            tree = GitRepository(Path(scratch) / "tree")
            try:
                if tree.run("rebase", "--quiet", tip, check=False).returncode != 0:
                    raise NotMergeable
                return tree.run("rev-parse", "HEAD").stdout.strip()
            finally:
                self.run("worktree", "remove", "--force", f"{scratch}/tree")


def http_backend(root: Path, request: dict[str, str], body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
    """Asks `git http-backend`; `request` has its CGI variables. Status, headers, body."""
    environment = {
        "PATH": os.environ["PATH"],
        **PLAIN,
        "GIT_PROJECT_ROOT": str(root),
        "GIT_HTTP_EXPORT_ALL": "1",
        "REMOTE_ADDR": "127.0.0.1",
        "CONTENT_LENGTH": str(len(body)),
        **request,
    }
    done = subprocess.run(
        ["git", "http-backend"], env=environment, input=body, capture_output=True, timeout=DEADLINE_S
    )
    head, _, content = done.stdout.partition(b"\r\n\r\n")
    if not head:
        return 500, [], done.stderr
    headers = [tuple(line.split(": ", 1)) for line in head.decode().split("\r\n")]
    status = next((int(value.split()[0]) for name, value in headers if name == "Status"), 200)
    return status, [h for h in headers if h[0] != "Status"], content
