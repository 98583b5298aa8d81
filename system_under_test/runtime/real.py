"""Reality behind the seam: sockets, files, the system's clocks. Also the program that runs a node.

    python -m system_under_test.runtime.real package.module:function CONFIG.json

CONFIG.json is `{"name": …, "data": DIRECTORY, "config": {…}}`. Two more are optional: `"addresses": {"b1:10911":
"127.0.0.1:41234"}` says where others are reached from here, and `"bind": "127.0.0.2"` listens on that address only.
Instead of its settings, `config` may be the path of a file that has them as lines `name = value` (see `properties`).

The node's files live in DIRECTORY/disk. Its events go to DIRECTORY/events.jsonl and to stdout, one JSON object a
line, written at once; `time` is the machine's CLOCK_MONOTONIC and `wall` the wall clock as the node sees it, both
in nanoseconds. SIGTERM and SIGINT stop it cleanly. Exit codes: 0 stopped cleanly, 64 bad config (one line on
stderr says what), 70 panic (the traceback is on stderr and in the events), 75 the clean stop took longer than ten
seconds.

All timing is on CLOCK_MONOTONIC, so a faked wall clock moves nothing but `wall_ns`.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from system_under_test.runtime.host import ConnectFailed, Connection, ConnectionClosed
from system_under_test.runtime.real_disk import RealDisk
from system_under_test.runtime.settings_file import settings_of

T = TypeVar("T")

_JSON = json.JSONEncoder(default=str)

READ_AHEAD_BYTES = 1024 * 1024
SEND_BUFFER_BYTES = 1024 * 1024
STOP_TIMEOUT_S = 10.0
EXIT_BAD_CONFIG = 64
EXIT_PANIC = 70
EXIT_STOP_TIMEOUT = 75


class RealClock:
    def wall_ns(self) -> int:
        return time.time_ns()

    def monotonic_ns(self) -> int:
        return time.monotonic_ns()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def within(self, seconds: float, awaitable: Awaitable[T]) -> T:
        async with asyncio.timeout(seconds):
            return await awaitable


class RealConnection(asyncio.Protocol):
    """One TCP connection; the event loop's callbacks fill a buffer that one reader empties."""

    def __init__(self, remote: str, accepted: Callable[[RealConnection], None] | None = None) -> None:
        self._remote = remote
        self._accepted = accepted
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._wanted = 0
        self._reader: asyncio.Future[None] | None = None
        self._drained: asyncio.Future[None] | None = None
        self._ended = False
        self._closed_here = False
        self._reading_paused = False
        self._outgoing: list[bytes] = []
        self._outgoing_bytes = 0

    @property
    def remote(self) -> str:
        return self._remote

    @property
    def closed(self) -> bool:
        return self._ended

    async def read_exactly(self, count: int) -> bytes:
        buffer = self._buffer
        while len(buffer) < count or self._closed_here:
            if self._ended:
                raise ConnectionClosed(f"{self._remote} ended the stream")
            assert self._reader is None, "a connection has one reader at a time"
            self._wanted = count
            self._resume_reading()
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            finally:
                self._reader = None
                self._wanted = 0
        data = bytes(memoryview(buffer)[:count])
        del buffer[:count]
        if self._reading_paused and len(buffer) < READ_AHEAD_BYTES:
            self._resume_reading()
        return data

    def write(self, data: bytes) -> None:
        if self._ended or self._transport is None:
            raise ConnectionClosed(f"the connection to {self._remote} is closed")
        if not self._outgoing:
            asyncio.get_running_loop().call_soon(self._send)
        self._outgoing.append(data)
        self._outgoing_bytes += len(data)

    async def drain(self) -> None:
        if self._outgoing_bytes > SEND_BUFFER_BYTES:
            self._send()
        if self._drained is not None:
            # Shielded: many may wait, and one that gives up must not cancel it for the others.
            await asyncio.shield(self._drained)
        if self._ended:
            raise ConnectionClosed(f"the connection to {self._remote} is closed")

    def close(self) -> None:
        self._closed_here = True
        self._send()
        self._end()
        if self._transport is not None:
            self._transport.close()

    def _send(self) -> None:
        """Hand over, by one call of the kernel, what was written since the loop's last turn."""
        outgoing, self._outgoing = self._outgoing, []
        self._outgoing_bytes = 0
        if outgoing and self._transport is not None:
            self._transport.write(b"".join(outgoing))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A cast, not an isinstance: uvloop's transports do not inherit from asyncio's.
        self._transport = connected = cast(asyncio.Transport, transport)
        connected.set_write_buffer_limits(high=SEND_BUFFER_BYTES)
        if not self._remote:
            host, port = transport.get_extra_info("peername")[:2]
            self._remote = f"{host}:{port}"
        if self._accepted is not None:
            self._accepted(self)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._wanted and len(self._buffer) >= self._wanted:
            self._wake_reader()
        if len(self._buffer) > max(READ_AHEAD_BYTES, self._wanted) and self._transport is not None:
            self._transport.pause_reading()
            self._reading_paused = True

    def eof_received(self) -> bool:
        self._end()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        self._transport = None

    def pause_writing(self) -> None:
        if self._drained is None:
            self._drained = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        if self._drained is not None:
            self._drained.set_result(None)
            self._drained = None

    def _end(self) -> None:
        self._ended = True
        self._wake_reader()
        self.resume_writing()

    def _wake_reader(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def _resume_reading(self) -> None:
        if self._reading_paused and self._transport is not None and not self._ended:
            self._transport.resume_reading()
            self._reading_paused = False


class RealListener:
    def __init__(self, server: asyncio.Server) -> None:
        self._server = server
        self.port: int = server.sockets[0].getsockname()[1]
        """The port listened on, where 0 asked for any."""

    def close(self) -> None:
        self._server.close()


class RealNetwork:
    """Sockets. `addresses` maps names as nodes know them to where they are reached from here."""

    def __init__(self, spawn: Callable[..., Any], addresses: Mapping[str, str], bind: str) -> None:
        self._spawn = spawn
        self._addresses = dict(addresses)
        self._bind = bind
        self._listeners: list[RealListener] = []

    def close(self) -> None:
        """Stop listening, everywhere."""
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()

    async def listen(self, port: int, accept: Callable[[Connection], Coroutine[Any, Any, None]]) -> RealListener:
        def accepted(connection: RealConnection) -> None:
            self._spawn(accept(connection), f"connection from {connection.remote}")

        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: RealConnection("", accepted), self._bind, port, reuse_address=True)
        listener = RealListener(server)
        self._listeners.append(listener)
        return listener

    def reached_at(self, address: str) -> str:
        """Where an address that nodes know is reached from here, as `host:port`."""
        return self._addresses.get(address, address)

    async def connect(self, address: str, timeout_s: float) -> RealConnection:
        host, _, port = self.reached_at(address).rpartition(":")
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout_s):
                _, connection = await loop.create_connection(lambda: RealConnection(address), host, int(port))
        except (OSError, ValueError, OverflowError) as error:
            raise ConnectFailed(f"{address}: {error or 'timed out'}") from error
        return connection


