"""What the sandboxes of these tests hold: a tree of files and a buffer in memory, both changed in
steps that depend on nothing but their numbers.

Inside a sandbox this file is a program, `held.py PORT ROOT SEED MEMORY_KB FILE_KB`, that says over HTTP
what it holds. The tests import it and take the same steps on a copy of their own: they know what
must be there without asking anybody.
"""

import hashlib
import http.server
import json
import os
import random
import shutil
import sys
import threading
import time

MOST_FILES = 240  # the tree grows up to here; then as much goes as comes


class Held:
    def __init__(self, root, seed, memory_kb, file_kb):
        self.root = root
        chance = random.Random(seed)
        self.memory = bytearray(chance.randbytes(memory_kb << 10))
        self.big = os.path.join(root, "big")
        os.makedirs(root)
        with open(self.big, "wb") as file:
            file.write(chance.randbytes(file_kb << 10))
        # Open all the time: one that is written to, one that has no name any more.
        self.log = open(os.path.join(root, "log"), "ab", buffering=0)
        self.nameless = open(os.path.join(root, "nameless"), "w+b", buffering=0)
        os.unlink(self.nameless.name)
        self.nameless.write(chance.randbytes(32 << 10))

    # -- steps -----------------------------------------------------------------------------

    def step(self, number):
        chance = random.Random(number)
        self._scatter(chance)
        self._grow(chance, number)
        files = self._files()
        chance.shuffle(files)
        for change in (self._truncate, self._rename, self._delete, self._append):
            if files:
                change(chance, files.pop(), number)
        while len(files) > MOST_FILES:
            os.unlink(files.pop())
        if number % 10 == 0:
            self._replace_directory(chance, number)
        self.log.write(b"step %d\n" % number)

    def _scatter(self, chance):
        """Writes here and there, into the big file and into memory."""
        with open(self.big, "r+b") as file:
            size = os.fstat(file.fileno()).st_size
            for _ in range(12):
                file.seek(chance.randrange(size))
                file.write(chance.randbytes(chance.randrange(1, 6000)))
            file.truncate(size)
        for _ in range(24):
            piece = chance.randbytes(chance.randrange(1, 2000))
            at = chance.randrange(len(self.memory) - len(piece))
            self.memory[at : at + len(piece)] = piece

    def _grow(self, chance, number):
        parts = [f"d{chance.randrange(6)}" for _ in range(chance.randrange(1, 5))]
        directory = os.path.join(self.root, *parts)
        os.makedirs(directory, exist_ok=True)
        for index in range(chance.randrange(2, 6)):
            path = os.path.join(directory, f"f{number}-{index}")
            with open(path, "wb") as file:
                file.write(chance.randbytes(chance.choice((0, 1, 100, 4096, 9000))))
            os.chmod(path, chance.choice((0o600, 0o644, 0o755)))
        os.symlink(f"f{number}-0", os.path.join(directory, f"l{number}"))

    def _truncate(self, chance, path, number):
        os.truncate(path, chance.randrange(20000))  # shorter, or longer with a hole

    def _rename(self, chance, path, number):
        os.rename(path, os.path.join(self.root, f"r{number}"))

    def _delete(self, chance, path, number):
        os.unlink(path)

    def _append(self, chance, path, number):
        with open(path, "ab") as file:
            file.write(chance.randbytes(700))

    def _replace_directory(self, chance, number):
        """A directory goes and another with its name comes: nothing of the old shines through."""
        path = os.path.join(self.root, f"d{chance.randrange(6)}")
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(path)
        with open(os.path.join(path, f"new{number}"), "wb") as file:
            file.write(chance.randbytes(300))

    def _files(self):
        """Plain files that may be changed, in an order that is the same everywhere."""
        found = []
        for directory, _, names in os.walk(self.root):
            found += [os.path.join(directory, name) for name in names if name[0] in "frn"]
        return sorted(path for path in found if not os.path.islink(path))

    # -- what there is -----------------------------------------------------------------------

    def digests(self):
        tree, times = hashlib.sha256(), hashlib.sha256()
        entries = []
        for directory, directories, names in os.walk(self.root):
            entries += [os.path.join(directory, name) for name in directories + names]
        for path in sorted(entries):
            info = os.lstat(path)
            name = os.path.relpath(path, self.root)
            if os.path.islink(path):
                tree.update(f"{name}\0link\0{os.readlink(path)}\0".encode())
            elif os.path.isdir(path):
                tree.update(f"{name}\0directory\0{info.st_mode:o}\0".encode())
            else:
                tree.update(f"{name}\0{info.st_mode:o}\0{info.st_size}\0".encode())
                with open(path, "rb") as file:
                    tree.update(file.read())
            times.update(f"{name}\0{info.st_mtime_ns}\0".encode())
        nameless = os.pread(self.nameless.fileno(), 1 << 20, 0)
        return {
            "tree": tree.hexdigest(),
            "entries": len(entries),
            "times": times.hexdigest(),
            "memory": hashlib.sha256(self.memory).hexdigest(),
            "nameless": hashlib.sha256(nameless).hexdigest(),
        }


class Handler(http.server.BaseHTTPRequestHandler):
    held = None
    count = 0
    lock = threading.Lock()

    def do_GET(self):
        """/state tells everything, /step/N takes a step first, /count tells the cheap part."""
        with self.lock:
            if self.path.startswith("/step/"):
                self.held.step(int(self.path[6:]))
            state = {} if self.path == "/count" else self.held.digests()
        body = json.dumps({**state, "pid": os.getpid(), "count": Handler.count}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def count():
    while True:
        Handler.count += 1
        time.sleep(0.01)


def main():
    port, root, seed, memory_kb, file_kb = sys.argv[1:]
    Handler.held = Held(root, int(seed), int(memory_kb), int(file_kb))
    threading.Thread(target=count, daemon=True).start()
    http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), Handler).serve_forever()


if __name__ == "__main__":
    main()
