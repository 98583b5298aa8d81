"""What the nodes of BookKeeper are doing now, from what they say: roles for faults, an abstract state for searches.

The state is the same for clusters that differ only in which node of a group is which, or in numbers of ledgers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.watch import BOOTED, CUT, ENDED, HEALED, PAUSED, RESUMED
from workloads.systems.bookkeeper.nodes import PARTITION
from workloads.systems.bookkeeper.settings import METADATA_NODES, BookkeeperSettings

FIRST = PARTITION.format(0)


@dataclass(slots=True)
class _Node:
    kind: str
    life: str = "down"
    """`up`, `paused`, or how it ended."""
    role: str = ""


class BookkeeperWatch:
    """`Watch` of the harness."""

    def __init__(self, settings: BookkeeperSettings) -> None:
        kinds = {"metadata": METADATA_NODES, "bookie": settings.bookie_names, "broker": settings.broker_names}
        self._nodes = {name: _Node(kind) for kind, names in kinds.items() for name in names}
        self._cuts: dict[tuple[str, str], None] = {}
        self._owner: str | None = None
        self._leader: str | None = None
        self._auditor: str | None = None

    def saw(self, node: str, event: str, fields: Mapping[str, Any]) -> None:
        known = self._nodes.get(node)
        if known is None:
            return
        if event in (BOOTED, RESUMED):
            known.life = "up"
        elif event == PAUSED:
            known.life = "paused"
        elif event == ENDED:
            known.life, known.role = str(fields["how"]), ""
        elif event == CUT:
            self._cuts[node, str(fields["to"])] = None
        elif event == HEALED:
            self._cuts.pop((node, str(fields["to"])), None)
        elif event == "leader":
            self._leader, known.role = node, "leads"
        elif event == "follower":
            known.role = "follows"
        elif event == "owner":
            known.role = "owns"
            self._owner = node if fields["partition"] == FIRST else self._owner
        elif event == "no_owner":
            known.role = "waits"
        elif event == "auditor":
            self._auditor = node if fields["elected"] else self._auditor
        elif event in ("ledger_lost", "ledger_listed", "willing"):
            known.role = {"ledger_lost": "lost", "ledger_listed": "writes", "willing": fields.get("state", "")}[event]

    def roles(self) -> Mapping[str, tuple[str, ...]]:
        roles = {"owner": self._owner, "metadata-leader": self._leader, "auditor": self._auditor}
        return {role: (node,) for role, node in roles.items() if node is not None}

    def state(self) -> tuple[str, ...]:
        cuts = {f"cut {self._kind(source)}>{self._kind(target)}" for source, target in self._cuts}
        return (*sorted(_word(node) for node in self._nodes.values()), *sorted(cuts))

    def _kind(self, node: str) -> str:
        return self._nodes[node].kind if node in self._nodes else "client"


def _word(node: _Node) -> str:
    life = "" if node.life == "up" else f"({node.life})"
    return f"{node.kind}{life} {node.role}".strip()
