"""Changes of the metadata store whose lost answers are settled: tried again, and then read back.

A change whose answer was lost may have happened, or may still happen. Tried again with the same version it happens once
at most, for versions only grow; where the second try is refused, the first one may have been the reason, and the value
that is there says so. Two processes that write the same value with the same version both take it for theirs: what must
be one's alone has to name the one.

`Conflict` means here that something else is there now. What was to be written may have been there in between.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from system_under_test.metadata.access import Conflict, MetadataAccess, Unavailable, Versioned

TRIES: Final = 3
"""How often a change is tried until its outcome is left open; each try lasts as long as the client has patience."""


async def settled_create(access: MetadataAccess, key: str, value: str, ephemeral: bool = False) -> int:
    """As `create`. Raises Conflict, SessionLost, Unavailable."""

    def is_ours(found: Versioned | None) -> bool:
        owner = access.session if ephemeral else None
        return found is not None and found.value == value and found.session == owner

    return await _settled(access, key, lambda: access.create(key, value, ephemeral), is_ours)


async def settled_put(access: MetadataAccess, key: str, value: str, version: int) -> int:
    """As `put`. Raises Conflict, Unavailable."""
    return await _settled(
        access,
        key,
        lambda: access.put(key, value, version),
        lambda found: found is not None and found.value == value,
    )


async def settled_delete(access: MetadataAccess, key: str, version: int) -> None:
    """As `delete`. Raises Conflict, Unavailable."""

    async def delete() -> int:
        await access.delete(key, version)
        return 0

    await _settled(access, key, delete, lambda found: found is None)


async def _settled(
    access: MetadataAccess,
    key: str,
    change: Callable[[], Awaitable[int]],
    is_ours: Callable[[Versioned | None], bool],
) -> int:
    """The new version; 0 of a key that is gone."""
    is_open = False
    for _ in range(TRIES):
        try:
            return await change()
        except Unavailable as error:
            failure = error
            is_open = is_open or not error.is_definite
        except Conflict:
            if not is_open:
                raise
            found = await access.get(key)
            if is_ours(found):
                return 0 if found is None else found.version
            raise Conflict(key, None if found is None else found.version) from None
    raise Unavailable(str(failure), is_definite=not is_open)
