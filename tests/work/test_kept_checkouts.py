"""Checkouts that are kept for the next task of the same user, with real snapshots and real git."""

from __future__ import annotations

import contextlib
import sqlite3
import time

import pytest
from support.forge import Forge
from support.forge_plugin import FORGE_REPOSITORY
from support.rest import Response
from support.work import BUSY, Platform, settings_for

pytestmark = pytest.mark.timeout(300)


class Somebody(Platform):
    """The same server, as a user of their own sees it."""

    def __init__(self, admin: Platform, name: str) -> None:
        super().__init__(admin.server)
        user = admin.ask("POST", "/users", {"name": name}, 201).json()
        self.key = admin.ask("POST", "/keys", {"name": "k", "user_id": user["id"]}, 201).json()["key"]

    def ask(self, *arguments, **options) -> Response:
        return super().ask(*arguments, key=self.key, **options)


@pytest.fixture
def platform(make_server, forge: Forge) -> Platform:
    return Platform(make_server(env=settings_for(forge, CAISSON_CHECKOUT_CACHE_MAX="5")))


def finish(platform: Platform, script: str, **fields: object) -> dict:
    """A task from its start to its end; its run, with the ids of what was started."""
    started = platform.start(platform.add_agent(script), **fields)
    return {**started, **platform.wait(started)}


def how(platform: Platform, run: dict) -> str:
    """Which command of git brought the repository into the sandbox."""
    (clone,) = [o for o in platform.get(f"/tasks/{run['task_id']}/operations")["operations"]
                if o["operation"] == "clone"]
    (word,) = {"clone", "fetch"} & set(clone["command"].split())
    return word


def snapshots(platform: Platform) -> list[str]:
    answer = platform.rest.get("/snapshots")
    assert answer.status == 200, answer
    return sorted(one["snapshotID"] for one in answer.json())


def known(platform: Platform) -> list[str]:
    """The snapshots of the administrator's checkouts, as E2B's routes call them."""
    kept = platform.get("/checkouts")
    assert kept["total"] == len(kept["checkouts"])
    return sorted(f"checkout-{one['id']}:default" for one in kept["checkouts"])


def counts(platform: Platform) -> tuple[float, float]:
    numbers = {}
    for line in platform.rest.get("/metrics", key=None).body.decode().splitlines():
        if line.startswith("caisson_sandbox_cache_") and 'cache="checkout"' in line:
            numbers[line.partition("{")[0]] = float(line.rpartition(" ")[2])
    return numbers["caisson_sandbox_cache_hits_total"], numbers["caisson_sandbox_cache_misses_total"]


@pytest.mark.quick
def test_the_next_task_only_fetches(platform: Platform, forge: Forge) -> None:
    git = forge.repositories[FORGE_REPOSITORY].git
    first = finish(platform, BUSY.format(file="work.txt"))
    assert how(platform, first) == "clone"
    (kept,) = platform.get("/checkouts")["checkouts"]
    assert kept["uses"] == 1 and kept["seconds_between_uses"] is None and kept["bytes"] > 0, kept
    assert snapshots(platform) == known(platform) != []

    sha = git.commit("main", {"new.txt": "pushed meanwhile\n"}, "feat: between the tasks")
    second = finish(platform, "cp new.txt seen.txt; ls /home/user/workspace > places.txt; git log -1 --format=%H > at.txt")
    assert how(platform, second) == "fetch"
    (step,) = [s for s in second["steps"] if s["name"] == "clone"]
    assert step["result"]["fetched"] is True, step
    branch = platform.get(f"/tasks/{second['task_id']}")["git_branch"]
    assert git.file(branch, "seen.txt") == "pushed meanwhile\n" and git.file(branch, "at.txt") == f"{sha}\n"
    # Nothing of the first agent is in it, only what was cloned.
    assert git.file(branch, "places.txt") == "widget\n"
    assert sorted(git.changed_files("main", branch)) == ["at.txt", "places.txt", "seen.txt"]
    (kept,) = platform.get("/checkouts")["checkouts"]
    assert kept["uses"] == 2 and kept["seconds_between_uses"] >= 0, kept
    assert counts(platform) == (1, 1)
    assert snapshots(platform) == known(platform) and platform.live_sandboxes() == []


def test_nobody_gets_anothers_checkout(platform: Platform) -> None:
    finish(platform, BUSY.format(file="a.txt"))
    (mine,) = platform.get("/checkouts")["checkouts"]
    eve = Somebody(platform, "eve")
    assert eve.get("/checkouts") == {"checkouts": [], "total": 0, "enabled": True, "reason": ""}
    assert eve.ask("DELETE", f"/checkouts/{mine['id']}").status == 404
    assert eve.ask("GET", "/checkouts?all=true").status == 403
    run = finish(eve, BUSY.format(file="b.txt"))
    assert how(eve, run) == "clone"
    (hers,) = eve.get("/checkouts")["checkouts"]
    assert hers["owner_id"] != mine["owner_id"] and hers["snapshot"] != mine["snapshot"]
    assert platform.get("/checkouts", all="true")["total"] == 2
    assert platform.ask("DELETE", f"/checkouts/{hers['id']}").status == 404
    platform.ask("DELETE", f"/checkouts/{hers['id']}?all=true", status=204)
    platform.ask("DELETE", f"/checkouts/{mine['id']}", status=204)
    assert platform.get("/checkouts", all="true")["total"] == 0 and snapshots(platform) == []


