"""Who writes and recovers a ledger, its bookies and its metadata on a stage: one thing happens at a time, and what is
said is written down.

Requests wait until they are delivered, in their order. One whose answer is lost has its effect all the same.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from itertools import groupby

from system_under_test.bookkeeper.entry import NOTHING
from system_under_test.bookkeeper.ledger.event import (
    AddAnswered,
    Added,
    Append,
    Begin,
    Close,
    Closed,
    Effect,
    Ended,
    Failed,
    GaveUp,
    Held,
    LacAnswered,
    LacDue,
    LacWritten,
    MetadataRead,
    Publish,
    Published,
    ReadAnswered,
    ReadEntry,
    ReadLac,
    ReadMetadata,
    Recovered,
    Reply,
    SendAdd,
    Writable,
    WriteLac,
)
from system_under_test.bookkeeper.ledger.metadata import LedgerMetadata, LedgerState
from system_under_test.bookkeeper.ledger.parts import LedgerParts
from system_under_test.bookkeeper.ledger.recovery import Recovery
from system_under_test.bookkeeper.ledger.writer import Bounds, Writer
from tests.unit.system_under_test.bookkeeper.ledger.ledger_bookies import FakeBookie, FakeStore

Request = SendAdd | WriteLac | ReadLac | ReadEntry | Publish | ReadMetadata
Wanted = Callable[[str, Request], bool]


def anything(name: str, request: Request) -> bool:
    return True


def to(*bookies: str) -> Wanted:
    return lambda name, request: not isinstance(request, Publish | ReadMetadata) and request.bookie in bookies


def adds(*entries: int) -> Wanted:
    return lambda name, request: isinstance(request, SendAdd) and request.entry in entries


def metadata(name: str, request: Request) -> bool:
    return isinstance(request, Publish | ReadMetadata)


def of(*names: str) -> Wanted:
    return lambda name, request: name in names


def both(*all_of: Wanted) -> Wanted:
    return lambda name, request: all(each(name, request) for each in all_of)


class Stage:
    def __init__(
        self, metadata: LedgerMetadata, *spare: str, parts: LedgerParts | None = None, bounds: Bounds | None = None
    ) -> None:
        """W writes, and may choose the spare bookies in their order."""
        self.parts = parts or LedgerParts()
        self.bounds = bounds or Bounds()
        self.store = FakeStore(metadata)
        self.bookies = {name: FakeBookie() for name in (*metadata.last_fragment.ensemble, *spare)}
        self.cores: dict[str, Writer | Recovery] = {}
        self.wire: list[tuple[str, Request]] = []
        self.transcript: list[str] = []
        self.writer = self.parts.make_writer(self.store.metadata, self.bounds)
        self.enter("W", self.writer)

    def enter(self, name: str, core: Writer | Recovery) -> None:
        self.cores[name] = core
        self.step(name, Writable(tuple(self.bookies)))

    def recovery(self, name: str) -> None:
        """Begins, with the metadata as they are now."""
        self.enter(name, self.parts.make_recovery(self.store.metadata, self.bounds))
        self.step(name, Begin())

    def append(self, count: int = 1) -> None:
        for _ in range(count):
            self.step("W", Append(self.writer.lap + 1, b"x"))

    def close(self) -> None:
        self.step("W", Close(NOTHING))

    def lac_due(self) -> None:
        self.step("W", LacDue())

    def step(self, name: str, event: object) -> None:
        for effect in self.cores[name].step(event):  # type: ignore[arg-type]
            if isinstance(effect, Request):
                self.wire.append((name, effect))
            else:
                self.transcript.append(f"{name} {outcome(effect)}")

    # -- what is under way

    def _take(self, wanted: Wanted) -> tuple[str, Request] | None:
        for place, (name, request) in enumerate(self.wire):
            if wanted(name, request):
                return self.wire.pop(place)
        return None

    def deliver(self, wanted: Wanted = anything) -> None:
        """What is wanted, and what comes of it, as long as there is any; all else waits."""
        while (taken := self._take(wanted)) is not None:
            name, request = taken
            event = self.act(*taken)
            self.transcript.append(f"{name} {described(request)}: {answer(event)}")
            self.step(name, event)

    def lose(self, wanted: Wanted = anything) -> None:
        """Requests that are wanted now, before they have an effect."""
        lost = [sent for sent in self.wire if wanted(*sent)]
        self.wire = [sent for sent in self.wire if not wanted(*sent)]
        for name, request in lost:
            self.transcript.append(f"{name} {described(request)}: lost")
            self.step(name, silence(request))

    def lose_answers(self, wanted: Wanted = anything) -> None:
        """Of requests that are wanted now, which have their effect."""
        lost = [sent for sent in self.wire if wanted(*sent)]
        self.wire = [sent for sent in self.wire if not wanted(*sent)]
        for name, request in lost:
            self.act(name, request)
            self.transcript.append(f"{name} {described(request)}: answer lost")
            self.step(name, silence(request))

    def act(self, name: str, request: Request) -> object:
        if isinstance(request, SendAdd):
            recovers = isinstance(self.cores[name], Recovery)
            reply = self.bookies[request.bookie].add(request.entry, request.data, recovers=recovers)
            return AddAnswered(request.bookie, request.entry, reply)
        if isinstance(request, WriteLac):
            return LacWritten(request.bookie, request.lac, self.bookies[request.bookie].write_lac(request.lac))
        if isinstance(request, ReadLac):
            return LacAnswered(request.bookie, *self.bookies[request.bookie].read_lac())
        if isinstance(request, ReadEntry):
            read = self.bookies[request.bookie].read(request.entry, fences=request.fences)
            return ReadAnswered(request.bookie, request.entry, *read)
        if isinstance(request, Publish):
            return Published(self.store.put(request.metadata))
        return MetadataRead(self.store.metadata)


def silence(request: Request) -> object:
    if isinstance(request, SendAdd):
        return AddAnswered(request.bookie, request.entry, Reply.SILENT)
    if isinstance(request, WriteLac):
        return LacWritten(request.bookie, request.lac, Reply.SILENT)
    if isinstance(request, ReadLac):
        return LacAnswered(request.bookie, Reply.SILENT, NOTHING)
    if isinstance(request, ReadEntry):
        return ReadAnswered(request.bookie, request.entry, Reply.SILENT)
    return Published(None) if isinstance(request, Publish) else MetadataRead(None)


def lac_of(data: bytes) -> int:
    """As the entry has it, whatever its digest."""
    return int(struct.unpack_from(">q", data, 16)[0])


def described(request: Request) -> str:
    if isinstance(request, SendAdd):
        return f"→ {request.bookie} add {request.entry} (LAC {lac_of(request.data)})"
    if isinstance(request, WriteLac):
        return f"→ {request.bookie} LAC is {request.lac}"
    if isinstance(request, ReadLac):
        return f"→ {request.bookie} LAC"
    if isinstance(request, ReadEntry):
        return f"→ {request.bookie} read {request.entry}"
    return f"→ metadata {written(request.metadata)}" if isinstance(request, Publish) else "→ metadata read"


def written(metadata: LedgerMetadata) -> str:
    fragments = " ".join(f"{each.first_entry}:{'+'.join(each.ensemble)}" for each in metadata.fragments)
    end = f" at {metadata.last_entry}" if metadata.state is LedgerState.CLOSED else ""
    return f"{metadata.state.value}{end} {fragments}"


def answer(event: object) -> str:
    if isinstance(event, AddAnswered | LacWritten | ReadAnswered):
        return event.reply.value
    if isinstance(event, LacAnswered):
        return str(event.lac) if event.reply is Reply.OK else event.reply.value
    if isinstance(event, Published):
        return "does not fit" if event.version is None else "ok"
    assert isinstance(event, MetadataRead) and event.metadata is not None
    return written(event.metadata)


def outcome(effect: Effect) -> str:
    if isinstance(effect, Added):
        return f"acknowledges {effect.entry}"
    if isinstance(effect, Failed):
        what = "the close" if effect.token == NOTHING else f"{effect.token}"
        return f"{'refuses' if effect.is_definite else 'may or may not have'} {what}: {effect.reason.value}"
    if isinstance(effect, Held):
        return f"holds {effect.entry} back"
    if isinstance(effect, Closed):
        return f"has closed at {effect.last_entry}"
    if isinstance(effect, Ended):
        return f"ends: {effect.reason.value}"
    if isinstance(effect, GaveUp):
        return f"gives up: {effect.reason.value}"
    assert isinstance(effect, Recovered)
    return f"has recovered {written(effect.metadata)}"


def shortened(transcript: list[str]) -> list[str]:
    """Lines that follow each other and differ in the bookie alone are one."""

    def parts(line: str) -> tuple[str, str, str]:
        words = line.split(" ")
        if len(words) > 2 and words[1] == "→" and words[2] != "metadata":
            return words[0], words[2], " ".join(words[3:])
        return line, "", ""

    lines = []
    for (who, what), group in groupby(map(parts, transcript), key=lambda each: (each[0], each[2])):
        bookies = [bookie for _, bookie, _ in group]
        lines += [f"{who} → {' '.join(bookies)} {what}"] if what else [who] * len(bookies)
    return lines
