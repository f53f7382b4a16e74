"""The Chromium of this machine as an archive that runs in a sandbox, whatever its distribution."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

HOME = "/opt/chromium"
PROGRAM = f"{HOME}/run"
FOLDER = Path("/usr/lib/chromium")
# The sandbox has its own of these, and one that is newer serves older programs.
GLIBC = ("ld-linux", "libc.so", "libm.so", "libdl.so", "librt.so", "libpthread.so", "libresolv.so")
# Loaded at run time only.
NSS = ("libsoftokn3.so", "libfreebl3.so", "libfreeblpriv3.so")
START = f"""#!/bin/sh
export LD_LIBRARY_PATH={HOME}/lib FONTCONFIG_PATH={HOME}/fonts HOME=/tmp
exec {HOME}/chromium/chromium "$@"
"""
FONTS = Path("/usr/share/fonts/truetype/dejavu")
FONT_SETTINGS = f"<fontconfig><dir>{HOME}/fonts</dir><cachedir>/tmp/.fonts</cachedir></fontconfig>"


def libraries() -> list[Path]:
    said = subprocess.run(["ldd", FOLDER / "chromium"], capture_output=True, text=True, check=True, timeout=60).stdout
    found = [Path(line.split("=>")[1].split()[0]) for line in said.splitlines() if "=> /" in line]
    assert found and "not found" not in said, said
    nss = next(one for one in found if one.name == "libnss3.so").parent
    extra = [path for folder in (nss, nss / "nss") for name in NSS if (path := folder / name).exists()]
    return [one for one in found if not one.name.startswith(GLIBC)] + extra


def add_text(archive: tarfile.TarFile, name: str, text: str, mode: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.mode, entry.size = mode, len(text)
    archive.addfile(entry, io.BytesIO(text.encode()))


def write_archive(path: Path) -> None:
    """To be unpacked at HOME; PROGRAM is then the browser."""
    with tarfile.open(path, "w", dereference=True) as archive:
        for one in FOLDER.iterdir():
            if one.name != "chrome-sandbox":
                archive.add(one, f"chromium/{one.name}")
        for one in libraries():
            archive.add(one, f"lib/{one.name}")
        for one in FONTS.glob("DejaVuSans*.ttf"):
            archive.add(one, f"fonts/{one.name}")
        add_text(archive, "fonts/fonts.conf", FONT_SETTINGS, 0o644)
        add_text(archive, "run", START, 0o755)
