"""Which faults a foreign nemesis made, from its rows: as rows of a fault log.

    :start-partition … :stop-partition        :kill … :start        :pause … :resume        :start … :stop
    :bump-clock … :reset-clock                :bitflip: for as long as the act itself took

An act stands in two rows of the same f, as it is asked and as it was done, or in one. Values are shown as they come. A
fault that nothing ends lasts to the end; what ends faults ends all of its kind, on the nodes it names if it names any.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.jepsen import edn
from harness.jepsen.beside import NemesisAct
from harness.record.fault_row import FaultRow

LONGEST_SHOWN = 400
"""Characters of a value."""

_ENDS: Mapping[str, tuple[str, ...]] = {
    "resume": ("pause",),
    "cont": ("pause",),
    "reset-clock": ("clock",),
    "heal": ("partition",),
    "fast": ("slow", "flaky"),
    "restart": ("kill",),
    "recover": ("kill",),
}
"""An act that undoes what others did -> the kinds of these."""
_CLOCKS = ("bump-clock", "strobe-clock", "skew-clock", "scramble-clock")
_LASTING = ("kill", "pause", "slow", "flaky", "isolate", "partition", "crash", "clock")
"""Kinds that last until something ends them; of any other act nothing is known but how long it took."""
_KINDS = {**dict.fromkeys(_CLOCKS, "clock"), "clock-skew": "clock", "isolate": "partition", "crash": "kill"}
_SAYS = (("cut off", "partition"), ("isolat", "partition"), ("paus", "pause"), ("kill", "kill"), ("stopped", "kill"))
"""What a plain `start` did, by words of what it says it did."""


@dataclass(frozen=True, kw_only=True)
class _Deed:
    """An act as it was asked and as it was done."""

    begun: NemesisAct
    ended: NemesisAct

    @property
    def f(self) -> str:
        return self.begun.f

    @property
    def done(self) -> Any:
        return self.ended.value if self.ended is not self.begun else None

    @property
    def nodes(self) -> tuple[str, ...]:
        return _nodes_in(self.done) or _nodes_in(self.begun.value)


def fault_rows(acts: Sequence[NemesisAct]) -> list[FaultRow]:
    """In the order of the acts."""
    deeds = list(_deeds(acts))
    start_heals = _start_heals([deed.f for deed in deeds])
    rows: list[FaultRow] = []
    open_: list[FaultRow] = []
    for number, deed in enumerate(deeds):
        ends = _ended_by(deed.f, start_heals)
        if ends is not None:
            named = set(deed.nodes)
            ended = [
                row for row in open_ if row.kind in ends and not (named and row.nodes and named.isdisjoint(row.nodes))
            ]
            open_ = [row for row in open_ if row not in ended]
            rows += [_row(deed, row.kind, row.number, row, deed.ended.time_ns) for row in ended]
            continue
        kind = _kind(deed)
        row = _row(deed, kind, number, None, deed.begun.time_ns)
        rows.append(row)
        if kind in _LASTING or deed.f.startswith("start"):
            open_.append(row)
        else:
            rows.append(_row(deed, kind, number, row, deed.ended.time_ns))
    return rows


def _deeds(acts: Iterable[NemesisAct]) -> Iterator[_Deed]:
    """Two rows of one f that follow each other are one act."""
    asked: NemesisAct | None = None
    for act in acts:
        if asked is not None and asked.f == act.f:
            yield _Deed(begun=asked, ended=act)
            asked = None
            continue
        if asked is not None:
            yield _Deed(begun=asked, ended=asked)
        asked = act
    if asked is not None:
        yield _Deed(begun=asked, ended=asked)


def _may_concern(deed: _Deed, fault: FaultRow) -> bool:
    """Whether they name the same nodes, or one of them names none."""
    return not (deed.nodes and fault.nodes and set(deed.nodes).isdisjoint(fault.nodes))


def _start_heals(fs: Sequence[str]) -> bool:
    """Whether a plain `start` starts processes that were ended, rather than a fault."""
    plain = [f for f in fs if f in ("start", "stop")]
    return "kill" in fs or "crash" in fs or plain[:1] == ["stop"]


def _ended_by(f: str, start_heals: bool) -> tuple[str, ...] | None:
    """The kinds of faults that such an act ends; None for one that ends none."""
    if f in ("start", "stop"):
        heals = start_heals if f == "start" else not start_heals
        return ("kill",) if heals and start_heals else ("partition", "pause", "kill", "fault") if heals else None
    for prefix in ("stop-", "end-", "heal-"):
        if f.startswith(prefix):
            named = f.removeprefix(prefix)
            return (named, _KINDS.get(named, named))
    return _ENDS.get(f)


def _kind(deed: _Deed) -> str:
    f = deed.f
    if f == "stop":
        return "kill"
    if f == "start":
        said = edn.written(deed.done if deed.done is not None else deed.begun.value).lower()
        named = next((kind for word, kind in _SAYS if word in said), None)
        return named or ("partition" if _is_grudge(deed.done) or _is_grudge(deed.begun.value) else "fault")
    for prefix in ("start-", "begin-"):
        f = f.removeprefix(prefix)
    return _KINDS.get(f, f)


def _row(deed: _Deed, kind: str, number: int, start: FaultRow | None, time_ns: int) -> FaultRow:
    asked = deed.begun.value
    return FaultRow(
        time_ns=time_ns,
        package="nemesis",
        number=number,
        starts=start is None,
        kind=kind,
        shape=deed.f if asked is None else f"{deed.f} {_render(asked)}",
        nodes=deed.nodes if start is None else start.nodes,
        happened=True,
        evidence="" if deed.done is None else _render(deed.done),
    )


def _nodes_in(value: Any) -> tuple[str, ...]:
    """The texts that a value is a list of, or that its entries are named after."""
    names = value if isinstance(value, dict | tuple | list | set | frozenset) else ()
    nodes = [str(name) for name in names]
    is_names = all(isinstance(name, str) and not isinstance(name, edn.Keyword) for name in names)
    return tuple(sorted(nodes)) if is_names else ()


def _is_grudge(value: Any) -> bool:
    """Whether it says of each node which others it cannot hear."""
    return isinstance(value, dict) and bool(value) and all(_nodes_in(heard) for heard in value.values())


def _render(value: Any) -> str:
    text = value if isinstance(value, str) and not isinstance(value, edn.Keyword) else edn.written(value)
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"
