"""The progress checker: while faults last, healthy and connected nodes serve if there are enough of them.

It judges the storm itself, without any demand on the run (`liveness` has that, in a phase of its own). What breaks it,
by name: no-progress   for as long as the system declares that it needs, the active faults stayed the same and left
enough nodes healthy and connected with each other, clients asked all the time, and no operation of some kind succeeded

It takes the history and the spans in which the system's adapter says that it has to serve (`RunUnderCheck.demanded`).
Without any, nothing is claimed. Time is counted in pieces, twenty to the bound, so that what is gathered does not grow
with the history: a finding lasted for twenty whole pieces. Clients asked all the time if at least one of any two
neighbouring pieces has an invocation of that kind. A kind of which no operation succeeded in the whole run is left out:
it is not known whether clients wait long enough for any answer, and `vacuity` reports it.

It does not establish progress in shorter spans, nor under faults for which it is not known which nodes they leave
healthy (`harness.record.steady_spans`), nor that the progress was right. It kills newcomer-blocks-shrink.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.api.anomaly import Anomaly
from checkers.api.excuses import Excuses
from checkers.api.findings import judge, summary_by_span
from checkers.api.plan import CheckRequest, Engine
from checkers.api.verdict import CheckerResult
from harness.record.meaning import Meaning
from harness.record.steady_spans import SteadySpan

COLUMNS = ("time", "type", "f")
PIECES = 20
"""How many pieces the bound has."""
MOST_PIECES = 1_000_000
ANYWHERE = -1
"""Stands for the whole run in place of the number of a span."""
PIECE = pa.schema(
    [
        pa.field("f", pa.string()),
        pa.field("span", pa.int32()),
        pa.field("piece", pa.int64()),
        pa.field("succeeded", pa.bool_()),
    ]
)
"""There was an invocation of this kind in this piece of a span, or a success."""


class Progress:
    """Finds the spans in which a system that had to serve served nobody."""

    name = "progress"
    meanings: ClassVar[Mapping[str, Meaning]] = {
        "no-progress": Meaning(
            says="Nothing of a kind of operation succeeded, although enough nodes were healthy and connected for the "
            "time in which the system declares that it serves again.",
            usually="No leader is elected, or those that are healthy wait for ever for one that is not.",
        ),
    }

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        run = request.run
        if run is None or run.serves_within_s is None or not run.demanded:
            return judge({}, legal=request.legal, undecided=(), statistics={})
        piece_ns = max(1, round(run.serves_within_s * 1e9) // PIECES)
        spans = np.array([(span.from_ns, span.until_ns) for span in run.demanded], dtype=np.int64)
        kinds = tuple(sorted(run.required_ok))
        history = engine.history(request.history, COLUMNS)
        happened = engine.mapped(history, partial(pieces_of, spans=spans, piece_ns=piece_ns, kinds=kinds), PIECE)
        rows = engine.gather(engine.grouped(happened, ("f", "span"), each_once, PIECE), MOST_PIECES).to_pylist()
        seen: dict[tuple[str, int, bool], list[int]] = {}
        for row in rows:
            seen.setdefault((row["f"], row["span"], row["succeeded"]), []).append(row["piece"])
        found: list[Anomaly] = []
        at: list[tuple[int, int]] = []
        longest: dict[str, float] = {}
        for number, span in enumerate(run.demanded):
            for f in (f for f in kinds if (f, ANYWHERE, True) in seen):
                count = (span.until_ns - span.from_ns) // piece_ns
                succeeded, asked = (sorted(seen.get((f, number, ok), ())) for ok in (True, False))
                waits = [*_waits(succeeded, asked, count)]
                longest[f] = max(longest.get(f, 0.0), *((end - start) * piece_ns / 1e9 for start, end in waits), 0.0)
                for start, end in waits:
                    if end - start >= PIECES:
                        at.append((span.from_ns + start * piece_ns, span.from_ns + end * piece_ns))
                        found.append(_anomaly(f, span, *at[-1], run.serves_within_s))
        starts, ends = (np.array([one[side] for one in at], dtype=np.int64) for side in (0, 1))
        return judge(
            {"no-progress": summary_by_span(found, starts, ends, Excuses.by_time(request.excuses))} if found else {},
            legal=request.legal,
            undecided=(),
            statistics={
                "demanded_s": _length_s(run.demanded),
                "longest_without_success_s": {f: round(waited, 3) for f, waited in longest.items()},
            },
        )


def pieces_of(batch: pa.Table, *, spans: np.ndarray, piece_ns: int, kinds: Sequence[str]) -> pa.Table:
    """Kernel: in which pieces of which spans there was an invocation or a success of these kinds, each once."""
    type_ = batch["type"].cast(pa.string())
    wanted = pc.and_(
        pc.is_in(batch["f"].cast(pa.string()), pa.array(kinds, pa.string())),
        pc.is_in(type_, pa.array(("invoke", "ok"), pa.string())),
    )
    rows = batch.filter(wanted)
    succeeded = rows.filter(pc.equal(rows["type"].cast(pa.string()), "ok"))["f"].cast(pa.string()).unique().to_pylist()
    anywhere = [{"f": f, "span": ANYWHERE, "piece": 0, "succeeded": True} for f in succeeded]
    time, parts = rows["time"].to_numpy(), [pa.Table.from_pylist(anywhere, schema=PIECE)]
    for number, (from_ns, until_ns) in enumerate(spans.tolist()):
        inside = np.flatnonzero((time >= from_ns) & (time < until_ns))
        if not len(inside):
            continue
        part = rows.take(pa.array(inside))
        columns = {
            "f": part["f"].cast(pa.string()),
            "span": pa.array(np.full(len(inside), number, dtype=np.int32)),
            "piece": pa.array((time[inside] - from_ns) // piece_ns),
            "succeeded": pc.equal(part["type"].cast(pa.string()), "ok"),
        }
        parts.append(each_once(pa.table(columns, schema=PIECE)))
    return pa.concat_tables(parts)


def each_once(pieces: pa.Table) -> pa.Table:
    """Kernel: equal rows are one."""
    return pieces.group_by(PIECE.names).aggregate([]).select(PIECE.names)


def _waits(succeeded: Sequence[int], asked: Sequence[int], count: int) -> Iterator[tuple[int, int]]:
    """The longest stretches of pieces [start, end) without a success, in which each piece or the one before it has an
    invocation; there are `count` pieces."""
    successes, askings = set(succeeded), set(asked)
    start: int | None = None
    for piece in range(count + 1):
        is_over = piece == count or piece in successes or not (piece in askings or piece - 1 in askings)
        if is_over and start is not None:
            yield start, piece
            start = None
        elif not is_over and start is None and piece in askings:
            start = piece


def _anomaly(f: str, span: SteadySpan, from_ns: int, until_ns: int, within_s: float) -> Anomaly:
    waited_s = (until_ns - from_ns) / 1e9
    return Anomaly(
        name="no-progress",
        because=f"no {f} succeeded from {from_ns / 1e9:.1f} s to {until_ns / 1e9:.1f} s, although since "
        f"{span.from_ns / 1e9:.1f} s {', '.join(sorted(span.healthy))} were healthy and connected, and the system "
        f"declares that these serve within {within_s:g} s",
        details={
            "f": f,
            "waited_s": waited_s,
            "within_s": within_s,
            "healthy": sorted(span.healthy),
            "down": sorted(span.down),
        },
    )


def _length_s(spans: Sequence[SteadySpan]) -> float:
    """The length of all spans together, with each moment counted once."""
    moments = sorted({(span.from_ns, span.until_ns) for span in spans})
    return round(sum(until_ns - from_ns for from_ns, until_ns in moments) / 1e9, 3)
