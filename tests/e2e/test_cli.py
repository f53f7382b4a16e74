"""The program `caisson` as a person uses it: exit statuses, output, sentences."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.cli import CLEAN, caisson
from support.rest import Rest
from support.server import CaissonServer, find_binary
from support.waiting import wait_until_gone


@pytest.fixture(scope="module")
def made(server: CaissonServer):
    done = caisson(server, "sandbox", "create", "--timeout", "600", "--metadata", "who=cli")
    assert done.returncode == 0, done
    sandbox_id = done.stdout.decode().strip()
    assert sandbox_id.startswith("i") and sandbox_id.isalnum()
    yield sandbox_id
    caisson(server, "sandbox", "kill", sandbox_id)


@pytest.mark.quick
def test_version_and_help():
    assert caisson(None, "version").stdout.startswith(b"caisson 0.")
    for args in (["--help"], ["serve", "--help"], ["sandbox", "--help"], ["doctor", "--help"]):
        done = caisson(None, *args)
        assert done.returncode == 0 and b"Usage:" in done.stdout and not done.stderr


@pytest.mark.quick
@pytest.mark.parametrize(
    "args", [[], ["dance"], ["serve", "--nope"], ["sandbox", "kill"], ["serve", "--set", "x=1"]]
)
def test_wrong_usage(args: list[str]):
    done = caisson(None, *args)
    assert done.returncode == 2 and done.stderr.startswith(b"caisson: ") and not done.stdout


@pytest.mark.quick
def test_list_and_info(server: CaissonServer, made: str):
    table = caisson(server, "sandbox", "list").stdout.decode().splitlines()
    assert table[0].split()[:3] == ["ID", "TEMPLATE", "STATE"]
    assert any(line.startswith(made) and "who=cli" in line for line in table[1:])
    assert made in caisson(server, "sandbox", "ls").stdout.decode()
    listed = json.loads(caisson(server, "sandbox", "list", "--json").stdout)
    assert made in [s["sandboxID"] for s in listed]
    info = caisson(server, "sandbox", "info", made).stdout.decode()
    assert made in info and "running" in info
    assert json.loads(caisson(server, "sandbox", "--json", "info", made).stdout)["state"] == "running"


@pytest.mark.quick
def test_exec_passes_everything_through(server: CaissonServer, made: str):
    done = caisson(
        server, "sandbox", "exec", made, "-e", "A=b c", "--user", "root", "--cwd", "/tmp",
        "--", "bash", "-c", 'echo "$A $(id -un) $PWD"; echo bad >&2; exit 7',
    )
    assert (done.returncode, done.stdout, done.stderr) == (7, b"b c root /tmp\n", b"bad\n")
    killed = caisson(server, "sandbox", "exec", made, "--", "bash", "-c", "kill -9 $$")
    assert killed.returncode == 128 + 9
    missing = caisson(server, "sandbox", "exec", made, "--", "no-such-program")
    assert missing.returncode == 125 and b"no-such-program" in missing.stderr


def test_run_makes_a_sandbox_for_one_command(server: CaissonServer, rest: Rest, tmp_path: Path):
    """S0-39: with its files, and gone after success, failure and what cannot even begin."""
    (tmp_path / "a.py").write_text("import sys; print(open('b/data').read() + sys.stdin.read())")
    (tmp_path / "data").write_bytes(b"of a file, ")
    before = {one["sandboxID"] for one in rest.list()}
    files = ["--file", f"{tmp_path}/a.py", "--file", f"{tmp_path}/data:/home/user/b/data"]
    done = caisson(server, "sandbox", "run", *files, "--", "python3", "a.py", stdin=b"of a pipe")
    assert (done.returncode, done.stdout) == (0, b"of a file, of a pipe\n"), done
    assert caisson(server, "sandbox", "run", "--", "bash", "-c", "exit 7").returncode == 7
    missing = caisson(server, "sandbox", "run", "--file", f"{tmp_path}/none", "--", "true")
    assert missing.returncode == 125 and b"none" in missing.stderr
    assert caisson(server, "sandbox", "run", "--", "no-such-program").returncode == 125
    assert caisson(server, "sandbox", "run", "--template", "none", "--", "true").returncode == 125
    assert {one["sandboxID"] for one in rest.list()} <= before


def test_exec_carries_large_and_binary_data(server: CaissonServer, made: str):
    data = os.urandom(8_000_000)
    done = caisson(server, "sandbox", "exec", made, "--", "cat", stdin=data)
    assert done.returncode == 0 and done.stdout == data
    early = caisson(server, "sandbox", "exec", made, "--", "head", "-c", "3", stdin=data)
    assert early.returncode == 0 and early.stdout == data[:3]


def test_interrupting_exec_ends_the_command(server: CaissonServer, made: str):
    environment = {**CLEAN, "CAISSON_URL": server.url, "CAISSON_DATA_DIR": str(server.data_dir)}
    process = subprocess.Popen(
        [str(find_binary()), "sandbox", "exec", made, "--", "bash", "-c", "echo up; sleep 321"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env=environment,
    )
    assert process.stdout.readline() == b"up\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    wait_until_gone(
        lambda: caisson(server, "sandbox", "exec", made, "--", "pgrep", "-f", "echo up; sleep").stdout, "the command")


@pytest.mark.quick
def test_url_logs_and_metrics(server: CaissonServer, made: str):
    url = caisson(server, "sandbox", "url", made, "3000").stdout.decode().strip()
    assert url == f"http://3000-{made}.caisson.localhost:{server.port}"
    assert b"created" in caisson(server, "sandbox", "logs", made).stdout
    assert b"MEMORY" in caisson(server, "sandbox", "metrics", made).stdout


@pytest.mark.quick
def test_kill(server: CaissonServer):
    made = [caisson(server, "sandbox", "create").stdout.decode().strip() for _ in range(2)]
    done = caisson(server, "sandbox", "kill", *made)
    assert done.returncode == 0 and done.stdout.decode().split() == made
    again = caisson(server, "sandbox", "kill", made[0])
    assert again.returncode == 1 and made[0].encode() in again.stderr


@pytest.mark.quick
def test_failures_are_sentences(server: CaissonServer):
    unreachable = caisson(None, "sandbox", "list", "--url", "http://127.0.0.1:9", CAISSON_API_KEY="x")
    assert unreachable.returncode == 1 and b"caisson serve" in unreachable.stderr
    bad_key = caisson(server, "sandbox", "list", CAISSON_API_KEY="e2b_wrong")
    assert bad_key.returncode == 1 and b"API key" in bad_key.stderr
    bad_url = caisson(server, "sandbox", "list", "--url", "ftp://x")
    assert bad_url.returncode == 1 and b"ftp://x" in bad_url.stderr
    unknown = caisson(server, "sandbox", "exec", "i" + "0" * 20, "--", "true")
    assert unknown.returncode == 125 and b"does not exist" in unknown.stderr


def serve(*args: str, program: Path | None = None, user: int | None = None, **env: str):
    return subprocess.run(
        [str(program or find_binary()), "serve", *args],
        capture_output=True,
        env={**CLEAN, **env},
        timeout=60,
        check=False,
        user=user,
        cwd="/",
    )


@pytest.fixture
def program_for_all() -> Iterator[Path]:
    """The program where everybody can start it; a checkout may lie in a folder of root's."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(shutil.copy(find_binary(), folder))


