"""A server whose disks lie on a file system that is soon full."""

from __future__ import annotations

import os
import subprocess

from support.server import CaissonServer


def run(*command: object) -> None:
    subprocess.run([str(word) for word in command], check=True, timeout=60)


class SmallDisk:
    """A file system of its own below a server's data directory."""

    def __init__(self, server: CaissonServer, megabytes: int) -> None:
        self.megabytes = megabytes
        self.mount = server.data_dir
        self.image = server.scratch / "disk.img"
        self.filler = self.mount / "filler"

    def __enter__(self) -> SmallDisk:
        with open(self.image, "wb") as image:
            image.truncate(self.megabytes << 20)
        run("mkfs.ext4", "-q", "-F", "-m", "0", self.image)
        self.mount.mkdir()
        run("mount", "-o", "loop", self.image, self.mount)
        return self

    def __exit__(self, *_: object) -> None:
        run("umount", "--lazy", self.mount)

    def free(self) -> int:
        state = os.statvfs(self.mount)
        return state.f_bavail * state.f_frsize

    def fill(self, left_mb: int) -> None:
        """Takes all that is free but this much, after everything that was written is on it."""
        run("sync", "--file-system", self.mount)
        with open(self.filler, "ab") as file:
            taken = self.free() - (left_mb << 20)
            os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, taken)

    def empty(self) -> None:
        self.filler.unlink()
