"""The `base` template holds what the engine relies on and what agents expect."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="session")
def template() -> Path:
    done = subprocess.run([ROOT / "tools/prepare-template", "base", "--quiet"], text=True,
                          stdout=subprocess.PIPE, timeout=200, check=True)
    return Path(done.stdout.strip())


@pytest.fixture(scope="session")
def rootfs(template: Path) -> Path:
    return template / "rootfs"


def in_tree(rootfs: Path, command: str, user: str = "user") -> str:
    """Runs a command in the tree, read-only for it, with a mount and pid namespace of its own."""
    script = f'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && mount -t proc proc "$0/proc" && ' \
             f'exec chroot "$0" su --login {user} --command "$1"'
    done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "bash", "-c", script, rootfs, command],
                          text=True, capture_output=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.quick
def test_template_json(template: Path) -> None:
    content = json.loads((template / "template.json").read_text())
    recipe, tools = content.pop("recipe"), {tool["name"]: tool["version"] for tool in content.pop("tools")}
    assert template.name == f"base-{recipe[:16]}"
    assert content == {"id": "base", "aliases": ["base"], "cpuCount": 2, "memoryMB": 1024,
                       "diskSizeMB": 10240, "user": "user", "workdir": "/home/user", "env": {}}
    assert {"git", "python3", "nodejs", "curl"} <= tools.keys() and all(tools.values())


@pytest.mark.quick
def test_devices_are_static_nodes(rootfs: Path) -> None:
    expected = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9),
                "tty": (5, 0), "fuse": (10, 229)}
    for name, numbers in expected.items():
        info = (rootfs / "dev" / name).lstat()
        assert stat.S_ISCHR(info.st_mode) and stat.S_IMODE(info.st_mode) == 0o666, name
        assert (os.major(info.st_rdev), os.minor(info.st_rdev)) == numbers, name
    links = {"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0",
             "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"}
    for name, target in links.items():
        assert os.readlink(rootfs / "dev" / name) == target
    assert sorted(os.listdir(rootfs / "dev")) == sorted([*expected, *links, "pts", "shm"])


@pytest.mark.quick
@pytest.mark.parametrize("path,mode", [
    ("", 0o755), ("tmp", 0o1777), ("var/tmp", 0o1777), ("dev/shm", 0o1777), (".caisson", 0o755),
    ("proc", 0o555), ("sys", 0o555), ("home/user", 0o755), ("root", 0o700)])
def test_modes_of_folders(rootfs: Path, path: str, mode: int) -> None:
    info = (rootfs / path).lstat()
    assert stat.S_ISDIR(info.st_mode) and stat.S_IMODE(info.st_mode) == mode


@pytest.mark.quick
def test_files_the_engine_relies_on(rootfs: Path) -> None:
    assert (rootfs / "etc/hostname").read_text() == "caisson\n"
    assert (rootfs / "etc/resolv.conf").read_text() == "nameserver 198.18.0.1\n"
    hosts = (rootfs / "etc/hosts").read_text().splitlines()
    assert "127.0.0.1 localhost" in hosts and "127.0.1.1 caisson" in hosts
    assert any(line.startswith("::1 localhost") for line in hosts)
    for name in ("etc/machine-id", ".caisson/envd"):
        assert (rootfs / name).is_file() and not (rootfs / name).is_symlink()
        assert (rootfs / name).read_bytes() == b""
    for name in ("proc", "sys", "tmp", "var/tmp", "var/lib/apt/lists"):
        assert [e for e in os.listdir(rootfs / name) if e not in ("auxfiles", "partial", "lock")] == [], name


def test_tools_are_there(rootfs: Path) -> None:
    tools = ("bash git gh python python3 pip node npm npx curl wget sudo gcc g++ make rg jq ps ss fuser less nano vi "
             "unzip zip xz ssh gdb strace file tree tput getfattr nc dig ping rsync sqlite3 lsof openssl apt-get")
    found = in_tree(rootfs, f"for t in {tools}; do command -v $t > /dev/null || command -v /usr/sbin/$t > /dev/null "
                            "|| echo missing $t; done; echo end")
    assert found == "end"


def test_user_and_sudo(rootfs: Path) -> None:
    assert in_tree(rootfs, "id -u; id -g; id -un; pwd; echo $SHELL").split() == [
        "1000", "1000", "user", "/home/user", "/bin/bash"]
    assert in_tree(rootfs, "sudo -n id -u") == "0"


def test_package_managers_install(rootfs: Path, tmp_path: Path) -> None:
    """As root, on a writable layer, from local sources: needs no network."""
    for name in ("upper", "work", "merged"):
        (tmp_path / name).mkdir()
    script = """set -e
        mount -t overlay overlay -o "lowerdir=$0,upperdir=$1/upper,workdir=$1/work" "$1/merged"
        mount -t proc proc "$1/merged/proc"; mount -t devpts devpts "$1/merged/dev/pts"
        exec chroot "$1/merged" su --login root --command "$2" """
    done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "bash", "-c", script, rootfs, tmp_path, INSTALL],
                          text=True, capture_output=True, timeout=200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-3:] == ["from apt", "from npm", "from pip"]


INSTALL = r"""set -e
cd "$(mktemp -d)"
mkdir -p deb/DEBIAN deb/usr/bin
printf 'Package: hello-deb\nVersion: 1\nArchitecture: all\nMaintainer: t <t@localhost>\nDescription: t\n' > deb/DEBIAN/control
printf '#!/bin/sh\necho from apt\n' > deb/usr/bin/hello-deb; chmod 755 deb/usr/bin/hello-deb
dpkg-deb --build deb hello.deb
apt-get install -y ./hello.deb
mkdir npm; printf '{"name":"hello-npm","version":"1.0.0","bin":"cli.js"}' > npm/package.json
printf '#!/usr/bin/env node\nconsole.log("from npm")\n' > npm/cli.js; chmod 755 npm/cli.js
npm install --offline -g "$(npm pack --silent ./npm)"
mkdir -p wheel/hello_pip-1.dist-info; echo 'print("from pip")' > wheel/hello_pip.py
printf 'Metadata-Version: 2.1\nName: hello-pip\nVersion: 1\n' > wheel/hello_pip-1.dist-info/METADATA
printf 'Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n' > wheel/hello_pip-1.dist-info/WHEEL
printf 'hello_pip.py,,\nhello_pip-1.dist-info/METADATA,,\nhello_pip-1.dist-info/WHEEL,,\n' > wheel/hello_pip-1.dist-info/RECORD
(cd wheel && zip -qr ../hello_pip-1-py3-none-any.whl .)
pip install --no-index ./hello_pip-1-py3-none-any.whl
hello-deb; hello-npm; python -m hello_pip
"""
