"""What nodes of Apache RocketMQ log, as the events that our own nodes write: roles, votes, elections, sets, cuts.

It knows the lines of releases 5.1.0 to 5.4.0, of brokers (ReplicasManager, AutoSwitchHAService, AutoSwitchHAClient) and
of controllers (DLedgerLeaderElector, DLedgerController, JRaftControllerStateMachine), in whichever file they stand.

An election counts from when the controllers have applied it: what a leader has only proposed may never hold, and its
epoch is given to another. What is in sync at an election is not logged beside it, so `in_sync` stays empty, and
whether a master was out of sync is not judged. Release 5.1.0 logs members of a SyncStateSet and who is elected by
addresses: these members are left out, and its elections are. Where a log ends, what a node did last may be missing: a
process that is killed has lines in memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta, timezone
from typing import Any

from harness.dated_lines import dated_lines
from workloads.systems.dledger.elector_lines import FOLLOWS, LEADS, STANDS

Fields = dict[str, Any]
Named = tuple[str, Fields]
"""An event's name, and its fields."""

ZONE = timezone(timedelta(hours=8))
"""Wherever a node runs: every pattern of RocketMQ's log files says GMT+8."""


@dataclass(frozen=True, slots=True)
class Logged:
    wall_ns: int
    event: str
    fields: Mapping[str, Any]


def logged_events(logs: Mapping[str, Sequence[str]], group: str) -> list[Logged]:
    """Of all log files of one node, by time; what is not understood is passed over.

    `group`: the replication group of a broker, empty for another node.
    """
    found: list[Logged] = []
    reader = _Reader(group=group)
    for wall_ns, line in dated_lines(logs, ZONE):
        found += [Logged(wall_ns, name, fields) for name, fields in reader.read(line)]
    return found


@dataclass
class _Reader:
    """Of the lines of one node, over all its lives."""

    group: str
    broker_id: int | None = None
    proposed: Named | None = None
    """An election or a set that a leader among controllers has proposed and not yet applied."""
    needless: str = ""
    """The offset to which a log need not be cut, for it ends there."""
    _handlers: Sequence[tuple[re.Pattern[str], Callable[[_Reader, re.Match[str]], Iterable[Named]]]] = field(
        init=False, default_factory=lambda: LINES
    )

    def read(self, line: str) -> Iterable[Named]:
        for pattern, handle in self._handlers:
            found = pattern.search(line)
            if found is not None:
                return handle(self, found)
        return ()

    # Brokers ----------------------------------------------------------------------------------------------------

    def identity(self, found: re.Match[str]) -> Iterator[Named]:
        broker_id = int(found["id"])
        if self.group and broker_id != self.broker_id:
            self.broker_id = broker_id
            yield "identity", {"group": self.group, "broker_id": broker_id}

    def master(self, found: re.Match[str]) -> Iterator[Named]:
        yield self._role("master", int(found["epoch"]), int(found["start"]))

    def slave(self, found: re.Match[str]) -> Iterator[Named]:
        yield self._role("slave", int(found["epoch"]), None)

    def _role(self, role: str, epoch: int, start: int | None) -> Named:
        fields = {"group": self.group, "role": role, "master_epoch": epoch, "broker_id": self.broker_id}
        return "role", {**fields, "start_offset": start}

    def own_set(self, found: re.Match[str]) -> Iterator[Named]:
        members = _members(found["members"])
        yield "sync_state_set", {"group": self.group, **({} if members is None else {"members": members})}

    def need_not_cut(self, found: re.Match[str]) -> Iterator[Named]:
        self.needless = found["to"]
        return iter(())

    def cut(self, found: re.Match[str]) -> Iterator[Named]:
        if found["to"] != self.needless:
            yield "truncated", {"to": int(found["to"])}
        self.needless = ""

    # Controllers ------------------------------------------------------------------------------------------------

    def leads(self, found: re.Match[str]) -> Iterator[Named]:
        self.proposed = None
        yield "leader", {"term": int(found["term"])}

    def follows(self, found: re.Match[str]) -> Iterator[Named]:
        self.proposed = None
        yield "follower", {"term": int(found["term"])}

    def stands(self, found: re.Match[str]) -> Iterator[Named]:
        """For election; the term is the one that it leaves."""
        self.proposed = None
        yield "candidate", {"term": int(found["term"])}

    def proposes_master(self, found: re.Match[str]) -> Iterator[Named]:
        self.proposed = _elected(found)
        return iter(())

    def proposes_set(self, found: re.Match[str]) -> Iterator[Named]:
        members = _members(found["members"])
        self.proposed = _agreed(found, members)
        return iter(())

    def applies(self, found: re.Match[str]) -> Iterator[Named]:
        if self.proposed is not None:
            yield self.proposed
        self.proposed = None

    def gives_up(self, found: re.Match[str]) -> Iterator[Named]:
        self.proposed = None
        return iter(())

    def applied_master(self, found: re.Match[str]) -> Iterator[Named]:
        yield _elected(found)


