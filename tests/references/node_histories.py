"""Random event logs of small clusters in which much is wrong, and the definitions of the anomalies, word by word."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable
from itertools import combinations
from pathlib import Path
from typing import Any

Event = dict[str, Any]
Cluster = dict[str, list[Event]]
"""Node -> its events in its own order, each with the time at which it happened."""

PIECE = 10
KINDS = ("elect", "lead", "write", "write", "write", "confirm", "confirm", "cut", "recover", "delete")


def random_cluster(rng: random.Random, group: str, *, length: int = 24, others: bool = False) -> Cluster:
    """Two or three brokers and two electors. Mostly they agree; each cluster has its own rate of disorder. Each broker
    holds a log that it need not name, and where `others`, one of entries beside it."""
    disorder = rng.choice((0.0, 0.1, 0.4))
    brokers = [f"{group}-b{number}" for number in range(rng.choice((2, 3)))]
    electors = [f"{group}-c{number}" for number in range(2)]
    cluster: Cluster = {node: [] for node in (*brokers, *electors)}
    logs = (group, f"{group}-entries") if others else (group,)
    begins, ends = ({(broker, log): 0 for broker in brokers for log in logs} for _ in range(2))
    epochs = dict.fromkeys(logs, 0)
    term = now = 0

    def report(node: str, event: str, **fields: object) -> None:
        cluster[node].append({"time": now, "event": event, **fields})

    def odd() -> bool:
        return rng.random() < disorder

    for number, broker in enumerate(brokers):
        report(broker, "identity", group=group, broker_id=number)
        for log in logs[1:]:
            report(broker, "log", log=log, unit="entries")
    for _ in range(length):
        now += rng.randrange(5)
        kind = rng.choice(KINDS)
        broker, elector, log = rng.choice(brokers), rng.choice(electors), rng.choice(logs)
        named = {} if log == group and rng.random() < 0.5 else {"log": log}
        at = (broker, log)
        if kind == "elect":
            epochs[log] += not odd()
            epoch = epochs[log]
            master = rng.randrange(len(brokers))
            in_sync = rng.choice(([master], [master, 7], [7] if odd() else [], []))
            fields = {"group": log, "master_epoch": epoch, "in_sync": in_sync, "unclean_allowed": rng.random() < 0.2}
            report(elector, "elected", master=None if rng.random() < 0.1 else master, **fields)
            taken = epoch - rng.randrange(3) if odd() else epoch
            start = max(end for (_, of), end in ends.items() if of == log) if not odd() else rng.randrange(60)
            role = {"group": log, "master_epoch": taken, "broker_id": master}
            report(brokers[master], "role", role="master", start_offset=start, **role)
        elif kind == "lead":
            term += not odd()
            report(elector, rng.choice(("leader", "follower")), term=term - (odd() and rng.randrange(3)))
        elif kind == "write":
            start = ends[at]
            checksum = start * 7 + (rng.randrange(3) if odd() else 0)
            report(broker, "written", start=start, end=start + PIECE, checksum=checksum, **named)
            ends[at] = start + PIECE
        elif kind == "confirm":
            offset = rng.randrange(ends[at] + 1) + (rng.randrange(20) if odd() else 0)
            report(broker, "confirmed", offset=offset, master_epoch=epochs[log] - odd(), **named)
        elif kind == "delete":
            begins[at] = max(begins[at], rng.randrange(ends[at] + 1) // PIECE * PIECE)
            report(broker, "deleted", to=begins[at], forced=odd(), **named)
        else:
            kept = rng.randrange(begins[at], ends[at] + 1) // PIECE * PIECE
            name = "to" if kind == "cut" else "end"
            report(broker, "truncated" if kind == "cut" else "recovered", **{name: kept}, **named)
            ends[at] = min(ends[at], kept)
            begins[at] = min(begins[at], kept)
    return {node: events for node, events in cluster.items() if events}


def write_cluster(cluster: Cluster, nodes: Path) -> None:
    for node, events in cluster.items():
        (nodes / node).mkdir(parents=True, exist_ok=True)
        lines = (json.dumps(event) + "\n" for event in events)
        (nodes / node / "events.jsonl").write_text("".join(lines))


def by_log(cluster: Cluster) -> list[Cluster]:
    """What concerns each of its logs; what names none is of the first one, and of its electors."""
    first = next(event["group"] for events in cluster.values() for event in events if event["event"] == "identity")

    def log_of(event: Event) -> str:
        return str(event.get("log", event.get("group", first)))

    logs = {log_of(event) for events in cluster.values() for event in events}
    return [{n: [e for e in events if log_of(e) == log] for n, events in cluster.items()} for log in sorted(logs)]


def defined_anomalies(cluster: Cluster) -> Counter[str]:
    """How often each anomaly occurs in the log of one replication group with its electors; terms are the electors'."""
    found: Counter[str] = Counter()
    recorded = [(node, event) for node, events in cluster.items() for event in events]
    masters = [(node, e) for node, e in recorded if e["event"] == "role" and e["role"] == "master"]
    elections = [e for _, e in recorded if e["event"] == "elected"]
    for epoch in {e["master_epoch"] for _, e in masters}:
        found["two-masters"] += len({node for node, e in masters if e["master_epoch"] == epoch}) > 1
    for epoch in {e["master_epoch"] for e in elections}:
        found["two-masters"] += len({e["master"] for e in elections if e["master_epoch"] == epoch}) > 1
    for e in elections:
        outside = e["master"] is not None and e["in_sync"] and e["master"] not in e["in_sync"]
        found["unclean-election"] += bool(outside and not e["unclean_allowed"])
    for events in cluster.values():
        for name, kinds in (("master_epoch", ("role",)), ("term", ("leader", "follower"))):
            epochs = [e[name] for e in events if e["event"] in kinds]
            found["epoch-back"] += sum(epoch < max(epochs[:at], default=epoch) for at, epoch in enumerate(epochs))
    found += overtaken([e for _, e in masters], [e for _, e in recorded if e["event"] == "confirmed"])
    found += pieces(cluster)
    return +found