@pytest.mark.quick
def test_serve_says_why_it_needs_root(program_for_all: Path):
    # A program with sanitizers writes its reports beside the checkout, where this user may not even look.
    here = {"ASAN_OPTIONS": "log_path=stderr", "UBSAN_OPTIONS": "log_path=stderr", "LLVM_PROFILE_FILE": "/dev/null"}
    done = serve("--data-dir", "/nowhere", program=program_for_all, user=65534, **here)
    assert done.returncode == 1
    assert b"needs root" in done.stderr and b"sudo" in done.stderr


def test_two_servers_cannot_share(server: CaissonServer, tmp_path):
    same_dir = serve("--data-dir", str(server.data_dir), "--listen", "127.0.0.1:0")
    assert same_dir.returncode == 1 and str(server.data_dir).encode() in same_dir.stderr
    same_port = serve("--data-dir", str(tmp_path), "--listen", f"127.0.0.1:{server.port}")
    assert same_port.returncode == 1 and b"Address already in use" in same_port.stderr
    assert Rest(server).get("/health").status == 200


@pytest.mark.quick
@pytest.mark.parametrize(
    "args,word",
    [
        (["--set", "user=root"], b"root"),
        (["--set", "user=no-such-user"], b"no-such-user"),
        (["--database-url", "mysql://x"], b"sqlite:///"),
        (["--tls", "files", "--tls-cert", "/none", "--tls-key", "/none"], b"/none"),
        (["--listen", "nonsense"], b"nonsense"),
        (["--set", "build_log_archive=/proc/none"], b"build_log_archive"),
    ],
)
def test_settings_that_cannot_work(tmp_path, args: list[str], word: bytes):
    done = serve("--data-dir", str(tmp_path / "d"), "--listen", "127.0.0.1:0", *args)
    assert done.returncode in (1, 2) and word in done.stderr, done


