"""Nodes leave the cluster and are let in again, by the means of a system that has such (`harness.system.Elastic`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

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


def membership_of(system: Any, settings: Any, host: Any, nodes: Mapping[str, Any]) -> Membership | None:
    """`nodes`: name -> NodeSpec. None where none of the system's nodes may leave, as it is set."""
    if not system.cluster(settings).elastic:
        return None

    async def grow(node: str, start: Start) -> str:
        words: str = await system.grow(settings, host, nodes[node], start)
        return words

    return Membership(partial(system.shrink, settings, host), grow)
