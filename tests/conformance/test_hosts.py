"""One body of promises, every kind of host: what `system_under_test.runtime.host` says holds in each environment."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import os
import stat
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, ClassVar, Protocol

import pytest

from harness.environments.simulated.environment import SimulatedEnvironment, run_simulation
from harness.environments.simulated.regime import Regime
from harness.program import PythonProgram
from harness.seed import Seed
from harness.system import NodeSpec
from harness.trace import Trace
from system_under_test.runtime.host import ConnectFailed, Connection, ConnectionClosed, Host
from system_under_test.runtime.real import RealHost
from tests.conformance import broken_worlds

PORT = 10911
PATIENCE_S = 20.0


class Environment(Protocol):
    async def host(self, name: str) -> Host:
        """A fresh host; others reach it as `name:port`."""

    def panics(self) -> Mapping[str, str]: ...

    def run(self, body: Callable[[Environment], Coroutine[Any, Any, None]]) -> None:
        """Run a test in this environment."""


class RealEnvironment:
    """Each host has a loopback address of its own, so that all may listen on the same port."""

    # Far from those of the next process: workers of one test run have neighbouring numbers, and listen at one time.
    _networks = itertools.count(100 * os.getpid())

    def __init__(self, root: Path) -> None:
        network = next(self._networks)
        self._prefix = f"127.{1 + network // 250 % 250}.{1 + network % 250}"
        self._root = root
        self._hosts: dict[str, RealHost] = {}

    async def host(self, name: str) -> Host:
        addresses = {f"{name}:{PORT}": f"{self._ip(name)}:{PORT}" for name in ("a", "b")}
        host = self._hosts[name] = RealHost(name, self._root / name, addresses, bind=self._ip(name))
        return host

    def panics(self) -> Mapping[str, str]:
        return {name: host.panicked for name, host in self._hosts.items() if host.panicked is not None}

    def run(self, body: Callable[[Environment], Coroutine[Any, Any, None]]) -> None:
        async def bounded() -> None:
            try:
                async with asyncio.timeout(PATIENCE_S):
                    await body(self)
            finally:
                for host in self._hosts.values():
                    await host.close()

        asyncio.run(bounded())

    def _ip(self, name: str) -> str:
        return f"{self._prefix}.{ord(name) - ord('a') + 1}"


class CalmSimulation:
    """Each host is a node of the simulator whose program hands its host out and waits."""

    regime: Regime | None = Regime.calm()
    hosts: ClassVar[dict[str, Host]] = {}

    def __init__(self, root: Path) -> None:
        self._root = root
        self._environment: SimulatedEnvironment | None = None

    async def host(self, name: str) -> Host:
        node = NodeSpec(name=name, groups=(), program=PythonProgram(main=f"{__name__}:hand_out_host"))
        await self._simulation.start([node], self._root)
        while name not in self.hosts:
            await self._simulation.timeline.sleep(0.001)
        return self.hosts.pop(name)

    def panics(self) -> Mapping[str, str]:
        return self._simulation.panics()

    def run(self, body: Callable[[Environment], Coroutine[Any, Any, None]]) -> None:
        async def main(environment: SimulatedEnvironment) -> None:
            self._environment = environment
            await body(self)

        self.hosts.clear()
        run_simulation(main, Seed(1729), Trace(), regime=self.regime)

    @property
    def _simulation(self) -> SimulatedEnvironment:
        assert self._environment is not None
        return self._environment


class RoughSimulation(CalmSimulation):
    """As above, over links that lose, split and delay."""

    regime = dataclasses.replace(
        Regime.calm(),
        latency_ms=5.0,
        jitter=1.0,
        spike_probability=0.01,
        spike_factor=10.0,
        loss_probability=0.02,
        split_probability=0.1,
        fsync_slow_probability=0.1,
        fsync_slow_factor=10.0,
        quartz_ppm=100.0,
        timer_jitter_ms=1.0,
    )


async def hand_out_host(host: Host, _: Mapping[str, Any]) -> None:
    CalmSimulation.hosts[host.name] = host
    await asyncio.Event().wait()


@pytest.fixture(params=[RealEnvironment, CalmSimulation, RoughSimulation])
def environment(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return request.param(tmp_path)


class Acceptor:
    """Listens on a host and hands out the connections it accepted; each stays open until the test ends."""

    def __init__(self) -> None:
        self.connections: asyncio.Queue[Connection] = asyncio.Queue()

    async def accept(self, connection: Connection) -> None:
        self.connections.put_nowait(connection)

    async def pair(self, near: Host, far: Host) -> tuple[Connection, Connection]:
        """A connection from `near` to `far`, both ends."""
        self.listener = await far.network.listen(PORT, self.accept)
        connection = await near.network.connect(f"{far.name}:{PORT}", 5.0)
        return connection, await self.connections.get()


# Network


def test_bytes_arrive_in_order_and_once(environment):
    async def body(environment: Environment) -> None:
        a, b = await environment.host("a"), await environment.host("b")
        near, far = await Acceptor().pair(a, b)
        sent = b"".join(index.to_bytes(4, "big") for index in range(50_000))
        for start in range(0, len(sent), 997):
            near.write(sent[start : start + 997])
        received = bytearray()
        while len(received) < len(sent):
            received += await far.read_exactly(min(1021, len(sent) - len(received)))
        assert received == sent
        far.write(b"and back")
        assert await near.read_exactly(8) == b"and back"

    environment.run(body)


def test_what_was_written_before_a_close_arrives_and_then_the_stream_ends(environment):
    async def body(environment: Environment) -> None:
        a, b = await environment.host("a"), await environment.host("b")
        near, far = await Acceptor().pair(a, b)
        near.write(b"last words")
        near.close()
        assert await far.read_exactly(4) == b"last"
        assert await far.read_exactly(0) == b""
        with pytest.raises(ConnectionClosed):
            await far.read_exactly(7)
        assert far.closed

    environment.run(body)


def test_a_read_of_all_that_is_left_succeeds_after_the_peer_has_closed(environment):
    async def body(environment: Environment) -> None:
        a, b = await environment.host("a"), await environment.host("b")
        near, far = await Acceptor().pair(a, b)
        near.write(b"0123456789")
        near.close()
        assert await far.read_exactly(1) == b"0"
        while not far.closed:
            await b.clock.sleep(0.01)
        assert await far.read_exactly(9) == b"123456789"
        with pytest.raises(ConnectionClosed):
            far.write(b"to nobody")

    environment.run(body)


def test_a_close_ends_a_pending_read_and_forbids_everything_after(environment):
    async def body(environment: Environment) -> None:
        a, b = await environment.host("a"), await environment.host("b")
        near, far = await Acceptor().pair(a, b)
        far.write(b"unread")
        assert await near.read_exactly(1) == b"u"
        outcome: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()

        async def read() -> None:
            try:
                await near.read_exactly(100)
            except ConnectionClosed as error:
                outcome.set_result(error)

        a.spawn(read(), "reader")
        await a.clock.sleep(0.01)
        near.close()
        near.close()
        await outcome
        assert near.closed
        with pytest.raises(ConnectionClosed):
            await near.read_exactly(1)
        with pytest.raises(ConnectionClosed):
            near.write(b"x")
        with pytest.raises(ConnectionClosed):
            await near.drain()

    environment.run(body)


def test_drain_holds_a_writer_back_until_the_reader_reads(environment):
    async def body(environment: Environment) -> None:
        a, b = await environment.host("a"), await environment.host("b")
        near, far = await Acceptor().pair(a, b)
        chunks, chunk = 256, bytes(128 * 1024)
        for _ in range(chunks):
            near.write(chunk)
        with pytest.raises(TimeoutError):
            await a.clock.within(0.2, near.drain())
        for _ in range(chunks):
            await far.read_exactly(len(chunk))
        await near.drain()

    environment.run(body)


def test_a_connect_to_a_port_without_listener_fails(environment):
    async def body(environment: Environment) -> None:
        a, _ = await environment.host("a"), await environment.host("b")
        with pytest.raises(ConnectFailed):
            await a.network.connect(f"b:{PORT}", 5.0)
        with pytest.raises(ConnectFailed):
            await a.network.connect("no-such-host.invalid:1", 5.0)

    environment.run(body)


def test_a_port_is_listened_on_once(environment):
    async def body(environment: Environment) -> None:
        b = await environment.host("b")
        listener = await b.network.listen(PORT, Acceptor().accept)
        with pytest.raises(OSError):  # noqa: PT011 - any OSError is what the seam promises
            await b.network.listen(PORT, Acceptor().accept)
        listener.close()
        await b.clock.sleep(0.01)
        (await b.network.listen(PORT, Acceptor().accept)).close()

    environment.run(body)


def test_a_closed_listener_accepts_no_more_and_leaves_its_connections_alone(environment):
    async def body(environment: Environment) -> None:
        a, b = await environment.host("a"), await environment.host("b")
        acceptor = Acceptor()
        near, far = await acceptor.pair(a, b)
        acceptor.listener.close()
        with pytest.raises(ConnectFailed):
            await a.network.connect(f"b:{PORT}", 5.0)
        near.write(b"still here")
        assert await far.read_exactly(10) == b"still here"

    environment.run(body)


# Disk


def test_appends_and_overwrites_are_seen_at_once_through_every_handle(environment):
    async def body(environment: Environment) -> None:
        disk = (await environment.host("a")).disk
        file, other = disk.open("log/0"), disk.open("log/0")
        assert file.append(b"hello ") == 0
        assert other.append(b"world") == 6
        assert file.size == other.size == 11
        assert file.read_at(0, 100) == b"hello world"
        file.write_at(0, b"J")
        assert other.read_at(0, 5) == b"Jello"
        other.write_at(13, b"!")
        assert file.read_at(9, 9) == b"ld\0\0!"
        assert file.read_at(99, 1) == b""
        file.truncate(3)
        assert other.size == 3
        file.truncate(5)
        assert disk.open("log/0").read_at(0, 9) == b"Jel\0\0"
        await file.fsync()

    environment.run(body)


def test_names_are_listed_sorted_by_directory(environment):
    async def body(environment: Environment) -> None:
        disk = (await environment.host("a")).disk
        for path in ("log/2", "log/10", "log/1", "log/deeper/3", "top"):
            disk.open(path).append(b"x")
        assert list(disk.list("log")) == ["log/1", "log/10", "log/2"]
        assert list(disk.list("log/")) == ["log/1", "log/10", "log/2"]
        assert list(disk.list("")) == ["top"]
        assert list(disk.list("nowhere")) == []
        assert disk.exists("top")
        assert disk.exists("log")
        assert not disk.exists("log/3")
        disk.remove("log/1")
        assert not disk.exists("log/1")
        with pytest.raises(FileNotFoundError):
            disk.remove("log/1")

    environment.run(body)


def test_a_disk_says_how_full_it_is(environment):
    async def body(environment):
        disk = (await environment.host("a")).disk
        before = disk.used_share()
        disk.open("some/file").append(bytes(1 << 16))
        assert 0.0 <= before <= 1.0
        assert 0.0 <= disk.used_share() <= 1.0

    environment.run(body)


def test_replace_moves_a_name_over_another(environment):
    async def body(environment: Environment) -> None:
        disk = (await environment.host("a")).disk
        old = disk.open("state")
        old.append(b"old")
        new = disk.open("tmp/state")
        new.append(b"new")
        await new.fsync()
        await disk.replace("tmp/state", "state")
        assert disk.open("state").read_at(0, 9) == b"new"
        assert not disk.exists("tmp/state")
        assert old.read_at(0, 9) == b"old"
        with pytest.raises(FileNotFoundError):
            await disk.replace("tmp/state", "state")

    environment.run(body)


@pytest.mark.parametrize("path", ["/etc/passwd", "../outside", "log/../../outside"])
def test_a_path_out_of_the_hosts_own_tree_is_refused(environment, path):
    async def body(environment: Environment) -> None:
        disk = (await environment.host("a")).disk
        for use in (disk.open, disk.exists, disk.remove, disk.list):
            with pytest.raises(ValueError, match="own tree"):
                use(path)

    environment.run(body)


def test_fsyncs_overlap_and_a_close_does_not_harm_one_that_runs(environment):
    async def body(environment: Environment) -> None:
        file = (await environment.host("a")).disk.open("data")
        file.append(bytes(100_000))
        async with asyncio.TaskGroup() as group:
            for _ in range(4):
                group.create_task(file.fsync())
            file.append(b"more")
        last = asyncio.ensure_future(file.fsync())
        await asyncio.sleep(0)
        file.close()
        await last

    environment.run(body)


# Clock and tasks


def test_monotonic_time_never_goes_back_and_sleep_takes_its_time(environment):
    async def body(environment: Environment) -> None:
        clock = (await environment.host("a")).clock
        readings = [clock.monotonic_ns()]
        for _ in range(20):
            await clock.sleep(0.001)
            readings.append(clock.monotonic_ns())
        assert all(later - earlier >= 900_000 for earlier, later in itertools.pairwise(readings))
        await clock.sleep(0)
        assert clock.monotonic_ns() >= readings[-1]
        assert clock.wall_ns() > 1_700_000_000 * 10**9

    environment.run(body)


def test_within_passes_results_and_errors_on_and_cancels_what_is_late(environment):
    async def body(environment: Environment) -> None:
        clock = (await environment.host("a")).clock
        cancelled: list[str] = []

        async def answer() -> int:
            await clock.sleep(0.001)
            return 42

        async def fail() -> None:
            raise KeyError("its own")

        async def linger() -> None:
            try:
                await clock.sleep(100)
            except asyncio.CancelledError:
                cancelled.append("linger")
                raise

        assert await clock.within(5.0, answer()) == 42
        with pytest.raises(KeyError):
            await clock.within(5.0, fail())
        with pytest.raises(TimeoutError):
            await clock.within(0.01, linger())
        assert cancelled == ["linger"]
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with pytest.raises(TimeoutError):
            await clock.within(0.01, future)
        assert future.cancelled()

    environment.run(body)


def test_a_task_that_fails_is_a_panic_and_takes_the_others_with_it(environment):
    async def body(environment: Environment) -> None:
        a, b = await environment.host("a"), await environment.host("b")
        went_on: list[str] = []

        async def bystander() -> None:
            await a.clock.sleep(0.05)
            went_on.append("a")

        async def fail() -> None:
            raise RuntimeError("a planted mistake")

        a.spawn(bystander(), "bystander")
        a.spawn(fail(), "mistaken")
        await b.clock.sleep(0.2)
        assert list(environment.panics()) == ["a"]
        assert "a planted mistake" in environment.panics()["a"]
        assert went_on == []

    environment.run(body)


def test_a_cancelled_task_is_no_panic(environment):
    async def body(environment: Environment) -> None:
        a = await environment.host("a")
        task = a.spawn(a.clock.sleep(100), "sleeper")
        await a.clock.sleep(0.001)
        task.cancel()
        await a.clock.sleep(0.001)
        assert task.cancelled()
        assert not environment.panics()

    environment.run(body)


def test_a_closed_host_has_left_its_ports(tmp_path: Path) -> None:
    async def listen_twice() -> None:
        for life in ("first", "second"):
            host = RealHost("a", tmp_path / life, bind="127.0.0.9")
            await host.network.listen(PORT, _ignore)
            await host.close()

    asyncio.run(listen_twice())


async def _ignore(connection: Connection) -> None:
    connection.close()


class Platter:
    """What of regular files was there when the operating system was last asked to make them durable."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._contents: dict[int, bytes] = {}
        self._fsync = os.fsync
        monkeypatch.setattr(os, "fsync", self._synced)

    def _synced(self, descriptor: int) -> None:
        self._fsync(descriptor)
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode):
            self._contents[status.st_ino] = os.pread(descriptor, status.st_size, 0)

    def holds(self, path: Path) -> bytes:
        return self._contents.get(path.stat().st_ino, b"")


