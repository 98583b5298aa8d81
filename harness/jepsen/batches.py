"""Operations as others recorded them become rows of ours, a block at a time, refusing what makes them no history.

What is to be found out of a value is found out once for all operations of a block that have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from harness.jepsen import edn
from harness.jepsen.log_parts import TRANSACTIONS, Positions
from harness.jepsen.operation_columns import Column, OperationColumns
from harness.jepsen.processes import FAIL, INVOKE, Findings, Processes
from harness.jepsen.scan import ABSENT, BESIDE, POSITION, Int64
from harness.jepsen.source import BrokenText
from harness.jepsen.values import JsonValues, Malformed, Meaning, Values, text
from harness.operation import NEMESIS
from harness.record.history.schema import OPERATION_TYPES, history_schema

CLOCK_SLIP_NS = 1_000_000
"""Jepsen's workers take the time first and their place in the history then, so neighbours may have changed places; it
is a slip only as far as it is small (a hundredth) against the time itself."""

NO_TIME = -1
"""How Elle writes that an operation has no time. It is the same as a time that is left out: the operation gets that of
the one before it, in a history that has times as in one that has none, and the order recorded decides."""

TRANSACTION, TAGGED = "txn", ("read", "write")
"""Transactions of reads alone, or of writes alone, are called so in some tests, where all others are `txn`."""

_CODES = {name: code for code, name in enumerate(OPERATION_TYPES)}
_NOBODY = -2
"""The process of somebody who is neither a client nor the nemesis."""


class Batches:
    """Rows of one history."""

    def __init__(self, value_type: pa.StructType, functions: Sequence[str]) -> None:
        self.schema = history_schema(value_type)
        self.rows = 0
        self._functions = frozenset(functions)
        self._values = (JsonValues if value_type.names == ["json"] else Values)(value_type)
        self._processes = Processes()
        self._positions = Positions()
        self._f_codes: dict[str, int] = {}
        self._clock = 0
        self._has_times = False
        self._index = -1

    def batch(self, recorded: OperationColumns) -> pa.RecordBatch:
        """The next rows. Raises BrokenText at the first operation that makes it no history."""
        findings = Findings()
        kinds = _kinds(recorded.fields["type"], findings)
        processes = _processes(recorded.fields["process"], findings)
        fs = self._fs(recorded.fields["f"], (kinds == INVOKE) & (processes != NEMESIS), findings)
        times = self._times(recorded, findings)
        self._check_indices(recorded, findings)

        rows = len(recorded) if findings.row is None else findings.row
        kinds, processes, fs = kinds[:rows], processes[:rows], fs[:rows]
        cells = self._cells(recorded.first(rows), kinds, processes, fs, findings)
        rows = rows if findings.row is None else findings.row
        names = list(self._f_codes)
        numbers, keys = self._processes.follow(
            kinds[:rows].tolist(),
            processes[:rows].tolist(),
            [names[f] for f in fs[:rows].tolist()],
            cells.keys[:rows],
            findings,
        )
        values, fs = cells.values, fs[:rows]
        if self._values.of_log and findings.row is None:
            values, fs = self._on_log(recorded.first(rows), kinds[:rows], numbers, fs, cells.values)
            names = list(self._f_codes)
        self.rows += len(numbers)
        if findings.row is not None:
            raise BrokenText(int(recorded.at[findings.row]), findings.reason)
        return pa.RecordBatch.from_arrays(
            [
                pa.array(np.arange(self.rows - rows, self.rows)),
                pa.array(times),
                pa.array(numbers, pa.int32()),
                pa.DictionaryArray.from_arrays(pa.array(kinds), pa.array(OPERATION_TYPES)),
                pa.DictionaryArray.from_arrays(pa.array(fs), pa.array(names, pa.string())),
                pa.array(keys, pa.string()),
                values,
                cells.errors,
                cells.nodes,
            ],
            schema=self.schema,
        )

    def _on_log(
        self,
        recorded: OperationColumns,
        kinds: npt.NDArray[np.int32],
        numbers: list[int],
        fs: npt.NDArray[np.int32],
        values: pa.StructArray,
    ) -> tuple[pa.StructArray, npt.NDArray[np.int32]]:
        """Values and codes of f, with sends and polls in parts as transactions, and polls as positions have them."""
        place = values.type.get_field_index("txn")
        transactions = pc.struct_field(values, "txn")
        names = list(self._f_codes)
        placed = self._positions.placed(
            kinds.tolist(),
            numbers,
            [names[f] for f in fs.tolist()],
            {name: recorded.fields[name].rows() for name in ("value", *POSITION)},
            transactions,
        )
        members = [placed if at == place else pc.struct_field(values, at) for at in range(values.type.num_fields)]
        txn = self._f_codes.setdefault("txn", len(self._f_codes))
        becomes = np.array([txn if name in TRANSACTIONS else code for code, name in enumerate(self._f_codes)], np.int32)
        has_parts = transactions.is_valid().to_numpy(zero_copy_only=False)
        return (
            pa.StructArray.from_arrays(members, fields=list(values.type)),
            np.where(has_parts, becomes[fs], fs).astype(np.int32),
        )

    def _fs(self, column: Column, invoked: npt.NDArray[np.bool_], findings: Findings) -> npt.NDArray[np.int32]:
        codes = np.zeros(len(column.values), np.int32)
        is_known = np.ones(len(column.values), np.bool_)
        for number, named in enumerate(column.values):
            f = TRANSACTION if self._functions == {TRANSACTION} and named in TAGGED else named
            if isinstance(f, str):
                codes[number] = self._f_codes.setdefault(f, len(self._f_codes))
                is_known[number] = not self._functions or f in self._functions
            elif f is None and len(self._functions) == 1:
                (only,) = self._functions
                codes[number] = self._f_codes.setdefault(only, len(self._f_codes))
            else:
                findings.at_first(column.codes == number, f"f must be a keyword, it is {edn.written(f)}")
        unknown = _first(~is_known[column.codes] & invoked)
        if unknown is not None:
            f = column.values[column.codes[unknown]]
            one_of = "" if len(self._functions) == 1 else "one of "
            findings.add(unknown, f"f must be {one_of}{', '.join(sorted(self._functions))}, it is {f}")
        return codes[column.codes]

    def _times(self, recorded: OperationColumns, findings: Findings) -> Int64:
        for row, (name, value) in recorded.odd.items():
            if name == "time":
                findings.add(row, f"time must be a number of nanoseconds, below 2^63, it is {edn.written(value)}")
        given = np.where(recorded.numbers["time"] == NO_TIME, ABSENT, recorded.numbers["time"])
        is_given = given != ABSENT
        negative = _first(is_given & (given < 0))
        if negative is not None:
            findings.add(negative, f"time must be at least 0, or -1 for none, it is {given[negative]}")
        if not is_given.any() and not self._has_times:
            self._clock = self.rows + len(recorded) - 1
            return np.arange(self.rows, self.rows + len(recorded))
        begun = self._clock if self._has_times else 0
        latest = np.maximum.accumulate(np.concatenate(([begun], np.where(is_given, given, 0))))
        slip = np.where(is_given, latest[:-1] - given, 0)
        back = _first(slip > np.minimum(CLOCK_SLIP_NS, latest[:-1] // 100))
        if back is not None:
            findings.add(back, f"time runs back: {given[back]} ns after {latest[back]} ns")
        # Operations without a time may stand before the first one that has one.
        times: Int64 = np.maximum(latest[1:], self._clock)
        self._has_times = True
        if len(times):
            self._clock = int(times[-1])
        return times

    def _check_indices(self, recorded: OperationColumns, findings: Findings) -> None:
        for row, (name, value) in recorded.odd.items():
            if name == "index":
                findings.add(row, f"index must be a whole number, below 2^63, it is {edn.written(value)}")
        indices = recorded.numbers["index"]
        given = np.flatnonzero(indices != ABSENT)
        if not len(given):
            return
        seen = np.concatenate(([self._index], indices[given]))
        wrong = _first(seen[1:] < seen[:-1])
        if wrong is not None:
            findings.add(int(given[wrong]), f"index runs back: {seen[wrong + 1]} after {seen[wrong]}")
        self._index = int(seen[-1])

    def _cells(
        self,
        recorded: OperationColumns,
        kinds: npt.NDArray[np.int32],
        processes: Int64,
        fs: npt.NDArray[np.int32],
        findings: Findings,
    ) -> _Told:
        """What values, keys, errors and nodes say."""
        value, key, error = (recorded.fields[name] for name in ("value", "key", "error"))
        keys = [None if given is None else text(given) for given in key.values]
        is_client = processes != NEMESIS
        has_key = np.array([given is not None for given in keys])[key.codes] & is_client
        names = list(self._f_codes)
        nothing = Meaning(None, self._values.none, None)
        if self._values.lifted is None:
            self._learn(value, kinds, is_client, has_key, [names[f] for f in fs])

        # Operations with the same value, f, and way to take it, mean the same; those of the nemesis mean nothing.
        way = (fs.astype(np.int64) << 2) + ((kinds >= FAIL) << 1) + has_key
        alike = np.where(is_client, way * len(value.values) + value.codes, -1)
        groups = pa.array(alike).dictionary_encode()
        group = groups.indices.to_numpy()
        distinct = groups.dictionary.to_numpy()
        meanings = []
        ways = (distinct // len(value.values)).tolist()
        for number, (way, code) in enumerate(zip(ways, (distinct % len(value.values)).tolist(), strict=True)):
            meaning = nothing
            if way >= 0:
                try:
                    meaning = self._values.meaning(names[way >> 2], value.values[code], way & 2 > 0, way & 1 > 0)
                except Malformed as malformed:
                    findings.at_first(group == number, str(malformed))
            meanings.append(meaning)
        has_error = np.array([given is not None for given in error.values])[error.codes]
        return _Told(
            keys=_either(keys, key.codes, has_key, [meaning.key for meaning in meanings], group).rows(),
            values=self._structs(
                list(zip(*(meaning.cells for meaning in meanings), strict=True)), group, recorded, is_client, findings
            ),
            errors=_texts(
                "error", _either(error.values, error.codes, has_error, [m.error for m in meanings], group), findings
            ),
            nodes=_texts("node", recorded.fields["node"], findings),
        )

    def _learn(
        self,
        value: Column,
        kinds: npt.NDArray[np.int32],
        is_client: npt.NDArray[np.bool_],
        has_key: npt.NDArray[np.bool_],
        fs: Sequence[str],
    ) -> None:
        """Whether values are lifted, from the first operation that decides it."""
        has_value = np.array([given is not None for given in value.values])[value.codes]
        for row in np.flatnonzero(has_value & is_client).tolist():
            given = value.values[value.codes[row]]
            if kinds[row] >= FAIL and isinstance(given, str) and not self._values.may_be(fs[row], given):
                continue
            self._values.learn(fs[row], given, is_invoked=bool(kinds[row] == INVOKE), has_key=bool(has_key[row]))
            if self._values.lifted is not None:
                return

    def _structs(
        self,
        columns: Sequence[Sequence[Any]],
        group: npt.NDArray[np.int32],
        recorded: OperationColumns,
        is_client: npt.NDArray[np.bool_],
        findings: Findings,
    ) -> pa.StructArray:
        kind = self._values.value_type
        columns = columns or [()] * kind.num_fields
        fields = [
            _taken(field.name, cells, group, field.type, findings) for field, cells in zip(kind, columns, strict=True)
        ]
        for name in BESIDE:
            place = kind.get_field_index(name)
            if place >= 0:
                fields[place] = pc.coalesce(fields[place], _texts(name, recorded.fields[name], findings))
        transactions = recorded.transactions
        if transactions is not None:
            place = kind.get_field_index("txn")
            fields[place] = _either_list(transactions, is_client, fields[place])
        return pa.StructArray.from_arrays(fields, fields=list(kind))


@dataclass(frozen=True, kw_only=True)
class _Told:
    keys: list[str | None]
    values: pa.StructArray
    errors: pa.StringArray
    nodes: pa.StringArray


def _kinds(column: Column, findings: Findings) -> npt.NDArray[np.int32]:
    """Positions in OPERATION_TYPES."""
    codes = np.array([_CODES.get(name, -1) if isinstance(name, str) else -1 for name in column.values], np.int32)
    kinds: npt.NDArray[np.int32] = codes[column.codes]
    row = _first(kinds < 0)
    if row is not None:
        came = edn.written(column.values[column.codes[row]])
        findings.add(row, f"type must be one of {', '.join(OPERATION_TYPES)}, it is {came}")
    return kinds


def _processes(column: Column, findings: Findings) -> Int64:
    """Numbers of clients, as recorded, or NEMESIS."""
    numbers = np.full(len(column.values), _NOBODY, np.int64)
    for number, process in enumerate(column.values):
        if process.__class__ is int and 0 <= process < -ABSENT:
            numbers[number] = process
        elif process == "nemesis":
            numbers[number] = NEMESIS
    processes = numbers[column.codes]
    row = _first(processes == _NOBODY)
    if row is not None:
        came = column.values[column.codes[row]]
        findings.add(row, f"process must be a number of at least 0, or nemesis, it is {edn.written(came)}")
    return processes


def _first(is_so: npt.NDArray[np.bool_]) -> int | None:
    row = int(is_so.argmax()) if len(is_so) else 0
    return row if len(is_so) and is_so[row] else None


def _either(
    values: list[Any],
    codes: npt.NDArray[np.int32],
    has_value: npt.NDArray[np.bool_],
    others: list[Any],
    other_codes: npt.NDArray[np.int32],
) -> Column:
    """The value where there is one, else the other."""
    return Column([*values, *others], np.where(has_value, codes, len(values) + other_codes).astype(np.int32))


def _either_list(lists: pa.ListArray, is_client: npt.NDArray[np.bool_], others: pa.ListArray) -> pa.ListArray:
    """The list where a client has one, else the other."""
    is_list = is_client & lists.is_valid().to_numpy(zero_copy_only=False)
    at = np.arange(len(lists))
    together = pa.concat_arrays([lists.cast(others.type), others])
    return together[: len(at)] if is_list.all() else together.take(pa.array(np.where(is_list, at, at + len(at))))


def _texts(name: str, column: Column, findings: Findings) -> pa.StringArray:
    texts = [None if value is None else text(value) for value in column.values]
    return _taken(name, texts, column.codes, pa.string(), findings)


def _taken(
    name: str, cells: Sequence[Any], codes: npt.NDArray[np.int32], kind: pa.DataType, findings: Findings
) -> pa.Array:
    """A column of cells that many rows may share."""
    try:
        array = pa.array(cells, kind)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        array = pa.nulls(len(cells), kind)
        for number, cell in enumerate(cells):
            try:
                pa.array([cell], kind)
            except (pa.ArrowException, OverflowError, UnicodeEncodeError):
                findings.at_first(codes == number, f"{name} must be {kind}, it is {edn.written(cell)}")
    return array.take(pa.array(codes))
