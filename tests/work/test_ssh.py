"""Repositories by SSH: the deploy key is used outside, the sandbox speaks HTTP to its broker as ever."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator

import pytest
from support.forge import Forge
from support.forge_plugin import FORGE_REPOSITORY
from support.server import CaissonServer, ServerError
from support.sshd import Sshd
from support.work import BUSY, Platform, settings_for

pytestmark = pytest.mark.timeout(240)
PLAIN_CLONES = """
set -e
url=$(git remote get-url origin)
git config --global user.name A && git config --global user.email a@example.com
for version in 0 1 2; do
  git -c protocol.version=$version clone -q "$url" /tmp/whole$version
  git -c protocol.version=$version clone -q --depth 1 "$url" /tmp/shallow$version
  test "$(git -C /tmp/shallow$version rev-list --count HEAD)" = 1
done
# Commits on both sides, so that they have to find out what they have in common.
for i in $(seq 60); do git commit -q --allow-empty -m "chore: ours $i"; done
git push -q origin HEAD
branch=$(git branch --show-current)
for version in 0 1 2; do
  for i in $(seq 60); do git -C /tmp/whole$version commit -q --allow-empty -m "chore: theirs $version $i"; done
  git -C /tmp/whole$version -c protocol.version=$version fetch -q origin "$branch"
  test "$(git -C /tmp/whole$version rev-parse FETCH_HEAD)" = "$(git rev-parse HEAD)"
  git -C /tmp/shallow$version -c protocol.version=$version fetch -q --unshallow origin
