"""Reads of one register that contradict each other or what was written.

  internal         a read does not show what the transaction wrote last, or, if it had not written the key, what its
                   previous read of the key showed: counted by reads
  future-read      a transaction reads what it writes only later: counted by reads
  G1a              a value was read that a failed transaction wrote: counted by reads
  G1b              a value was read that its transaction wrote over: counted by reads
  garbage-read     a value was read that nobody tried to write: counted by reads
  lost-update      several committed transactions read the same version and then wrote: counted by versions
  cyclic-versions  versions precede each other by what was assumed: counted by keys

A value that was written twice to one key is malformed: a read of it does not show which write it saw.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from checkers.api.findings import Example, Findings
from checkers.api.verdict import EXAMPLES
from checkers.kernels.columns import FAIL, NO_INDEX, NONE, Int64, run_starts
from checkers.transactions.elle.key_report import WITNESSES, KeyReport, LostUpdates, Sentence, written_again
from checkers.transactions.elle.rw_register.dependencies import RegisterDependencies
from checkers.transactions.elle.rw_register.precedences import Assumed
from checkers.transactions.elle.rw_register.resolution import Registers
from checkers.transactions.elle.rw_register.rows import MALFORMATIONS, RegisterRole
from checkers.transactions.elle.rw_register.version_orders import InferredOrders
from checkers.transactions.elle.values_in_words import value_in_words

SHOWN = 6
"""The most versions of a cycle that are named."""

READS, MISSING = "reads", "missing edges"
"""The names of two counts that travel with the findings: reads that show the last write of another transaction, or the
initial version; and RW edges that were left out."""


def register_findings(rows: pa.Table, *, assumed: Assumed) -> pa.Table:
    """Kernel over all ROWS of a bucket: FINDINGS."""
    return findings_of(rows, RegisterDependencies.of(Registers.of(rows), assumed))


def findings_of(rows: pa.Table, dependencies: RegisterDependencies) -> pa.Table:
    """The FINDINGS of these rows."""
    registers = dependencies.registers
    findings = _of_reads(rows, registers)
    _cyclic_versions(findings, registers, dependencies.inferred)
    findings.tally(MISSING, dependencies.missing)
    return findings.table()


def findings_of_reads(rows: pa.Table, registers: Registers) -> pa.Table:
    """The FINDINGS without those that only dependencies show: cyclic versions, which need assumptions, and the number
    of missing edges."""
    return _of_reads(rows, registers).table()


def _of_reads(rows: pa.Table, registers: Registers) -> Findings:
    findings = Findings()
    report = KeyReport(findings=findings, names=registers.names)
    _malformed(findings, rows)
    _written_twice(findings, registers)
    _internal(report, registers)
    _unjustified_reads(report, registers)
    _lost_updates(report, registers)
    findings.tally(READS, int(registers.resolved.sum()))
    return findings


def _malformed(findings: Findings, rows: pa.Table) -> None:
    wrong = rows.filter(pa.array(rows["role"].to_numpy() == RegisterRole.MALFORMED))
    first = wrong.sort_by([(name, "ascending") for name in ("start", "place", "value")]).slice(0, EXAMPLES)
    findings.refuse(
        (row["start"], f"micro-operation {row['place']} {MALFORMATIONS[row['value']].format(key=row['key'])}")
        for row in first.to_pylist()
    )


def _written_twice(findings: Findings, registers: Registers) -> None:
    again = np.flatnonzero(~registers.is_read & (registers.writer >= 0))
    findings.refuse(
        (
            int(registers.start[i]),
            written_again(
                f"{registers.value[i]} is written to {registers.name(i)}", registers.start[registers.writer[i]]
            ),
        )
        for i in again[np.lexsort((registers.place[again], registers.start[again]))][:EXAMPLES].tolist()
    )


def _add(
    report: KeyReport, name: str, registers: Registers, row: Int64, operations: tuple[Int64, ...], sentence: Sentence
) -> None:
    """One anomaly for each of these rows."""
    key, tie = registers.key[row].astype(np.int64), registers.place[row].astype(np.int64)
    report.add(name, key=key, operations=operations, tie=tie, sentence=sentence)


def _internal(report: KeyReport, registers: Registers) -> None:
    rows = np.arange(len(registers.start))
    write = np.maximum.accumulate(np.where(registers.is_read, 0, rows))
    against = np.where(registers.role == RegisterRole.CONTRADICTION, write, np.maximum(rows - 1, 0))
    later = ~run_starts(registers.key, registers.start)
    wrong = np.flatnonzero(registers.is_read & later & (registers.value[against] != registers.value))

    def sentence(i: int) -> tuple[str, Mapping[str, object]]:
        value, expected = int(registers.value[wrong[i]]), int(registers.value[against[wrong[i]]])
        did = "read" if registers.is_read[against[wrong[i]]] else "written"
        because = f"{_read(registers, wrong[i])}, where it had {did} {value_in_words(expected)}"
        return because, {"place": int(registers.place[wrong[i]]), "value": value, "expected": expected}

    _add(report, "internal", registers, wrong, (registers.start[wrong],), sentence)


def _unjustified_reads(report: KeyReport, registers: Registers) -> None:
    """Reports reads of values that must not be seen, or were never written."""
    start, place, by = registers.start, registers.place, np.maximum(registers.writer, 0)
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
            registers.is_read & (registers.writer == NO_INDEX),
            ", which no transaction tried to write (before any write it is null)",
        ),
    ):
        row = np.flatnonzero(which)
        writer = start[np.where(registers.writer[row] >= 0, by[row], row)]
        _add(report, name, registers, row, (start[row], writer), _was_read(registers, row, writer, why))


def _was_read(registers: Registers, row: Int64, writer: Int64, why: str) -> Sentence:
    def sentence(i: int) -> tuple[str, Mapping[str, object]]:
        because = _read(registers, row[i]) + why.format(writer=int(writer[i]))
        return because, {"place": int(registers.place[row[i]]), "value": int(registers.value[row[i]])}

    return sentence


def _read(registers: Registers, row: np.int64) -> str:
    value = value_in_words(int(registers.value[row]))
    return f"the transaction at {int(registers.start[row])} read {registers.name(row)} as {value}"


def _lost_updates(report: KeyReport, registers: Registers) -> None:
    starts = run_starts(registers.key, registers.start)
    group = np.cumsum(starts) - 1
    first = np.flatnonzero(starts)
    writes = np.bincount(group[registers.role == RegisterRole.WRITE], minlength=len(first)) > 0
    row = first[(registers.role[first] == RegisterRole.READ) & writes]
    found = LostUpdates.of(row, registers.key[row], registers.value[row], registers.start[row])

    def sentence(i: int) -> tuple[str, Mapping[str, object]]:
        read, count = found.row[i], int(found.count[i])
        value = int(registers.value[read])
        because = (
            f"{count} transactions read {registers.name(read)} as {value_in_words(value)} and then wrote over it, "
            "none having seen what another wrote"
        )
        return because, {"place": int(registers.place[read]), "transactions": count, "value": value}

    _add(report, "lost-update", registers, found.row, found.witnesses, sentence)


def _cyclic_versions(findings: Findings, registers: Registers, inferred: InferredOrders) -> None:
    examples = []
    versions = inferred.versions
    for key, cycle in inferred.cycles:
        rows = np.concatenate((cycle.before_row, cycle.after_row))
        rows = rows[rows >= 0]
        values = [
            value_in_words(int(registers.value[row]) if row >= 0 else NONE)
            for row in versions.row[cycle.before].tolist()
        ]
        shown = values if len(values) <= SHOWN else [*values[:SHOWN], f"{len(values) - SHOWN} more"]
        starts = sorted({int(start) for start in registers.start[rows]})
        name = registers.names[key].as_py()
        examples.append(
            Example(
                key=name,
                operations=tuple(starts[:WITNESSES]),
                because=f"by what is assumed of {name}, each of the versions {', '.join(shown)} "
                "precedes the next one, and the last precedes the first",
                details={"values": shown},
            )
        )
    examples.sort(key=lambda example: (example.operations, example.key or ""))
    findings.add("cyclic-versions", len(examples), examples[:EXAMPLES])
