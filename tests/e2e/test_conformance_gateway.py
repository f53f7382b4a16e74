"""What E2B's own proxy promises of its answers: pages for people, JSON and CORS for scripts."""

from __future__ import annotations

import pytest

from support.envd import Envd
from support.rest import Response, Rest

BROWSER = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130"
UNKNOWN = "i" + "0" * 20
CLOSED = 3998
PREFLIGHT = {
    "Origin": "https://app.example",
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "x-access-token,connect-protocol-version",
}


def at(
    rest: Rest, box: dict, port: int, sandbox_id: str = "", method: str = "GET", **headers: str
) -> Response:
    host = f"{port}-{sandbox_id or box['sandboxID']}.{box['domain']}"
    return rest.request(method, "/", headers={"Host": host, **headers}, key=None)


def assert_page(answer: Response, status: int, title: str, *texts: str) -> None:
    page = answer.body.decode()
    assert answer.status == status, answer
    assert answer.header("content-type") == "text/html; charset=utf-8"
    assert page.startswith("<html") and page.endswith("</html>")
    assert f"<title>{title}</title>" in page
    for text in texts:
        assert text in page


@pytest.mark.quick
def test_pages_for_people(rest: Rest, box: dict):
    browser = {"User-Agent": BROWSER}
    assert_page(
        at(rest, box, CLOSED, **browser),
        502,
        "Closed Port Error",
        "no service running on port",
        str(CLOSED),
        box["sandboxID"],
    )
    assert_page(at(rest, box, 80, UNKNOWN, **browser), 502, "Sandbox Not Found", UNKNOWN)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("headers", "page"),
    [
        ({}, True),
        ({"Accept": "text/html"}, True),
        ({"Sec-Fetch-Mode": "navigate", "X-Requested-With": "XMLHttpRequest"}, True),
        ({"Accept": "application/json"}, False),
        ({"Sec-Fetch-Mode": "cors"}, False),
        ({"Sec-Fetch-Mode": "same-origin"}, False),
        ({"Sec-Fetch-Mode": "websocket"}, False),
        ({"X-Requested-With": "XMLHttpRequest"}, False),
    ],
)
def test_scripts_in_a_browser_get_json(rest: Rest, box: dict, headers: dict, page: bool):
    answer = at(rest, box, CLOSED, **{"User-Agent": BROWSER, **headers})
    expected = "text/html" if page else "application/json"
    assert answer.header("content-type") == f"{expected}; charset=utf-8"
    assert answer.header("access-control-allow-origin") == "*"


@pytest.mark.quick
def test_private_traffic_says_whether_the_token_is_missing_or_wrong(rest: Rest):
    with rest.sandbox(network={"allowPublicTraffic": False}) as made:
        token = made["trafficAccessToken"]
        cases = [
            ({}, "Missing Traffic Access Token", "is missing"),
            ({"e2b-traffic-access-token": "x"}, "Invalid Traffic Access Token", "is invalid"),
        ]
        for headers, title, ending in cases:
            answer = at(rest, made, 8080, **headers)
            assert answer.status == 403
            assert answer.json()["sandboxId"] == made["sandboxID"]
            assert answer.json()["message"].endswith(ending)
            page = at(rest, made, 8080, **{"User-Agent": BROWSER, **headers})
            assert_page(page, 403, title, made["sandboxID"])
        closed = at(rest, made, 8080, **{"e2b-traffic-access-token": token})
        assert closed.status == 502 and closed.json()["port"] == 8080
        # envd has its own token and asks for no other.
        assert Envd(rest.server, made).request("GET", "/health").status == 204


@pytest.mark.quick
@pytest.mark.parametrize(
    ("port", "sandbox_id"),
    [(CLOSED, ""), (80, UNKNOWN), (49983, UNKNOWN), (49983, ""), (70000, "")],
)
def test_a_preflight_never_hides_the_answer(rest: Rest, box: dict, port: int, sandbox_id: str):
    """A browser shows a script nothing of an answer whose preflight failed."""
    answer = at(rest, box, port, sandbox_id, "OPTIONS", **PREFLIGHT)
    assert answer.status == 204, answer
    assert answer.header("access-control-allow-origin") == "*"
    assert "POST" in (answer.header("access-control-allow-methods") or "")
    assert (
        answer.header("access-control-allow-headers") == PREFLIGHT["Access-Control-Request-Headers"]
    )


@pytest.mark.quick
def test_refusals_can_be_read_from_any_page(rest: Rest, box: dict):
    routing = {"E2b-Sandbox-Id": box["sandboxID"], "E2b-Sandbox-Port": "49983"}
    answers = [
        (at(rest, box, CLOSED), 502),
        (at(rest, box, 80, UNKNOWN), 502),
        (at(rest, box, 70000), 400),
        (rest.request("POST", "/init", {}, headers=routing, key=None), 404),
    ]
    for answer, status in answers:
        assert answer.status == status, answer
        assert answer.header("access-control-allow-origin") == "*"
    # An OPTIONS that is no preflight is an ordinary request.
    assert at(rest, box, CLOSED, method="OPTIONS").status == 502
