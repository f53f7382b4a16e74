"""Ways of older kernels, taken on purpose on this one."""

from __future__ import annotations

from support.envd import Envd
from support.rest import Rest


def test_root_mounted_the_way_of_kernels_before_6_13(make_server):
    """Overlay layers given by path: the sandbox works, and nothing stays attached in the engine."""
    server = make_server(env={"CAISSON_OVERLAY_BY_PATH": "true"})
    rest = Rest(server)
    with rest.sandbox() as made:
        envd = Envd(server, made)
        assert envd.request("GET", "/health").status == 204
        staged = [path.name for path in (server.data_dir / "engine").glob("stage-*")]
        assert staged == []
        for pid in server.program_pids():
            with open(f"/proc/{pid}/mountinfo") as mounts:
                assert "stage-" not in mounts.read()
