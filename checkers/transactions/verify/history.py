"""The transactions of a history, read anew from its Parquet file with code of the verification's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

Integers = npt.NDArray[np.int64]

INITIAL = -1
"""The initial transaction, which comes first; also its history index."""

WORD = 8
"""How many bytes an element has. A list is held as the bytes of its elements, which compare fast."""

AT_ONCE = 50_000

DIGITS = 20
"""More digits than any index has."""

Value = int | bytes | None
Operation = tuple[bool, int, Value]
"""(whether it is a write, the number of its key, the value or the bytes of the list)."""


class Refuted(Exception):
    """The certificate does not hold, and why."""


@dataclass(frozen=True, kw_only=True)
class TransactionHistory:
    """Transactions of clients, numbered in the order of their invocations, and all their operations, one transaction
    after the other. Reads of a transaction that did not complete with ok, or without an answer, are left out."""

    lists: bool
    """Whether the keys hold lists; if not, they are registers."""
    start: Integers
    end: Integers
    """The history index of the completion; a number beyond all indices if there is none."""
    process: Integers
    ok: npt.NDArray[np.bool_]
    failed: npt.NDArray[np.bool_]
    first: Integers
    """Operations of t are first[t]:first[t + 1]."""
    is_write: npt.NDArray[np.bool_]
    key: Integers
    keys: Sequence[str]
    value: pa.Array
    bytes_of_lists: memoryview
    list_first: Integers
    """The elements of the list that an operation read are list_first[i]:list_first[i + 1]."""

    def __len__(self) -> int:
        return len(self.start)

    @cached_property
    def number(self) -> dict[int, int]:
        """The number of each transaction, by the history index of its invocation."""
        return {start: number for number, start in enumerate(self.start.tolist())}

    @cached_property
    def key_number(self) -> dict[str, int]:
        return {key: number for number, key in enumerate(self.keys)}

    @cached_property
    def transaction(self) -> Integers:
        """The transaction of each operation."""
        return np.repeat(np.arange(len(self)), np.diff(self.first))

    def named(self, name: Any) -> int:
        """The number of the transaction that a certificate means. Raises Refuted."""
        if type(name) is not int or name not in self.number:
            raise Refuted(f"{name!r} is not the history index of an invocation")
        return self.number[name]

    def named_in(self, text: str) -> int:
        """The number of the transaction with this name in digits. Raises Refuted."""
        if not text.isdecimal() or len(text) > DIGITS:
            raise Refuted(f"{text!r} is not the history index of an invocation")
        return self.named(int(text))

    def key_named(self, name: Any) -> int:
        if not isinstance(name, str) or name not in self.key_number:
            raise Refuted(f"no transaction has a key {name!r}")
        return self.key_number[name]

    def name(self, transaction: int) -> str:
        return "the initial transaction" if transaction == INITIAL else str(int(self.start[transaction]))

    def operations(self, transaction: int) -> list[Operation]:
        return next(self.walk([transaction]))[1]

    def walk(self, order: Iterable[int]) -> Iterator[tuple[int, list[Operation]]]:
        """These transactions with their operations."""
        whole = np.fromiter(order, dtype=np.int64)
        for begin in range(0, len(whole), AT_ONCE):
            some = whole[begin : begin + AT_ONCE]
            sizes = self.first[some + 1] - self.first[some]
            behind = np.cumsum(sizes)
            at = np.repeat(self.first[some] - behind + sizes, sizes) + np.arange(behind[-1])
            value = self.value.take(pa.array(at)).to_pylist()
            write, key, numbers = self.is_write[at].tolist(), self.key[at].tolist(), at.tolist()
            low = 0
            for transaction, high in zip(some.tolist(), behind.tolist(), strict=True):
                yield (
                    transaction,
                    [
                        (write[i], key[i], value[i] if write[i] or not self.lists else self.list_at(numbers[i]))
                        for i in range(low, high)
                    ],
                )
                low = high

    def list_at(self, operation: int) -> bytes:
        low, high = self.list_first[operation], self.list_first[operation + 1]
        return self.bytes_of_lists[WORD * low : WORD * high].tobytes()

    @cached_property
    def longest(self) -> dict[int, list[int]]:
        """key -> a longest list that was read of it."""
        reads = np.flatnonzero(~self.is_write)
        size = np.diff(self.list_first)[reads]
        order = np.lexsort((-reads, size, self.key[reads]))
        last = order[np.append(np.diff(self.key[reads][order]) != 0, True)] if len(order) else order
        return {
            int(self.key[reads[i]]): np.frombuffer(self.list_at(int(reads[i])), dtype=np.int64).tolist() for i in last
        }

    def require_unique_writes(self) -> None:
        """Raises Refuted if a value was written to a key twice: then no read shows which write it is from."""
        writes = np.flatnonzero(self.is_write)
        value = self.value.take(pa.array(writes))
        if value.null_count:
            raise Refuted("null was written")
        key, value = self.key[writes], value.to_numpy()
        order = np.lexsort((value, key))
        again = (np.diff(key[order]) == 0) & (np.diff(value[order]) == 0)
        if again.any():
            at = order[int(np.argmax(again))]
            raise Refuted(f"{self.keys[key[at]]} was written as {value[at]} more than once")


def read_history(path: Path, *, lists: bool) -> TransactionHistory:
    """The transactions in a file. Raises OSError, ValueError (of Arrow) for a file that is not Parquet, and Refuted for
    a history of something else."""
    rows = pq.read_table(path, columns=["index", "process", "type", "key", "value"])
    index, process = _integers(rows["index"]), _integers(rows["process"])
    kind = np.array(_plain(rows["type"]).to_pylist(), dtype=object)
    order = np.lexsort((index, process))
    order = order[process[order] >= 0]
    invoked = kind[order] == "invoke"
    begun = np.flatnonzero(invoked)
    after = np.minimum(begun + 1, len(order) - 1) if len(order) else begun
    answered = (process[order[after]] == process[order[begun]]) & ~invoked[after]
    begin, completion = order[begun], order[after]
    by_start = np.argsort(index[begin], kind="stable")
    begin, completion, answered = begin[by_start], completion[by_start], answered[by_start]

    ok = answered & (kind[completion] == "ok")
    transactions = _field(_whole(rows["value"]), "txn")
    has_answer = ok & pc.is_valid(transactions).to_numpy(zero_copy_only=False)[completion]
    parts = transactions.take(pa.array(np.where(has_answer, completion, begin)))
    sizes = pc.fill_null(pc.list_value_length(parts), 0).to_numpy(zero_copy_only=False)
    flat = parts.flatten()
    f = np.array(_field(flat, "f").to_pylist(), dtype=object)
    unknown = sorted({str(name) for name in f.tolist()} - {"r", "append" if lists else "w"})
    if unknown:
        raise Refuted(f"micro-operations of this workload are not {', '.join(unknown)}")
    transaction = np.repeat(np.arange(len(begin)), sizes)
    said = (f != "r") | has_answer[transaction]
    flat, f, transaction = flat.filter(pa.array(said)), f[said], transaction[said]
    key, keys = _keys(_field(flat, "key"), _whole(rows["key"]).take(pa.array(begin[transaction])))
    value, values = _field(flat, "value").cast(pa.int64()), _field(flat, "values")
    if pc.is_valid(value if lists else values).filter(pa.array(f == "r")).true_count:
        raise Refuted(f"something else than a {'list' if lists else 'register'} was read")
    lengths = np.zeros(len(flat), dtype=np.int64)
    elements = b""
    if lists:
        lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False).astype(np.int64)
        elements = _integers(values.flatten()).tobytes() if len(values) else b""
    return TransactionHistory(
        lists=lists,
        start=index[begin],
        end=np.where(answered, index[completion], np.iinfo(np.int64).max),
        process=process[begin],
        ok=ok,
        failed=answered & (kind[completion] == "fail"),
        first=np.concatenate([[0], np.cumsum(np.bincount(transaction, minlength=len(begin)))]).astype(np.int64),
        is_write=f != "r",
        key=key,
        keys=keys,
        value=value,
        bytes_of_lists=memoryview(elements),
        list_first=np.concatenate([[0], np.cumsum(lengths)]),
    )


def _keys(names: pa.Array, of_operations: pa.Array) -> tuple[Integers, list[str]]:
    """(the key of each micro-operation, names): if an operation has a key, its micro-operations' keys come behind
    it."""
    if of_operations.null_count < len(of_operations):
        joined = pc.binary_join_element_wise(of_operations.cast(pa.string()), names, "/")
        names = pc.coalesce(joined, names)
    encoded = names.dictionary_encode()
    if encoded.null_count:
        raise Refuted("a micro-operation has no key")
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), encoded.dictionary.to_pylist()


def _field(structs: pa.Array, name: str) -> pa.Array:
    if not pa.types.is_struct(structs.type) or structs.type.get_field_index(name) < 0:
        raise Refuted(f"values of this history have no {name!r}")
    return pc.struct_field(structs, name)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.string())


def _integers(column: pa.Array | pa.ChunkedArray) -> Integers:
    if column.null_count:
        raise Refuted("a number of the history is null")
    return np.asarray(column.cast(pa.int64()).to_numpy(), dtype=np.int64)
