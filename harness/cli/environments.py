"""The worlds a scenario can be run in, as the command line composes them.

A world knows how to run a whole test inside it: the simulator brings its own event loop with virtual
time, the real ones use asyncio's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from harness.environments.environment import Environment
from harness.seed import Seed
from harness.trace import Trace

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class WorldReport:
    """What a world adds to the record of a run."""

    facts: dict[str, Any] = field(default_factory=dict)
    """JSON-able: the regime drawn, the trace's hash, …"""


class World(Protocol):
    name: str
    faults: frozenset[str]
    about: str

    def run(
        self, main: Callable[[Environment], Awaitable[T]], *, seed: Seed, recording: Path | None
    ) -> tuple[T, WorldReport]:
        """Make a fresh environment and run `main` in it to its end. Raises HarnessError, UsageError.

        `recording`: where to keep the whole event trace, in worlds that have one.
        """
