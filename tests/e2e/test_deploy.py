"""What docs/deploy.md tells people to do: the one command, the service, backup and restore."""

from __future__ import annotations

import configparser
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from support.cli import caisson
from support.rest import Rest
from support.server import CaissonServer, find_binary

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.timeout(240)


class Started(CaissonServer):
    """A server that is started by another command line."""

    def __init__(self, command: list[str], data_dir: Path | None = None, env: dict[str, str] | None = None) -> None:
        super().__init__(env=env)
        self.words = command
        if data_dir:
            self.data_dir = data_dir

    def command(self) -> list[str]:
        return [*self.words, "--listen", f"127.0.0.1:{self.port}"]


def works(server: CaissonServer) -> bool:
    with Rest(server).sandbox() as made:
        done = caisson(server, "sandbox", "exec", made["sandboxID"], "--", "echo", "hello")
        return done.returncode == 0 and done.stdout == b"hello\n"


def unit() -> configparser.ConfigParser:
    parsed = configparser.ConfigParser(interpolation=None, strict=False)
    parsed.optionxform = str
    parsed.read(ROOT / "deploy/caisson.service")
    return parsed


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder that deploy/install has filled."""
    root = tmp_path / "root"
    root.mkdir()
    for folder in (tmp_path, *tmp_path.parents):
        if folder.owner() == "root" and folder != Path("/") and folder.is_relative_to("/tmp"):
            folder.chmod(folder.stat().st_mode | 0o011)  # the server's user must pass
    done = subprocess.run([ROOT / "deploy/install", root], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return root


def test_one_command_starts_it(tmp_path: Path) -> None:
    """./run on a machine that has everything; what it installs and builds is in tests/tools."""
    server = Started([str(ROOT / "run")])
    server.words += ["--data-dir", str(server.data_dir)]
    with server:
        assert works(server)


def test_the_unit_is_valid(installed: Path) -> None:
    path = installed / "etc/systemd/system/caisson.service"
    assert path.read_text() == (ROOT / "deploy/caisson.service").read_text()
    # The program is looked up where it was installed.
    path.write_text(path.read_text().replace("/usr/local/bin", f"{installed}/usr/local/bin"))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", path], capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == 0 and "caisson.service" not in done.stderr, done.stderr
    service = unit()["Service"]
    assert service["KillMode"] == "process" and service["Restart"] == "always" and service["Delegate"] == "yes"


def test_the_installed_service_starts_in_a_clean_directory(installed: Path) -> None:
    environment = installed / "etc/caisson/environment"
    assert environment.stat().st_mode & 0o777 == 0o600
    data_dir = installed / "var/lib/caisson"
    assert [entry.name for entry in data_dir.iterdir()] == ["templates"]
    line = unit()["Service"]["ExecStart"].replace("/usr/local/bin", f"{installed}/usr/local/bin")
    line = line.replace("/var/lib/caisson", str(data_dir)).replace("user=caisson", "user=nobody")
    with Started(shlex.split(line), data_dir, {"CAISSON_TEMPLATE_DIR": ""}) as server:
        assert works(server)
        # As a second `deploy/install` does while sandboxes run.
        made = Rest(server).create()
        subprocess.run([ROOT / "deploy/install", installed], check=True, timeout=120, capture_output=True)
        server.stop()
        server.restart()
        assert [one["sandboxID"] for one in Rest(server).list()] == [made["sandboxID"]]
        Rest(server).kill(made)


def test_a_backup_of_a_running_server_is_restored(make_server, tmp_path: Path) -> None:
    server = make_server()
    rest = Rest(server)
    titles = [f"Task {i}" for i in range(20)]
    for title in titles:
        assert rest.post("/api/v1/tasks", {"title": title}).status == 201
    copy = tmp_path / "caisson.db"
    command = [str(find_binary()), "database", "backup", "--data-dir", str(server.data_dir), str(copy)]
    owner = (server.data_dir / "db/caisson.db").owner()
    done = subprocess.run([*command, "--set", "user=daemon"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    # The running server keeps its files, whatever the command believes to be its user.
    assert {(server.data_dir / "db" / name).owner() for name in ("", "caisson.db", "caisson.db-wal")} == {owner}
    assert copy.stat().st_mode & 0o777 == 0o600
    again = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert again.returncode == 1 and "is there already" in again.stderr
    nothing = [*command[:-2], str(tmp_path / "nobody-here"), str(tmp_path / "copy.db")]
    refused = subprocess.run(nothing, capture_output=True, text=True, timeout=60, check=False)
    assert refused.returncode == 1 and "No such file" in refused.stderr
    assert not (tmp_path / "nobody-here").exists()
    assert rest.post("/api/v1/tasks", {"title": "After the backup"}).status == 201

    other = CaissonServer()
    (other.data_dir / "db").mkdir(parents=True)
    shutil.copy(copy, other.data_dir / "db/caisson.db")
    for name in ("secret", "api-key"):
        shutil.copy2(server.data_dir / name, other.data_dir / name)
    with other:
        assert other.api_key == server.api_key
        listed = Rest(other).get("/api/v1/tasks?limit=100").json()
        assert sorted(task["title"] for task in listed["tasks"]) == sorted(titles)
        assert works(other)
    # And the first one has lost nothing by being copied.
    server.crash()
    server.restart()
    listed = rest.get("/api/v1/tasks?limit=100").json()
    assert sorted(task["title"] for task in listed["tasks"]) == sorted([*titles, "After the backup"])


def test_the_compose_file_is_whole() -> None:
    compose = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text())
    for service in compose["services"].values():
        assert service["restart"] == "unless-stopped"
        for volume in service["volumes"]:
            source = volume.partition(":")[0]
            known = source in compose["volumes"] or source.startswith("/") or (ROOT / "deploy" / source).exists()
            assert known, volume
    # Reachable from this machine only, and never with a password that stands in the file.
    assert compose["services"]["postgres"]["ports"] == ["127.0.0.1:5432:5432"]
    assert compose["services"]["postgres"]["environment"]["POSTGRES_PASSWORD"].startswith("${POSTGRES_PASSWORD:?")


def test_settings_in_the_files_exist() -> None:
    """Every CAISSON_ variable that the guide or the example names is a setting."""
    text = (ROOT / "docs/deploy.md").read_text() + (ROOT / "deploy/environment").read_text()
    names = {word.partition("=")[0].lstrip("#") for word in text.split() if word.lstrip("#").startswith("CAISSON_")}
    names = {name.strip("`,.;:") for name in names} - {"CAISSON_<NAME>", "CAISSON_URL"}
    fields = set(re.findall(r"FIELD\((\w+)\)", (ROOT / "src/base/config.cc").read_text()))
    assert len(names) >= 5
    assert {name.removeprefix("CAISSON_").lower() for name in names} <= fields
