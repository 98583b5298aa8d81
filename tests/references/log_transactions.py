"""Random logs with transactions, and their dependencies as the definitions have them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from checkers.causal.spans import NEVER
from checkers.transactions.elle.edges import Dependency

Row = dict[str, Any]
Edge = tuple[Dependency, int, int]

QUEUES = ("q0", "q1")
PLAIN = {"message": None, "offset": None, "messages": None}


def random_transactions(rng: random.Random, operations: int) -> list[Row]:
    """Few processes and queues; parts of transactions happen one by one, among those of others. Offsets, answers and
    ends are mostly those of a log, and sometimes at random."""
    disorder = rng.choice((0.0, 0.1, 0.4))
    logs: dict[str, dict[int, int]] = {queue: {} for queue in QUEUES}
    rows: list[Row] = []
    opened: dict[int, Row] = {}
    lives = dict.fromkeys(range(3), 0)
    sent = 0
    while operations or opened:
        place = rng.randrange(3)
        process = place + 3 * lives[place]
        asked = opened.get(place)
        if asked is None and operations:
            operations -= 1
            f = rng.choices(("send", "poll", "txn"), (1, 1, 4))[0]
            parts = []
            for _ in range(rng.randrange(1, 4) if f == "txn" else 1):
                sent += rng.random() > disorder / 8
                of = rng.choice(("send", "poll")) if f == "txn" else f
                part: Row = {"f": of, "key": rng.choice(QUEUES), **PLAIN, "from_offset": None, "end": None}
                if of == "send":
                    part["message"] = sent
                elif f == "txn":
                    part["from_offset"] = rng.choice((None, 0, 0, 1, 2))
                parts.append(part)
            key = None if f == "txn" else parts[0]["key"]
            kind = rng.choices(("ok", "info", "fail"), (8, 1, 1))[0]
            opened[place] = {"f": f, "key": key, "parts": parts, "done": [], "type": kind}
            rows.append({"process": process, "type": "invoke", "f": f, "key": key, "value": _value(f, parts)})
        elif asked is not None and len(asked["done"]) < len(asked["parts"]):
            part = asked["parts"][len(asked["done"])]
            asked["done"].append(_answered(rng, part, logs, disorder, asked["type"]))
        elif asked is not None:
            kind = asked["type"]
            value = _value(asked["f"], asked["done"] if kind == "ok" or rng.random() < 0.5 else None)
            rows.append({"process": process, "type": kind, "f": asked["f"], "key": asked["key"], "value": value})
            lives[place] += kind == "info"
            del opened[place]
    return rows


def _value(f: str, parts: list[Row] | None) -> Row | None:
    if parts is None:
        return None
    return {**PLAIN, "txn": parts} if f == "txn" else {name: parts[0][name] for name in PLAIN}


def _answered(rng: random.Random, part: Row, logs: dict[str, dict[int, int]], disorder: float, kind: str) -> Row:
    log = logs[part["key"]]
    after = max(log, default=-1) + 1
    if part["f"] == "send":
        if rng.random() < {"ok": 0, "info": 0.5, "fail": 1 - disorder}[kind]:
            return part
        at = rng.randrange(after + 3) if rng.random() < disorder else after
        log[at] = part["message"]
        return part | {"offset": at if kind == "ok" and rng.random() < 0.9 else None}
    if kind != "ok":
        return part
    seen = rng.randrange(after + 1) if rng.random() < disorder else after
    first = rng.randrange(seen + 1) if part["from_offset"] is None else part["from_offset"]
    last = rng.randrange(seen + 1) if rng.random() < 0.3 else seen
    read = [{"offset": at, "message": log[at]} for at in sorted(log) if first <= at < last]
    ended = last == seen and rng.random() < 0.8
    asked = None if not read and not ended else part["from_offset"]
    return part | {"messages": read, "end": ended or None, "from_offset": asked}


Operation = tuple[int, int, int, str, list[Row]]
"""start, end, process, outcome, parts."""


def operations_of(rows: list[Row]) -> list[Operation]:
    found = []
    for start, row in enumerate(rows):
        if row["type"] != "invoke":
            continue
        later = (i for i in range(start + 1, len(rows)) if rows[i]["process"] == row["process"])
        end = next(later, NEVER)
        outcome = "info" if end == NEVER else rows[end]["type"]
        shown = rows[end] if outcome == "ok" else row
        value = shown["value"]
        parts = value["txn"] if row["f"] == "txn" else [{**value, "f": row["f"], "key": row["key"]}]
        found.append((start, NEVER if outcome == "info" else end, row["process"], outcome, parts))
    return found


def everything(near: list[Any]) -> list[Any]:
    return near


def nearest(near: list[Any]) -> list[Any]:
    return near[:1]


def defined_edges(rows: list[Row], among: Callable[[list[Any]], list[Any]]) -> set[Edge]:
    """Of the versions that an edge may lead from or to, nearest first, those that `among` picks."""
    operations = operations_of(rows)
    edges = set()
    for queue in QUEUES:
        mine = [(*one[:4], [part for part in one[4] if part["key"] == queue]) for one in operations]
        placed = set()
        senders: dict[int, set[tuple[int, str]]] = {}
        for start, _, _, outcome, parts in mine:
            for part in parts:
                if part["f"] == "send":
                    senders.setdefault(part["message"], set()).add((start, outcome))
                    if outcome == "ok" and part["offset"] is not None:
                        placed.add((part["offset"], part["message"]))
                elif outcome == "ok":
                    placed |= {(one["offset"], one["message"]) for one in part["messages"]}
        version = {
            (offset, message): next(iter(senders[message]))[0]
            for offset, message in placed
            if sum(offset == other for other, _ in placed) == 1
            and sum(message == other for _, other in placed) == 1
            and len(senders.get(message, ())) == 1
            and next(iter(senders[message]))[1] != "fail"
        }
        for one in version:
            behind = sorted(other for other in version if other > one)
            edges |= {(Dependency.WW, version[one], version[other]) for other in among(behind)}
        for start, _, _, outcome, parts in mine:
            shown, ends = set(), []
            for part in parts:
                if part["f"] != "poll" or outcome != "ok":
                    continue
                read = [(one["offset"], one["message"]) for one in part["messages"]]
                shown |= {one for one in read if one in version}
                seen = None
                if read and part.get("end"):
                    seen = max(read)[0]
                elif not read and part.get("from_offset") is not None:
                    seen = part["from_offset"] - 1
                if seen is not None:
                    ends.append(seen)
            edges |= {(Dependency.WR, version[one], start) for one in among(sorted(shown, reverse=True))}
            unseen = sorted(one for one in version if ends and one[0] > min(ends))
            edges |= {(Dependency.RW, start, version[one]) for one in among(unseen)}
    return {edge for edge in edges if edge[1] != edge[2]}
