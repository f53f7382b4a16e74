"""The pull request of a session: what the session says of it is what the forge says."""

from __future__ import annotations

import pytest
from support.forge import Forge
from support.forge_plugin import FORGE_REPOSITORY
from support.sessions import Session, wait_until
from support.work import Platform, settings_for

pytestmark = pytest.mark.timeout(240)

SECRET = "a webhook secret"
WRITE = 'echo "$CAISSON_MESSAGE" >> notes.txt'


@pytest.fixture
def here(make_server, forge: Forge) -> Platform:
    server = make_server(env=settings_for(forge, GITHUB_WEBHOOK_SECRET=SECRET))
    forge.webhook_url = f"{server.url}/api/v1/webhooks/github"
    forge.webhook_secret = SECRET
    return Platform(server)


def test_its_state_is_followed(here: Platform, forge: Forge) -> None:
    session = Session.begin(here, WRITE, repo_url=FORGE_REPOSITORY)
    assert session.row()["pull_request_state"] == ""
    session.say("remember the milk")
    row = session.row()
    number = row["pull_request_number"]
    assert number and row["pull_request_state"] == "draft"

    def becomes(state: str) -> None:
        wait_until(lambda: session.row()["pull_request_state"] == state, f"it is {state}")
        told = here.events(session_id=session.id, type="session_updated")[-1]
        assert told["pull_request_state"] == state and told["pull_request_number"] == number

    pull = f"/github/pull-requests/{number}"
    assert not here.ask("POST", pull + "/ready", {"repo": FORGE_REPOSITORY}, 200).json()["draft"]
    assert session.row()["pull_request_state"] == "open"  # at once: this server did it
    becomes("open")
    # What others do comes by webhook.
    (at_the_forge,) = forge.repositories[FORGE_REPOSITORY].pulls
    forge.review(at_the_forge, "reviewer", "APPROVED")
    becomes("approved")
    session.say("and the bread")
    assert session.row()["pull_request_state"] == "approved"
    here.ask("POST", pull + "/merge", {"repo": FORGE_REPOSITORY}, 200)
    becomes("merged")
    merged = here.wait_for_event("pr_merged", session_id=session.id)
    assert merged["pr_number"] == number
    here.ask("DELETE", session.path, status=204)


def test_a_pull_request_that_others_close(here: Platform, forge: Forge) -> None:
    session = Session.begin(here, WRITE, repo_url=FORGE_REPOSITORY)
    session.say("remember the milk")
    number = session.row()["pull_request_number"]
    close = {"repo": FORGE_REPOSITORY, "state": "closed"}
    here.ask("PATCH", f"/github/pull-requests/{number}", close, 200)
    assert session.row()["pull_request_state"] == "closed"
    here.ask("PATCH", f"/github/pull-requests/{number}", {**close, "state": "open"}, 200)
    wait_until(lambda: session.row()["pull_request_state"] == "draft", "it is open again, and a draft as before")
    here.ask("DELETE", session.path, status=204)
