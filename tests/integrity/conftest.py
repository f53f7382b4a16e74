"""The figures of these tests, printed at the end."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.fixture
def figure(request) -> Callable[[str], None]:
    """Takes a line that shall be read by people; tests/run.py shows it as well."""

    def add(line: str) -> None:
        request.node.user_properties.append(("figure", line))

    return add


def pytest_terminal_summary(terminalreporter) -> None:
    lines = [
        value
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", "") == "call"
        for name, value in report.user_properties
        if name == "figure"
    ]
    if lines:
        terminalreporter.section("figures")
        for line in lines:
            terminalreporter.write_line(f"| {line}")
