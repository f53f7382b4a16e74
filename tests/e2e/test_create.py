"""POST /sandboxes and POST /v2/sandboxes: defaults, fields, refusals."""

from __future__ import annotations

import datetime
import re
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.rest import LISTED_FIELDS, Rest, assert_error

ROUTES = ["/sandboxes", "/v2/sandboxes"]


def seconds_of_life(detail: dict) -> float:
    start, end = (
        datetime.datetime.fromisoformat(detail[k].replace("Z", "+00:00"))
        for k in ("startedAt", "endAt")
    )
    return (end - start).total_seconds()


@pytest.mark.quick
@pytest.mark.parametrize("route", ROUTES)
def test_what_create_answers(rest: Rest, route: str):
    answer = rest.post(route, {"templateID": "base", "timeout": 60})
    assert answer.status == 201, answer
    assert answer.header("content-type").startswith("application/json")
    body = answer.json()
    try:
        assert re.fullmatch(r"i[a-z0-9]{20}", body["sandboxID"])
        assert body["templateID"] and body["clientID"]
        assert re.fullmatch(r"\d+\.\d+\.\d+", body["envdVersion"])
        assert body["alias"] == "base"
        assert body["domain"].endswith(f":{rest.server.port}")
        assert "trafficAccessToken" not in body or body["trafficAccessToken"] is None
    finally:
        assert rest.kill(body).status == 204


@pytest.mark.quick
def test_defaults_of_the_two_versions(rest: Rest):
    """v1: 15 s and open unless `secure`; v2: 300 s and always secured."""
    first = rest.post("/sandboxes", {"templateID": "base"}).json()
    second = rest.post("/v2/sandboxes", {"templateID": "base"}).json()
    try:
        assert not first.get("envdAccessToken")
        assert second["envdAccessToken"]
        assert seconds_of_life(rest.detail(first)) == pytest.approx(15, abs=3)
        assert seconds_of_life(rest.detail(second)) == pytest.approx(300, abs=3)
    finally:
        rest.kill(first)
        rest.kill(second)


def test_v1_secure(rest: Rest):
    made = rest.post("/sandboxes", {"templateID": "base", "secure": True}).json()
    try:
        assert made["envdAccessToken"]
        assert rest.detail(made)["envdAccessToken"] == made["envdAccessToken"]
    finally:
        rest.kill(made)


@pytest.mark.quick
def test_detail_has_every_required_field(rest: Rest):
    with rest.sandbox(metadata={"a": "b"}) as made:
        detail = rest.detail(made)
        for name in LISTED_FIELDS:
            assert detail[name] is not None, name
        assert detail["state"] == "running"
        assert detail["metadata"] == {"a": "b"}
        assert all(isinstance(detail[k], int) for k in ("cpuCount", "memoryMB", "diskSizeMB"))
        if "lifecycle" in detail:
            assert detail["lifecycle"] == {"onTimeout": "kill", "autoResume": False}
        for name in ("startedAt", "endAt"):
            assert re.fullmatch(
                r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3,9}(Z|[+-]\d\d:\d\d)", detail[name]
            )


def test_unknown_fields_and_nulls_are_ignored(rest: Rest):
    body = {
        "templateID": "base",
        "metadata": None,
        "envVars": None,
        "autoPause": False,
        "mcp": None,
        "network": None,
        "iam": None,
        "volumeMounts": None,
        "allow_internet_access": None,
        "somethingNew": {"deep": [1, 2, {"x": None}]},
        "timeout": 30,
    }
    for route in ROUTES:
        answer = rest.post(route, body)
        assert answer.status == 201, answer
        rest.kill(answer.json())


def test_internet_access_is_reported_in_camel_case(rest: Rest):
    with rest.sandbox(allow_internet_access=False) as made:
        assert rest.detail(made)["allowInternetAccess"] is False


def test_network_settings_are_given_back(rest: Rest):
    network = {"allowPublicTraffic": False, "denyOut": ["10.0.0.0/8"], "allowOut": ["1.1.1.1"]}
    with rest.sandbox(network=network) as made:
        assert made["trafficAccessToken"]
        seen = rest.detail(made)["network"]
        assert seen["allowPublicTraffic"] is False
        assert seen["denyOut"] == ["10.0.0.0/8"] and seen["allowOut"] == ["1.1.1.1"]


@pytest.mark.quick
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(
    "body,text",
    [
        ({"templateID": "base", "timeout": 0}, "Timeout must be greater than 0"),
        ({"templateID": "base", "timeout": -1}, "Timeout must be greater than 0"),
        ({"templateID": "base", "timeout": 10**9}, "timeout"),
        ({"templateID": "base", "timeout": "soon"}, "timeout"),
        ({"templateID": 5}, "templateID"),
        ({"templateID": "base", "metadata": {"a": 1}}, "metadata"),
        ({"templateID": "base", "metadata": ["a"]}, "metadata"),
        ({"templateID": "base", "envVars": "A=1"}, "envVars"),
        ({}, "templateID"),
        ([], ""),
        (b"{not json", ""),
        (b"", ""),
    ],
)
def test_refused_bodies(rest: Rest, route: str, body, text: str):
    headers = {"Content-Type": "application/json"}
    assert_error(rest.post(route, body, headers=headers), 400, text)


