"""Events of nodes that write none: programs that others made, which are asked in the storm, and whose logs are read.

A system that puts such a program on trial may bring a `Reporting`. What comes of it is written where nodes of our own
leave their events, so that checkers and pages see no difference. Nothing that fails here harms a run: less is known.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from harness.reading import LONGEST_LINES_BYTES, json_kept, read_kept
from harness.record.event_lines import node_events
from harness.record.run_directory import ABOUT_LOGS, EVENTS, NODE_LOG, NODE_LOGS, OBSERVED

Event = Mapping[str, Any]
"""What a node of ours would write: `event`, its fields, and `time` in ns since the run began."""
Report = Callable[[str, str, Mapping[str, Any]], None]
"""Takes (node, event, its fields) as of now."""


@dataclass(frozen=True, kw_only=True)
class Account:
    """What is known of one node once it has ended."""

    observed: Sequence[Event]
    """What `Reporting.observe` reported of it, in order."""
    logs: Mapping[str, Sequence[str]]
    """Path below its directory of logs -> its lines."""
    console: Sequence[str]
    """The lines that it wrote to its output."""
    wall_at_zero_ns: int | None
    """The node's wall clock at second 0 of the run; None where that is not known, or a fault made the clock wrong."""


class Reporting(Protocol):
    """Of one run."""

    async def observe(self, host: Any, report: Report) -> None:
        """Ask the nodes for ever, as clients on `host`; it is cancelled once the final reads are over."""

    def events(self, node: str, account: Account) -> Iterable[Event]:
        """The events of the node, in order."""

    def doubts(self, account: Account) -> Sequence[str]:
        """What befell the node that was neither a fault of the storm nor its program's own doing: no run in which there
        is any is VALID. Each as the end of a sentence that begins with the node's name."""


def write_events(
    reporting: Reporting, nodes: Path, names: Iterable[str], *, misdated: frozenset[str]
) -> tuple[str, ...]:
    """In the folder of each of these nodes: its events, from what it answered and from its logs, if there are any.

    `misdated`: nodes by whose clocks nothing can be dated. Returns the doubts of all nodes. Raises OSError, ValueError.
    """
    doubts: list[str] = []
    for name in names:
        account = _account(nodes / name, is_dated=name not in misdated)
        doubts += (f"{name} {doubt}" for doubt in reporting.doubts(account))
        events = list(reporting.events(name, account))
        if events:
            text = "".join(json.dumps(event) + "\n" for event in events)
            (nodes / name / EVENTS).write_text(text, encoding="utf-8")
    return tuple(doubts)


def _account(folder: Path, *, is_dated: bool) -> Account:
    """Raises OSError, ValueError."""
    observed, about = folder / OBSERVED, folder / ABOUT_LOGS
    return Account(
        observed=[event for _, event in node_events(observed)] if observed.exists() else [],
        logs=dict(_logs(folder / NODE_LOGS)),
        console=_lines(folder / NODE_LOG) if (folder / NODE_LOG).exists() else (),
        wall_at_zero_ns=json_kept(about)["wall_at_zero_ns"] if is_dated and about.exists() else None,
    )


def _logs(folder: Path) -> Iterator[tuple[str, list[str]]]:
    for path in sorted(folder.rglob("*.log")):
        if path.is_file():
            yield path.relative_to(folder).as_posix(), _lines(path)


def _lines(path: Path) -> list[str]:
    return read_kept(path, LONGEST_LINES_BYTES).decode(errors="replace").splitlines()
