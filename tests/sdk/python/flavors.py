"""One way to call both Python clients, so that every test is written once.

`Uniform` wraps an object of the sync or the async SDK; all its methods are awaited. Calls of the
sync client run in a thread of their own, so that a call that hangs cannot block the others and
does not keep the test program alive.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
import time
from collections.abc import Callable

from e2b import AsyncSandbox, FilesystemEvent, PtySize, Sandbox

_MODULES = ("files", "commands", "pty", "git")


async def in_thread(function: Callable, *args, **kwargs):
    """Runs a blocking call in a daemon thread and awaits its result."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future = loop.create_future()

    def settle(setter: Callable, value: object) -> None:
        if not future.done():
            setter(value)

    def run() -> None:
        try:
            outcome = future.set_result, function(*args, **kwargs)
        except BaseException as error:
            outcome = future.set_exception, error
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, *outcome)

    threading.Thread(target=run, daemon=True).start()
    return await future


class Uniform:
    """An SDK object whose methods are all awaited, whichever client it comes from."""

    def __init__(self, flavor: Flavor, target: object) -> None:
        self.flavor = flavor
        self.target = target

    def _wrap(self, value: object) -> object:
        kind = value if inspect.isclass(value) else type(value)
        if kind.__module__.startswith(("e2b.sandbox_sync", "e2b.sandbox_async")):
            return Uniform(self.flavor, value)
        return value

    def __getattr__(self, name: str):
        value = getattr(self.target, name)
        if name in _MODULES:
            return Uniform(self.flavor, value)
        if not callable(value):
            return value

        async def call(*args, **kwargs):
            if self.flavor.is_async:
                result = value(*args, **kwargs)
                result = await result if inspect.isawaitable(result) else result
            else:
                result = await in_thread(value, *args, **kwargs)
            return self._wrap(result)

        return call


class Flavor:
    """`sync` or `async`; `api` is the Sandbox class itself (create, connect, kill, list...)."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_async = name == "async"
        self.api = Uniform(self, AsyncSandbox if self.is_async else Sandbox)


async def until(condition: Callable, deadline_s: float = 30, what: str = "condition"):
    """Polls a plain or async function until it returns something true; fails at the deadline."""
    end = time.monotonic() + deadline_s
    while True:
        value = condition()
        value = await value if inspect.isawaitable(value) else value
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not seen within {deadline_s} s")
        await asyncio.sleep(0.05)


class Terminal:
    """A PTY whose output is collected in the background, for both clients."""

    def __init__(self, sandbox: Uniform) -> None:
        self.sandbox = sandbox
        self.output = b""
        self.handle: Uniform | None = None
        self._waiting: asyncio.Task | None = None

    def _collect(self, data: bytes) -> None:
        self.output += bytes(data)

    @classmethod
    async def open(cls, sandbox: Uniform, rows: int = 24, cols: int = 80, **options) -> Terminal:
        terminal = cls(sandbox)
        if sandbox.flavor.is_async:
            options["on_data"] = terminal._collect
        await terminal._attach(sandbox.pty.create(PtySize(rows=rows, cols=cols), **options))
        return terminal

    @classmethod
    async def connect(cls, sandbox: Uniform, pid: int, **options) -> Terminal:
        terminal = cls(sandbox)
        if sandbox.flavor.is_async:
            options["on_data"] = terminal._collect
        await terminal._attach(sandbox.pty.connect(pid, **options))
        return terminal

    async def _attach(self, opening) -> None:
        self.handle = await opening
        if self.sandbox.flavor.is_async:
            waiting = self.handle.wait()
        else:
            waiting = self.handle.wait(on_pty=self._collect)
        self._waiting = asyncio.ensure_future(waiting)
        self._waiting.add_done_callback(lambda task: task.cancelled() or task.exception())

    @property
    def pid(self) -> int:
        return self.handle.pid

    async def send(self, data: str | bytes) -> None:
        data = data.encode() if isinstance(data, str) else data
        await self.sandbox.pty.send_stdin(self.pid, data)

    async def expect(self, text: str | bytes, deadline_s: float = 30) -> None:
        wanted = text.encode() if isinstance(text, str) else text
        try:
            await until(lambda: wanted in self.output, deadline_s)
        except AssertionError:
            raise AssertionError(f"{wanted!r} is not in {self.output[-2000:]!r}") from None

    async def resize(self, rows: int, cols: int) -> None:
        await self.sandbox.pty.resize(self.pid, PtySize(rows=rows, cols=cols))

    async def wait(self, deadline_s: float = 30):
        return await asyncio.wait_for(asyncio.shield(self._waiting), deadline_s)


class Watch:
    """A directory watch: polled for the sync client, streamed for the async one."""

    def __init__(self, sandbox: Uniform) -> None:
        self.sandbox = sandbox
        self.events: list[FilesystemEvent] = []
        self.exits: list[Exception | None] = []
        self.handle: Uniform | None = None

    @classmethod
    async def start(cls, sandbox: Uniform, path: str, **options) -> Watch:
        watch = cls(sandbox)
        if sandbox.flavor.is_async:
            options["on_event"] = watch.events.append
            options["on_exit"] = watch.exits.append
        watch.handle = await sandbox.files.watch_dir(path, **options)
        return watch

    async def poll(self) -> list[FilesystemEvent]:
        if not self.sandbox.flavor.is_async:
            self.events.extend(await self.handle.get_new_events())
        return self.events

    async def expect(self, kind, name: str, deadline_s: float = 30) -> FilesystemEvent:
        async def seen():
            for event in await self.poll():
                if event.type == kind and event.name == name:
                    return event
            return None

        try:
            return await until(seen, deadline_s)
        except AssertionError:
            found = [(e.type.value, e.name) for e in self.events]
            raise AssertionError(f"no {kind.value} of {name!r} in {found}") from None

    async def stop(self) -> None:
        await self.handle.stop()
