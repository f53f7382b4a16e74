"""What a sandbox used: samples of now, and means of what was before them, through the SDK."""

from __future__ import annotations

import datetime
import time

import pytest
from e2b import Sandbox, SandboxMetrics

SECOND = datetime.timedelta(seconds=1)
FINE, MEANS = 10, 5  # how many are kept


@pytest.mark.timeout(120)
def test_means_reach_further_back_than_samples(make_server):
    settings = {"metrics_interval_ms": 100, "metrics_history": FINE, "metrics_long_interval_s": 1,
                "metrics_long_history": MEANS}
    server = make_server([part for name, value in settings.items() for part in ("--set", f"{name}={value}")])
    variables = server.sdk_environment
    sandbox = Sandbox.create(timeout=300, api_key=variables["E2B_API_KEY"], api_url=variables["E2B_API_URL"],
                             sandbox_url=variables["E2B_SANDBOX_URL"])
    began = sandbox.get_info().started_at

    def asked() -> tuple[list[SandboxMetrics], list[SandboxMetrics]]:
        """The samples of now as one list, and all there is as another."""
        return sandbox.get_metrics(), sandbox.get_metrics(start=began)

    try:
        deadline = time.monotonic() + 60
        while len((all_of_it := asked()[1])) < FINE + 3:
            assert time.monotonic() < deadline, all_of_it
        times = [metric.timestamp for metric in all_of_it]
        assert times == sorted(set(times))
        means = all_of_it[:-FINE]
        for mean in means:
            assert 0 < mean.mem_used <= mean.mem_total and 0 < mean.disk_used <= mean.disk_total
            assert 0 <= mean.cpu_used_pct <= 100 and mean.cpu_count >= 1
        seconds = [mean.timestamp.replace(microsecond=0) for mean in means]
        assert len(set(seconds)) == len(seconds)  # one for each second
        # Samples alone, unless a time is named; and a time without samples has its means.
        assert len(asked()[0]) == FINE
        end = means[-1].timestamp
        older = sandbox.get_metrics(start=end - 2 * SECOND, end=end)
        assert older and all(metric.timestamp < times[-FINE] for metric in older)
        # What is too old goes, the means like the samples.
        first = all_of_it[0].timestamp
        while asked()[1][0].timestamp == first:
            assert time.monotonic() < deadline
        assert len(asked()[1]) <= FINE + MEANS
    finally:
        sandbox.kill()
