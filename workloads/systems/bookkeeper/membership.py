"""Bookies are replaced: one that is taken out comes back as another one under the old address, with an empty disk.

Nobody has to be asked to let a bookie go: what it held has other copies, and an identity that no disk bears never
answers again. It is let in once no ledger counts on any bookie that its address had before, so that all they held is
on others.
"""

from __future__ import annotations

from typing import Any

from harness.errors import ErrorCode, OperationError
from harness.membership import Start
from harness.system import NodeSpec
from system_under_test.bookkeeper.bookie.identity import BOOKIES, Registered
from system_under_test.bookkeeper.bookie.registration import AVAILABLE
from system_under_test.bookkeeper.ledger.metadata import LEDGERS, decode_metadata
from system_under_test.metadata.access import MetadataError
from system_under_test.metadata.client import MetadataClient
from workloads.systems.bookkeeper.copies import counted_on
from workloads.systems.bookkeeper.errors import METADATA_UNAVAILABLE
from workloads.systems.bookkeeper.nodes import BOOKIE_PORT, METADATA_ADDRESSES

UNDER_REPLICATED = ErrorCode("under-replicated", definite=True)
"""Ledgers still count on a bookie whose disk is gone."""


class Replacement:
    """Of one bookie, by its node's name."""

    def __init__(self, host: Any, node: str, patience_s: float) -> None:
        self._metadata = MetadataClient(host, METADATA_ADDRESSES, timeout_s=patience_s)
        self._node = node

    async def shrink(self) -> str:
        """Raises OperationError."""
        try:
            living = await self._identities(is_replaced=False)
        finally:
            await self._metadata.stop()
        return f"{self._node} is given up, as bookie {' and '.join(living) or 'of nobody'}"

    async def grow(self, node: NodeSpec, start: Start) -> str:
        """Raises OperationError, also while copies are missing."""
        try:
            await start(node.program)
            fresh = await self._identities(is_replaced=False)
            gone = await self._identities(is_replaced=True)
            await self._require_living(fresh)
            await self._require_forgotten(gone)
        finally:
            await self._metadata.stop()
        return f"{self._node} is bookie {' and '.join(fresh)}, and no ledger counts on {' or '.join(gone) or 'another'}"

    async def _identities(self, *, is_replaced: bool) -> list[str]:
        """Those that the node's address has, or had."""
        address = f"{self._node}:{BOOKIE_PORT}"
        known = {key: Registered.decode(each) for key, each in (await self._listed(BOOKIES)).items()}
        return [
            key.removeprefix(BOOKIES)
            for key, each in known.items()
            if each.address == address and (each.replaced_by is not None) is is_replaced
        ]

    async def _require_living(self, bookies: list[str]) -> None:
        available = await self._listed(AVAILABLE)
        if not bookies or not all(AVAILABLE + bookie in available for bookie in bookies):
            raise OperationError(UNDER_REPLICATED, f"{self._node} is no bookie that lives yet", node=self._node)

    async def _require_forgotten(self, bookies: list[str]) -> None:
        for value in (await self._listed(LEDGERS)).values():
            metadata = decode_metadata(value, 0)
            if counted := sorted(counted_on(metadata) & set(bookies)):
                because = f"ledger {metadata.ledger} counts on {counted[0]}"
                raise OperationError(UNDER_REPLICATED, because, node=self._node)

    async def _listed(self, prefix: str) -> dict[str, str]:
        try:
            return {key: each.value for key, each in (await self._metadata.list(prefix)).items()}
        except MetadataError as error:
            raise OperationError(METADATA_UNAVAILABLE, str(error), node=self._node) from error
