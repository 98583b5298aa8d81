"""Random histories of a log workload in which much is wrong, and the definitions of the anomalies, word by word."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise
from typing import Any

Row = dict[str, Any]

QUEUES = ("q0", "q1")
NODES = ("b1", "b2")


def random_history(rng: random.Random, operations: int) -> list[Row]:
    """Operations that overlap; mostly a log, with a rate of disorder of its own for each history."""
    disorder = rng.choice((0.0, 0.02, 0.2))
    rows: list[Row] = []
    open_rows: dict[int, Row] = {}
    lives = dict.fromkeys(range(4), 0)
    logs: dict[str, list[tuple[int, int]]] = {queue: [] for queue in QUEUES}
    committed: dict[tuple[int, str], int] = {}
    began: set[tuple[int, str]] = set()
    message = 0

    def complete(place: int) -> None:
        row = open_rows.pop(place)
        rows.append(row)
        if row["type"] == "info":
            lives[place] += 1

    def offset_for(queue: str) -> int:
        end = logs[queue][-1][0] + 1 if logs[queue] else 0
        return max(0, end + (rng.choice((-2, -1, 1, 70_000, 5_000_000_000)) if rng.random() < disorder else 0))

    def invoke(place: int, f: str, queue: str, value: Row, done: Row) -> None:
        process = place + 4 * lives[place]
        rows.append({"process": process, "type": "invoke", "f": f, "key": queue, "value": value})
        open_rows[place] = {"process": process, "f": f, "key": queue} | done

    for _ in range(operations):
        place, queue = rng.randrange(4), rng.choice(QUEUES)
        if place in open_rows:
            complete(place)
        if rng.random() < 0.5:
            kind = rng.choices(("ok", "info", "fail"), (8, 1, 1))[0]
            message = message if rng.random() < disorder else message + 1
            value = {"message": message, "offset": None}
            at = offset_for(queue)
            if kind == "ok" or rng.random() < (0.5 if kind == "info" else disorder):
                logs[queue].append((at, message))
            done = {"type": kind, "value": value | {"offset": at if kind == "ok" else None}}
            invoke(place, "send", queue, value, done)
        else:
            first = rng.randrange(len(logs[queue]) + 1)
            asked = rng.choice((None, first, 0))
            read = messages(rng, logs[queue][first : first + 3], disorder)
            kind = rng.choices(("ok", "fail", "info"), (8, 1, 1))[0]
            value = {"messages": read if kind == "ok" else None, "group": f"g{place}"}
            consumer = (place + 4 * lives[place], queue)
            if kind == "ok" and consumer not in began:
                began.add(consumer)
                jump = rng.randrange(4) if rng.random() < disorder else 0
                value["resumed"] = committed.get((place, queue), rng.choice((0, 0, first))) + jump
            if kind == "ok" and read and asked is None:
                committed[place, queue] = max(committed.get((place, queue), 0), 1 + max(one["offset"] for one in read))
            done = {"type": kind, "node": rng.choice(NODES), "value": value}
            invoke(place, "poll", queue, {"offset": asked}, done)
    for place in sorted(open_rows):
        if rng.random() < 0.7:
            complete(place)
    for number, (queue, node) in enumerate([(queue, node) for queue in QUEUES for node in NODES]):
        log = sorted(pair for pair in logs[queue] if rng.random() >= disorder)
        log = log[: len(log) - rng.choice((0, 0, 1))]
        read = messages(rng, log, disorder / 4)
        row = {"process": 1_000_000 + number, "key": queue}
        for f, done in (("final-poll", {"messages": read}), ("caught-up", {"offset": len(log)})):
            if f == "caught-up" and rng.random() < disorder:
                continue
            rows.append(row | {"type": "invoke", "f": f, "value": {"offset": 0}})
            rows.append(row | {"type": "ok", "f": f, "node": node, "value": done})
    return rows


def messages(rng: random.Random, log: list[tuple[int, int]], disorder: float) -> list[Row]:
    read = [{"offset": at, "message": message} for at, message in log if rng.random() >= disorder]
    if rng.random() < disorder:
        rng.shuffle(read)
    if read and rng.random() < disorder:
        read[0]["message"] = rng.randrange(50)
    return read


def defined_anomalies(rows: list[Row]) -> Counter[str]:
    """How often each anomaly occurs, straight from the definitions; quadratic or worse."""
    acked, failed, tried = {}, set(), set()
    places: dict[int, set[tuple[str, int]]] = {}
    held_at: dict[tuple[str, int], list[tuple[int, str, str | None]]] = {}
    read_at: dict[int, tuple[str, int]] = {}
    in_final: set[int] = set()
    caught_up = {(row["key"], row.get("node")) for row in rows if (row["f"], row["type"]) == ("caught-up", "ok")}
    asked = {(row["key"], row["node"]) for row in rows if row["f"] == "final-poll" and row.get("node")}
    highest = dict.fromkeys(QUEUES, -1)
    for row in rows:
        queue, value = row["key"], row["value"]
        if row["f"] == "send":
            tried.add(value["message"])
            if row["type"] == "fail":
                failed.add(value["message"])
            if row["type"] == "ok":
                acked.setdefault(value["message"], (queue, value["offset"]))
                places.setdefault(value["message"], set()).add((queue, value["offset"]))
                held_at.setdefault((queue, value["offset"]), []).append((value["message"], "ack", None))
        for read in value.get("messages") or ():
            message, place = read["message"], (queue, read["offset"])
            places.setdefault(message, set()).add(place)
            held_at.setdefault(place, []).append((message, row["f"], row["node"]))
            if row["f"] == "final-poll" and (queue, row["node"]) in caught_up:
                in_final.add(message)
                highest[queue] = max(highest[queue], read["offset"])
            else:
                read_at.setdefault(message, place)
    found: Counter[str] = Counter()
    some = {queue for queue, _ in caught_up}
    every = {queue for queue in some if all(pair in caught_up for pair in asked if pair[0] == queue)}
    for message in tried | read_at.keys() | in_final:
        is_read, is_acked = message in read_at, message in acked
        found["aborted-read"] += message in failed and (is_read or message in in_final)
        found["unexpected-read"] += message not in tried and (is_read or message in in_final)
        found["duplicate"] += len(places.get(message, ())) > 1
        if message in in_final or not (is_read or is_acked):
            continue
        queue, offset = acked[message] if is_acked else read_at[message]
        passed = queue in some and offset <= highest[queue]
        if passed or queue in every:
            found["dirty-read"] += is_read
            found["lost-write"] += message not in failed and (passed or (is_acked and is_read))
            found["unseen"] += is_acked and not is_read and not passed
    for facts in held_at.values():
        found["inconsistent-offsets"] += len({message for message, _, _ in facts}) > 1
        finals = [(message, node) for message, f, node in facts if f == "final-poll"]
        found["diverging-replicas"] += any(a[0] != b[0] and a[1] != b[1] for a in finals for b in finals)
    found["consumer-offset-skip"] = passed_over(rows, caught_up)
    known = set(held_at)
    for process in {row["process"] for row in rows}:
        for queue in QUEUES:
            mine = [row for row in rows if row["process"] == process and row["key"] == queue]
            found += consumer_anomalies(mine, queue, known)
    return +found


def consumer_anomalies(mine: list[Row], queue: str, positions: set[tuple[str, int]]) -> Counter[str]:
    found: Counter[str] = Counter()

    def skips(start: int, end: int) -> bool:
        return any(q == queue and start < offset < end for q, offset in positions)

    last: int | None = None
    sent: int | None = None
    for row in mine:
        if row["f"] == "send" and row["type"] == "ok":
            found["nonmonotonic-send"] += sent is not None and row["value"]["offset"] <= sent
            sent = row["value"]["offset"]
        if row["f"] not in ("poll", "final-poll"):
            continue
        if row["type"] == "invoke" and row["f"] == "poll":
            start = row["value"]["offset"]
            if last is not None and start is not None and start <= last:
                last = None
        offsets = [read["offset"] for read in row["value"].get("messages") or ()]
        if not offsets:
            continue
        if last is not None and row["f"] == "poll":
            found["nonmonotonic-poll"] += offsets[0] <= last
            found["poll-skip"] += offsets[0] > last and skips(last, offsets[0])
        for one, other in pairwise(offsets):
            found["internal-nonmonotonic"] += other <= one
            found["internal-skip"] += other > one and skips(one, other)
        if row["f"] == "poll":
            last = offsets[-1]
    return found


def passed_over(rows: list[Row], caught_up: set[tuple[str, str | None]]) -> int:
    """Messages of the final log before the highest offset at which a group resumed, from where it began, never got."""
    final: set[tuple[str, int, int]] = set()
    got: dict[str, set[tuple[str, int, int]]] = {}
    resumed: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        queue, value = row["key"], row["value"]
        read = {(queue, one["offset"], one["message"]) for one in value.get("messages") or ()}
        if row["f"] == "final-poll" and (queue, row.get("node")) in caught_up:
            final |= read
        if row["f"] == "poll" and row["type"] == "ok":
            got.setdefault(value["group"], set()).update(read)
            if value.get("resumed") is not None:
                resumed.setdefault((value["group"], queue), []).append(value["resumed"])
    return sum(
        offsets[0] <= offset < max(offsets) and (queue, offset, message) not in got[group]
        for (group, of_queue), offsets in resumed.items()
        for queue, offset, message in final
        if queue == of_queue
    )
