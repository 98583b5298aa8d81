"""Operations on a log as Jepsen's kafka workload writes them: what each did to queues, and where its consumer stood.

    {:f :send, :value [[:send 4 7]]}                 {:f :send, :value [[:send 4 [12 7]]]}     7 is at offset 12 of 4
    {:f :poll, :value [[:poll]]}                     {:f :poll, :value [[:poll {4 [[12 7]], 5 []}]]}
    {:f :assign, :value [4 5]}   {:f :assign, :value [4 5], :seek-to-beginning? true}   {:f :subscribe, :value [4 5]}

Sends and polls become transactions of parts, a poll as many as it shows queues of. Keys and values are whole numbers
there, and values unique in their key alone; a message is called key · 10⁹ + value, so that none is called like another.

A consumer goes on where it was unless it was put somewhere else, which `Positions` follows: a poll is `repositioned` if
the queue was not assigned to the process without a break since its last poll of it. Those of subscribers always are,
for their queues come and go. So are those after a poll that did not succeed, which may or may not have gone on. Who was
put to the beginning of its queues and has read on since reads final logs: its polls are final polls.

Polls that are written as this project's own parts say themselves whether they are repositioned, and nothing is followed
for those that do not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from harness.jepsen import edn
from harness.jepsen.processes import INVOKE, OK
from harness.jepsen.scan import POSITION
from harness.operation import NEMESIS

VALUES_OF_A_KEY = 10**9
MOST_KEYS = 9 * 10**9
"""A message is an integer of 64 bits."""

TRANSACTIONS = ("send", "poll", "txn")
POSITIONING = ("assign", "subscribe", "crash", "debug-topic-partitions")
"""What a process does to its consumer, or asks about queues; it shows nothing of them."""

PARTS = ("f", "key", "message", "offset", "messages", "from_offset", "end", "repositioned")


class NoPart(Exception):
    """What should be a part of a transaction is none."""


def is_log_part(part: pa.DataType) -> bool:
    return pa.types.is_struct(part) and {"messages", "repositioned"} <= set(part.names)


def log_parts(part: Any) -> list[dict[str, Any]]:
    """What a part did, queue by queue. Raises NoPart."""
    if isinstance(part, dict):
        if not part.keys() <= set(PARTS):
            raise NoPart(f"a part of a transaction has {', '.join(PARTS)}, it is {edn.written(part)}")
        return [{str(name): cell for name, cell in part.items()}]
    is_list = isinstance(part, tuple | list)
    if is_list and len(part) == 3 and part[0] == "send":
        offset, value = part[2] if isinstance(part[2], tuple | list) and len(part[2]) == 2 else (None, part[2])
        return [{"f": "send", "key": queue_named(part[1]), "message": _message(part[1], value), "offset": offset}]
    if is_list and part[:1] in (("poll",), ["poll"]) and len(part) == 1:
        return []
    if is_list and len(part) == 2 and part[0] == "poll" and isinstance(part[1], dict):
        return [
            {
                "f": "poll",
                "key": queue_named(key),
                "messages": [_read(key, pair) for pair in shown or ()],
                "repositioned": False,
            }
            for key, shown in part[1].items()
        ]
    expected = "[:send key value], [:send key [offset value]], [:poll] or [:poll {key [[offset value] …]}]"
    raise NoPart(f"a part of a transaction on a log must be {expected}, it is {edn.written(part)}")


def _read(key: Any, pair: Any) -> dict[str, Any]:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise NoPart(f"what a poll shows must be [offset value], it is {edn.written(pair)}")
    return {"offset": pair[0], "message": _message(key, pair[1])}


def _message(name: Any, value: Any) -> int:
    key = _number(name)
    if key.__class__ is not int or value.__class__ is not int or not 0 <= key < MOST_KEYS:
        raise NoPart(f"keys and values of a log must be whole numbers, they are {edn.written((key, value))}")
    if not 0 <= value < VALUES_OF_A_KEY:
        raise NoPart(f"values of a log must be at least 0 and less than {VALUES_OF_A_KEY}, it is {value}")
    return int(key * VALUES_OF_A_KEY + value)


def queue_named(key: Any) -> str:
    return edn.written(_number(key))


def _number(name: Any) -> Any:
    """Keys are texts of digits in JSON, and in Maelstrom's histories."""
    return int(name) if isinstance(name, str) and name.isascii() and name.isdigit() else name


