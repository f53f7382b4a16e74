"""A server with something on every screen: agents, tasks in every column, a session, a build, sandboxes."""

from __future__ import annotations

from support.builds import Builds, page
from support.envd import Envd
from support.forge_plugin import FORGE_REPOSITORY
from support.sessions import Session
from support.work import Platform

SAY = r"""say() { printf '{"caisson":"message","text":"%s"}\n' "$1"; }
tool() { printf '{"caisson":"tool","name":"%s","input":{"command":"%s"}}\n' "$1" "$2"; }
"""
WORK = SAY + r"""
say "I read the repository and look for the place that parses dates."
tool bash "grep -rn strptime ."
mkdir -p src tests
cat > src/dates.py <<'END'
from datetime import date, datetime

FORMATS = ("%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y")


def parse(text: str) -> date:
    for form in FORMATS:
        try:
            return datetime.strptime(text.strip(), form).date()
        except ValueError:
            continue
    raise ValueError(f"not a date: {text!r}")
END
printf 'from dates import parse\n\n\ndef test_german():\n    assert parse("24.12.2026").month == 12\n' > tests/test_dates.py
echo "collected 14 items"; for i in $(seq 14); do echo "tests/test_dates.py::test_case_$i PASSED"; done
echo "14 passed in 0.31s"
say "All tests pass. Dates in the German form are accepted now."
"""
USAGE = """printf '{"caisson":"usage","model":"m","tokens_in":%d,"tokens_out":%d,"dollars":%s}\\n' """
# At work as long as anybody looks at it.
SLOW = SAY + r"""
say "I set the project up."
for i in $(seq 1 2400); do echo "[$i/2400] compiling module_$i.c"; sleep 0.5; done
"""
FAILING = 'echo "running the tests"; echo "E   AssertionError: expected 200, got 500" >&2; exit 1'
# Something on every curve, and a port that is served.
BUSY = r"""setsid python3 -m http.server 8000 > /dev/null 2>&1 &
setsid python3 - > /dev/null 2>&1 <<'END' &
import math, time
for second in range(3600):
    wave = (1 + math.sin(second / 9)) / 2
    kept = bytearray(int((40 + 120 * wave) * 2**20))
    open("cache", "ab").write(bytes(2**18))
    end = time.process_time() + 0.1 + 0.4 * wave
    while time.process_time() < end:
        pass
    time.sleep(0.5)
END
"""
TITLES = ["Accept dates in the German form", "Retry uploads that were cut off", "Show a spinner while orders load",
          "Cache the exchange rates for an hour", "Move the settings into their own page"]


class Showcase(Platform):
    """Fill it once; `paths` are the addresses of the screens it fills."""

    def fill(self) -> None:
        ada = self.add_agent(USAGE + "18240 2310 0.0894; " + WORK, "ada")
        linus = self.add_agent(USAGE + "7100 640 0.0309; " + FAILING, "linus")
        grace = self.add_agent(SLOW, "grace")
        barbara = self.add_agent(WORK, "barbara", config={"command": ["bash", "-c", WORK], "approve_push": True})
        self.idle = ada
        self.reviewed = self.start(ada, TITLES[0], description="Orders from Germany fail: `24.12.2026` is refused.")
        self.failing = self.start(linus, TITLES[1], priority="high")
        self.running = self.start(grace, "Bring the build up to date", priority="urgent")
        self.asking = self.start(barbara, "Remove the old payment provider")
        for title, priority in zip(TITLES[2:], ("medium", "low", "high"), strict=True):
            self.ask("POST", "/tasks", {"title": title, "repo_url": FORGE_REPOSITORY, "priority": priority,
                                        "agent_id": ada["id"]}, 201)
        self.session = Session.begin(self, SAY + 'say "I look at it: $CAISSON_MESSAGE"', title="Why is the start slow?")
        builds = Builds(self.server)
        self.build = builds.create("shop", runner="files", goal="A page for the shop", files={"index.html": page("Shop")})
        made = self.rest.request("POST", "/sandboxes", {"templateID": "base", "timeout": 3600,
                                                        "metadata": {"purpose": "trying things out"}})
        self.sandbox = made.json()["sandboxID"]
        Envd(self.server, made.json()).run(BUSY)
        self.wait_for_event("approval_requested")
        self.wait(self.reviewed)
        self.wait_for_error(self.failing)
        self.session.ready()
        self.session.say("Where does the time go?")
        builds.wait(self.build)

    def paths(self) -> dict[str, str]:
        task, run = self.reviewed["task_id"], self.failing["run_id"]
        return {
            "home": "/", "board": "/board", "list": "/board?layout=list", "task": f"/board?task={task}",
            "work": f"/work/{self.running['task_id']}", "logs": f"/work/{task}?tab=logs",
            "changes": f"/work/{task}?tab=changes", "history": f"/work/{task}?tab=history",
            "events": f"/work/{task}?tab=events", "failed": f"/work/{self.failing['task_id']}",
            "session": f"/work/session/{self.session.id}", "approvals": "/approvals", "pulls": "/pulls",
            "builds": "/builds", "build": f"/builds/{self.build['id']}", "sandboxes": "/sandboxes",
            "sandbox": f"/sandboxes/{self.sandbox}", "metrics": f"/sandboxes/{self.sandbox}?tab=metrics",
            "files": f"/sandboxes/{self.sandbox}?tab=files", "terminal": f"/sandboxes/{self.sandbox}?tab=terminal",
            "runs": "/runs", "run": f"/runs/{run}", "templates": "/templates", "costs": "/costs", "health": "/health",
            "audit": "/audit", "settings": "/settings", "keys": "/settings/keys", "github": "/settings/github",
            "users": "/settings/users", "configuration": "/settings/all", "egress": "/settings/egress",
            "limits": "/settings/limits", "sandbox-audit": f"/sandboxes/{self.sandbox}?tab=audit",
        }
