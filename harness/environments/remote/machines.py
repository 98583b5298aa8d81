"""What nodes run on: containers that are made for a run, or machines that are there already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from harness.environments.disk.disk_faults import DiskImpairment
from harness.environments.impairment import BitRot, Corruption
from harness.environments.remote.shell import Shell
from harness.system import NodeSpec


@dataclass(frozen=True, kw_only=True)
class Home:
    """Where what nodes leave comes home, on whose clock."""

    logs: Path
    """The run directory's `nodes/`."""
    start_ns: int
    """This machine's CLOCK_MONOTONIC when the harness's clock was 0."""


@dataclass(frozen=True, kw_only=True)
class NodeMachine:
    """One node's machine or container, ready for its agent."""

    shell: Shell
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables of the program, beside its own."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Node -> address, where the machine does not resolve the names of nodes by itself."""
    spared_ports: tuple[int, ...] = ()
    """Whatever is cut, these stay open: by them the machine is reached."""
    lends_clock: bool = False
    """Whether wrong clocks are that of the machine, which somebody has lent for this."""


class ByItself(Protocol):
    """A node that can limit its own program, where its machine is a whole one."""

    name: str

    def limit_processor(self, share: float) -> None: ...

    def supervisor(self) -> int:
        """The number that its program's supervisor has there; 0 where nothing runs."""

    def throttle(self, number: int, pids: Sequence[int], share: float) -> None: ...

    def unthrottle(self, number: int) -> int: ...

    def squeeze_memory(self, left_bytes: int) -> Squeezed: ...

    def release_memory(self) -> Squeezed: ...


@dataclass(frozen=True, kw_only=True)
class Squeezed:
    """What came of a limit of a program's memory."""

    names: tuple[str, ...] = ()
    """The names of its processes."""
    killed: int
    """How many the kernel has killed so far."""


@dataclass(frozen=True, kw_only=True)
class Lost:
    """What a loss of power took that had not been fsynced."""

    bytes: int
    names: int

    def __str__(self) -> str:
        return f"{self.bytes} unsynced bytes and {self.names} names lost"


class NodeDisk(Protocol):
    """Where a node keeps its data."""

    def lose_power(self) -> Lost:
        """What was not fsynced is gone in whole or in part. Nothing of the node runs."""

    def impair(self, impairment: DiskImpairment) -> None: ...

    def relieve(self, impairment: DiskImpairment) -> str:
        """Take it away again; which calls it let fail, in words."""

    def rot(self, how: BitRot | Corruption, spared: Sequence[str]) -> str:
        """Flip bits, but none of the `spared` files; which, in words, or nothing where there is nothing to flip."""

    def cut_short(self, files: int, draw: int, spared: Sequence[str]) -> str:
        """Cut the ends of so many files off; of which, in words. Nothing of the node runs."""

    def copy(self, name: str) -> int:
        """Keep a copy of everything under a name; of how many files and folders."""

    def put_back(self, name: str, spared: Sequence[str]) -> str:
        """What was copied under this name takes the place of everything, or nothing does where there is no such copy;
        how many bytes of how many. Nothing of the node runs."""


class Machines(Protocol):
    """Everything blocks, and raises HarnessError where it fails."""

    @property
    def name(self) -> str:
        """Of the environment."""

    @property
    def kind(self) -> str:
        """What they are, in the plural, for messages."""

    @property
    def own_faults(self) -> frozenset[str]:
        """Kinds that these can have beside those that all machines can."""

    def disk(self, node: str) -> NodeDisk:
        """Raises HarnessError where it is none whose faults are in our hands."""

    def take(self, nodes: Sequence[NodeSpec], home: Home) -> Mapping[str, str]:
        """Make sure of a machine for each node; returns the addresses at which nodes reach each other, by node."""

    def open(self, spec: NodeSpec) -> NodeMachine:
        """Make one node's machine ready. Called for several nodes at once."""

    def clock_ahead_ns(self, node: str, monotonic_ns: int) -> int:
        """How far the CLOCK_MONOTONIC of a node's machine, which showed so much just now, is ahead of this one's."""

    def reached(self) -> Mapping[str, str]:
        """`name:port` as nodes know it -> where this machine reaches it."""

    def limit_processor(self, node: ByItself, share: float) -> None:
        """Let a node's program have no more than so much of one processor, also after a restart; 0: what there is."""

    def throttle(self, node: ByItself, number: int, pids: Sequence[int], share: float) -> None:
        """Let these processes of a node together, and what they start, have no more than so much of one processor."""

    def unthrottle(self, node: ByItself, number: int) -> int:
        """End the limit of this number; how many processes were under it."""

    def squeeze_memory(self, node: ByItself, left_bytes: int) -> Squeezed:
        """Let a node's program take no more than so much memory from now on."""

    def release_memory(self, node: ByItself) -> Squeezed:
        """Let it take as much as there is again."""

    def require_kept(self) -> None:
        """Raises HarnessError where machines are this run's no more, so that what nodes do says nothing about them."""

    def release(self) -> None:
        """Leave nothing of this run on them; idempotent, and works after a start that failed half way."""
