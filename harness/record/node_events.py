"""The nodes' own event logs as one table, typed: `node-events.parquet` beside the history.

A node writes JSON objects, one a line, in the order in which things happen to it. These events are understood; others
are passed over, and so is a line that was torn:

  event        fields                                                      what it reports
  identity     group, broker_id                                            to which replication group it belongs
  logs         logs                                                        after a start it has these logs alone
  log          log, unit                                                   it holds this log, counted in `entries`; the
                                                                           unit of any other is bytes
  role         group, role, master_epoch, broker_id, start_offset          it took a part (empty: none any more); a
                                                                           master writes from there
  elected      group, master, master_epoch, in_sync, unclean_allowed       it had this master elected; who was in sync
  leader       group, term, start                                          it leads those that elect, and writes from
                                                                           there, if these have a log
  follower     group, term                                                 it does no longer
  voted_in     group, term, by, needed, last                               whose votes it got; how many make a majority;
                                                                           term and index of the last entry it had
  raft_committed  group, term, index                                       as leader: all up to this entry is decided
  written      start, end, checksum                                        its log holds bytes with this checksum there
  confirmed    offset, master_epoch                                        all before this offset is safe; newest epoch
  truncated    to                                                          its log was cut
  recovered    end, entries                                                after a start its log ends there; where it
                                                                           may have holes, what it has: the first and
                                                                           the last entry of each run
  closed       end                                                         the log ends there for good, as it knows
  deleted      to, forced                                                  all before is no more; for want of room?
  set_aside    start, end                                                  it kept what its master lacks beside its log
  parted       start, end                                                 it keeps a log that is no part of its master's
  sync_state_set  members, epoch                                           who must hold what is acknowledged from here
  alter        proposed                                                    which set it wants instead; null: none

A replication group is the replicas of one log, which goes by its name. A node may hold many logs: all events of a log,
from `written` to `parted`, may name it (`log`), and where they do not, they are of the node's first group. `leader` and
`follower` without a group are of the group in which the system declares the node to vote, or else of one group without
a name. A node may die between an action and its report; what it reported before counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from harness.record.event_lines import node_events
from harness.record.run_directory import EVENTS

NODE_EVENTS = pa.schema(
    [
        pa.field("node", pa.string()),
        pa.field("sequence", pa.int64()),
        pa.field("time", pa.int64()),
        pa.field("event", pa.string()),
        pa.field("group", pa.string()),
        pa.field("role", pa.string()),
        pa.field("epoch", pa.int64()),
        pa.field("broker", pa.int64()),
        pa.field("start", pa.int64()),
        pa.field("end", pa.int64()),
        pa.field("checksum", pa.int64()),
        pa.field("members", pa.list_(pa.int64())),
        pa.field("allowed", pa.bool_()),
        pa.field("names", pa.list_(pa.string())),
    ]
)
"""`sequence` orders one node's events. `epoch`: a master epoch, or a term. `broker`: of a role the node's own id, of an
election the master's, null where there was none. `start`, `end`: offsets in the log's unit. `group`: of an event of a
log the log's name; `role`: of a `log` its unit."""

COLUMNS = {
    "identity": {"group": "group", "broker": "broker_id"},
    "log": {"group": "log", "role": "unit"},
    "role": {"group": "group", "role": "role", "epoch": "master_epoch", "broker": "broker_id", "start": "start_offset"},
    "elected": {
        "group": "group",
        "epoch": "master_epoch",
        "broker": "master",
        "members": "in_sync",
        "allowed": "unclean_allowed",
    },
    "leader": {"group": "group", "epoch": "term", "start": "start"},
    "follower": {"group": "group", "epoch": "term"},
    "voted_in": {"group": "group", "epoch": "term", "names": "by", "start": "needed", "members": "last"},
    "raft_committed": {"group": "group", "epoch": "term", "end": "index"},
    "written": {"group": "log", "start": "start", "end": "end", "checksum": "checksum"},
    "confirmed": {"group": "log", "end": "offset", "epoch": "master_epoch"},
    "truncated": {"group": "log", "end": "to"},
    "recovered": {"group": "log", "end": "end", "members": "entries"},
    "logs": {"names": "logs"},
    "closed": {"group": "log", "end": "end"},
    "deleted": {"group": "log", "end": "to", "allowed": "forced"},
    "set_aside": {"group": "log", "start": "start", "end": "end"},
    "parted": {"group": "log", "start": "start", "end": "end"},
    "mapped": {"start": "start", "end": "end"},
    "sync_state_set": {"members": "members", "epoch": "epoch"},
    "alter": {"members": "proposed"},
}
"""Event -> column -> its name among the event's fields."""

