"""What the browser has to load, as the server sends it; and what must not be in there."""

from __future__ import annotations

import gzip
import json
import re
import urllib.request

from support.server import REPOSITORY, CaissonServer

FIRST_LOAD_BYTES = 200_000
CHUNK_BYTES = 130_000


def fetch(server: CaissonServer, path: str, coding: str = "") -> tuple[bytes, dict[str, str]]:
    headers = {"Accept-Encoding": coding} if coding else {}
    with urllib.request.urlopen(urllib.request.Request(server.url + path, headers=headers), timeout=30) as answer:
        return answer.read(), dict(answer.headers)


def chunks(server: CaissonServer) -> dict[str, bytes]:
    """Every file of the page by its path, found by following the names from the first one."""
    found: dict[str, bytes] = {}
    waiting = [path for path in re.findall(r'(?:src|href)="(/app/[^"]+)"', fetch(server, "/app")[0].decode())]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found[path] = fetch(server, path)[0]
        if path.endswith(".js"):
            names = re.findall(rb'["\'`/](?:\./|assets/)([\w.-]+\.(?:js|css))["\'`]', found[path])
            waiting += [f"/app/assets/{name.decode()}" for name in names]
    return found


def test_first_load_and_chunks_stay_small(server: CaissonServer, figure) -> None:
    first = set(re.findall(r'(?:src|href)="(/app/[^"]+)"', fetch(server, "/app")[0].decode()))
    sizes = {path: len(fetch(server, path, "gzip")[0]) for path in chunks(server)}
    total = sum(sizes[path] for path in first)
    figure(f"page: first load {total / 1000:.1f} kB gzip; the largest chunks: "
           + ", ".join(f"{path.rsplit('/', 1)[-1]} {size / 1000:.1f}" for path, size in
                       sorted(sizes.items(), key=lambda item: -item[1])[:5]))
    assert len(sizes) > 20, sizes
    assert total <= FIRST_LOAD_BYTES, sizes
    large = {path: size for path, size in sizes.items() if path not in first and size > CHUNK_BYTES}
    assert not large, large


def test_files_are_packed_cached_and_typed(server: CaissonServer) -> None:
    script = next(path for path in chunks(server) if path.endswith(".js") and "/assets/" in path)
    plain, headers = fetch(server, script)
    assert "Content-Encoding" not in headers
    assert headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert headers["Content-Type"].startswith("text/javascript")
    packed, headers = fetch(server, script, "gzip")
    assert headers["Content-Encoding"] == "gzip" and gzip.decompress(packed) == plain
    packed, headers = fetch(server, script, "gzip, br")
    assert headers["Content-Encoding"] == "br" and len(packed) < len(plain)
    page, headers = fetch(server, "/app/work/some-task")
    assert b'<div id="root">' in page and headers["Cache-Control"] == "no-cache"


def test_the_policy_is_strict_and_nothing_comes_from_elsewhere(server: CaissonServer) -> None:
    page, headers = fetch(server, "/app")
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "script-src 'self';" in policy and "unsafe" not in policy
    nonce = re.search(r"'nonce-([0-9a-f]+)'", policy).group(1)
    assert nonce.encode() in page and nonce not in fetch(server, "/app")[1]["Content-Security-Policy"]
    for path, content in chunks(server).items():
        if path.endswith(".css"):
            assert not re.search(rb"url\(\s*['\"]?https?:", content), path
            assert b"@import" not in content, path


def test_the_page_holds_no_key(server: CaissonServer) -> None:
    for path, content in chunks(server).items():
        assert server.api_key.encode() not in content, path
        assert not re.search(rb"e2b_[0-9a-f]{40}|ghp_[A-Za-z0-9]{36}|sk-[A-Za-z0-9]{20}", content), path


def test_types_are_made_from_what_this_server_says(server: CaissonServer) -> None:
    """web/openapi.json is a copy; after a change of the API:
    curl -s $URL/api/v1/openapi.json | python3 -m json.tool --no-ensure-ascii --indent 1 > web/openapi.json"""
    ours = json.loads((REPOSITORY / "web/openapi.json").read_text())
    theirs = json.loads(fetch(server, "/api/v1/openapi.json")[0])
    changed = sorted(path for path in ours["paths"].keys() | theirs["paths"].keys()
                     if ours["paths"].get(path) != theirs["paths"].get(path))
    assert ours == theirs, f"web/openapi.json is old: {changed[:10]} (or schemas)"
