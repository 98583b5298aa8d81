"""Random histories of queues, sets, counters and ids in which much is wrong, and the definitions, word by word."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]
NEVER = 1 << 60

FUNCTIONS = {
    "queue": ("enqueue", "enqueue", "dequeue", "ack", "drain"),
    "set": ("add", "add", "read"),
    "counter": ("add", "read"),
    "unique-ids": ("generate",),
    "causal-reverse": ("write", "write", "read"),
}
TELLING = ("dequeue", "drain", "read", "generate")


def random_elements(rng: random.Random, workload: str, operations: int) -> list[Row]:
    """Operations of three clients on two keys, that overlap; their answers are mostly made up."""
    rows: list[Row] = []
    open_rows: dict[int, Row] = {}
    lives = dict.fromkeys(range(3), 0)
    honest = rng.random()
    elements = rng.choice((2, 6))
    there: dict[str, list[int]] = {"a": [], "b": []}

    def some(key: str) -> int:
        known = there[key]
        if known and rng.random() < honest:
            return rng.choice(known)
        return rng.randrange(-elements if workload == "counter" else 0, elements)

    def listed(key: str) -> list[int]:
        if rng.random() < honest:
            return sorted(set(there[key]))
        return [rng.randrange(elements) for _ in range(rng.randrange(4))]

    for _ in range(operations):
        client, key = rng.randrange(3), rng.choice("ab")
        if client in open_rows:
            done = open_rows.pop(client)
            rows.append(done)
            lives[client] += done["type"] == "info"
            continue
        f = rng.choice(FUNCTIONS[workload])
        kind = rng.choices(("ok", "fail", "info"), (6, 1, 1))[0]
        value = {"value": None if f in TELLING else some(key), "values": None}
        answer = dict(value)
        if f in ("drain", "read") and workload != "counter":
            answer["values"] = listed(key)
        elif f in TELLING:
            answer["value"] = rng.choice((None, some(key), some(key)))
        elif kind == "ok":
            there[key].append(value["value"])
        row = {"process": client + 3 * lives[client], "f": f, "key": key}
        rows.append(row | {"type": "invoke", "value": value})
        open_rows[client] = row | {"type": kind, "value": answer if kind == "ok" else None}
    return rows


@dataclass(frozen=True)
class Done:
    """One operation: `end` is NEVER if its outcome is unknown."""

    f: str
    key: str
    type: str
    process: int
    start: int
    end: int
    elements: list[int]


def operations_of(rows: list[Row]) -> list[Done]:
    done, begun = [], {}
    for index, row in enumerate(rows):
        if row["type"] == "invoke":
            begun[row["process"]] = (index, row)
            continue
        start, invocation = begun.pop(row["process"])
        value = row["value"] or invocation["value"]
        elements = ([] if value["value"] is None else [value["value"]]) + (value["values"] or [])
        end = NEVER if row["type"] == "info" else index
        done.append(Done(row["f"], row["key"], row["type"], row["process"], start, end, elements))
    for start, row in begun.values():
        value = row["value"]["value"]
        elements = [] if value is None else [value]
        done.append(Done(row["f"], row["key"], "info", row["process"], start, NEVER, elements))
    return done


def by_element(operations: list[Done]) -> dict[tuple[str, int], list[Done]]:
    """An operation that has an element twice comes twice."""
    found: dict[tuple[str, int], list[Done]] = defaultdict(list)
    for operation in operations:
        for element in operation.elements:
            found[operation.key, element].append(operation)
    return found


def of(operations: list[Done], functions: tuple[str, ...], types: tuple[str, ...] = ("ok",)) -> list[Done]:
    return [o for o in operations if o.f in functions and o.type in types]


def false_reads(tries: list[Done], seen: list[Done]) -> Counter[str]:
    found: Counter[str] = Counter()
    if seen and (not tries or min(o.end for o in seen) < min(o.start for o in tries)):
        found["unexpected"] += 1
    elif seen and all(o.type == "fail" for o in tries):
        found["aborted-read"] += 1
    return found


def defined_queue(operations: list[Done]) -> Counter[str]:
    found: Counter[str] = Counter()
    for (key, _), mine in by_element(operations).items():
        tries = of(mine, ("enqueue",), ("ok", "info", "fail"))
        possible, acked = of(tries, ("enqueue",), ("ok", "info")), of(tries, ("enqueue",))
        seen, acks = of(mine, ("dequeue", "drain")), of(mine, ("ack",))
        found += false_reads(tries, seen)
        if possible and len(seen) > len(possible):
            found["duplicated"] += 1
        if len(acked) > len(seen):
            drains = [o for o in of(operations, ("drain",)) if o.key == key]
            after = [o for o in drains if all(o.start > ack.end for ack in acked)]
            found["lost" if after else "undecided"] += 1
        if acks and len(possible) == 1 and any(o.start > min(a.end for a in acks) for o in seen):
            found["redelivered-after-ack"] += 1
    return found


def shown_first(mine: list[Done], element: int) -> tuple[int, int]:
    """Where the delivery ended that ended first, and the element's place in it."""
    first = min(of(mine, ("dequeue", "drain")), key=lambda o: o.end)
    return first.end, first.elements.index(element)


