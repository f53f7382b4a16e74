"""A page as a server sees it: cookies and the CSRF token."""

from __future__ import annotations

import http.cookies

from support.rest import Response, Rest

PASSWORD = "correct horse battery"


class Browser:
    """A page: keeps cookies by path, and sends the CSRF token unless told not to."""

    def __init__(self, rest: Rest) -> None:
        self.rest = rest
        self.cookies: dict[str, http.cookies.Morsel] = {}

    def request(self, method: str, path: str, body: object = None, csrf: bool = True) -> Response:
        sent = [f"{c.key}={c.value}" for c in self.cookies.values() if path.startswith(c["path"])]
        headers = {"Cookie": "; ".join(sent)} if sent else {}
        if csrf and "caisson_csrf" in self.cookies:
            headers["X-CSRF-Token"] = self.cookies["caisson_csrf"].value
        answer = self.rest.request(method, path, body, headers=headers, key=None)
        for line in answer.headers.get_all("Set-Cookie") or []:
            for name, morsel in http.cookies.SimpleCookie(line).items():
                if morsel["max-age"] == "0":
                    self.cookies.pop(name, None)
                else:
                    self.cookies[name] = morsel
        return answer

    def login(self, name: str, password: str = PASSWORD) -> Response:
        return self.request("POST", "/api/v1/auth/login", {"name": name, "password": password})
