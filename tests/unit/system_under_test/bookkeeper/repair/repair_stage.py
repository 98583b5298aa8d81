"""A worker, an auditor, bookies and the metadata of one ledger on a stage: what is said is written down."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import groupby

from system_under_test.bookkeeper.entry import NOTHING, Digest, Entry, encode_entry
from system_under_test.bookkeeper.ledger.event import (
    AddAnswered,
    LacAnswered,
    Publish,
    Published,
    ReadAnswered,
    ReadEntry,
    Reply,
)
from system_under_test.bookkeeper.ledger.metadata import Fragment, LedgerMetadata
from system_under_test.bookkeeper.ledger.placement import bookies_of
from system_under_test.bookkeeper.ledger.verification import Verification
from system_under_test.bookkeeper.repair.auditor import Auditor, AuditTimes, BookiesSeen, Due, LedgersRead, Looked
from system_under_test.bookkeeper.repair.event import (
    AskLac,
    AuditorEffect,
    Copy,
    EntryLost,
    Living,
    LookAtLedger,
    Outcome,
    ReadLedgers,
    Recover,
    RecoveryEnded,
    RepairEffect,
    RepairEvent,
    RoundEnded,
    SetMark,
)
from system_under_test.bookkeeper.repair.look import Look
from system_under_test.bookkeeper.repair.marks import Mark
from system_under_test.bookkeeper.repair.parts import RepairParts
from tests.unit.system_under_test.bookkeeper.ledger.ledger_bookies import (
    LEDGER,
    FakeBookie,
    FakeStore,
    metadata_of,
)
from tests.unit.system_under_test.bookkeeper.ledger.ledger_stage import shortened, written

DAY_NS = 86_400_000_000_000
TIMES = AuditTimes(lost_after_ns=0, bookies_every_ns=DAY_NS, ledgers_every_ns=7 * DAY_NS, entries_every_ns=None)


def ledger_of(
    quorums: str, count: int, *, begins: Sequence[int] = (), ensembles: Sequence[Sequence[str]] = (), **more: object
) -> LedgerMetadata:
    """Open, with so many entries of one byte; further fragments begin where it says, with these ensembles."""
    first = metadata_of(quorums, **more)  # type: ignore[arg-type]
    fragments = [Fragment(begin, tuple(each), begin) for begin, each in zip(begins, ensembles, strict=True)]
    return replace(first, fragments=(*first.fragments, *fragments))


def data_of(entry: int, lac: int | None = None) -> bytes:
    return encode_entry(Entry(LEDGER, entry, entry - 1 if lac is None else lac, entry + 1, b"x"), Digest())


class RepairStage:
    """`names`: of all bookies, which all live at first, and have of the ledger's first `count` entries what they
    should hold."""

    def __init__(
        self, metadata: LedgerMetadata, count: int, names: Sequence[str], parts: RepairParts | None = None
    ) -> None:
        self.parts = parts or RepairParts()
        self.store = FakeStore(metadata)
        self.bookies = {name: FakeBookie() for name in names}
        self.available = dict.fromkeys(names)
        self.silent: set[str] = set()
        """Those that live and do not answer."""
        self.marks: dict[int, Mark] = {}
        self.transcript: list[str] = []
        self.now_ns = 0
        for entry in range(count):
            for bookie in bookies_of(metadata, entry):
                self.bookies[bookie].add(entry, data_of(entry), recovers=True)

    @property
    def alive(self) -> Living:
        writable = tuple(name for name in self.available if not self.bookies[name].is_read_only)
        return Living(tuple(self.available), writable)

    def die(self, *names: str) -> None:
        for name in names:
            del self.available[name]

    def lose(self, name: str, *entries: int) -> None:
        for entry in entries:
            del self.bookies[name].entries[entry]

    def close(self, last_entry: int) -> None:
        assert self.store.put(self.store.metadata.closed(last_entry, last_entry + 1)) is not None

    @property
    def verification(self) -> Verification:
        return Verification(LEDGER, Digest())

    @property
    def lines(self) -> list[str]:
        return shortened(self.transcript)

    @property
    def deeds(self) -> list[str]:
        """What was done, without what was only asked; copies that follow each other are one line."""
        done = [line for line in self.transcript if " read " not in line and " LAC" not in line]
        runs = groupby(done, lambda line: line.endswith(": ok") and " copy " in line)
        return [line for is_copy, run in runs for line in (copied(run) if is_copy else run)]

    @property
    def entries(self) -> dict[str, str]:
        """What each bookie has, sound."""
        return {name: _ranges(sorted(bookie.decoded())) for name, bookie in sorted(self.bookies.items())}

    # -- a worker

    def round(
        self,
        *,
        grace_is_over: bool = False,
        every_entry: bool = False,
        only: str | None = None,
        until: Callable[[RepairEffect], bool] = lambda effect: False,
        most_at_once: int = 1,
    ) -> Outcome | None:
        """One round of repair; `until`: the worker is killed before this effect, and there is no outcome."""
        worker = self.parts.repair_round(
            self.store.metadata,
            self.alive,
            verification=self.verification,
            probes=self.parts.every_entry if every_entry else self.parts.probes,
            grace_is_over=grace_is_over,
            most_at_once=most_at_once,
            only=only,
        )
        waiting = deque(worker.begin())
        while waiting:
            effect = waiting.popleft()
            if until(effect):
                self.transcript.append("w is killed")
                return None
            if isinstance(effect, RoundEnded):
                assert not waiting
                self.transcript.append(f"w ends: {effect.outcome.name.lower()}")
                return effect.outcome
            if isinstance(effect, EntryLost):
                self.transcript.append(f"w misses {effect.entry} everywhere")
                continue
            event = self.act(effect)
            waiting += worker.step(event)
        raise AssertionError("the worker waits for nothing")

    def repair(self, **how: bool) -> Outcome:
        """Rounds until one changes nothing; a ledger of which nothing is missing is marked no more."""
        for _ in range(10):
            outcome = self.round(**how)
            if outcome is not Outcome.CHANGED:
                if outcome is Outcome.DONE:
                    self.marks.pop(LEDGER, None)
                assert outcome is not None
                return outcome
        raise AssertionError("every round changes something")

    def act(self, effect: ReadEntry | AskLac | Copy | Publish | Recover) -> RepairEvent:
        event = self._act(effect)
        self.transcript.append(f"w {described(effect)}: {answer(event)}")
        return event

    def _act(self, effect: ReadEntry | AskLac | Copy | Publish | Recover) -> RepairEvent:
        if isinstance(effect, Publish):
            return Published(self.store.put(effect.metadata))
        if isinstance(effect, Recover):
            return self.recover()
        bookie = self.bookies[effect.bookie]
        is_silent = effect.bookie in self.silent or (effect.bookie not in self.available and not bookie.is_gone)
        if isinstance(effect, AskLac):
            lac = max((entry.lac for entry in bookie.decoded().values()), default=NOTHING)
            return LacAnswered(effect.bookie, Reply.SILENT if is_silent else Reply.OK, NOTHING if is_silent else lac)
        if isinstance(effect, Copy):
            reply = Reply.SILENT if is_silent else bookie.add(effect.entry, effect.data, recovers=True)
            return AddAnswered(effect.bookie, effect.entry, reply)
        read = (Reply.SILENT, b"") if is_silent else bookie.read(effect.entry, fences=effect.fences)
        return ReadAnswered(effect.bookie, effect.entry, *read)

    def recover(self) -> RecoveryEnded:
        """By the copies that there are, without a new ensemble."""
        entries = {entry for name in self.available for entry in self.bookies[name].decoded()}
        last = max(entries, default=NOTHING)
        assert self.store.put(self.store.metadata.closed(last, last + 1)) is not None
        return RecoveryEnded(is_closed=True)

    # -- an auditor

    def elect(self, times: AuditTimes = TIMES) -> Auditor:
        auditor = Auditor(times, self.now_ns)
        self.see(auditor)
        return auditor

    def see(self, auditor: Auditor) -> None:
        """The bookies that live now."""
        self._audit(auditor, auditor.step(BookiesSeen(frozenset(self.available)), self.now_ns))

    def pass_time(self, auditor: Auditor) -> None:
        """Until something is due."""
        self.now_ns = auditor.deadline_ns
        self._audit(auditor, auditor.step(Due(), self.now_ns))

    def _audit(self, auditor: Auditor, effects: list[AuditorEffect]) -> None:
        for effect in effects:
            if isinstance(effect, ReadLedgers):
                read = LedgersRead((self.store.metadata,), dict(self.marks))
                self._audit(auditor, auditor.step(read, self.now_ns))
            elif isinstance(effect, LookAtLedger):
                lacking = self.look(effect)
                what = "every entry" if effect.every_entry else "the ledger"
                self.transcript.append(f"a looks at {what}: {'+'.join(lacking) or 'nothing is missing'}")
                self._audit(auditor, auditor.step(Looked(effect.ledger, effect.every_entry, lacking), self.now_ns))
            elif isinstance(effect, SetMark):
                old = self.marks.get(effect.ledger)
                self.marks[effect.ledger] = effect.mark if old is None else old.with_more(effect.mark)
                self.transcript.append(f"a marks the ledger for {'+'.join(effect.mark.bookies)}")

    def look(self, effect: LookAtLedger) -> tuple[str, ...]:
        probes = self.parts.every_entry if effect.every_entry else self.parts.probes
        look = Look(self.store.metadata, self.alive, verification=self.verification, probes=probes, most_at_once=3)
        waiting = deque(look.begin())
        while waiting:
            event = self._act(waiting.popleft())
            assert isinstance(event, ReadAnswered | LacAnswered)
            waiting += look.step(event)
        assert look.is_over
        return tuple(lack.bookie for lack in look.lacks)


def after(effects: int) -> Callable[[RepairEffect], bool]:
    """False of so many of them, and true of the next."""
    left = iter(range(effects))
    return lambda effect: next(left, None) is None


def described(effect: ReadEntry | AskLac | Copy | Publish | Recover) -> str:
    if isinstance(effect, ReadEntry):
        return f"→ {effect.bookie} read {effect.entry}"
    if isinstance(effect, AskLac):
        return f"→ {effect.bookie} LAC"
    if isinstance(effect, Copy):
        return f"→ {effect.bookie} copy {effect.entry}"
    return f"→ metadata {written(effect.metadata)}" if isinstance(effect, Publish) else "recovers the ledger"


def answer(event: RepairEvent) -> str:
    if isinstance(event, AddAnswered | ReadAnswered):
        return event.reply.value
    if isinstance(event, LacAnswered):
        return str(event.lac) if event.reply is Reply.OK else event.reply.value
    if isinstance(event, Published):
        return "does not fit" if event.version is None else "ok"
    return "closed" if event.is_closed else "not closed"


def copied(lines: Iterable[str]) -> list[str]:
    """`w → b4 copy 0: ok`, `w → b4 copy 1: ok` → `w → b4 copy 0-1: ok`"""
    entries: dict[str, list[int]] = {}
    for line in lines:
        _, _, bookie, _, entry, _ = line.split(" ")
        entries.setdefault(bookie, []).append(int(entry.removesuffix(":")))
    return [f"w → {bookie} copy {_ranges(numbers)}: ok" for bookie, numbers in entries.items()]


def _ranges(numbers: list[int]) -> str:
    """`[0, 1, 2, 5]` → `0-2 5`."""
    runs = [[number for _, number in run] for _, run in groupby(enumerate(numbers), lambda each: each[1] - each[0])]
    return " ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
