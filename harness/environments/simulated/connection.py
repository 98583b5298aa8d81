"""Simulated TCP connections: pipes that carry bytes one way, endpoints that processes hold.

Bytes that meet a cut link or a dark machine stall and go on at TCP's next retransmission once the way is
free; where nothing is acknowledged for too long the sender gives up and resets. While only the way back is
cut, bytes still arrive, up to a window, but the sender cannot know.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol, TypeAlias
from zlib import crc32

from harness.environments.simulated.loop import TimerHandle, VirtualTimeLoop
from harness.environments.simulated.process import Process
from harness.environments.simulated.seam import SeamExceptions
from harness.environments.simulated.wire import Wire
from harness.errors import HarnessError
from harness.trace import Trace

SEGMENT_BYTES: Final = 64 * 1024
HIGH_WATER_BYTES: Final = 64 * 1024
LOW_WATER_BYTES: Final = 16 * 1024
SEND_LIMIT_BYTES: Final = 256 * 1024 * 1024
RECEIVE_WINDOW_BYTES: Final = 1024 * 1024
UNACKNOWLEDGED_WINDOW_BYTES: Final = 64 * 1024
Arrival: TypeAlias = tuple[int, int, bytes | None, str]
"""(when it is due, its first byte's number, its bytes or None for the stream's end, what the sender had reported
last)"""


class Kernel(Protocol):
    """What a pipe needs of the network it runs through."""

    loop: VirtualTimeLoop
    trace: Trace
    stall_limit_ns: int
    stuck: dict[Pipe, None]

    def send_reset(self, source: Endpoint) -> None: ...


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
        "_retransmitting",
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
        self, network: Kernel, label: str, source: Endpoint, target: Endpoint, wire: Wire, ack_wire: Wire
    ) -> None:
        self.network = network
        self._wire = wire
        self._ack_wire = ack_wire
        self.label = label
        self.source = source
        self.target = target
        self._arrivals: deque[Arrival] = deque()
        self._sent = 0
        self._delivered = 0
        self._buffered = 0
        self._unacknowledged = 0
        self._last_ns = 0
        self._stalled = False
        self._stuck_since_ns = -1
        self._retransmitting = False
        self._give_up_timer: TimerHandle | None = None
        self._drainers: list[asyncio.Future[None]] = []
        self.window_closed = False
        self.opens: Callable[[], None] | None = None
        """What the first arrival sets off at the target: the handshake is complete there."""

    # Sending --------------------------------------------------------------------------------------------------

    def push(self, data: bytes) -> None:
        """Send bytes, in packets of bounded size and sometimes torn."""
        length = len(data)
        wire = self._wire
        split_at = SEGMENT_BYTES
        if length <= SEGMENT_BYTES and not (wire.split_probability and (split_at := wire.splits(length))):
            self._send(data, length)
            return
        self._send(data[:split_at], split_at)
        for start in range(split_at, length, SEGMENT_BYTES):
            segment = data[start : start + SEGMENT_BYTES]
            self._send(segment, len(segment))

    def push_open(self) -> None:
        """Send the end of the handshake, which sets off `opens` at the target."""
        self._enqueue(b"", 0)

    def push_end(self) -> None:
        """Send the end of the stream."""
        self._enqueue(None, 0)

    def _send(self, data: bytes, length: int) -> None:
        network = self.network
        self._buffered += length
        if self._buffered > SEND_LIMIT_BYTES:
            raise MemoryError(f"{self.label}: more than {SEND_LIMIT_BYTES} bytes written without drain()")
        network.trace.event(
            network.loop.now_ns,
            self.source.machine.name,
            "send",
            f"{self.label} {self._sent}+{length} {crc32(data):08x}",
        )
        self._enqueue(data, length)

    def _enqueue(self, data: bytes | None, length: int) -> None:
        loop = self.network.loop
        arrival_ns = loop.now_ns + self._wire.latency_ns(length, self)
        if arrival_ns > self._last_ns:
            self._last_ns = arrival_ns
            loop.kernel_at(arrival_ns, self.arrive)
        self._arrivals.append((self._last_ns, self._sent, data, self.source.machine.last_event))
        self._sent += length

    @property
    def is_full(self) -> bool:
        """So much is left to send that the sender should wait."""
        return self._buffered > HIGH_WATER_BYTES

    async def drain(self) -> None:
        """Wait until little is left to send."""
        waiter = self.network.loop.create_future()
        self._drainers.append(waiter)
        try:
            await waiter
        finally:
            if waiter in self._drainers:
                self._drainers.remove(waiter)

    def discard(self) -> None:
        """Forget everything on its way."""
        self._arrivals.clear()
        self._unstick()
        self._buffered = self._unacknowledged = 0

    def abandon(self) -> None:
        """The sender's kernel knows the connection no more: only what a link keeps of it is still on its way."""
        if not self._wire.keeps:
            self.discard()
            return
        left = UNACKNOWLEDGED_WINDOW_BYTES
        kept: deque[Arrival] = deque()
        for arrival in self._arrivals:
            left -= len(arrival[2] or b"")
            if left < 0:
                break
            kept.append(arrival)
        self._arrivals = kept
        self._buffered = self._unacknowledged = 0

    @property
    def last_arrival_ns(self) -> int:
        """When the last of what is on its way is due; 0 where nothing is."""
        return self._arrivals[-1][0] if self._arrivals else 0

    def hurry(self) -> None:
        """What is on its way comes as if it was sent now, unless it comes earlier."""
        if not self._arrivals:
            return
        loop = self.network.loop
        soon_ns = loop.now_ns + self._wire.latency_ns()
        self._arrivals = deque(
            (min(when_ns, soon_ns), offset, data, said) for when_ns, offset, data, said in self._arrivals
        )
        self._last_ns = self._arrivals[-1][0]
        loop.kernel_at(soon_ns, self.arrive)

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
            _, offset, data, said = arrivals.popleft()
            if offset != self._delivered:
                raise HarnessError(f"{self.label}: byte {offset} arrived where {self._delivered} was due")
            if data:
                length = len(data)
                self._delivered = offset + length
                if said:
                    target.machine.heard = said
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
        ends_only = all(data is None for _, _, data, _ in self._arrivals)
        self.discard()
        if not ends_only:
            self.network.send_reset(self.target)

    # Stalling -------------------------------------------------------------------------------------------------

    def _stall(self) -> None:
        if (self.source.vanished or not self.source.machine.powered) and not self._wire.holds:
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
        self.abandon()
        self.source.reset("timed out: the peer has not acknowledged for too long")

    def _way_is_free(self) -> bool:
        return not self._wire.cut and self.target.machine.powered

    def world_changed(self) -> None:
        """Something was healed: send again at the next retransmission if the way is free."""
        if self._stuck_since_ns < 0 or self._retransmitting or not self._way_is_free():
            return
        loop = self.network.loop
        when_ns = self._wire.next_retransmission_ns(self._stuck_since_ns, loop.now_ns)
        loop.kernel_at(when_ns + self._wire.latency_ns(), self._retransmit)
        self._retransmitting = True

    def _retransmit(self) -> None:
        self._retransmitting = False
        if self._stuck_since_ns < 0 or not self._way_is_free():
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
            self._want(count)
            while len(buffer) < count:
                self._reader = reader = self._process.loop.create_future()
                try:
                    await reader
                finally:
                    self._reader = None
                if self.ended or self.peer_ended:
                    self._raise_if_over(count)
        if count == len(buffer):
            data = bytes(buffer)
            buffer.clear()
        else:
            data = bytes(memoryview(buffer)[:count])
            del buffer[:count]
        inbound = self.inbound
        if inbound is not None and inbound.window_closed and len(buffer) < self.window // 2:
            inbound.open_window()
        return data

    def _want(self, count: int) -> None:
        """Say how many bytes the reader waits for, and open the window that far."""
        if self._reader is not None:
            raise RuntimeError("two readers of one connection")
        self._wanted = count
        if count > self.window:
            self.window = count
            if self.inbound is not None and self.inbound.window_closed:
                self.inbound.open_window()
        if self.ended or self.peer_ended:
            self._raise_if_over(count)

    def _raise_if_over(self, count: int) -> None:
        """Raises ConnectionClosed if `count` bytes will never be there."""
        if self.ended:
            raise self._exceptions.ConnectionClosed(self._reason)
        if self.peer_ended and len(self.buffer) < count:
            raise self._exceptions.ConnectionClosed("closed by the peer")

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
        outbound = self.outbound
        if outbound.is_full:
            await outbound.drain()

    def close(self) -> None:
        if self.ended:
            return
        network = self.outbound.network
        network.trace.event(network.loop.now_ns, self.machine.name, "close", self.outbound.label)
        self.outbound.push_end()
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
        self.outbound.abandon()
        self._end(reason)

    def process_killed(self) -> None:
        """The kernel closes for a dead process: resets where bytes were left unread, otherwise ends in order."""
        if self.ended:
            return
        if self.buffer:
            self.outbound.abandon()
            self._end("killed")
            self.outbound.network.send_reset(self)
        else:
            self.outbound.push_end()
            self._end("killed")

    def power_lost(self) -> None:
        self.vanished = True
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
