"""Operations as others recorded them, a block of text at a time, in columns of few distinct values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from harness.jepsen import scan
from harness.jepsen.scan import ABSENT, NUMBERS, TEXTS, Int64, Spans
from harness.jepsen.source import BrokenText, CutOff, Row, Unfinished
from harness.jepsen.transactions import A_TRANSACTION

DIGITS = 18
"""An integer of so many digits fits into 64 bits."""
FEW = 64
"""So many distinct texts are read one by one sooner than all at once."""
REMEMBERED = 65_536
"""Distinct texts whose values are kept from block to block."""


@dataclass(frozen=True)
class Column:
    """One field of some operations: each distinct value once, and which of them an operation has."""

    values: list[Any]
    codes: npt.NDArray[np.int32]

    def rows(self) -> list[Any]:
        return [self.values[code] for code in self.codes.tolist()]


@dataclass(frozen=True, kw_only=True)
class OperationColumns:
    """Operations in the order recorded."""

    at: Int64
    """The byte of the text where each begins."""
    fields: Mapping[str, Column]
    """Name in TEXTS -> column; None where there is none."""
    numbers: Mapping[str, Int64]
    """Name in NUMBERS -> column; ABSENT where there is none."""
    odd: Mapping[int, tuple[str, Any]]
    """Operations whose time or index is no integer of 64 bits: which of them, and what it is."""
    transactions: pa.ListArray | None = None
    """What the operations do whose value is A_TRANSACTION; null for others. None where nobody asked."""
    broken: BrokenText | None = None
    """What came behind them."""
    cut_off: Unfinished | None = None
    """What the text ends within, behind all operations."""

    def __len__(self) -> int:
        return len(self.at)

    def from_byte(self, begin: int) -> OperationColumns:
        """The same, of a text that begins there."""
        return replace(
            self,
            at=self.at + begin,
            broken=None if self.broken is None else self.broken.from_byte(begin),
            cut_off=None if self.cut_off is None else self.cut_off.from_byte(begin),
        )

    def before_broken(self) -> OperationColumns:
        """Without operations behind what is broken."""
        return self if self.broken is None else self.first(int(np.searchsorted(self.at, self.broken.at)))

    def first(self, rows: int) -> OperationColumns:
        """The first of these operations."""
        return replace(
            self,
            at=self.at[:rows],
            fields={name: Column(column.values, column.codes[:rows]) for name, column in self.fields.items()},
            numbers={name: numbers[:rows] for name, numbers in self.numbers.items()},
            odd={row: odd for row, odd in self.odd.items() if row < rows},
            transactions=None if self.transactions is None else self.transactions[:rows],
        )

    def taken(self, order: Int64) -> OperationColumns:
        """The same operations in another order."""
        place = {int(row): number for number, row in enumerate(order.tolist())} if self.odd else {}
        return replace(
            self,
            at=self.at[order],
            fields={name: Column(column.values, column.codes[order]) for name, column in self.fields.items()},
            numbers={name: numbers[order] for name, numbers in self.numbers.items()},
            odd={place[row]: odd for row, odd in self.odd.items()},
            transactions=None if self.transactions is None else self.transactions.take(pa.array(order)),
        )


def joined(blocks: Sequence[OperationColumns]) -> OperationColumns:
    """The operations of some blocks, of which there is one at least, behind each other."""
    begins = np.cumsum([0, *(len(block) for block in blocks)])
    kind = next((block.transactions.type for block in blocks if block.transactions is not None), None)
    lists = [
        pa.nulls(len(block), kind) if block.transactions is None else block.transactions.cast(kind)
        for block in (blocks if kind is not None else ())
    ]
    return OperationColumns(
        at=np.concatenate([block.at for block in blocks]),
        fields={name: _joined([block.fields[name] for block in blocks]) for name in TEXTS},
        numbers={name: np.concatenate([block.numbers[name] for block in blocks]) for name in NUMBERS},
        odd={
            int(begin) + row: odd
            for begin, block in zip(begins[:-1], blocks, strict=True)
            for row, odd in block.odd.items()
        },
        transactions=pa.concat_arrays(lists) if lists else None,
        broken=next((block.broken for block in blocks if block.broken is not None), None),
    )


def _joined(columns: Sequence[Column]) -> Column:
    begins = np.cumsum([0, *(len(column.values) for column in columns)])[:-1]
    codes = [column.codes + begin for column, begin in zip(columns, begins, strict=True)]
    return Column([value for column in columns for value in column.values], np.concatenate(codes).astype(np.int32))


Transactions = Callable[[scan.Bytes, Int64, Int64, int], pa.ListArray]
"""Takes a text, places in it and its syntax, and gives those that are plainly transactions; null for others."""


class Reader(Protocol):
    """Reads one kind of text."""

    def read(self, block: bytes, *, final: bool) -> tuple[OperationColumns, int]:
        """The operations that end in the block, and where the text goes on behind them."""


class Others(Protocol):
    """Reads what is no plain operation."""

    def one(self, text: bytes, at: int, *, final: bool) -> tuple[int, Row | None]:
        """One thing; where the text goes on, and the operation, if it was one. Raises BrokenText, CutOff."""

    def end(self, at: int) -> None:
        """The text ends. Raises Unfinished if something lacks its end."""


class Values(dict[bytes, Any]):
    """The value of each text that a field may have; a bounded number of them is remembered."""

    def __init__(self, parse: Callable[[bytes], Any]) -> None:
        super().__init__()
        self._parse = parse

    def __missing__(self, text: bytes) -> Any:
        value = self._parse(text) if text else None
        if len(self) < REMEMBERED:
            self[text] = value
        return value


class MapReader:
    """Reads maps: plain ones by scanning, all else by a parser."""

    def __init__(
        self, syntax: int, others: Others, parse: Callable[[bytes], Any], transactions: Transactions | None = None
    ) -> None:
        self._syntax = syntax
        self._others = others
        self._values = Values(parse)
        self._transactions = transactions

    def read(self, block: bytes, *, final: bool) -> tuple[OperationColumns, int]:
        text = np.frombuffer(block, np.uint8)
        spans = Spans.of(block.count(b"{") + 1)
        parsed: dict[int, Row] = {}
        at = rows = 0
        broken: BrokenText | None = None
        cut_off: Unfinished | None = None
        try:
            while True:
                at, rows = spans.scan(text, at, rows, self._syntax)
                if at == len(block):
                    break
                went_to, row = self._others.one(block, at, final=final)
                if row is not None:
                    spans.blank(rows, at)
                    parsed[rows] = row
                    rows += 1
                at = went_to
            if final:
                self._others.end(at)
        except CutOff:
            pass
        except Unfinished as error:
            # Where another operation begins behind it, a bracket or a quote lacks its end, and not the text.
            broken, cut_off = (error, None) if b"\n{" in block[error.at + 1 :] else (None, error)
        except BrokenText as error:
            broken = error
        value = TEXTS.index("value")
        transactions = None
        if self._transactions is not None:
            begin, end = spans.begin[:rows, value], spans.end[:rows, value]
            transactions = self._transactions(text, begin, end, self._syntax)
            # Nobody is to read them again.
            end[transactions.is_valid()] = begin[transactions.is_valid()]
        recorded = _recorded(text, spans, rows, parsed, self._values, broken)
        return _with_transactions(replace(recorded, cut_off=cut_off), transactions), at


def _recorded(
    text: scan.Bytes, spans: Spans, rows: int, parsed: Mapping[int, Row], values: Values, broken: BrokenText | None
) -> OperationColumns:
    at = spans.at[:rows]
    fields = {}
    for number, name in enumerate(TEXTS):
        begin, end = spans.begin[:rows, number], spans.end[:rows, number]
        if not (end > begin).any():
            column, unreadable = Column([None], np.zeros(rows, np.int32)), None
        else:
            column, unreadable = column_of(texts_of(text, begin, end), values)
        fields[name] = _with(column, {row: operation[name] for row, operation in parsed.items() if name in operation})
        if unreadable is not None:
            broken = earlier(broken, int(at[unreadable[0]]), unreadable[1])
    numbers = {name: spans.numbers[:rows, number] for number, name in enumerate(NUMBERS)}
    odd = {}
    for row, operation in parsed.items():
        for name in NUMBERS:
            stated = operation.get(name)
            if isinstance(stated, int) and not isinstance(stated, bool) and ABSENT < stated <= -(ABSENT + 1):
                numbers[name][row] = stated
            elif stated is not None:
                odd[row] = (name, stated)
    return OperationColumns(at=at, fields=fields, numbers=numbers, odd=odd, broken=broken).before_broken()


def _with_transactions(recorded: OperationColumns, transactions: pa.ListArray | None) -> OperationColumns:
    if transactions is None or transactions.null_count == len(transactions):
        return recorded
    transactions = transactions[: len(recorded)]
    value = recorded.fields["value"]
    codes = np.where(transactions.is_valid(), len(value.values), value.codes).astype(np.int32)
    value = Column([*value.values, A_TRANSACTION], codes)
    return replace(recorded, fields={**recorded.fields, "value": value}, transactions=transactions)


def column_of(texts: pa.DictionaryArray, values: Values) -> tuple[Column, tuple[int, str] | None]:
    """The column, and the first row whose text cannot be read, with the reason."""
    codes = texts.indices.to_numpy()
    found = _integers(texts.dictionary) if len(texts.dictionary) > FEW else [None] * len(texts.dictionary)
    unreadable = None
    for number, text in enumerate(texts.dictionary.to_pylist() if None in found else ()):
        if found[number] is not None:
            continue
        try:
            found[number] = values[text]
        except BrokenText as error:
            row = int(np.argmax(codes == number))
            unreadable = (row, error.reason) if unreadable is None or row < unreadable[0] else unreadable
    return Column(found or [None], codes), unreadable


def _integers(texts: pa.BinaryArray) -> list[int | None]:
    """What is made of few digits, all at once; None for all else."""
    digits = pc.if_else(pc.less_equal(pc.binary_length(texts), DIGITS), texts, None)
    try:
        digits = digits.cast(pa.string())
        integers: list[int | None] = pc.if_else(pc.ascii_is_decimal(digits), digits, None).cast(pa.int64()).to_pylist()
    except pa.ArrowInvalid:  # not UTF-8
        return [None] * len(texts)
    return integers


def earlier(broken: BrokenText | None, at: int, reason: str) -> BrokenText:
    """The first of two places."""
    return BrokenText(at, reason) if broken is None or at < broken.at else broken


def texts_of(text: scan.Bytes, begin: Int64, end: Int64) -> pa.DictionaryArray:
    """The texts of one field; empty where an operation has none."""
    bounds, together = scan.gathered(text, begin, end)
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(together)]
    return pa.Array.from_buffers(pa.binary(), len(begin), buffers).dictionary_encode()


def _with(column: Column, cells: Mapping[int, Any]) -> Column:
    """The same with other values in some rows."""
    if not cells:
        return column
    codes = column.codes.copy()
    codes[list(cells)] = np.arange(len(column.values), len(column.values) + len(cells))
    return Column([*column.values, *cells.values()], codes)
