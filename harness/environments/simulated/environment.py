"""The simulated environment: nodes, links, disks and clocks in one event loop of virtual time.

`run_simulation(main, seed, trace)` runs a whole test in it: harness, clients, nemesis and nodes. Everything
that happens depends on the seed alone and goes into the trace.
"""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import importlib
import itertools
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from pathlib import Path
from typing import Any, Final, TypeVar

from harness.environments.disk.disk_faults import DiskFaults
from harness.environments.environment import Effect, Link
from harness.environments.impairment import (
    HOST_IMPAIRMENTS,
    INSTEAD,
    STREAM_IMPAIRMENTS,
    KernelImpairment,
    LinkImpairment,
    NodeImpairment,
)
from harness.environments.simulated.clock import MachineClock
from harness.environments.simulated.disk_store import DiskStore
from harness.environments.simulated.host import RarePaths, SimulatedHost
from harness.environments.simulated.impaired_links import ImpairedLinks
from harness.environments.simulated.impaired_nodes import ImpairedNodes, World
from harness.environments.simulated.loop import NANOSECONDS, Deadline, VirtualTimeLoop
from harness.environments.simulated.moments import Moments
from harness.environments.simulated.network import SimulatedNetwork
from harness.environments.simulated.process import Machine, Process
from harness.environments.simulated.regime import Regime
from harness.environments.simulated.seam import DEFAULT_SEAM, SeamExceptions, seam_exceptions
from harness.errors import HarnessError
from harness.lifetime.interruption import unwinding
from harness.membership import KINDS as MEMBERSHIP
from harness.program import Main, Program, PythonProgram
from harness.record.run_directory import EVENTS, NODE_LOG
from harness.seed import Seed
from harness.system import NodeSpec
from harness.trace import Trace
from harness.watch import BOOTED, CUT, ENDED, HEALED, PAUSED, RESUMED

T = TypeVar("T")

CLEAN_STOP_S: Final = 10.0
COLLECT_AFTER: Final = 50_000
"""New objects between two collections of garbage: a simulation makes many, and hardly any in cycles."""
WORLDS_A_COLLECTION: Final = 8
"""Worlds between two collections of all garbage, of some 7 MB each."""
_WORLD: Final = "world"
_worlds: Final = itertools.count()


class VirtualTimeline:
    """`Timeline` of the harness: the loop's own time, which no fault touches."""

    __slots__ = ("_loop",)

    def __init__(self, loop: VirtualTimeLoop) -> None:
        self._loop = loop

    def now_ns(self) -> int:
        return self._loop.now_ns

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
        else:
            await self._loop.sleep_until(self._loop.now_ns + max(1, round(seconds * NANOSECONDS)))

    async def within(self, seconds: float, awaitable: Awaitable[T]) -> T:
        with Deadline(self._loop, self._loop.now_ns + round(seconds * NANOSECONDS)):
            return await awaitable


class NodeLog:
    """What a node said and what became of it, kept until there is a file to hold it."""

    __slots__ = ("_directory", "events", "lines")

    def __init__(self, directory: Path | None) -> None:
        """The directory is there already; without one, nothing is written."""
        self._directory = directory
        self.events: list[str] = []
        self.lines: list[str] = []

    def write(self) -> None:
        if self._directory is None:
            return
        for name, lines in ((EVENTS, self.events), (NODE_LOG, self.lines)):
            if lines:
                with (self._directory / name).open("a", encoding="utf-8") as file:
                    file.writelines(line + "\n" for line in lines)
                lines.clear()


