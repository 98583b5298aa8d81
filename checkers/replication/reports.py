"""One node's events, in its own order: reports that others may contradict, and findings on the node alone.

A node may hold several logs. Each is a stack of pieces: it grows at its end and is cut there. A piece is confirmed once
the node reports that everything before the piece's end is; it stands until the log is cut below that. Pieces that have
expired at the log's beginning still stand until the log is cut at that beginning, because a node with nothing left may
begin another log there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.api.excuses import NO_BOUNDS, NO_EXCUSES, Excuses
from checkers.api.findings import FINDINGS, Example, Findings
from checkers.api.verdict import EXAMPLES
from checkers.kernels.columns import NONE, Bool, Int32, Int64, codes, integers, run_starts, whole
from checkers.kernels.hashing import bucket_of, mixed, mixed_column
from harness.compiled import compiled

EVENTS = (
    *("role", "elected", "leader", "follower", "written", "confirmed", "truncated", "recovered", "deleted"),
    *("identity", "log"),
)
ROLE, ELECTED, LEADER, FOLLOWER, WRITTEN, CONFIRMED, TRUNCATED, RECOVERED, DELETED, IDENTITY, LOG = range(11)
VOTES = (LEADER, FOLLOWER)
OF_A_LOG = (WRITTEN, CONFIRMED, TRUNCATED, RECOVERED, DELETED)

REPORTS = pa.schema(
    [
        *FINDINGS,
        pa.field("bucket", pa.int32()),
        pa.field("kind", pa.int8()),
        pa.field("group", pa.string()),
        pa.field("node", pa.string()),
        pa.field("time", pa.int64()),
        pa.field("epoch", pa.int64()),
        pa.field("member", pa.int64()),
        pa.field("start", pa.int64()),
        pa.field("end", pa.int64()),
        pa.field("checksum", pa.int64()),
        pa.field("stands", pa.bool_()),
        pa.field("in_entries", pa.bool_()),
    ]
)
"""A finding, or (where `name` is null) a report. By `kind`: MASTER of `epoch`, writing from `start` on; ELECTION:
`member` became master of `epoch` (null: nobody did); LEADS the electors of `group` ("" where they have no name) in term
`epoch`, writing from `start` on if they have a log; CONFIRMED_BELOW: all before `end` is confirmed, and `epoch` the
newest; HOLDS: the confirmed piece [`start`, `end`) has this `checksum`, and had until the end of the record if it
`stands`. Offsets count bytes, or entries."""

MASTER, ELECTION, LEADS, CONFIRMED_BELOW, HOLDS = range(5)


def reports_of(events: pa.Table, *, buckets: int, excuses: Excuses = NO_EXCUSES) -> pa.Table:
    """Kernel over all events of one node."""
    log = _NodeLog.of(events)
    findings = Findings()
    _report_epochs(log, findings, excuses)
    _report_elections(log, findings)
    found = findings.table()
    padded = [pa.nulls(found.num_rows, REPORTS.field(name).type) for name in REPORTS.names[len(FINDINGS) :]]
    # Findings pass through the next grouping untouched; any bucket will do.
    padded[0] = pa.array(np.zeros(found.num_rows, dtype=np.int32))
    reported = pa.Table.from_arrays([*found.columns, *padded], schema=REPORTS)
    return pa.concat_tables([reported, _reports(log, buckets)]).combine_chunks()


@dataclass(frozen=True, kw_only=True)
class _NodeLog:
    """The events of all lives of one node, one after the other; arrays of equal length."""

    table: pa.Table
    node: str
    group: pa.Array
    """By event: its group. If it names none, it is the node's first, or empty. A log of an empty name is compared with
    none."""
    group_number: Int32
    """By event: a number for its group."""
    in_entries: tuple[str, ...]
    """Names of logs that are not counted in bytes."""
    event: Int32
    time: Int64
    epoch: Int64
    member: Int64
    start: Int64
    end: Int64

    @classmethod
    def of(cls, events: pa.Table) -> _NodeLog:
        events = events.take(pa.array(np.argsort(events["sequence"].to_numpy(), kind="stable")))
        events = events.rename_columns(["member" if name == "broker" else name for name in events.column_names])
        event = codes(events["event"], EVENTS)
        named = whole(events["group"].cast(pa.string()))
        own = named.filter(pa.array((event == ROLE) | (event == IDENTITY))).to_pylist()
        own_group = next((group for group in own if group), "")
        unnamed = pc.if_else(pa.array(np.isin(event, VOTES)), "", own_group)
        group = pc.coalesce(named, unnamed)
        in_entries = pa.array((event == LOG) & (codes(events["role"], ("entries",)) == 0))
        return cls(
            table=events,
            node=events["node"][0].as_py(),
            group=group,
            group_number=pc.dictionary_encode(group).indices.to_numpy(),
            in_entries=tuple(sorted(set(group.filter(in_entries).to_pylist()))),
            event=event,
            time=integers(events["time"]),
            epoch=integers(events["epoch"]),
            member=integers(events["member"]),
            start=integers(events["start"]),
            end=integers(events["end"]),
        )

    @property
    def is_named(self) -> Bool:
        """By event: whether its group has a name."""
        is_named: Bool = pc.not_equal(self.group, "").to_numpy(zero_copy_only=False)
        return is_named

    def at(self, row: int) -> str:
        return f"{self.time[row] / 1e9:.3f} s"

    def example(self, row: int, because: str, **details: object) -> Example:
        details = {"node": self.node, "time_ns": int(self.time[row]), **details}
        return Example(key=None, operations=(), tie=(int(self.time[row]), row), because=because, details=details)


def _report_epochs(log: _NodeLog, findings: Findings, excuses: Excuses) -> None:
    """Reports epochs and terms that went back, of those that a node acted under in a group; they must not even do so at
    a restart."""
    back: list[tuple[int, int]] = []
    for rows in (*_acted(log, (ROLE,)), *_acted(log, (LEADER, FOLLOWER))):
        highest = np.maximum.accumulate(log.epoch[rows])
        for position in np.flatnonzero(log.epoch[rows] < highest).tolist():
            before = np.flatnonzero(log.epoch[rows[:position]] == highest[position])[0]
            back.append((int(rows[position]), int(rows[before])))
    back.sort()
    at_ns = log.time[[after for after, _ in back]] if back else NO_BOUNDS
    for excuse, some in excuses.split("epoch-back", at_ns, at_ns, [(log.node,)] * len(back)):
        examples = [
            log.example(
                after,
                f"{log.node} acted under epoch {log.epoch[after]} at {log.at(after)}, although it had acted under "
                f"epoch {log.epoch[before]} at {log.at(before)}",
                epochs=[int(log.epoch[before]), int(log.epoch[after])],
            )
            for after, before in (back[number] for number in some.tolist()[:EXAMPLES])
        ]
        findings.add("epoch-back", len(some), examples, excuse)


def _acted(log: _NodeLog, kinds: tuple[int, ...]) -> Iterator[Int64]:
    """For each group in which the node acted: the events of these kinds, in order."""
    rows = np.flatnonzero(np.isin(log.event, kinds) & (log.epoch != NONE))
    named = np.array(log.group.take(pa.array(rows)).to_pylist())
    for group in sorted(set(named)):
        yield rows[named == group]


def _report_elections(log: _NodeLog, findings: Findings) -> None:
    """Reports elections of members that were not in sync, unless unclean elections are allowed. Before the first
    election no member is in sync."""
    rows = np.flatnonzero((log.event == ELECTED) & (log.member != NONE))
    columns = (of.take(pa.array(rows)).to_pylist() for of in (log.table["members"], log.table["allowed"], log.group))
    outside = [
        (row, in_sync, group)
        for row, in_sync, allowed, group in zip(rows.tolist(), *columns, strict=True)
        if in_sync and not allowed and int(log.member[row]) not in in_sync
    ]
    examples = [
        log.example(
            row,
            f"{log.node} had member {log.member[row]} elected master of {group} under epoch {log.epoch[row]} at "
            f"{log.at(row)}, although only {in_sync} were in sync and unclean elections are not allowed",
            epoch=int(log.epoch[row]),
            master=int(log.member[row]),
            in_sync=in_sync,
        )
        for row, in_sync, group in outside[:EXAMPLES]
    ]
    findings.add("unclean-election", len(outside), examples)


def _reports(log: _NodeLog, buckets: int) -> pa.Table:
    known = log.epoch != NONE
    is_master = codes(log.table["role"], ("master",)) == 0
    rows = {
        MASTER: np.flatnonzero((log.event == ROLE) & is_master & known),
        ELECTION: np.flatnonzero((log.event == ELECTED) & known),
        LEADS: np.flatnonzero((log.event == LEADER) & known),
        CONFIRMED_BELOW: _highest_confirmed(log),
    }
    rows[HOLDS], stands = _confirmed_pieces_of_each_log(log)
    row = np.concatenate(list(rows.values()))
    kind = np.repeat(list(rows), [len(of_kind) for of_kind in rows.values()]).astype(np.int8)
    group = log.group.take(pa.array(row))
    # A group has few reports, except about what it holds.
    place = np.where(kind == HOLDS, log.start[row], -1)
    column = {
        "bucket": bucket_of(mixed_column(group, mixed(place)), buckets),
        "kind": kind,
        "group": group,
        "node": [log.node] * len(row),
        "stands": np.concatenate((np.zeros(len(row) - len(stands), dtype=np.bool_), stands)),
        "in_entries": pc.is_in(group, pa.array(log.in_entries, pa.string())),
    }
    reported = {
        name: log.table[name].take(pa.array(row)) for name in ("time", "epoch", "member", "start", "end", "checksum")
    }
    return pa.Table.from_arrays(
        [
            pa.array(column[field.name], field.type)
            if field.name in column
            else reported[field.name].combine_chunks()
            if field.name in reported
            else pa.nulls(len(row), field.type)
            for field in REPORTS
        ],
        schema=REPORTS,
    )


def _highest_confirmed(log: _NodeLog) -> Int64:
    """The first event with the highest confirmed offset of each epoch in each log."""
    rows = np.flatnonzero((log.event == CONFIRMED) & (log.epoch != NONE) & (log.end != NONE) & log.is_named)
    order = rows[np.lexsort((rows, -log.end[rows], log.epoch[rows], log.group_number[rows]))]
    return order[run_starts(log.group_number[order], log.epoch[order])]


def _confirmed_pieces_of_each_log(log: _NodeLog) -> tuple[Int64, Bool]:
    """As `confirmed_pieces`, for one log after the other."""
    rows = np.flatnonzero(np.isin(log.event, OF_A_LOG) & log.is_named)
    rows = rows[np.argsort(log.group_number[rows], kind="stable")]
    found = [
        (of_one[pieces], stands)
        for of_one in np.split(rows, np.flatnonzero(np.diff(log.group_number[rows])) + 1)
        for pieces, stands in [confirmed_pieces(log.event[of_one], log.end[of_one])]
    ]
    pieces, stands = zip(*found, strict=True)
    return np.concatenate(pieces), np.concatenate(stands)


@compiled
def confirmed_pieces(event: Int32, end: Int64) -> tuple[Int64, Bool]:
    """(the events of pieces that were confirmed, in the order in which they were; which of them stand until the end).

    Pieces above a confirmed offset wait for the next one. A cut removes all pieces that end beyond it, and all pieces
    if it leaves no more than was deleted.

        written 0 to 4096 · confirmed 4096 · truncated to 0 · written 0 to 4096

    The first piece was confirmed and does not stand; the second one was not confirmed.
    """
    stack = np.empty(len(event), dtype=np.int64)
    number = np.empty(len(event), dtype=np.int64)
    pieces = np.empty(len(event), dtype=np.int64)
    stands = np.ones(len(event), dtype=np.bool_)
    height = 0
    confirmed = 0
    found = 0
    begin = 0
    for i in range(len(event)):
        if event[i] == DELETED:
            begin = end[i]
        elif event[i] == TRUNCATED or event[i] == RECOVERED or event[i] == WRITTEN:
            # A piece is written where nothing was. A log that began anew may not have reported that it was emptied.
            kept = end[i] - 1 if event[i] == WRITTEN else end[i]
            if event[i] == TRUNCATED and kept <= begin:
                kept = begin = 0
            while height > 0 and end[stack[height - 1]] > kept:
                height -= 1
                if height < confirmed:
                    confirmed = height
                    stands[number[height]] = False
        if event[i] == WRITTEN:
            stack[height] = i
            height += 1
        elif event[i] == CONFIRMED:
            while confirmed < height and end[stack[confirmed]] <= end[i]:
                pieces[found] = stack[confirmed]
                number[confirmed] = found
                found += 1
                confirmed += 1
    return pieces[:found], stands[:found]
