"""An ephemeral key that one process has at a time: an election, a lock, the ownership of something.

What a tenure gives is a hint: the session may be over before its process knows. What must not be done by two is decided
by a change whose version fits.
"""

from __future__ import annotations

from dataclasses import dataclass

from system_under_test.metadata.access import Conflict, MetadataAccess, SessionLost
from system_under_test.metadata.settling import settled_create


@dataclass(frozen=True, slots=True)
class Tenure:
    key: str
    version: int
    session: str


async def try_to_take(access: MetadataAccess, key: str, value: str) -> Tenure | None:
    """None where another session has the key. Raises SessionLost, Unavailable."""
    session = access.session
    if session is None:
        raise SessionLost("no session is open")
    try:
        return Tenure(key, await settled_create(access, key, value, ephemeral=True), session)
    except Conflict:
        found = await access.get(key)
    return Tenure(key, found.version, session) if found is not None and found.session == session else None


async def take(access: MetadataAccess, key: str, value: str) -> Tenure:
    """Waits until nobody else has the key. Raises Unavailable."""
    while True:
        await access.session_other_than(None)
        try:
            tenure = await try_to_take(access, key, value)
        except SessionLost:
            continue
        if tenure is not None:
            return tenure
        found = await access.get(key)
        if found is not None and found.session != access.session:
            await access.wait(key, found.version)