def test_a_snapshot_that_is_gone_costs_only_a_clone(platform: Platform) -> None:
    finish(platform, BUSY.format(file="a.txt"))
    (kept,) = platform.get("/checkouts")["checkouts"]
    assert platform.rest.delete(f"/templates/{kept['snapshot']}").status == 204
    run = finish(platform, BUSY.format(file="b.txt"))
    assert how(platform, run) == "clone"
    (again,) = platform.get("/checkouts")["checkouts"]
    assert again["id"] != kept["id"] and snapshots(platform) == known(platform)
    assert counts(platform) == (0, 2)


def test_a_task_follows_the_branch_it_asks_for(platform: Platform, forge: Forge) -> None:
    """Whatever the checkout that was kept had checked out, and whatever became of it at the forge."""
    git = forge.repositories[FORGE_REPOSITORY].git
    git.commit("develop", {"develop.txt": "x\n"}, "feat: develop", base="main")
    finish(platform, BUSY.format(file="a.txt"), base_branch="develop")
    run = finish(platform, "ls > files.txt")
    assert how(platform, run) == "fetch"
    branch = platform.get(f"/tasks/{run['task_id']}")["git_branch"]
    assert git.file(branch, "files.txt").split() == sorted([*git.run("ls-tree", "--name-only", "main").stdout.split(), "files.txt"])
    git.run("update-ref", "refs/heads/develop", "refs/heads/main")  # a push by force
    git.commit("develop", {"rewritten.txt": "x\n"}, "feat: rewritten")
    run = finish(platform, "ls > files.txt", base_branch="develop")
    assert how(platform, run) == "fetch"
    branch = platform.get(f"/tasks/{run['task_id']}")["git_branch"]
    listed = git.file(branch, "files.txt").split()
    assert "rewritten.txt" in listed and "develop.txt" not in listed


def test_what_is_not_used_is_evicted(make_server, forge: Forge) -> None:
    platform = Platform(make_server(env=settings_for(
        forge, CAISSON_CHECKOUT_CACHE_MAX="5", CAISSON_CHECKOUT_CACHE_KEEP="0", CAISSON_CHECKOUT_CACHE_BUSY_S="1",
        CAISSON_CHECKOUT_CACHE_SWEEP_S="1")))
    finish(platform, BUSY.format(file="a.txt"))
    finish(platform, BUSY.format(file="b.txt"))  # used twice within ten minutes: for a second
    deadline = time.monotonic() + 60
    while snapshots(platform) or platform.get("/checkouts")["total"]:
        assert time.monotonic() < deadline, platform.get("/checkouts")
        time.sleep(0.2)


@pytest.mark.parametrize("lost", ["nothing", "the record"])
def test_a_crash_leaves_no_snapshot_that_nobody_knows(make_server, forge: Forge, lost: str) -> None:
    server = make_server(env=settings_for(forge, CAISSON_CHECKOUT_CACHE_MAX="5",
                                          CAISSON_FLOW_CRASH_AT="clone:after_effect"))
    platform = Platform(server)
    with contextlib.suppress(ConnectionError):
        platform.start(platform.add_agent(BUSY.format(file="a.txt")))
    server.process.wait(timeout=90)
    server.crash()
    with sqlite3.connect(server.data_dir / "db/caisson.db") as database:
        (before,) = database.execute("SELECT id FROM kept_checkouts").fetchall()
        if lost == "the record":  # as if it had been killed between the copy and its record
            database.execute("UPDATE kept_checkouts SET state = 'making', snapshot = ''")
    database.close()
    del server.env["CAISSON_FLOW_CRASH_AT"]
    server.start()
    (run,) = platform.get("/runs")["runs"]
    platform.wait({"run_id": run["id"]})
    (kept,) = platform.get("/checkouts")["checkouts"]
    assert (kept["id"] == before[0]) == (lost == "nothing")
    assert snapshots(platform) == known(platform)
    assert how(platform, finish(platform, BUSY.format(file="b.txt"))) == "fetch"
    # Switched off, nothing of it stays.
    server.stop()
    server.env["CAISSON_CHECKOUT_CACHE_MAX"] = "0"
    server.start()
    off = platform.get("/checkouts")
    assert off == {"checkouts": [], "total": 0, "enabled": False, "reason": "checkout_cache_max is 0"}
    assert snapshots(platform) == []
