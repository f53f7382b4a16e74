"""Connect-RPC as it is on the wire: codecs, envelopes, errors, users, tokens."""

from __future__ import annotations

import base64
import json
import re

import pytest

from support.envd import END_STREAM, Envd, decode_envelopes, envelope
from support.rest import Response, Rest, assert_error

CONNECT = {"Content-Type": "application/connect+json", "Connect-Protocol-Version": "1"}
HTTP_STATUS = {
    "invalid_argument": 400,
    "not_found": 404,
    "already_exists": 409,
    "unauthenticated": 401,
    "unimplemented": 501,
    "internal": 500,
    "failed_precondition": 400,
    "permission_denied": 403,
}


def assert_rpc_error(answer: Response, code: str, contains: str = "") -> None:
    assert answer.status == HTTP_STATUS[code], answer
    assert answer.header("content-type").startswith("application/json")
    body = answer.json()
    assert body["code"] == code, body
    assert contains in body["message"], body


@pytest.mark.quick
def test_unary_success(envd: Envd):
    assert isinstance(envd.ok("process.Process/List").get("processes", []), list)
    entry = envd.ok("filesystem.Filesystem/Stat", {"path": "/etc"})["entry"]
    assert entry["name"] == "etc" and entry["type"] == "FILE_TYPE_DIRECTORY"


@pytest.mark.quick
def test_int64_is_a_string_and_uint32_a_number(envd: Envd, workdir: str):
    envd.request(
        "POST", f"/files?path={workdir}/f", b"12345", {"Content-Type": "application/octet-stream"}
    )
    entry = envd.ok("filesystem.Filesystem/Stat", {"path": f"{workdir}/f"})["entry"]
    assert entry["size"] == "5"
    assert entry["mode"] == 0o644
    assert entry["permissions"] == "-rw-r--r--"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", entry["modifiedTime"])
    assert "symlinkTarget" not in entry and "metadata" not in entry and "isSymlink" not in entry


def test_defaults_are_left_out(envd: Envd, workdir: str):
    envd.request(
        "POST", f"/files?path={workdir}/empty", b"", {"Content-Type": "application/octet-stream"}
    )
    entry = envd.ok("filesystem.Filesystem/Stat", {"path": f"{workdir}/empty"})["entry"]
    assert "size" not in entry
    assert envd.ok("filesystem.Filesystem/Remove", {"path": f"{workdir}/empty"}) == {}
    assert envd.ok("filesystem.Filesystem/ListDir", {"path": workdir}) in ({}, {"entries": []})


@pytest.mark.quick
def test_names_in_both_spellings_and_unknown_fields(envd: Envd, workdir: str):
    for body in (
        {"path": workdir, "includeEntry": True, "allowNetworkMounts": False},
        {"path": workdir, "include_entry": True, "allow_network_mounts": False},
        {"path": workdir, "recursive": None, "brandNew": {"a": [1, {"b": None}]}},
    ):
        watcher = envd.ok("filesystem.Filesystem/CreateWatcher", body)["watcherId"]
        assert re.fullmatch(r"w[a-z0-9]{20}", watcher)
        for name in ("watcherId", "watcher_id"):
            envd.ok("filesystem.Filesystem/GetWatcherEvents", {name: watcher})
        assert envd.ok("filesystem.Filesystem/RemoveWatcher", {"watcher_id": watcher}) == {}
        assert_rpc_error(
            envd.unary("filesystem.Filesystem/GetWatcherEvents", {"watcherId": watcher}),
            "not_found",
        )


def test_numbers_and_enums_in_every_spelling(envd: Envd, workdir: str):
    for depth in (2, "2", 2.0):
        envd.ok("filesystem.Filesystem/ListDir", {"path": workdir, "depth": depth})
    for signal in ("SIGNAL_SIGKILL", 9):
        assert_rpc_error(
            envd.unary(
                "process.Process/SendSignal", {"process": {"pid": 999999}, "signal": signal}
            ),
            "not_found",
            "process with pid 999999 not found",
        )
    for pid in ("999999", 999999.0):
        assert_rpc_error(
            envd.unary("process.Process/SendSignal", {"process": {"pid": pid}, "signal": 15}),
            "not_found",
        )
    for bad in (-1, "x", 1.5, 2**40):
        assert_rpc_error(
            envd.unary("filesystem.Filesystem/ListDir", {"path": workdir, "depth": bad}),
            "invalid_argument",
        )


