"""What a bookie keeps on its disk: a journal, entry logs with their indexes, and a checkpoint.

    DIRECTORY/journal/POSITION      everything that was accepted since the checkpoint, in its order
    DIRECTORY/entries/NUMBER        entries, in logs that all ledgers share; and NUMBER.index
    DIRECTORY/checkpoint            from where the journal is to be read; fences, limbo and LAC up to there
    DIRECTORY/cleanStop             where the journal ended when a process last stopped cleanly

Everything is written to the entry log and the journal at once, and durable when the journal is. A start writes what it
reads from the journal to an entry log of its own and begins with a checkpoint, so nothing that a process which died
has written, and maybe never synced, is vouched for by another.

Claims: after a loss of power it holds all that was durable, and nothing but what was accepted.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import TypeVar

from system_under_test.bookkeeper.bookie.checkpoint import (
    Checkpoint,
    LedgerNotes,
    decode_checkpoint,
    decode_place,
    encode_checkpoint,
    encode_place,
)
from system_under_test.bookkeeper.bookie.entry_logs import EntryLogs
from system_under_test.bookkeeper.bookie.index import Index, Location
from system_under_test.bookkeeper.bookie.journal import Journal, Place
from system_under_test.bookkeeper.bookie.journal_record import Kind, Record, lac_body, lac_of, ledger_body, ledger_of
from system_under_test.bookkeeper.entry import Digest, Entry, EntryCorrupt, decode_entry, ids_of
from system_under_test.runtime.host import Disk, DiskError
from system_under_test.storage.errors import RecordInvalid, StorageCorrupt, StorageFailed
from system_under_test.storage.record_file import RecordFile

T = TypeVar("T")


class Store:
    """`open` comes first, then `start`. Writing raises DiskFull, with nothing changed, and StorageFailed, for good."""

    def __init__(self, disk: Disk, directory: str, digest: Digest, file_bytes: int) -> None:
        """`file_bytes`: how long the journal and the newest entry log may become before a checkpoint is due."""
        self._disk = disk
        self._directory = directory
        self._digest = digest
        self._file_bytes = file_bytes
        self._checkpoint_file = RecordFile(disk, f"{directory}/checkpoint")
        self._clean_stop = RecordFile(disk, f"{directory}/cleanStop")
        self._ending: Checkpoint | None = None
        self.ledgers: dict[int, LedgerNotes] = {}
        self.index = Index()
        self.journal = Journal(disk, f"{directory}/journal")
        self._logs = EntryLogs(disk, f"{directory}/entries")
        self.was_synced = True
        """Whether the process before synced the journal before it acknowledged."""
        self.was_stopped = True
        """Whether the process before stopped cleanly, or there was none."""

    @property
    def is_empty(self) -> bool:
        """Nothing of a bookie was ever written to this disk."""
        names = ("journal", "entries", "checkpoint", "cleanStop")
        return not any(self._disk.exists(f"{self._directory}/{name}") for name in names)

    # -- at a start

    async def open(self) -> None:
        """Load all that is there, and make it durable. Raises StorageCorrupt, StorageFailed; DiskFull: then it may be
        tried again."""
        self._reset()
        data = _read(self._checkpoint_file)
        checkpoint = Checkpoint(start=Place(), logs=0, is_synced=True, ledgers={})
        if data is not None:
            checkpoint = _decoded(data, decode_checkpoint, f"{self._directory}/checkpoint")
        elif self._has_bytes():
            raise StorageCorrupt(
                f"{self._directory}/checkpoint is gone: bring it back, or wipe this bookie and let it come back empty"
            )
        self.ledgers = {ledger: copy(state) for ledger, state in checkpoint.ledgers.items()}
        self.was_synced = checkpoint.is_synced
        for number in range(checkpoint.logs):
            for at in await self._logs.load(number, self._digest):
                self.index.put(at.ledger, at.entry, Location(number, at.offset, at.size))
        self._logs.begin(checkpoint.logs)
        for record in self.journal.replay(checkpoint.start, is_required=data is not None):
            self._apply(record)
        self._compare_with_clean_stop()
        self.journal.begin()
        await self._checkpoint(is_synced=self.was_synced)

    def _reset(self) -> None:
        self._logs.close()
        self.ledgers, self.index, self._ending = {}, Index(), None
        self.journal = Journal(self._disk, f"{self._directory}/journal")
        self._logs = EntryLogs(self._disk, f"{self._directory}/entries")

    def _has_bytes(self) -> bool:
        for name in ("journal", "entries"):
            for path in self._disk.list(f"{self._directory}/{name}"):
                file = self._disk.open(path)
                size = file.size
                file.close()
                if size:
                    return True
        return False

    def _apply(self, record: Record) -> None:
        """What the journal says was accepted. Raises StorageCorrupt: no crash writes a whole record of nonsense."""
        try:
            match record.kind:
                case Kind.START:
                    self.was_synced = record.body == b"\1"
                case Kind.ADD:
                    ledger, number = ids_of(record.body)
                    self._write_entry(decode_entry(record.body, self._digest, ledger, number), record.body)
                case Kind.LAC:
                    ledger, lac = lac_of(record.body)
                    self._raise_lac(self.state(ledger), lac)
                case kind:
                    self._apply_to_ledger(kind, self.state(ledger_of(record.body)))
        except (RecordInvalid, EntryCorrupt) as error:
            raise StorageCorrupt(f"the journal before position {self.journal.max_offset}: {error}") from error

    def _apply_to_ledger(self, kind: Kind, state: LedgerNotes) -> None:
        if kind is Kind.LEFT_LIMBO:
            state.in_limbo = False
            return
        state.is_fenced = True
        if kind is Kind.LIMBO:
            state.in_limbo = True

    def _compare_with_clean_stop(self) -> None:
        data = _read(self._clean_stop)
        stop = Place() if data is None else _decoded(data, decode_place, f"{self._directory}/cleanStop")
        end = self.journal.end
        if stop.position > end.position:
            raise StorageCorrupt(
                f"{self._directory}/journal ends at position {end.position}, though it was durable up to "
                f"{stop.position} when this bookie stopped: bring its files back, or wipe this bookie"
            )
        self.was_stopped = stop == end

    async def start(self, *, is_synced: bool) -> None:
        """From now on things are accepted by a process that syncs the journal before it acknowledges, or does not.
        Durable on return, with all before it."""
        self.journal.append(Kind.START, b"\1" if is_synced else b"\0")
        self.was_synced = is_synced
        await self.journal.flush()

    # -- writing: what each returns is where the journal has to be durable for it

    def state(self, ledger: int) -> LedgerNotes:
        """The ledger is one that this bookie knows, from now on."""
        state = self.ledgers.get(ledger)
        if state is None:
            state = self.ledgers[ledger] = LedgerNotes()
        return state

    def add(self, entry: Entry, data: bytes) -> int:
        """An entry with its encoded form; it takes the place of one that was added before."""
        location = self._logs.append(data)
        position = self.journal.append(Kind.ADD, data)
        self._keep_entry(entry, location)
        return position

    def _write_entry(self, entry: Entry, data: bytes) -> None:
        self._keep_entry(entry, self._logs.append(data))

    def _keep_entry(self, entry: Entry, location: Location) -> None:
        self._logs.keep(entry.ledger, entry.entry, location)
        self.index.put(entry.ledger, entry.entry, location)
        self._raise_lac(self.state(entry.ledger), entry.lac)

    def _raise_lac(self, state: LedgerNotes, lac: int) -> None:
        state.lac = max(state.lac, lac)

    def fence(self, ledger: int) -> int:
        position = self.journal.append(Kind.FENCE, ledger_body(ledger))
        self.state(ledger).is_fenced = True
        return position

    def enter_limbo(self, ledger: int) -> int:
        position = self.journal.append(Kind.LIMBO, ledger_body(ledger))
        self._apply_to_ledger(Kind.LIMBO, self.state(ledger))
        return position

    def leave_limbo(self, ledger: int) -> int:
        position = self.journal.append(Kind.LEFT_LIMBO, ledger_body(ledger))
        self._apply_to_ledger(Kind.LEFT_LIMBO, self.state(ledger))
        return position

    def write_lac(self, ledger: int, lac: int) -> int:
        position = self.journal.append(Kind.LAC, lac_body(ledger, lac))
        self._raise_lac(self.state(ledger), lac)
        return position

    # -- reading

    def read(self, ledger: int, entry: int) -> bytes | None:
        """The entry in its encoded form, None where there is none. Raises EntryCorrupt where it is harmed, or cannot be
        read."""
        location = self.index.find(ledger, entry)
        if location is None:
            return None
        try:
            data = self._logs.read(location)
        except DiskError as error:
            raise EntryCorrupt(f"entry {entry} of ledger {ledger} cannot be read: {error}") from error
        decode_entry(data, self._digest, ledger, entry)
        return data

    # -- checkpoints

    @property
    def checkpoint_is_due(self) -> bool:
        return max(self.journal.bytes_in_file, self._logs.size) >= self._file_bytes

    async def checkpoint(self) -> None:
        """Make the entry logs durable, and let the journal go that is not needed any more. One at a time. Raises
        StorageFailed, DiskFull: then the same one is to be tried again."""
        await self._checkpoint(is_synced=self.was_synced)

    async def _checkpoint(self, *, is_synced: bool) -> None:
        if self._ending is None:
            self._ending = self._end_log(is_synced)
        checkpoint = self._ending
        await self._logs.finish()
        await self.journal.flush()
        await self._checkpoint_file.write(encode_checkpoint(checkpoint))
        self._ending = None
        self.journal.remove_before(checkpoint.start.position)

    def _end_log(self, is_synced: bool) -> Checkpoint:
        """What the checkpoint will say; of an empty log nothing is made."""
        start = self.journal.roll()
        if self._logs.size:
            self._logs.roll()
        ledgers = {ledger: copy(state) for ledger, state in self.ledgers.items()}
        return Checkpoint(start=start, logs=self._logs.newest, is_synced=is_synced, ledgers=ledgers)

    async def close(self) -> None:
        """Stop cleanly. Raises StorageFailed, DiskFull."""
        await self.journal.flush()
        await self._clean_stop.write(encode_place(self.journal.end))
        self._logs.close()


def _read(record: RecordFile) -> bytes | None:
    try:
        return record.read()
    except DiskError as error:
        raise StorageFailed(f"reading: {error}") from error


def _decoded(data: bytes, decode: Callable[[bytes], T], path: str) -> T:
    try:
        return decode(data)
    except RecordInvalid as error:
        raise StorageCorrupt(f"{path}: {error}") from error
