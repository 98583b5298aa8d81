"""The simulated network: TCP connections over links that may be slow, lossy or cut.

A link is one direction between two hosts. Its bytes stall while it is cut and arrive after healing, at the
moment of TCP's next retransmission, unless they stalled for so long that their sender gave up and reset the
connection. Loss is seen as TCP delay. What a slow or holding link has taken from a sender still arrives after its
death. Whatever happens, each direction of a connection delivers its bytes in order and once; a breach of that would
accuse healthy systems and ends the simulation.

What a crash looks like to the peer:
- killed: the kernel goes on sending what was written and closes (FIN), or resets (RST, never repeated) where
  the dead process had left bytes unread;
- power lost: silence; once the host is up again it answers old connections with RST.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from harness.environments.simulated.connection import Endpoint, Pipe
from harness.environments.simulated.loop import NANOSECONDS, VirtualTimeLoop
from harness.environments.simulated.process import Machine, Process, SimulatedListener
from harness.environments.simulated.regime import Regime
from harness.environments.simulated.seam import SeamExceptions
from harness.environments.simulated.wire import Wire
from harness.seed import Seed
from harness.trace import Trace

BEHIND_NS: Final = 20_000
"""So long after the last bytes of a connection a reset that follows them arrives."""


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
        network = self.network
        network.trace.event(
            network.loop.now_ns, self._process.name, "refused", f"{self._forward.target.name}:{self._port}"
        )
        self._future.set_exception(network.exceptions.ConnectFailed("refused"))

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
            self._wires[key] = wire = Wire(self.loop, source, target, self._seed, self._regime)
        return wire

    def cut(self, source: Machine, target: Machine) -> bool:
        """Stop this direction; returns whether it was open."""
        return self.wire(source, target).sever()

    def heal(self, source: Machine, target: Machine) -> bool:
        """Open this direction; returns whether it was cut."""
        was_cut = self.wire(source, target).mend()
        if was_cut:
            self.world_changed()
        return was_cut

    def cut_wires(self) -> list[Wire]:
        """The directions that are cut now."""
        return [wire for _, wire in sorted(self._wires.items()) if wire.is_severed]

    def world_changed(self) -> None:
        """A link or a machine came back."""
        for pipe in list(self.stuck):
            pipe.world_changed()

    async def connect(self, process: Process, address: str, timeout_ns: int) -> Endpoint:
        name, _, port = address.rpartition(":")
        target = self._machines.get(name)
        if not process.alive:
            await process.never()
        if target is None or not port.isdigit():
            raise self.exceptions.ConnectFailed(f"{address}: no such host")
        loop = self.loop
        future: asyncio.Future[Endpoint] = loop.create_future()
        timer = loop.kernel_at(loop.now_ns + timeout_ns, self._time_out, future, process.name, address)
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

    def _time_out(self, future: asyncio.Future[Endpoint], source: str, address: str) -> None:
        if not future.done():
            self.trace.event(self.loop.now_ns, source, "connect-timed-out", address)
            future.set_exception(self.exceptions.ConnectFailed(f"{address}: timed out"))

    def listen(
        self,
        process: Process,
        port: int,
        accept: Callable[[Any], Coroutine[Any, Any, None]],
        spawn: Callable[[Coroutine[Any, Any, None], str], object],
    ) -> SimulatedListener:
        listener = SimulatedListener(process, port, accept, spawn)
        if not process.alive:
            return listener
        listeners = process.machine.listeners
        if port in listeners:
            raise OSError(98, f"port {port} of {process.name} is taken")
        listeners[port] = listener
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
        out.push_open()
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
            arrival_ns = self.loop.now_ns + wire.latency_ns()
            if wire.keeps:
                arrival_ns = max(arrival_ns, pipe.last_arrival_ns + BEHIND_NS)
            self.loop.kernel_at(arrival_ns, self._reset_arrives, wire, pipe)

    def _reset_arrives(self, wire: Wire, pipe: Pipe) -> None:
        if not wire.cut and wire.target.powered and not pipe.target.ended:
            self.trace.event(self.loop.now_ns, pipe.target.machine.name, "reset", pipe.label)
            pipe.target.reset("reset by the peer")

    def process_gone(self, process: Process) -> None:
        """The process was killed or ended: its kernel closes everything it had open."""
        process.machine.listeners.clear()
        for endpoint in list(process.connections):
            endpoint.process_killed()

    def power_lost(self, machine: Machine) -> None:
        """The machine went dark: no packet says so, and nothing it had sent is repeated."""
        machine.listeners.clear()
        if machine.process is not None:
            for endpoint in list(machine.process.connections):
                endpoint.power_lost()
        for pipe in list(self.stuck):
            if pipe.source.machine is machine:
                pipe.abandon()
