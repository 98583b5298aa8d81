"""Random histories of delayed messages, and deliveries that are early, late, or were not wanted any more, by their
definition."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

Row = dict[str, Any]
MS = 1_000_000


def random_delays(rng: random.Random, operations: int) -> list[Row]:
    """Sends and deliveries that overlap; most are on time, some are early, late, repeated or were never sent."""
    rows: list[Row] = []
    waiting: list[tuple[int, int]] = []
    busy: dict[int, Row] = {}
    lives = [0] * 6
    now = sent = 0
    for _ in range(2 * operations):
        now += rng.randrange(20) * MS
        place = rng.randrange(6)
        process = place + 6 * lives[place]
        if place in busy:
            row = busy.pop(place) | {"time": now}
            lives[place] += row["type"] == "info"
            rows.append(row)
            continue
        kind = rng.choices(("ok", "fail", "info"), (8, 1, 1))[0]
        base = {"process": process, "key": f"q{rng.randrange(2)}"}
        if sent and rng.random() < 0.2:
            value = {"message": rng.randint(max(1, sent - 3), sent)}
            rows.append(base | {"time": now, "type": "invoke", "f": "take-back", "value": value})
            busy[place] = base | {"type": kind, "f": "take-back", "value": value}
        elif rng.random() < 0.5:
            sent += 1
            due = now + rng.choice((-10, 30, 100, 400)) * MS
            value = {"message": sent, "due": due}
            rows.append(base | {"time": now, "type": "invoke", "f": "send", "value": value})
            answer = value | {"due": rng.choice((None, due, due, due + 50 * MS))}
            busy[place] = base | {"type": kind, "f": "send", "value": answer if kind == "ok" else value}
            if kind != "fail":
                waiting.append((due, sent))
        else:
            rows.append(base | {"time": now, "type": "invoke", "f": "deliver", "value": None})
            early = rng.choice((0, 0, 20, 300)) * MS
            ready = [pair for pair in waiting if pair[0] <= now + early and rng.random() < 0.8]
            waiting = [pair for pair in waiting if pair not in ready or rng.random() < 0.05]
            messages = [message for _, message in ready] + ([-sent] if rng.random() < 0.02 else [])
            value = {"messages": messages} if kind == "ok" else None
            busy[place] = base | {"type": kind, "f": "deliver", "value": value}
    return rows


def defined_delays(rows: list[Row], tolerance_ns: int, latest_ns: int) -> tuple[Counter[str], list[int], Counter[str]]:
    """(anomalies, lateness of each first delivery, counts)."""
    anomalies: Counter[str] = Counter()
    lateness: list[int] = []
    counts: Counter[str] = Counter()
    calls = {row["value"]["message"]: row for row in rows if (row["f"], row["type"]) == ("send", "invoke")}
    acks = {row["value"]["message"]: row for row in rows if (row["f"], row["type"]) == ("send", "ok")}
    taken_back = {
        row["value"]["message"]: row["time"] for row in reversed(rows) if (row["f"], row["type"]) == ("take-back", "ok")
    }
    delivered: dict[int, list[int]] = {}
    for row in rows:
        if (row["f"], row["type"]) == ("deliver", "ok"):
            for message in row["value"]["messages"]:
                delivered.setdefault(message, []).append(row["time"])
    for message, call in calls.items():
        due = call["value"]["due"]
        if message in acks and acks[message]["value"]["due"] is not None:
            due = acks[message]["value"]["due"]
        due = max(due, call["time"])
        counts["sent"] += 1
        counts["acked"] += message in acks
        counts["undelivered"] += message in acks and message not in delivered
        if message in delivered:
            late = delivered[message][0] - due
            anomalies["delivered-early"] += late < -tolerance_ns
            if message in acks:
                taken = max(due, acks[message]["time"])
                anomalies["delivered-late"] += delivered[message][0] - taken > latest_ns
            in_time = message in taken_back and taken_back[message] + tolerance_ns < due
            anomalies["delivered-though-taken-back"] += in_time and late >= -tolerance_ns
            lateness.append(max(late, 0))
    counts["delivered"] = len(delivered.keys() & calls.keys())
    counts["redelivered"] = sum(len(times) > 1 for times in delivered.values())
    counts["taken_back"] = len(taken_back)
    counts["unknown"] = len(delivered.keys() - calls.keys())
    return +anomalies, sorted(lateness), counts
