"""What nodes of CMQ are doing now, from what they say: roles for faults, an abstract state for searches.

The state is the same for clusters that differ only in which node is which, or in how high terms and indices have come.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from harness.watch import BOOTED, CUT, ENDED, HEALED, PAUSED, RESUMED
from system_under_test.cmq.config import group_name
from workloads.systems.cmq.settings import CmqSettings, roles_in

FARTHEST = 2
"""Terms that are older by more than this count as by this."""
LAGS = (0, 10, 100)
"""Who is more entries than one of these behind is in the next class of laggards."""

UNSEEN = frozenset(("confirmed", "raft_committed", "state"))
"""Events that come with each entry, and change nothing here."""

LIVES = {BOOTED: "up", RESUMED: "up", PAUSED: "paused"}


@dataclass(slots=True)
class _Part:
    """A node's in one group."""

    leads: bool = False
    term: int = 0
    begin: int = 0
    """Up to there it has a snapshot in the place of its log."""
    end: int = 0
    is_cutting: bool = False
    """Its log was cut, and it has not written since."""


@dataclass(slots=True)
class _Node:
    life: str = "down"
    """`up`, `paused`, or how it ended."""
    parts: dict[str, _Part] = field(default_factory=dict)


class CmqWatch:
    """`Watch` of the harness."""

    def __init__(self, settings: CmqSettings) -> None:
        self._settings = settings
        self._groups = {group_name(number): number for number in range(1, settings.groups + 1)}
        self._nodes = {name: _Node() for name in settings.names}
        self._cuts: dict[tuple[str, str], None] = {}
        self._members: dict[str, tuple[int, Mapping[str, str]]] = {}
        """Group -> the newest membership that any node goes by: of which entry it is, and what each node is there."""
        self._words: dict[str, str] = {}
        """Of groups in which nothing has happened since they were asked for."""
        self._state: tuple[str, ...] | None = None
        """Unless something has happened since it was asked for."""

    def saw(self, node: str, event: str, fields: Mapping[str, Any]) -> None:
        of = self._nodes.get(node)
        if of is None:
            return
        if event in UNSEEN:
            return
        self._state = None
        if event in (BOOTED, RESUMED, PAUSED, ENDED):
            self._words.clear()
            of.life = LIVES.get(event) or str(fields["how"])
            for part in of.parts.values():
                part.leads &= event != ENDED
        elif event == CUT:
            self._cuts[node, str(fields["to"])] = None
        elif event == HEALED:
            self._cuts.pop((node, str(fields["to"])), None)
        elif (name := fields.get("group", fields.get("log"))) in self._groups:
            self._words.pop(name, None)
            if event == "membership":
                self._saw_members(name, fields)
            else:
                self._saw_of_group(of.parts.setdefault(name, _Part()), event, fields)

    def _saw_members(self, group: str, fields: Mapping[str, Any]) -> None:
        if group not in self._members or fields["index"] >= self._members[group][0]:
            members = {**dict.fromkeys(fields["voters"], ""), **dict.fromkeys(fields["learners"], "learns, ")}
            self._members[group] = fields["index"], members

    def _saw_of_group(self, part: _Part, event: str, fields: Mapping[str, Any]) -> None:
        if event in ("leader", "follower"):
            part.leads, part.term = event == "leader", fields["term"]
        elif event == "written":
            part.end, part.is_cutting = fields["end"], False
        elif event == "deleted":
            part.begin, part.end = fields["to"], max(part.end, fields["to"])
        elif event == "truncated":
            part.end, part.is_cutting = fields["to"], True
        elif event == "recovered":
            part.leads, part.end, part.is_cutting = False, fields["end"], False

    def roles(self) -> Mapping[str, tuple[str, ...]]:
        """By the leader of each group's newest term."""
        leaders: dict[int, tuple[int, str]] = {}
        for name, node in self._nodes.items():
            for group, part in node.parts.items():
                if part.leads and node.life in ("up", "paused"):
                    number = self._groups[group]
                    leaders[number] = max(leaders.get(number, (0, "")), (part.term, name))
        return roles_in(self._settings, {group: name for group, (_, name) in leaders.items()})

    def state(self) -> tuple[str, ...]:
        if self._state is None:
            self._state = self._looked()
        return self._state

    def _looked(self) -> tuple[str, ...]:
        groups = sorted(self._words.get(group) or self._look_at(group) for group in self._groups)
        lives = sorted(node.life for node in self._nodes.values() if node.life != "up")
        cuts = {f"cut {self._kind(source)}>{self._kind(target)}" for source, target in self._cuts}
        return (*groups, *lives, *sorted(cuts))

    def _look_at(self, group: str) -> str:
        """At each node's part in it."""
        nodes = [(name, node.life, node.parts.get(group, _NO_PART)) for name, node in self._nodes.items()]
        newest, end, begin = 0, 0, 0
        for _, _, part in nodes:
            newest, end = max(newest, part.term), max(end, part.end)
            if part.leads:
                begin = max(begin, part.begin)
        _, members = self._members.get(group, (0, dict.fromkeys(self._nodes, "")))
        found = []
        for name, life, part in nodes:
            behind, lag = min(newest - part.term, FARTHEST), bisect_left(LAGS, end - part.end)
            is_short = part.end < begin
            found.append(_word(members.get(name, "out, "), life, part.leads, behind, lag, part.is_cutting, is_short))
        words = self._words[group] = " + ".join(sorted(found))
        return words

    def _kind(self, node: str) -> str:
        """How many groups it leads, as far as that makes a difference."""
        if node not in self._nodes:
            return "client"
        return "leader" if any(part.leads for part in self._nodes[node].parts.values()) else "follower"


_NO_PART = _Part()


@cache
def _word(member: str, life: str, leads: bool, behind: int, lag: int, is_cutting: bool, is_short: bool) -> str:
    """`behind`: so many terms; `lag`: its class; `is_short`: the leader has a snapshot where this log ends."""
    role = "leads" if leads else "follows"
    how = "" if life == "up" else f"({life})"
    cutting = " cut" if is_cutting else ""
    needs = " needs a snapshot" if is_short else ""
    return f"{member}{role}{how}-{behind} lag {lag}{cutting}{needs}"
