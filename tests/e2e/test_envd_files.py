"""GET and POST /files: ranges, conditions, encodings, multipart in odd shapes, metadata."""

from __future__ import annotations

import gzip
import json
from urllib.parse import quote

import pytest
from e2b import NotEnoughSpaceException, Sandbox, get_signature

from support.envd import Envd
from support.rest import Response, Rest, assert_error
from support.server import find_templates

OCTETS = {"Content-Type": "application/octet-stream"}


def put(envd: Envd, path: str, data: bytes, **headers: str) -> Response:
    extra = {k.replace("_", "-"): v for k, v in headers.items()}
    return envd.request("POST", f"/files?path={quote(path)}", data, {**OCTETS, **extra})


def get(envd: Envd, path: str, **headers: str) -> Response:
    extra = {k.replace("_", "-"): v for k, v in headers.items()}
    return envd.request("GET", f"/files?path={quote(path)}", None, extra)


def form(*parts: tuple[str, str, bytes], boundary: str = "XX") -> tuple[bytes, dict[str, str]]:
    """A multipart body of (disposition, extra headers, data)."""
    body = b""
    for disposition, extra, data in parts:
        body += f"--{boundary}\r\nContent-Disposition: {disposition}\r\n{extra}\r\n".encode()
        body += data + b"\r\n"
    body += f"--{boundary}--\r\n".encode()
    return body, {"Content-Type": f"multipart/form-data; boundary={boundary}"}


def file_part(name: str, data: bytes) -> tuple[str, str, bytes]:
    return f'form-data; name="file"; filename="{name}"', "", data


@pytest.mark.quick
def test_answer_of_an_upload_has_no_extra_keys(envd: Envd, workdir: str):
    answer = put(envd, f"{workdir}/a.txt", b"1")
    assert answer.status == 200
    assert answer.json() == [{"path": f"{workdir}/a.txt", "name": "a.txt", "type": "file"}]


@pytest.mark.quick
def test_plain_download(envd: Envd, workdir: str):
    put(envd, f"{workdir}/ä b.txt", b"content")
    answer = get(envd, f"{workdir}/ä b.txt", Accept_Encoding="identity")
    assert (answer.status, answer.body) == (200, b"content")
    assert answer.header("content-length") == "7"
    assert "accept-encoding" in (answer.header("vary") or "").lower()
    assert answer.header("content-disposition").startswith("inline")
    assert answer.header("accept-ranges") == "bytes"
    assert answer.header("last-modified")
    empty = put(envd, f"{workdir}/empty", b"") and get(envd, f"{workdir}/empty")
    assert (empty.status, empty.body) == (200, b"")


@pytest.mark.quick
def test_gzip_download(envd: Envd, workdir: str):
    data = b"squeeze " * 5000
    put(envd, f"{workdir}/z", data)
    for accept in ("gzip, deflate", "gzip;q=1.0, identity;q=0.5", "gzip"):
        answer = get(envd, f"{workdir}/z", Accept_Encoding=accept)
        assert answer.header("content-encoding") == "gzip", accept
        assert gzip.decompress(answer.body) == data
    for accept in ("identity", "deflate", "gzip;q=0", "gzip;q=0.1, identity;q=0.9", "br"):
        answer = get(envd, f"{workdir}/z", Accept_Encoding=accept)
        assert answer.header("content-encoding") is None, accept
        assert answer.body == data
    assert_error(get(envd, f"{workdir}/z", Accept_Encoding="identity;q=0"), 406)
    assert_error(get(envd, f"{workdir}/z", Accept_Encoding="br, *;q=0"), 406)


