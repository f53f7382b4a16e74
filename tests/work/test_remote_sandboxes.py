"""Tasks and sessions in sandboxes of another server that speaks E2B's API. Git and models inside reach this
server's broker through a tunnel: nothing of this server, no token and no address, is in the sandbox."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import census
from support.forge import Forge
from support.forge_plugin import FORGE_REPOSITORY, FORGE_TOKEN
from support.hunt import LIVE, Hunt
from support.model import KEY, ScriptedModel
from support.rest import Rest
from support.server import CaissonServer
from support.sessions import ECHO, Session, wait_until
from support.work import BUSY, STEPS, Platform, settings_for

pytestmark = pytest.mark.timeout(300)

# Fetches until it is told that this is enough; a fetch may fail while the server is away.
FETCHES = """
while [ ! -e /tmp/enough ]; do git fetch -q origin && echo fetched; sleep 0.2; done
git fetch -q origin && echo done > work.txt
"""
ASKS_A_MODEL = """
curl -sS -m 60 -H 'Content-Type: application/json' -d '{"messages":[{"role":"user","content":"hello"}]}' \
  http://127.0.0.1:49990/model/scripted/chat/completions > answer.json
"""


@pytest.fixture
def supplier(make_server) -> CaissonServer:
    return make_server()


def remote(supplier: CaissonServer, forge: Forge, **more: str) -> dict[str, str]:
    """The environment of a server whose sandboxes are the supplier's."""
    return settings_for(forge, CAISSON_PROVIDER="e2b", E2B_API_URL=supplier.url, E2B_API_KEY=supplier.api_key,
                        **more)


def relays(supplier: CaissonServer) -> list[int]:
    """The processes in its sandboxes that listen there for somebody outside."""
    found = []
    for pid in census.sandbox_pids(supplier):
        try:
            argv = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"49990" in argv:
            found.append(pid)
    return found


def one_pull_request(forge: Forge, repository: str = FORGE_REPOSITORY) -> str:
    """What it adds in work.txt."""
    found = forge.repositories[repository]
    (pull,) = found.pulls
    assert sorted(found.git.branches()) == sorted(["main", pull.head])
    assert len(found.git.commits("main", pull.head)) == 1
    return found.git.file(pull.head, "work.txt")


@pytest.mark.quick
def test_a_task_becomes_a_pull_request(make_server, supplier: CaissonServer, forge: Forge) -> None:
    here = Platform(make_server(env=remote(supplier, forge)))
    # A repository whose pack does not fit into any buffer on the way.
    noise = "".join(f"{n * 2654435761 % 2**64:016x}\n" for n in range(300_000))
    forge.add_repository("octo-org/hidden", private=True, files={"README.md": "# hidden\n", "noise.txt": noise})
    agent = here.add_agent("git fetch -q origin && wc -c < noise.txt; " + BUSY.format(file="work.txt"))
    started = here.start(agent, repo_url="octo-org/hidden")
    run = here.wait(started)
    assert [step["name"] for step in run["steps"] if step["state"] == "done"] == STEPS
    assert str(len(noise)) in here.output(execution_id=started["execution_id"]).split()
    assert one_pull_request(forge, "octo-org/hidden") == "done\n"
    assert not census.sandbox_pids(here.server)
    assert Rest(supplier).get("/v2/sandboxes").json() == []


def test_the_broker_keeps_its_rules(make_server, supplier: CaissonServer, forge: Forge) -> None:
    here = Platform(make_server(env=remote(supplier, forge)))
    agent = here.add_agent("echo done > work.txt; git add .; git -c user.name=me -c user.email=me@example.com commit -qm x; "
                           "git push origin HEAD:main 2>&1; curl -s -o /dev/null -w '%{http_code}' "
                           "'http://127.0.0.1:49990/octo-org/other.git/info/refs?service=git-upload-pack'")
    started = here.start(agent)
    here.wait(started)
    said = here.output(execution_id=started["execution_id"])
    assert "may push only to" in said and "403" in said.split(), said
    assert one_pull_request(forge) == "done\n"


