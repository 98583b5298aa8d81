"""The versions of each key in an order of transactions, and the writers that its reads show, as commit orders need
them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from checkers.transactions.verify.history import INITIAL, WORD, Operation, Refuted, TransactionHistory

Read = tuple[int, int]
"""(key, the position in the order of the transaction whose write the read shows, or INITIAL)."""


@dataclass(kw_only=True)
class Versions:
    """The writers of one key in the order, by their positions in it."""

    writers: list[int] = field(default_factory=list)
    of_value: dict[int, int] = field(default_factory=dict)
    """Value of a register -> its writer, for last writes."""
    elements: bytearray = field(default_factory=bytearray)
    """The elements of a list at the end."""
    appended_by: list[int] = field(default_factory=list)
    """The writer of each element of a list."""


@dataclass(frozen=True, kw_only=True)
class OrderedTransactions:
    """Transactions by their positions in an order: what each read from others, and which keys it wrote."""

    reads: Sequence[Sequence[Read]]
    writes: Sequence[Sequence[int]]
    versions: dict[int, Versions]


def ordered_transactions(history: TransactionHistory, numbers: Sequence[int], *, atomic: bool) -> OrderedTransactions:
    """The transactions in this order. Raises Refuted if a read shows a write that is not in the order, or only behind
    the reader."""
    versions: dict[int, Versions] = defaultdict(Versions)
    writes: list[tuple[int, ...]] = []
    for position, (_, operations) in enumerate(history.walk(numbers)):
        last = {key: value for is_write, key, value in operations if is_write}
        writes.append(tuple(last))
        for key, value in last.items():
            versions[key].writers.append(position)
            assert isinstance(value, int)
            versions[key].of_value[value] = position
        if history.lists:
            for is_write, key, value in operations:
                if is_write and isinstance(value, int):
                    versions[key].elements += value.to_bytes(WORD, "little", signed=True)
                    versions[key].appended_by.append(position)
    reads: list[list[Read]] = []
    for position, (number, operations) in enumerate(history.walk(numbers)):
        shown = _shown_of_list if history.lists else _shown_of_register
        reads.append(list(shown(history, versions, position, number, operations, atomic)))
        for key, writer in reads[-1]:
            if writer > position:
                raise Refuted(
                    f"{history.name(number)} read {history.keys[key]} from {history.name(numbers[writer])}, "
                    "which the order puts behind it"
                )
    return OrderedTransactions(reads=reads, writes=writes, versions=dict(versions))


def _shown_of_register(
    history: TransactionHistory,
    versions: dict[int, Versions],
    position: int,
    number: int,
    operations: Sequence[Operation],
    atomic: bool,
) -> Iterator[Read]:
    own: dict[int, int] = {}
    for is_write, key, value in operations:
        if is_write and isinstance(value, int):
            own[key] = value
        elif key in own:
            if atomic and value != own[key]:
                raise Refuted(
                    f"{history.name(number)} read {value!r} of {history.keys[key]}, having written {own[key]}"
                )
        elif value is None:
            yield key, INITIAL
        else:
            writer = versions[key].of_value.get(value) if isinstance(value, int) else None
            if writer is None or writer == position:
                raise Refuted(
                    f"{history.name(number)} read {value!r} of {history.keys[key]}, which no other transaction of the "
                    "order left there"
                )
            yield key, writer


def _shown_of_list(
    history: TransactionHistory,
    versions: dict[int, Versions],
    position: int,
    number: int,
    operations: Sequence[Operation],
    atomic: bool,
) -> Iterator[Read]:
    own: dict[int, bytearray] = {}
    for is_write, key, value in operations:
        if is_write and isinstance(value, int):
            own.setdefault(key, bytearray()).extend(value.to_bytes(WORD, "little", signed=True))
            continue
        assert isinstance(value, bytes)
        mine = own.get(key, b"")
        if atomic and not value.endswith(mine):
            raise Refuted(f"{history.name(number)} did not read of {history.keys[key]} what it had appended itself")
        if not versions[key].elements.startswith(value):
            raise Refuted(f"{history.name(number)} read a list of {history.keys[key]} that is none in this order")
        if mine:
            continue
        size = len(value) // WORD
        appended_by = versions[key].appended_by
        if not size:
            yield key, INITIAL
            continue
        if appended_by[size - 1] == position or appended_by[size - 1 : size] == appended_by[size : size + 1]:
            raise Refuted(f"{history.name(number)} read a list of {history.keys[key]} that nobody left there")
        yield key, appended_by[size - 1]
