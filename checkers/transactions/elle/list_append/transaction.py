"""Contradictions within one transaction, and malformed micro-operations.

  internal     a read that does not show the transaction's previous read followed by its appends since then; if it had
               not read the key before, the read need only end in its own appends
  future-read  a read shows what the same transaction appends only later: counted by elements

Only reads of ok transactions show anything. Later reads are compared with the one before them even if that was wrong.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.api.findings import Example, Findings
from checkers.api.verdict import EXAMPLES
from checkers.kernels.columns import NONE, OK, Bool, Int64, elements, integers, witness_order
from checkers.transactions.elle.list_append.rows import Chains, Lists, Parts, chains, lists_of_column, parts_of, rows_of
from checkers.transactions.elle.values_in_words import list_in_words
from checkers.transactions.history.key_rows import with_findings
from checkers.transactions.history.micro_operations import APPEND, FUNCTIONS, R
from checkers.transactions.history.micro_rows import refused
from harness.compiled import compiled


def rows_with_findings(micro: pa.Table, *, buckets: int) -> pa.Table:
    """Kernel over MICRO_ROWS: ROWS, and with them findings within transactions."""
    parts = parts_of(micro)
    linked = chains(parts)
    return with_findings(rows_of(parts, linked, buckets), _findings(micro, parts, linked))


def transaction_findings(micro: pa.Table) -> pa.Table:
    """Kernel over MICRO_ROWS: FINDINGS."""
    parts = parts_of(micro)
    return _findings(micro, parts, chains(parts))


def _findings(micro: pa.Table, parts: Parts, linked: Chains) -> pa.Table:
    lists = lists_of_column(parts.values)
    judged = (parts.f == R) & (parts.type == OK)
    wrong, early = contradictions(
        judged, parts.f == APPEND, linked.previous, parts.value, lists.first, lists.size, lists.pool
    )
    findings = Findings()
    refused(findings, micro)
    _report_malformed(findings, parts)
    for name, which, example in (("internal", wrong, _internal), ("future-read", early >= 0, _future)):
        rows = np.flatnonzero(which)
        chosen = rows[witness_order(parts.start[rows], ties=(parts.place[rows].astype(np.int64),))][:EXAMPLES]
        examples = (example(int(i), parts, linked, lists, early) for i in chosen)
        findings.add(
            name,
            len(rows),
            [
                Example(
                    key=parts.names[int(parts.key[i])].as_py(),
                    operations=(int(parts.start[i]),),
                    tie=(int(parts.place[i]),),
                    because=because,
                    details=details,
                )
                for i, (because, details) in zip(chosen, examples, strict=True)
            ],
        )
    return findings.table()


@compiled
def contradictions(
    is_read: Bool, is_append: Bool, previous: Int64, value: Int64, first: Int64, size: Int64, pool: Int64
) -> tuple[Bool, Int64]:
    """(which reads are wrong; for each append an earlier read of its transaction that shows it, or -1).

        in one transaction: r x = [1] · append x 2 · r x = [1, 2] · r x = [1, 3] · append x 3

    The last read is wrong, because it had to be [1, 2]; and it shows 3, which the transaction appends only later.

    `is_read` are the reads to be judged, `previous` is Chains.previous, the lists are those that were read.
    """
    length = len(previous)
    wrong = np.zeros(length, dtype=np.bool_)
    early = np.full(length, -1, dtype=np.int64)
    # The nearest read at or before this one, on the same key, that shows more than the read before it and own appends.
    newest = np.full(length, -1, dtype=np.int64)
    for i in range(length):
        before = previous[i]
        newest[i] = newest[before] if before >= 0 else -1
        if is_append[i]:
            read = newest[i]
            while read >= 0:
                for at in range(first[read], first[read] + size[read]):
                    if pool[at] == value[i]:
                        early[i] = read
                read = newest[previous[read]] if previous[read] >= 0 else -1
        elif is_read[i]:
            end = first[i] + size[i]
            appended = 0
            while before >= 0 and is_append[before]:
                appended += 1
                at = end - appended
                wrong[i] |= at < first[i]
                if not wrong[i]:
                    wrong[i] = pool[at] != value[before]
                before = previous[before]
            if before < 0:
                newest[i] = i
                continue
            wrong[i] |= size[i] != size[before] + appended
            if not wrong[i]:
                for at in range(size[before]):
                    if pool[first[i] + at] != pool[first[before] + at]:
                        wrong[i] = True
                        break
            if wrong[i]:
                newest[i] = i
    return wrong, early


def _internal(i: int, parts: Parts, linked: Chains, lists: Lists, _: Int64) -> tuple[str, dict[str, object]]:
    appended: list[int] = []
    before = int(linked.previous[i])
    while before >= 0 and parts.f[before] == APPEND:
        appended.insert(0, int(parts.value[before]))
        before = int(linked.previous[before])
    read = list_in_words(lists[i])
    if before < 0:
        expected = f"end in its own appends {list_in_words(appended)}"
    else:
        expected = f"be {list_in_words([*lists[before].tolist(), *appended])} after its own reads and appends"
    return f"{_read(parts, i)} as {read}, which had to {expected}", {"read": read, "place": int(parts.place[i])}


def _future(i: int, parts: Parts, linked: Chains, lists: Lists, early: Int64) -> tuple[str, dict[str, object]]:
    read, value = int(early[i]), int(parts.value[i])
    return (
        f"{_read(parts, read)} as {list_in_words(lists[read], (value,))}, which shows {value}, "
        "and appended that only later",
        {"element": value, "place": int(parts.place[read])},
    )


def _read(parts: Parts, i: int) -> str:
    return f"the transaction at {int(parts.start[i])} read {parts.names[int(parts.key[i])].as_py()}"


def _report_malformed(findings: Findings, parts: Parts) -> None:
    nulls = np.zeros(len(parts.f), dtype=np.bool_)
    if parts.values.values.null_count:
        parents, read = elements(parts.values)
        nulls[parents[integers(read) == NONE]] = True
    is_read, is_append = parts.f == R, parts.f == APPEND
    listed = pc.is_valid(parts.values).to_numpy(zero_copy_only=False)
    found: list[tuple[int, str]] = []
    for which, reason in (
        (~is_read & ~is_append, "is neither r nor append"),
        (parts.key == len(parts.names), "has no key"),
        (is_append & (parts.value == NONE) & ~listed, "appends null"),
        (is_append & listed, "appends a list, where one element belongs"),
        (is_read & (parts.value != NONE), "reads one value, where a list has several"),
        (nulls, "reads a list with null in it"),
    ):
        rows = np.flatnonzero(which)
        found += [
            (int(parts.start[i]), f"micro-operation {parts.place[i]} {_named(int(parts.f[i]))} {reason}")
            for i in _earliest(rows, parts.start)
        ]
    findings.refuse(found)


def _named(f: int) -> str:
    return f"({FUNCTIONS[f] if f >= 0 else 'of an unknown kind'})"


def _earliest(rows: Int64, start: Int64) -> list[int]:
    chosen: list[int] = rows[np.argsort(start[rows], kind="stable")][:EXAMPLES].tolist()
    return chosen
