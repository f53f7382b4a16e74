"""Processes by the raw protocol: lifetimes, late connections, signals, input, keep-alive."""

from __future__ import annotations

import base64
import hashlib
import http.client
import threading
import time

import pytest

from support.envd import Envd, Stream, decode_envelopes, envelope
from support.rest import Rest


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def pid_of(stream: Stream) -> int:
    return stream.next()["event"]["start"]["pid"]


def listed(envd: Envd) -> dict[int, dict]:
    return {p["pid"]: p for p in envd.ok("process.Process/List").get("processes", [])}


def wait_gone(envd: Envd, pid: int, deadline_s: float = 30) -> None:
    end = time.monotonic() + deadline_s
    while pid in listed(envd):
        assert time.monotonic() < end, f"process {pid} is still listed"
        time.sleep(0.1)


def kill(envd: Envd, pid: int) -> None:
    envd.unary("process.Process/SendSignal", {"process": {"pid": pid}, "signal": "SIGNAL_SIGKILL"})


@pytest.mark.quick
def test_end_event_of_every_kind(envd: Envd):
    assert envd.run("exit 0")[2] == {"exited": True, "status": "exit status 0"}
    assert envd.run("exit 3")[2] == {
        "exitCode": 3,
        "exited": True,
        "status": "exit status 3",
        "error": "exit status 3",
    }
    killed = envd.run("kill -9 $$")[2]
    assert killed["exitCode"] == -1 and not killed.get("exited", False)
    assert killed["status"] == killed["error"] == "signal: killed"


@pytest.mark.quick
def test_binary_output(envd: Envd):
    out, err, _ = envd.run(
        "head -c 100000 /dev/urandom > r; cat r; sha256sum r | cut -c1-64 >&2; rm r",
        process={"cwd": "/tmp"},
    )
    assert hashlib.sha256(out).hexdigest().encode() == err.strip()


def test_all_data_comes_before_the_end(envd: Envd):
    for _ in range(20):
        out, err, end = envd.run("echo last; echo words >&2")
        assert (out, err, end["status"]) == (b"last\n", b"words\n", "exit status 0")


@pytest.mark.quick
def test_stdin_is_on_when_not_mentioned(envd: Envd):
    stream = envd.start("cat", fields={})
    pid = pid_of(stream)
    selector = {"process": {"pid": pid}}
    envd.ok("process.Process/SendInput", {**selector, "input": {"stdin": b64(b"abc")}})
    # base64 without padding and with the URL alphabet is accepted too
    envd.ok("process.Process/SendInput", {**selector, "input": {"stdin": "-_8"}})
    assert envd.ok("process.Process/CloseStdin", selector) == {}
    out = b"".join(base64.b64decode(m["event"].get("data", {}).get("stdout", "")) for m in stream)
    assert out == b"abc\xfb\xff"


def test_input_of_the_wrong_kind(envd: Envd):
    stream = envd.start("sleep 100", fields={"stdin": False})
    pid = pid_of(stream)
    try:
        for kind in ("stdin", "pty"):
            answer = envd.unary(
                "process.Process/SendInput", {"process": {"pid": pid}, "input": {kind: b64(b"x")}}
            )
            assert answer.status == 500 and answer.json()["code"] == "internal", answer
        answer = envd.unary(
            "process.Process/Update",
            {"process": {"pid": pid}, "pty": {"size": {"cols": 10, "rows": 10}}},
        )
        assert answer.json()["code"] == "internal"
    finally:
        kill(envd, pid)


def test_tags(envd: Envd):
    stream = envd.start("sleep 100", fields={"tag": "my-tag", "stdin": False})
    pid = pid_of(stream)
    assert listed(envd)[pid]["tag"] == "my-tag"
    other = envd.open("process.Process/Connect", {"process": {"tag": "my-tag"}})
    assert pid_of(other) == pid
    assert (
        envd.ok(
            "process.Process/SendSignal", {"process": {"tag": "my-tag"}, "signal": "SIGNAL_SIGTERM"}
        )
        == {}
    )
    for one in (stream, other):
        assert list(one)[-1]["event"]["end"]["status"] == "signal: terminated"


