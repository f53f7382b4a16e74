"""Signing in by the forge double: an OAuth app, and somebody who says yes or no."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlencode

CLIENT_ID, CLIENT_SECRET = "Iv1.forgedouble", "oauth-secret-of-the-forge-double"


@dataclass
class OAuthApp:
    """What the forge knows of one app; `visitor` is who sits before the browser, "" says no."""

    callback_url: str = ""
    visitor: str = "octo-dev"
    codes: dict[str, str] = field(default_factory=dict)  # code -> login
    tokens: dict[str, str] = field(default_factory=dict)  # token -> login

    def authorize(self, query: dict[str, str]) -> tuple[int, list[tuple[str, str]], bytes]:
        if query.get("client_id") != CLIENT_ID:
            return 404, [], b"Not Found"
        answer = {"state": query.get("state", "")}
        if self.visitor:
            answer["code"] = secrets.token_hex(10)
            self.codes[answer["code"]] = self.visitor
        else:
            answer |= {"error": "access_denied"}
        return 302, [("Location", f"{self.callback_url}?{urlencode(answer)}")], b""

    def redeem(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        """As GitHub does, what is wrong is told with 200."""
        form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        login = self.codes.pop(form.get("code", ""), None)
        if (form.get("client_id"), form.get("client_secret")) != (CLIENT_ID, CLIENT_SECRET):
            answer = {"error": "incorrect_client_credentials"}
        elif login is None:
            answer = {"error": "bad_verification_code"}
        else:
            token = f"gho_{secrets.token_hex(18)}"
            self.tokens[token] = login
            answer = {"access_token": token, "token_type": "bearer", "scope": "read:user"}
        return 200, [("Content-Type", "application/json; charset=utf-8")], json.dumps(answer).encode()


def oauth_settings(**more: str) -> dict[str, str]:
    return {"CAISSON_GITHUB_OAUTH_CLIENT_ID": CLIENT_ID,
            "CAISSON_GITHUB_OAUTH_CLIENT_SECRET": CLIENT_SECRET, **more}
