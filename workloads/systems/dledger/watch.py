"""What the members of a group are doing now, from what they say: roles for faults, an abstract state for searches.

The state is the same for groups that differ only in which member is which, or in how high terms and indices have come.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.watch import BOOTED, CUT, ENDED, HEALED, PAUSED, RESUMED
from workloads.systems.dledger.settings import GroupOnTrial, roles_in

FARTHEST = 2
"""Terms that are older by more than this count as by this."""
LAGS = (0, 10, 100)
"""Who is more entries than one of these behind is in the next class of laggards."""
ROLES = ("candidate", "follower", "leader")


@dataclass(slots=True)
class _Member:
    life: str = "down"
    """`up`, `paused`, or how it ended."""
    role: str = "none"
    term: int = 0
    end: int = 0
    is_cutting: bool = False
    """Its log was cut, and it has not written since."""


class DledgerWatch:
    """`Watch` of the harness."""

    def __init__(self, settings: GroupOnTrial) -> None:
        self._members = {name: _Member() for name in settings.names}
        self._settings = settings
        self._cuts: dict[tuple[str, str], None] = {}

    def saw(self, node: str, event: str, fields: Mapping[str, Any]) -> None:
        member = self._members.get(node)
        if member is None:
            return
        if event in (BOOTED, RESUMED):
            member.life = "up"
        elif event == PAUSED:
            member.life = "paused"
        elif event == ENDED:
            member.life, member.role = str(fields["how"]), "none"
        elif event == CUT:
            self._cuts[node, str(fields["to"])] = None
        elif event == HEALED:
            self._cuts.pop((node, str(fields["to"])), None)
        elif event in ROLES:
            member.role, member.term = event, fields["term"]
        elif event == "term":
            member.term = fields["term"]
        elif event == "written":
            member.end, member.is_cutting = fields["end"], False
        elif event == "truncated":
            member.end, member.is_cutting = fields["to"], True
        elif event == "recovered":
            member.role, member.end, member.is_cutting = "candidate", fields["end"], False

    def roles(self) -> Mapping[str, tuple[str, ...]]:
        """By the leader of the newest term."""
        leaders = [
            (member.term, name)
            for name, member in self._members.items()
            if member.role == "leader" and member.life in ("up", "paused")
        ]
        return roles_in(self._settings, max(leaders)[1] if leaders else None)

    def state(self) -> tuple[str, ...]:
        newest = max(member.term for member in self._members.values())
        end = max(member.end for member in self._members.values())
        words = sorted(_word(member, newest, end) for member in self._members.values())
        cuts = {f"cut {self._role(source)}>{self._role(target)}" for source, target in self._cuts}
        return (*words, *sorted(cuts))

    def _role(self, node: str) -> str:
        return self._members[node].role if node in self._members else "client"


def _word(member: _Member, newest: int, end: int) -> str:
    life = "" if member.life == "up" else f"({member.life})"
    lag = sum(end - member.end > least for least in LAGS)
    cutting = " cut" if member.is_cutting else ""
    return f"{member.role}{life}-{min(newest - member.term, FARTHEST)} lag {lag}{cutting}"
