"""Orders at read uncommitted: only writes are ordered, as far as reads of lists show it, and what is read was
written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from checkers.transactions.verify.history import Integers, Refuted, TransactionHistory


def require_order_of_writes(history: TransactionHistory, numbers: Sequence[int]) -> None:
    """Raises Refuted unless this is an order of writes. Lists that contradict each other show no order."""
    history.require_unique_writes()
    operation, read = _values_read(history)
    writes = np.flatnonzero(history.is_write)
    written = set(zip(history.key[writes].tolist(), history.value.take(writes).to_pylist(), strict=True))
    for key, value in set(zip(history.key[operation].tolist(), read.tolist(), strict=True)) - written:
        raise Refuted(f"{history.keys[key]} was read as {value}, which nobody wrote")
    by = np.lexsort((read, operation))
    if ((np.diff(operation[by]) == 0) & (np.diff(read[by]) == 0)).any():
        raise Refuted("a list was read with one element twice")
    longest = {key: np.array(elements, dtype=np.int64).tobytes() for key, elements in history.longest.items()}
    unordered = set()
    for _, operations in history.walk(numbers):
        unordered |= {
            key for _, key, read in operations if isinstance(read, bytes) and not longest[key].startswith(read)
        }
    place = {
        key: {element: at for at, element in enumerate(elements)}
        for key, elements in history.longest.items()
        if key not in unordered
    }
    latest: dict[int, tuple[int, int]] = defaultdict(lambda: (-1, 0))
    for number, operations in history.walk(numbers):
        appended: dict[int, list[int]] = defaultdict(list)
        for is_write, key, value in operations:
            if is_write and isinstance(value, int) and history.lists:
                appended[key].append(value)
        for key, elements in appended.items():
            if key in unordered:
                continue
            shown = place.get(key, {})
            # Elements that no read shows come behind all that are shown; writers of which none is shown come last.
            here = shown.get(elements[-1], len(shown)), int(shown.keys().isdisjoint(elements))
            if here < latest[key]:
                raise Refuted(
                    f"a list of {history.keys[key]} was read that shows another order of {history.name(number)}"
                )
            latest[key] = here


def _values_read(history: TransactionHistory) -> tuple[Integers, Integers]:
    """(operations, values) of all that transactions read, for lists one for each element."""
    if not history.lists:
        given = np.flatnonzero(~history.is_write & history.value.is_valid().to_numpy(zero_copy_only=False))
        return given, history.value.take(given).to_numpy()
    operation = np.repeat(np.arange(len(history.key)), np.diff(history.list_first))
    return operation, np.frombuffer(history.bytes_of_lists, dtype=np.int64)