done
echo fetched
"""


@pytest.fixture
def sshd(forge: Forge) -> Iterator[Sshd]:
    with Sshd(forge.directory / "repositories") as instance:
        yield instance


def settings(forge: Forge, sshd: Sshd, **more: str) -> dict[str, str]:
    return settings_for(forge, CAISSON_GIT_SSH_KEY_FILE=str(sshd.client_key),
                        **{"CAISSON_GIT_SSH_KNOWN_HOSTS": str(sshd.known_hosts), **more})


@pytest.fixture
def by_ssh(make_server, forge: Forge, sshd: Sshd) -> Platform:
    return Platform(make_server(env=settings(forge, sshd)))


def output_of(platform: Platform, started: dict) -> str:
    return platform.output(execution_id=started["execution_id"])


def wait_until(condition: Callable[[], object], deadline_s: float = 60) -> None:
    deadline = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_task_becomes_a_pull_request(by_ssh: Platform, forge: Forge, sshd: Sshd) -> None:
    part = sshd.client_key.read_text().splitlines()[1][:40]
    script = BUSY.format(file="work.txt") + f"; git remote -v; ! grep -rqsF {part} /home /tmp /run /etc /proc/self/environ"
    started = by_ssh.start(by_ssh.add_agent(script), repo_url=sshd.url(FORGE_REPOSITORY))
    by_ssh.wait(started)
    (pull,) = forge.repositories[FORGE_REPOSITORY].pulls
    assert forge.repositories[FORGE_REPOSITORY].git.file(pull.head, "work.txt") == "done\n"
    assert "http://127.0.0.1:49990/octo-org/widget.git" in output_of(by_ssh, started)
    # Git went by SSH alone; the API is still asked by HTTP.
    assert not [one for one in forge.requests if "git-" in one.path or "info/refs" in one.path]
    commands = sshd.commands()
    assert f"version=2 git-upload-pack '{FORGE_REPOSITORY}.git'" in commands
    assert f"version=0 git-receive-pack '{FORGE_REPOSITORY}.git'" in commands


def test_every_version_of_the_protocol(by_ssh: Platform, sshd: Sshd) -> None:
    started = by_ssh.start(by_ssh.add_agent(PLAIN_CLONES), repo_url=sshd.url(FORGE_REPOSITORY))
    by_ssh.wait(started)
    assert output_of(by_ssh, started).endswith("fetched\n")
    assert {line.split()[0] for line in sshd.commands()} == {"version=0", "version=1", "version=2"}


def test_a_server_that_knows_only_the_first_version(make_server, forge: Forge) -> None:
    with Sshd(forge.directory / "repositories", accept_protocol=False) as sshd:
        platform = Platform(make_server(env=settings(forge, sshd)))
        started = platform.start(platform.add_agent(PLAIN_CLONES), repo_url=sshd.url(FORGE_REPOSITORY))
        platform.wait(started)
        assert output_of(platform, started).endswith("fetched\n")
        assert {line.split()[0] for line in sshd.commands()} == {"version=0"}


def test_large_pushes_and_large_requests(by_ssh: Platform, forge: Forge, sshd: Sshd) -> None:
    """More than git puts into one message: it asks first whether it may, then streams."""
    script = "head -c 12000000 /dev/urandom > big; sha256sum big"
    started = by_ssh.start(by_ssh.add_agent(script), repo_url=sshd.url(FORGE_REPOSITORY))
    by_ssh.wait(started)
    (pull,) = forge.repositories[FORGE_REPOSITORY].pulls
    git = forge.repositories[FORGE_REPOSITORY].git
    assert git.run("cat-file", "-s", f"{pull.head}:big").stdout == "12000000\n"
    git.run("fsck", "--strict")


def test_the_same_rules_as_by_http(by_ssh: Platform, forge: Forge, sshd: Sshd) -> None:
    forge.add_repository("octo-org/other")
    before = forge.repositories[FORGE_REPOSITORY].git.sha("main")
    script = """
    git -c user.name=A -c user.email=a@b commit -q --allow-empty -m x
    git push origin HEAD:main 2>&1
    git push origin HEAD:refs/tags/v1 2>&1
    git ls-remote http://127.0.0.1:49990/octo-org/other.git 2>&1
    """
    started = by_ssh.start(by_ssh.add_agent(script + "true"), repo_url=sshd.url(FORGE_REPOSITORY))
    by_ssh.wait(started)
    said = output_of(by_ssh, started)
    assert "this sandbox may push only to" in said
    assert "only branches may be pushed from this sandbox" in said
    assert "may use the repository octo-org/widget only" in said
    assert forge.repositories[FORGE_REPOSITORY].git.sha("main") == before
    assert not [line for line in sshd.commands() if "other.git" in line]


def test_the_routes_of_a_sandbox(by_ssh: Platform, forge: Forge, sshd: Sshd) -> None:
    """A checkout remembers the way it came, also when it is named in short."""
    sandbox = by_ssh.ask("POST", "/sandboxes", {}, 201).json()
    git = f"/sandboxes/{sandbox['id']}/git"
    by_ssh.ask("POST", f"{git}/clone", {"repo_url": sshd.url(FORGE_REPOSITORY)}, 200)
    by_ssh.ask("POST", f"{git}/branch", {"name": "by-route", "repo": FORGE_REPOSITORY}, 200)
    by_ssh.ask("POST", f"{git}/tag", {"name": "v1", "repo": FORGE_REPOSITORY}, 200)
    pushed = by_ssh.ask("POST", f"{git}/push", {"repo": FORGE_REPOSITORY}, 200).json()
    assert forge.repositories[FORGE_REPOSITORY].git.sha("by-route") == pushed["sha"]
    assert not [one for one in forge.requests if "git-" in one.path or "info/refs" in one.path]
    by_ssh.ask("DELETE", f"/sandboxes/{sandbox['id']}")


def test_a_server_that_is_killed_leaves_no_ssh_behind(by_ssh: Platform, forge: Forge, sshd: Sshd) -> None:
    sshd.hold.touch()  # the next program there waits
    started = by_ssh.start(by_ssh.add_agent(BUSY.format(file="work.txt")), repo_url=sshd.url(FORGE_REPOSITORY))
    wait_until(lambda: sshd.commands() and sshd.clients())
    by_ssh.server.crash()
    sshd.hold.unlink()
    wait_until(lambda: not sshd.clients())
    by_ssh.server.restart()
    by_ssh.wait(started)
    (pull,) = forge.repositories[FORGE_REPOSITORY].pulls
    assert forge.repositories[FORGE_REPOSITORY].git.file(pull.head, "work.txt") == "done\n"


def test_failures_are_told_plainly(make_server, forge: Forge, sshd: Sshd) -> None:
    def failure(repository: str = FORGE_REPOSITORY, **more: str) -> str:
        platform = Platform(make_server(env=settings(forge, sshd, **more)))
        started = platform.start(platform.add_agent("true"), repo_url=sshd.url(repository))
        return platform.wait_for_error(started)

    stranger = failure(CAISSON_GIT_SSH_KNOWN_HOSTS=str(sshd.trust("")))
    assert "is not known: the server connects only to hosts in git_ssh_known_hosts" in stranger
    impostor = failure(CAISSON_GIT_SSH_KNOWN_HOSTS=str(sshd.trust(sshd.other_key())))
    assert "is not the one in git_ssh_known_hosts" in impostor
    assert sshd.commands() == []
    (sshd.folder / "authorized").write_text("")
    assert "refused the server's SSH key" in failure()


def test_a_repository_that_is_not_there(by_ssh: Platform, sshd: Sshd) -> None:
    started = by_ssh.start(by_ssh.add_agent("true"), repo_url=sshd.url("octo-org/nothing"))
    assert "Repository not found" in by_ssh.wait_for_error(started)


def test_settings_that_cannot_work_stop_the_start(forge: Forge, sshd: Sshd) -> None:
    def refusal(**more: str) -> str:
        server = CaissonServer(env=settings(forge, sshd, **more))
        with pytest.raises(ServerError) as refused:
            server.start()
        shutil.rmtree(server.scratch, ignore_errors=True)
        return str(refused.value)

    assert "needs git_ssh_known_hosts" in refusal(CAISSON_GIT_SSH_KNOWN_HOSTS="")
    sshd.client_key.chmod(0o000)
    assert "must be readable for the user of the server" in refusal()
