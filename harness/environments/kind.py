"""What an entry point of `stormproof.environments` names: a kind of environment, which can carry a whole test out.

Each has its own way to run a coroutine to its end: the simulator brings an event loop with virtual time, the real ones
use asyncio's.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from harness.environments.environment import Environment
from harness.errors import UsageError
from harness.record.scenario import DRAWN
from harness.seed import Seed
from harness.system import NodeSpec

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What a test is carried out with, beside its own coroutine."""

    nodes: Sequence[NodeSpec]
    """Those that the test will start, for what has to be made before: images."""
    seed: Seed
    world: str = DRAWN
    """The same as in `Scenario`."""
    say: Callable[[str], None]
    """Takes a line about what is going on."""
    recording: Path | None = None
    """Where to keep the whole event trace, in environments that have one."""
    inventory: str = ""
    """The file that names machines, in environments that take one; it was accepted by `require_placed`."""
    faults: frozenset[str] = frozenset()
    """The kinds of faults that the test may bring, for what has to be looked after before."""
    real_clocks: bool = False
    """Whether wrong clocks are those of whole machines, in environments that have such."""
    captures: bool = False
    """Whether nodes keep their packets, in environments that have packets."""


def refuse_inventory(environment: str, inventory: str) -> None:
    """`require_placed` of environments that make what nodes run on. Raises UsageError."""
    if inventory:
        raise UsageError(
            f"environment {environment!r} makes what its nodes run on; leave --inventory out, or say --environment ssh"
        )


class EnvironmentKind(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def faults(self) -> frozenset[str]:
        """As in `Environment`, known before there is one."""

    @property
    def has_moments(self) -> bool:
        """Whether its environments have `moments`, which faults need that strike when a point is reached."""

    @property
    def takes_inventory(self) -> bool:
        """Whether its nodes run on machines that somebody else made, which an inventory names."""

    @property
    def has_packets(self) -> bool:
        """Whether packets can be captured."""

    @property
    def reaches_clients(self) -> bool:
        """Whether single clients can be struck."""

    @property
    def programs(self) -> tuple[type, ...]:
        """The kinds of programs that nodes can have, of `harness.program`; a system with others is refused by name."""

    @property
    def about(self) -> str:
        """In a few words, for `stormproof list environments`."""

    def require_placed(self, nodes: Sequence[NodeSpec], inventory: str) -> None:
        """Raises UsageError where an inventory (empty: none was given) is of no use here, or is missing, or does not
        fit these nodes."""

    def run(
        self, main: Callable[[Environment], Coroutine[Any, Any, T]], setting: Setting
    ) -> tuple[T, Mapping[str, Any]]:
        """Make a fresh environment and run `main` in it to its end; returns with its result what it adds to the facts
        of the run, JSON-able: a trace's hash, names of images. Raises HarnessError, UsageError."""


@runtime_checkable
class LendsClocks(Protocol):
    """What a kind is besides whose machines have clocks that may be set."""

    def require_lent_clocks(self, nodes: Sequence[NodeSpec], inventory: str) -> None:
        """Raises UsageError where the inventory does not say of each node's machine that its own clock may be set."""