Events = Iterable[tuple[int, Mapping[str, Any]]]
"""Those of one node, in order, each with its number."""

VOTES = ("leader", "follower")
NO_VOTERS: Mapping[str, str] = {}
ROWS_AT_ONCE = 50_000


def write_node_events(nodes: Path, target: Path, voters: Mapping[str, str] = NO_VOTERS) -> Path | None:
    """The events of all nodes under `nodes` (`<node>/events.jsonl`); None where there are none.

    `voters`: node -> the group in which it votes.

    Raises OSError, and ValueError for a file of events that is none or has a line without an end.
    """
    rows = _rows(_written(nodes), voters)
    first = list(islice(rows, ROWS_AT_ONCE))
    if not first:
        return None
    partial = target.with_name(f".{target.name}.partial")
    with pq.ParquetWriter(partial, NODE_EVENTS, use_dictionary=["node", "event", "group", "role"]) as writer:
        while first:
            writer.write_table(pa.Table.from_pylist(first, schema=NODE_EVENTS))
            first = list(islice(rows, ROWS_AT_ONCE))
    partial.replace(target)
    return target


def node_events_table(events: Mapping[str, Iterable[Mapping[str, Any]]], voters: Mapping[str, str]) -> pa.Table | None:
    """The same table of events that no file holds, by node and in order; None where there are none."""
    rows = list(_rows(((node, enumerate(events[node])) for node in sorted(events)), voters))
    return pa.Table.from_pylist(rows, schema=NODE_EVENTS) if rows else None


@dataclass(frozen=True)
class TableOfReports:
    """`NodeReports` from the table of events: in a file, in memory, or none."""

    table: Path | pa.Table | None = None

    def of(self, *events: str) -> dict[str, list[dict[str, Any]]]:
        if self.table is None:
            return {}
        table = self.table if isinstance(self.table, pa.Table) else pq.read_table(self.table, memory_map=True)
        chosen = pc.and_(pc.is_in(table["event"].cast(pa.string()), pa.array(events)), table["time"].is_valid())
        found: dict[str, list[dict[str, Any]]] = {}
        for row in table.filter(chosen).to_pylist():
            found.setdefault(row["node"], []).append(row)
        return {node: sorted(found[node], key=lambda row: row["sequence"]) for node in sorted(found)}


def _written(nodes: Path) -> Iterator[tuple[str, Events]]:
    for path in sorted(nodes.glob(f"*/{EVENTS}")):
        yield path.parent.name, node_events(path)


def _rows(nodes: Iterable[tuple[str, Events]], voters: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    for node, events in nodes:
        for sequence, event in events:
            if isinstance(event.get("event"), str) and event["event"] in COLUMNS:
                group = {"group": voters[node]} if event["event"] in VOTES and node in voters else {}
                yield {"node": node, "sequence": sequence} | group | _row(event)


def _row(event: Mapping[str, Any]) -> dict[str, Any]:
    """What of it has the right type."""
    row = {"event": event["event"]}
    for column, name in (("time", "time"), *COLUMNS[event["event"]].items()):
        value = event.get(name)
        if _FITS[column](value):
            row[column] = value
    return row


def _is_integer(value: Any) -> bool:
    return type(value) is int and -(2**63) <= value < 2**63


def _fits(type_: pa.DataType) -> Callable[[Any], bool]:
    if pa.types.is_list(type_):
        is_item = _fits(type_.value_type)
        return lambda value: isinstance(value, list) and all(map(is_item, value))
    if pa.types.is_boolean(type_):
        return lambda value: isinstance(value, bool)
    return _is_integer if pa.types.is_integer(type_) else lambda value: isinstance(value, str)


_FITS = {field.name: _fits(field.type) for field in NODE_EVENTS}
