"""The simulated network: TCP connections over links that may be slow, lossy or cut.

A link is one direction between two hosts. Its bytes stall while it is cut and arrive after healing, at the
moment of TCP's next retransmission, unless they stalled for so long that their sender gave up and reset the
connection. Loss is seen as TCP delay. Whatever happens, each direction of a connection delivers its bytes
in order and once; a breach of that would accuse healthy systems and ends the simulation.

What a crash looks like to the peer:
- killed: the kernel goes on sending what was written and closes (FIN), or resets (RST, never repeated) where
  the dead process had left bytes unread;
- power lost: silence; once the host is up again it answers old connections with RST.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from math import log
from typing import Any, Final
from zlib import crc32

from harness.environments.simulated.loop import NANOSECONDS, TimerHandle, VirtualTimeLoop
from harness.environments.simulated.process import Machine, Process
from harness.environments.simulated.regime import Regime
from harness.environments.simulated.seam import SeamExceptions
from harness.errors import HarnessError
from harness.seed import Seed
from harness.trace import Trace

HIGH_WATER_BYTES: Final = 64 * 1024
LOW_WATER_BYTES: Final = 16 * 1024
SEND_LIMIT_BYTES: Final = 256 * 1024 * 1024
RECEIVE_WINDOW_BYTES: Final = 1024 * 1024
UNACKNOWLEDGED_WINDOW_BYTES: Final = 64 * 1024
LOOPBACK_NS: Final = 20_000
MAX_LOSSES: Final = 12

_OPEN: Final = b""
"""The first thing a connecting side sends: the end of the handshake."""


class Wire:
    """One direction between two hosts."""

    __slots__ = (
        "_random",
        "base_ns",
        "cut",
        "extra_ns",
        "jitter_ns",
        "loss_probability",
        "retransmission_limit_ns",
        "retransmission_ns",
        "source",
        "spike_factor",
        "spike_probability",
        "split_probability",
        "target",
    )

    def __init__(self, source: Machine, target: Machine, seed: Seed, regime: Regime) -> None:
        draw = seed.child("link", source.name, target.name).stream()
        self._random = draw.random
        self.source = source
        self.target = target
        self.cut = False
        self.extra_ns = 0
        self.retransmission_ns = int(regime.retransmission_ms * 1e6)
        self.retransmission_limit_ns = int(regime.retransmission_limit_s * NANOSECONDS)
        spread = regime.link_spread ** draw.uniform(-1.0, 1.0)
        self.base_ns = max(1, int(regime.latency_ms * spread * 1e6))
        self.jitter_ns = self.base_ns * regime.jitter
        self.spike_probability = regime.spike_probability
        self.spike_factor = regime.spike_factor
        self.loss_probability = regime.loss_probability
        self.split_probability = regime.split_probability
        if source is target:
            self.base_ns = LOOPBACK_NS
            self.jitter_ns = LOOPBACK_NS * 0.1
            self.spike_probability = self.loss_probability = self.split_probability = 0.0

    def latency_ns(self) -> int:
        """How long the next packet takes, repetitions after loss included."""
        random = self._random
        latency_ns = self.base_ns + self.extra_ns - int(self.jitter_ns * log(1.0 - random()))
        if self.spike_probability and random() < self.spike_probability:
            latency_ns = int(latency_ns * self.spike_factor)
        if self.loss_probability:
            losses = 0
            while losses < MAX_LOSSES and random() < self.loss_probability:
                latency_ns += min(self.retransmission_ns << losses, self.retransmission_limit_ns)
                losses += 1
        return latency_ns

    def splits(self, length: int) -> int:
        """After how many bytes a write is torn into two packets; 0 for not at all."""
        if length > 1 and self.split_probability and self._random() < self.split_probability:
            return 1 + int(self._random() * (length - 1))
        return 0

    def next_retransmission_ns(self, since_ns: int, now_ns: int) -> int:
        """The first repetition after `now_ns` of what was first sent at `since_ns`."""
        when_ns = since_ns
        back_off_ns = self.retransmission_ns
        while when_ns <= now_ns:
            when_ns += back_off_ns
            back_off_ns = min(back_off_ns * 2, self.retransmission_limit_ns)
        return when_ns


class Pipe:
    """One direction of a connection: bytes on their way, in order.

    `stuck_since_ns` is when the oldest byte began to go without acknowledgement; -1 while all is well.
    """

    __slots__ = (
        "_ack_wire",
        "_arrivals",
        "_buffered",
        "_delivered",
        "_drainers",
        "_give_up_timer",
        "_last_ns",
        "_sent",
        "_stalled",
        "_stuck_since_ns",
        "_unacknowledged",
        "_wire",
        "label",
        "network",
        "opens",
        "source",
        "target",
        "window_closed",
    )

    def __init__(
        self, network: SimulatedNetwork, label: str, source: Endpoint, target: Endpoint, wire: Wire, ack_wire: Wire
    ) -> None:
        self.network = network
        self._wire = wire
        self._ack_wire = ack_wire
        self.label = label
        self.source = source
        self.target = target
        self._arrivals: deque[tuple[int, int, bytes | None]] = deque()
        self._sent = 0
        self._delivered = 0
        self._buffered = 0
        self._unacknowledged = 0
        self._last_ns = 0
        self._stalled = False
        self._stuck_since_ns = -1
        self._give_up_timer: TimerHandle | None = None
        self._drainers: list[asyncio.Future[None]] = []
        self.window_closed = False
        self.opens: Callable[[], None] | None = None
        """What the first arrival sets off at the target: the handshake is complete there."""

    # Sending --------------------------------------------------------------------------------------------------

    def push(self, data: bytes | None) -> None:
        """Send bytes; `None` is the end of the stream."""
        network = self.network
        loop = network.loop
        now_ns = loop.now_ns
        length = 0
        if data:
            cut_at = self._wire.splits(len(data))
            if cut_at:
                self.push(data[:cut_at])
                data = data[cut_at:]
            length = len(data)
            self._buffered += length
            if self._buffered > SEND_LIMIT_BYTES:
                raise MemoryError(f"{self.label}: more than {SEND_LIMIT_BYTES} bytes written without drain()")
            network.trace.event(
                now_ns, self.source.machine.name, "send", f"{self.label} {self._sent}+{length} {crc32(data):08x}"
            )
        arrival_ns = now_ns + self._wire.latency_ns()
        last_ns = self._last_ns
        self._arrivals.append((max(arrival_ns, last_ns), self._sent, data))
        self._sent += length
        if arrival_ns > last_ns:
            self._last_ns = arrival_ns
            loop.kernel_at(arrival_ns, self.arrive)

    async def drain(self) -> None:
        """Wait until little is left to send."""
        if self._buffered <= HIGH_WATER_BYTES:
            return
        waiter = self.network.loop.create_future()
        self._drainers.append(waiter)
        try:
            await waiter
        finally:
            if waiter in self._drainers:
                self._drainers.remove(waiter)

    def power_lost(self) -> None:
        """What is on the wire still arrives; nothing is ever repeated."""
        if self._stuck_since_ns >= 0:
            self.discard()

    def discard(self) -> None:
        """Forget everything on its way."""
        self._arrivals.clear()
        self._unstick()
        self._buffered = self._unacknowledged = 0

    def fail_drainers(self, error: Exception) -> None:
        for waiter in self._drainers:
            if not waiter.done():
                waiter.set_exception(error)
        self._drainers.clear()

    # Arriving -------------------------------------------------------------------------------------------------

    def arrive(self) -> None:
        """Deliver what is due, in order."""
        arrivals = self._arrivals
        if self._stalled or self.window_closed or not arrivals:
            return
        network = self.network
        now_ns = network.loop.now_ns
        target = self.target
        wire = self._wire
        while arrivals and arrivals[0][0] <= now_ns:
            if wire.cut or not target.machine.powered or self._unacknowledged > UNACKNOWLEDGED_WINDOW_BYTES:
                self._stall()
                return
            if target.ended:
                self._answer_with_reset()
                return
            if len(target.buffer) >= target.window:
                self.window_closed = True
                return
            _, offset, data = arrivals.popleft()
            if offset != self._delivered:
                raise HarnessError(f"{self.label}: byte {offset} arrived where {self._delivered} was due")
            if data:
                length = len(data)
                self._delivered = offset + length
                network.trace.event(now_ns, target.machine.name, "deliver", f"{self.label} {offset}+{length}")
                if self._ack_wire.cut:
                    self._unacknowledged += length
                    self._stick()
                else:
                    self._buffered -= length
                    if self._drainers and self._buffered <= LOW_WATER_BYTES:
                        self._wake_drainers()
                target.receive(data)
            elif data is None:
                network.trace.event(now_ns, target.machine.name, "end", self.label)
                target.receive_end()
            elif self.opens is not None:
                opens, self.opens = self.opens, None
                opens()

    def _wake_drainers(self) -> None:
        for waiter in self._drainers:
            if not waiter.done():
                waiter.set_result(None)
        self._drainers.clear()

    def _answer_with_reset(self) -> None:
        if self._ack_wire.cut or not self._ack_wire.source.powered:
            self._stall()
            return
        ends_only = all(data is None for _, _, data in self._arrivals)
        self.discard()
        if not ends_only:
            self.network.send_reset(self.target)

    # Stalling -------------------------------------------------------------------------------------------------

    def _stall(self) -> None:
        if self.source.vanished:
            self.discard()
            return
        self._stalled = True
        self._stick()

    def _stick(self) -> None:
        if self._stuck_since_ns >= 0:
            return
        network = self.network
        self._stuck_since_ns = now_ns = network.loop.now_ns
        network.stuck[self] = None
        self._give_up_timer = network.loop.kernel_at(now_ns + network.stall_limit_ns, self._give_up)

    def _unstick(self) -> None:
        self._stalled = False
        self._stuck_since_ns = -1
        self.network.stuck.pop(self, None)
        if self._give_up_timer is not None:
            self._give_up_timer.cancel()
            self._give_up_timer = None

    def _give_up(self) -> None:
        network = self.network
        network.trace.event(network.loop.now_ns, self.source.machine.name, "give-up", self.label)
        self.discard()
        self.source.reset("timed out: the peer has not acknowledged for too long")

    def _way_is_free(self) -> bool:
        return not self._wire.cut and self.target.machine.powered

    def world_changed(self) -> None:
        """Something was healed: send again at the next retransmission if the way is free."""
        if self._stuck_since_ns < 0 or not self._way_is_free():
            return
        loop = self.network.loop
        when_ns = self._wire.next_retransmission_ns(self._stuck_since_ns, loop.now_ns)
        loop.kernel_at(when_ns + self._wire.latency_ns(), self._retransmit, self._stuck_since_ns)

    def _retransmit(self, stuck_since_ns: int) -> None:
        if self._stuck_since_ns != stuck_since_ns or not self._way_is_free():
            return
        if self._ack_wire.cut:
            self._stalled = False
        else:
            self._unstick()
            self._buffered -= self._unacknowledged
            self._unacknowledged = 0
            if self._drainers and self._buffered <= LOW_WATER_BYTES:
                self._wake_drainers()
        self.arrive()

    def open_window(self) -> None:
        self.window_closed = False
        self.network.loop.kernel_soon(self.arrive)


class Endpoint:
    """One side of a connection; `Connection` of the seam."""

    __slots__ = (
        "_exceptions",
        "_pipe",
        "_process",
        "_reader",
        "_reason",
        "_remote",
        "_wanted",
        "buffer",
        "ended",
        "inbound",
        "machine",
        "peer_ended",
        "vanished",
        "window",
    )

    def __init__(self, process: Process, remote: str, exceptions: SeamExceptions) -> None:
        self.machine = process.machine
        self.buffer = bytearray()
        self.ended = False
        """Closed by this side, reset, or its process is dead."""
        self.peer_ended = False
        self.vanished = False
        """The machine lost its power: nothing is sent again."""
        self.window = RECEIVE_WINDOW_BYTES
        self.inbound: Pipe | None = None
        self._process = process
        self._remote = remote
        self._exceptions = exceptions
        self._pipe: Pipe | None = None
        self._reader: asyncio.Future[None] | None = None
        self._wanted = 0
        self._reason = ""

    def attach(self, outbound: Pipe, inbound: Pipe) -> None:
        self._pipe = outbound
        self.inbound = inbound

    @property
    def outbound(self) -> Pipe:
        assert self._pipe is not None
        return self._pipe

    @property
    def remote(self) -> str:
        return self._remote

    @property
    def closed(self) -> bool:
        return self.ended or self.peer_ended

    async def read_exactly(self, count: int) -> bytes:
        buffer = self.buffer
        if len(buffer) < count or self.ended:
            await self._fill(count)
        data = bytes(memoryview(buffer)[:count])
        del buffer[:count]
        inbound = self.inbound
        if inbound is not None and inbound.window_closed and len(buffer) < self.window // 2:
            inbound.open_window()
        return data

    async def _fill(self, count: int) -> None:
        if self._reader is not None:
            raise RuntimeError("two readers of one connection")
        self._wanted = count
        if count > self.window:
            self.window = count
            if self.inbound is not None and self.inbound.window_closed:
                self.inbound.open_window()
        loop = self._process.loop
        while True:
            if self.ended:
                raise self._exceptions.ConnectionClosed(self._reason)
            if len(self.buffer) >= count:
                return
            if self.peer_ended:
                raise self._exceptions.ConnectionClosed("closed by the peer")
            self._reader = reader = loop.create_future()
            try:
                await reader
            finally:
                self._reader = None

    def write(self, data: bytes) -> None:
        if self.ended or self.peer_ended:
            if self._process.alive:
                raise self._exceptions.ConnectionClosed(self._reason or "closed by the peer")
            return
        if data:
            self._pipe.push(bytes(data))  # type: ignore[union-attr]

    async def drain(self) -> None:
        if self.ended or self.peer_ended:
            if self._process.alive:
                raise self._exceptions.ConnectionClosed(self._reason or "closed by the peer")
            return
        await self.outbound.drain()

    def close(self) -> None:
        if self.ended:
            return
        self.outbound.push(None)
        self._end("closed by this side")

    # What the kernel does to it -------------------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        buffer = self.buffer
        buffer += data
        reader = self._reader
        if reader is not None and len(buffer) >= self._wanted and not reader.done():
            reader.set_result(None)

    def receive_end(self) -> None:
        self.peer_ended = True
        self.outbound.fail_drainers(self._exceptions.ConnectionClosed("closed by the peer"))
        self._wake_reader()

    def reset(self, reason: str) -> None:
        """The connection is gone: what was unread is lost."""
        if self.ended:
            return
        self.outbound.discard()
        self._end(reason)

    def process_killed(self) -> None:
        """The kernel closes for a dead process: resets where bytes were left unread, otherwise ends in order."""
        if self.ended:
            return
        if self.buffer:
            self.outbound.discard()
            self._end("killed")
            self.outbound.network.send_reset(self)
        else:
            self.outbound.push(None)
            self._end("killed")

    def power_lost(self) -> None:
        self.vanished = True
        self.outbound.power_lost()
        self._end("power lost")

    def _end(self, reason: str) -> None:
        self.ended = True
        self._reason = reason
        self.buffer.clear()
        self._process.connections.pop(self, None)
        self.outbound.fail_drainers(self._exceptions.ConnectionClosed(reason))
        if self.inbound is not None and self.inbound.window_closed:
            self.inbound.open_window()
        self._wake_reader()

    def _wake_reader(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)


class SimulatedListener:
    """`Listener` of the seam."""

    __slots__ = ("accept", "port", "process", "spawn")

    def __init__(
        self,
        process: Process,
        port: int,
        accept: Callable[[Any], Coroutine[Any, Any, None]],
        spawn: Callable[[Coroutine[Any, Any, None], str], object],
    ) -> None:
        self.process = process
        self.port = port
        self.accept = accept
        self.spawn = spawn

    @property
    def open(self) -> bool:
        return self.process.alive and self.process.machine.listeners.get(self.port) is self

    def close(self) -> None:
        listeners = self.process.machine.listeners
        if listeners.get(self.port) is self:
            del listeners[self.port]


class _Attempt:
    """One call of connect: SYN, SYN-ACK, and their repetitions, until its future is done."""

    __slots__ = ("_back", "_endpoint", "_forward", "_future", "_port", "_process", "_started_ns", "network")

    def __init__(
        self, network: SimulatedNetwork, process: Process, target: Machine, port: int, future: asyncio.Future[Endpoint]
    ) -> None:
        self.network = network
        self._process = process
        self._port = port
        self._future = future
        self._forward = network.wire(process.machine, target)
        self._back = network.wire(target, process.machine)
        self._started_ns = network.loop.now_ns

    def send(self) -> None:
        """SYN leaves."""
        if not self._future.done():
            loop = self.network.loop
            loop.kernel_at(loop.now_ns + self._forward.latency_ns(), self._arrives)

    def _arrives(self) -> None:
        """SYN reaches the target's kernel, or nobody."""
        if self._future.done():
            return
        loop = self.network.loop
        target = self._forward.target
        if self._forward.cut or not target.powered:
            self._again()
            return
        listener = target.listeners.get(self._port)
        when_ns = loop.now_ns + self._back.latency_ns()
        if listener is None or not listener.open:
            loop.kernel_at(when_ns, self._refused)
        else:
            loop.kernel_at(when_ns, self._answered, listener)

    def _again(self) -> None:
        loop = self.network.loop
        when_ns = self._forward.next_retransmission_ns(self._started_ns, loop.now_ns)
        loop.kernel_at(when_ns, self.send)

    def _refused(self) -> None:
        if self._future.done():
            return
        if self._back.cut:
            self._again()
            return
        self._future.set_exception(self.network.exceptions.ConnectFailed("refused"))

    def _answered(self, listener: SimulatedListener) -> None:
        """SYN-ACK comes back: this side is connected; the other will be when the next packet reaches it."""
        if self._future.done() or not self._process.alive:
            return
        if self._back.cut:
            self._again()
            return
        self._future.set_result(self.network.join(self._process, listener, self._forward, self._back))


