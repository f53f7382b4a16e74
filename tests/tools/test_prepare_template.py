"""tools/prepare-template with small recipes of our own: cache, atomicity, lock, deadline."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
import uuid
from pathlib import Path

import pytest

from support.waiting import wait_until_gone

TOOL = Path(__file__).resolve().parents[2] / "tools/prepare-template"
DEADLINE_S = 100
# For ever, under a name of its own: it is looked for among all processes of the machine.
SLEEP = f"sleep 6{uuid.uuid4().int % 10**9:09}"

BUILD = """#!/bin/bash
set -e
if [[ $1 == --inputs ]]; then cat "$(dirname "$0")/../../inputs"; exit; fi
mkdir "$1"; echo built > "$1/file"
echo "progress 10 first step"
echo noise >&2
echo "progress 60 second step"
echo x >> "$(dirname "$0")/../../builds"
{extra}
"""


class Workshop:
    """A copy of the tool beside a recipe `small`, with a cache of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "tools").mkdir()
        shutil.copy(TOOL, folder / "tools/prepare-template")
        (folder / "inputs").write_text("one\n")
        self.cache = folder / "cache/templates"
        self.recipe = folder / "templates/small"
        self.recipe.mkdir(parents=True)
        (self.recipe / "template.json").write_text('{"id": "small", "memoryMB": 64}')
        self.set_build("")

    def set_build(self, extra: str) -> None:
        build = self.recipe / "build"
        build.write_text(BUILD.format(extra=extra))
        build.chmod(0o755)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.folder / "tools/prepare-template", "small", *arguments],
            env=dict(os.environ, CAISSON_CACHE_DIR=str(self.folder / "cache")),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            # Who starts the tests in the background has it ignore this signal.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))

    def run(self, *arguments: str) -> tuple[int, str, str]:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=DEADLINE_S)
        return process.returncode, out, err

    def builds(self) -> int:
        path = self.folder / "builds"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def entries(self) -> list[str]:
        return sorted(p.name for p in self.cache.iterdir() if not p.name.endswith(".lock"))

    def wait_for_build(self) -> None:
        deadline = time.monotonic() + 30
        while self.builds() == 0:
            assert time.monotonic() < deadline, "the build did not start"
            time.sleep(0.02)


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


@pytest.mark.quick
def test_builds_once_and_then_only_prints_the_path(workshop: Workshop) -> None:
    code, out, err = workshop.run()
    assert code == 0, err
    path = Path(out.splitlines()[-1])
    assert (path / "rootfs/file").read_text() == "built\n"
    template = json.loads((path / "template.json").read_text())
    assert template["memoryMB"] == 64
    assert path.name == f"small-{template['recipe'][:16]}" and len(template["recipe"]) == 64
    assert path.stat().st_mode & 0o777 == 0o700
    assert "10% first step" in err and "60% second step" in err and "noise" not in err

    code, out, err = workshop.run()
    assert (code, out, err) == (0, f"{path}\n", "")
    assert workshop.builds() == 1


@pytest.mark.quick
def test_the_tools_inside_are_named(workshop: Workshop) -> None:
    (workshop.recipe / "packages.txt").write_text("# tools\ngit\n\nnot-there\njq\n")
    status = "Package: git\\nVersion: 1:2.47\\nDescription: x\\n\\nPackage: jq\\nVersion: 1.7\\n\\nPackage: z\\nVersion: 1\\n"
    workshop.set_build(f'mkdir -p "$1/var/lib/dpkg" && printf "{status}" > "$1/var/lib/dpkg/status"')
    code, out, err = workshop.run()
    assert code == 0, err
    file = Path(out.splitlines()[-1]) / "template.json"
    tools = [{"name": "git", "version": "1:2.47"}, {"name": "jq", "version": "1.7"}]
    template = json.loads(file.read_text())
    assert template["tools"] == tools
    # One that was made before tools were named gets them now, without being built again.
    del template["tools"]
    file.write_text(json.dumps(template))
    assert workshop.run()[0] == 0
    assert json.loads(file.read_text())["tools"] == tools and workshop.builds() == 1


def test_quiet_prints_only_the_path(workshop: Workshop) -> None:
    code, out, err = workshop.run("--quiet")
    assert (code, len(out.splitlines()), err) == (0, 1, "")


@pytest.mark.quick
def test_a_changed_recipe_or_machine_makes_a_new_template(workshop: Workshop) -> None:
    paths = {workshop.run()[1]}
    workshop.set_build("true")
    paths.add(workshop.run()[1])
    (workshop.folder / "inputs").write_text("two\n")
    paths.add(workshop.run()[1])
    assert len(paths) == 3 and workshop.builds() == 3


@pytest.mark.quick
def test_a_failed_build_is_told_and_leaves_nothing(workshop: Workshop) -> None:
    workshop.set_build("echo the disk is on fire >&2; exit 3")
    code, out, err = workshop.run()
    assert code == 1 and out == ""
    assert "building it failed" in err and "the disk is on fire" in err
    assert workshop.entries() == []


def processes(command: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().replace(b"\0", b" ").decode(errors="replace").strip() == command:
                found.append(path.parent.name)
        except OSError:
            pass
    return found


def test_a_slow_build_is_stopped_at_the_deadline(workshop: Workshop) -> None:
    workshop.set_build(f"setsid {SLEEP} & wait")
    code, _, err = workshop.run("--deadline", "1")  # which would not come back by itself
    assert code == 1 and "longer than its deadline" in err
    assert workshop.entries() == []
    wait_until_gone(lambda: processes(SLEEP), "the program of the build")


def test_two_at_once_build_once(workshop: Workshop) -> None:
    workshop.set_build("sleep 1")
    first, second = workshop.start(), workshop.start()
    answers = [process.communicate(timeout=DEADLINE_S)[0] for process in (first, second)]
    assert answers[0] == answers[1] and answers[0]
    assert workshop.builds() == 1


def test_waiting_for_another_has_a_deadline(workshop: Workshop) -> None:
    workshop.set_build('until [[ -e $(dirname "$0")/../../go ]]; do sleep 0.1; done')
    first = workshop.start()
    workshop.wait_for_build()
    code, _, err = workshop.run("--deadline", "0.5")
    assert code == 1 and "gave up waiting" in err
    (workshop.folder / "go").touch()
    first.communicate(timeout=DEADLINE_S)
    assert first.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_build_leaves_nothing_to_the_next(workshop: Workshop, number: int) -> None:
    workshop.set_build(f'mount -t tmpfs none "$1"; [[ -e $(dirname "$0")/../../second ]] || setsid -w {SLEEP}')
    process = workshop.start()
    wait_until_gone(lambda: not processes(SLEEP), "what the build does before it sleeps")
    process.send_signal(number)
    process.communicate(timeout=DEADLINE_S)
    assert process.returncode != 0
    wait_until_gone(lambda: processes(SLEEP), "the program of the build")
    (workshop.folder / "second").touch()
    code, out, err = workshop.run()
    assert code == 0, err
    assert workshop.entries() == [Path(out.strip()).name]


def test_an_unknown_template_names_the_known_ones(workshop: Workshop) -> None:
    shutil.move(workshop.recipe, workshop.recipe.parent / "other")
    code, _, err = workshop.run()
    assert code == 1 and "known templates: other" in err
