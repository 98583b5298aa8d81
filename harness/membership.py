"""Nodes leave the cluster and are let in again, by the means of a system that is `harness.abilities.Elastic`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from harness.program import Program

SHRINK, WIPE = "shrink", "wipe"
"""Kinds of faults: a node is taken out and loses its disk; a node loses its disk while it belongs to the cluster."""
KINDS = frozenset((SHRINK, WIPE))

Start = Callable[[Program], Awaitable[None]]
"""Starts a node that is down, on what its disk holds, as this program from now on."""


@dataclass(frozen=True, slots=True)
class Membership:
    """The verbs of one system as it is set, as seen from one host."""

    shrink: Callable[[str], Awaitable[str]]
    grow: Callable[[str, Start], Awaitable[str]]
    most_out: int = 1
    """So many nodes may be out at once."""
