"""A storm as a story: its faults, the operations and messages that matter, and what nodes said, for `results.lamport`.

What carried the data that a violation is about cannot be read from bytes; it is taken to be what was sent while an
operation that witnesses the violation was open: between its client and a node, and about as much or more from that
node to others.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.abilities import narrator_of
from harness.operation import NEMESIS
from harness.record.fault_log import FaultWindow
from results.lamport.page import page
from results.lamport.story import NEEDED, Band, Message, Moment, Story, Thing
from results.report.figure import fault_colour
from stormproof.search.messages import Sent, Traffic, TrafficTrace
from stormproof.search.shrink import examples, witnesses
from stormproof.search.storm import StormOutcome, blown_and_judged
from stormproof.search.storm_file import StormFile
from stormproof.session.registry import Parts

SENTENCES = 6
"""The most sentences that say why promises are broken."""
WITNESSES = 6
"""Operations that are shown as such."""
MOST_COMPANIONS = 8
"""Messages and writes that are shown with a witness."""
LONGEST_VALUE = 40
PASSED_OVER = ("time", "wall", "event")


def storm_page(storm: StormFile, parts: Parts, *, file: Path) -> str:
    """The page of a storm file, which is carried out once more for it."""
    trace = TrafficTrace()
    judged = blown_and_judged(storm.scenario, parts, trace=trace)
    return page(story_of(judged, trace.traffic, storm.anomaly, parts, file=file))


def page_beside(file: Path) -> Path:
    """Where the page of a storm file goes: `lost.storm.toml` has `lost.storm.html`."""
    return file.with_suffix(".html")


def story_of(outcome: StormOutcome, traffic: Traffic, anomaly: str, parts: Parts, *, file: Path) -> Story:
    operations = _operations(outcome, anomaly)
    needed = [operation for operation in operations if operation.is_witness]
    things: list[Thing] = [
        *_faults(outcome),
        *(operation.band() for operation in operations),
        *_narrate(outcome, anomaly, parts),
        *_messages(traffic, needed),
        *_writes(traffic, needed),
    ]
    nodes = tuple(sorted(outcome.blown.events))
    clients = sorted({operation.client for operation in operations})
    others = sorted({line for thing in things for line in thing.lines} - {*nodes, *clients})
    found = outcome.anomalies.get(anomaly, 0)
    scenario = outcome.blown.scenario
    return Story(
        title=f"{anomaly}: {found} found in {scenario.system}"
        + (f" with {scenario.mutant}" if scenario.mutant else ""),
        because=_because(outcome, anomaly),
        command=shlex.join(["stormproof", "replay", file.name]),
        schedule=scenario.schedule,
        lines=(*clients, *nodes, *others),
        things=tuple(sorted(things, key=lambda thing: (thing.time_ns, thing.lines))),
    )


def _because(outcome: StormOutcome, anomaly: str) -> tuple[str, ...]:
    """The anomaly first, then the others that are not legal."""
    names = [anomaly, *sorted(outcome.anomalies.keys() - {anomaly})]
    sentences = [f"{name}: {example.because}" for name in names for example in examples(outcome, name)[:2]]
    return tuple(sentences[:SENTENCES])


# Faults -------------------------------------------------------------------------------------------------------------


def _faults(outcome: StormOutcome) -> Iterator[Thing]:
    for window in outcome.blown.faults.struck:
        for node in window.aimed_at or window.nodes:
            yield Band(
                line=node,
                time_ns=window.start_ns,
                until_ns=window.stop_ns,
                label=_fault_label(window),
                colour=fault_colour(window.kind),
                sentence=f"was struck by “{window.name}”: {window.evidence}",
                after=f"was relieved of “{window.name}”: {window.healing}" if window.healing else "",
                weight=NEEDED,
            )


def _fault_label(window: FaultWindow) -> str:
    return {"power": "without power", "kill": "killed", "partition": "cut off", "pause": "paused"}.get(
        window.kind, window.kind
    )


# Operations ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Operation:
    client: str
    begin: Mapping[str, Any]
    end: Mapping[str, Any] | None
    is_witness: bool

    @property
    def from_ns(self) -> int:
        return int(self.begin["time"])

    @property
    def until_ns(self) -> int:
        return self.from_ns if self.end is None else int(self.end["time"])

    def band(self) -> Band:
        asked = f"{self.begin['f']} {_value(self.begin['value'])}".strip()
        type_ = "open" if self.end is None else str(self.end["type"])
        answer = "" if self.end is None else _value(self.end["value"])
        error = f" ({self.end['error']})" if self.end is not None and self.end["error"] else ""
        at = f" on {self.begin['key']}" if self.begin["key"] else ""
        given = f": {answer}" if type_ == "ok" and answer and answer != _value(self.begin["value"]) else ""
        return Band(
            line=self.client,
            time_ns=self.from_ns,
            until_ns=self.until_ns,
            label=f"{asked} → {type_}",
            colour=f"--{type_}" if type_ in ("ok", "fail", "info") else "--other",
            sentence=f"asked for {asked}{at}",
            after=f"got {type_}{error}{given} for {asked}",
            weight=NEEDED if self.is_witness else 1,
        )


def _operations(outcome: StormOutcome, anomaly: str) -> list[_Operation]:
    named = set(witnesses(outcome, anomaly)[:WITNESSES])
    rows = outcome.blown.history.to_pylist()
    clients = outcome.blown.scenario.concurrency
    open_: dict[int, Mapping[str, Any]] = {}
    operations = []
    for row in rows:
        if row["process"] == NEMESIS:
            continue
        if row["type"] == "invoke":
            open_[row["process"]] = row
            continue
        begin = open_.pop(row["process"])
        is_witness = bool({begin["index"], row["index"]} & named)
        operations.append(_Operation(client=_client(begin, clients), begin=begin, end=row, is_witness=is_witness))
    operations += [
        _Operation(client=_client(row, clients), begin=row, end=None, is_witness=row["index"] in named)
        for row in open_.values()
    ]
    return operations


def _client(row: Mapping[str, Any], clients: int) -> str:
    """The host that carries it out."""
    return f"client-{row['process'] % clients}"


def _value(value: Any) -> str:
    """The fields of a value that hold something, in few characters."""
    if not isinstance(value, Mapping):
        return "" if value is None else str(value)
    given = [field for field in value.values() if field is not None]
    text = ", ".join(json.dumps(field, default=str) for field in given)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


# Nodes --------------------------------------------------------------------------------------------------------------


def _narrate(outcome: StormOutcome, anomaly: str, parts: Parts) -> Iterator[Thing]:
    """What nodes reported, in words; what the anomaly names is needed, what came before the storm tells little."""
    narrator = narrator_of(parts.system, parts.system_settings)
    named = {
        (node, time_ns)
        for example in examples(outcome, anomaly)[:2]
        for node, time_ns in zip(example.details.get("nodes", ()), example.details.get("times_ns", ()), strict=False)
    }
    from_ns, final_ns = outcome.blown.facts.storm_from_ns or 0, outcome.blown.facts.final_from_ns
    reported = sorted(
        (event["time"], node, place, event)
        for node, lines in outcome.blown.events.items()
        for place, event in enumerate(map(json.loads, lines))
    )
    for time_ns, node, _, event in reported:
        fields = {name: value for name, value in event.items() if name not in PASSED_OVER}
        said = narrator.narrate(node, event["event"], fields)
        if said is None:
            continue
        is_within = time_ns >= from_ns and (final_ns is None or time_ns < final_ns)
        weight = NEEDED if (node, time_ns) in named else said.weight if is_within else max(0, said.weight - 6)
        yield Moment(line=node, time_ns=time_ns, label=said.label, sentence=said.sentence, weight=weight)


# Messages and disks -------------------------------------------------------------------------------------------------


def _messages(traffic: Traffic, needed: list[_Operation]) -> Iterator[Thing]:
    companions = _companions(traffic, needed)
    for place, sent in enumerate(traffic.sent):
        weight = NEEDED - 1 if place in companions else 0
        label = f"{sent.length} bytes"
        yield Message(
            source=sent.source,
            target=sent.target,
            time_ns=sent.sent_ns,
            received_ns=sent.received_ns,
            label=label,
            weight=weight,
        )


def _companions(traffic: Traffic, needed: list[_Operation]) -> set[int]:
    """The places of messages that go with operations which witness the violation, few for each."""
    chosen: set[int] = set()
    for operation in needed:
        within = [
            (place, sent)
            for place, sent in enumerate(traffic.sent)
            if operation.from_ns <= sent.sent_ns <= operation.until_ns
        ]
        asked = [(place, sent) for place, sent in within if sent.source == operation.client]
        if not asked:
            continue
        _, request = asked[-1]
        answers = [(p, s) for p, s in within if s.target == operation.client and s.source == request.target]
        carried = [(p, s) for p, s in within if _carries(s, request)]
        chosen.update(place for place, _ in (asked[-1], *answers[-1:], *carried[:MOST_COMPANIONS]))
    return chosen


def _carries(sent: Sent, request: Sent) -> bool:
    """Whether it may hold what the client asked the node to write."""
    arrived = request.received_ns
    return (
        sent.source == request.target
        and arrived is not None
        and sent.sent_ns >= arrived
        and (sent.target != request.source and 2 * sent.length >= request.length)
    )


def _writes(traffic: Traffic, needed: list[_Operation]) -> Iterator[Thing]:
    for operation in needed:
        within = [one for one in traffic.wrote if operation.from_ns <= one.time_ns <= operation.until_ns]
        for wrote in within[:MOST_COMPANIONS]:
            name = wrote.path.rpartition("/")[0] or wrote.path
            is_write = wrote.what == "write"
            yield Moment(
                line=wrote.node,
                time_ns=wrote.time_ns,
                label=f"writes {wrote.length} bytes" if is_write else "fsync",
                sentence=f"wrote {wrote.length} bytes to {name}" if is_write else f"asked its disk to keep {name}",
                weight=NEEDED - 2,
            )
