"""The metadata store's requests and answers: codes of remoting, header fields, and bodies in JSON.

| request | header fields | body of the request | body of the answer |
|---|---|---|---|
| GET | key | | `[value, version, session]`, or null |
| LIST | prefix | | `{key: [value, version, session], …}` |
| WAIT | prefix, since, holdMs | | `{"changed": whether, "version": the next since}` |
| CHANGE | | a command of `store.py` | `{"done": number}`, `{"differs": version}`, `{"over": true}` |
| RENEW | session | | `{"heartbeatMs": until the next one}`, `{"over": true}` |

An answer's code is SUCCESS where the request was decided, whatever was decided.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any, Final, TypeVar

from system_under_test.metadata.access import Versioned
from system_under_test.metadata.store import Done, Result, SessionIsOver, VersionDiffers
from system_under_test.remoting.command import RemotingCommand
from system_under_test.remoting.json_body import decode_json

MAX_DIGITS: Final = 18
"""The longest number in a header field."""

T = TypeVar("T")


class Request(IntEnum):
    GET = 61001
    LIST = 61002
    WAIT = 61003
    CHANGE = 61004
    RENEW = 61005


class MalformedRequest(ValueError):
    """A request lacks a field, or has no number where one belongs."""


class MalformedAnswer(ValueError):
    """A body that no node of the metadata store answers."""


def text_field(command: RemotingCommand, name: str) -> str:
    """Raises MalformedRequest."""
    value = command.ext_fields.get(name)
    if value is None:
        raise MalformedRequest(f"field {name!r} is missing")
    return value


def number_field(command: RemotingCommand, name: str) -> int:
    """Raises MalformedRequest."""
    value = text_field(command, name)
    if not (value.isascii() and value.isdigit() and len(value) <= MAX_DIGITS):
        raise MalformedRequest(f"field {name!r}: expected a whole number, got {value[:100]!r}")
    return int(value)


def body(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def encode_entry(entry: Versioned | None) -> bytes:
    return body(None if entry is None else _written(entry))


def encode_entries(entries: Mapping[str, Versioned]) -> bytes:
    return body({key: _written(entry) for key, entry in entries.items()})


def encode_change(changed: bool, version: int) -> bytes:
    return body({"changed": changed, "version": version})


def encode_result(result: Result) -> bytes:
    if isinstance(result, Done):
        return body({"done": result.number})
    return body({"differs": result.found} if isinstance(result, VersionDiffers) else {"over": True})


def encode_renewal(heartbeat_ms: int | None) -> bytes:
    """None: the session is over."""
    return body({"over": True} if heartbeat_ms is None else {"heartbeatMs": heartbeat_ms})


def decode_entry(answer: bytes) -> Versioned | None:
    """Raises MalformedAnswer."""
    return _decoded(answer, lambda value: None if value is None else _entry(value))


def decode_entries(answer: bytes) -> Mapping[str, Versioned]:
    """Raises MalformedAnswer."""
    return _decoded(answer, lambda value: {key: _entry(entry) for key, entry in value.items()})


def decode_change(answer: bytes) -> tuple[bool, int]:
    """Whether something changed, and the next `since`. Raises MalformedAnswer."""
    return _decoded(answer, lambda value: (_of(bool, value["changed"]), _of(int, value["version"])))


def decode_result(answer: bytes) -> Result:
    """Raises MalformedAnswer."""
    return _decoded(answer, _result)


def decode_renewal(answer: bytes) -> int | None:
    """Milliseconds until the next heartbeat; None: the session is over. Raises MalformedAnswer."""
    return _decoded(answer, lambda value: None if _is_over(value) else _of(int, value["heartbeatMs"]))


def _written(entry: Versioned) -> list[Any]:
    return [entry.value, entry.version, entry.session]


def _decoded(answer: bytes, read: Callable[[Any], T]) -> T:
    try:
        return read(decode_json(answer))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise MalformedAnswer(f"no answer of the metadata store: {error!r}") from error


def _of(kind: type[T], value: Any) -> T:
    if type(value) is not kind:
        raise TypeError(f"expected {kind.__name__}, got {value!r}")
    return value


def _entry(fields: Any) -> Versioned:
    value, version, session = _of(list, fields)
    return Versioned(_of(str, value), _of(int, version), None if session is None else _of(str, session))


def _is_over(value: Any) -> bool:
    return _of(dict, value) == {"over": True}


def _result(value: Any) -> Result:
    if _is_over(value):
        return SessionIsOver()
    ((kind, number),) = value.items()
    if kind == "done":
        return Done(_of(int, number))
    if kind != "differs":
        raise ValueError(f"{kind!r} is no outcome of a change")
    return VersionDiffers(None if number is None else _of(int, number))