def _elected(found: re.Match[str]) -> Named:
    fields = {"group": found["group"], "master": int(found["id"]), "master_epoch": int(found["epoch"])}
    return "elected", {**fields, "in_sync": [], "unclean_allowed": None}


def _agreed(found: re.Match[str], members: list[int] | None) -> Named:
    fields: Fields = {"group": found["group"], "sync_state_set_epoch": int(found["epoch"])}
    return "set_agreed", {**fields, **({} if members is None else {"members": members})}


def _members(words: str) -> list[int] | None:
    """None for addresses."""
    names = [name.strip() for name in words.split(",") if name.strip()]
    return sorted(map(int, names)) if all(name.isascii() and name.isdigit() for name in names) else None


_ELECT = (
    r"ElectMasterEvent\{newMasterElected=true, brokerName='(?P<group>[^']*)', newMasterBrokerId=(?P<id>\d+)\}.*?"
    r"\bmasterEpoch=(?P<epoch>\d+)"
)
_ALTER = (
    r"AlterSyncStateSetEvent\{brokerName='(?P<group>[^']*)', newSyncStateSet=\[(?P<members>[^\]]*)\]\}.*?"
    r"newSyncStateSetEpoch=(?P<epoch>\d+)"
)
LINES: Sequence[tuple[re.Pattern[str], Callable[[_Reader, re.Match[str]], Iterable[Named]]]] = tuple(
    (re.compile(pattern), handle)
    for pattern, handle in (
        (
            r"Change ha to master success, (?:last role is master, )?newMasterEpoch:(?P<epoch>\d+), "
            r"startOffset:(?P<start>\d+)",
            _Reader.master,
        ),
        (
            r"Change ha to slave success, (?:master doesn't change, )?newMasterAddress:\S*, "
            r"newMasterEpoch:(?P<epoch>\d+)",
            _Reader.slave,
        ),
        (r"Register state change to: \w+, metadata: BrokerMetadata\{.*\bbrokerId=(?P<id>\d+)", _Reader.identity),
        (r"Change broker \[id:(?P<id>\d+)\]\[address:", _Reader.identity),
        (r"Begin to change to slave, .*?\bbrokerId=(?P<id>\d+)", _Reader.identity),
        (r"S(?:yncStateSet|ync state set) changed from \[[^\]]*\] to \[(?P<members>[^\]]*)\]", _Reader.own_set),
        (r"no need to truncate files, truncate offset is (?P<to>\d+)", _Reader.need_not_cut),
        (r"Truncate slave log to (?P<to>\d+) success", _Reader.cut),
        (r"Truncate commitLog to (?P<to>\d+)$", _Reader.cut),
        (LEADS, _Reader.leads),
        (FOLLOWS, _Reader.follows),
        (STANDS, _Reader.stands),
        (r"node \S+ Start Leader, term=(?P<term>\d+)", _Reader.leads),
        (r"Start following, ctx=.*\bterm=(?P<term>\d+)", _Reader.follows),
        (r"elect master, request :.*" + _ELECT, _Reader.applied_master),
        (r"Event queue run event \w+, get the result .*" + _ELECT, _Reader.proposes_master),
        (r"Event queue run event \w+, get the result .*" + _ALTER, _Reader.proposes_set),
        (r"Apply \d+ events index from \d+ to \d+ on controller", _Reader.applies),
        (r"Failed to append event to DLedger|Error happen when handle event", _Reader.gives_up),
    )
)