def test_other_signals_are_not_there(envd: Envd):
    stream = envd.start("sleep 100")
    pid = pid_of(stream)
    for signal in (1, "SIGNAL_UNSPECIFIED"):
        answer = envd.unary(
            "process.Process/SendSignal", {"process": {"pid": pid}, "signal": signal}
        )
        assert answer.json()["code"] in ("unimplemented", "invalid_argument"), answer
    assert pid in listed(envd)
    kill(envd, pid)


def test_a_client_that_goes_away_does_not_kill(envd: Envd):
    stream = envd.start("sleep 100")
    pid = pid_of(stream)
    stream.close()
    time.sleep(1)
    assert pid in listed(envd)
    kill(envd, pid)
    wait_gone(envd, pid)


def test_the_timeout_of_start_kills(envd: Envd):
    stream = envd.start("sleep 100", headers={"Connect-Timeout-Ms": "3000"})
    pid = pid_of(stream)
    begun = time.monotonic()
    for _ in stream:
        pass
    assert time.monotonic() - begun < 60
    assert stream.error is None or stream.error["code"] == "deadline_exceeded"
    wait_gone(envd, pid)


def test_the_timeout_of_other_calls_does_not(envd: Envd):
    """Python sends Connect-Timeout-Ms on every call; only Start's one is the process's."""
    short = {"Connect-Timeout-Ms": "1000"}
    stream = envd.start("sleep 100")
    pid = pid_of(stream)
    envd.ok("process.Process/List", headers=short)
    other = envd.open("process.Process/Connect", {"process": {"pid": pid}}, headers=short)
    list(other)
    assert other.error["code"] == "deadline_exceeded"
    assert pid in listed(envd)
    kill(envd, pid)


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_the_end_is_kept_for_half_a_minute(envd: Envd):
    stream = envd.start("exit 4")
    pid = pid_of(stream)
    list(stream)
    assert pid not in listed(envd)
    late = envd.open("process.Process/Connect", {"process": {"pid": pid}})
    assert pid_of(late) == pid
    assert list(late)[-1]["event"]["end"]["exitCode"] == 4
    end = time.monotonic() + 90
    while True:
        gone = envd.open("process.Process/Connect", {"process": {"pid": pid}})
        messages = list(gone)
        if gone.error is not None:
            assert gone.error["code"] == "not_found" and messages == []
            break
        assert time.monotonic() < end, "the end of a process is kept for too long"
        time.sleep(1)


def test_output_nobody_listens_to_does_not_stop_the_process(envd: Envd, workdir: str):
    stream = envd.start(f"head -c 30000000 /dev/zero; touch {workdir}/through")
    pid = pid_of(stream)
    stream.close()
    wait_gone(envd, pid, 30)
    assert envd.unary("filesystem.Filesystem/Stat", {"path": f"{workdir}/through"}).status == 200


@pytest.mark.timeout(120)
def test_a_client_that_never_reads_cannot_fill_the_memory(envd: Envd):
    """The process prints far more than the sandbox has memory; envd must hold back, not grow."""
    stream = envd.start("exec yes 0123456789012345678901234567890123456789")
    pid = pid_of(stream)
    time.sleep(4)
    resident = envd.run("grep VmRSS /proc/1/status")[0].split()
    assert int(resident[1]) < 64 * 1024, f"envd holds {resident[1]} kB"
    assert envd.run("echo alive")[0] == b"alive\n"
    kill(envd, pid)
    stream.close()
    wait_gone(envd, pid)


def test_keepalive_comes_when_nothing_else_does(envd: Envd):
    stream = envd.start("sleep 100", headers={"Keepalive-Ping-Interval": "1"})
    pid, kinds = pid_of(stream), []
    while kinds.count("keepalive") < 2:
        kinds.append(next(iter(stream.next()["event"])))
    kill(envd, pid)
    kinds += [next(iter(m["event"])) for m in stream]
    assert set(kinds[:-1]) == {"keepalive"} and kinds[-1] == "end"


