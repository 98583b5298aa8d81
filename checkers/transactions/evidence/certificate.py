"""Certificates: a decision in the history's own names, for a separate program to verify.

A certificate is one object of JSON: {"model", "workload", "verdict"}, with {"history": {"name", "sha256"}} and how that
is read (`checkers.certified`) where it is known which file was checked, and {"assume"} where versions of registers were
assumed to have an order; and, of an order that explains the history,
    "order": [0, 4, 2]                  transactions by the history indices of their invocations, as they took effect
    "order": ["b0", "b4", "c0", "c4"]   at snapshot isolation and its kin their begins and commits
of a proof that there is none,
    "proof": [{"within", "steps", "cycle"}]
its blocks, each behind the one that it stands within (null for the first): steps {"source", "target", "because"} and as
`proof.py` says {"key", "reader", "writer", "path"}, numbered on from those of the block around; then a cycle of their
numbers, or the two blocks of the two cases. -1, at snapshot isolation b-1 and c-1, is the initial transaction, which
orders leave out. And of an anomaly that a few reads of a key show (SHOWN_BY_READS),
    "anomaly": {"name", "key", "transactions"}
And of a cycle that rests on what was assumed of the versions of registers (`assumed_cycles.py`),
    "assumed": ["wfr-keys"], "cycle": "G-single-item", "steps": [{"kind", "source", "target", "key"}]
where steps of kind ww and rw have {"versions", "because", "transactions"} too: which version precedes which, by what
assumption (or "initial"), and who shows it. Of a cycle of versions, "cyclic-versions", steps are {"key", "versions",
"because", "transactions"}.

`python -m checkers.transactions.verify` verifies it. An UNKNOWN decision has no certificate, nor has one whose
proof grew too large.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from checkers.api.anomaly import Anomaly
from checkers.api.verdict import Verdict
from checkers.certified import CertifiedHistory
from checkers.kernels.columns import Int32, Int64
from checkers.transactions.evidence.proof import Because, Decision, Proof, ProofStep
from checkers.transactions.history.committed import INITIAL

SHOWN_BY_READS = (
    "G1a",
    "G1b",
    "dirty-update",
    "duplicate-elements",
    "future-read",
    "garbage-read",
    "incompatible-order",
    "internal",
    "lost-update",
)

WRITTEN_AT_ONCE = 10_000
SNAPSHOTS = "snapshot-isolation"
"""Models whose names end so have events."""


class Undecided(Exception):
    """The decision is UNKNOWN, so there is nothing to certify."""


@dataclass(frozen=True, kw_only=True)
class Names:
    """The history's own names for what a decision numbers."""

    model: str
    workload: str
    start: Int64
    """The history index of each transaction's invocation, as in `Committed`."""
    keys: Sequence[str]
    history: CertifiedHistory | None = None
    """The file that was checked, if the certificate names it."""
    assume: Sequence[str] = ()
    """The assumptions about the order of registers' versions, whether the decision needs them or not."""

    @property
    def has_events(self) -> bool:
        return self.model.endswith(SNAPSHOTS) and "parallel" not in self.model

    @property
    def events(self) -> int:
        """How many events each transaction has."""
        return 2 if self.has_events else 1

    def transaction(self, number: int) -> int:
        return int(self.start[number])

    def event(self, number: int) -> int | str:
        if not self.has_events:
            return self.transaction(number)
        return f"{'bc'[number % 2]}{self.transaction(number // 2)}"


def certificate(decision: Decision, names: Names) -> str:
    """The text of the whole file. Raises Undecided."""
    return "".join(certificate_lines(decision, names))


def certificate_lines(decision: Decision, names: Names) -> Iterator[str]:
    """Pieces of the file, each of one or more lines. Raises Undecided."""
    if decision.order is not None:
        yield from _object_with_list(_head(names, Verdict.VALID), "order", _order_lines(decision.order, names))
    elif decision.proof is not None:
        yield from _object_with_list(_head(names, Verdict.INVALID), "proof", _block_lines(decision.proof, names))
    else:
        raise Undecided(f"{names.model} is {decision.verdict.value}, with neither an order nor a proof")


def certificate_of_anomaly(anomaly: Anomaly, names: Names) -> str:
    """The text of the whole file for an anomaly that a few reads of one key show."""
    found = {"name": anomaly.name, "key": anomaly.key, "transactions": list(anomaly.operations)}
    return json.dumps(_head(names, Verdict.INVALID) | {"anomaly": found}) + "\n"


def certificate_of_cycle(
    name: str, steps: Iterable[Mapping[str, Any]], assumed: Sequence[str], names: Names
) -> Iterator[str]:
    """Pieces of the file for a cycle that rests on these assumptions."""
    head = _head(names, Verdict.INVALID) | {"assumed": list(assumed), "cycle": name}
    yield from _object_with_list(head, "steps", map(json.dumps, steps))


def _head(names: Names, verdict: Verdict) -> dict[str, Any]:
    head: dict[str, Any] = {"model": names.model, "workload": names.workload, "verdict": verdict.value}
    if names.history is not None:
        head["history"] = names.history.to_json()
    if names.assume:
        head["assume"] = list(names.assume)
    return head


def _object_with_list(head: Mapping[str, Any], name: str, lines: Iterator[str]) -> Iterator[str]:
    yield f"{json.dumps(head)[:-1]}, {json.dumps(name)}: [\n"
    behind = next(lines, "")
    for line in lines:
        yield f"{behind},\n"
        behind = line
    yield f"{behind}\n]}}\n"


def _order_lines(order: Int32, names: Names) -> Iterator[str]:
    events = np.asarray(order, dtype=np.int64)
    events = events[events // names.events != INITIAL]
    for low in range(0, len(events), WRITTEN_AT_ONCE):
        some = events[low : low + WRITTEN_AT_ONCE]
        if names.has_events:
            starts = names.start[some // 2].tolist()
            events_named = [f"{'bc'[event % 2]}{start}" for event, start in zip(some.tolist(), starts, strict=True)]
            yield json.dumps(events_named)[1:-1]
        else:
            yield json.dumps(names.start[some].tolist())[1:-1]


def _block_lines(proof: Proof, names: Names) -> Iterator[str]:
    """The lines of a block, then those of its first case, then those of its second one, without recursion."""
    waiting: list[tuple[int | None, Proof]] = [(None, proof)]
    number = 0
    while waiting:
        within, block = waiting.pop()
        steps = ",\n  ".join(json.dumps(_step(step, names)) for step in block.steps)
        end = ', "cycle": ' + json.dumps(list(block.cycle)) if block.cases is None else ""
        yield f'{{"within": {json.dumps(within)}, "steps": [\n  {steps}\n]{end}}}'
        if block.cases is not None:
            waiting += [(number, case) for case in reversed(block.cases)]
        number += 1


def _step(step: ProofStep, names: Names) -> Mapping[str, Any]:
    entry: dict[str, Any] = {
        "source": names.event(step.source),
        "target": names.event(step.target),
        "because": step.because.value,
    }
    if step.key >= 0:
        entry["key"] = names.keys[step.key]
    if step.because in (Because.OVERWRITTEN, Because.OVERWRITES):
        entry["reader"] = names.transaction(step.reader)
        entry["writer"] = names.transaction(step.writer)
    if step.path:
        entry["path"] = list(step.path)
    return entry