class RealHost:
    """A `Host` of real sockets, files and clocks, for a node's program or for a client of the harness.

    `events` takes each event as one line of JSON. `panic` is called with the traceback when a spawned task
    fails; by default the host then cancels all its tasks and keeps the traceback in `panicked`.
    """

    def __init__(
        self,
        name: str,
        data_root: str | os.PathLike[str],
        addresses: Mapping[str, str] | None = None,
        *,
        bind: str = "0.0.0.0",
        events: Callable[[str], None] | None = None,
        panic: Callable[[str], None] | None = None,
    ) -> None:
        self.name = name
        self.directory = Path(data_root)
        self.clock = RealClock()
        self.network = RealNetwork(self.spawn, addresses or {}, bind)
        self.disk = RealDisk(Path(data_root))
        self.random = random.Random()
        self.panicked: str | None = None
        self._events = events
        self._panic = panic or self._cancel_all
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._serial = 0

    def spawn(self, coroutine: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(coroutine, name=name)
        self._serial = serial = self._serial + 1
        self._tasks[serial] = task

        def ended(task: asyncio.Task[None]) -> None:
            del self._tasks[serial]
            if not task.cancelled() and (error := task.exception()) is not None:
                self._die(name, error)

        task.add_done_callback(ended)
        return task

    def log(self, event: str, **fields: object) -> None:
        if self._events is not None:
            line = {"time": time.monotonic_ns(), "wall": time.time_ns(), "event": event, **fields}
            self._events(_JSON.encode(line))

    def unusual(self, point: str) -> bool:
        return False

    def reached(self, point: str, **values: int) -> None:
        pass

    async def close(self) -> None:
        """Stop listening, end all tasks of this host and wait until they have ended."""
        self.network.close()
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.disk.close()

    @property
    def idle(self) -> bool:
        """True until the first task was spawned."""
        return self._serial == 0

    def _die(self, task_name: str, error: BaseException) -> None:
        if self.panicked is None:
            self.panicked = "".join(traceback.format_exception(error))
            self.log("panic", task=task_name, reason=repr(error), traceback=self.panicked)
            self._panic(self.panicked)

    def _cancel_all(self, _: str) -> None:
        for task in list(self._tasks.values()):
            task.cancel()


def _load_main(name: str) -> Callable[[RealHost, Mapping[str, Any]], Coroutine[Any, Any, None]]:
    module, _, function = name.partition(":")
    main: Callable[[RealHost, Mapping[str, Any]], Coroutine[Any, Any, None]]
    main = getattr(importlib.import_module(module), function)
    return main


def _exit_at_once(words: str) -> None:
    sys.stderr.write(words)
    sys.stderr.flush()
    os._exit(EXIT_PANIC)


async def _run(host: RealHost, main: Coroutine[Any, Any, None]) -> int:
    task = asyncio.create_task(main, name="main")
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    stopped = asyncio.create_task(stop.wait())
    await asyncio.wait((task, stopped), return_when=asyncio.FIRST_COMPLETED)
    host.log("stopping")
    task.cancel()
    _, unfinished = await asyncio.wait((task,), timeout=STOP_TIMEOUT_S)
    stopped.cancel()
    if unfinished:
        host.log("stop_timeout")
        return EXIT_STOP_TIMEOUT
    if not task.cancelled() and (error := task.exception()) is not None:
        if isinstance(error, ValueError) and host.idle:
            sys.stderr.write(f"bad config: {error}\n")
            return EXIT_BAD_CONFIG
        host._die("main", error)
    await host.close()
    host.log("stopped")
    return 0


def run_program(arguments: Sequence[str]) -> int:
    """Run a node until it is stopped; returns the exit code."""
    try:
        main_name, config_path = arguments
        settings = json.loads(Path(config_path).read_text("utf-8"))
        name, data, config = settings["name"], Path(settings["data"]), settings["config"]
        if isinstance(config, str):
            config = settings_of(Path(config).read_text("utf-8"))
        main = _load_main(main_name)
    except (ValueError, KeyError, TypeError, OSError, ImportError, AttributeError) as error:
        sys.stderr.write(f"bad config: {type(error).__name__}: {error}\n")
        return EXIT_BAD_CONFIG
    new_event_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    with contextlib.suppress(ImportError):
        new_event_loop = importlib.import_module("uvloop").new_event_loop
    data.mkdir(parents=True, exist_ok=True)
    events = os.open(data / "events.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)

    def write_event(line: str) -> None:
        encoded = line.encode() + b"\n"
        os.write(events, encoded)
        sys.stdout.buffer.write(encoded)
        sys.stdout.buffer.flush()

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        host = RealHost(
            name,
            data / "disk",
            settings.get("addresses"),
            bind=settings.get("bind", "0.0.0.0"),
            events=write_event,
            panic=_exit_at_once,
        )
        host.log("started", main=main_name)
        code = runner.run(_run(host, main(host, config)))
    if code == EXIT_STOP_TIMEOUT:
        os._exit(code)
    return code


if __name__ == "__main__":
    sys.exit(run_program(sys.argv[1:]))
