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
from harness.jepsen.processes import DRAIN, FAIL, INFO, INVOKE, Findings, Followed, Processes
from harness.jepsen.scan import ABSENT, BESIDE, POSITION, Int64
from harness.jepsen.shape import OF_DATA, Shape
from harness.jepsen.source import BrokenText
from harness.jepsen.values import JsonValues, Malformed, Meaning, Values, fits, text
from harness.operation import NEMESIS
from harness.record.history.named_values import Numbering
from harness.record.history.passed_over import PassedOver
from harness.record.history.schema import OPERATION_TYPES, history_schema

CLOCK_SLIP_NS = 1_000_000
"""Jepsen's workers take the time first and their place in the history then, so neighbours may have changed places. That
is not worth a word as far as it is small (a hundredth) against the time itself."""

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

    def __init__(self, shape: Shape) -> None:
        self.schema = history_schema(shape.value_type)
        self.rows = 0
        self.passed = PassedOver()
        self._shape = shape
        self._functions = frozenset(shape.functions)
        self._numbering = Numbering()
        self._values = (JsonValues if shape.value_type.names == ["json"] else Values)(shape, self._numbering)
        self._processes = Processes()
        self._named: dict[str, int] = {}
        """Clients that have names for numbers."""
        self._positions = Positions()
        self._in_parts: dict[int, bool] = {}
        """Of processes on a log: whether what they invoked last became a transaction of parts."""
        self._f_codes: dict[str, int] = {}
        self._first_other: tuple[int, int, str] | None = None
        """The first invocation of a function that is not the workload's: its row, its byte, and the function."""
        self._has_own = False
        """Whether a function of the workload was invoked."""
        self._clock = 0
        self._has_times = False
        self._index = -1

    def learn(self, recorded: OperationColumns) -> bool:
        """Whether it is known by now if values are lifted by their keys. To be asked of operations before they are made
        rows."""
        if self._values.lifted is None:
            nobody = Findings()
            kinds, processes = (
                _kinds(recorded.fields["type"], nobody),
                self._numbered(recorded.fields["process"], nobody),
            )
            self._learn(recorded, kinds, processes)
        return self._values.lifted is not None

    def settle(self) -> None:
        """Nothing more will be learnt before the first row is made."""
        self._values.settle()

    def metadata(self) -> dict[bytes, bytes]:
        """What lies with the history beside its rows, once all are made."""
        return self._numbering.metadata() | self.passed.metadata()

    def nothing_of_its_own(self) -> tuple[int, BrokenText] | None:
        """The row and the reason of a history that ended without any function of the workload, but with others."""
        if self._has_own or self._first_other is None:
            return None
        row, at, f = self._first_other
        return row, BrokenText(at, self._unknown(f))

    def unfinished(self) -> list[pa.RecordBatch]:
        """Completions of drains that the history ends within, and that wrote what they took: they are indefinite."""
        rows = []
        for number, key, taken in self._processes.unfinished_drains():
            cells = dict(
                zip(
                    self._values.value_type.names,
                    self._values.fields(DRAIN, self._values.taken(DRAIN, None, taken)),
                    strict=True,
                )
            )
            rows.append({"process": number, "type": "info", "f": DRAIN, "key": key, "value": cells})
        if not rows:
            return []
        first, self.rows = self.rows, self.rows + len(rows)
        filled = [
            {"index": first + place, "time": self._clock, "error": None, "node": None, **row}
            for place, row in enumerate(rows)
        ]
        return [pa.RecordBatch.from_pylist(filled, schema=self.schema)]

    def batch(self, recorded: OperationColumns) -> pa.RecordBatch:
        """The next rows. Raises BrokenText at the first operation that makes it no history."""
        findings = Findings()
        kinds = _kinds(recorded.fields["type"], findings)
        processes = self._numbered(recorded.fields["process"], findings)
        fs, is_known = self._fs(recorded, (kinds == INVOKE) & (processes != NEMESIS), findings)
        times = self._times(recorded, findings)
        if not self._shape.by_time:
            self._check_indices(recorded, findings)

        rows = len(recorded) if findings.row is None else findings.row
        kinds, processes, fs, is_known = kinds[:rows], processes[:rows], fs[:rows], is_known[:rows]
        at, recorded = recorded.at, recorded.first(rows)
        meant = self._meanings(recorded, kinds, processes, fs, is_known, findings)
        rows = rows if findings.row is None else findings.row
        names = list(self._f_codes)
        told = self._processes.follow(
            kinds[:rows].tolist(),
            processes[:rows].tolist(),
            [names[f] for f in fs[:rows].tolist()],
            is_known[:rows].tolist(),
            meant.keys[:rows],
            recorded.fields["value"],
            self._shape.asking,
            findings,
        )
        rows = len(told.numbers)
        self._adjust(recorded, kinds, processes, fs, told, meant)
        is_client = processes != NEMESIS
        is_client[[*told.passed, *told.logged]] = False
        values = self._structs(meant, recorded, is_client, findings)
        errors = self._errors(recorded, meant, findings)
        nodes = _texts("node", recorded.fields["node"], findings)
        fs = fs[:rows]
        if self._values.of_log and findings.row is None:
            values, fs = self._on_log(recorded, kinds[:rows], told.numbers, fs, values)
        self.rows += rows if findings.row is None else min(rows, findings.row)
        if findings.row is not None:
            raise BrokenText(int(at[findings.row]), findings.reason)
        return pa.RecordBatch.from_arrays(
            [
                pa.array(np.arange(self.rows - rows, self.rows)),
                pa.array(times),
                pa.array(told.numbers, pa.int32()),
                pa.DictionaryArray.from_arrays(pa.array(kinds), pa.array(OPERATION_TYPES)),
                pa.DictionaryArray.from_arrays(pa.array(fs), pa.array(list(self._f_codes), pa.string())),
                pa.array(told.keys, pa.string()),
                values,
                errors,
                nodes,
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
        has_parts = transactions.is_valid().to_numpy(zero_copy_only=False).copy()
        self._complete_in_parts(kinds, numbers, [name in TRANSACTIONS for name in names], fs, has_parts)
        txn = self._code("txn")
        becomes = np.array([txn if name in TRANSACTIONS else code for code, name in enumerate(self._f_codes)], np.int32)
        return (
            pa.StructArray.from_arrays(members, fields=list(values.type)),
            np.where(has_parts, becomes[fs], fs).astype(np.int32),
        )

    def _complete_in_parts(
        self,
        kinds: npt.NDArray[np.int32],
        numbers: list[int],
        may_have: Sequence[bool],
        fs: npt.NDArray[np.int32],
        has_parts: npt.NDArray[np.bool_],
    ) -> None:
        """A completion without parts completes what was invoked with some, and is called like it."""
        for row, (kind, number, f) in enumerate(zip(kinds.tolist(), numbers, fs.tolist(), strict=True)):
            if number == NEMESIS or not may_have[f]:
                continue
            if kind == INVOKE:
                self._in_parts[number] = bool(has_parts[row])
            elif not has_parts[row]:
                has_parts[row] = self._in_parts.get(number, False)

    def _numbered(self, column: Column, findings: Findings) -> Int64:
        """Numbers of clients, as recorded, or NEMESIS; of clients with names, numbers behind those of others."""
        numbers = np.full(len(column.values), _NOBODY, np.int64)
        for number, process in enumerate(column.values):
            if process.__class__ is int and 0 <= process < -ABSENT:
                numbers[number] = process
            elif process == "nemesis":
                numbers[number] = NEMESIS
            elif isinstance(process, str):
                numbers[number] = -ABSENT - 1 - self._named.setdefault(str(process), len(self._named))
        processes = numbers[column.codes]
        row = _first(processes == _NOBODY)
        if row is not None:
            came = column.values[column.codes[row]]
            findings.add(row, f"process must be a number of at least 0, a name, or nemesis, it is {edn.written(came)}")
        return processes

    def _fs(
        self, recorded: OperationColumns, invoked: npt.NDArray[np.bool_], findings: Findings
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
        """Codes of f, and of which rows it is one of the workload's functions."""
        column, at = recorded.fields["f"], recorded.at
        codes = np.zeros(len(column.values), np.int32)
        is_known = np.ones(len(column.values), np.bool_)
        may_pass = np.zeros(len(column.values), np.bool_)
        for number, named in enumerate(column.values):
            f = TRANSACTION if self._functions == {TRANSACTION} and named in TAGGED else named
            if isinstance(f, str):
                codes[number] = self._code(f)
                is_known[number] = not self._functions or f in self._functions
                may_pass[number] = self._shape.passes_others and f not in OF_DATA
            elif f is None and len(self._functions) == 1:
                (only,) = self._functions
                codes[number] = self._code(only)
            else:
                findings.at_first(column.codes == number, f"f must be a keyword, it is {edn.written(f)}")
        is_other = ~is_known[column.codes] & invoked
        refused = _first(is_other & ~may_pass[column.codes])
        if refused is not None:
            findings.add(refused, self._unknown(column.values[column.codes[refused]]))
        other = _first(is_other)
        if other is not None and self._first_other is None:
            self._first_other = (self.rows + other, int(at[other]), column.values[column.codes[other]])
        self._has_own |= bool((is_known[column.codes] & invoked).any())
        return codes[column.codes], is_known[column.codes]

    def _code(self, f: str) -> int:
        return self._f_codes.setdefault(f, len(self._f_codes))

    def _unknown(self, f: str) -> str:
        one_of = "" if len(self._functions) == 1 else "one of "
        return f"f must be {one_of}{', '.join(sorted(self._functions))}, it is {f}"

    def _times(self, recorded: OperationColumns, findings: Findings) -> Int64:
        """Each at least that of the row before it: the order recorded decides."""
        for row, (name, value) in recorded.odd.items():
            if name == "time" and self._shape.timed:
                findings.add(row, f"time must be a number of nanoseconds, below 2^63, it is {edn.written(value)}")
            self.passed.odd_times += name == "time"
        given = np.where(recorded.numbers["time"] == NO_TIME, ABSENT, recorded.numbers["time"])
        is_given = given != ABSENT
        if not is_given.any() and not self._has_times:
            self._clock = self.rows + len(recorded) - 1
            return np.arange(self.rows, self.rows + len(recorded))
        begun = self._clock if self._has_times else 0
        latest = np.maximum.accumulate(np.concatenate(([begun], np.where(is_given, given, 0))))
        slip = np.where(is_given, latest[:-1] - given, 0)
        is_back = slip > np.minimum(CLOCK_SLIP_NS, latest[:-1] // 100)
        back = _first(is_back)
        if back is not None and self._shape.timed:
            findings.add(
                back,
                f"time runs back: {given[back]} ns after {latest[back]} ns, and what this is judged by are times "
                "(--order time, if the rows are not written in their order)",
            )
        elif back is not None:
            self.passed.times += int(is_back.sum())
            self.passed.by_ns = max(self.passed.by_ns, int(slip[is_back].max()))
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

    def _meanings(
        self,
        recorded: OperationColumns,
        kinds: npt.NDArray[np.int32],
        processes: Int64,
        fs: npt.NDArray[np.int32],
        is_known: npt.NDArray[np.bool_],
        findings: Findings,
    ) -> _Meant:
        """What values and keys mean."""
        value, key = recorded.fields["value"], recorded.fields["key"]
        keys = [None if given is None else text(given) for given in key.values]
        is_client = (processes != NEMESIS) & is_known
        has_key = np.array([given is not None for given in keys])[key.codes] & is_client
        names = list(self._f_codes)
        if self._values.lifted is None:
            self._learn(recorded, kinds, processes)
        if self._shape.batches:
            self._look_for_lists(value, kinds == INVOKE, is_client, fs, names)
        is_null = np.array([given is None for given in value.values])[value.codes]

        # Operations with the same value, f, and way to take it, mean the same; those of the nemesis mean nothing.
        way = (fs.astype(np.int64) << 3) + ((is_null & (kinds == INVOKE)) << 2) + ((kinds >= FAIL) << 1) + has_key
        alike = np.where(is_client, way * len(value.values) + value.codes, -1)
        groups = pa.array(alike).dictionary_encode()
        group = groups.indices.to_numpy().copy()
        distinct = groups.dictionary.to_numpy()
        meanings = [Meaning(None, self._values.none, None)]
        ways = (distinct // len(value.values)).tolist()
        for number, (way, code) in enumerate(zip(ways, (distinct % len(value.values)).tolist(), strict=True)):
            meaning = meanings[0]
            if way >= 0:
                try:
                    meaning = self._meaning(names[way >> 3], value.values[code], way)
                except Malformed as malformed:
                    findings.at_first(group == number, str(malformed))
            meanings.append(meaning)
        group += 1
        return _Meant(
            keys=_either(keys, key.codes, has_key, [meaning.key for meaning in meanings], group).rows(),
            meanings=meanings,
            group=group,
        )

    def _meaning(self, f: str, value: Any, way: int) -> Meaning:
        """Raises Malformed for what counts."""
        puts_null, has_ended_in_vain, has_key = way & 4 > 0, way & 2 > 0, way & 1 > 0
        if puts_null:
            return Meaning(None, self._values.put_null(f), None)
        if not has_ended_in_vain:
            return self._values.meaning(f, value, False, has_key)
        try:
            meaning = self._values.meaning(f, value, True, has_key)
            if self._values.hold(meaning.cells):
                return meaning
        except Malformed:
            pass
        return Meaning(None, self._values.none, text(value))

    def _adjust(
        self,
        recorded: OperationColumns,
        kinds: npt.NDArray[np.int32],
        processes: Int64,
        fs: npt.NDArray[np.int32],
        followed: Followed,
        meant: _Meant,
    ) -> None:
        """Rows that are part of no operation get a name that no operation has; completions what they complete, and the
        reasons that they give, or what they took, for their values."""
        names, value = list(self._f_codes), recorded.fields["value"]
        for row in followed.passed:
            if kinds[row] == INFO:
                self.passed.notes += 1
            else:
                self.passed.functions[names[fs[row]]] += 1
        for row in (*followed.passed, *followed.logged):
            fs[row] = self._code(f"passed over: {names[fs[row]]}")
        is_nemesis = processes == NEMESIS
        if is_nemesis.any():
            for f in self._functions & {names[code] for code in np.unique(fs[is_nemesis]).tolist()}:
                fs[is_nemesis & (fs == self._f_codes[f])] = self._code(f"nemesis {f}")
        for row, f in followed.fs.items():
            fs[row] = self._code(f)
        for row in followed.beside:
            meant.replace(row, Meaning(None, self._values.none, text(value.values[value.codes[row]])))
        for row, taken in followed.taken.items():
            shown = self._values.taken(DRAIN, value.values[value.codes[row]], taken)
            meant.replace(row, Meaning(None, self._values.fields(DRAIN, shown), None))

    def _learn(self, recorded: OperationColumns, kinds: npt.NDArray[np.int32], processes: Int64) -> None:
        """Whether values are lifted, from the first operation that decides it."""
        value, f, key = (recorded.fields[name] for name in ("value", "f", "key"))
        has_key = np.array([given is not None for given in key.values])[key.codes]
        counts = (processes != NEMESIS) & (kinds < FAIL)
        alike = ((f.codes.astype(np.int64) << 2) + ((kinds == INVOKE) << 1) + has_key) * len(value.values) + value.codes
        rows = np.flatnonzero(counts)
        rows = rows[np.sort(np.unique(alike[rows], return_index=True)[1])]
        for row in rows.tolist():
            self._values.learn(
                f.values[f.codes[row]],
                value.values[value.codes[row]],
                is_invoked=bool(kinds[row] == INVOKE),
                has_key=bool(has_key[row]),
            )
            if self._values.lifted is not None:
                return

    def _look_for_lists(
        self,
        value: Column,
        invoked: npt.NDArray[np.bool_],
        is_client: npt.NDArray[np.bool_],
        fs: npt.NDArray[np.int32],
        names: Sequence[str],
    ) -> None:
        is_list = np.array([isinstance(given, tuple | list) for given in value.values])[value.codes]
        for row in np.flatnonzero(is_list & invoked & is_client).tolist():
            self._values.look_for_lists(names[fs[row]], value.values[value.codes[row]])

    def _errors(self, recorded: OperationColumns, meant: _Meant, findings: Findings) -> pa.StringArray:
        error = recorded.fields["error"]
        has_error = np.array([given is not None for given in error.values])[error.codes]
        told = _either(error.values, error.codes, has_error, [one.error for one in meant.meanings], meant.group)
        return _texts("error", told, findings)

    def _structs(
        self,
        meant: _Meant,
        recorded: OperationColumns,
        is_client: npt.NDArray[np.bool_],
        findings: Findings,
    ) -> pa.StructArray:
        kind = self._values.value_type
        # What is no operation of a client means nothing.
        group = np.where(is_client, meant.group, 0)
        columns = zip(*(meaning.cells for meaning in meant.meanings), strict=True)
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
class _Meant:
    """What the values of some rows mean."""

    keys: list[str | None]
    meanings: list[Meaning]
    """The first one is nothing."""
    group: npt.NDArray[np.int32]
    """Which of them a row has."""

    def replace(self, row: int, meaning: Meaning) -> None:
        self.group[row] = len(self.meanings)
        self.meanings.append(meaning)


def _kinds(column: Column, findings: Findings) -> npt.NDArray[np.int32]:
    """Positions in OPERATION_TYPES."""
    codes = np.array([_CODES.get(name, -1) if isinstance(name, str) else -1 for name in column.values], np.int32)
    kinds: npt.NDArray[np.int32] = codes[column.codes]
    row = _first(kinds < 0)
    if row is not None:
        came = edn.written(column.values[column.codes[row]])
        findings.add(row, f"type must be one of {', '.join(OPERATION_TYPES)}, it is {came}")
    return kinds


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
        fitting = [cell if fits(cell, kind) else None for cell in cells]
        for number, (cell, fit) in enumerate(zip(cells, fitting, strict=True)):
            if fit is None and cell is not None:
                findings.at_first(codes == number, f"{name} must be {kind}, it is {edn.written(cell)}")
        array = pa.array(fitting, kind)
    return array.take(pa.array(codes))
