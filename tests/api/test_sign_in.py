"""Signing in by GitHub: there with a state, back with a code."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from support.cookies import Browser
from support.forge import Forge
from support.forge_oauth import CLIENT_ID, CLIENT_SECRET, oauth_settings
from support.rest import Response, Rest, assert_refusal
from support.work import settings_for


@pytest.fixture
def make_rest(make_server, forge: Forge):
    def make(**settings: str) -> Rest:
        rest = Rest(make_server(env=settings_for(forge, **oauth_settings(**settings))))
        forge.oauth.callback_url = f"{rest.server.url}/api/v1/auth/github/callback"
        return rest

    return make


def go_to_forge(page: Browser, forge: Forge) -> str:
    """Begins, and lets the visitor decide; where the forge sends the browser then."""
    answer = page.request("GET", "/api/v1/auth/github")
    assert answer.status == 302, answer
    target = urlsplit(answer.header("Location"))
    assert f"{target.scheme}://{target.netloc}" == forge.url and target.path == "/login/oauth/authorize"
    query = {name: values[0] for name, values in parse_qs(target.query).items()}
    assert query["client_id"] == CLIENT_ID and query["scope"] == "read:user"
    cookie = page.cookies["caisson_oauth_state"]
    assert cookie.value == query["state"] and cookie["httponly"] and cookie["samesite"] == "Lax"
    status, headers, _ = forge.oauth.authorize(query)
    assert status == 302
    back = urlsplit(dict(headers)["Location"])
    return f"{back.path}?{back.query}"


def sign_in(page: Browser, forge: Forge, visitor: str) -> Response:
    forge.oauth.visitor = visitor
    return page.request("GET", go_to_forge(page, forge))


def test_somebody_signs_in_by_github(make_rest, forge: Forge) -> None:
    rest = make_rest()
    methods = rest.get("/api/v1/auth/methods", key=None).json()
    assert methods == {"password": True, "api_key": True, "github": True, "github_url": forge.url}
    page = Browser(rest)
    answer = sign_in(page, forge, "lea")
    assert answer.status == 302 and answer.header("Location") == "/app"
    assert set(page.cookies) == {"caisson_access", "caisson_refresh", "caisson_csrf"}
    me = page.request("GET", "/api/v1/auth/me").json()["user"]
    assert (me["name"], me["role"]) == ("lea", "member")
    # The same person is the same user, with another browser and after a restart.
    rest.server.crash()
    rest.server.start()
    other = Browser(rest)
    assert sign_in(other, forge, "lea").status == 302
    assert other.request("GET", "/api/v1/auth/me").json()["user"]["id"] == me["id"]
    # A login like any other: its routes need the CSRF token, and it ends.
    assert other.request("PUT", "/api/v1/auth/preferences", {}, csrf=False).status == 403
    assert other.request("POST", "/api/v1/auth/logout").status == 204
    assert other.request("GET", "/api/v1/auth/me").status == 401
    # Neither the secret nor a token is kept or told.
    kept = b"".join(file.read_bytes() for file in Path(rest.server.data_dir).rglob("*.db*") if file.is_file())
    for secret in (CLIENT_SECRET, *forge.oauth.tokens):
        assert secret.encode() not in kept and secret not in rest.server.log_since(0)


def test_a_user_of_the_same_name_is_somebody_else(make_rest, forge: Forge) -> None:
    rest = make_rest()
    page = Browser(rest)
    assert sign_in(page, forge, "admin").status == 302
    me = page.request("GET", "/api/v1/auth/me").json()["user"]
    assert me["role"] == "member" and me["name"].startswith("admin (github:")
    # Whom an admin disables does not come in again.
    assert rest.request("PATCH", f"/api/v1/users/{me['id']}", {"disabled": True}).status == 200
    assert_refusal(sign_in(Browser(rest), forge, "admin"), 403, contains="disabled")


def test_only_those_who_may(make_rest, forge: Forge) -> None:
    rest = make_rest(CAISSON_GITHUB_OAUTH_ALLOWED_USERS="Lea, max")
    assert sign_in(Browser(rest), forge, "lea").status == 302
    page = Browser(rest)
    assert_refusal(sign_in(page, forge, "eve"), 403, contains="github_oauth_allowed_users")
    assert "caisson_access" not in page.cookies
    assert all(user["name"] != "eve" for user in rest.get("/api/v1/users").json()["users"])


def test_a_sign_in_that_was_not_begun_here_is_refused(make_rest, forge: Forge) -> None:
    rest = make_rest()
    page, thief = Browser(rest), Browser(rest)
    back = go_to_forge(thief, forge)
    assert_refusal(page.request("GET", back), 403, contains="not begun here")
    go_to_forge(page, forge)
    assert_refusal(page.request("GET", back), 403, contains="not begun here")
    # Codes work once; who says no is not signed in.
    assert thief.request("GET", back).status == 302
    forged = go_to_forge(page, forge)
    assert page.request("GET", forged.split("&code=")[0] + "&code=0").status == 401
    forge.oauth.visitor = ""
    assert_refusal(page.request("GET", go_to_forge(page, forge)), 403, contains="access_denied")
    forge.oauth.visitor = "lea"
    back = go_to_forge(page, forge)
    forge.plant("status", path="/login/oauth/access_token", status=502, times=10)
    assert page.request("GET", back).status == 503


def test_without_settings_there_is_no_such_way(make_server, forge: Forge, tmp_path: Path) -> None:
    rest = Rest(make_server(env=settings_for(forge)))
    assert rest.get("/api/v1/auth/methods", key=None).json()["github"] is False
    assert_refusal(rest.get("/api/v1/auth/github", key=None), 404, contains="no sign-in by GitHub")


def test_the_secret_may_be_in_a_file(make_server, forge: Forge, tmp_path: Path) -> None:
    secret = tmp_path / "oauth-secret"
    secret.write_text(CLIENT_SECRET + "\n")
    rest = Rest(make_server(env=settings_for(
        forge, CAISSON_GITHUB_OAUTH_CLIENT_ID=CLIENT_ID, CAISSON_GITHUB_OAUTH_CLIENT_SECRET_FILE=str(secret))))
    assert sign_in(Browser(rest), forge, "lea").status == 302