@dataclasses.dataclass(slots=True, kw_only=True)
class _Node:
    """A machine of the system and the program that belongs on it."""

    machine: Machine
    spec: NodeSpec
    main: Main
    config: Mapping[str, Any]
    upgraded: PythonProgram | None
    """The other version of its program; None where there is none, or it runs already."""
    log: NodeLog
    ended_by_disk: bool = False
    """Its process ended because its disk failed, and nothing has struck or booted it since."""
    life_mended_in: int = 0
    """The number of its life in which a fault on its disk ended last."""

    def is_running(self) -> bool:
        return self.machine.process is not None and self.machine.process.alive

    def is_down_for_its_disk(self) -> bool:
        """Whether it is to be booted once its disk is mended."""
        return self.ended_by_disk and not self.is_running() and self.machine.powered


class SimulatedEnvironment:
    """`Environment` of the harness, and beyond it the knobs that only a simulator has."""

    name = "simulated"
    faults = frozenset(
        {"partition", "kill", "pause", "clock", "power", "upgrade"}
        | {impairment.kind for impairment in (*STREAM_IMPAIRMENTS, *HOST_IMPAIRMENTS)}
        | MEMBERSHIP
    )

    usage = None

    def __init__(
        self,
        seed: Seed,
        *,
        trace: Trace,
        loop: VirtualTimeLoop,
        regime: Regime | None = None,
        seam: str = DEFAULT_SEAM,
    ) -> None:
        self.regime = regime if regime is not None else Regime.drawn(seed)
        self.timeline = VirtualTimeline(loop)
        self.trace = trace
        self._loop = loop
        self._seed = seed
        self._exceptions = seam_exceptions(seam)
        self._network = SimulatedNetwork(loop, seed, self.regime, trace, self._exceptions)
        self._impaired_links = ImpairedLinks(self._network)
        self._impaired_nodes = ImpairedNodes(World(loop, self._boot, self._kill))
        self._rare = RarePaths(seed, self.regime)
        self._kernel = copy_context()
        self.moments = Moments(loop, self._kernel)
        self._nodes: dict[str, _Node] = {}
        self._clients: dict[str, SimulatedHost] = {}
        self._machines: dict[str, Machine] = {}
        self._panics: dict[str, str] = {}

    # Life of the nodes ----------------------------------------------------------------------------------------

    async def start(self, nodes: Sequence[NodeSpec], logs: Path | None) -> None:
        for spec in nodes:
            if spec.name in self._machines:
                raise HarnessError(f"two hosts are called {spec.name!r}")
            if not isinstance(spec.program, PythonProgram) or not isinstance(spec.upgraded, PythonProgram | None):
                raise HarnessError(f"the simulator runs Python programs alone; {spec.name} is a command")
            main = _resolve(spec.program.main)
            directory = None if logs is None else logs / spec.name
            if directory is not None:
                directory.mkdir(parents=True, exist_ok=True)
            log = NodeLog(directory)
            self._nodes[spec.name] = _Node(
                machine=self._machine(spec.name),
                spec=spec,
                main=main,
                config=spec.program.config,
                upgraded=spec.upgraded,
                log=log,
            )
        for spec in nodes:
            self._boot(self._nodes[spec.name])

    async def stop(self) -> None:
        """Stop cleanly what runs, within a bound; then write the logs. Idempotent."""
        stopping: list[asyncio.Task[Any]] = []
        for node in self._nodes.values():
            process = node.machine.process
            if process is not None and process.alive and process.root is not None:
                process.resume()
                process.root.cancel()
                stopping.append(process.root)
        if stopping:
            await asyncio.wait(stopping, timeout=CLEAN_STOP_S)
        for node in self._nodes.values():
            if node.is_running():
                self._end(node.machine, "killed: it did not stop in time", "killed")
            node.log.write()

    def client_host(self, name: str) -> SimulatedHost:
        if name in self._nodes:
            raise HarnessError(f"{name!r} is a node; a client needs a name of its own")
        if name not in self._clients:
            machine = self._machine(name)
            self._clients[name] = self._host(machine, self._process(machine), None)
        return self._clients[name]

    def panics(self) -> Mapping[str, str]:
        return dict(self._panics)

    def events(self) -> Mapping[str, Sequence[str]]:
        """Node -> the events it reported, as lines of JSON, where no logs are written; in order."""
        return {name: tuple(node.log.events) for name, node in self._nodes.items()}

    def heard(self, host: str) -> str:
        """The last event, when it sent, of the node that this host received from last; empty where it had none."""
        return self._machines[host].heard

    def reached(self) -> Mapping[str, int]:
        """How often each point was reached, by all hosts together."""
        total: Counter[str] = Counter()
        for (_, point), count in self.moments.counts().items():
            total[point] += count
        return dict(sorted(total.items()))

    def running(self) -> tuple[str, ...]:
        """The nodes whose process is alive, paused ones included."""
        return tuple(name for name, node in self._nodes.items() if node.is_running())

    # Verbs ----------------------------------------------------------------------------------------------------

    async def cut(self, links: Sequence[Link]) -> Effect:
        newly = [link for link in links if self._network.cut(*self._ends(link))]
        for link in newly:
            self.moments.saw(link.source, CUT, {"to": link.target})
        return self._effect("cut", [f"{link.source}→{link.target}" for link in newly], "no link that was open")

    async def heal(self, links: Sequence[Link] | None = None) -> Effect:
        if links is None:
            ends = [(wire.source, wire.target) for wire in self._network.cut_wires()]
        else:
            ends = [self._ends(link) for link in links]
        newly = [(source.name, target.name) for source, target in ends if self._network.heal(source, target)]
        for source, target in newly:
            self.moments.saw(source, HEALED, {"to": target})
        return self._effect("heal", [f"{source}→{target}" for source, target in newly], "no link that was cut")

    async def kill(self, nodes: Sequence[str]) -> Effect:
        named = self._named(nodes)
        killed = [node for node in named if node.is_running()]
        for node in named:
            self._kill(node)
        return self._effect("kill", [node.spec.name for node in killed], "no process that was running")

    async def power_off(self, nodes: Sequence[str]) -> Effect:
        happened: list[str] = []
        for node in self._named(nodes):
            machine = node.machine
            if not machine.powered:
                continue
            was_running = node.is_running()
            node.ended_by_disk = False
            if was_running and machine.process is not None:
                machine.process.die()
            machine.powered = False
            self._network.power_lost(machine)
            lost = machine.disk.lose_power()
            self._note(node, f"power lost: {lost}")
            if was_running:
                self.moments.saw(machine.name, ENDED, {"how": "power lost"})
            happened.append(f"{machine.name} ({lost})")
        return self._effect("power-off", happened, "no machine that had power")

    async def boot(self, nodes: Sequence[str]) -> Effect:
        booted = [node for node in self._named(nodes) if not node.is_running()]
        for node in booted:
            self._boot(node)
        return self._effect("boot", [node.spec.name for node in booted], "no node that was down")

    async def upgrade(self, nodes: Sequence[str]) -> Effect:
        upgraded = []
        for node in self._named(nodes):
            if node.upgraded is not None:
                upgraded.append(node.spec.name)
                node.main, node.config, node.upgraded = _resolve(node.upgraded.main), node.upgraded.config, None
                self._boot_after_clean_stop(node)
        return self._effect("upgrade", upgraded, "no node with another version to run")

    async def replace_program(self, node: str, program: Program) -> Effect:
        (named,) = self._named([node])
        if not isinstance(program, PythonProgram):
            raise HarnessError(f"the simulator runs Python programs alone; {node} cannot become a command")
        main = _resolve(program.main)
        is_another = (main, program.config) != (named.main, named.config)
        named.main, named.config = main, program.config
        return self._effect("replace-program", [node] if is_another else [], "the same program")

    def _boot_after_clean_stop(self, node: _Node) -> None:
        """At once where nothing runs. A node that is killed while it stops stays down until it is booted."""
        process = node.machine.process
        if process is None or not process.alive or process.root is None:
            self._boot(node)
            return

        def is_over() -> None:
            if process.alive:
                self._end(node.machine, "killed: it did not stop in time", "killed")
                self._boot(node)

        process.resume()
        # A boot enters the kernel's own context.
        process.root.add_done_callback(lambda _: self._boot(node), context=self._kernel.copy())
        process.root.cancel()
        self._loop.call_later(CLEAN_STOP_S, is_over, context=self._kernel.copy())

    async def pause(self, nodes: Sequence[str]) -> Effect:
        paused = [p for p in self._running(nodes) if not p.paused]
        for process in paused:
            process.pause()
            self.moments.saw(process.name, PAUSED, {})
        return self._effect("pause", [process.name for process in paused], "no process that was running")

    async def resume(self, nodes: Sequence[str]) -> Effect:
        resumed = [p for p in self._running(nodes) if p.paused]
        for process in resumed:
            process.resume()
            self.moments.saw(process.name, RESUMED, {})
        return self._effect("resume", [process.name for process in resumed], "no process that was paused")

    async def set_clock(self, node: str, *, offset_s: float, rate: float) -> Effect:
        clock = self._named([node])[0].machine.clock
        before_s = clock.error_s()
        was = clock.rate
        clock.set(offset_s=offset_s, rate=rate)
        after_s = clock.error_s()
        self.trace.event(self._loop.now_ns, _WORLD, "set-clock", f"{node} {offset_s} {rate}")
        return Effect(
            before_s != after_s or was != rate,
            f"{node}: {before_s:+.6f} s at rate {was} became {after_s:+.6f} s at rate {rate}",
        )

    async def impair_links(self, links: Sequence[Link], impairment: LinkImpairment) -> Effect:
        if not isinstance(impairment, STREAM_IMPAIRMENTS):
            raise HarnessError(
                f"there is no {impairment.kind} in the simulator, whose links carry streams of bytes; containers and "
                "machines have it"
            )
        words = self._impaired_links.impair([self._ends(link) for link in links], impairment)
        return self._effect(impairment.kind, [words] if words else [], "no link named")

    async def relieve_links(self, links: Sequence[Link], impairment: LinkImpairment) -> Effect:
        words = self._impaired_links.relieve([self._ends(link) for link in links], impairment)
        return self._effect(f"end of {impairment.kind}", [words] if words else [], "no link had it")

    async def impair(self, nodes: Sequence[str], impairment: NodeImpairment) -> Effect:
        if isinstance(impairment, KernelImpairment):
            raise HarnessError(
                f"there is no {impairment.kind} in the simulator, where a node is one process; containers and machines "
                f"have it, and '{INSTEAD[impairment.kind]}' strikes the whole node"
            )
        words = self._impaired_nodes.impair(self._named(nodes), impairment)
        return self._effect(impairment.kind, [words] if words else [], "there was nothing to impair")

    async def relieve(self, nodes: Sequence[str], impairment: NodeImpairment) -> Effect:
        named = self._named(nodes)
        words = "" if isinstance(impairment, KernelImpairment) else self._impaired_nodes.relieve(named, impairment)
        return self._effect(f"end of {impairment.kind}", [words] if words else [], "no node had it")

    # Beyond the protocol: what only a simulator can do ----------------------------------------------------------

    def disk_faults(self, node: str) -> DiskFaults:
        """The knobs of a node's disk."""
        return self._named([node])[0].machine.disk.faults

    def disk_of(self, node: str) -> DiskStore:
        """The disk of a node: to rot its bits, to look at what is on it."""
        return self._named([node])[0].machine.disk

    def end(self) -> None:
        """The simulation is over: nothing of any process runs again, and the trace is closed. Writes the logs."""
        for machine in self._machines.values():
            if machine.process is not None and machine.process.alive:
                machine.process.die()
        self.trace.close()
        for node in self._nodes.values():
            node.log.write()

    # Machines and processes -------------------------------------------------------------------------------------

    def _machine(self, name: str) -> Machine:
        regime = self.regime
        draw = self._seed.child("clock", name).stream()
        machine = Machine(
            name,
            MachineClock(self._loop, draw, regime.quartz_ppm, regime.timer_jitter_ms),
            DiskStore(name, self._loop, self._seed, regime, self.trace),
        )
        self._machines[name] = machine
        self._network.add(machine)
        return machine

    def _process(self, machine: Machine) -> Process:
        machine.lives += 1
        machine.process = process = self._kernel.run(Process, machine, self._loop, self._crashed)
        process.slow_down(machine.callback_cost_ns)
        return process

    def _host(self, machine: Machine, process: Process, record: Callable[[str], None] | None) -> SimulatedHost:
        return SimulatedHost(
            process,
            network=self._network,
            exceptions=self._exceptions,
            seed=self._seed,
            rare=self._rare,
            trace=self.trace,
            kernel=self._kernel,
            moments=self.moments,
            record=record,
        )

    def _kill(self, node: _Node) -> None:
        """A node that is killed after its disk had failed stays down: the end of that fault does not boot it."""
        node.ended_by_disk = False
        if node.is_running():
            self._end(node.machine, "killed", "killed")

    def _boot(self, node: _Node) -> None:
        machine = node.machine
        node.ended_by_disk = False
        process = self._process(machine)
        host = self._host(machine, process, node.log.events.append)
        self._note(node, f"boot {machine.lives}")
        self.moments.saw(machine.name, BOOTED, {})
        process.root = host.spawn(_run(node.main, host, node.config), "main")
        process.root.add_done_callback(lambda root: self._root_done(node, process, root), context=self._kernel)
        if not machine.powered:
            machine.powered = True
            self._network.world_changed()

    def _root_done(self, node: _Node, process: Process, root: asyncio.Task[Any]) -> None:
        if process.alive:  # a panic has ended it before this
            self._end(node.machine, "stopped cleanly" if root.cancelled() else "its program returned", "stopped")

    def _end(self, machine: Machine, words: str, how: str) -> None:
        process = machine.process
        assert process is not None
        process.die()
        self._network.process_gone(process)
        node = self._nodes.get(machine.name)
        if node is not None:
            self._note(node, words)
            self.moments.saw(machine.name, ENDED, {"how": how})

    def _crashed(self, process: Process, error: BaseException) -> None:
        if not process.alive:
            return
        if isinstance(error, HarnessError):
            self._loop.fail(error)
            return
        words = "".join(traceback.format_exception(error))
        node = self._nodes.get(process.name)
        if node is not None and _is_of_disk(error, self._exceptions):
            self._ended_by_disk(node, words)
            return
        self._panics[process.name] = words
        self.trace.event(self._loop.now_ns, process.name, "panic", f"{type(error).__name__}: {error}")
        if node is None:
            self._loop.fail(HarnessError(f"client {process.name} crashed:\n{words}"))
            return
        self._event(node, "panic")
        self._end(process.machine, f"panic:\n{words}", "panicked")

    def _ended_by_disk(self, node: _Node, words: str) -> None:
        """What a node does whose disk a fault lets fail is no panic: it was struck.

        The end of the fault boots it. One that was paused may hear of a failed call only after that end: as nothing
        else would boot it, it is booted at once. Damage found at a start would be found again: such a node stays down.
        """
        self._event(node, "stopped")
        self._end(node.machine, f"its disk made an end of it:\n{words}", "disk failed")
        node.ended_by_disk = True
        if not node.machine.disk.troubles and node.life_mended_in == node.machine.lives:
            self._loop.call_soon(self._boot_after_disk, node, context=self._kernel.copy())

    def _boot_after_disk(self, node: _Node) -> None:
        if node.is_down_for_its_disk():
            self._boot(node)

    def _event(self, node: _Node, event: str) -> None:
        """Of the kernel, in the node's name."""
        wall_ns = node.machine.clock.wall_ns()
        node.log.events.append(f'{{"time": {self._loop.now_ns}, "wall": {wall_ns}, "event": "{event}"}}')

    # Words ------------------------------------------------------------------------------------------------------

    def _named(self, nodes: Sequence[str]) -> list[_Node]:
        unknown = [name for name in nodes if name not in self._nodes]
        if unknown:
            raise HarnessError(f"no node is called {', '.join(unknown)}; there are {', '.join(self._nodes)}")
        return [self._nodes[name] for name in nodes]

    def _running(self, nodes: Sequence[str]) -> list[Process]:
        """Clients' hosts are named as nodes are."""
        clients = [name for name in nodes if name in self._clients]
        named = self._named([name for name in nodes if name not in clients])
        machines = [*(node.machine for node in named), *(self._machines[name] for name in clients)]
        processes = [machine.process for machine in machines]
        return [process for process in processes if process is not None and process.alive]

    def _ends(self, link: Link) -> tuple[Machine, Machine]:
        for name in (link.source, link.target):
            if name not in self._machines:
                raise HarnessError(f"no host is called {name}; there are {', '.join(self._machines)}")
        return self._machines[link.source], self._machines[link.target]

    def _effect(self, verb: str, done: list[str], nothing: str) -> Effect:
        words = ", ".join(done) if done else nothing
        self.trace.event(self._loop.now_ns, _WORLD, verb, words)
        return Effect(bool(done), f"{verb}: {words}")

    def _note(self, node: _Node, words: str) -> None:
        now_ns = self._loop.now_ns
        node.log.lines.append(f"{now_ns / NANOSECONDS:14.9f} {words}")
        self.trace.event(now_ns, node.spec.name, "process", words.partition("\n")[0])


