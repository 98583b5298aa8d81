"""The checker of queues that move from servers to servers: each stays one queue, with offsets that go on.

A queue consists of segments, each of which begins behind the end of the one before it. The messages that the final
reads find fill each segment from its beginning without a hole, so offsets have gaps only where one segment ends and the
next one begins.

What breaks it, by name:
  offset-gap         the final reads lack an offset within a segment, and go on behind it
  stray-offset       the final reads find a message at an offset that no segment has
  segment-overlap    a segment begins before the end of the one before

It takes histories of the log workload with `move` and `final-segments`. The log checker judges whether messages are
lost, offsets are used twice, or consumers skip messages. A history proves nothing if no move is known to have
succeeded, or if its segments were not read.

Mutants it kills: logic-offset-overlap.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from checkers.api.findings import FINDINGS, Example, Findings, gathered_findings, judge
from checkers.api.plan import CheckRequest, Engine
from checkers.api.verdict import EXAMPLES, CheckerResult
from checkers.kernels.columns import OK, TYPES, Int64, codes
from harness.record.meaning import Meaning

MEANINGS: Mapping[str, Meaning] = {
    "offset-gap": Meaning(
        says="An offset within a segment holds nothing, and the queue goes on behind it.",
        usually="Offsets of the segment are counted from another place by its readers than by its writers.",
    ),
    "stray-offset": Meaning(
        says="A message stands where the queue has no segment.",
        usually="Servers that had given the queue away took a message for it all the same.",
    ),
    "segment-overlap": Meaning(
        says="A segment of a queue begins before the end of the one before.",
        usually="The end was read before the last message had come, or the beginning was not taken from it.",
    ),
}

COLUMNS = ("index", "type", "f", "key", "value.messages")
FUNCTIONS = ("move", "final-segments", "final-poll")
MOVE, SEGMENTS, FINAL_POLL = range(3)
OPEN = -1
"""The end of a segment that is still open."""
MAX_QUEUES = 100_000

FACTS = pa.schema(
    [
        pa.field("key", pa.string()),
        pa.field("kind", pa.int8()),
        pa.field("index", pa.int64()),
        pa.field("first", pa.int64()),
        pa.field("second", pa.int64()),
    ]
)
"""Facts about a queue: a move that succeeded; a segment with its beginning and its end; a place that a final read
shows, with the message there."""
SEEN = pa.schema([pa.field("key", pa.string()), pa.field("moves", pa.int64()), pa.field("segments", pa.int64())])


class MovesChecker:
    name = "log-moves"
    meanings = MEANINGS

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        facts = engine.mapped(engine.history(request.history, COLUMNS), facts_of, FACTS)
        seen = engine.gather(engine.grouped(facts, ("key",), seen_of_queue, SEEN), MAX_QUEUES).to_pylist()
        excused = {name: place for place, each in reversed([*enumerate(request.excuses)]) for name in each.anomalies}
        findings = engine.grouped(facts, ("key",), partial(queue_findings, excused=excused), FINDINGS)
        moves = sum(row["moves"] for row in seen)
        unread = sorted(row["key"] for row in seen if not row["segments"])
        return judge(
            gathered_findings(engine, findings, request.excuses).anomalies,
            legal=request.legal,
            undecided=[f"nobody has read in the end which segments {key} has" for key in unread[:EXAMPLES]],
            vacuous=[] if moves else ["too little happened: no queue was moved, so this proves nothing of moving"],
            statistics={"moves": moves, "segments": sum(row["segments"] for row in seen)},
        )


def facts_of(batch: pa.Table) -> pa.Table:
    """Kernel: FACTS of one batch."""
    kinds, types = codes(batch["f"], FUNCTIONS), codes(batch["type"], TYPES)
    wanted = np.flatnonzero((kinds >= 0) & (types == OK))
    rows: list[dict[str, Any]] = []
    for kind, row in zip(kinds[wanted].tolist(), batch.take(pa.array(wanted)).to_pylist(), strict=True):
        shown = [(0, 0)] if kind == MOVE else [(one["offset"], one["message"]) for one in _messages(row)]
        rows += [
            {"key": row["key"] or "", "kind": kind, "index": row["index"], "first": first, "second": second}
            for first, second in shown
        ]
    return pa.Table.from_pylist(rows, schema=FACTS)


def _messages(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    return (row["value"] or {}).get("messages") or []


def seen_of_queue(facts: pa.Table) -> pa.Table:
    """Kernel: what there is of one queue."""
    kinds = facts["kind"].to_numpy()
    row = {
        "key": facts["key"][0].as_py(),
        "moves": int((kinds == MOVE).sum()),
        "segments": int((kinds == SEGMENTS).sum()),
    }
    return pa.Table.from_pylist([row], schema=SEEN)


def queue_findings(facts: pa.Table, *, excused: Mapping[str, int]) -> pa.Table:
    """Kernel over all facts of a queue."""
    findings = Findings()
    key = facts["key"][0].as_py()
    segments = sorted((row["first"], row["second"], row["index"]) for row in _of(facts, SEGMENTS))
    if segments:
        shown = {row["first"]: row["index"] for row in reversed(_of(facts, FINAL_POLL))}
        offsets = np.array(sorted(shown), dtype=np.int64)
        found = {
            "segment-overlap": _overlaps(segments),
            "stray-offset": _strays(segments, offsets, shown),
            "offset-gap": _gaps(segments, offsets, shown),
        }
        for name, sentences in found.items():
            examples = [
                Example(key=key, operations=tuple(sorted(set(operations))), tie=(offset,), because=f"{key}: {sentence}")
                for offset, operations, sentence in sentences
            ]
            examples.sort(key=lambda example: (example.operations, example.tie))
            findings.add(name, len(examples), examples[:EXAMPLES], excused.get(name))
    return findings.table()


Segments = list[tuple[int, int, int]]
Sentences = list[tuple[int, tuple[int, ...], str]]


def _of(facts: pa.Table, kind: int) -> list[dict[str, Any]]:
    chosen = facts.take(pa.array(np.flatnonzero(facts["kind"].to_numpy() == kind))).to_pylist()
    return sorted(chosen, key=lambda row: (row["index"], row["first"]))


def _overlaps(segments: Segments) -> Sentences:
    return [
        (
            begin,
            (index,),
            f"a segment begins at offset {begin}, before {'any' if end == OPEN else end}, where the one "
            f"ends that begins at {earlier}",
        )
        for (earlier, end, _), (begin, _, index) in pairwise(segments)
        if end == OPEN or begin < end
    ]


def _strays(segments: Segments, offsets: Int64, reader_of: Mapping[int, int]) -> Sentences:
    begins = np.array([begin for begin, _, _ in segments], dtype=np.int64)
    ends = np.array([np.iinfo(np.int64).max if end == OPEN else end for _, end, _ in segments], dtype=np.int64)
    place = np.searchsorted(begins, offsets, side="right") - 1
    stray = offsets[(place < 0) | (offsets >= ends[np.maximum(place, 0)])]
    last = segments[0][2]
    return [
        (offset, (reader_of[offset], last), f"offset {offset} holds a message, and lies in no segment")
        for offset in stray.tolist()
    ]


def _gaps(segments: Segments, offsets: Int64, reader_of: Mapping[int, int]) -> Sentences:
    """The gaps: where the next offset that was found neither follows the one before it nor begins a segment. There may
    be one before the first offset, too."""
    begins = {begin for begin, _, _ in segments}
    before = np.concatenate((np.full(min(len(offsets), 1), -1, dtype=np.int64), offsets[:-1]))
    at = np.flatnonzero(offsets - before > 1).tolist()
    return [
        (offset, (reader_of[offset],), f"the final reads go from offset {earlier} to {offset}, where no segment begins")
        for earlier, offset in ((int(before[place]), int(offsets[place])) for place in at)
        if offset not in begins
    ]
