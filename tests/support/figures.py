"""The fixture `figure`: what a test measured, printed at the end; tests/run.py shows it as well.

What a test prints itself is nobody's to see: pytest keeps it, and its workers have no terminal.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.fixture
def figure(request) -> Callable[[str], None]:
    """Takes a line that shall be read by people."""

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
    if lines and terminalreporter.verbosity >= 0:  # not with sanitizers: all is slower there
        terminalreporter.section("figures")
        for line in lines:
            terminalreporter.write_line(f"| {line}")
