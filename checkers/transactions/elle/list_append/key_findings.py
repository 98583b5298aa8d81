"""Reads of one list that contradict each other or what was appended.

  duplicate-elements  a read shows an element twice: counted by reads
  incompatible-order  a read is not a prefix of the longest one: counted by reads
  G1a                 an element was read that a failed transaction appended: counted by elements
  G1b                 a read ends in what another transaction appended, and not in its last append: counted by reads
  dirty-update        behind an element of a failed transaction comes one of a committed one: counted by the latter
  garbage-read        an element was read that nobody tried to append: counted by elements
  lost-update         several committed transactions read the same version and then appended: counted by versions

A value that was appended twice to one key is malformed: a read of it does not show which append it saw. LEFT_OUT counts
edges that `dependencies` leaves out.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from checkers.api.findings import Findings
from checkers.api.verdict import EXAMPLES
from checkers.kernels.columns import FAIL, NONE, Int64, run_starts
from checkers.transactions.elle.key_report import KeyReport, LostUpdates, written_again
from checkers.transactions.elle.list_append.dependencies import LEFT_OUT, UNORDERED, edges_left_out, keys_unordered
from checkers.transactions.elle.list_append.order import ListOrders, last_shown, list_orders
from checkers.transactions.elle.list_append.rows import ListRole
from checkers.transactions.elle.list_append.versions import unwritten_elements
from checkers.transactions.elle.values_in_words import list_in_words


def key_findings(rows: pa.Table) -> pa.Table:
    """Kernel over all rows of a bucket of keys: FINDINGS."""
    return findings_of(list_orders(rows))


def findings_of(orders: ListOrders) -> pa.Table:
    """The FINDINGS of a bucket of lists."""
    findings = Findings()
    report = KeyReport(findings=findings, names=orders.names)
    _twice_appended(findings, orders)
    _duplicate_elements(report, orders)
    _incompatible_orders(report, orders)
    _intermediate_reads(report, orders)
    _aborted_reads(report, orders)
    _dirty_updates(report, orders)
    _garbage_reads(report, orders)
    _lost_updates(report, orders)
    findings.tally(LEFT_OUT, edges_left_out(orders))
    findings.tally(UNORDERED, keys_unordered(orders))
    return findings.table()


def _name(orders: ListOrders, key: np.int64) -> str:
    return str(orders.names[int(key)].as_py())


def _read(orders: ListOrders, row: np.int64, *about: np.int64) -> str:
    """A read in words, with the elements that the sentence is about."""
    list_read = list_in_words(orders.lists[int(row)], set(map(int, about)))
    # Elements that a list shows again have been left out of it.
    again = "" if orders.again[row] == NONE else f", with {int(orders.again[row])} again"
    by = f"the transaction at {int(orders.reads.start[row])}"
    return f"{by} read {_name(orders, orders.reads.key[row])} as {list_read}{again}"


def _twice_appended(findings: Findings, orders: ListOrders) -> None:
    appends = orders.appends
    same = (appends.value[1:] == appends.value[:-1]) & (appends.key[1:] == appends.key[:-1])
    if not same.any():
        return
    rows = np.flatnonzero(np.append(same, False) | np.append(False, same))
    rows = rows[np.lexsort((appends.place[rows], appends.start[rows], appends.value[rows], appends.key[rows]))]
    later = np.flatnonzero(~run_starts(appends.key[rows], appends.value[rows]))
    first, second = rows[later - 1], rows[later]
    earliest = np.argsort(appends.start[second], kind="stable")
    # A transaction that appends several values again makes ties: all rows as early as these are looked at.
    limit = appends.start[second][earliest[:EXAMPLES][-1]]
    found = [
        (
            int(appends.start[j]),
            written_again(f"{int(appends.value[j])} is appended to {_name(orders, appends.key[j])}", appends.start[i]),
        )
        for i, j in zip(first.tolist(), second.tolist(), strict=True)
        if appends.start[j] <= limit
    ]
    findings.refuse(found)


def _duplicate_elements(report: KeyReport, orders: ListOrders) -> None:
    reads = orders.reads
    rows = np.flatnonzero(orders.again != NONE)
    report.add(
        "duplicate-elements",
        key=reads.key[rows],
        operations=(reads.start[rows],),
        tie=reads.place[rows],
        sentence=lambda i: (
            f"{_read(orders, rows[i], orders.again[rows[i]])}, which was appended once",
            {"element": int(orders.again[rows[i]]), "place": int(reads.place[rows[i]])},
        ),
    )


def _incompatible_orders(report: KeyReport, orders: ListOrders) -> None:
    reads, lists = orders.reads, orders.lists
    apart = np.flatnonzero(~orders.agrees)
    longest = orders.longest[reads.key[apart]]
    report.add(
        "incompatible-order",
        key=reads.key[apart],
        operations=(reads.start[apart], reads.start[longest]),
        tie=reads.place[apart],
        sentence=lambda i: (
            f"{_read(orders, apart[i], *(apart_at := _first_difference(lists[apart[i]], lists[longest[i]])))}, "
            f"and {_read(orders, longest[i], *apart_at)}: neither list is a prefix of the other",
            {"place": int(reads.place[apart[i]])},
        ),
    )


def _first_difference(one: Int64, other: Int64) -> Int64:
    """The elements of two lists where they first differ; none if one is a prefix of the other."""
    common = min(len(one), len(other))
    apart = np.flatnonzero(one[:common] != other[:common])[:1]
    return np.concatenate((one[apart], other[apart]))


def _intermediate_reads(report: KeyReport, orders: ListOrders) -> None:
    reads, appends = orders.reads, orders.appends
    inner, writer = intermediate(orders)
    report.add(
        "G1b",
        key=reads.key[inner],
        operations=(reads.start[inner], appends.start[writer]),
        tie=reads.place[inner],
        sentence=lambda i: (
            f"{_read(orders, inner[i])}, up to {int(appends.value[writer[i]])}: the transaction at "
            f"{int(appends.start[writer[i]])}, which appended that, then appended more",
            {"element": int(appends.value[writer[i]]), "place": int(reads.place[inner[i]])},
        ),
    )


def intermediate(orders: ListOrders) -> tuple[Int64, Int64]:
    """(reads that end in an append of another transaction that was not its last, these appends)."""
    appends, last = orders.appends, last_shown(orders)
    rows = np.flatnonzero(last >= 0)
    append = last[rows]
    inner = (appends.role[append] == ListRole.INNER_APPEND) & (appends.start[append] != orders.reads.start[rows])
    return rows[inner], append[inner]


def _aborted_reads(report: KeyReport, orders: ListOrders) -> None:
    appends = orders.appends
    failed = np.flatnonzero((appends.type == FAIL) & (orders.reader >= 0))
    reader = orders.reader[failed]
    report.add(
        "G1a",
        key=appends.key[failed],
        operations=(appends.start[failed], orders.reads.start[reader]),
        tie=appends.value[failed],
        sentence=lambda i: (
            f"{_read(orders, reader[i], appends.value[failed[i]])}, which shows {int(appends.value[failed[i]])}: "
            f"the transaction at {int(appends.start[failed[i]])}, which appended that, certainly failed",
            {"element": int(appends.value[failed[i]])},
        ),
    )


def _dirty_updates(report: KeyReport, orders: ListOrders) -> None:
    appends, append = orders.appends, orders.versions.append
    row = append[append >= 0]
    key, fails = appends.key[row], appends.type[row] == FAIL
    starts = run_starts(key, fails)
    behind = np.flatnonzero(starts & ~fails & ~run_starts(key))
    run = np.maximum.accumulate(np.where(starts, np.arange(len(row)), 0))
    dirty, clean = row[run[behind - 1]], row[behind]
    report.add(
        "dirty-update",
        key=appends.key[clean],
        operations=(appends.start[dirty], appends.start[clean]),
        tie=appends.value[clean],
        sentence=lambda i: (
            f"the transaction at {int(appends.start[clean[i]])} appended {int(appends.value[clean[i]])} to "
            f"{_name(orders, key[behind[i]])} after {int(appends.value[dirty[i]])}: the transaction at "
            f"{int(appends.start[dirty[i]])}, which appended that, certainly failed",
            {"element": int(appends.value[clean[i]]), "aborted": int(appends.value[dirty[i]])},
        ),
    )


def _garbage_reads(report: KeyReport, orders: ListOrders) -> None:
    reads = orders.reads
    read, element = unwritten_elements(orders.read_lists, orders.agrees, orders.appended, orders.versions)
    order = np.lexsort((read, element, reads.key[read]))
    first = order[run_starts(reads.key[read][order], element[order])]
    read, element = read[first], element[first]
    report.add(
        "garbage-read",
        key=reads.key[read],
        operations=(reads.start[read],),
        tie=element,
        sentence=lambda i: (
            f"{_read(orders, read[i], element[i])}, which shows {int(element[i])}, but no transaction tried to append "
            "that",
            {"element": int(element[i])},
        ),
    )


def _lost_updates(report: KeyReport, orders: ListOrders) -> None:
    reads, lists = orders.reads, orders.lists
    rows = np.flatnonzero(reads.role == ListRole.UPDATE)
    version = lists.size[rows]
    # Two reads that contradict the longest one show the same version only if their lists are equal.
    numbers: dict[tuple[int, bytes], int] = {}
    for i in np.flatnonzero(~orders.agrees[rows]).tolist():
        content = int(reads.key[rows[i]]), lists[int(rows[i])].tobytes()
        version[i] = -1 - numbers.setdefault(content, len(numbers))
    found = LostUpdates.of(rows, reads.key[rows], version, reads.start[rows])
    row, count = found.row, found.count
    report.add(
        "lost-update",
        key=reads.key[row],
        operations=found.witnesses,
        tie=lists.size[row],
        sentence=lambda i: (
            f"{int(count[i])} transactions read {_name(orders, reads.key[row[i]])} as "
            f"{list_in_words(lists[row[i]])} and then appended to it, none having seen what another appended",
            {"transactions": int(count[i]), "read": list_in_words(lists[row[i]])},
        ),
    )