@pytest.mark.quick
@pytest.mark.parametrize("body", [b"{broken", b"[]", b"5", b"\xff\xfe", b'{"path":5}'])
def test_unary_bodies_that_are_no_message(envd: Envd, body: bytes):
    assert_rpc_error(envd.unary("filesystem.Filesystem/Stat", body), "invalid_argument")


def test_empty_unary_body_is_an_empty_message(envd: Envd):
    assert envd.unary("process.Process/List", b"").status in (200, 400)
    assert envd.unary("process.Process/List", b"{}").status == 200


@pytest.mark.quick
@pytest.mark.parametrize(
    "method", ["process.Process/Nothing", "filesystem.Filesystem/Nope", "no.Service/List"]
)
def test_unknown_methods(envd: Envd, method: str):
    answer = envd.unary(method, {})
    assert answer.status in (404, 501), answer


def test_wrong_content_type(envd: Envd):
    answer = envd.unary("process.Process/List", b"{}", headers={"Content-Type": "text/plain"})
    assert answer.status == 415, answer
    streamed = envd.request(
        "POST", "/process.Process/Start", b"{}", {"Content-Type": "application/json"}
    )
    assert streamed.status == 415, streamed
    charset = {"Content-Type": "application/json; charset=utf-8"}
    assert envd.unary("process.Process/List", b"{}", headers=charset).status == 200
    identity = {"Content-Encoding": "identity", "Accept-Encoding": "identity"}
    assert envd.unary("process.Process/List", b"{}", headers=identity).status == 200


def test_get_is_not_a_call(envd: Envd):
    answer = envd.request("GET", "/process.Process/List")
    assert answer.status in (404, 405)


def streamed(envd: Envd, method: str, body: bytes) -> list[tuple[int, dict]]:
    answer = envd.request("POST", f"/{method}", body, CONNECT)
    assert answer.status == 200, answer
    assert answer.header("content-type").startswith("application/connect+json")
    assert answer.header("content-encoding") is None
    frames = decode_envelopes(answer.body)
    assert [bool(f & END_STREAM) for f, _ in frames] == [False] * (len(frames) - 1) + [True]
    assert all(flags in (0, END_STREAM) for flags, _ in frames)
    return frames


@pytest.mark.quick
def test_a_stream_ends_with_an_end_stream_envelope(envd: Envd):
    frames = streamed(
        envd,
        "process.Process/Start",
        envelope({"process": {"cmd": "/bin/sh", "args": ["-c", "printf hi"]}, "stdin": False}),
    )
    messages = [m for _, m in frames]
    assert messages[0]["event"]["start"]["pid"] > 0
    assert messages[1] == {"event": {"data": {"stdout": base64.b64encode(b"hi").decode()}}}
    assert messages[2] == {"event": {"end": {"exited": True, "status": "exit status 0"}}}
    assert messages[3] == {}


@pytest.mark.quick
@pytest.mark.parametrize(
    "method,message,code,text",
    [
        ("process.Process/Start", {"process": {"cmd": "/no/such/program"}}, "invalid_argument", ""),
        (
            "process.Process/Start",
            {"process": {"cmd": "/bin/true", "cwd": "/no/such"}},
            "invalid_argument",
            "cwd '/no/such' does not exist",
        ),
        (
            "process.Process/Connect",
            {"process": {"pid": 999999}},
            "not_found",
            "process with pid 999999 not found",
        ),
        ("process.Process/Connect", {"process": {"tag": "nobody"}}, "not_found", "nobody"),
        ("process.Process/Connect", {}, "unimplemented", ""),
        ("filesystem.Filesystem/WatchDir", {"path": "/no/such"}, "not_found", ""),
        ("filesystem.Filesystem/WatchDir", {"path": "/etc/hostname"}, "invalid_argument", ""),
    ],
)
def test_stream_errors_are_in_the_end_envelope(envd: Envd, method, message, code, text):
    frames = streamed(envd, method, envelope(message))
    error = frames[-1][1]["error"]
    assert error["code"] == code, error
    assert text in error["message"]