async def fsyncs_cover_all_that_was_written(disk: Any, root: Path, platter: Platter) -> None:
    file = disk.open("kept")
    for written in (b"a", b"ab", b"abc"):
        file.append(written[-1:])
        await file.fsync()
        assert platter.holds(root / "kept") == written, "what an fsync was to make durable is gone"
    file.write_at(0, b"A")
    file.truncate(2)
    assert platter.holds(root / "kept") == b"abc"
    await file.fsync()
    assert platter.holds(root / "kept") == b"Ab", "what an fsync was to make durable is gone"
    await disk.replace("kept", "named")
    assert platter.holds(root / "named") == b"Ab"


@pytest.mark.parametrize("wrong", [None, broken_worlds.LateFile, broken_worlds.UnsyncedFile])
def test_a_real_fsync_covers_the_newest_write_and_one_that_does_not_is_noticed(
    wrong: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body() -> None:
        host = RealHost("a", tmp_path, bind="127.0.0.9")
        disk = host.disk if wrong is None else broken_worlds.DiskOf(host.disk, {"kept": wrong})
        try:
            await fsyncs_cover_all_that_was_written(disk, tmp_path, Platter(monkeypatch))
        finally:
            await host.close()

    if wrong is None:
        asyncio.run(body())
    else:
        with pytest.raises(AssertionError, match="what an fsync was to make durable is gone"):
            asyncio.run(body())
