"""A forge that speaks HTTPS with a certificate of an authority of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.certificates import Authority
from support.forge import Forge
from support.forge_plugin import FORGE_REPOSITORY, FORGE_TOKEN
from support.work import BUSY, Platform, settings_for


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@contextmanager
def forge_with(certificate: Path) -> Iterator[Forge]:
    with Forge(certificate=certificate) as forge:
        forge.add_token(FORGE_TOKEN)
        forge.add_repository(FORGE_REPOSITORY, private=True)
        yield forge


def trusting(authority: Authority, reachable: Path) -> dict[str, str]:
    """The server is not root when it connects, so the file lies where everybody may read it."""
    copy = reachable / "authority.pem"
    copy.write_text(authority.file.read_text())
    copy.chmod(0o644)
    return {"SSL_CERT_FILE": str(copy)}


def test_clone_and_push_by_tls(make_server, authority: Authority, reachable: Path) -> None:
    with forge_with(authority.certify("IP:127.0.0.1")) as forge:
        platform = Platform(make_server(env=settings_for(forge, **trusting(authority, reachable))))
        started = platform.start(platform.add_agent(BUSY.format(file="work.txt")))
        platform.wait(started)
        (pull,) = forge.repositories[FORGE_REPOSITORY].pulls
        assert forge.repositories[FORGE_REPOSITORY].git.file(pull.head, "work.txt") == "done\n"
        assert forge.seen("POST", "/octo-org/widget.git/git-receive-pack")


@pytest.mark.parametrize("trusted", [True, False])
def test_a_wrong_certificate_is_refused_in_plain_words(
    make_server, authority: Authority, reachable: Path, trusted: bool
) -> None:
    """A good one of another name, and one of an authority that nobody knows."""
    name = "DNS:forge.example" if trusted else "IP:127.0.0.1"
    with forge_with(authority.certify(name)) as forge:
        more = trusting(authority, reachable) if trusted else {}
        platform = Platform(make_server(env=settings_for(forge, **more)))
        started = platform.start(platform.add_agent("true"))
        error = platform.wait_for_error(started)
        words = "IP address mismatch" if trusted else "unable to get local issuer certificate"
        assert f"its certificate is not accepted: {words}" in error
        assert not forge.requests
