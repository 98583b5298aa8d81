"""What may legally become of what was written at some time: an adapter says it, checkers hold their findings to it."""

from __future__ import annotations

from dataclasses import dataclass

ANY = "*"
"""Stands among an excuse's anomalies for whatever is placed by the time at which it was seen, and not by what was
written."""


@dataclass(frozen=True, kw_only=True)
class Excuse:
    """Of what was on its way or acknowledged in some span of time, these anomalies are legal, and of nothing else.

    A message is in the span if the time from its sending to its acknowledgement meets it; a trace that a message left
    (two messages in one place, a step back) is if the earliest operation that shows it is.
    """

    anomalies: tuple[str, ...]
    reason: str
    from_ns: int
    until_ns: int
    """The last moment of the span."""
    seen_from_ns: int = 0
    """Where it is known when an anomaly showed, which may be long after it was written, it had not shown before this
    moment."""
    nodes: tuple[str, ...] = ()
    """Where an anomaly is known to show at some nodes, it has to show at one of these; empty: at any."""
    keys: tuple[str, ...] = ()
    """Where the key of what an anomaly is about is known, it has to be one of these; empty: any."""
