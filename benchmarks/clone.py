"""The table of clones: into a sandbox through the broker, beside git on this machine."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tables import percentile, title

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from support.forge import Forge  # noqa: E402
from support.forge_plugin import FORGE_REPOSITORY, FORGE_TOKEN  # noqa: E402
from support.server import CaissonServer  # noqa: E402
from support.work import Platform, settings_for  # noqa: E402

CLONES = 10
FILES = 25  # of a megabyte that cannot be packed; each has an older version
DEPTHS = {"full": 0, "shallow": 1}


def git(*arguments, cwd=None):
    identity = ["-c", "user.name=bench", "-c", "user.email=bench@example.com"]
    subprocess.run(["git", *identity, *arguments], cwd=cwd, check=True, timeout=300, capture_output=True)


def fill(repository):
    """Two commits of 25 MB each, packed as a forge has them."""
    with tempfile.TemporaryDirectory() as folder:
        git("clone", str(repository.git.path), folder)
        for version in ("one", "two"):
            for number in range(FILES):
                Path(folder, f"file{number}.bin").write_bytes(os.urandom(1 << 20))
            git("add", ".", cwd=folder)
            git("commit", "-m", f"feat: version {version}", cwd=folder)
        git("push", "origin", "HEAD", cwd=folder)
    git("gc", "--quiet", cwd=repository.git.path)


def plain(forge, depth):
    """git clone on this machine, from the same forge."""
    url = forge.url.replace("://", f"://x-access-token:{FORGE_TOKEN}@") + f"/{FORGE_REPOSITORY}.git"
    shallow = [f"--depth={depth}", "--single-branch"] if depth else []
    took = []
    for _ in range(CLONES):
        with tempfile.TemporaryDirectory() as folder:
            begin = time.perf_counter()
            git("clone", *shallow, url, f"{folder}/clone")
            took.append((time.perf_counter() - begin) * 1000)
    return took


def ours(forge, depth, kept):
    """The operation by itself, and with the sandbox it is done in."""
    settings = settings_for(forge, CAISSON_CLONE_DEPTH=str(depth), CAISSON_CHECKOUT_CACHE_MAX=str(kept))
    operation, whole = [], []
    with CaissonServer(env=settings) as server:
        platform = Platform(server)
        agent = platform.add_agent("true")
        if kept:
            platform.wait(platform.start(agent))  # the one that is kept
        for _ in range(CLONES):
            started = platform.start(agent)
            steps = {step["name"]: step for step in platform.wait(started)["steps"]}
            if steps["clone"]["result"]["fetched"] != bool(kept):
                sys.exit(f"this clone is not what it should be: {steps['clone']}")
            operations = platform.get(f"/tasks/{started['task_id']}/operations")["operations"]
            operation += [o["duration_ms"] for o in operations if o["operation"] == "clone"]
            whole.append(steps["provision"]["duration_ms"] + steps["clone"]["duration_ms"])
    return operation, whole


def clone_table(_):
    title(f"Clone of a repository of {2 * FILES} MB from a forge on this machine (ms, p50 and p95, n = {CLONES})")
    rows = {}
    with Forge() as forge:
        forge.add_token(FORGE_TOKEN)
        fill(forge.add_repository(FORGE_REPOSITORY))
        for depth in DEPTHS.values():
            rows.setdefault("git clone on the host", []).append(plain(forge, depth))
            for name, kept in (("caisson", 0), ("caisson, kept", 1)):
                operation, whole = ours(forge, depth, kept)
                rows.setdefault(name, []).append(operation)
                rows.setdefault(f"{name} + sandbox", []).append(whole)
    print(f"{'':26}" + "".join(f"{name:>18}" for name in DEPTHS))
    for name, columns in rows.items():
        print(f"{name:26}" + "".join(f" {percentile(v, 0.5):8.0f} {percentile(v, 0.95):8.0f}" for v in columns))
    print(f"\ncaisson, shallow, p95: {percentile(rows['caisson'][1], 0.95) / 1000:.2f} s (goal < 5)")


TABLES = {"clone": clone_table}