def defined_leaders(clusters: Iterable[Cluster]) -> int:
    """Terms in which two led, over all electors."""
    led: dict[int, set[str]] = {}
    for cluster in clusters:
        for node, events in cluster.items():
            for event in events:
                if event["event"] == "leader":
                    led.setdefault(event["term"], set()).add(node)
    return sum(len(nodes) > 1 for nodes in led.values())


def overtaken(masters: list[Event], confirmed: list[Event]) -> Counter[str]:
    found: Counter[str] = Counter()
    for epoch in {e["master_epoch"] for e in confirmed}:
        highest = max(e["offset"] for e in confirmed if e["master_epoch"] == epoch)
        at = min(e["time"] for e in confirmed if (e["master_epoch"], e["offset"]) == (epoch, highest))
        later = [e for e in masters if e["master_epoch"] > epoch and e["start_offset"] < highest]
        if later:
            first = min(later, key=lambda e: (e["master_epoch"], e["time"]))
            found["fenced-write" if at > first["time"] else "confirmed-lost"] += 1
    return found


def defined_pieces(events: list[Event]) -> tuple[list[int], list[int]]:
    """Positions of the events that wrote pieces which were confirmed, and of those that still are at the end."""
    held: dict[int, int] = {}
    safe: set[int] = set()
    ever: set[int] = set()
    begin = 0
    for position, event in enumerate(events):
        if event["event"] == "written":
            held[event["start"]] = position
        elif event["event"] == "confirmed":
            safe |= {position for start, position in held.items() if start + PIECE <= event["offset"]}
            ever |= safe
        elif event["event"] == "deleted":
            begin = event["to"]
        elif event["event"] in ("truncated", "recovered"):
            kept = event.get("to", event.get("end"))
            if event["event"] == "truncated" and kept <= begin:
                kept = begin = 0
            held = {start: position for start, position in held.items() if start + PIECE <= kept}
            safe &= set(held.values())
    return sorted(ever), sorted(safe)


def pieces(cluster: Cluster) -> Counter[str]:
    ever: dict[int, set[int]] = {}
    final: dict[str, dict[int, int]] = {}
    for node, events in cluster.items():
        confirmed, standing = defined_pieces(events)
        for position in confirmed:
            ever.setdefault(events[position]["start"], set()).add(events[position]["checksum"])
        final[node] = {events[position]["start"]: events[position]["checksum"] for position in standing}
    found: Counter[str] = Counter()
    for start, checksums in ever.items():
        diverging = any(
            start in one and start in other and one[start] != other[start]
            for one, other in combinations(final.values(), 2)
        )
        found["diverging-logs"] += diverging
        found["rewritten-log"] += len(checksums) > 1 and not diverging
    return found
