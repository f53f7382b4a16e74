"""tools/setup.sh: what ./run says about a machine it cannot use, and that it asks nothing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def shell(script: str, *, prefix: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    command = [*prefix, "bash", "-c", f"set -euo pipefail; cd {ROOT}; . tools/setup.sh; {script}"]
    return subprocess.run(command, text=True, capture_output=True, timeout=50, check=False,
                          stdin=subprocess.DEVNULL)


def with_file_replaced(target: str, replacement: Path) -> tuple[str, ...]:
    """Runs a command in a mount namespace where `target` shows `replacement`."""
    return ("unshare", "--mount", "bash", "-c", f'mount --bind {replacement} {target} && exec "$0" "$@"')


@pytest.mark.quick
def test_another_system_is_named(tmp_path: Path) -> None:
    (tmp_path / "os-release").write_text('ID=fedora\nVERSION_ID=42\nPRETTY_NAME="Fedora Linux 42"\n')
    done = shell("check_machine; echo went on",
                 prefix=with_file_replaced(os.path.realpath("/etc/os-release"), tmp_path / "os-release"))
    assert done.returncode == 1 and done.stdout == ""
    assert "needs Debian 12" in done.stderr and "Fedora Linux 42" in done.stderr


@pytest.mark.quick
def test_without_root_it_says_what_root_is_for() -> None:
    text = (ROOT / "tools/setup.sh").read_text()  # that user may not be able to read the checkout
    done = subprocess.run(
        ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups",
         "bash", "-c", f"{text}\ncheck_machine; echo went on"],
        text=True, capture_output=True, timeout=50, check=False, stdin=subprocess.DEVNULL, cwd="/")
    assert done.returncode == 1 and done.stdout == ""
    assert "needs root: to install Debian packages" in done.stderr


@pytest.mark.quick
def test_installed_packages_need_no_apt() -> None:
    done = shell("apt-get() { echo called; exit 1; }; as_root() { apt-get; }; install_packages build run test")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.quick
def test_missing_packages_are_found_among_installed_ones() -> None:
    done = shell("missing_packages dpkg no-such-package-anywhere bash")
    assert done.returncode == 0 and done.stdout == "no-such-package-anywhere\n"


def test_a_package_that_cannot_be_installed_is_told_plainly() -> None:
    done = shell("packages_of() { echo no-such-package-anywhere; }; as_root() { echo E: no mirror; return 100; }; "
                 "install_packages build; echo went on")
    assert done.returncode == 1 and done.stdout == ""
    assert "E: no mirror" in done.stderr and "could not be installed" in done.stderr


@pytest.mark.quick
def test_groups_of_packages() -> None:
    done = shell("packages_of bench; echo; packages_of build run")
    bench, others = done.stdout.split("\n\n")
    assert "crun" in bench.split() and "clang-19" not in bench.split()
    assert {"clang-19", "mmdebstrap"} <= set(others.split())
