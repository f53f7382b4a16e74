"""The built-in agent: a loop in the server, its tools in a real sandbox, a scripted model."""

from __future__ import annotations

import http.client
import json
import sqlite3
from collections.abc import Callable, Iterator

import pytest
from support.builds import Builds, page
from support.forge import Forge
from support.forge_plugin import FORGE_REPOSITORY
from support.model import KEY, Says, ScriptedModel, budget, results
from support.rest import assert_refusal
from support.sessions import Session, wait_until
from support.work import Platform, settings_for

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def with_model(make_server, forge: Forge) -> Iterator[Callable[[Callable[[list[dict]], Says]], tuple]]:
    models = []

    def make(think: Callable[[list[dict]], Says], **settings: str) -> tuple[Platform, ScriptedModel]:
        models.append(ScriptedModel(think))
        env = {**settings_for(forge), **models[-1].settings, "CAISSON_BUILD_TIER": "none",
               "CAISSON_SSE_HEARTBEAT_MS": "500", **settings}
        return Platform(make_server(env=env)), models[-1]

    yield make
    for model in models:
        model.close()


def agent_of(platform: Platform, **config: object) -> dict:
    return platform.ask("POST", "/agents", {"name": "inside", "adapter": "builtin", "config": config}, 201).json()


def script(*steps: Says) -> Callable[[list[dict]], Says]:
    """One step after the other, by how often the model has spoken."""
    return lambda messages: steps[sum(one["role"] == "assistant" for one in messages)]


def await_heartbeats(platform: Platform, count: int) -> None:
    """The stream of events is alive, whatever an agent waits for."""
    connection = http.client.HTTPConnection("127.0.0.1", platform.server.port, timeout=60)
    connection.request("GET", "/api/v1/events", headers={"X-API-Key": platform.server.api_key})
    answer = connection.getresponse()
    assert answer.status == 200
    while count:
        line = answer.readline()
        assert line, "the stream has ended"
        count -= b"heartbeat" in line
    connection.close()


def file_at(forge: Forge, branch: str, path: str) -> str:
    return forge.repositories[FORGE_REPOSITORY].git.run("show", f"{branch}:{path}").stdout


def test_a_task_becomes_a_pull_request(with_model, forge: Forge) -> None:
    platform, model = with_model(script(
        [("narrate", {"message": "I write the file."}),
         ("write_file", {"path": "src/words.txt", "content": "one\ntwo\n"})],
        [("edit_file", {"path": "src/words.txt", "old": "two", "new": "three"}),
         ("read_file", {"path": "src/words.txt"}),
         ("grep", {"pattern": "^thr", "path": "src"}),
         ("glob", {"pattern": "**/*.txt"})],
        [("bash", {"command": "seq 5000; seq 3000 >&2; env; exit 3"}),
         ("read_file", {"path": "../../../etc/passwd"}),
         ("take_screenshot", {"url": "http://127.0.0.1:1/"})],
        "I wrote the words."))
    agent = agent_of(platform, price_in=2, price_out=10)
    started = platform.start(agent, "Write the words")
    platform.wait(started)
    task = platform.get(f"/tasks/{started['task_id']}")
    assert task["status"] == "in_review"
    assert file_at(forge, task["git_branch"], "src/words.txt") == "one\nthree\n"

    execution = platform.get(f"/executions/{started['execution_id']}")
    assert execution["summary"] == "I wrote the words." and execution["exit_code"] == 0
    told = results(model.questions[-1]["messages"])
    assert told[3] == "one\nthree\n" and "words.txt:2:three" in told[4] and "src/words.txt" in told[5]
    assert told[6].startswith("exit_code: 3") and "lines omitted]" in told[6]
    assert "\n".join(str(i) for i in range(1, 3001)) in told[6], "stderr is never cut"
    assert "neither in" in told[7]

    # Every call of the model is a cost, and nothing is counted twice.
    costs = platform.get("/costs", task_id=started["task_id"], kind="model")["costs"]
    assert [(c["tokens_in"], c["tokens_out"], c["model"]) for c in costs] == [(1000, 100, "scripted-1-2026")] * 4
    assert all(abs(c["dollars"] - 0.003) < 1e-9 for c in costs), costs

    events = platform.events(execution_id=started["execution_id"])
    assert [e["state"] for e in events if e["type"] == "agent.state"] == ["planning", "executing"]
    assert [e["turn"] for e in events if e["type"] == "agent.thinking"] == [1, 2, 3, 4]
    called = [(e["tool"], e["call"]) for e in events if e["type"] == "agent.tool.called"]
    assert called[0] == ("narrate", 1) and called[-1] == ("take_screenshot", 9)
    assert "I write the file." in [e["message"] for e in events if e["type"] == "message"]

    # The key is told to the model's server, and to nobody else.
    assert set(model.keys) == {f"Bearer {KEY}"}
    assert KEY not in json.dumps(model.questions) and KEY not in json.dumps(events)
    assert KEY not in platform.server.log_since(0)


