"""What controllers agree on: the events of the Raft log, and their form as bytes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerIdApplied:
    cluster: str
    group: str
    broker_id: int
    check_code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistered:
    """A process of a broker has begun, at this address."""

    group: str
    broker_id: int
    address: str
    incarnation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncStateSetAltered:
    group: str
    members: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MasterElected:
    """The master epoch grows by one; with a master the SyncStateSet becomes {master}, without one it stays."""

    group: str
    master: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerDataCleaned:
    group: str
    broker_ids: tuple[int, ...] | None
    """Which brokers of the group; None is all."""


Event = BrokerIdApplied | BrokerRegistered | SyncStateSetAltered | MasterElected | BrokerDataCleaned

_TYPES: dict[str, Callable[..., Event]] = {
    kind.__name__: kind
    for kind in (BrokerIdApplied, BrokerRegistered, SyncStateSetAltered, MasterElected, BrokerDataCleaned)
}


def encode(event: Event) -> bytes:
    return json.dumps({"event": type(event).__name__, **asdict(event)}, sort_keys=True).encode()


def _is_text(value: object) -> bool:
    return type(value) is str


def _is_id(value: object) -> bool:
    return type(value) is int


def _are_ids(value: object) -> bool:
    return type(value) is tuple and all(map(_is_id, value))


_VALID: dict[str, Callable[[object], bool]] = {
    "group": _is_text,
    "cluster": _is_text,
    "check_code": _is_text,
    "address": _is_text,
    "incarnation": _is_text,
    "broker_id": _is_id,
    "members": _are_ids,
    "master": lambda value: value is None or _is_id(value),
    "broker_ids": lambda value: value is None or _are_ids(value),
}


def decode(data: bytes) -> Event:
    """Raises ValueError for bytes that `encode` never wrote."""
    try:
        fields = json.loads(data)
        kind = _TYPES[fields.pop("event")]
        values = {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
        event = kind(**values)
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"no event: {error!r}") from error
    for name, value in values.items():
        if not _VALID[name](value):
            raise ValueError(f"no event: {name} is wrong")
    return event