class Positions:
    """Where consumers stand; a batch at a time."""

    def __init__(self) -> None:
        self._consumers: dict[int, _Consumer] = {}

    def placed(
        self,
        kinds: Sequence[int],
        processes: Sequence[int],
        fs: Sequence[str],
        recorded: Mapping[str, Sequence[Any]],
        transactions: pa.ListArray,
    ) -> pa.ListArray:
        """The transactions, with what their consumers' positions say of polls; `recorded`: fields by their names."""
        values, (seeks, rebalances) = recorded["value"], (recorded[name] for name in POSITION)
        bounds = transactions.offsets.to_pylist()
        there = transactions.is_valid().to_pylist()
        parts = transactions.values
        names, keys = parts.field("f").to_pylist(), parts.field("key").to_pylist()
        states = pc.is_valid(parts.field("repositioned")).to_numpy(zero_copy_only=False)
        moved = pc.fill_null(parts.field("repositioned"), False).to_numpy(zero_copy_only=False).copy()
        for row, (kind, process, f) in enumerate(zip(kinds, processes, fs, strict=True)):
            if process == NEMESIS or kind == INVOKE:
                continue
            consumer = self._consumers.get(process)
            if consumer is None:
                consumer = self._consumers[process] = _Consumer()
            if f in POSITIONING:
                consumer.position(f, kind == OK, values[row], seeks[row] is True)
                continue
            if kind != OK:
                if f != "send":
                    consumer.lose_place()
                continue
            polls = [at for at in range(bounds[row], bounds[row + 1]) if there[row] and names[at] == "poll"]
            changed = _rebalanced(rebalances[row])
            consumer.forget(changed)
            for at in polls:
                if keys[at] in consumer.from_beginning:
                    names[at] = "final-poll"
                moved[at] |= consumer.is_moved_to(keys[at]) and states[at]
            consumer.forget(changed)
        columns = {
            "f": pa.array(names, pa.string()),
            "repositioned": pa.array(moved, mask=~states),
        }
        arrays = [columns.get(field.name, parts.field(field.name)) for field in parts.type]
        placed = pa.StructArray.from_arrays(arrays, fields=list(parts.type))
        mask = pc.invert(transactions.is_valid())
        return pa.ListArray.from_arrays(transactions.offsets, placed, mask=mask)


def _rebalanced(log: Any) -> set[str] | None:
    """The queues whose assignment changed meanwhile; None where that may be any."""
    if not isinstance(log, tuple | list):
        return set() if log is None else None
    changed: set[str] = set()
    for event in log:
        keys = event.get("keys") if isinstance(event, dict) else None
        if not isinstance(keys, tuple | list):
            return None
        changed |= {queue_named(key) for key in keys}
    return changed


class _Consumer:
    """Of one process."""

    def __init__(self) -> None:
        self._continued: set[str] = set()
        """Queues that it goes on with where it was."""
        self._subscribes = False
        self.from_beginning: set[str] = set()
        """Queues of which it has read all from the beginning up to where it is."""

    def position(self, f: str, succeeded: bool, value: Any, to_beginning: bool) -> None:
        """It was put somewhere, or tried to be."""
        if f == "debug-topic-partitions":
            return
        keys = {queue_named(key) for key in value} if isinstance(value, tuple | list) else set()
        self._subscribes = f == "subscribe" or (self._subscribes and not succeeded)
        self._continued &= keys if f == "assign" and succeeded and not to_beginning else set()
        self.from_beginning &= self._continued
        if f == "assign" and succeeded and to_beginning:
            self.from_beginning = keys

    def lose_place(self) -> None:
        """After a poll that did not succeed."""
        self._continued = set()
        self.from_beginning = set()

    def forget(self, queues: set[str] | None) -> None:
        self._continued = set() if queues is None else self._continued - queues
        self.from_beginning = set() if queues is None else self.from_beginning - queues

    def is_moved_to(self, queue: str) -> bool:
        """Whether it polls the queue anew, rather than go on with it."""
        is_known = queue in self._continued
        if not self._subscribes:
            self._continued.add(queue)
        return not is_known
