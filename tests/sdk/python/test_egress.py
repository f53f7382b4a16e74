"""Rules for what a sandbox may reach, set by the SDK and felt inside."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from flavors import Flavor

from support import internet
from support.server import CaissonServer

PROGRAM = Path(__file__).with_name("egress_rules.py")
IMPORTED_FROM = f"{PROGRAM.parent}:{PROGRAM.parents[2]}"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("check", ["rules_hold_and_change", "rules_may_be_functions"])
def test_rules(flavor: Flavor, check: str):
    settings = {"CAISSON_DNS": internet.NAMESERVER}
    with internet.Internet(), CaissonServer(env=settings) as server:
        environment = {**os.environ, **server.sdk_environment, "PYTHONPATH": IMPORTED_FROM}
        done = subprocess.run(
            [sys.executable, str(PROGRAM), check, flavor.name],
            env=environment, capture_output=True, text=True, timeout=240,
        )
        assert done.returncode == 0 and done.stdout.endswith("held\n"), done.stdout + done.stderr