@pytest.mark.quick
@pytest.mark.parametrize(
    "spec,expected,content_range",
    [
        ("bytes=0-4", b"01234", "bytes 0-4/10"),
        ("bytes=5-", b"56789", "bytes 5-9/10"),
        ("bytes=-3", b"789", "bytes 7-9/10"),
        ("bytes=8-100", b"89", "bytes 8-9/10"),
        ("bytes=0-0", b"0", "bytes 0-0/10"),
    ],
)
def test_ranges(envd: Envd, workdir: str, spec: str, expected: bytes, content_range: str):
    put(envd, f"{workdir}/digits", b"0123456789")
    answer = get(envd, f"{workdir}/digits", Range=spec, Accept_Encoding="gzip")
    assert (answer.status, answer.body) == (206, expected)
    assert answer.header("content-range") == content_range
    assert answer.header("content-encoding") is None


def test_ranges_that_do_not_fit(envd: Envd, workdir: str):
    put(envd, f"{workdir}/digits", b"0123456789")
    answer = get(envd, f"{workdir}/digits", Range="bytes=10-")
    assert answer.status == 416
    assert answer.header("content-range") == "bytes */10"
    for nonsense in ("lines=1-2", "bytes=", "bytes=5-2"):
        ignored = get(envd, f"{workdir}/digits", Range=nonsense)
        assert ignored.status in (200, 416), nonsense


@pytest.mark.quick
def test_conditional_download(envd: Envd, workdir: str):
    put(envd, f"{workdir}/c", b"1")
    modified = get(envd, f"{workdir}/c").header("last-modified")
    same = get(envd, f"{workdir}/c", If_Modified_Since=modified)
    assert (same.status, same.body) == (304, b"")
    old = get(envd, f"{workdir}/c", If_Modified_Since="Mon, 01 Jan 2001 00:00:00 GMT")
    assert old.status == 200


@pytest.mark.quick
def test_download_errors(envd: Envd, workdir: str):
    assert_error(get(envd, f"{workdir}/none"), 404, f"path '{workdir}/none' does not exist")
    assert_error(get(envd, workdir), 400, f"path '{workdir}' is a directory")
    assert_error(envd.request("GET", "/files?path=x&username=ghost"), 401, "ghost")
    assert_error(envd.request("GET", "/files?path=~other/x"), 400)
    assert envd.request("DELETE", "/files?path=x").status == 405


@pytest.mark.quick
def test_token_and_signature_messages(envd: Envd, workdir: str):
    put(envd, f"{workdir}/s", b"1")
    path = f"/files?path={workdir}/s"
    wrong = envd.request("GET", path, token="wrong")
    assert_error(wrong, 401, "access token present in header but does not match")
    missing = envd.request("GET", path, token=None)
    assert_error(missing, 401, "missing signature query parameter")
    bad = envd.request("GET", path + "&signature=v1_bad", token=None)
    assert_error(bad, 401, "invalid signature")


@pytest.mark.quick
def test_signature_test_vector():
    """The known value of the contract, so that the test's own signing is right."""
    made = get_signature("hello.txt", "read", "user", "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0")
    assert made["signature"] == "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E"


@pytest.mark.quick
def test_multipart_of_several_files(envd: Envd, workdir: str):
    body, headers = form(
        file_part(f"{workdir}/one", b"1"),
        ('form-data; name="other"', "", b"skipped"),
        file_part(f"{workdir}/sub/two", b"22"),
    )
    answer = envd.request("POST", "/files", body, headers)
    assert answer.status == 200, answer
    assert [f["path"] for f in answer.json()] == [f"{workdir}/one", f"{workdir}/sub/two"]
    assert get(envd, f"{workdir}/sub/two").body == b"22"


def test_multipart_relative_names_go_to_the_home(envd: Envd):
    body, headers = form(file_part("deep/relative.txt", b"x"))
    answer = envd.request("POST", "/files", body, headers)
    assert answer.json()[0]["path"] == "/home/user/deep/relative.txt"


def test_multipart_path_parameter_wins(envd: Envd, workdir: str):
    body, headers = form(file_part("/tmp/elsewhere", b"here"))
    answer = envd.request("POST", f"/files?path={workdir}/target", body, headers)
    assert answer.json()[0]["path"] == f"{workdir}/target"


