"""Who sent how much to whom, and what was written to disks, from the trace of a simulation."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from harness.trace import Trace

_CONNECTION = re.compile(r"([^<>]+)[<>]([^<>#]+)#[0-9]+")
_SPAN = re.compile(r"([0-9]+)\+([0-9]+)")


@dataclass(kw_only=True)
class Sent:
    """Bytes that one host wrote at once to a connection with another."""

    source: str
    target: str
    sent_ns: int
    length: int
    received_ns: int | None = None
    """When they arrived; None if they never did."""


@dataclass(frozen=True, kw_only=True)
class Wrote:
    """A write to a disk, or an fsync."""

    node: str
    time_ns: int
    what: str
    """`write` or `fsync`."""
    path: str
    length: int


@dataclass(kw_only=True)
class Traffic:
    sent: list[Sent] = field(default_factory=list)
    wrote: list[Wrote] = field(default_factory=list)
    _open: dict[tuple[str, int], Sent] = field(default_factory=dict)
    """Connection and offset -> what is under way."""

    def takes(self, time_ns: int, owner: str, kind: str, detail: str) -> None:
        words = detail.split(" ")
        if kind in ("write", "fsync"):
            span = _SPAN.fullmatch(words[1]) if len(words) > 1 else None
            self.wrote.append(
                Wrote(node=owner, time_ns=time_ns, what=kind, path=words[0], length=int(span[2]) if span else 0)
            )
            return
        connection, span = _CONNECTION.fullmatch(words[0]), _SPAN.fullmatch(words[1])
        if connection is None or span is None:
            return
        key = words[0], int(span[1])
        if kind == "send":
            sent = Sent(source=connection[1], target=connection[2], sent_ns=time_ns, length=int(span[2]))
            self._open[key] = sent
            self.sent.append(sent)
        elif key in self._open:
            self._open.pop(key).received_ns = time_ns


class TrafficTrace(Trace):
    """A `Trace` that keeps what was sent and written."""

    __slots__ = ("traffic",)

    def __init__(self) -> None:
        super().__init__()
        self.traffic = Traffic()

    def event(self, time_ns: int, owner: str, kind: str, detail: str) -> None:
        super().event(time_ns, owner, kind, detail)
        if kind in ("send", "deliver", "write", "fsync") and not self._closed:
            self.traffic.takes(time_ns, owner, kind, detail)