@pytest.mark.parametrize(
    "extra",
    [
        {"autoPauseMemory": False},
        {"autoPause": True, "autoPauseMemory": False, "autoResume": {"enabled": True}},
        {"network": {"denyOut": ["example.com"]}},
        {"network": {"allowOut": ["example.com"]}},
    ],
)
def test_settings_that_contradict_each_other(rest: Rest, extra: dict):
    assert_error(rest.post("/v2/sandboxes", {"templateID": "base", **extra}), 400)


def test_private_traffic_needs_a_secured_sandbox(rest: Rest):
    body = {"templateID": "base", "network": {"allowPublicTraffic": False}}
    assert_error(rest.post("/sandboxes", body), 400)


@pytest.mark.quick
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("name", ["nope", "team/nope", "nope:tag", "base:no-such-tag", "../etc"])
def test_unknown_template(rest: Rest, route: str, name: str):
    answer = rest.post(route, {"templateID": name})
    assert answer.status in (400, 404) if name == "../etc" else answer.status == 404, answer
    assert_error(answer, answer.status)


@pytest.mark.quick
@pytest.mark.parametrize("key", [None, "", "wrong", "e2b_" + "0" * 40])
def test_without_a_valid_key(rest: Rest, key: str | None):
    headers = {} if key is None else {"X-API-KEY": key}
    for method, path in (
        ("POST", "/v2/sandboxes"),
        ("POST", "/sandboxes"),
        ("GET", "/v2/sandboxes"),
        ("GET", "/sandboxes"),
        ("GET", "/sandboxes/i" + "0" * 20),
        ("DELETE", "/sandboxes/i" + "0" * 20),
    ):
        body = {"templateID": "base"} if method == "POST" else None
        assert_error(rest.request(method, path, body, headers=headers, key=None), 401)


@pytest.mark.quick
def test_templates_are_listed(rest: Rest):
    (base,) = (one for one in rest.get("/templates").json() if "base" in one["aliases"])
    assert base["cpuCount"] > 0 and base["memoryMB"] > 0
    with rest.sandbox(templateID="base") as made:
        assert made["templateID"] == base["templateID"]


def test_template_by_its_id(rest: Rest):
    with rest.sandbox() as made:
        with rest.sandbox(templateID=made["templateID"]) as again:
            assert again["templateID"] == made["templateID"]
        with rest.sandbox(templateID="base:default") as tagged:
            assert tagged["templateID"] == made["templateID"]


@pytest.mark.quick
def test_composite_ids(rest: Rest):
    """Old clients append `-<clientID>`; one suffix is cut off, more are an error."""
    with rest.sandbox() as made:
        composite = f"{made['sandboxID']}-{made['clientID']}"
        answer = rest.get(f"/sandboxes/{composite}")
        assert answer.status == 200 and answer.json()["sandboxID"] == made["sandboxID"]
        assert_error(rest.get(f"/sandboxes/{composite}-more"), 400)
        assert rest.delete(f"/sandboxes/{composite}").status == 204


def test_percent_encoded_path(rest: Rest):
    with rest.sandbox() as made:
        encoded = "".join(f"%{ord(c):02X}" for c in made["sandboxID"])
        assert rest.get(f"/sandboxes/{encoded}").json()["sandboxID"] == made["sandboxID"]
        # An encoded slash stays inside its segment: this is no way to another route.
        assert rest.get(f"/sandboxes/{made['sandboxID']}%2Fmetrics").status in (400, 404)


def test_concurrent_creates_get_different_machines(rest: Rest):
    with ThreadPoolExecutor(20) as pool:
        made = list(pool.map(lambda _: rest.create(timeout=60), range(20)))
        try:
            assert len({m["sandboxID"] for m in made}) == 20
            assert len({m["envdAccessToken"] for m in made}) == 20
        finally:
            statuses = list(pool.map(lambda m: rest.kill(m).status, made))
    assert statuses == [204] * 20


def test_idempotency_key(rest: Rest):
    headers = {"Idempotency-Key": uuid.uuid4().hex}
    body = {"templateID": "base", "timeout": 60, "metadata": {"n": "1"}}
    first = rest.post("/v2/sandboxes", body, headers=headers)
    assert first.status == 201, first
    try:
        again = rest.post("/v2/sandboxes", body, headers=headers)
        assert again.status == 201 and again.json()["sandboxID"] == first.json()["sandboxID"]
        other = rest.post("/v2/sandboxes", {**body, "metadata": {"n": "2"}}, headers=headers)
        error = assert_error(other, 422)
        assert error["error_code"] == "idempotency_request_mismatch"
    finally:
        rest.kill(first.json())
