"""Random histories of messages that are popped in order, and what overtook what by definition."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

Row = dict[str, Any]
QUEUES = ("q", "r")
NOTHING = dict.fromkeys(("message", "invisible_ms", "in_order", "queue", "offset", "deliveries"))


def random_ordered_pops(rng: random.Random, operations: int) -> list[Row]:
    """Two queues that mostly keep their order, asked by six processes whose operations overlap."""
    rows: list[Row] = []
    busy: dict[int, Row] = {}
    held: dict[int, list[Row]] = {}
    lives = [0] * 6
    left: dict[str, list[int]] = {queue: [] for queue in QUEUES}
    ends = dict.fromkeys(QUEUES, 0)
    for _ in range(operations):
        place = rng.randrange(6)
        process = place + 6 * lives[place]
        if place in busy:
            asked = busy.pop(place)
            kind = rng.choices(("ok", "fail", "info"), (10, 1, 1))[0]
            value = dict(asked["value"])
            if asked["f"] == "pop" and kind == "ok":
                value["deliveries"] = _answer(rng, left, ends)
                held.setdefault(process, []).extend(value["deliveries"])
            elif asked["f"] == "ack" and kind == "ok" and value["offset"] in left[value["queue"]]:
                left[value["queue"]].remove(value["offset"])
            lives[place] += kind == "info"
            rows.append({**asked, "type": kind, "value": value})
            continue
        mine = held.get(process, [])
        value = {**NOTHING, "invisible_ms": 10, "in_order": True}
        f = "ack" if mine and rng.random() < 0.6 else "pop"
        if f == "ack":
            one = mine.pop(0)
            value = {**NOTHING, **{name: one[name] for name in ("message", "queue", "offset")}}
        busy[place] = {"process": process, "type": "invoke", "f": f, "value": value}
        rows.append(dict(busy[place]))
    return rows


def _answer(rng: random.Random, left: dict[str, list[int]], ends: dict[str, int]) -> list[Row]:
    queue = rng.choice(QUEUES)
    fresh = range(ends[queue], ends[queue] + rng.randrange(3))
    ends[queue] += len(fresh)
    given = [*left[queue], *fresh]
    left[queue] += [offset for offset in fresh if offset not in left[queue]]
    if rng.random() < 0.05:
        rng.shuffle(given)
    if rng.random() < 0.05:
        given = given[1:]
    number = QUEUES.index(queue)
    return [{"message": 2 * offset + number, "times": 0, "queue": queue, "offset": offset} for offset in given]


def defined_overtaken(rows: list[Row]) -> Counter[str]:
    """Deliveries of which a lower offset of their queue is neither ahead in their answer nor perhaps acknowledged."""
    asked: dict[tuple[str, int], list[int]] = {}
    open_: dict[int, int] = {}
    refused: set[int] = set()
    for index, row in enumerate(rows):
        if row["f"] == "ack" and row["type"] == "invoke":
            asked.setdefault((row["value"]["queue"], row["value"]["offset"]), []).append(index)
            open_[row["process"]] = index
        elif row["f"] == "ack" and row["type"] == "fail":
            refused.add(open_[row["process"]])
    answers = [
        (index, row["value"]["deliveries"])
        for index, row in enumerate(rows)
        if row["f"] == "pop" and row["type"] == "ok"
    ]
    places = {(one["queue"], one["offset"]) for _, answer in answers for one in answer}
    found: Counter[str] = Counter()
    for index, answer in answers:
        for position, one in enumerate(answer):
            ahead = {(other["queue"], other["offset"]) for other in answer[:position]}
            found["overtaken"] += any(
                queue == one["queue"]
                and offset < one["offset"]
                and (queue, offset) not in ahead
                and not any(begun < index and begun not in refused for begun in asked.get((queue, offset), ()))
                for queue, offset in places
            )
    return +found