class SimulatedNetwork:
    """All machines, all wires between them, all connections."""

    def __init__(
        self, loop: VirtualTimeLoop, seed: Seed, regime: Regime, trace: Trace, exceptions: SeamExceptions
    ) -> None:
        self.loop = loop
        self.trace = trace
        self.exceptions = exceptions
        self.stall_limit_ns = int(regime.stall_limit_s * NANOSECONDS)
        self.stuck: dict[Pipe, None] = {}
        """Pipes with bytes that go unacknowledged, oldest first."""
        self._seed = seed
        self._regime = regime
        self._machines: dict[str, Machine] = {}
        self._wires: dict[tuple[str, str], Wire] = {}
        self._connections: dict[tuple[str, str], int] = {}

    def add(self, machine: Machine) -> None:
        self._machines[machine.name] = machine

    def wire(self, source: Machine, target: Machine) -> Wire:
        key = (source.name, target.name)
        wire = self._wires.get(key)
        if wire is None:
            self._wires[key] = wire = Wire(source, target, self._seed, self._regime)
        return wire

    def cut(self, source: Machine, target: Machine) -> bool:
        """Stop this direction; returns whether it was open."""
        wire = self.wire(source, target)
        was_open = not wire.cut
        wire.cut = True
        return was_open

    def heal(self, source: Machine, target: Machine) -> bool:
        """Open this direction; returns whether it was cut."""
        wire = self.wire(source, target)
        was_cut = wire.cut
        wire.cut = False
        if was_cut:
            self.world_changed()
        return was_cut

    def cut_wires(self) -> list[Wire]:
        """The directions that are cut now."""
        return [wire for _, wire in sorted(self._wires.items()) if wire.cut]

    def world_changed(self) -> None:
        """A link or a machine came back."""
        for pipe in list(self.stuck):
            pipe.world_changed()

    async def connect(self, process: Process, address: str, timeout_ns: int) -> Endpoint:
        name, _, port = address.rpartition(":")
        target = self._machines.get(name)
        if target is None or not port.isdigit():
            raise self.exceptions.ConnectFailed(f"{address}: no such host")
        loop = self.loop
        future: asyncio.Future[Endpoint] = loop.create_future()
        timer = loop.kernel_at(loop.now_ns + timeout_ns, self._time_out, future, address)
        self.trace.event(loop.now_ns, process.name, "connect", address)
        _Attempt(self, process, target, int(port), future).send()
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is None:
                future.result().close()
            raise
        finally:
            timer.cancel()

    def _time_out(self, future: asyncio.Future[Endpoint], address: str) -> None:
        if not future.done():
            future.set_exception(self.exceptions.ConnectFailed(f"{address}: timed out"))

    def listen(
        self,
        process: Process,
        port: int,
        accept: Callable[[Any], Coroutine[Any, Any, None]],
        spawn: Callable[[Coroutine[Any, Any, None], str], object],
    ) -> SimulatedListener:
        listeners = process.machine.listeners
        if port in listeners:
            raise OSError(98, f"port {port} of {process.name} is taken")
        listeners[port] = listener = SimulatedListener(process, port, accept, spawn)
        self.trace.event(self.loop.now_ns, process.name, "listen", str(port))
        return listener

    def join(self, process: Process, listener: SimulatedListener, forward: Wire, back: Wire) -> Endpoint:
        """Make both ends of a connection; the listener's side hears of it with the first packet."""
        client, server = process.name, listener.process.name
        number = self._connections.get((client, server), 0) + 1
        self._connections[client, server] = number
        near = Endpoint(process, f"{server}:{listener.port}", self.exceptions)
        far = Endpoint(listener.process, f"{client}:{32768 + number % 28000}", self.exceptions)
        out = Pipe(self, f"{client}>{server}#{number}", near, far, forward, back)
        into = Pipe(self, f"{server}<{client}#{number}", far, near, back, forward)
        near.attach(out, into)
        far.attach(into, out)
        process.connections[near] = None
        if listener.process.alive:
            listener.process.connections[far] = None
        else:
            far.ended = True
        self.trace.event(self.loop.now_ns, client, "connected", out.label)
        out.opens = lambda: self._accept(listener, far, out.label)
        out.push(_OPEN)
        return near

    def _accept(self, listener: SimulatedListener, far: Endpoint, label: str) -> None:
        if not listener.open:
            far.reset("the listener was closed")
            self.send_reset(far)
            return
        self.trace.event(self.loop.now_ns, listener.process.name, "accept", label)
        listener.spawn(listener.accept(far), f"accept {label}")

    def send_reset(self, source: Endpoint) -> None:
        """RST: one packet, lost for good if the way is not free."""
        pipe = source.outbound
        wire = self.wire(source.machine, pipe.target.machine)
        if not wire.cut:
            self.loop.kernel_at(self.loop.now_ns + wire.latency_ns(), self._reset_arrives, wire, pipe)

    def _reset_arrives(self, wire: Wire, pipe: Pipe) -> None:
        if not wire.cut and wire.target.powered and not pipe.target.ended:
            self.trace.event(self.loop.now_ns, pipe.target.machine.name, "reset", pipe.label)
            pipe.target.reset("reset by the peer")

    def processes_gone(self, process: Process) -> None:
        """The process was killed or ended: its kernel closes everything it had open."""
        process.machine.listeners.clear()
        for endpoint in list(process.connections):
            endpoint.process_killed()

    def power_lost(self, process: Process) -> None:
        """The machine went dark: no packet says so."""
        process.machine.listeners.clear()
        for endpoint in list(process.connections):
            endpoint.power_lost()