def test_nothing_of_this_server_is_inside(make_server, supplier: CaissonServer, forge: Forge) -> None:
    here = Platform(make_server(env=remote(supplier, forge)))
    hunt = Hunt(token=FORGE_TOKEN, key=supplier.api_key, own_key=here.server.api_key,
                address=f"127.0.0.1:{here.server.port}")
    forge.add_repository("octo-org/hidden", private=True)
    started = here.start(here.add_agent(hunt.planting() + FETCHES), repo_url="octo-org/hidden")
    fault = forge.plant("hold", method="POST", path="git-upload-pack$")
    try:
        assert fault.held.wait(90), "nothing was cloned"
        hunt.live(supplier)
    finally:
        fault.go.set()
    wait_until(lambda: "fetched" in here.output(execution_id=started["execution_id"]), "the agent fetches")
    hunt.live(supplier)
    hunt.check(LIVE)
    here.enough(started)
    here.wait(started)
    assert one_pull_request(forge, "octo-org/hidden") == "done\n"


def test_kill_9_in_the_middle_of_the_work(make_server, supplier: CaissonServer, forge: Forge) -> None:
    here = Platform(make_server(env=remote(supplier, forge)))
    started = here.start(here.add_agent(FETCHES))
    here.next_line(started)
    before = relays(supplier)
    assert before
    here.server.crash()
    here.server.start()
    here.next_line(started)
    # The relay of the server that was killed is gone.
    assert not set(before) & set(relays(supplier))
    here.enough(started)
    here.wait(started)
    assert one_pull_request(forge) == "done\n"
    assert Rest(supplier).get("/v2/sandboxes").json() == []


@pytest.mark.parametrize("step", ["clone", "push"])
def test_kill_9_when_git_has_done_its_work(make_server, supplier: CaissonServer, forge: Forge, step: str) -> None:
    server = make_server(env=remote(supplier, forge, CAISSON_FLOW_CRASH_AT=f"{step}:after_effect"))
    here = Platform(server)
    started = here.start(here.add_agent(BUSY.format(file="work.txt")))
    server.process.wait(timeout=120)
    server.crash()
    del server.env["CAISSON_FLOW_CRASH_AT"]
    server.start()
    here.wait(started)
    assert one_pull_request(forge) == "done\n"
    assert Rest(supplier).get("/v2/sandboxes").json() == []


def test_a_supplier_that_restarts_is_found_again(make_server, supplier: CaissonServer, forge: Forge) -> None:
    """Its sandboxes live on; the tunnel is made anew, and the agent did not notice."""
    here = Platform(make_server(env=remote(supplier, forge)))
    started = here.start(here.add_agent(FETCHES))
    here.next_line(started)
    supplier.crash()
    supplier.start()
    here.next_line(started)
    here.enough(started)
    here.wait(started)
    assert one_pull_request(forge) == "done\n"


def test_a_session_reaches_models_and_its_repository_after_a_pause(make_server, supplier: CaissonServer,
                                                                   forge: Forge) -> None:
    model = ScriptedModel(lambda messages: f"you said {messages[0]['content']}")
    try:
        routes = f"scripted=http://127.0.0.1:{model.server.server_port}/v1 SCRIPTED_KEY"
        here = Platform(make_server(env=remote(supplier, forge, CAISSON_MODEL_ROUTES=routes, SCRIPTED_KEY=KEY)))
        session = Session.begin(here, ASKS_A_MODEL + "git fetch -q origin && " + ECHO, repo_url=FORGE_REPOSITORY)
        for times in (1, 2):
            assert session.say("hello")["content"] == "you said: hello"
            answer = json.loads(session.run("cat $(find ~ -name answer.json)"))
            assert answer["choices"][0]["message"]["content"] == "you said hello"
            assert model.keys == [f"Bearer {KEY}"] * times
            told = here.server.log_size()
            session.pause()
            # Nothing of the tunnel wakes it.
            wait_until(lambda: "a tunnel into a sandbox has ended" in here.server.log_since(told), "the tunnel's end")
            assert [one["state"] for one in Rest(supplier).get("/v2/sandboxes?state=paused,running").json()] == ["paused"]
    finally:
        model.close()