def overtakes(late: tuple[int, list[Done]], other: tuple[int, list[Done]]) -> bool:
    """Whether the other element was surely shown first."""
    seen = of(late[1], ("dequeue", "drain"))
    late_end, late_place = shown_first(late[1], late[0])
    end, place = shown_first(other[1], other[0])
    if end < min(o.start for o in seen):
        return True
    began = [o for o in seen if o.start < end]
    return end == late_end and place < late_place and all(o.end == end for o in began)


def defined_order(operations: list[Done], *, by_producer: bool) -> Counter[str]:
    """Elements that another one of their key overtook, which was sent after them."""
    found: Counter[str] = Counter()
    sent = {}
    for (key, element), mine in by_element(operations).items():
        possible = of(mine, ("enqueue",), ("ok", "info"))
        if len(possible) == 1 and of(mine, ("dequeue", "drain")):
            sent[key, element] = possible[0], mine
    for (key, element), (enqueue, mine) in sent.items():
        for (other_key, other), (after, theirs) in sent.items():
            same = other_key == key and (not by_producer or after.process == enqueue.process)
            if same and after.start > enqueue.end and overtakes((element, mine), (other, theirs)):
                found["out-of-order"] += 1
                break
    return found


def defined_set(operations: list[Done]) -> Counter[str]:
    found: Counter[str] = Counter()
    for (key, _), mine in by_element(operations).items():
        tries, acked, seen = of(mine, ("add",), ("ok", "info", "fail")), of(mine, ("add",)), of(mine, ("read",))
        found += false_reads(tries, seen)
        found["duplicated"] += len({o.end for o in seen}) < len(seen)
        known = min((o.end for o in acked + seen), default=None)
        if known is None:
            continue
        later = [o for o in of(operations, ("read",)) if o.key == key and o.start > known]
        missing = [o.start for o in later if o not in seen]
        shown = [o.start for o in seen]
        if missing and max(missing) > max(shown, default=-1):
            found["lost"] += 1
        elif missing:
            found["stale"] += 1
        elif not shown:
            found["undecided"] += 1
    return +found


def defined_latencies(operations: list[Done]) -> dict[str, list[int]]:
    """By elements: rows from when each was known to the last read without it, or if it is lost, with it."""
    latencies: dict[str, list[int]] = {"stable": [], "lost": []}
    for (key, _), mine in by_element(operations).items():
        known = min((o.end for o in of(mine, ("add", "read"))), default=None)
        if known is None:
            continue
        seen = of(mine, ("read",))
        shown = max((o.start for o in seen), default=-1)
        reads = of(operations, ("read",))
        missing = [o.start for o in reads if o.key == key and o.start > known and o not in seen]
        if missing and max(missing) > shown:
            latencies["lost"].append(max(0, shown - known))
        elif seen:
            latencies["stable"].append(max(missing) - known if missing else 0)
    return latencies


def defined_counter(operations: list[Done]) -> Counter[str]:
    found: Counter[str] = Counter()
    for read in of(operations, ("read",)):
        if not read.elements:
            continue
        found["read"] += 1
        bounds = [0, 0]
        for add in of(operations, ("add",), ("ok", "info")):
            must = add.key == read.key and add.type == "ok" and add.end < read.start
            may = add.key == read.key and add.start < read.end
            grows = add.elements[0] > 0
            bounds[0] += add.elements[0] * (must if grows else may)
            bounds[1] += add.elements[0] * (may if grows else must)
        found["out-of-bounds"] += not bounds[0] <= read.elements[0] <= bounds[1]
    found["undecided"] += not found.pop("read", 0)
    return +found


def defined_ids(operations: list[Done]) -> Counter[str]:
    given = by_element(of(operations, ("generate",)))
    of_source = Counter(o.key for same in given.values() for o in same)
    is_alone = max(of_source.values(), default=0) < 2
    return +Counter({"duplicated": sum(len(o) > 1 for o in given.values()), "undecided": int(is_alone)})


