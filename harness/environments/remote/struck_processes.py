"""Processes of a node that are struck by their name, while the others of that node go on.

Which ones they are is found out where the node runs, at that moment. A node that ends because of it has not panicked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from harness.environments.impairment import KilledProcesses, PausedProcesses, SlowedProcesses

T = TypeVar("T")
MOST_TOLD = 12
"""Names of processes in one line."""


@dataclass(frozen=True, order=True)
class OneProcess:
    """A process of a node, told from later ones of its number by when it started."""

    pid: int
    started: int
    name: str

    def __str__(self) -> str:
        return f"{self.pid} ({self.name})"


@dataclass(frozen=True, kw_only=True)
class Struck:
    """What came of striking processes in one node."""

    processes: tuple[OneProcess, ...]
    others: tuple[str, ...]
    """The names of all that ran there."""


class NodeOfProcesses(Protocol):
    """A node as faults of its processes see it. Everything blocks."""

    name: str

    def kill_processes(self, name: str) -> Struck: ...

    def pause_processes(self, name: str) -> Struck: ...

    def named_processes(self, name: str) -> Struck:
        """Nothing is done to them."""

    def resume_processes(self, processes: Sequence[OneProcess]) -> Sequence[OneProcess]:
        """Those of them that were there and go on."""

    def lacks_process(self, name: str) -> bool:
        """Whether its program runs, but no process of this name."""

    def begin_trouble(self) -> None:
        """From now on it is no panic if the program ends by itself."""

    def end_trouble(self) -> bool:
        """As it was; whether the program has ended meanwhile, and is to be booted."""


class OnNodes(Protocol):
    def __call__(self, names: Sequence[str], verb: Callable[[Any], T], /) -> Awaitable[dict[str, T]]:
        """Carry a verb out on several nodes (`NodeOfProcesses`) at once."""


@dataclass(frozen=True, kw_only=True)
class ProcessWorld:
    """What these impairments need of the environment; verbs are given several nodes and wait until they are done."""

    kill: Callable[[Sequence[str]], Awaitable[Any]]
    boot: Callable[[Sequence[str]], Awaitable[Any]]
    on_nodes: OnNodes
    throttle: Callable[[str, int, Sequence[int], float], Awaitable[None]]
    """Let processes of a node, given by number, and what they start have no more than so much of one processor; such a
    limit is known by a number of its own."""
    unthrottle: Callable[[Sequence[str], int], Awaitable[dict[str, int]]]
    """End a limit on these nodes; how many processes were under it, by node."""


class KillingProcesses:
    """Once; who is down after it, or lacks what was killed, is started again in the end."""

    def __init__(self, world: ProcessWorld, nodes: tuple[str, ...], impairment: KilledProcesses) -> None:
        self._world, self._nodes, self._name = world, nodes, impairment.name
        self._struck: tuple[str, ...] = ()

    async def begin(self) -> tuple[bool, str]:
        def strike(node: NodeOfProcesses) -> Struck:
            node.begin_trouble()
            return node.kill_processes(self._name)

        struck = await self._world.on_nodes(self._nodes, strike)
        self._struck = tuple(name for name, one in struck.items() if one.processes)
        return bool(self._struck), in_words("killed", self._name, struck)

    async def end(self) -> str:
        def look(node: NodeOfProcesses) -> str:
            has_ended = node.end_trouble()
            if node.name not in self._struck:
                return ""
            return "ended" if has_ended else "lacks it" if node.lacks_process(self._name) else "has it again"

        looked = await self._world.on_nodes(self._nodes, look)
        down = sorted(name for name, state in looked.items() if state in ("ended", "lacks it"))
        if down:
            await self._world.kill(down)
            await self._world.boot(down)
        return ", ".join(f"{name}: {'booted' if name in down else 'has it again'}" for name in self._struck)

    async def cancel(self) -> None:
        """Nothing runs of it."""


class PausingProcesses:
    """From SIGSTOP to SIGCONT, but for processes that another one of these holds."""

    def __init__(
        self,
        world: ProcessWorld,
        nodes: tuple[str, ...],
        impairment: PausedProcesses,
        held: Callable[[str], Container[OneProcess]],
    ) -> None:
        """`held`: node -> what others hold."""
        self._world, self._nodes, self._name, self._held = world, nodes, impairment.name, held
        self._paused: dict[str, tuple[OneProcess, ...]] = {}

    def paused(self, node: str) -> tuple[OneProcess, ...]:
        return self._paused.get(node, ())

    async def begin(self) -> tuple[bool, str]:
        struck = await self._world.on_nodes(self._nodes, lambda node: node.pause_processes(self._name))
        self._paused = {name: one.processes for name, one in struck.items() if one.processes}
        return bool(self._paused), in_words("paused", self._name, struck)

    async def end(self) -> str:
        def resume(node: NodeOfProcesses) -> Sequence[OneProcess]:
            held = self._held(node.name)
            return node.resume_processes([one for one in self.paused(node.name) if one not in held])

        resumed = await self._world.on_nodes(list(self._paused), resume)
        return ", ".join(f"{name}: {_listed(those) or 'none goes on'}" for name, those in resumed.items())

    async def cancel(self) -> None:
        """What is paused goes with the node."""


class SlowingProcesses:
    """Of several for one process, the last one counts."""

    def __init__(self, world: ProcessWorld, nodes: tuple[str, ...], impairment: SlowedProcesses, number: int) -> None:
        """`number`: no other one of the run has it."""
        self._world, self._nodes, self._name, self._number = world, nodes, impairment.name, number
        self._share = 1.0 / impairment.stretch
        self._struck: tuple[str, ...] = ()

    async def begin(self) -> tuple[bool, str]:
        struck = await self._world.on_nodes(self._nodes, lambda node: node.named_processes(self._name))
        self._struck = tuple(name for name, one in struck.items() if one.processes)
        for name in self._struck:
            pids = [process.pid for process in struck[name].processes]
            await self._world.throttle(name, self._number, pids, self._share)
        return bool(self._struck), in_words(f"no more than {self._share:.1%} of a processor for", self._name, struck)

    async def end(self) -> str:
        left = await self._world.unthrottle(self._struck, self._number)
        return ", ".join(f"{name}: {count} processes go on" for name, count in left.items())

    async def cancel(self) -> None:
        """The limit goes with the node."""


def in_words(done: str, name: str, struck: Mapping[str, Struck]) -> str:
    words = []
    for node, one in struck.items():
        if one.processes:
            words.append(f"{node}: {done} {_listed(one.processes)}")
        else:
            words.append(f"{node}: no process is called '{name}'; there run: {_few(one.others) or 'none at all'}")
    return ", ".join(words)


def _listed(processes: Sequence[OneProcess]) -> str:
    return _few([str(process) for process in processes])


def _few(words: Sequence[str]) -> str:
    return ", ".join(words[:MOST_TOLD]) + (f" and {len(words) - MOST_TOLD} more" if len(words) > MOST_TOLD else "")
