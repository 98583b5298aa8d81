"""What the reads of one register contradict.

  internal         a read is not of what the transaction wrote last, or, where it had not written, not what its last
                   read of the key showed: counted by reads
  future-read      a transaction reads what it writes only later: counted by reads
  G1a              a value was read that a failed transaction wrote: counted by reads
  G1b              a value was read that its transaction wrote over: counted by reads
  garbage-read     a value was read that nobody tried to write: counted by reads
  lost-update      several committed transactions read the same version and then wrote: counted by versions
  cyclic-versions  versions precede each other by what was assumed: counted by keys

A value that was written twice to one key is malformed: nothing can be told from reads of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from checkers.findings import Example, Findings
from checkers.kernels.columns import FAIL, NONE, Int64, run_starts, witness_order
from checkers.transactions.elle.rw_register.dependencies import RegisterDependencies
from checkers.transactions.elle.rw_register.resolution import NOBODY, Registers
from checkers.transactions.elle.rw_register.rows import MALFORMATIONS, RegisterRole
from checkers.transactions.elle.rw_register.version_orders import Assumed, InferredOrders
from checkers.transactions.history.malformed import MALFORMED, malformed_examples
from checkers.verdict import EXAMPLES

WITNESSES = 8
"""At most so many transactions of a lost update are named."""

SHOWN = 6
"""At most so many versions of a cycle are told."""

READS, MISSING = "reads", "missing edges"
"""Counts that travel with the findings: of reads that show what another transaction, or nobody, wrote last; and of RW
edges left out."""

Sentence = Callable[[int], tuple[str, Mapping[str, object]]]


def register_findings(rows: pa.Table, *, assumed: Assumed) -> pa.Table:
    """Kernel over all ROWS of a bucket."""
    return findings_of(rows, RegisterDependencies.of(Registers.of(rows), assumed))


def findings_of(rows: pa.Table, told: RegisterDependencies) -> pa.Table:
    """FINDINGS."""
    findings, registers = Findings(), told.registers
    _malformed(findings, rows)
    _written_twice(findings, registers)
    _of_reads(findings, registers)
    _lost_updates(findings, registers)
    _cyclic_versions(findings, registers, told.inferred)
    findings.add(READS, int(registers.resolved.sum()), ())
    findings.add(MISSING, told.missing, ())
    return findings.table()


def _malformed(findings: Findings, rows: pa.Table) -> None:
    wrong = rows.filter(pa.array(rows["role"].to_numpy() == RegisterRole.MALFORMED))
    first = wrong.sort_by([(name, "ascending") for name in ("start", "place", "value")]).slice(0, EXAMPLES)
    examples = malformed_examples(
        (row["start"], f"micro-operation {row['place']} {MALFORMATIONS[row['value']].format(key=row['key'])}")
        for row in first.to_pylist()
    )
    findings.add(MALFORMED, wrong.num_rows, examples)


def _written_twice(findings: Findings, registers: Registers) -> None:
    again = np.flatnonzero(~registers.is_read & (registers.writer >= 0))
    examples = malformed_examples(
        (
            int(registers.start[i]),
            f"{registers.value[i]} is written to {registers.names[int(registers.key[i])]} again, after the transaction "
            f"invoked at {registers.start[registers.writer[i]]}: which of both a read shows cannot be told",
        )
        for i in again[np.lexsort((registers.place[again], registers.start[again]))][:EXAMPLES].tolist()
    )
    findings.add(MALFORMED, len(again), examples)


def _report(
    findings: Findings, name: str, registers: Registers, row: Int64, operations: tuple[Int64, ...], sentence: Sentence
) -> None:
    """One anomaly for each of these rows; `sentence` is of its number among them."""
    examples = []
    ties = registers.place[row].astype(np.int64), registers.key[row].astype(np.int64)
    for i in witness_order(*operations, ties=ties)[:EXAMPLES].tolist() if len(row) else ():
        because, details = sentence(i)
        place = int(registers.place[row[i]])
        examples.append(
            Example(
                key=registers.names[int(registers.key[row[i]])].as_py(),
                operations=tuple(sorted({int(column[i]) for column in operations})),
                tie=(place,),
                because=because,
                details={"place": place, **details},
            )
        )
    findings.add(name, len(row), examples)


def _of_reads(findings: Findings, registers: Registers) -> None:
    start, place, by = registers.start, registers.place, np.maximum(registers.writer, 0)
    rows = np.arange(len(start))
    write = np.maximum.accumulate(np.where(registers.is_read, 0, rows))
    against = np.where(registers.role == RegisterRole.CONTRADICTION, write, np.maximum(rows - 1, 0))
    later = ~run_starts(registers.key, start)
    wrong = np.flatnonzero(registers.is_read & later & (registers.value[against] != registers.value))

    def internal(i: int) -> tuple[str, Mapping[str, object]]:
        value, expected = int(registers.value[wrong[i]]), int(registers.value[against[wrong[i]]])
        did = "read" if registers.is_read[against[wrong[i]]] else "written"
        because = f"{_read(registers, wrong[i])}, where it had {did} {_told(expected)}"
        return because, {"value": value, "expected": expected}

    _report(findings, "internal", registers, wrong, (start[wrong],), internal)

    wrote = registers.is_read & (registers.writer >= 0)
    own = start[by] == start
    failed = registers.type[by] == FAIL
    inner = registers.role[by] == RegisterRole.INNER_WRITE
    for name, which, why in (
        ("future-read", wrote & own & (place[by] > place), ", which it writes only later"),
        ("G1a", wrote & failed, ": the transaction at {writer}, which wrote that, certainly failed"),
        ("G1b", wrote & ~own & inner, ": the transaction at {writer}, which wrote that, then wrote over it"),
        (
            "garbage-read",
            registers.is_read & (registers.writer == NOBODY),
            ", which nobody tried to write (before any write it is null)",
        ),
    ):
        row = np.flatnonzero(which)
        writer = start[np.where(registers.writer[row] >= 0, by[row], row)]
        _report(findings, name, registers, row, (start[row], writer), _was_read(registers, row, writer, why))


def _was_read(registers: Registers, row: Int64, writer: Int64, why: str) -> Sentence:
    def sentence(i: int) -> tuple[str, Mapping[str, object]]:
        because = _read(registers, row[i]) + why.format(writer=int(writer[i]))
        return because, {"value": int(registers.value[row[i]])}

    return sentence


def _read(registers: Registers, row: np.int64) -> str:
    name = registers.names[int(registers.key[row])].as_py()
    return f"the transaction at {int(registers.start[row])} read {name} as {_told(int(registers.value[row]))}"


def _told(value: int) -> str:
    return "null" if value == NONE else str(value)


def _lost_updates(findings: Findings, registers: Registers) -> None:
    starts = run_starts(registers.key, registers.start)
    group = np.cumsum(starts) - 1
    first = np.flatnonzero(starts)
    writes = np.bincount(group[registers.role == RegisterRole.WRITE], minlength=len(first)) > 0
    row = first[(registers.role[first] == RegisterRole.READ) & writes]
    row = row[np.lexsort((registers.start[row], registers.value[row], registers.key[row]))]
    begin = np.flatnonzero(run_starts(registers.key[row], registers.value[row]))
    count = np.diff(np.append(begin, len(row)))
    begin, count = begin[count > 1], count[count > 1]

    def sentence(i: int) -> tuple[str, Mapping[str, object]]:
        value = int(registers.value[row[begin[i]]])
        name = registers.names[int(registers.key[row[begin[i]]])].as_py()
        because = f"{count[i]} transactions read {name} as {_told(value)} and then wrote over it, none behind another"
        return because, {"transactions": int(count[i]), "value": value}

    witnesses = tuple(registers.start[row[begin + np.where(count > i, i, 0)]] for i in range(WITNESSES))
    _report(findings, "lost-update", registers, row[begin], witnesses, sentence)


def _cyclic_versions(findings: Findings, registers: Registers, told: InferredOrders) -> None:
    examples = []
    versions = told.versions
    for key, cycle in told.cycles:
        rows = np.concatenate((cycle.before_row, cycle.after_row))
        rows = rows[rows >= 0]
        values = [_told(int(registers.value[row]) if row >= 0 else NONE) for row in versions.row[cycle.before].tolist()]
        shown = values if len(values) <= SHOWN else [*values[:SHOWN], f"{len(values) - SHOWN} more"]
        starts = sorted({int(start) for start in registers.start[rows]})
        examples.append(
            Example(
                key=registers.names[key].as_py(),
                operations=tuple(starts[:WITNESSES]),
                because=f"as is assumed, of {registers.names[key].as_py()} each of the versions {', '.join(shown)} "
                "precedes the next one, and the last the first",
                details={"values": shown},
            )
        )
    examples.sort(key=lambda example: (example.operations, example.key or ""))
    findings.add("cyclic-versions", len(examples), examples[:EXAMPLES])