def defined_causal_reverse(operations: list[Done]) -> Counter[str]:
    """For a value that may have been written more than once, the first of its writes counts."""
    found: Counter[str] = Counter()
    began: dict[tuple[str, int], int] = {}
    acked: dict[tuple[str, int], int] = {}
    shows = 0
    for (key, element), mine in by_element(operations).items():
        tries = of(mine, ("write",), ("ok", "info", "fail"))
        found += false_reads(tries, of(mine, ("read",)))
        began[key, element] = min((o.start for o in of(tries, ("write",), ("ok", "info"))), default=-1)
        acked[key, element] = min((o.end for o in of(tries, ("write",))), default=NEVER)
    for read in of(operations, ("read",)):
        latest = max((began[read.key, element] for element in read.elements), default=-1)
        over = [element for (key, element), end in acked.items() if key == read.key and end < latest]
        found["causal-reverse"] += any(element not in read.elements for element in over)
        shows += bool(read.elements)
    found["undecided"] += not shows
    return +found


def random_bank(seed: int) -> tuple[list[Row], Counter[str]]:
    """Reads of two accounts whose total is mostly 10, and what is wrong in them."""
    rng = random.Random(seed)
    rows: list[Row] = []
    defined: Counter[str] = Counter()
    for _ in range(10_000):
        kind = rng.choice(("ok", "ok", "fail", "info"))
        amounts = [rng.choice((5, 5, 5, 0, 10, -1, None)) for _ in range(2)]
        shown = [{"account": account, "amount": amount} for account, amount in enumerate(amounts)]
        shown[1]["account"] = rng.choice((1, 1, 1, 2))
        process = len(rows)
        rows.append({"process": process, "type": "invoke", "f": "read", "value": None})
        rows.append({"process": process, "type": kind, "f": "read", "value": {"balances": shown}})
        if kind == "ok":
            defined["null-balance"] += None in amounts
            defined["unexpected-account"] += shown[1]["account"] == 2
            defined["wrong-total"] += None not in amounts and sum(a or 0 for a in amounts) != 10
            defined["negative-balance"] += -1 in amounts
    return rows, defined


def random_banks(rng: random.Random) -> list[Row]:
    """Transfers between accounts of two tables, and reads that mostly see every table's balances as they are."""
    accounts, disorder = rng.randint(1, 4), rng.choice((0.0, 0.1, 0.4))
    held = {table: [rng.choice((0, 5, 10, 2**62)) for _ in range(accounts)] for table in "ab"}
    rows: list[Row] = []
    for process in range(rng.randint(2, 12)):
        table, kind = rng.choice("ab"), rng.choice(("ok", "ok", "ok", "fail", "info"))
        f = rng.choice(("transfer", "read", "read"))
        asked: Row | None = None
        shown: Row | None = None
        if f == "transfer":
            left, right = rng.randrange(accounts), rng.randrange(accounts)
            asked = shown = {"from": left, "to": right, "amount": rng.randint(1, 5)}
            if kind != "fail":
                held[table][left] -= asked["amount"]
                held[table][right] += asked["amount"]
        else:
            amounts = [
                rng.choice((None, amount + 1, -1, -amount)) if rng.random() < disorder else amount
                for amount in held[table]
            ]
            numbers = [4 if rng.random() < disorder / 2 else account for account in range(accounts)]
            shown = {
                "balances": [
                    {"account": number, "amount": amount} for number, amount in zip(numbers, amounts, strict=True)
                ]
            }
        rows.append({"process": process, "type": "invoke", "f": f, "key": table, "value": asked})
        rows.append({"process": process, "type": kind, "f": f, "key": table, "value": shown})
    return rows


def defined_bank(rows: list[Row], *, total: int | None, accounts: int | None, overdraft: bool) -> Counter[str]:
    """How many reads break each promise."""
    found: Counter[str] = Counter()
    totals = {row["key"]: total for row in rows if total is not None}
    for row in rows:
        if row["f"] != "read" or row["type"] != "ok":
            continue
        amounts = [one["amount"] for one in row["value"]["balances"]]
        found["null-balance"] += None in amounts
        found["negative-balance"] += not overdraft and any(amount is not None and amount < 0 for amount in amounts)
        if accounts is not None:
            found["unexpected-account"] += any(one["account"] >= accounts for one in row["value"]["balances"])
        if None not in amounts:
            found["wrong-total"] += sum(amounts) != totals.setdefault(row["key"], sum(amounts))
    return +found
