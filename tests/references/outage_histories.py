"""Random histories of clients and queues that come and go, and outages by their definition, word by word."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import NamedTuple

import pyarrow as pa

from harness.record.fault_log import FaultWindow
from harness.record.history import history_schema

MS = 1_000_000
VALUE = pa.struct([pa.field("json", pa.string())])
ERRORS = {
    "ok": (None,),
    "fail": ("not-master", "no-route", "precondition-failed", None),
    "info": ("client-timeout", "connection-lost"),
}


class Done(NamedTuple):
    served: bool
    called_ns: int
    index: int
    time_ns: int


class Outage(NamedTuple):
    began_ns: int
    ended_ns: int
    failed: int
    recovered: int | None
    """Indices of its first failed completion, and of the success that lasts."""


Stream = tuple[str, str, int | str]
"""(f, client or queue, which)"""


def random_operations(rng: random.Random, *, operations: int, clients: int, queues: int) -> pa.Table:
    """Each queue is served for a while, then not, then by luck, and so on; calls overlap."""
    rows: list[tuple[int, int, str, str, str, str | None]] = []
    lives = [0] * clients
    busy: dict[int, tuple[str, str]] = {}
    moods = [rng.random() for _ in range(queues)]
    now = 0
    started = 0
    while started < operations or busy:
        now += rng.choice((0, 1, 20, 150)) * MS
        client = rng.randrange(clients)
        process = lives[client] * clients + client
        if client not in busy:
            if started == operations:
                client = next(iter(busy))
                process = lives[client] * clients + client
            else:
                started += 1
                busy[client] = (rng.choice(("send", "poll")), f"q{rng.randrange(queues)}")
                rows.append((now, process, "invoke", *busy[client], None))
                continue
        f, key = busy.pop(client)
        queue = int(key[1:])
        if rng.random() < 0.2:
            moods[queue] = rng.choice((0.0, 0.1, 0.5, 0.95, 1.0))
        kind = "ok" if rng.random() < moods[queue] else rng.choice(("fail", "fail", "info"))
        rows.append((now, process, kind, f, key, rng.choice(ERRORS[kind])))
        lives[client] += kind == "info"
    time, process_, type_, f_, key_, error = zip(*rows, strict=True)
    return pa.table(
        {
            "index": list(range(len(rows))),
            "time": time,
            "process": process_,
            "type": type_,
            "f": f_,
            "key": key_,
            "value": pa.nulls(len(rows), VALUE),
            "error": error,
            "node": pa.nulls(len(rows), pa.string()),
        },
    ).cast(history_schema(VALUE))


def streams(history: pa.Table, clients: int) -> dict[Stream, list[Done]]:
    """What each client and each queue lived through, in order."""
    found: dict[Stream, list[Done]] = {}
    called: dict[int, int] = {}
    columns = ("index", "time", "process", "type", "f", "key", "error")
    for index, time, process, type_, f, key, error in zip(
        *(history[name].to_pylist() for name in columns), strict=True
    ):
        if type_ == "invoke":
            called[process] = time
            continue
        served = type_ == "ok" or (type_ == "fail" and error in (None, "precondition-failed"))
        done = Done(served, called[process], index, time)
        found.setdefault((f, "client", process % clients), []).append(done)
        found.setdefault((f, "queue", key), []).append(done)
    return found


def defined_outages(stream: list[Done], successes: int, window_ns: int) -> list[Outage]:
    """From the first failure to the first success that lasts."""
    outages: list[Outage] = []
    at = 0
    while at < len(stream):
        if stream[at].served:
            at += 1
            continue
        began = min(done.called_ns for done in until_served(stream[at:]))
        if at:
            began = max(began, stream[at - 1].time_ns)
        lasting = next((i for i in range(at, len(stream)) if lasts(stream, i, successes, window_ns)), None)
        ended = stream[-1 if lasting is None else lasting].time_ns
        recovered = None if lasting is None else stream[lasting].index
        outages.append(Outage(began, ended, stream[at].index, recovered))
        at = len(stream) if lasting is None else lasting
    return outages


def until_served(stream: Iterable[Done]) -> Iterable[Done]:
    for done in stream:
        if done.served:
            return
        yield done


def lasts(stream: list[Done], at: int, successes: int, window_ns: int) -> bool:
    following = stream[at : at + successes]
    if len(following) < successes or not all(done.served for done in following):
        return False
    failures = (done.time_ns for done in stream[at:] if not done.served)
    return all(time_ns - stream[at].time_ns >= window_ns for time_ns in failures)


def blamed(outage: Outage, failed_ns: int, faults: list[FaultWindow]) -> str:
    """The fault that struck last before it, or within a second while its first operation was under way."""
    before = [fault for fault in faults if fault.start_ns <= min(failed_ns, outage.began_ns + 1000 * MS)]
    if not before:
        return "no fault"
    last = max(before, key=lambda fault: (fault.start_ns, fault.stop_ns, fault.name))
    return "no fault" if outage.began_ns > last.stop_ns + 30_000 * MS else last.name