def test_a_session_is_answered_and_its_sandbox_has_no_key(with_model) -> None:
    platform, model = with_model(script(
        [("bash", {"command": "echo hello > hello.txt; pwd"})], "There is a file now."))
    session = Session.begin(platform, None, agent_id=agent_of(platform)["id"], model="scripted-9").ready()
    answer = session.say("Make a file.")
    assert answer["content"] == "There is a file now."
    assert (answer["tokens_in"], answer["tokens_out"]) == (2000, 200)
    assert {question["model"] for question in model.questions} == {"scripted-9"}
    assert session.run("cat ~/hello.txt") == "hello\n"
    assert len(platform.get("/costs", execution_id=answer["id"], kind="model")["costs"]) == 2
    # In two halves, so that nobody finds the search itself; and one file to see that it finds.
    halves = f"'{KEY[:12]}' '{KEY[12:]}'"
    found = session.run(f"printf '%s%s' {halves} > /tmp/control; printf '%s%s\\n' {halves} | "
                        "grep -rlF -f - /home /tmp /etc /run /proc/*/environ /proc/*/cmdline 2>/dev/null; true")
    assert found.split() == ["/tmp/control"]


def test_a_tier_has_its_model(with_model) -> None:
    platform, model = with_model(script("Hello.", "Hello again."), CAISSON_TIER_MODELS="none=scripted-7, pro=x")
    agent = agent_of(platform)["id"]
    refused = platform.ask("POST", "/sessions", {"agent_id": agent, "model": "scripted-9"})
    assert_refusal(refused, 403, contains="scripted-7")
    session = Session.begin(platform, None, agent_id=agent).ready()
    assert_refusal(platform.ask("PUT", session.path + "/model", {"model": "scripted-9"}), 403)
    session.say("Hello?")
    assert {question["model"] for question in model.questions} == {"scripted-7"}


def test_a_build_is_made(with_model) -> None:
    platform, _ = with_model(script(
        [("write_file", {"path": "index.html", "content": page("Ships")})], "The page is there."))
    builds = Builds(platform.server)
    build = builds.ready(goal="a page about ships", runner="command",
                         agent_id=agent_of(platform)["id"])
    assert "Ships" in builds.open(build)


def test_an_agent_that_repeats_itself_is_stopped(with_model) -> None:
    platform, model = with_model(lambda _: [("bash", {"command": "echo again"})])
    started = platform.start(agent_of(platform))
    error = platform.wait_for_error(started)
    assert "stuck" in error and "repeats itself: bash echo again" in error and "Recommended:" in error
    escalated = platform.wait_for_event("agent.escalated", execution_id=started["execution_id"])
    assert escalated["problem"] and escalated["recommended_action"]
    assert escalated["tried"] == ["bash echo again", "bash echo again"]
    states = [e["state"] for e in platform.events(type="agent.state", execution_id=started["execution_id"])]
    assert states[:3] == ["planning", "executing", "stuck"]
    assert len(model.questions) == 3, "nobody tries it again"


def test_limits_of_the_agent_hold(with_model) -> None:
    platform, _ = with_model(lambda messages: [("bash", {"command": f"sleep 0; echo {len(messages)}"})])
    for config, words in (({"max_tool_calls": 2}, "2 tool calls"),
                          ({"max_dollars": 0.005, "price_in": 2, "price_out": 10}, "has spent $0.0060")):
        started = platform.start(agent_of(platform, **config))
        assert words in platform.wait_for_error(started)
    refused = platform.ask("POST", "/agents", {"name": "x", "adapter": "builtin", "config": {"max_dollars": 1}})
    assert_refusal(refused, 422, contains="price_in")


