"""Bookies and a metadata store as the cores of a ledger see them: what they hold, and what they answer."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from system_under_test.bookkeeper.entry import HEAD_BYTES, NOTHING, Digest, Entry, EntryCorrupt, decode_entry
from system_under_test.bookkeeper.ledger.event import Reply
from system_under_test.bookkeeper.ledger.metadata import (
    Fragment,
    LedgerMetadata,
    LedgerState,
    Placement,
    Quorums,
    decode_metadata,
    encode_metadata,
)

LEDGER = 7


def metadata_of(quorums: str, *ensemble: str, placement: Placement = Placement.FRAGMENT) -> LedgerMetadata:
    """`quorums`: E/Qw/Qa."""
    numbers = [int(number) for number in quorums.split("/")]
    sizes = Quorums(ensemble=numbers[0], write=numbers[1], ack=numbers[2])
    fragment = Fragment(0, ensemble or tuple(f"b{number}" for number in range(1, sizes.ensemble + 1)), 0)
    return LedgerMetadata(ledger=LEDGER, quorums=sizes, fragments=(fragment,), placement=placement)


@dataclass(slots=True)
class FakeBookie:
    entries: dict[int, bytes] = field(default_factory=dict)
    """All of one ledger, and durable."""
    is_fenced: bool = False
    is_read_only: bool = False
    is_gone: bool = False
    """Its disk is lost, and another bookie has its address."""
    has_ledger: bool = False
    explicit_lac: int = NOTHING

    def add(self, entry: int, data: bytes, *, recovers: bool) -> Reply:
        if self.is_gone:
            return Reply.GONE
        if self.is_fenced and not recovers:
            return Reply.FENCED
        if self.is_read_only:
            return Reply.READ_ONLY
        self.has_ledger = True
        self.entries[entry] = data
        return Reply.OK

    def write_lac(self, lac: int) -> Reply:
        if self.is_gone:
            return Reply.GONE
        if self.is_fenced:
            return Reply.FENCED
        self.has_ledger = True
        self.explicit_lac = max(self.explicit_lac, lac)
        return Reply.OK

    def read_lac(self) -> tuple[Reply, int]:
        """And fence the ledger."""
        if self.is_gone:
            return Reply.GONE, NOTHING
        self.is_fenced = True
        if not self.has_ledger:
            return Reply.NO_SUCH_LEDGER, NOTHING
        return Reply.OK, max(self.explicit_lac, *(entry.lac for entry in self.decoded().values()), NOTHING)

    def read(self, entry: int, *, fences: bool) -> tuple[Reply, bytes]:
        if self.is_gone:
            return Reply.GONE, b""
        self.is_fenced |= fences
        if entry in self.entries:
            return Reply.OK, self.entries[entry]
        return Reply.NO_SUCH_ENTRY if self.has_ledger else Reply.NO_SUCH_LEDGER, b""

    def decoded(self) -> dict[int, Entry]:
        """Those that are not harmed."""
        found = {}
        for number, data in self.entries.items():
            try:
                found[number] = decode_entry(data, Digest(), LEDGER, number)
            except EntryCorrupt:
                continue
        return found

    def harm(self, entry: int) -> None:
        """A bit of its payload, or of what is before that."""
        data = bytearray(self.entries[entry])
        data[HEAD_BYTES - 1] ^= 1
        self.entries[entry] = bytes(data)


class FakeStore:
    """Has one ledger's metadata, as text."""

    def __init__(self, metadata: LedgerMetadata) -> None:
        self._text = encode_metadata(metadata)
        self._version = 1
        self.history = [self.metadata]
        """All that it ever had."""

    @property
    def metadata(self) -> LedgerMetadata:
        return decode_metadata(self._text, self._version)

    def put(self, metadata: LedgerMetadata) -> int | None:
        """The new version; None if the version that it names does not fit."""
        if metadata.version != self._version:
            return None
        self._text = encode_metadata(metadata)
        self._version += 3
        self.history.append(self.metadata)
        return self._version

    def repair(self, place: int, old: str, new: str) -> None:
        """As a worker does: another bookie stands for an old one in a fragment that is not the last."""
        metadata = self.metadata
        fragments = list(metadata.fragments)
        assert place < len(fragments) - 1 or metadata.state is LedgerState.CLOSED
        fragment = fragments[place]
        fragments[place] = replace(fragment, ensemble=tuple(new if each == old else each for each in fragment.ensemble))
        assert self.put(replace(metadata, fragments=tuple(fragments))) is not None