def test_multipart_two_parts_for_one_path(envd: Envd, workdir: str):
    body, headers = form(file_part(f"{workdir}/x", b"1"), file_part(f"{workdir}/x", b"2"))
    assert_error(envd.request("POST", "/files", body, headers), 400)
    body, headers = form(file_part("a", b"1"), file_part("b", b"2"))
    assert_error(envd.request("POST", f"/files?path={workdir}/y", body, headers), 400)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\r\n",
        b"\r\n--XX",
        b"\r\n--X",
        b"--XX--",
        b"a\r\n\r\nb",
        b"\r" * 70000,
        b"\r\n--XXY\r\n" * 3000,
        bytes(range(256)) * 600,
    ],
    ids=["empty", "crlf", "boundary-like", "short", "final-like", "blank", "crs", "near", "all"],
)
def test_multipart_contents_that_look_like_boundaries(envd: Envd, workdir: str, content: bytes):
    boundary = "XX-the-real-boundary-0123456789"
    body, headers = form(file_part("n", content), boundary=boundary)
    answer = envd.request("POST", f"/files?path={workdir}/odd", body, headers)
    assert answer.status == 200, answer
    assert get(envd, f"{workdir}/odd", Accept_Encoding="identity").body == content


def test_multipart_notations(envd: Envd, workdir: str):
    """Quoted boundary, lower-case header names, preamble, spaces after the boundary, no quotes."""
    target = f"/files?path={workdir}/n"
    cases = [
        (
            b"--q q\r\ncontent-disposition: form-data; name=file; filename=n\r\n\r\nA"
            b"\r\n--q q--\r\n",
            'multipart/form-data; boundary="q q"',
        ),
        (
            b"preamble\r\n--B  \r\nContent-Type: text/plain\r\nContent-Disposition: form-data; "
            b'filename="n"; name="file"\r\n\r\nB\r\n--B--\r\nepilogue',
            "multipart/form-data; charset=utf-8; boundary=B",
        ),
        (
            b'--M\r\nContent-Disposition: form-data; name="file"; filename="n"\r\n\r\nC\r\n--M--',
            "multipart/mixed; boundary=M",
        ),
    ]
    for body, kind in cases:
        answer = envd.request("POST", target, body, {"Content-Type": kind})
        assert answer.status == 200, (kind, answer)
    assert get(envd, f"{workdir}/n").body == b"C"


@pytest.mark.parametrize(
    "body,kind",
    [
        (b"--X\r\n\r\nno end", "multipart/form-data; boundary=X"),
        (b"nothing like it", "multipart/form-data; boundary=X"),
        (b"--X--\r\n", "multipart/form-data"),
        (b"x", "text/plain"),
        (b"x", ""),
        (
            b"--X\r\n" + b"H: v\r\n" * 20000 + b"\r\nx\r\n--X--\r\n",
            "multipart/form-data; boundary=X",
        ),
    ],
    ids=["cut", "garbage", "no boundary", "text", "none", "too many headers"],
)
def test_uploads_that_are_refused(envd: Envd, workdir: str, body: bytes, kind: str):
    headers = {"Content-Type": kind} if kind else {}
    assert_error(envd.request("POST", f"/files?path={workdir}/r", body, headers), 400)
    assert_error(get(envd, f"{workdir}/r"), 404)


@pytest.mark.quick
def test_octet_stream_needs_a_path(envd: Envd):
    assert_error(envd.request("POST", "/files", b"x", OCTETS), 400, "path")


@pytest.mark.quick
def test_gzip_upload(envd: Envd, workdir: str):
    packed = gzip.compress(b"unpacked " * 1000)
    assert put(envd, f"{workdir}/g", packed, Content_Encoding="gzip").status == 200
    assert get(envd, f"{workdir}/g", Accept_Encoding="identity").body == b"unpacked " * 1000
    body, headers = form(file_part("n", b"in a form"))
    headers["Content-Encoding"] = "gzip"
    answer = envd.request("POST", f"/files?path={workdir}/f", gzip.compress(body), headers)
    assert answer.status == 200
    assert get(envd, f"{workdir}/f").body == b"in a form"
    assert_error(put(envd, f"{workdir}/b", b"x", Content_Encoding="br"), 400)
    assert_error(put(envd, f"{workdir}/b", b"not gzip", Content_Encoding="gzip"), 400)