def test_a_misspelled_setting_is_told(make_server):
    server = make_server(env={"CAISSON_MAX_SANDBOXS": "3", "CAISSON_MAX_FORKS": "3"})
    told = [line for line in server.log_since(0).splitlines() if "no such setting" in line]
    assert len(told) == 1 and "CAISSON_MAX_SANDBOXS" in told[0], told


def test_a_key_from_the_environment(make_server):
    key = "e2b_" + "7" * 40
    server = make_server(env={"CAISSON_API_KEY": key})
    assert not (server.data_dir / "api-key").exists()
    assert Rest(server).get("/v2/sandboxes", key=key).status == 200
    (server.data_dir / "api-key").write_text(key)  # for the fixture's own clean-up


def test_the_engines_death_ends_the_server(make_server):
    server = make_server()
    rest = Rest(server)
    made = rest.create()
    process = server.process
    children = [p for p in server.program_pids() if p != process.pid]
    os.kill(children[0], signal.SIGKILL)
    assert process.wait(30) == 1
    server.process = None
    assert "engine" in server.log_tail()
    server.restart()
    assert rest.detail(made)["state"] == "running"
    rest.kill(made)


def test_a_server_in_a_closed_home(make_server):
    """The server user cannot reach the place of the data, and need not."""
    server = make_server()
    server.stop()
    server.scratch.chmod(0o700)
    server.restart()
    with Rest(server).sandbox() as made:
        assert made["sandboxID"]
    server.scratch.chmod(0o755)


@pytest.mark.quick
def test_the_page(rest: Rest):
    root = rest.get("/", key=None)
    assert root.status == 302 and root.header("location") == "/app"
    page = rest.get("/app", key=None)
    assert page.status == 200 and page.header("content-type").startswith("text/html")
    assert b'<div id="root">' in page.body and page.header("cache-control") == "no-cache"
    assert "default-src 'none'" in page.header("content-security-policy")
    assert rest.get("/app/icon.svg", key=None).header("content-type") == "image/svg+xml"
    refused = rest.request("POST", "/health", {})
    assert refused.status == 405 and refused.header("allow") == "GET"


def test_metrics_count_traffic(server: CaissonServer, rest: Rest, made: str):
    def count() -> float:
        text = rest.get("/metrics", key=None).body.decode()
        name = 'caisson_gateway_requests_total{result="2xx",to="envd"} '
        return float(next(line for line in text.splitlines() if line.startswith(name)).split()[-1])

    before = count()
    assert caisson(server, "sandbox", "exec", made, "--", "true").returncode == 0
    end = time.monotonic() + 30
    while count() <= before:
        assert time.monotonic() < end
        time.sleep(0.05)
