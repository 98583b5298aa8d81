"""What no verdict can be built on: histories that do not mean what this workload's mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from checkers.findings import Example
from checkers.verdict import EXAMPLES, AnomalySummary
from harness.record.history import MalformedHistory

MALFORMED = "malformed"
"""The name under which kernels report it, with the invocation that is to be named."""


def malformed_examples(found: Iterable[tuple[int, str]]) -> list[Example]:
    """The first ones of these: history index of the invocation, and why."""
    return [Example(key=None, operations=(start,), because=reason) for start, reason in sorted(found)[:EXAMPLES]]


def refuse_malformed(found: Mapping[str, AnomalySummary]) -> None:
    """Raises MalformedHistory with the first operation and its reason if a kernel reported any."""
    if MALFORMED in found:
        first = found[MALFORMED].examples[0]
        raise MalformedHistory(first.operations[0], first.because)
