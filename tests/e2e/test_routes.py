"""The other routes of the control plane: exact statuses and bodies."""

from __future__ import annotations

import datetime
import json
import time

import pytest

from support.envd import Envd
from support.rest import Rest, assert_error

UNKNOWN = "i" + "0" * 20


def when(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


@pytest.mark.quick
@pytest.mark.parametrize(
    "method,path,body",
    [
        ("GET", f"/sandboxes/{UNKNOWN}", None),
        ("DELETE", f"/sandboxes/{UNKNOWN}", None),
        ("POST", f"/sandboxes/{UNKNOWN}/connect", {"timeout": 10}),
        ("POST", f"/v2/sandboxes/{UNKNOWN}/connect", {}),
        ("POST", f"/sandboxes/{UNKNOWN}/timeout", {"timeout": 10}),
        ("POST", f"/sandboxes/{UNKNOWN}/refreshes", {"duration": 20}),
        ("GET", f"/sandboxes/{UNKNOWN}/metrics", None),
        ("GET", f"/sandboxes/{UNKNOWN}/logs", None),
        ("GET", f"/v2/sandboxes/{UNKNOWN}/logs", None),
        ("PUT", f"/sandboxes/{UNKNOWN}/network", {}),
        ("POST", "/no/such/route", {}),
        ("GET", "/v9/sandboxes", None),
    ],
)
def test_not_found_says_so_in_its_body(rest: Rest, method: str, path: str, body):
    assert_error(rest.request(method, path, body), 404)


@pytest.mark.quick
def test_kill_answers_204_once(rest: Rest):
    made = rest.create()
    first = rest.kill(made)
    assert first.status == 204 and first.body == b""
    assert_error(rest.kill(made), 404)
    assert_error(rest.get(f"/sandboxes/{made['sandboxID']}"), 404)


@pytest.mark.quick
@pytest.mark.parametrize("route", ["/sandboxes/{}/connect", "/v2/sandboxes/{}/connect"])
def test_connect(rest: Rest, box: dict, route: str):
    path = route.format(box["sandboxID"])
    before = rest.detail(box)["endAt"]
    answer = rest.post(path, {"timeout": 5})
    assert answer.status == 200, answer
    body = answer.json()
    for name in ("sandboxID", "templateID", "clientID", "envdVersion", "envdAccessToken", "domain"):
        assert body[name] == box[name], name
    assert rest.detail(box)["endAt"] == before  # never shortened
    rest.post(path, {"timeout": 3000})
    assert when(rest.detail(box)["endAt"]) > when(before)


@pytest.mark.quick
def test_connect_bodies(rest: Rest, box: dict):
    v1, v2 = (f"{p}/sandboxes/{box['sandboxID']}/connect" for p in ("", "/v2"))
    for body in (None, {}, {"timeout": None}, {"memory": False}):
        assert rest.post(v2, body).status == 200, body
    assert_error(rest.post(v1, {}), 400, "timeout")
    for path in (v1, v2):
        assert_error(rest.post(path, {"timeout": "x"}), 400)
        assert_error(rest.post(path, {"timeout": 10**9}), 400)
        assert_error(rest.post(path, b"{broken"), 400)


@pytest.mark.quick
def test_timeout(rest: Rest):
    with rest.sandbox() as made:
        path = f"/sandboxes/{made['sandboxID']}/timeout"
        for seconds in (500, 40):
            answer = rest.post(path, {"timeout": seconds})
            assert answer.status == 204 and answer.body == b""
            left = (when(rest.detail(made)["endAt"]) - now()).total_seconds()
            assert seconds - 30 < left <= seconds + 1  # the calls may take their time
        assert_error(rest.post(path, {}), 400)
        assert_error(rest.post(path, {"timeout": "long"}), 400)
        assert_error(rest.post(path, {"timeout": 1.5}), 400)


@pytest.mark.parametrize("seconds", [0, -7])
def test_timeout_that_is_over_ends_the_sandbox(rest: Rest, seconds: int):
    with rest.sandbox() as made:
        assert (
            rest.post(f"/sandboxes/{made['sandboxID']}/timeout", {"timeout": seconds}).status == 204
        )
        end = time.monotonic() + 30
        while rest.get(f"/sandboxes/{made['sandboxID']}").status != 404:
            assert time.monotonic() < end, "the sandbox did not end"
            time.sleep(0.1)


def test_refreshes(rest: Rest):
    with rest.sandbox(timeout=40) as made:
        path = f"/sandboxes/{made['sandboxID']}/refreshes"
        assert rest.post(path, {"duration": 100}).status == 204
        left = (when(rest.detail(made)["endAt"]) - now()).total_seconds()
        assert 60 < left < 110
        assert rest.post(path).status == 204
        assert rest.post(path, {}).status == 204


@pytest.mark.timeout(120)
def test_metrics_are_in_seconds_of_unix_time(rest: Rest, box: dict):
    path = f"/sandboxes/{box['sandboxID']}/metrics"
    end = time.monotonic() + 40
    while not (listed := rest.get(path).json()):
        assert time.monotonic() < end, "no metric within 40 s"
        time.sleep(0.5)
    metric = listed[-1]
    for name in (
        "timestamp",
        "timestampUnix",
        "cpuCount",
        "cpuUsedPct",
        "memUsed",
        "memTotal",
        "memCache",
        "diskUsed",
        "diskTotal",
    ):
        assert metric[name] is not None, name
    stamp = int(metric["timestampUnix"])
    assert abs(stamp - time.time()) < 60
    assert abs(when(metric["timestamp"]).timestamp() - stamp) < 2
    assert rest.get(f"{path}?start={stamp - 60}&end={stamp + 60}").json()
    assert rest.get(f"{path}?start=1000&end=2000").json() == []
    assert rest.get(f"{path}?start={stamp + 5000}").json() == []
    assert_error(rest.get(f"{path}?start=yesterday"), 400)


def test_metrics_of_several(rest: Rest, box: dict):
    answer = rest.get(f"/sandboxes/metrics?sandbox_ids={box['sandboxID']},{UNKNOWN}")
    assert answer.status == 200
    assert UNKNOWN not in answer.json()["sandboxes"]
    too_many = ",".join([UNKNOWN] * 101)
    assert_error(rest.get(f"/sandboxes/metrics?sandbox_ids={too_many}"), 400)


def test_logs(rest: Rest, box: dict):
    answer = rest.get(f"/sandboxes/{box['sandboxID']}/logs")
    assert answer.status == 200
    body = answer.json()
    assert isinstance(body["logs"], list) and isinstance(body["logEntries"], list)
    assert body["logEntries"], "the creation of a sandbox is worth a line"
    for entry in body["logEntries"]:
        assert entry["level"] in ("debug", "info", "warn", "error")
        assert isinstance(entry["message"], str) and isinstance(entry["fields"], dict)
        when(entry["timestamp"])
    for line in body["logs"]:
        when(line["timestamp"])
        assert "level" in json.loads(line["line"])  # the CLI reads it
    future = int(time.time() * 1000) + 3_600_000
    assert rest.get(f"/sandboxes/{box['sandboxID']}/logs?start={future}").json()["logs"] == []
    assert len(rest.get(f"/sandboxes/{box['sandboxID']}/logs?limit=1").json()["logs"]) <= 1
    second = rest.get(f"/v2/sandboxes/{box['sandboxID']}/logs")
    assert second.status == 200 and isinstance(second.json()["logs"], list)


def test_network_update(rest: Rest):
    with rest.sandbox(network={"allowPublicTraffic": False, "denyOut": ["10.0.0.0/8"]}) as made:
        path = f"/sandboxes/{made['sandboxID']}/network"
        answer = rest.request("PUT", path, {"denyOut": ["192.168.0.0/16"]})
        assert answer.status == 204 and answer.body == b"", answer
        network = rest.detail(made)["network"]
        assert network["denyOut"] == ["192.168.0.0/16"]
        assert network["allowPublicTraffic"] is False  # ingress is untouched
        assert rest.request("PUT", path, {}).status == 204
        assert not rest.detail(made).get("network", {}).get("denyOut")
        assert_error(rest.request("PUT", path, {"denyOut": ["not an address"]}), 400)


def test_egress_of_a_running_sandbox_can_be_changed(rest: Rest):
    with rest.sandbox() as made:
        path = f"/sandboxes/{made['sandboxID']}/network"
        assert rest.request("PUT", path, {"allow_internet_access": False}).status == 204
        assert rest.detail(made)["allowInternetAccess"] is False
        rules = {"allowOut": ["example.com"], "denyOut": ["0.0.0.0/0"]}
        assert rest.request("PUT", path, rules).status == 204
        assert rest.detail(made)["network"] == rules
        # A domain means something only when everything else is denied.
        assert_error(rest.request("PUT", path, {"allowOut": ["example.com"]}), 400)
        assert rest.detail(made)["network"] == rules


@pytest.mark.quick
def test_health_needs_no_key(rest: Rest):
    assert rest.get("/health", key=None).status in (200, 204)


@pytest.mark.quick
def test_prometheus_metrics(rest: Rest, box: dict):
    answer = rest.get("/metrics")
    assert answer.status == 200
    assert answer.header("content-type").startswith("text/plain")
    text = answer.body.decode()
    assert "# TYPE caisson_" in text and "# HELP caisson_" in text
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            assert name.startswith(("caisson_", "process_")), line
            float(value)


@pytest.mark.quick
def test_cors(rest: Rest):
    origin = {"Origin": "https://app.example"}
    asked = "x-api-key,content-type,x-access-token,e2b-sandbox-id,lang,package_version,publisher"
    preflight = rest.request(
        "OPTIONS",
        "/v2/sandboxes",
        key=None,
        headers={
            **origin,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": asked,
        },
    )
    assert preflight.status in (200, 204)
    assert preflight.header("access-control-allow-origin") in ("*", "https://app.example")
    assert "POST" in preflight.header("access-control-allow-methods")
    allowed = preflight.header("access-control-allow-headers").lower().replace(" ", "").split(",")
    assert allowed == ["*"] or set(asked.split(",")) <= set(allowed)
    for answer in (
        rest.get("/v2/sandboxes", headers=origin),
        rest.get("/v2/sandboxes", headers=origin, key="bad"),
    ):
        assert answer.header("access-control-allow-origin") in ("*", "https://app.example")
    exposed = rest.get("/v2/sandboxes", headers=origin).header("access-control-expose-headers")
    for name in ("x-next-token", "x-total-running", "retry-after"):
        assert name in exposed.lower()


def test_wrong_method(rest: Rest):
    answer = rest.request("PATCH", "/v2/sandboxes", {})
    assert answer.status in (404, 405)
    assert_error(answer, answer.status)


def test_limit_of_sandboxes(make_server):
    server = make_server(env={"CAISSON_MAX_SANDBOXES": "2"})
    rest = Rest(server)
    made = [rest.create(), rest.create()]
    refused = rest.post("/v2/sandboxes", {"templateID": "base"})
    assert refused.status in (429, 503)
    assert_error(refused, refused.status)
    rest.kill(made[0])
    assert rest.post("/v2/sandboxes", {"templateID": "base"}).status == 201
