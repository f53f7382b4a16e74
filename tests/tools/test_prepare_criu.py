"""tools/prepare-criu: a bundle that is there is named at once; without a network it says what is lost."""

import os
import subprocess
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools/prepare-criu"


def prepare(cache, *prefix, **environment):
    environment = dict(os.environ, CAISSON_CACHE_DIR=str(cache), **environment)
    return subprocess.run([*prefix, TOOL], env=environment, capture_output=True, text=True,
                          timeout=300, check=False)


def test_the_newest_bundle_is_named(tmp_path):
    for version in ("4.9", "4.10", "4.2.1"):
        (tmp_path / f"criu-{version}").mkdir()
        (tmp_path / f"criu-{version}/kernel").write_text(os.uname().release + "\n")
    done = prepare(tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{tmp_path}/criu-4.10\n", "")


def test_a_bundle_of_another_kernel_is_tried_again(tmp_path):
    bundle, programs = tmp_path / "criu-4.2", tmp_path / "bin"
    (bundle / "lib").mkdir(parents=True)
    programs.mkdir()
    (programs / "criu").symlink_to("/bin/false")
    (bundle / "criu").write_text("")
    (bundle / "kernel").write_text("1.0\n")
    loader = bundle / "ld.so"  # is given "--library-path LIB CRIU" and CRIU's own arguments
    for works in (True, False):
        loader.write_text(f"#!/bin/sh\nexit {0 if works else 1}\n")
        loader.chmod(0o755)
        done = prepare(tmp_path, "unshare", "--net", PATH=f"{programs}:{os.environ['PATH']}")
        assert done.returncode == 0, done.stderr
        if works:
            assert (done.stdout, done.stderr) == (f"{bundle}\n", "")
            assert (bundle / "kernel").read_text().strip() == os.uname().release
            (bundle / "kernel").write_text("1.0\n")
        else:
            assert done.stdout == "" and "does not work on this kernel any more" in done.stderr


def test_without_a_network_it_says_what_will_be_missing_and_leaves_nothing(tmp_path):
    # The distribution's own, if there is one, starts and fails, as those older than the kernel do.
    programs, cache = tmp_path / "bin", tmp_path / "cache"
    programs.mkdir()
    (programs / "criu").symlink_to("/bin/false")
    done = prepare(cache, "unshare", "--net", PATH=f"{programs}:{os.environ['PATH']}")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "pausing one keeps its memory in RAM" in done.stderr
    assert [path.name for path in cache.iterdir()] == [".criu.lock"]


def test_the_one_of_this_machine_starts():
    path = Path(prepare(os.environ.get("CAISSON_CACHE_DIR") or "/var/cache/caisson").stdout.strip())
    command = [path / "criu"]
    if (path / "ld.so").exists():
        command = [path / "ld.so", "--library-path", path / "lib", *command]
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=30, check=False)
    assert done.stdout.startswith("Version: "), done.stderr