def test_kill_9_in_the_middle_of_a_tool(with_model, forge: Forge) -> None:
    def think(messages: list[dict]) -> Says:
        told = results(messages)
        if not told:
            return [("bash", {"command": "echo 1 >> count.txt"})]
        if len(told) == 1:
            return [("bash", {"command": "echo 2 >> count.txt; sleep 600", "timeout_s": 600})]
        if len(told) == 2:
            return [("bash", {"command": "pgrep -fc 'slee[p] 600'; cat count.txt"})]
        return "Counted."

    platform, model = with_model(think)
    started = platform.start(agent_of(platform))
    about = {"execution_id": started["execution_id"]}
    wait_until(lambda: len(platform.events(type="agent.tool.called", **about)) == 2, "the second call")
    sandbox = platform.get(f"/executions/{started['execution_id']}")["sandbox_id"]
    wait_until(lambda: platform.ask("POST", f"/sandboxes/{sandbox}/execute",
                                    {"argv": ["pgrep", "-f", "sleep 600"]}, 200).json()["exit_code"] == 0,
               "the command runs")
    await_heartbeats(platform, 3)
    platform.server.crash()
    platform.server.start()
    platform.wait(started)
    told = results(model.questions[-1]["messages"])
    assert len(told) == 3 and told[1].startswith("interrupted")
    assert "stdout:\n0\n1\n2\n" in told[2], "each was done once, and nothing is left running"
    called = [e["call"] for e in platform.events(type="agent.tool.called", **about)]
    assert called == [1, 2, 3]
    task = platform.get(f"/tasks/{started['task_id']}")
    assert file_at(forge, task["git_branch"], "count.txt") == "1\n2\n"
    costs = platform.get("/costs", task_id=started["task_id"], kind="model")["costs"]
    assert len(costs) == 4


PRICES = {"price_in": 2, "price_out": 10}
QUESTION = 3_000  # microdollars, of one with these prices


def test_a_used_up_day_lets_the_agent_sleep_until_the_next(with_model, forge: Forge) -> None:
    # Every question uses up a day.
    platform, model = with_model(script(
        [("write_file", {"path": "days.txt", "content": "first\n"})],
        [("bash", {"command": "echo second >> days.txt"})],
        [("bash", {"command": "echo third >> days.txt"})], "It took some days."),
        **budget(QUESTION - 100, day_s=12))
    started = platform.start(agent_of(platform, **PRICES))
    about = {"execution_id": started["execution_id"]}
    platform.wait_for_event("agent.sleeping", **about)
    platform.server.crash()
    platform.server.start()
    platform.wait(started)
    task = platform.get(f"/tasks/{started['task_id']}")
    assert file_at(forge, task["git_branch"], "days.txt") == "first\nsecond\nthird\n"
    slept = platform.events(type="agent.sleeping", **about)
    assert all(one["spent_microdollars"] >= one["limit_microdollars"] > 0 for one in slept)
    assert len({one["until"] for one in slept}) == len(slept), "told once, also by the next server"
    sandbox = platform.get(f"/executions/{started['execution_id']}")["sandbox_id"]
    statuses = [one["status"] for one in platform.events(type="sandbox_status", sandbox_id=sandbox)]
    # One may have been over before the server was back, or was begun again by the next one.
    assert 0 < statuses.count("paused") <= len(slept) + 1
    states = [one["state"] for one in platform.events(type="agent.state", **about)]
    assert states[:4] == ["planning", "executing", "sleeping", "executing"]
    phases = [(one["type"], one["phase"]) for one in platform.events(**about) if "phase" in one]
    assert phases == [("gsd.phase.started", "planning"), ("gsd.phase.completed", "planning"),
                      ("gsd.phase.started", "executing"), ("gsd.phase.completed", "executing")]
    assert len(model.questions) == 4, "nothing was asked twice"
    assert any("rested until" in one["content"] for one in model.questions[-1]["messages"])


