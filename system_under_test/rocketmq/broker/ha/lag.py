"""Since when a slave has not been caught up, from notes of what the master held when it sent something.

At each transfer, heartbeats included, the master notes (its own max offset, now). An ack that reaches a noted
offset proves that the slave holds all that the master held at that time. It takes a list: were there one note,
overwritten at each transfer, a slave under steady load would always be a few bytes behind the newest note and
never counted as caught up. It takes the own max, not the end of the batch sent: a slave gigabytes behind acks
every batch it gets.
"""

from __future__ import annotations

MAX_NOTES = 512


class CaughtUp:
    __slots__ = ("_notes", "caught_up_ns")

    def __init__(self, now_ns: int) -> None:
        self.caught_up_ns = now_ns
        self._notes: list[tuple[int, int]] = []

    def note(self, max_offset: int, now_ns: int) -> None:
        """Something is being sent while the own log ends at `max_offset`."""
        notes = self._notes
        if notes and notes[-1][0] == max_offset:
            notes[-1] = (max_offset, now_ns)
            return
        if len(notes) >= MAX_NOTES:
            # Every second note goes, the newest stays: the time reported may then lie earlier, never later.
            del notes[-2::-2]
        notes.append((max_offset, now_ns))

    def acked(self, offset: int) -> None:
        notes = self._notes
        reached = 0
        for noted_offset, _ in notes:
            if noted_offset > offset:
                break
            reached += 1
        if reached:
            self.caught_up_ns = max(self.caught_up_ns, notes[reached - 1][1])
            del notes[:reached]
