"""What a system says of its nodes while a test runs, as the events that they do not write themselves.

Each change is kept with the moment at which it was seen, which is later than that at which it happened, by a second and
by as long as nobody answered.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.errors import OperationError
from harness.record.run_directory import EVENTS

LOOKED_EVERY_S = 1.0
ANSWERED_WITHIN_S = 10.0


def is_observable(system: Any) -> bool:
    return getattr(system, "observed", None) is not None


class Observation:
    """Of one run: `go_on` until it is cancelled, then `write`."""

    def __init__(self, system: Any, settings: Any, timeline: Any) -> None:
        self._system, self._settings, self._timeline = system, settings, timeline
        self._last: dict[tuple[str, str], Mapping[str, Any]] = {}
        self._lines: dict[str, list[str]] = {}

    async def go_on(self, host: Any) -> None:
        """For ever. A look that fails shows nothing: it must not end a run."""
        while True:
            with suppress(OperationError, TimeoutError, OSError):
                async with asyncio.timeout(ANSWERED_WITHIN_S):
                    self._note(await self._system.observed(self._settings, host))
            await self._timeline.sleep(LOOKED_EVERY_S)

    def _note(self, seen: Mapping[str, tuple[Mapping[str, Any], ...]]) -> None:
        now_ns = self._timeline.now_ns()
        for node, events in seen.items():
            for event in events:
                place = (node, str(event["event"]))
                if self._last.get(place) != event:
                    self._last[place] = event
                    self._lines.setdefault(node, []).append(json.dumps({"time": now_ns, **event}))

    def write(self, nodes: Path) -> None:
        """Add them to what the nodes left. Raises OSError."""
        for node, lines in sorted(self._lines.items()):
            (nodes / node).mkdir(parents=True, exist_ok=True)
            with (nodes / node / EVENTS).open("a", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in lines)