def _is_of_disk(error: BaseException | None, exceptions: SeamExceptions) -> bool:
    """Whether a failing disk is behind this error, of a group behind all of it."""
    if isinstance(error, BaseExceptionGroup):
        return all(_is_of_disk(each, exceptions) for each in error.exceptions)
    if isinstance(error, exceptions.DiskError | exceptions.DiskFull):
        return True
    return error is not None and _is_of_disk(error.__cause__, exceptions)


async def _run(main: Main, host: SimulatedHost, config: Mapping[str, Any]) -> None:
    await main(host, config)


def _resolve(name: str) -> Main:
    """Import `package.module:function`."""
    module, _, function = name.partition(":")
    try:
        found: Main = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise HarnessError(f"no program {name!r}: {error}") from error
    return found


def run_simulation(
    main: Callable[[SimulatedEnvironment], Coroutine[Any, Any, T]],
    seed: Seed,
    trace: Trace,
    *,
    regime: Regime | None = None,
    seam: str = DEFAULT_SEAM,
) -> T:
    """Run a whole test in virtual time and return what `main` returns. The regime is the seed's own unless given.

    Raises Interrupted if it was asked to end meanwhile, after `main` has tidied up.
    """
    with _rare_collections():
        loop = VirtualTimeLoop()  # type: ignore[abstract]  # asyncio's base promises sockets; a simulation has none
        environment = SimulatedEnvironment(seed, trace=trace, loop=loop, regime=regime, seam=seam)
        with unwinding(loop.interrupt):
            try:
                return loop.run(main(environment))
            finally:
                environment.end()
                loop.close()


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Collect garbage of earlier worlds at intervals, and new garbage more rarely than Python does by default.

    What was there before the first world of the process, modules above all, is looked at no more: with it, a search
    would spend a twentieth of its time on collections. Later worlds freeze nothing: what they hold together with the
    one who runs them would stay for ever.
    """
    thresholds = gc.get_threshold()
    number = next(_worlds)
    if number % WORLDS_A_COLLECTION == 0:
        gc.collect()
    if number == 0:
        gc.freeze()
    gc.set_threshold(COLLECT_AFTER, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
