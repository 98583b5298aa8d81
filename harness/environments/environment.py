"""The protocol of an environment: the verbs with which faults act on nodes and links."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from harness.environments.impairment import LinkImpairment, NodeImpairment
from harness.program import Program
from harness.system import NodeSpec

T = TypeVar("T")


@dataclass(frozen=True, slots=True, order=True)
class Link:
    """One direction: bytes from `source` to `target`."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Effect:
    """What a verb really did, read back after it. A fault that changed nothing is counted as such."""

    happened: bool
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a node's program holds of its machine: resident memory, and open files with sockets among them."""

    memory_bytes: int
    handles: int


class Timeline(Protocol):
    """The harness's clock: virtual in the simulator, monotonic elsewhere."""

    def now_ns(self) -> int:
        """Nanoseconds since the test began."""

    async def sleep(self, seconds: float) -> None: ...

    async def within(self, seconds: float, awaitable: Awaitable[T]) -> T:
        """Await with a bound; raises the built-in TimeoutError and cancels."""


class Moments(Protocol):
    """What an environment offers in which everything happens in one place: to see it, and to act, at that moment.

    Callbacks are called synchronously; what they raise ends the test as a failure of the harness.
    """

    watch: Callable[[str, str, Mapping[str, object]], None] | None
    """Called as `Watch.saw` for every event of a node; to be set before nodes are started."""
    values: Callable[[str, str, Mapping[str, int]], None] | None
    """Called as `Invariants.told` wherever a node reaches a point and says what it holds there; as `watch`."""

    def on_point(self, callback: Callable[[str, str], None]) -> None:
        """Call it with node and point each time a node reaches a point, within that node's step.

        Verbs that it calls take effect at once: a node that is killed does nothing more, not the rest of its step.
        """

    def after_step(self, callback: Callable[[], None]) -> None:
        """Call it when the step that runs now is over, before anything else happens."""

    def at(self, time_ns: int, callback: Callable[[], None]) -> None:
        """Call it at a moment of the timeline."""

    def counts(self) -> Mapping[tuple[str, str], int]:
        """(host, point) -> how often it was reached."""


class Environment(Protocol):
    """Where nodes run. All verbs are idempotent, but for impairments, which add up; each returns its effect and raises
    HarnessError where the environment itself failed."""

    @property
    def name(self) -> str: ...

    @property
    def faults(self) -> frozenset[str]:
        """Kinds it can apply: `partition`, `kill`, `pause`, `clock`, `power`, `upgrade`, those of impairments, and
        where disks can be lost those of `harness.membership`. Others are refused by name."""

    @property
    def timeline(self) -> Timeline: ...

    @property
    def moments(self) -> Moments | None:
        """None where nobody can see what happens at the moment it does."""

    @property
    def usage(self) -> Callable[[], Awaitable[Mapping[str, Usage]]] | None:
        """Asks what each node's program holds now, of those that are up; None where nothing can be measured."""

    async def start(self, nodes: Sequence[NodeSpec], logs: Path | None) -> None:
        """Start all nodes; `logs` is the run directory's `nodes/`, one folder a node is made in it. None: no file is to
        be left, which the simulator alone can do."""

    async def stop(self) -> None:
        """End all nodes, bring their logs home, leave nothing behind. Works after a failed start, too."""

    def client_host(self, name: str) -> Any:
        """A `Host` for a client called `name`, outside all partitions unless a fault names it."""

    def panics(self) -> Mapping[str, str]:
        """Nodes that died of their own accord, with the last words of each."""

    async def cut(self, links: Sequence[Link]) -> Effect:
        """Stop packets on these directions, existing connections included; adds to what is cut already."""

    async def heal(self, links: Sequence[Link] | None = None) -> Effect:
        """Let packets through again on these directions (None: on all)."""

    async def kill(self, nodes: Sequence[str]) -> Effect:
        """SIGKILL: written bytes stay, nothing runs any more."""

    async def power_off(self, nodes: Sequence[str]) -> Effect:
        """As kill, and bytes not fsynced are gone in whole or in part; connections are not even reset."""

    async def boot(self, nodes: Sequence[str]) -> Effect:
        """Start nodes that are down again on their own disks."""

    async def upgrade(self, nodes: Sequence[str]) -> Effect:
        """End these nodes cleanly, and start them on their own disks with the programs that their specs name as
        upgraded; those that are down as well. It may return while they are still ending. Nothing happens to one that
        has no such program, or runs it already."""

    async def replace_program(self, node: str, program: Program) -> Effect:
        """What the node runs from its next boot on; until then all goes on as it is. Raises HarnessError for a program
        that needs another image than the one before."""

    async def pause(self, nodes: Sequence[str]) -> Effect:
        """SIGSTOP. Links, pauses and their ends may name clients' hosts as well, where the kind `reaches_clients`."""

    async def resume(self, nodes: Sequence[str]) -> Effect: ...

    async def set_clock(self, node: str, *, offset_s: float, rate: float) -> Effect:
        """Wall clock of one node: true time * rate from now on, plus offset. (0, 1) is the true time."""

    async def impair_links(self, links: Sequence[Link], impairment: LinkImpairment) -> Effect:
        """One more impairment on these directions, connections that exist included, beside whatever else is wrong."""

    async def relieve_links(self, links: Sequence[Link], impairment: LinkImpairment) -> Effect:
        """Take one equal impairment away from these directions; others stay. No effect where there is none."""

    async def impair(self, nodes: Sequence[str], impairment: NodeImpairment) -> Effect:
        """One more impairment of these nodes' disks, processes or clocks, beside whatever else is wrong with them.

        A node that ends itself because its disk fails has not panicked.
        """

    async def relieve(self, nodes: Sequence[str], impairment: NodeImpairment) -> Effect:
        """Take one equal impairment away from just these nodes; boot those of them that it took down."""