def test_stream_input_applies_each_message_at_once(envd: Envd):
    """The client-streaming call of the newest Python SDK, sent piece by piece."""
    stream = envd.start("cat", fields={"stdin": True})
    pid = pid_of(stream)
    connection = http.client.HTTPConnection("127.0.0.1", envd.server.port, timeout=30)
    connection.putrequest("POST", "/process.Process/StreamInput")
    for name, value in {
        **envd.headers(),
        "Content-Type": "application/connect+json",
        "Transfer-Encoding": "chunked",
    }.items():
        connection.putheader(name, value)
    connection.endheaders()

    def piece(data: bytes) -> None:
        connection.send(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    piece(envelope({"start": {"process": {"pid": pid}}}))
    messages = iter(stream)
    for word in (b"one", b"two"):
        piece(envelope({"data": {"input": {"stdin": b64(word)}}}))
        assert next(messages)["event"]["data"]["stdout"] == b64(word)
        piece(envelope({"keepalive": {}}))
    connection.send(b"0\r\n\r\n")
    answer = connection.getresponse()
    assert answer.status == 200
    frames = decode_envelopes(answer.read())
    assert frames[-1] == (2, {}) and all(m == {} for _, m in frames)
    envd.ok("process.Process/CloseStdin", {"process": {"pid": pid}})
    assert list(messages)[-1]["event"]["end"]["status"] == "exit status 0"


def test_stream_input_to_nobody(envd: Envd):
    body = envelope({"start": {"process": {"pid": 999999}}})
    answer = envd.request(
        "POST", "/process.Process/StreamInput", body, {"Content-Type": "application/connect+json"}
    )
    assert answer.status == 200
    assert decode_envelopes(answer.body)[-1][1]["error"]["code"] == "not_found"


def test_pty(envd: Envd):
    stream = envd.open(
        "process.Process/Start",
        {
            "process": {"cmd": "/bin/bash", "args": ["-c", "tty; stty size; read x; echo got:$x"]},
            "pty": {"size": {"cols": 44, "rows": 11}},
        },
    )
    pid = pid_of(stream)
    envd.ok(
        "process.Process/SendInput", {"process": {"pid": pid}, "input": {"pty": b64(b"word\n")}}
    )
    answer = envd.unary("process.Process/CloseStdin", {"process": {"pid": pid}})
    assert answer.status == 200 or answer.json()["code"] in ("unknown", "not_found"), answer
    output, end = b"", {}
    for message in stream:
        output += base64.b64decode(message["event"].get("data", {}).get("pty", ""))
        end = message["event"].get("end", end)
    assert b"/dev/pts/" in output and b"11 44" in output and b"got:word" in output
    assert end == {"exited": True, "status": "exit status 0"}


def test_environment_order(envd: Envd, rest: Rest):
    with rest.sandbox(envVars={"A": "global", "B": "global", "E2B_SANDBOX": "no"}) as made:
        other = Envd(rest.server, made)
        out, _, _ = other.run(
            "echo $A $B $E2B_SANDBOX $E2B_SANDBOX_ID $E2B_TEMPLATE_ID",
            process={"envs": {"B": "mine"}},
        )
        words = out.decode().split()
        assert words[:2] == ["global", "mine"]
        assert words[3:] == [made["sandboxID"], made["templateID"]]


def test_supplementary_groups(envd: Envd):
    expected = envd.run("id -G user")[0]
    assert set(envd.run("id -G")[0].split()) == set(expected.split())


def test_descriptors_are_not_inherited(envd: Envd):
    out, _, _ = envd.run("ls /proc/self/fd | wc -l")
    assert int(out) <= 5, out


def test_many_short_processes(envd: Envd):
    """200 processes from 8 threads; nothing is left in the list."""
    failures: list[object] = []

    def work() -> None:
        for _ in range(25):
            out, _, end = envd.run("echo ok")
            if out != b"ok\n" or end.get("status") != "exit status 0":
                failures.append((out, end))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(50)
    assert not failures
    assert all(p["config"]["args"][-1] != "echo ok" for p in listed(envd).values())
