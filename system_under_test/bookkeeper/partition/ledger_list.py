"""The ledgers of a partition, in the order of its log: one value of the metadata store, with a version.

Who wants to write the partition appends a ledger of its own by compare-and-set, after the last one was closed. So a
ledger in the list never gets entries again once another one stands behind it, and the list only grows.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from system_under_test.metadata.access import MetadataAccess
from system_under_test.metadata.settling import settled_create, settled_put
from system_under_test.remoting.json_body import decode_json


class MalformedList(ValueError):
    """A value that lists no ledgers."""


@dataclass(frozen=True, slots=True)
class LedgerList:
    ledgers: tuple[int, ...] = ()
    version: int = 0
    """Which the store gave it; 0: there is none yet."""


def key_of(partition: str) -> str:
    return f"/partitions/{partition}/ledgers"


def owner_key_of(partition: str) -> str:
    return f"/partitions/{partition}/owner"


def encode_list(ledgers: tuple[int, ...]) -> str:
    return json.dumps({"ledgers": ledgers}, separators=(",", ":"))


def decode_list(value: str, version: int) -> LedgerList:
    """Raises MalformedList."""
    try:
        fields = decode_json(value.encode())
    except ValueError as error:
        raise MalformedList(f"the value is not JSON: {error}") from error
    ledgers = fields.get("ledgers") if isinstance(fields, dict) else None
    if not isinstance(ledgers, list) or not all(type(each) is int and each >= 0 for each in ledgers):
        raise MalformedList("'ledgers' is no list of numbers of ledgers")
    if len(set(ledgers)) < len(ledgers):
        raise MalformedList("a ledger is in the list twice")
    return LedgerList(tuple(ledgers), version)


async def read_list(metadata: MetadataAccess, partition: str) -> LedgerList:
    """Raises Unavailable, MalformedList."""
    found = await metadata.get(key_of(partition))
    return LedgerList() if found is None else decode_list(found.value, found.version)


async def append_ledger(metadata: MetadataAccess, partition: str, listed: LedgerList, ledger: int) -> LedgerList:
    """The list with this ledger at its end, if it has not changed meanwhile. Raises Conflict, Unavailable."""
    ledgers = (*listed.ledgers, ledger)
    key, value = key_of(partition), encode_list(ledgers)
    if listed.version:
        version = await settled_put(metadata, key, value, listed.version)
    else:
        version = await settled_create(metadata, key, value)
    return LedgerList(ledgers, version)
