"""A small key-value store on a Raft log: linearizable, every value a JSON value.

Commands are decided when they are applied, alike on every node, so any number of them may be under
way at once. A `get` is no command: it waits for a read barrier and then looks. So does a transaction that only reads.

A transaction is a list of micro-operations, carried out at one moment and in their order:
    ["r", key, null]           shows the key's value, null if it is not there
    ["w", key, value]
    ["append", key, element]   to a list, which begins empty
    ["add", key, amount]       to a whole number, which begins at 0; shows the sum
It may have a guard, [[key, least], …]: all of it is refused unless each of these numbers is at least that much.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from system_under_test.remoting.json_body import decode_json

MAX_OPERATIONS = 1024
"""How many operations, and how many keys of a guard, one transaction may have."""


class MalformedCommand(ValueError):
    """A command that could not be applied; refused before it is proposed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    succeeded: bool
    """False for a compare-and-set that found another value, and for a transaction that its guard refused."""
    value: Any
    """What a compare-and-set found; a transaction's operations with what they show; None of a put or a refusal."""


def put(key: str, value: Any) -> bytes:
    return _dump({"put": [key, value]})


def compare_and_set(key: str, expected: Any, value: Any) -> bytes:
    """`expected` None: the key is not there."""
    return _dump({"cas": [key, expected, value]})


def transaction(operations: list[list[Any]], guard: list[list[Any]] | None = None) -> bytes:
    return _dump({"guarded": [guard, operations]} if guard else {"txn": operations})


def only_reads(command: bytes) -> bool:
    """Of a command that `check` accepts: a transaction that changes nothing."""
    ((kind, arguments),) = json.loads(command.decode()).items()
    return kind == "txn" and all(operation[0] == "r" for operation in arguments)


def _dump(command: dict[str, Any]) -> bytes:
    return json.dumps(command, separators=(",", ":")).encode()


def check(command: bytes) -> None:
    """Raises MalformedCommand unless `apply` will understand it."""
    try:
        ((kind, arguments),) = decode_json(command).items()
    except (ValueError, AttributeError) as error:
        raise MalformedCommand(f"no command: {error!r}") from error
    if kind in ("put", "cas"):
        expected = 2 if kind == "put" else 3
        if not isinstance(arguments, list) or len(arguments) != expected or not isinstance(arguments[0], str):
            raise MalformedCommand(f"{kind}: expected a key and {expected - 1} values, got {arguments!r}")
        return
    if kind == "guarded" and isinstance(arguments, list) and len(arguments) == 2:
        _check_guard(arguments[0])
        _check_operations(arguments[1])
    elif kind == "txn":
        _check_operations(arguments)
    else:
        raise MalformedCommand(f"expected put, cas, txn, or guarded with a guard and a txn, got {kind!r}")


def _check_guard(guard: Any) -> None:
    if not isinstance(guard, list) or len(guard) > MAX_OPERATIONS:
        raise MalformedCommand(f"expected a guard of at most {MAX_OPERATIONS} keys")
    for demand in guard:
        is_pair = isinstance(demand, list) and len(demand) == 2
        if not is_pair or not isinstance(demand[0], str) or type(demand[1]) is not int:
            raise MalformedCommand(f"expected [key, least number], got {demand!r}")


def _check_operations(operations: Any) -> None:
    if not isinstance(operations, list) or len(operations) > MAX_OPERATIONS:
        raise MalformedCommand(f"expected a list of at most {MAX_OPERATIONS} operations")
    for operation in operations:
        is_triple = isinstance(operation, list) and len(operation) == 3
        if not is_triple or operation[0] not in ("r", "w", "append", "add") or not isinstance(operation[1], str):
            raise MalformedCommand(f'expected ["r", "w", "append" or "add", key, value], got {operation!r}')
        if operation[0] == "add" and type(operation[2]) is not int:
            raise MalformedCommand(f"add takes a whole number, got {operation[2]!r}")


class KeyValueStore:
    def __init__(self) -> None:
        self._values: dict[str, Any] = {}

    def get(self, key: str) -> Any:
        """None if it is not there."""
        return self._values.get(key)

    def items(self) -> list[tuple[str, Any]]:
        """All keys, sorted, with their values."""
        return sorted(self._values.items())

    def become(self, items: Iterable[tuple[str, Any]]) -> None:
        self._values = dict(items)

    def apply(self, command: bytes) -> Result:
        ((kind, arguments),) = json.loads(command.decode()).items()
        if kind == "put":
            key, value = arguments
            self._values[key] = value
            return Result(succeeded=True, value=None)
        if kind == "cas":
            key, expected, value = arguments
            found = self._values.get(key)
            if found != expected:
                return Result(succeeded=False, value=found)
            self._values[key] = value
            return Result(succeeded=True, value=found)
        if kind == "guarded":
            guard, arguments = arguments
            if not all(self._number(key) >= least for key, least in guard):
                return Result(succeeded=False, value=None)
        return Result(succeeded=True, value=[self._operate(*operation) for operation in arguments])

    def _operate(self, kind: str, key: str, argument: Any) -> list[Any]:
        if kind == "r":
            return [kind, key, self._values.get(key)]
        shown = argument
        if kind == "append":
            found = self._values.get(key)
            # A new list each time: the old one may be part of a result that is still to be sent.
            self._values[key] = [*(found if isinstance(found, list) else []), argument]
        elif kind == "add":
            self._values[key] = shown = self._number(key) + argument
        else:
            self._values[key] = argument
        return [kind, key, shown]

    def _number(self, key: str) -> int:
        found = self._values.get(key)
        return found if isinstance(found, int) else 0
