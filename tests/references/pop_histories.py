"""Random histories of popped messages, and what breaks their promises by definition."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

Row = dict[str, Any]
MS = 1_000_000
FOREVER = 1 << 62
DELIVERING = ("pop", "drain")


def random_pops(rng: random.Random, operations: int) -> list[Row]:
    """A broker that mostly keeps its promises, asked by six processes whose operations overlap."""
    broker = _Broker(rng)
    rows: list[Row] = []
    busy: dict[int, Row] = {}
    held: dict[int, list[int]] = {}
    lives = [0] * 6
    now = sent = 0
    for step in range(2 * operations):
        now += rng.randrange(30) * MS
        place = rng.randrange(6)
        process = place + 6 * lives[place]
        if place in busy:
            asked = busy.pop(place)
            kind = rng.choices(("ok", "fail", "info"), (10, 1, 1))[0]
            value = broker.answer(asked, process, kind, now)
            rows.append({**asked, "type": kind, "time": now, "value": value})
            if kind == "info":
                lives[place] += 1
            elif kind == "ok" and asked["f"] in DELIVERING:
                held.setdefault(process, []).extend(one["message"] for one in value["deliveries"])
            continue
        mine = held.get(process, [])
        f = rng.choice(
            ("send", "pop", "pop", "drain" if step > operations else "pop", *(["ack", "change"] * bool(mine)))
        )
        value: Row = {"message": None, "invisible_ms": None, "deliveries": None}
        if f == "send":
            sent += 1
            value["message"] = sent
        elif f in ("ack", "change"):
            value["message"] = mine.pop(0) if f == "ack" else mine[0]
        if f in ("pop", "drain", "change"):
            value["invisible_ms"] = rng.choice((20, 60, 200))
        busy[place] = {"process": process, "type": "invoke", "f": f, "time": now, "value": value}
        rows.append(dict(busy[place]))
    return rows


class _Broker:
    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._visible: dict[int, int] = {}
        self._times: Counter[int] = Counter()

    def answer(self, asked: Row, process: int, kind: str, now: int) -> Row:
        value, f, draw = asked["value"], asked["f"], self._rng.random()
        done = kind == "ok" or (kind == "info" and draw < 0.5) or (kind == "fail" and draw < 0.2)
        if not done:
            return dict(value)
        at = self._rng.randrange(asked["time"], now + 1)
        if f == "send":
            self._visible[value["message"]] = at
        elif f == "ack" and draw < 0.97:
            self._visible[value["message"]] = FOREVER
        elif f == "change" and draw < 0.95:
            self._visible[value["message"]] = at + value["invisible_ms"] * MS
        elif f in DELIVERING:
            found = [m for m, since in self._visible.items() if since <= at or (since < FOREVER and draw < 0.02)]
            taken = [m for m in found if self._rng.random() < 0.8][: 0 if f == "drain" and draw > 0.8 else 3]
            deliveries = []
            for message in taken:
                deliveries.append({"message": message, "times": self._times[message]})
                self._times[message] += draw > 0.01
                self._visible[message] = FOREVER if draw > 0.98 else at + value["invisible_ms"] * MS
            if draw < 0.005:
                deliveries.append({"message": -asked["time"], "times": 0})
            return value | ({"deliveries": deliveries} if kind == "ok" else {})
        return dict(value)


@dataclass(frozen=True)
class Done:
    f: str
    kind: str
    process: int
    value: Row
    start: int
    end: int
    start_ns: int
    end_ns: int


@dataclass(frozen=True)
class Given:
    """One delivery."""

    by: Done
    times: int


def operations_of(rows: list[Row]) -> list[Done]:
    done: list[Done] = []
    begun: dict[int, tuple[int, Row]] = {}
    for index, row in enumerate(rows):
        if row["type"] == "invoke":
            begun[row["process"]] = index, row
            continue
        start, asked = begun.pop(row["process"])
        value = asked["value"] | {name: said for name, said in row["value"].items() if said is not None}
        done.append(Done(row["f"], row["type"], row["process"], value, start, index, asked["time"], row["time"]))
    for process, (start, asked) in begun.items():
        done.append(Done(asked["f"], "info", process, asked["value"], start, FOREVER, asked["time"], FOREVER))
    return sorted(done, key=lambda one: one.start)


def earliest(given: Given, again: Given, changes: list[Done], given_to_same: list[Given]) -> int:
    """When the message may have been visible after `given` at the earliest, as `again` could find it."""
    bound = given.by.start_ns + given.by.value["invisible_ms"] * MS
    later = [other.by.start for other in given_to_same if other.by.start > given.by.start]
    for change in changes:
        if not given.by.end < change.start < min(later, default=FOREVER):
            continue
        changed = change.start_ns + change.value["invisible_ms"] * MS
        if change.kind == "ok" and change.end < again.by.start:
            bound = changed
        elif change.kind != "fail" and change.start_ns <= again.by.end_ns:
            bound = min(bound, changed)
    return bound


def defined_pops(rows: list[Row], tolerance_ns: int) -> Counter[str]:
    """Counts of anomalies; `undecided` for messages of which nobody knows whether they are lost."""
    anomalies: Counter[str] = Counter()
    done = operations_of(rows)
    drained = max(
        (one.start for one in done if one.f == "drain" and one.kind == "ok" and not one.value["deliveries"]), default=-1
    )
    given: dict[int, list[Given]] = {}
    for one in done:
        if one.f in DELIVERING and one.kind == "ok":
            for delivery in one.value["deliveries"] or ():
                given.setdefault(delivery["message"], []).append(Given(one, delivery["times"]))
    named = {one.value["message"] for one in done if one.value["message"] is not None} | set(given)
    for message in sorted(named):
        mine = [one for one in done if one.value["message"] == message]
        of = {f: [one for one in mine if one.f == f] for f in ("send", "ack", "change")}
        anomalies += _of_message(of, given.get(message, []), drained, tolerance_ns)
    return +anomalies


def _of_message(of: dict[str, list[Done]], given: list[Given], drained: int, tolerance_ns: int) -> Counter[str]:
    found: Counter[str] = Counter()
    sends = of["send"]
    acked = [send for send in sends if send.kind == "ok"]
    if given and (not sends or min(g.by.end for g in given) < min(send.start for send in sends)):
        found["unexpected"] += 1
    elif given and all(send.kind == "fail" for send in sends):
        found["aborted-read"] += 1
    if acked and all(ack.kind == "fail" for ack in of["ack"]):
        found["lost" if min(send.end for send in acked) < drained else "undecided"] += 1
    confirmed = [ack for ack in of["ack"] if ack.kind == "ok"]
    found["redelivered-after-ack"] += sum(any(ack.end < g.by.start for ack in confirmed) for g in given)
    for first, second in pairwise(given):

        def too_early(a: Given, b: Given) -> bool:
            changes = [change for change in of["change"] if change.process == a.by.process]
            same = [other for other in given if other.by.process == a.by.process]
            return b.by.end_ns < earliest(a, b, changes, same) - tolerance_ns

        found["redelivered-early"] += too_early(first, second) and too_early(second, first)
        found["times-not-risen"] += first.by.end < second.by.start and second.times <= first.times
    return found