def test_sessions_and_builds_sleep_too(with_model) -> None:
    platform, _ = with_model(script(
        [("write_file", {"path": "index.html", "content": page("Nights")})],
        [("bash", {"command": "cat index.html"})],
        "The page is there."), **budget(QUESTION - 100, day_s=12))
    agent = agent_of(platform, **PRICES)["id"]
    session = Session.begin(platform, None, agent_id=agent).ready()
    assert session.say("Make a page.")["content"] == "The page is there."
    rested = [e for e in platform.events(type="session_updated", session_id=session.id)
              if e["status"] == "paused"]
    assert rested and {e["reason"] for e in rested} == {"budget"}
    assert "Nights" in session.run("cat ~/index.html")
    builds = Builds(platform.server)
    build = builds.ready(goal="a page about nights", runner="command", agent_id=agent)
    assert "Nights" in builds.open(build)
    assert any("the agent sleeps until" in line["text"] for line in builds.log(build))


def test_an_agent_that_overruns_the_day_is_ended(with_model) -> None:
    platform, model = with_model(lambda messages: [("bash", {"command": f"echo {len(messages)}"})],
                                 **budget(QUESTION * 2 // 3))
    agent = agent_of(platform, **PRICES)
    started = platform.start(agent)
    about = {"execution_id": started["execution_id"]}
    assert "budget_exceeded" in platform.wait_for_error(started)
    assert platform.wait_for_event("agent.escalated", **about)["problem"]
    states = [one["state"] for one in platform.events(type="agent.state", **about)]
    assert states == ["planning", "executing", "budget_exceeded"]
    assert len(model.questions) == 1
    day = platform.get("/costs/budget")["day"]
    assert day["used_up"] and day["spent_microdollars"] == QUESTION > day["limit_microdollars"] * 1.1
    # One that took no part in it waits.
    other = platform.start(agent)
    slept = platform.wait_for_event("agent.sleeping", execution_id=other["execution_id"])
    assert slept["until"] == day["ends_at"]
    wait_until(lambda: platform.get(f"/executions/{other['execution_id']}")["status"] == "waiting", "it waits")
    assert len(model.questions) == 1
    platform.ask("POST", f"/runs/{other['run_id']}/cancel", {}, 200)
    wait_until(lambda: platform.get(f"/executions/{other['execution_id']}")["status"] == "canceled", "its end")


def test_a_plan_is_told(with_model) -> None:
    steps = [{"title": "Write it", "status": "in_progress", "files_to_modify": ["a.txt"]},
             {"title": "Look at it", "status": "pending", "files_to_modify": []}]
    done = [{**step, "status": "completed"} for step in steps]
    platform, model = with_model(script(
        [("update_plan", {"steps": steps}), ("update_plan", {"steps": [{"title": "x", "status": "perhaps"}]}),
         ("write_file", {"path": "a.txt", "content": "a\n"})],
        [("update_plan", {"steps": done})], "Done."))
    started = platform.start(agent_of(platform))
    platform.wait(started)
    plans = platform.events(type="agent.plan", execution_id=started["execution_id"])
    assert [plan["steps"] for plan in plans] == [steps, done]
    assert "one of pending, in_progress" in results(model.questions[-1]["messages"])[1]


def test_the_state_is_small_and_the_history_is_kept(with_model) -> None:
    content = "a long line of text\n" * 2000
    platform, _ = with_model(script([("write_file", {"path": "big.txt", "content": content})],
                                    [("read_file", {"path": "big.txt"})], "Done."))
    started = platform.start(agent_of(platform))
    platform.wait(started)
    with sqlite3.connect(f"file:{platform.server.data_dir}/db/caisson.db?mode=ro", uri=True) as database:
        ((phase, state),) = database.execute("SELECT phase, state FROM agent_loops")
        turns = database.execute("SELECT message FROM agent_turns ORDER BY seq").fetchall()
    assert phase == "done" and len(state) < 1000 and "a long line" not in state
    roles = [json.loads(message)["role"] for (message,) in turns]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "tool", "assistant"]


def test_without_a_model_the_task_says_what_is_missing(make_server, forge: Forge) -> None:
    platform = Platform(make_server(env=settings_for(forge)))
    assert "llm_base_url" in platform.wait_for_error(platform.start(agent_of(platform)))
