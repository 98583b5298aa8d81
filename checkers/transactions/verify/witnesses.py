"""Anomalies that a few reads show by themselves, whatever the order of transactions.

The certificate names the key and the transactions. Which of them did what is found out here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from checkers.transactions.verify.demands import Demand, Family
from checkers.transactions.verify.history import WORD, Refuted, TransactionHistory, Value

AT_MOST = 1_000
"""The most transactions that an anomaly names."""


def require_witness(history: TransactionHistory, demand: Demand, found: Any) -> None:
    """Raises Refuted unless these transactions show this anomaly, and the model forbids it."""
    if not isinstance(found, dict):
        raise Refuted("the anomaly is none")
    name, named = found.get("name"), found.get("transactions")
    if not isinstance(name, str) or name not in _RULES:
        raise Refuted(f"nothing is known of an anomaly {name!r}")
    if not forbids(demand, name):
        raise Refuted(f"this model does not forbid {name}")
    if not isinstance(named, list) or not 0 < len(named) <= AT_MOST:
        raise Refuted("the anomaly names no transactions")
    history.require_unique_writes()
    key = history.key_named(found.get("key"))
    deeds = [_deeds(history, key, number) for number in sorted({history.named(one) for one in named})]
    if not _RULES[name].is_shown(_Among(history=history, key=key, deeds=deeds)):
        raise Refuted(f"these transactions do not show {name}")


def forbids(demand: Demand, name: str) -> bool:
    """Whether no history that the model allows shows this anomaly."""
    return _RULES[name].forbidden(demand)


@dataclass(frozen=True, kw_only=True)
class _Deeds:
    """The operations of one transaction on the key."""

    number: int
    ok: bool
    failed: bool
    wrote: list[int]
    reads: list[tuple[list[int], list[int]]]
    """By read: (what the transaction had written itself by then, what the read showed: elements, or at most one
    value)."""


@dataclass(frozen=True, kw_only=True)
class _Among:
    history: TransactionHistory
    key: int
    deeds: list[_Deeds]

    def pairs(self) -> Iterable[tuple[_Deeds, _Deeds]]:
        """All pairs of two different transactions."""
        return ((one, other) for one in self.deeds for other in self.deeds if one is not other)

    def written(self) -> set[int]:
        """All values that any transaction wrote to the key, also failed ones."""
        wrote = self.history.is_write & (self.history.key == self.key)
        return set(self.history.value.filter(np.asarray(wrote)).to_pylist())


def _deeds(history: TransactionHistory, key: int, number: int) -> _Deeds:
    wrote: list[int] = []
    reads: list[tuple[list[int], list[int]]] = []
    for is_write, of, shown in history.operations(number):
        if of == key and not is_write:
            reads.append((list(wrote), elements(shown)))
        elif of == key and isinstance(shown, int):
            wrote.append(shown)
    return _Deeds(
        number=number, ok=bool(history.ok[number]), failed=bool(history.failed[number]), wrote=wrote, reads=reads
    )


def elements(value: Value) -> list[int]:
    """The elements that a read showed."""
    if isinstance(value, bytes):
        return [int.from_bytes(value[at : at + WORD], "little", signed=True) for at in range(0, len(value), WORD)]
    return [] if value is None else [value]


def _aborted_read(among: _Among) -> bool:
    return any(
        writer.failed and not set(writer.wrote).isdisjoint(shown)
        for reader, writer in among.pairs()
        for _, shown in reader.reads
    )


def _intermediate_read(among: _Among) -> bool:
    """A read of a value that its transaction overwrote; for lists, a read that ends in it."""
    return any(
        bool(shown) and shown[-1] in writer.wrote[:-1] for reader, writer in among.pairs() for _, shown in reader.reads
    )


def _garbage_read(among: _Among) -> bool:
    shown = {value for reader in among.deeds for _, values in reader.reads for value in values}
    return not shown <= among.written()


def _future_read(among: _Among) -> bool:
    return any(
        value in reader.wrote and value not in own
        for reader in among.deeds
        for own, shown in reader.reads
        for value in shown
    )


def _internal(among: _Among) -> bool:
    return any(_contradicts_itself(reader.reads, among.history.lists) for reader in among.deeds)


def _contradicts_itself(reads: list[tuple[list[int], list[int]]], lists: bool) -> bool:
    for at, (own, shown) in enumerate(reads):
        if own and shown[-len(own) if lists else -1 :] != (own if lists else own[-1:]):
            return True
        for own_then, shown_then in reads[:at]:
            if lists and shown != shown_then + own[len(own_then) :]:
                return True
            if not lists and own == own_then and shown != shown_then:
                return True
    return False


def _lost_update(among: _Among) -> bool:
    """Two transactions read the same version, and both then wrote the key."""
    versions = [
        version
        for one in among.deeds
        if one.ok and one.wrote
        for version in {tuple(shown) for own, shown in one.reads if not own}
    ]
    return len(versions) > len(set(versions))


def _duplicate_elements(among: _Among) -> bool:
    return any(len(shown) > len(set(shown)) for reader in among.deeds for _, shown in reader.reads)


def _incompatible_order(among: _Among) -> bool:
    lists = [shown for reader in among.deeds for _, shown in reader.reads]
    return any(a != b for one in lists for other in lists for a, b in zip(one, other, strict=False))


def _dirty_update(among: _Among) -> bool:
    """In the longest list that was read, an element of a failed transaction comes before one of another transaction."""
    place = {element: at for at, element in enumerate(among.history.longest.get(among.key, []))}
    return any(
        dirty.failed and not clean.failed and place.get(one, len(place)) < place.get(other, -1)
        for dirty, clean in among.pairs()
        for one in dirty.wrote
        for other in clean.wrote
    )


def _always(demand: Demand) -> bool:
    return True


def _if_committed(demand: Demand) -> bool:
    """Whether the model demands that only committed values are read, and only those that a transaction wrote last."""
    return demand.family is not Family.WRITES


@dataclass(frozen=True, kw_only=True)
class _Rule:
    is_shown: Callable[[_Among], bool]
    forbidden: Callable[[Demand], bool] = _always


_RULES: Mapping[str, _Rule] = {
    "G1a": _Rule(is_shown=_aborted_read, forbidden=_if_committed),
    "G1b": _Rule(is_shown=_intermediate_read, forbidden=_if_committed),
    "garbage-read": _Rule(is_shown=_garbage_read),
    "future-read": _Rule(is_shown=_future_read, forbidden=_if_committed),
    "internal": _Rule(is_shown=_internal, forbidden=lambda demand: demand.atomic),
    "lost-update": _Rule(is_shown=_lost_update, forbidden=lambda demand: demand.forbids_lost_updates),
    "duplicate-elements": _Rule(is_shown=_duplicate_elements),
    "incompatible-order": _Rule(is_shown=_incompatible_order, forbidden=_if_committed),
    "dirty-update": _Rule(is_shown=_dirty_update, forbidden=_if_committed),
}
