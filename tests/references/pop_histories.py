"""Random histories of popped messages, and what breaks their promises by definition."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, replace
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
class Delivery:
    """One delivery."""

    by: Done
    times: int
    until: int
    """When the next one to this process began."""

    def is_last_before(self, change: Done) -> bool:
        return change.process == self.by.process and self.by.end < change.start < self.until


def operations_of(rows: list[Row]) -> list[Done]:
    done: list[Done] = []
    begun: dict[int, tuple[int, Row]] = {}
    for index, row in enumerate(rows):
        if row["type"] == "invoke":
            begun[row["process"]] = index, row
            continue
        start, asked = begun.pop(row["process"])
        value = asked["value"] | {name: said for name, said in (row["value"] or {}).items() if said is not None}
        done.append(Done(row["f"], row["type"], row["process"], value, start, index, asked["time"], row["time"]))
    for process, (start, asked) in begun.items():
        done.append(Done(asked["f"], "info", process, asked["value"], start, FOREVER, asked["time"], FOREVER))
    done = [replace(one, end=FOREVER, end_ns=FOREVER) if one.kind == "info" else one for one in done]
    return sorted(done, key=lambda one: one.start)


def visible(delivery: Delivery, moment: int, again: Delivery, changes: list[Done]) -> int:
    """When the message may have been visible after `delivery`, which was at that moment, as `again` could find it."""
    bound = moment + delivery.by.value["invisible_ms"] * MS
    for change in changes:
        if not delivery.is_last_before(change):
            continue
        changed = change.start_ns + change.value["invisible_ms"] * MS
        if change.kind == "ok" and change.end < again.by.start:
            bound = changed
        elif change.kind != "fail" and change.start_ns <= again.by.end_ns:
            bound = min(bound, changed)
    return bound


def can_have_come(
    left: list[Delivery], changes: list[Done], tolerance_ns: int, before: tuple[Delivery, int] | None = None
) -> bool:
    """Whether some order of these deliveries, behind one that was at that moment, and some moments of theirs keep each
    invisible for the sake of the one before it."""
    for one in left:
        others = [other for other in left if other is not one]
        if any(other.by.end < one.by.start for other in others):
            continue
        moment = one.by.start_ns
        if before is not None:
            moment = max(moment, visible(*before, one, changes) - tolerance_ns)
        if moment <= one.by.end_ns and can_have_come(others, changes, tolerance_ns, (one, moment)):
            return True
    return not left


def defined_pops(rows: list[Row], tolerance_ns: int) -> Counter[str]:
    """Counts of anomalies, of `redelivered-early` messages; `undecided` for those of which nobody knows if they are
    lost. Cost: all orders of the deliveries of each message."""
    anomalies: Counter[str] = Counter()
    done = operations_of(rows)
    drained = max(
        (one.start for one in done if one.f == "drain" and one.kind == "ok" and not one.value["deliveries"]), default=-1
    )
    given: dict[int, list[Delivery]] = {}
    for one in done:
        if one.f in DELIVERING and one.kind == "ok":
            for delivery in one.value["deliveries"] or ():
                given.setdefault(delivery["message"], []).append(Delivery(one, delivery["times"], FOREVER))
    for deliveries in given.values():
        for place, one in enumerate(deliveries):
            later = [other.by.start for other in deliveries[place + 1 :] if other.by.process == one.by.process]
            deliveries[place] = replace(one, until=min(later, default=FOREVER))
    named = {one.value["message"] for one in done if one.value["message"] is not None} | set(given)
    for message in sorted(named):
        mine = [one for one in done if one.value["message"] == message]
        of = {f: [one for one in mine if one.f == f] for f in ("send", "ack", "change")}
        anomalies += _of_message(of, given.get(message, []), drained, tolerance_ns)
    return +anomalies


def _of_message(of: dict[str, list[Done]], deliveries: list[Delivery], drained: int, tolerance_ns: int) -> Counter[str]:
    found: Counter[str] = Counter()
    sends = of["send"]
    acked = [send for send in sends if send.kind == "ok"]
    if deliveries and (not sends or min(g.by.end for g in deliveries) < min(send.start for send in sends)):
        found["unexpected"] += 1
    elif deliveries and all(send.kind == "fail" for send in sends):
        found["aborted-read"] += 1
    if acked and all(ack.kind == "fail" for ack in of["ack"]):
        found["lost" if min(send.end for send in acked) < drained else "undecided"] += 1
    confirmed = [ack for ack in of["ack"] if ack.kind == "ok"]
    found["redelivered-after-ack"] += sum(any(ack.end < g.by.start for ack in confirmed) for g in deliveries)
    if not can_have_come(deliveries, of["change"], tolerance_ns):
        found["redelivered-early"] += 1
    for two in deliveries:
        found["times-not-risen"] += any(one.by.end < two.by.start and two.times <= one.times for one in deliveries)
    return found