@pytest.mark.parametrize(
    "body",
    [
        envelope(b"{broken"),
        envelope({"process": {"cmd": 5}}),
        b"\x00\x00\x00",
        b"\x00\x00\x00\x00\x20{}",
        b"",
        b"\x01" + envelope({})[1:],
        b"\x00\xff\xff\xff\xff",
    ],
    ids=["json", "type", "short head", "short body", "nothing", "compressed", "huge"],
)
def test_broken_envelopes(envd: Envd, body: bytes):
    answer = envd.request("POST", "/process.Process/Start", body, CONNECT)
    if answer.status == 200:
        error = decode_envelopes(answer.body)[-1][1]["error"]
        assert error["code"] in (
            "invalid_argument",
            "unimplemented",
            "internal",
            "resource_exhausted",
        ), error
    else:
        assert 400 <= answer.status < 500, answer


@pytest.mark.quick
def test_user_by_basic_authorisation(envd: Envd):
    for user, expected in (("root", b"root\n"), ("user", b"user\n"), (None, b"user\n")):
        assert envd.run("whoami", user=user)[0] == expected
    assert_rpc_error(
        envd.unary("filesystem.Filesystem/Stat", {"path": "."}, user="ghost"),
        "unauthenticated",
        "invalid username: 'ghost'",
    )
    stream = envd.start("true", user="ghost")
    assert list(stream) == [] and stream.error["code"] == "unauthenticated"
    assert stream.error["message"] == "invalid username: 'ghost'"


@pytest.mark.quick
@pytest.mark.parametrize("token", [None, "wrong"])
def test_token_is_needed(envd: Envd, token: str | None):
    message = (
        "unauthorized access, please provide a valid access token or method signing if supported"
    )
    for answer in (
        envd.unary("process.Process/List", {}, token=token),
        envd.unary("filesystem.Filesystem/Stat", {"path": "/"}, token=token),
        envd.request("POST", "/process.Process/Start", envelope({}), CONNECT, token=token),
        envd.request("GET", "/metrics", token=token),
        envd.request("GET", "/envs", token=token),
    ):
        assert answer.status == 401
        assert answer.header("content-type") == "application/json; charset=utf-8"
        assert answer.json() == {"code": 401, "message": message}
    assert envd.request("GET", "/health", token=token).status == 204


def test_an_open_sandbox_needs_no_token(rest: Rest):
    made = rest.post("/sandboxes", {"templateID": "base", "timeout": 60}).json()
    try:
        envd = Envd(rest.server, made)
        assert envd.run("echo open")[0] == b"open\n"
        assert envd.request("GET", "/files?path=/etc/hostname&signature=v1_nonsense").status == 200
    finally:
        rest.kill(made)


def test_the_token_of_another_sandbox(rest: Rest, envd: Envd):
    with rest.sandbox() as other:
        assert envd.unary("process.Process/List", {}, token=other["envdAccessToken"]).status == 401


@pytest.mark.quick
def test_health_of_envd(envd: Envd):
    answer = envd.request("GET", "/health")
    assert (answer.status, answer.body) == (204, b"")
    assert answer.header("cache-control") == "no-store"


def test_metrics_and_environment_of_envd(envd: Envd):
    metrics = envd.request("GET", "/metrics").json()
    for name in (
        "ts",
        "cpu_count",
        "cpu_used_pct",
        "mem_total",
        "mem_used",
        "disk_used",
        "disk_total",
    ):
        assert metrics[name] is not None, name
    assert 0 < metrics["mem_used"] < metrics["mem_total"]
    envs = envd.request("GET", "/envs").json()
    assert envs["E2B_SANDBOX"] == "true" and envs["E2B_SANDBOX_ID"] == envd.sandbox_id


@pytest.mark.quick
@pytest.mark.parametrize(
    "path", ["/init", "/freeze", "/unfreeze", "/collapse", "/fsfreeze", "/fsthaw", "/upgrade"]
)
def test_internal_routes_are_hidden(envd: Envd, path: str):
    answer = envd.request("POST", path, b"{}", {"Content-Type": "application/json"})
    assert_error(answer, 404)


def test_large_messages(envd: Envd, workdir: str):
    """A command line of 100 kB passes; a message beyond the limit is refused, not swallowed."""
    text = "x" * 100_000
    out, _, _ = envd.run('printf %s "$BIG" | wc -c', process={"envs": {"BIG": text}})
    assert out.strip() == b"100000"
    huge = json.dumps({"path": "y" * 80_000_000}).encode()
    try:
        answer = envd.unary("filesystem.Filesystem/Stat", huge)
        assert 400 <= answer.status < 500, answer
    except (BrokenPipeError, ConnectionResetError):
        pass  # refused and cut while we were still sending
    assert envd.ok("filesystem.Filesystem/Stat", {"path": "/"})