@pytest.mark.quick
def test_metadata_is_kept_as_attributes(envd: Envd, workdir: str):
    answer = put(envd, f"{workdir}/m", b"1", X_Metadata_Author="Me", X_Metadata_Kind="a b=c")
    assert answer.json()[0]["metadata"] == {"author": "Me", "kind": "a b=c"}
    shown = envd.run(
        f"python3 -c \"import os; print(sorted(os.listxattr('{workdir}/m')), "
        f"os.getxattr('{workdir}/m', 'user.e2b.author'))\""
    )[0].decode()
    assert "user.e2b.author" in shown and "user.e2b.kind" in shown and "b'Me'" in shown
    put(envd, f"{workdir}/m", b"2")
    assert (
        "metadata" not in envd.ok("filesystem.Filesystem/Stat", {"path": f"{workdir}/m"})["entry"]
    )


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Metadata-" + "k" * 247: "v"},
        {"X-Metadata-K": "v" * 4096},
        {f"X-Metadata-K{i}": "v" * 100 for i in range(50)},
        {"X-Metadata-K": "caf\xe9"},
    ],
    ids=["key", "value", "total", "not ascii"],
)
def test_metadata_that_is_refused(envd: Envd, workdir: str, headers: dict):
    answer = envd.request("POST", f"/files?path={workdir}/x", b"1", {**OCTETS, **headers})
    assert_error(answer, 400)


@pytest.mark.timeout(120)
def test_disk_limit_of_a_sandbox(make_server, tmp_path):
    base = find_templates(tmp_path) / "base"
    settings = json.loads((base / "template.json").read_text())
    small = tmp_path / "small/base"
    small.mkdir(parents=True)
    (small / "template.json").write_text(json.dumps({**settings, "diskSizeMB": 64}))
    (small / "rootfs").symlink_to((base / "rootfs").resolve())
    server = make_server(env={"CAISSON_TEMPLATE_DIR": str(small.parent)})
    rest = Rest(server)
    with rest.sandbox() as made:
        assert rest.detail(made)["diskSizeMB"] == 64
        envd = Envd(server, made)
        assert put(envd, "/home/user/small", b"s" * 1_000_000).status == 200
        assert_error(put(envd, "/home/user/big", b"b" * 90_000_000), 507)
        sdk = Sandbox.connect(
            made["sandboxID"], api_key=server.api_key, api_url=server.url, sandbox_url=server.url
        )
        with pytest.raises(NotEnoughSpaceException):
            sdk.files.write("/home/user/big", b"b" * 90_000_000)
        envd.ok("filesystem.Filesystem/Remove", {"path": "/home/user/big"})
        assert put(envd, "/home/user/again", b"s" * 1_000_000).status == 200


def test_compose(envd: Envd, workdir: str):
    put(envd, f"{workdir}/1", b"first ")
    put(envd, f"{workdir}/2", b"second")
    request = {"source_paths": [f"{workdir}/1", f"{workdir}/2"], "destination": f"{workdir}/all"}
    answer = envd.request(
        "POST", "/files/compose", json.dumps(request).encode(), {"Content-Type": "application/json"}
    )
    assert answer.status == 200 and answer.json()["path"] == f"{workdir}/all", answer
    assert get(envd, f"{workdir}/all").body == b"first second"
    assert get(envd, f"{workdir}/1").status == 404
    request["source_paths"] = [f"{workdir}/none"]
    missing = envd.request(
        "POST", "/files/compose", json.dumps(request).encode(), {"Content-Type": "application/json"}
    )
    assert_error(missing, 404)
