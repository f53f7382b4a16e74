"""Models of sessions: a small one names them, and names that nobody offers are refused."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
from support.model import KEY, Says, ScriptedModel
from support.rest import assert_refusal
from support.sessions import Session, wait_until
from support.work import Platform

pytestmark = pytest.mark.timeout(240)

MESSAGE = "please look why the login of our shop fails since Tuesday\nIt is urgent."
WORDS = MESSAGE.partition("\n")[0]


@pytest.fixture
def with_model(make_server) -> Iterator[Callable[..., tuple[Platform, ScriptedModel]]]:
    models = []

    def make(think: Callable[[list[dict]], Says], offers: list[str] | None = None,
             **settings: str) -> tuple[Platform, ScriptedModel]:
        models.append(ScriptedModel(think, offers=offers))
        return Platform(make_server(env={**models[-1].settings, **settings})), models[-1]

    yield make
    for model in models:
        model.close()


def naming(with_model, think: Callable[[list[dict]], Says]) -> tuple[Platform, ScriptedModel]:
    return with_model(think, CAISSON_SESSION_TITLE_MODEL="tiny-1")


def runs(platform: Platform) -> list[dict]:
    return [run for run in platform.get("/runs")["runs"] if run["definition"] == "title"]


# ---- naming ----------------------------------------------------------------------------------


def test_a_small_model_names_a_session_by_its_first_message(with_model) -> None:
    here, model = naming(with_model, lambda _: f'**"Broken login\tof the shop."**\n{KEY}')
    session = Session.begin(here, message=MESSAGE)
    assert session.made["title"] == WORDS, "nobody waits for the model"
    wait_until(lambda: session.row()["title"] == "Broken login of the shop", "it is named")
    (question,) = model.questions
    assert question["model"] == "tiny-1" and question["messages"][-1]["content"] == MESSAGE
    titles = [event["title"] for event in here.events(session_id=session.id, type="session_updated")]
    assert "Broken login of the shop" in titles
    (cost,) = here.get("/costs", kind="model")["costs"]
    assert (cost["tokens_in"], cost["tokens_out"]) == (1000, 100)

    # One that begins without a message is named by the first that comes, and by no other.
    later = Session.begin(here)
    assert later.made["title"] == "New session"
    later.say(MESSAGE)
    wait_until(lambda: later.row()["title"] == "Broken login of the shop", "it is named, too")
    later.say("more")
    # Who gives a name is not asked.
    named = Session.begin(here, message=MESSAGE, title="Mine")
    named.wait(named.history()["messages"][-1])
    assert named.row()["title"] == "Mine" and len(model.questions) == 2


def test_a_name_that_its_user_gave_meanwhile_stays(with_model) -> None:
    asked, go = threading.Event(), threading.Event()

    def think(_: list[dict]) -> Says:
        asked.set()
        go.wait(60)
        return "Too late"

    here, _ = naming(with_model, think)
    session = Session.begin(here, message=MESSAGE)
    assert asked.wait(60)
    here.ask("PATCH", session.path, {"title": "Mine"}, 200)
    go.set()
    wait_until(lambda: [run["state"] for run in runs(here)] == ["succeeded"], "the model has answered")
    assert session.row()["title"] == "Mine"


def test_a_server_that_was_killed_meanwhile_names_it_later(with_model) -> None:
    asked, go = threading.Event(), threading.Event()

    def think(_: list[dict]) -> Says:
        asked.set()
        go.wait(60)
        return "Broken login"

    here, _ = naming(with_model, think)
    session = Session.begin(here, message=MESSAGE)
    assert asked.wait(60)
    here.server.crash()
    go.set()
    here.server.start()
    wait_until(lambda: session.row()["title"] == "Broken login", "it is named")


@pytest.mark.parametrize("says", ["", '""\n***\n', [("bash", {"command": "true"})]])
def test_what_is_no_name_leaves_the_words(with_model, says: Says) -> None:
    here, model = naming(with_model, lambda _: says)
    session = Session.begin(here, message=MESSAGE)
    wait_until(lambda: [run["state"] for run in runs(here)] == ["succeeded"], "the model was asked")
    assert session.row()["title"] == WORDS and len(model.questions) == 1


def test_a_model_that_cannot_be_reached_leaves_the_words(make_server) -> None:
    here = Platform(make_server(env={
        "CAISSON_LLM_BASE_URL": "http://127.0.0.1:9/v1", "CAISSON_LLM_MODEL": "m", "CAISSON_LLM_TIMEOUT_MS": "500",
        "CAISSON_SESSION_TITLE_MODEL": "tiny-1"}))
    session = Session.begin(here, message=MESSAGE)
    wait_until(lambda: [run["state"] for run in runs(here)] == ["succeeded"], "it is over")
    assert session.row()["title"] == WORDS


# ---- names of models -------------------------------------------------------------------------


def agent(platform: Platform, adapter: str = "builtin", **config: object) -> dict:
    return platform.ask("POST", "/agents", {"name": "inside", "adapter": adapter, "config": config}, 201).json()


def test_a_model_that_its_server_does_not_offer_is_refused(with_model) -> None:
    here, model = with_model(lambda _: "done", offers=["small-2", "large-2"])
    offered = {one["id"]: one["offered"] for one in here.get("/models/available")["models"]}
    assert offered == {"large-2": True, "scripted-1": False, "small-2": True}
    assert set(model.keys) == {f"Bearer {KEY}"}

    body = {"name": "other", "adapter": "builtin", "config": {"model": "huge-9"}}
    assert_refusal(here.ask("POST", "/agents", body), 422, "validation_failed", "'huge-9'; it has large-2, small-2")
    inside = agent(here, model="small-2")
    assert_refusal(here.ask("PATCH", f"/agents/{inside['id']}", {"config": {"model": "huge-9"}}), 422, "validation_failed")
    assert_refusal(here.ask("POST", "/sessions", {"agent_id": inside["id"], "model": "huge-9"}), 422, "validation_failed")
    session = Session.begin(here, None, agent_id=inside["id"], model="large-2")
    assert_refusal(here.ask("PATCH", session.path, {"model": "huge-9"}), 422, "validation_failed")
    assert_refusal(here.ask("PUT", session.path + "/model", {"model": "huge-9"}), 422, "validation_failed")
    # The server's own model, and the agent's own choice, are always there.
    for name in ("scripted-1", "", "small-2"):
        here.ask("PUT", session.path + "/model", {"model": name}, 200)

    # Programs that find their models themselves are not judged; one that is not theirs comes to light
    # when the agent changes.
    outside = agent(here, "claude", model="opus")
    other = Session.begin(here, None, agent_id=outside["id"], model="sonnet-77")
    assert_refusal(here.ask("PATCH", other.path, {"agent_id": inside["id"]}), 422, "validation_failed")
    here.ask("PATCH", other.path, {"agent_id": inside["id"], "model": "small-2"}, 200)


@pytest.mark.parametrize("offers", [None, []])
def test_a_server_that_does_not_tell_makes_no_name_wrong(with_model, offers: list[str] | None) -> None:
    here, _ = with_model(lambda _: "done", offers=offers)
    inside = agent(here, model="huge-9")
    Session.begin(here, None, agent_id=inside["id"], model="huger-10")
    assert [one["id"] for one in here.get("/models/available")["models"]] == ["huge-9", "scripted-1"]
