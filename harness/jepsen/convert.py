"""A foreign history becomes one of ours: in one pass, in bounded memory, refusing what is no history.

Claims of what it writes: it passes `read_history`, and says the same. Processes get numbers of their
own, a new one after each operation of unknown outcome, for the old one may still be running; what `:nemesis` did is
the nemesis'. Operations without a time get their place in the order recorded, which decides also where times run back.
Rows of clients that are part of no operation become the nemesis', by names that no workload has. What decides nothing
is counted (`record.history.passed_over`). What values mean says `values`.

Memory is bounded by one block of text, and some words for each process that ever took part.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from harness.errors import HarnessError
from harness.jepsen import edn, json_text, scan, source
from harness.jepsen.batches import Batches
from harness.jepsen.beside import Beside
from harness.jepsen.notations import FINAL_READ, renamed
from harness.jepsen.operation_columns import MapReader, OperationColumns, Reader, Transactions
from harness.jepsen.shape import Shape
from harness.jepsen.source import LONGEST_BYTES, BrokenText, Unfinished
from harness.jepsen.textual import LineReader
from harness.jepsen.time_order import by_time
from harness.jepsen.transactions import MICRO_OPERATION, plain_transactions, plain_transactions_of_registers
from harness.record.history.parquet import parquet_file
from harness.record.history.schema import MalformedHistory

BLOCKS_KEPT = 16
"""How many blocks of text are held at most before the first row is made: most histories show in the first one whether
values are lifted."""
_BETWEEN = rb"(?:[\s,]|;[^\n]*\n)*"
_JSON = re.compile(rb'[\s,]*(?:\[\s*)?\{\s*"(?:[^"\\]|\\.)*"\s*:')
_EDN = re.compile(_BETWEEN + rb'(?:[\[({#"]|\Z)')


def transactions_of(shape: Shape) -> Transactions | None:
    """How values that are plainly transactions are read, where the history has such."""
    at = shape.value_type.get_field_index("txn")
    is_plain = at >= 0 and shape.value_type.field(at).type.equals(pa.list_(MICRO_OPERATION))
    if not is_plain:
        return None
    shows_lists = not shape.any_values or bool(shape.lists)
    return plain_transactions if shows_lists else plain_transactions_of_registers


def convert(path: Path, parquet: Path, shape: Shape, beside: Beside | None = None) -> int:
    """Write the history as Parquet; returns the number of its rows. `beside` is filled with what else it holds.

    Raises MalformedHistory with place and reason, HarnessError where a file cannot be read or written.
    """
    batches = Batches(shape)
    with _converting(path), parquet_file(parquet, batches.schema) as writer:
        for batch in _read(path, shape, batches, beside or Beside()):
            writer.write_batch(batch)
        writer.add_key_value_metadata(batches.metadata())
    return batches.rows


def held(path: Path, shape: Shape, beside: Beside | None = None) -> pa.Table:
    """The rows that `convert` writes, in memory. Raises as it does."""
    batches = Batches(shape)
    with _converting(path):
        rows = pa.Table.from_batches(_read(path, shape, batches, beside or Beside()), batches.schema)
    return rows.unify_dictionaries().combine_chunks().replace_schema_metadata(batches.metadata())


@contextmanager
def _converting(path: Path) -> Iterator[None]:
    """Raises HarnessError for OSError."""
    try:
        yield
    except OSError as error:
        raise HarnessError(f"history {path} cannot be converted: {error.strerror or error}") from error


def _read(path: Path, shape: Shape, batches: Batches, beside: Beside) -> Iterator[pa.RecordBatch]:
    """Raises MalformedHistory, OSError."""
    try:
        for recorded in _once_learnt(_by_its_names(recorded_in(path, transactions_of(shape)), shape), batches):
            before = batches.rows
            try:
                batch = batches.batch(recorded)
            except UnicodeEncodeError:
                raise _no_text(path, before, recorded) from None
            beside.take(recorded, batch.column("time").to_numpy())
            if recorded.cut_off is not None:
                where = source.place(path, recorded.cut_off.at)
                beside.passed_over.append(f"what stands from {where} on ({recorded.cut_off.reason})")
            yield batch
    except BrokenText as broken:
        raise malformed(path, batches.rows, broken) from None
    refused = batches.nothing_of_its_own()
    if refused is not None:
        raise malformed(path, *refused)
    yield from batches.unfinished()


def _by_its_names(blocks: Iterator[OperationColumns], shape: Shape) -> Iterator[OperationColumns]:
    if shape.by_time:
        blocks = iter([by_time(blocks)])
    functions, has_final_reads = dict(shape.renamed), FINAL_READ in shape.functions
    for recorded in blocks:
        plain = not functions and not has_final_reads
        yield recorded if plain else renamed(recorded, functions, has_final_reads=has_final_reads)


def _once_learnt(blocks: Iterator[OperationColumns], batches: Batches) -> Iterator[OperationColumns]:
    """The same, of which the first are kept until they show whether values are lifted. Raises OSError, BrokenText."""
    kept: list[OperationColumns] = []
    broken = None
    try:
        for recorded in blocks:
            kept.append(recorded)
            if batches.learn(recorded) or len(kept) == BLOCKS_KEPT:
                break
    except BrokenText as error:
        broken = error
    batches.settle()
    yield from kept
    if broken is not None:
        raise broken
    yield from blocks


def located(path: Path, found: MalformedHistory) -> MalformedHistory:
    """The same with its place in the text, of a history that was converted. Raises OSError, BrokenText."""
    if found.position is None:
        return found
    rows = 0
    for recorded in recorded_in(path):
        if found.position < rows + len(recorded):
            at = int(recorded.at[found.position - rows])
            return malformed(path, found.position, BrokenText(at, found.reason))
        rows += len(recorded)
    return found


def recorded_in(
    path: Path, transactions: Transactions | None = None, first_bytes: int = source.BLOCK_BYTES
) -> Iterator[OperationColumns]:
    """The operations of the file, a block at a time, of which each is twice as long as the one before, from
    `first_bytes` up to BLOCK_BYTES. Of a text that is cut off all before that. Raises OSError, BrokenText."""
    with source.opened(path) as text:
        head = text.read(source.SNIFFED_BYTES)
        at = source.length_of_mark(head)
        rest, final, whole = head[at:], False, 0
        reader = _reader(rest, transactions)
        block_bytes = first_bytes
        while not final:
            size = max(block_bytes, len(rest))
            block_bytes = min(2 * block_bytes, source.BLOCK_BYTES)
            more = text.read(size)
            final = len(more) < size
            block = rest + more
            recorded, used = reader.read(block, final=final)
            if text.is_cut_off:
                where = used if recorded.cut_off is None else recorded.cut_off.at
                recorded = replace(recorded, cut_off=Unfinished(where, "the packed file is cut off"))
            recorded = recorded.from_byte(at)
            whole += len(recorded)
            if recorded.cut_off is not None and not whole:
                raise recorded.cut_off
            yield recorded
            if recorded.broken is not None:
                raise recorded.broken
            at, rest = at + used, block[used:]
            if len(rest) > LONGEST_BYTES:
                raise BrokenText(at, f"an operation is longer than {LONGEST_BYTES >> 20} MiB")


def _reader(head: bytes, transactions: Transactions | None) -> Reader:
    """Seen from the first characters that are no comment."""
    if _JSON.match(head):
        return MapReader(scan.JSON, json_text.Objects(), json_text.parse, transactions)
    if _EDN.match(head):
        return MapReader(scan.EDN, edn.Forms(), edn.parse, transactions)
    return LineReader()


def _no_text(path: Path, before: int, recorded: OperationColumns) -> MalformedHistory:
    """At the first operation that has a string which no file can hold. Raises OSError."""
    rows = [len(recorded) - 1]
    for column in recorded.fields.values():
        broken = [number for number, value in enumerate(column.values) if any(map(_is_halved, _strings(value)))]
        rows += np.flatnonzero(np.isin(column.codes, broken))[:1].tolist()
    first = min(rows)
    return malformed(path, before + first, BrokenText(int(recorded.at[first]), "half of a surrogate pair is no text"))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.items():
            yield from _strings(item)
    elif isinstance(value, Iterable):
        for item in value:
            yield from _strings(item)


def _is_halved(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def malformed(path: Path, row: int, broken: BrokenText) -> MalformedHistory:
    """With lines and columns, which are counted now. Raises OSError."""
    # A file whose text cannot even be begun has no other place.
    begun = source.place(path, broken.at) if broken.at else source.TextPosition(byte=0, line=1, column=1)
    reason = broken.reason
    if broken.fault != broken.at:
        reason += f" at {source.place(path, broken.fault)}"
    return MalformedHistory(row, reason, path=path, line=begun.line, column=begun.column, byte=begun.byte)
