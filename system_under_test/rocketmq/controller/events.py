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
    """None: the whole group."""


Event = BrokerIdApplied | BrokerRegistered | SyncStateSetAltered | MasterElected | BrokerDataCleaned

_TYPES: dict[str, Callable[..., Event]] = {
    kind.__name__: kind
    for kind in (BrokerIdApplied, BrokerRegistered, SyncStateSetAltered, MasterElected, BrokerDataCleaned)
}


def encode(event: Event) -> bytes:
    return json.dumps({"event": type(event).__name__, **asdict(event)}, sort_keys=True).encode()


def decode(data: bytes) -> Event:
    """Raises ValueError for bytes that `encode` never wrote."""
    try:
        fields = json.loads(data)
        kind = _TYPES[fields.pop("event")]
        values = {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
        return kind(**values)
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"no event: {error!r}") from error
