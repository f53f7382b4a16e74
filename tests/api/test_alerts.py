"""Limits of the server's own numbers: what crosses them is told once, shown while it lasts, and told when it is over."""

from __future__ import annotations

from support.sessions import wait_until
from support.work import Platform


def rules(platform: Platform) -> list[str]:
    return [alert["rule"] for alert in platform.get("/health/detailed")["alerts"]]


def gauge(platform: Platform, rule: str) -> str:
    text = platform.rest.get("/metrics", key=None).body.decode()
    return next(line.split()[-1] for line in text.splitlines() if f'caisson_alert_active{{rule="{rule}"}}' in line)


def test_an_alert_is_told_shown_and_over(make_server) -> None:
    server = make_server(["--set", "alert_check_s=1", "--set", "alert_active_sandboxes=1", "--set", "alert_p95_ms=0",
                          "--set", "alert_operations_per_minute=0"])
    platform = Platform(server)
    assert rules(platform) == [] and gauge(platform, "active_sandboxes") == "0"
    boxes = [platform.ask("POST", "/sandboxes", {}, 201).json()["id"] for _ in range(2)]
    wait_until(lambda: rules(platform) == ["active_sandboxes"], "the alert")
    (alert,) = platform.get("/health/detailed")["alerts"]
    assert (alert["value"], alert["limit"]) == (2, 1) and alert["message"] == "2 sandboxes run; the limit is 1."
    assert platform.get("/health/detailed")["status"] != "down"
    assert gauge(platform, "active_sandboxes") == "1"
    assert '"message":"alert"' in server.log_since(0)
    for box in boxes:
        assert platform.ask("DELETE", f"/sandboxes/{box}").status < 300
    wait_until(lambda: rules(platform) == [], "the end of the alert")
    wait_until(lambda: platform.events(type="alert_ended"), "the event")
    (raised,), (ended,) = platform.events(type="alert_raised"), platform.events(type="alert_ended")
    assert raised["rule"] == ended["rule"] == "active_sandboxes"
    assert raised["since"] == ended["since"] == alert["since"] and raised["value"] == 2 and ended["value"] < 2
    assert gauge(platform, "active_sandboxes") == "0"


def test_failures_of_clients_are_no_alert(make_server) -> None:
    platform = Platform(make_server(["--set", "alert_check_s=1", "--set", "alert_operations_per_minute=30", "--set",
                                     "alert_p95_ms=0"]))
    for _ in range(100):
        platform.ask("GET", "/tasks/none", status=404)
    # Something that is told shows that it was looked at them, too.
    for number in range(60):
        platform.add_agent("true", f"agent-{number}")
    platform.wait_for_event("alert_raised")
    assert {event["rule"] for event in platform.events(type="alert_raised")} == {"operations_per_minute"}
