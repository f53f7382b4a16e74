"""The settings of a server, as its administrator sees them."""

from __future__ import annotations

import json

import pytest

from support.rest import Rest

SECRETS = {"GITHUB_TOKEN": "a-secret-of-mine-1", "CAISSON_LLM_API_KEY": "a-secret-of-mine-2",
           "GITHUB_WEBHOOK_SECRET": "a-secret-of-mine-3", "E2B_API_KEY": "a-secret-of-mine-4"}


def settings(rest: Rest) -> dict[str, dict]:
    answer = rest.get("/api/v1/settings")
    assert answer.status == 200, answer
    page = answer.json()
    assert page["total"] == len(page["settings"]) > 150
    return {one["name"]: one for one in page["settings"]}


@pytest.mark.quick
def test_settings_and_where_they_come_from(make_server, tmp_path) -> None:
    file = tmp_path / "caisson.toml"
    file.write_text("max_events = 77\nrate_burst = 5\n")
    server = make_server(args=["--config", str(file), "--set", "max_forks=3"],
                         env={**SECRETS, "CAISSON_RATE_BURST": "6", "GIT_USER_NAME": "Bo"})
    rest = Rest(server)
    found = settings(rest)
    assert found["max_events"] == {"name": "max_events", "value": "77", "default": "10000", "source": "file",
                                   "secret": False, "description": "timeline entries kept per sandbox"}
    assert (found["rate_burst"]["value"], found["rate_burst"]["source"]) == ("6", "environment")
    assert (found["max_forks"]["value"], found["max_forks"]["source"]) == ("3", "option")
    assert (found["git_user_name"]["value"], found["git_user_name"]["source"]) == ("Bo", "environment")
    assert found["max_timeout_s"]["source"] == "default"
    assert found["max_timeout_s"]["value"] == found["max_timeout_s"]["default"] == "86400"
    assert all(one["description"] for one in found.values())
    for name in ("github_token", "llm_api_key", "github_webhook_secret", "e2b_api_key"):
        assert found[name]["secret"] and found[name]["value"] == "set", found[name]
    assert found["github_app_key_file"]["secret"] and found["github_app_key_file"]["value"] == ""
    # The same is in the log of the start, without what is as it always is.
    log = server.log_since(0)
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    told = {line["name"]: line for line in lines if line.get("message") == "setting"}
    assert told["max_events"]["value"] == "77" and told["max_events"]["source"] == "file"
    assert told["github_token"]["value"] == "set" and "max_timeout_s" not in told
    assert {name for name, one in found.items() if one["source"] != "default"} == set(told)
    assert "a-secret-of-mine" not in log and "a-secret-of-mine" not in json.dumps(found)

    user = rest.post("/api/v1/users", {"name": "somebody"}).json()
    key = rest.post("/api/v1/keys", {"name": "k", "user_id": user["id"]}).json()["key"]
    assert rest.get("/api/v1/settings", key=key).status == 403
    assert rest.get("/api/v1/settings", key=None).status == 401
