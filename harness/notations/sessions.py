"""Sessions of transactions on registers, and the rows of a history that say the same.

Nothing is known of when a transaction took place but its place in its session. A history of rows says more: who ended
before another began. So what comes of this can only be judged by models that do not look at realtime; the rows
are laid so that the transactions at the same place of all sessions overlap.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Key = int | str


@dataclass(frozen=True, kw_only=True)
class Access:
    """A read or a write of a register."""

    writes: bool
    key: Key
    value: int | None
    """What was read or written; None where a read found nothing."""


@dataclass(kw_only=True)
class SessionTransaction:
    accesses: list[Access] = field(default_factory=list)
    committed: bool = True


@dataclass(frozen=True)
class Sessions:
    """Each a list of transactions in their order."""

    of: Sequence[Sequence[SessionTransaction]]

    def beginning_with(self, initial: int) -> Sessions:
        """The same, where registers begin with a value that nobody writes: reads of it found nothing."""
        written = {(one.key, one.value) for session in self.of for txn in session for one in txn.accesses if one.writes}

        def read(one: Access) -> Access:
            is_initial = not one.writes and one.value == initial and (one.key, initial) not in written
            return Access(writes=False, key=one.key, value=None) if is_initial else one

        return Sessions(
            [
                [SessionTransaction(accesses=list(map(read, txn.accesses)), committed=txn.committed) for txn in session]
                for session in self.of
            ]
        )


def write_rows(sessions: Sessions, path: Path) -> None:
    """Write them as JSON, a row a line. Raises OSError."""
    with path.open("w") as file:
        for row in _rows(sessions):
            file.write(json.dumps(row) + "\n")


def _rows(sessions: Sessions) -> Iterator[dict[str, Any]]:
    for place in range(max((len(session) for session in sessions.of), default=0)):
        together = [(process, one[place]) for process, one in enumerate(sessions.of) if place < len(one)]
        for process, txn in together:
            asked = [_part(one, None if not one.writes else one.value) for one in txn.accesses]
            yield {"process": process, "type": "invoke", "f": "txn", "value": asked}
        for process, txn in together:
            done = [_part(one, one.value) for one in txn.accesses]
            yield {"process": process, "type": "ok" if txn.committed else "fail", "f": "txn", "value": done}


def _part(one: Access, value: int | None) -> list[Any]:
    return ["w" if one.writes else "r", one.key, value]
