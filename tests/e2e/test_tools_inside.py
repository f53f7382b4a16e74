"""A sandbox is a development machine: the tools people expect work inside it."""

from __future__ import annotations

import pytest
from e2b import CommandExitException, Sandbox


@pytest.fixture(scope="module")
def machine(server):
    """One sandbox with room for a browser."""
    variables = server.sdk_environment
    sandbox = Sandbox.create(timeout=900, api_key=variables["E2B_API_KEY"],
                             api_url=variables["E2B_API_URL"],
                             sandbox_url=variables["E2B_SANDBOX_URL"])
    yield sandbox
    sandbox.kill()


def run(machine: Sandbox, command: str, timeout: float = 60) -> str:
    return machine.commands.run(command, timeout=timeout).stdout


def internet_or_skip(machine: Sandbox) -> None:
    """Skips, saying so, where the host itself has no package registries to reach."""
    try:
        run(machine, "getent hosts $(awk '/^URIs|^deb /{print $2; exit}' /etc/apt/sources.list "
                     "/etc/apt/sources.list.d/* 2>/dev/null | cut -d/ -f3)")
    except CommandExitException:
        pytest.skip("the host reaches no Debian mirror, so nothing can be installed")


@pytest.mark.quick
def test_sudo_makes_root(machine):
    assert run(machine, "sudo -n id -u").strip() == "0"


def test_gdb_stops_at_a_breakpoint(machine):
    run(machine, "echo 'int main(void) { return 42; }' > a.c && gcc -g -o a a.c")
    output = run(machine, "gdb -batch -ex 'break main' -ex run -ex backtrace ./a 2>&1")
    assert "Breakpoint 1, main () at a.c:1" in output


def test_strace_follows_children(machine):
    assert "execve" in run(machine, "strace -f -e trace=execve sh -c 'true; true' 2>&1")


def test_git_commits(machine):
    output = run(machine, "git init -q r && cd r && git config user.email a@b.c && "
                          "git config user.name n && echo x > f && git add f && "
                          "git commit -qm first && git log --oneline")
    assert output.strip().endswith("first")


def test_memory_shown_is_the_sandboxs_own(machine):
    assert run(machine, "free -m | awk '/^Mem/{print $2}'").strip() == "1024"


def test_pip_installs(machine):
    internet_or_skip(machine)
    run(machine, "pip install --quiet six", timeout=120)
    assert run(machine, "python3 -c 'import six; print(six.__name__)'").strip() == "six"


def test_npm_installs(machine):
    internet_or_skip(machine)
    run(machine, "mkdir -p n && cd n && npm init -y >/dev/null && npm install --silent is-number",
        timeout=120)
    output = run(machine, "cd n && node -e 'console.log(require(\"is-number\")(5))'")
    assert output.strip() == "true"


@pytest.mark.timeout(420)
def test_chromium_takes_a_screenshot(machine):
    internet_or_skip(machine)
    run(machine, "sudo apt-get update -q && sudo DEBIAN_FRONTEND=noninteractive apt-get install -qy "
                 "--no-install-recommends chromium", timeout=360)
    run(machine, "echo '<h1>hello</h1>' > p.html && chromium --headless --no-sandbox --disable-gpu "
                 "--screenshot=$HOME/s.png file://$HOME/p.html 2>&1", timeout=60)
    assert machine.files.read("s.png", format="bytes")[:8] == b"\x89PNG\r\n\x1a\n"
