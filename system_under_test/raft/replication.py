"""What a leader knows of its followers, and what it sends them.

Entries go ahead of their acknowledgements, within a window; to a follower whose log differs, one append at a time until
the point is found where it agrees; and to one whose next entries are gone, a snapshot in chunks. This lives as long as
one leadership, and decides nothing of terms, commits and members.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from system_under_test.raft.bounds import Bounds
from system_under_test.raft.log import Log
from system_under_test.raft.message import (
    Append,
    AppendAccepted,
    AppendRefused,
    ChunkTaken,
    Entry,
    SnapshotChunk,
    TimeoutNow,
)
from system_under_test.raft.snapshot import FileGone, Outgoing, ReadFile


@dataclass(slots=True)
class Progress:
    """Of one follower."""

    next_index: int
    heard_ns: int
    match: int = 0
    round: int = 0
    is_probing: bool = True
    """Looking for the point where the logs agree: one append at a time. Otherwise sending ahead."""
    is_waiting: bool = False
    """A probe is under way; the next goes out with its answer or with the next round."""
    outgoing: Outgoing | None = None
    """The snapshot that is under way, as the next entries are gone; no entries are sent meanwhile."""


class Replication:
    def __init__(self, node: str, term: int, log: Log, bounds: Bounds, chunk_bytes: int, read: ReadFile) -> None:
        """The log is the leader's; it changes outside of this. `read` reads the files of its snapshots."""
        self.followers: dict[str, Progress] = {}
        self.round = 0
        self.commit = 0
        """As appends tell it."""
        self.sent: list[Append | SnapshotChunk | TimeoutNow] = []
        """Where all that is to be sent is put, in order."""
        self._node = node
        self._term = term
        self._log = log
        self._bounds = bounds
        self._chunk_bytes = chunk_bytes
        self._read = read

    def follow_up(self, members: Iterable[str], now_ns: int) -> None:
        """Send to these from now on, and to no others."""
        known, next_index = self.followers, self._log.last_index + 1
        others = [member for member in members if member != self._node]
        self.followers = {member: known.get(member) or Progress(next_index, now_ns) for member in others}

    def send_to_all(self) -> None:
        for peer, progress in self.followers.items():
            self._send_entries(peer, progress)

    def call_round(self) -> None:
        """Ask everyone to confirm this leadership; finds lost appends on the way, as it checks the log too."""
        self.round += 1
        for peer, progress in self.followers.items():
            if progress.outgoing is None and progress.next_index <= self._log.base_index:
                self._send_entries(peer, progress)
            if progress.outgoing is not None:
                # It fits once the snapshot is there.
                self._send_append(peer, progress.outgoing.index, progress.outgoing.term, ())
            elif progress.is_probing:
                self._probe(peer, progress)
            else:
                self._send(peer, progress, ())

    def repeat_chunks(self) -> None:
        """The ones before, or their answers, may be lost."""
        for peer, progress in self.followers.items():
            if progress.outgoing is not None:
                self._send_chunk(peer, progress)

    def renew_transfers(self, heard_before_ns: int) -> None:
        """Begin anew, with the newest snapshot, the transfer of an older one to a follower that was not heard since:
        its files are kept only for the sake of this transfer."""
        for progress in self.followers.values():
            outgoing = progress.outgoing
            is_old = outgoing is not None and outgoing.index != self._log.snapshot.index
            if is_old and progress.heard_ns <= heard_before_ns:
                progress.outgoing = self._newest()

    def files_in_use(self) -> frozenset[str]:
        """Names of files of older snapshots that are under way."""
        under_way = [progress.outgoing for progress in self.followers.values() if progress.outgoing is not None]
        older = [outgoing.snapshot for outgoing in under_way if outgoing.index != self._log.snapshot.index]
        return frozenset(file.name for snapshot in older for file in snapshot.files)

    def tell_to_stand(self, follower: str) -> None:
        self.sent.append(TimeoutNow(self._node, follower, self._term))

    def note(self, message: AppendAccepted | AppendRefused | ChunkTaken, now_ns: int) -> bool:
        """What a follower's answer says of it; whether it has more of the log than was known."""
        progress = self.followers.get(message.sender)
        if progress is None:
            return False
        progress.heard_ns = now_ns
        progress.round = max(progress.round, message.round)
        if isinstance(message, AppendAccepted) and progress.match < message.match <= self._log.last_index:
            progress.match = message.match
            return True
        return False

    def go_on(self, message: AppendAccepted | AppendRefused | ChunkTaken) -> None:
        """Send what is due after this answer, which is noted."""
        progress = self.followers.get(message.sender)
        if progress is None:
            return
        if isinstance(message, AppendAccepted):
            if progress.outgoing is not None and progress.match >= progress.outgoing.index:
                progress.outgoing = None
                progress.is_waiting = False
            progress.next_index = max(progress.next_index, progress.match + 1)
            if progress.match == progress.next_index - 1:
                progress.is_probing = False
            self._send_entries(message.sender, progress)
        elif isinstance(message, ChunkTaken):
            outgoing = progress.outgoing
            if outgoing is not None and message.index == outgoing.index and outgoing.advance(message.received):
                self._send_chunk(message.sender, progress)
        elif progress.outgoing is None and progress.match < message.previous_index < progress.next_index:
            fits = self._log.last_at_most(min(message.hint_index, message.previous_index - 1), message.hint_term)
            progress.next_index = max(progress.match, fits) + 1
            progress.is_probing, progress.is_waiting = True, False
            self._send_entries(message.sender, progress)

    def _send_entries(self, peer: str, progress: Progress) -> None:
        """Send what the follower lacks: a snapshot, or entries ahead within the window, or one append while probing."""
        if progress.outgoing is not None:
            return
        if progress.next_index <= self._log.base_index:
            progress.outgoing = self._newest()
            self._send_chunk(peer, progress)
            return
        if progress.is_probing:
            if not progress.is_waiting:
                self._probe(peer, progress)
            return
        window, last_index = self._bounds.window_entries, self._log.last_index
        while progress.next_index <= last_index and progress.next_index - progress.match <= window:
            entries = self._batch(progress.next_index)
            self._send(peer, progress, entries)
            progress.next_index += len(entries)

    def _probe(self, peer: str, progress: Progress) -> None:
        progress.is_waiting = True
        self._send(peer, progress, self._batch(progress.next_index))

    def _batch(self, first: int) -> tuple[Entry, ...]:
        entries = self._log.behind(first - 1, self._bounds.batch_entries)
        return tuple(entries[: fitting(entries, self._bounds.batch_bytes)])

    def _send(self, peer: str, progress: Progress, entries: tuple[Entry, ...]) -> None:
        previous = progress.next_index - 1
        self._send_append(peer, previous, self._log.term_at(previous), entries)

    def _send_append(self, peer: str, previous: int, previous_term: int, entries: tuple[Entry, ...]) -> None:
        self.sent.append(
            Append(self._node, peer, self._term, self.round, previous, previous_term, self.commit, entries)
        )

    def _newest(self) -> Outgoing:
        return Outgoing(self._log.snapshot, self._read)

    def _send_chunk(self, peer: str, progress: Progress) -> None:
        """Of what is under way to it; begun anew if that is not there any more. Raises DiskError if the newest snapshot
        is not."""
        outgoing = progress.outgoing
        assert outgoing is not None
        try:
            size, offset, data = outgoing.chunk(self._chunk_bytes)
        except FileGone:
            if outgoing.index == self._log.snapshot.index:
                raise
            outgoing = progress.outgoing = self._newest()
            size, offset, data = outgoing.chunk(self._chunk_bytes)
        self.sent.append(SnapshotChunk(self._node, peer, self._term, self.round, outgoing.index, size, offset, data))


def fitting(entries: Sequence[Entry], size: int) -> int:
    """How many of them, from the first on, have no more data than that; one at least, if there is any."""
    for count, entry in enumerate(entries):
        size -= len(entry.data)
        if size < 0 and count:
            return count
    return len(entries)
