"""Certificates of an authority that only the tests know."""

from __future__ import annotations

import subprocess
from pathlib import Path

DAYS = "2"


class Authority:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "authority.pem"
        self._key = folder / "authority.key"
        self._openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", DAYS,
                      "-subj", "/CN=Authority of a test", "-keyout", self._key, "-out", self.file)

    def certify(self, name: str) -> Path:
        """A file with a certificate for `name` ("IP:127.0.0.1", "DNS:host") and its key."""
        stem = name.replace(":", "-")
        key, request, certificate = (self.folder / f"{stem}.{end}" for end in ("key", "csr", "crt"))
        extensions = self.folder / f"{stem}.ext"
        extensions.write_text(f"subjectAltName={name}\n")
        self._openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=test",
                      "-keyout", key, "-out", request)
        self._openssl("x509", "-req", "-in", request, "-CA", self.file, "-CAkey", self._key, "-CAcreateserial",
                      "-days", DAYS, "-extfile", extensions, "-out", certificate)
        both = self.folder / f"{stem}.pem"
        both.write_text(certificate.read_text() + key.read_text())
        return both

    @staticmethod
    def _openssl(*arguments: object) -> None:
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, timeout=60)
