"""A small key-value store on the controllers' Raft log: linearizable, every value a JSON value.

Commands are decided when they are applied, alike on every controller, so any number of them may be under
way at once. A `get` is no command: it waits for a read barrier and then looks.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

MAX_OPERATIONS = 1024
"""In one transaction."""


class MalformedCommand(ValueError):
    """A command that could not be applied; refused before it is proposed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    succeeded: bool
    """False only for a compare-and-set that found another value."""
    value: Any
    """What a compare-and-set found; a transaction's operations, reads with their values; None of a put."""


def put(key: str, value: Any) -> bytes:
    return _dump({"put": [key, value]})


def compare_and_set(key: str, expected: Any, value: Any) -> bytes:
    """`expected` None: the key is not there."""
    return _dump({"cas": [key, expected, value]})


def transaction(operations: list[list[Any]]) -> bytes:
    """Operations ["r", key, None] and ["append", key, element], all at once and in this order."""
    return _dump({"txn": operations})


def _dump(command: dict[str, Any]) -> bytes:
    return json.dumps(command, separators=(",", ":")).encode()


def check(command: bytes) -> None:
    """Raises MalformedCommand unless `apply` will understand it."""
    try:
        ((kind, arguments),) = json.loads(command.decode()).items()
    except (ValueError, AttributeError) as error:
        raise MalformedCommand(f"no command: {error!r}") from error
    if kind in ("put", "cas"):
        expected = 2 if kind == "put" else 3
        if not isinstance(arguments, list) or len(arguments) != expected or not isinstance(arguments[0], str):
            raise MalformedCommand(f"{kind}: expected a key and {expected - 1} values, got {arguments!r}")
        return
    if kind != "txn":
        raise MalformedCommand(f"expected put, cas or txn, got {kind!r}")
    if not isinstance(arguments, list) or len(arguments) > MAX_OPERATIONS:
        raise MalformedCommand(f"expected a list of at most {MAX_OPERATIONS} operations")
    for operation in arguments:
        is_triple = isinstance(operation, list) and len(operation) == 3
        if not is_triple or operation[0] not in ("r", "append") or not isinstance(operation[1], str):
            raise MalformedCommand(f'expected ["r" or "append", key, element], got {operation!r}')


class KeyValueStore:
    def __init__(self) -> None:
        self._values: dict[str, Any] = {}

    def get(self, key: str) -> Any:
        """None if it is not there."""
        return self._values.get(key)

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
        return Result(succeeded=True, value=[self._operate(*operation) for operation in arguments])

    def _operate(self, kind: str, key: str, element: Any) -> list[Any]:
        found = self._values.get(key)
        if kind == "r":
            return [kind, key, found]
        # A new list each time: the old one may be part of a result that is still to be sent.
        self._values[key] = [*(found if isinstance(found, list) else []), element]
        return [kind, key, element]
