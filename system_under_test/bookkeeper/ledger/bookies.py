"""Bookies by their identities: where they are, what they answer, and which of them may be chosen now."""

from __future__ import annotations

from system_under_test.bookkeeper.bookie.client import BookieClient, BookieSilent
from system_under_test.bookkeeper.bookie.identity import BOOKIES, Registered
from system_under_test.bookkeeper.bookie.message import BookieAnswer, BookieRequest, Code
from system_under_test.bookkeeper.bookie.registration import AVAILABLE, Willing
from system_under_test.bookkeeper.ledger.event import Reply
from system_under_test.metadata.access import MetadataAccess, MetadataError
from system_under_test.runtime.host import Host

REPLIES = {
    Code.OK: Reply.OK,
    Code.NO_SUCH_ENTRY: Reply.NO_SUCH_ENTRY,
    Code.NO_SUCH_LEDGER: Reply.NO_SUCH_LEDGER,
    Code.FENCED: Reply.FENCED,
    Code.READ_ONLY: Reply.READ_ONLY,
    Code.UNKNOWN: Reply.UNKNOWN,
    Code.WRONG_BOOKIE: Reply.GONE,
    Code.CORRUPT: Reply.CORRUPT,
}
SILENT = BookieAnswer(Code.UNKNOWN)
GONE = BookieAnswer(Code.WRONG_BOOKIE)


class Bookies:
    def __init__(self, host: Host, metadata: MetadataAccess, timeout_s: float) -> None:
        """`timeout_s`: how long a bookie is waited for."""
        self._host = host
        self._metadata = metadata
        self._timeout_s = timeout_s
        self._client = BookieClient(host)
        self._addresses: dict[str, str] = {}
        """An identity never moves."""

    async def ask(self, bookie: str, request: BookieRequest) -> tuple[Reply, BookieAnswer]:
        """Where a bookie is no more, the one in its place says so, or the metadata store does."""
        try:
            address = self._addresses.get(bookie) or await self._address(bookie)
            answer = await self._client.ask(address, request, self._timeout_s) if address else GONE
        except (MetadataError, BookieSilent) as error:
            self._host.log("bookie_silent", bookie=bookie, reason=str(error))
            return Reply.SILENT, SILENT
        return REPLIES[answer.code], answer

    async def _address(self, bookie: str) -> str | None:
        """None where another bookie is in its place. Raises BookieSilent, Unavailable."""
        found = await self._metadata.get(BOOKIES + bookie)
        if found is None:
            raise BookieSilent(f"nobody knows a bookie {bookie}", was_sent=False)
        registered = Registered.decode(found.value)
        if registered.replaced_by is not None:
            return None
        self._addresses[bookie] = registered.address
        return registered.address

    async def writable(self) -> tuple[str, ...]:
        """Those that may be chosen now, in an order that is drawn anew. Raises Unavailable."""
        available = await self._metadata.list(AVAILABLE)
        bookies = [
            key.removeprefix(AVAILABLE) for key, each in available.items() if each.value == Willing.WRITABLE.value
        ]
        self._host.random.shuffle(bookies)
        return tuple(bookies)

    async def at(self, address: str) -> str | None:
        """The bookie that is at the address now, or was the last one there. Raises Unavailable."""
        for key, found in (await self._metadata.list(BOOKIES)).items():
            registered = Registered.decode(found.value)
            if registered.address == address and registered.replaced_by is None:
                return key.removeprefix(BOOKIES)
        return None

    def close(self) -> None:
        self._client.close()
