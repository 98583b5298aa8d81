"""The file in which one node's events stand, line for line.

Beside `node_events`, which makes a table of them, since what a system brings reads lines alone and loads no tables.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.reading import lines_kept

LONGEST_EVENTS_BYTES = 1 << 36
"""How long the events of one node may be; they are read in a stream."""


def node_events(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(number of its line from 0, event as the node wrote it), in order; a line that is torn or no event is left out.

    Raises OSError, and ValueError for a file of events that is none or has a line without an end.
    """
    for number, line in enumerate(lines_kept(path, LONGEST_EVENTS_BYTES)):
        try:
            event = json.loads(line.decode(errors="replace"))
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict):
            yield number, event
