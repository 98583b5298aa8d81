"""What the reads of one list contradict, each other or what was appended.

  duplicate-elements  a read shows an element twice: counted by reads
  incompatible-order  a read is not a prefix of the longest one: counted by reads
  G1a                 an element was read that a failed transaction appended: counted by elements
  G1b                 a read ends in what another transaction appended, and not in its last append: counted by reads
  dirty-update        behind an element of a failed transaction comes one of a committed one: counted by the latter
  garbage-read        an element was read that nobody tried to append: counted by elements
  lost-update         several committed transactions read the same version and then appended: counted by versions

A value that was appended twice to one key is malformed: nothing can be told from reads of it. LEFT_OUT counts edges
that `dependencies` does not tell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from checkers.findings import Example, Findings
from checkers.kernels.columns import FAIL, NONE, Bool, Int64, run_starts, witness_order
from checkers.transactions.elle.list_append.dependencies import LEFT_OUT, UNORDERED, edges_left_out, keys_unordered
from checkers.transactions.elle.list_append.order import ListOrders, append_of, last_shown, orders
from checkers.transactions.elle.list_append.rows import ListRole
from checkers.transactions.elle.values_in_words import list_in_words
from checkers.transactions.history.malformed import MALFORMED, malformed_examples
from checkers.verdict import EXAMPLES
from harness.compiled import compiled

WITNESSES = 8
"""At most so many transactions of a lost update are named."""

Sentence = Callable[[int], tuple[str, Mapping[str, object]]]


def key_findings(rows: pa.Table) -> pa.Table:
    """Kernel over all rows of a bucket of keys: FINDINGS."""
    return findings_of(orders(rows))


def findings_of(known: ListOrders) -> pa.Table:
    """FINDINGS."""
    findings = Findings()
    _twice_appended(findings, known)
    _of_reads(findings, known)
    _of_elements(findings, known)
    _lost_updates(findings, known)
    findings.add(LEFT_OUT, edges_left_out(known), ())
    findings.add(UNORDERED, keys_unordered(known), ())
    return findings.table()


def _report(
    findings: Findings,
    known: ListOrders,
    name: str,
    key: Int64,
    operations: tuple[Int64, ...],
    tie: Int64,
    sentence: Sentence,
) -> None:
    """All of these, which are not found twice; `sentence` is of a number of them."""
    if len(key) == 0:
        return
    rank = np.empty(len(known.names), dtype=np.int64)
    rank[np.argsort(known.names.to_numpy(zero_copy_only=False))] = np.arange(len(rank))
    examples = []
    for i in witness_order(*operations, ties=(tie, rank[key]))[:EXAMPLES].tolist():
        because, details = sentence(i)
        witnesses = {int(column[i]) for column in operations}
        examples.append(
            Example(
                key=known.names[int(key[i])].as_py(),
                operations=tuple(sorted(witnesses)),
                tie=(int(tie[i]),),
                because=because,
                details=details,
            )
        )
    findings.add(name, len(key), examples)


def _name(known: ListOrders, key: np.int64) -> str:
    return str(known.names[int(key)].as_py())


def _read(known: ListOrders, row: np.int64, *about: np.int64) -> str:
    """A read in words, with the elements that it is about."""
    list_read = list_in_words(known.lists[int(row)], set(map(int, about)))
    # What a list shows again has been left out of it.
    again = "" if known.again[row] == NONE else f", with {int(known.again[row])} again"
    by = f"the transaction at {int(known.reads.start[row])}"
    return f"{by} read {_name(known, known.reads.key[row])} as {list_read}{again}"


def _first_difference(one: Int64, other: Int64) -> Int64:
    """What two lists hold where they first differ; nothing if the shorter one is how the longer one begins."""
    common = min(len(one), len(other))
    apart = np.flatnonzero(one[:common] != other[:common])[:1]
    return np.concatenate((one[apart], other[apart]))


def _twice_appended(findings: Findings, known: ListOrders) -> None:
    appends = known.appends
    same = (appends.value[1:] == appends.value[:-1]) & (appends.key[1:] == appends.key[:-1])
    if not same.any():
        return
    rows = np.flatnonzero(np.append(same, False) | np.append(False, same))
    rows = rows[np.lexsort((appends.place[rows], appends.start[rows], appends.value[rows], appends.key[rows]))]
    later = np.flatnonzero(~run_starts(appends.key[rows], appends.value[rows]))
    first, second = rows[later - 1], rows[later]
    earliest = np.argsort(appends.start[second], kind="stable")
    # Ties are a transaction that appends several values again: all of the earliest ones are looked at.
    limit = appends.start[second][earliest[:EXAMPLES][-1]]
    found = [
        (
            int(appends.start[j]),
            f"{int(appends.value[j])} is appended to {known.names[int(appends.key[j])].as_py()} again, after the "
            f"transaction invoked at {int(appends.start[i])}: which of both a read shows cannot be told",
        )
        for i, j in zip(first.tolist(), second.tolist(), strict=True)
        if appends.start[j] <= limit
    ]
    findings.add(MALFORMED, len(second), malformed_examples(found))


def _of_reads(findings: Findings, known: ListOrders) -> None:
    reads, appends, lists = known.reads, known.appends, known.lists
    rows = np.flatnonzero(known.again != NONE)
    _report(
        findings,
        known,
        "duplicate-elements",
        reads.key[rows],
        (reads.start[rows],),
        reads.place[rows],
        lambda i: (
            f"{_read(known, rows[i], known.again[rows[i]])}, which was appended once",
            {"element": int(known.again[rows[i]]), "place": int(reads.place[rows[i]])},
        ),
    )
    apart = np.flatnonzero(~known.agrees)
    longest = known.longest[reads.key[apart]]
    _report(
        findings,
        known,
        "incompatible-order",
        reads.key[apart],
        (reads.start[apart], reads.start[longest]),
        reads.place[apart],
        lambda i: (
            f"{_read(known, apart[i], *(apart_at := _first_difference(lists[apart[i]], lists[longest[i]])))}, "
            f"and {_read(known, longest[i], *apart_at)}: neither is how the other begins",
            {"place": int(reads.place[apart[i]])},
        ),
    )
    inner, writer = intermediate(known)
    _report(
        findings,
        known,
        "G1b",
        reads.key[inner],
        (reads.start[inner], appends.start[writer]),
        reads.place[inner],
        lambda i: (
            f"{_read(known, inner[i])}, up to {int(appends.value[writer[i]])}: the transaction at "
            f"{int(appends.start[writer[i]])}, which appended that, then appended more",
            {"element": int(appends.value[writer[i]]), "place": int(reads.place[inner[i]])},
        ),
    )


def intermediate(known: ListOrders) -> tuple[Int64, Int64]:
    """(reads that end in another transaction's append that was not its last, those appends)."""
    last = last_shown(known)
    rows = np.flatnonzero(last >= 0)
    append = last[rows]
    inner = (known.appends.role[append] == ListRole.INNER_APPEND) & (
        known.appends.start[append] != known.reads.start[rows]
    )
    return rows[inner], append[inner]


def _of_elements(findings: Findings, known: ListOrders) -> None:
    reads, appends = known.reads, known.appends
    failed = np.flatnonzero((appends.type == FAIL) & (known.shown >= 0))
    reader = known.shown[failed]
    _report(
        findings,
        known,
        "G1a",
        appends.key[failed],
        (appends.start[failed], reads.start[reader]),
        appends.value[failed],
        lambda i: (
            f"{_read(known, reader[i], appends.value[failed[i]])}, which shows {int(appends.value[failed[i]])}: "
            f"the transaction at {int(appends.start[failed[i]])}, which appended that, certainly failed",
            {"element": int(appends.value[failed[i]])},
        ),
    )

    row = known.version[known.version >= 0]
    key, fails = appends.key[row], appends.type[row] == FAIL
    starts = run_starts(key, fails)
    behind = np.flatnonzero(starts & ~fails & ~run_starts(key))
    run = np.maximum.accumulate(np.where(starts, np.arange(len(row)), 0))
    dirty, clean = row[run[behind - 1]], row[behind]
    _report(
        findings,
        known,
        "dirty-update",
        appends.key[clean],
        (appends.start[dirty], appends.start[clean]),
        appends.value[clean],
        lambda i: (
            f"the transaction at {int(appends.start[clean[i]])} appended {int(appends.value[clean[i]])} to "
            f"{_name(known, key[behind[i]])} behind {int(appends.value[dirty[i]])}: the one at "
            f"{int(appends.start[dirty[i]])}, which appended that, certainly failed",
            {"element": int(appends.value[clean[i]]), "aborted": int(appends.value[dirty[i]])},
        ),
    )

    lists = known.lists
    read, element = _unwritten(
        reads.first,
        lists.first,
        lists.size,
        lists.pool,
        known.agrees,
        appends.first,
        appends.value,
        known.version_first,
        known.version,
    )
    order = np.lexsort((read, element, reads.key[read]))
    first = order[run_starts(reads.key[read][order], element[order])]
    read, element = read[first], element[first]
    _report(
        findings,
        known,
        "garbage-read",
        reads.key[read],
        (reads.start[read],),
        element,
        lambda i: (
            f"{_read(known, read[i], element[i])}, which shows {int(element[i])}, and nobody tried to append that",
            {"element": int(element[i])},
        ),
    )


@compiled
def _unwritten(
    read_first: Int64,
    first: Int64,
    size: Int64,
    pool: Int64,
    agrees: Bool,
    append_first: Int64,
    values: Int64,
    version_first: Int64,
    version: Int64,
) -> tuple[Int64, Int64]:
    """(reads, elements that they show and nobody appended); of reads that agree only those that show more than others
    before them."""
    count = 0
    for fill in range(2):
        reads = np.empty(count if fill else 0, dtype=np.int64)
        found = np.empty(count if fill else 0, dtype=np.int64)
        count = 0
        for k in range(len(read_first) - 1):
            known = 0
            for read in range(read_first[k], read_first[k + 1]):
                for i in range(known if agrees[read] else 0, size[read]):
                    element = pool[first[read] + i]
                    if agrees[read]:
                        append = version[version_first[k] + i]
                    else:
                        append = append_of(element, append_first[k], append_first[k + 1], values)
                    if append < 0:
                        if fill:
                            reads[count] = read
                            found[count] = element
                        count += 1
                if agrees[read]:
                    known = max(known, size[read])
    return reads, found


def _lost_updates(findings: Findings, known: ListOrders) -> None:
    reads, lists = known.reads, known.lists
    rows = np.flatnonzero(reads.role == ListRole.UPDATE)
    version = lists.size[rows]
    apart = np.flatnonzero(~known.agrees[rows])
    # What contradicts the longest read is the same version only if it is the same list.
    numbers: dict[tuple[int, bytes], int] = {}
    for i in apart.tolist():
        content = int(reads.key[rows[i]]), lists[int(rows[i])].tobytes()
        version[i] = -1 - numbers.setdefault(content, len(numbers))
    order = np.lexsort((reads.start[rows], version, reads.key[rows]))
    rows, version = rows[order], version[order]
    first = np.flatnonzero(run_starts(reads.key[rows], version))
    count = np.diff(np.append(first, len(rows)))
    first, count = first[count > 1], count[count > 1]
    witnesses = tuple(reads.start[rows[first + np.where(count > i, i, 0)]] for i in range(WITNESSES))
    _report(
        findings,
        known,
        "lost-update",
        reads.key[rows[first]],
        witnesses,
        lists.size[rows[first]],
        lambda i: (
            f"{int(count[i])} transactions read {_name(known, reads.key[rows[first[i]]])} as "
            f"{list_in_words(lists[rows[first[i]]])} and then appended to it, none behind another",
            {"transactions": int(count[i]), "read": list_in_words(lists[rows[first[i]]])},
        ),
    )
