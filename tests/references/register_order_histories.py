"""Random histories of registers in which the order of writes is often wrong, and the definitions, word by word."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from typing import Any

Row = dict[str, Any]
Span = tuple[str, str | None, int, int, Any]
"""Type, key, start, end, and what was answered, or else asked."""

NEVER = 1 << 60


def interleaved(rng: random.Random, plan: list[tuple[str, str | None, Any, Any]]) -> list[Row]:
    """Rows of three clients that carry out what is planned, in turn: f, key, what is asked and what is answered."""
    rows: list[Row] = []
    open_rows: dict[int, Row] = {}
    lives = dict.fromkeys(range(3), 0)
    todo = list(reversed(plan))
    while todo:
        client = rng.randrange(3)
        if client in open_rows:
            done = open_rows.pop(client)
            rows.append(done)
            lives[client] += done["type"] == "info"
            continue
        f, key, asked, answer = todo.pop()
        kind = rng.choices(("ok", "fail", "info"), (6, 1, 1))[0]
        row = {"process": client + 3 * lives[client], "f": f, "key": key}
        rows.append(row | {"type": "invoke", "value": asked})
        open_rows[client] = row | {"type": kind, "value": answer if kind == "ok" else None}
    return rows


def spans_of(rows: list[Row]) -> list[Span]:
    spans, begun = [], {}
    for index, row in enumerate(rows):
        if row["type"] == "invoke":
            begun[row["process"]] = (index, row)
            continue
        start, invocation = begun.pop(row["process"])
        spans.append((row["type"], row["key"], start, index, row["value"] or invocation["value"]))
    return spans + [("info", row["key"], start, NEVER, row["value"]) for start, row in begun.values()]


def part(f: str, key: str, value: int | None) -> Row:
    return {"f": f, "key": key, "value": value, "values": None}


def random_forks(rng: random.Random, *, rewrites: float) -> list[Row]:
    """Two objects of four registers; each is written once, but for a share of `rewrites`."""
    disorder = rng.choice((0.0, 0.1, 0.5))
    written: dict[tuple[str, str], int] = {}
    plan: list[tuple[str, str | None, Any, Any]] = []

    def show(key: str, register: str) -> int | None:
        if rng.random() < disorder:
            return rng.choice((None, None, 1, 1, 2))
        return written.get((key, register))

    for _ in range(12):
        key = rng.choice("ab")
        registers = rng.sample("wxyz", rng.choice((1, 2, 3)))
        writes = []
        new = [register for register in registers if (key, register) not in written or rng.random() < rewrites]
        if new and rng.random() < 0.4:
            written[key, new[0]] = rng.choice((1, 1, 2))
            writes = [part("w", new[0], written[key, new[0]])]
            registers = registers[: rng.choice((0, 3))]
        asked = writes + [part("r", register, None) for register in registers]
        completed = writes + [part("r", register, show(key, register)) for register in registers]
        f = "txn" if writes and registers else "write" if writes else "read"
        plan.append((f, key, {"txn": asked}, {"txn": completed}))
    return interleaved(rng, plan)


def defined_forks(rows: list[Row]) -> Counter[str]:
    found: Counter[str] = Counter()
    writes: dict[tuple[Any, str], list[tuple[str, int, int]]] = defaultdict(list)
    reads: dict[tuple[Any, str, int], int] = {}
    views: dict[Any, list[dict[str, bool]]] = defaultdict(list)
    for kind, key, start, end, value in spans_of(rows):
        own = {p["key"] for p in value["txn"] if p["f"] == "w"}
        for p in value["txn"]:
            if p["f"] == "w":
                writes[key, p["key"]].append((kind, p["value"], start))
            elif kind == "ok" and p["value"] is not None:
                place = (key, p["key"], p["value"])
                reads[place] = min(end, reads.get(place, NEVER))
        if kind == "ok":
            view = {p["key"]: p["value"] is not None for p in value["txn"] if p["f"] == "r" and p["key"] not in own}
            views[key].append(view)
    for (key, register, value), end in reads.items():
        mine = [(kind, start) for kind, written, start in writes[key, register] if written == value]
        if not any(start < end for _, start in mine):
            found["unexpected"] += 1
        elif all(kind == "fail" for kind, _ in mine):
            found["aborted-read"] += 1
    rewritten = {place for place, tries in writes.items() if sum(kind != "fail" for kind, _, _ in tries) > 1}
    for key, of_key in views.items():
        before = {(x, y) for view in of_key for x in view for y in view if view[x] and not view[y]}
        found["long-fork"] += sum((y, x) in before for x, y in before if x < y and not {(key, x), (key, y)} & rewritten)
        found["evidence"] += len(before)
    found["rewritten"] += len(rewritten)
    found["undecided"] += not found.pop("evidence", 0)
    return +found


def random_growth(rng: random.Random) -> list[Row]:
    """Registers that mostly grow, read one by one or several at once, often with timestamps."""
    disorder = rng.choice((0.0, 0.1, 0.4))
    held = dict.fromkeys(["a", "b", "a/x", "a/y"], 0)
    plan: list[tuple[str, str | None, Any, Any]] = []

    def show(register: str, now: int) -> Row:
        value: int | None = held[register]
        if rng.random() < disorder:
            value = rng.choice((None, max(0, held[register] - 1), held[register] + 1))
        stamp = now + (rng.randrange(-3, 4) if rng.random() < disorder else 0)
        return {"value": value, "timestamp": rng.choice((None, stamp))}

    for now in range(14):
        key = rng.choice("ab")
        if rng.random() < 0.3:
            names = rng.sample("xy", rng.choice((1, 2)))
            plan.append(("read", "a", None, {"reads": [{"key": name} | show(f"a/{name}", now) for name in names]}))
            continue
        f = rng.choice(("read", "read", "inc"))
        held[key] += f == "inc"
        held[f"a/{rng.choice('xy')}"] += 1
        plan.append((f, key, None, show(key, now)))
    return interleaved(rng, plan)


def defined_growth(rows: list[Row]) -> Counter[str]:
    found: Counter[str] = Counter()
    by_process: dict[tuple[str, int], list[float]] = defaultdict(list)
    stamped: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for row in rows:
        if row["type"] != "ok":
            continue
        several = row["value"].get("reads")
        named = [(f"{row['key']}/{r['key']}", r) for r in several] if several else [(row["key"], row["value"])]
        for register, value in named:
            shown = -1 if value["value"] is None else value["value"]
            by_process[register, row["process"]].append(shown)
            if value["timestamp"] is not None:
                stamped[register].append((value["timestamp"], shown))
    for values in by_process.values():
        found["nonmonotonic-read"] += sum(value < max(values[:i], default=-1) for i, value in enumerate(values))
    for pairs in stamped.values():
        found["nonmonotonic-timestamp"] += sum(any(t < at and v > w for t, v in pairs) for at, w in pairs)
    compared = any(len(values) > 1 for values in (*by_process.values(), *stamped.values()))
    found["undecided"] += not compared
    return +found


def random_causes(rng: random.Random) -> list[Row]:
    """Two objects; one history has transactions on registers, another one single operations with positions."""
    disorder = rng.choice((0.0, 0.1, 0.3))
    linked = rng.random() < 0.5
    values = rng.choice((3, 100))
    written: dict[tuple[str, str], list[int]] = defaultdict(list)
    position = dict.fromkeys("ab", 0)
    plan: list[tuple[str, str | None, Any, Any]] = []

    def write(key: str, register: str) -> int:
        new = rng.randrange(1, values) if rng.random() < disorder else len(written[key, register]) + 1
        written[key, register].append(new)
        return new

    def show(key: str, register: str) -> int | None:
        if rng.random() < disorder:
            return rng.choice((None, 0, rng.randrange(values)))
        known = written[key, register]
        return rng.choice(known[-2:]) if known else rng.choice((None, 0))

    for _ in range(14):
        key = rng.choice("ab")
        if not linked:
            asked, completed = [], []
            for register in rng.sample("xy", rng.choice((1, 1, 2))):
                if rng.random() < 0.4:
                    asked.append(part("w", register, write(key, register)))
                    completed.append(asked[-1])
                if rng.random() < 0.6:
                    asked.append(part("r", register, None))
                    completed.append(part("r", register, show(key, register)))
                if rng.random() < 0.2:
                    asked.append(part("w", register, write(key, register)))
                    completed.append(asked[-1])
            plan.append(("txn", key, {"txn": asked}, {"txn": completed}))
            continue
        link = "init" if not position[key] else str(position[key])
        if rng.random() < disorder / 2:
            link = str(rng.randrange(9))
        f = rng.choice(("read-init", "read", "write"))
        value = write(key, "") if f == "write" else None
        position[key] += f == "write" or rng.random() < 0.5
        answer = {"value": value if f == "write" else show(key, ""), "position": str(position[key]), "link": link}
        plan.append((f, key, None if value is None else {"value": value}, answer))
    return interleaved(rng, plan)


def parts_of(f: str, value: Any) -> list[Row]:
    value = value or {}
    return value.get("txn") or [part("w" if f == "write" else "r", "", value.get("value"))] * ("txn" not in value)


def defined_causes(rows: list[Row]) -> Counter[str]:
    found: Counter[str] = Counter()
    begun: dict[int, tuple[int, Row]] = {}
    spans: dict[str, list[Row]] = defaultdict(list)
    for index, row in enumerate([*rows, *({"type": "end", "process": p} for p in {r["process"] for r in rows})]):
        if row["type"] == "invoke":
            begun[row["process"]] = (index, row)
        elif row["process"] in begun:
            start, invoked = begun.pop(row["process"])
            content = (row.get("value") or invoked["value"] or {}) if row["type"] == "ok" else invoked["value"] or {}
            kind = "info" if row["type"] == "end" else row["type"]
            end = NEVER if row["type"] == "end" else index
            span = {"process": row["process"], "type": kind, "start": start, "end": end, "content": content}
            spans[invoked["key"]].append(span | {"parts": parts_of(invoked["f"], content)})
    for mine in spans.values():
        found += causes_of_object(sorted(mine, key=lambda span: int(span["start"])))
    found["undecided"] = (found["undecided"] > 0) or not found["reads"]
    del found["reads"]
    return +found


def causes_of_object(spans: list[Row]) -> Counter[str]:
    found: Counter[str] = Counter()
    nodes = [span for span in spans if span["type"] in ("ok", "info")]
    writers: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for span in spans:
        for p in span["parts"]:
            if p["f"] == "w" and p["value"] is not None:
                writers[p["key"], p["value"]].append(span)
    earliest: dict[tuple[str, int], int] = {}
    reads: set[tuple[int, str, int | None]] = set()
    contrary: list[tuple[str, int]] = []
    for number, span in enumerate(nodes):
        own: dict[str, int] = {}
        for p in span["parts"]:
            if p["f"] == "w" and p["value"] is not None:
                own[p["key"]] = p["value"]
            if p["f"] != "r" or span["type"] != "ok":
                continue
            if p["value"] not in (None, 0):
                place = (p["key"], p["value"])
                earliest[place] = min(span["end"], earliest.get(place, NEVER))
            if p["key"] not in own:
                reads.add((number, p["key"], p["value"]))
            elif (p["value"] or 0) != own[p["key"]]:
                contrary.append((p["key"], p["value"] or 0))
    for place, end in earliest.items():
        if not any(span["start"] < end for span in writers[place]):
            found["unexpected"] += 1
        elif all(span["type"] == "fail" for span in writers[place]):
            found["aborted-read"] += 1

    for register, value in contrary:
        if value == 0 and not any(node in writers[register, 0] for node in nodes):
            found["initial-read"] += 1
        elif any(node in writers[register, value] for node in nodes):
            found["overwritten-read"] += 1
    before = [[False] * len(nodes) for _ in nodes]
    for i, earlier in enumerate(nodes):
        for j, later in enumerate(nodes):
            before[i][j] = earlier["process"] == later["process"] and earlier["start"] < later["start"]
    judged = []
    for number, register, value in reads:
        possible = {i for i, node in enumerate(nodes) if value is not None and node in writers[register, value]}
        untouched = value in (None, 0)
        if len(possible) + untouched > 1:
            found["undecided"] += 1
        elif untouched or possible:
            writer = None if untouched else possible.pop()
            judged.append((number, register, writer, value))
            if writer is not None:
                before[writer][number] = True
                found["reads"] += 1
    positioned = [i for i, node in enumerate(nodes) if node["type"] == "ok" and node["content"].get("position")]
    for number, node in enumerate(nodes):
        link = node["content"].get("link") if node["type"] == "ok" else None
        if link in (None, "init"):
            continue
        named = [i for i in positioned if nodes[i]["content"]["position"] == link and nodes[i]["end"] < node["end"]]
        if named:
            before[min(named, key=lambda i: int(nodes[i]["end"]))][number] = True
        over = [i for i in positioned if nodes[i]["end"] < node["start"]]
        found["broken-link"] += not any(all(nodes[i]["start"] < nodes[o]["end"] for i in over) for o in named)
    for k in range(len(nodes)):
        for i in range(len(nodes)):
            if before[i][k]:
                before[i] = [a or b for a, b in zip(before[i], before[k], strict=True)]
    cyclic = [i for i in range(len(nodes)) if before[i][i]]
    found["cyclic-causality"] += bool(cyclic)
    for number, register, writer, value in judged:
        if any(i == number or before[i][number] for i in cyclic):
            continue
        writes = {
            i
            for i, node in enumerate(nodes)
            if i != writer and any(p["f"] == "w" and p["key"] == register for p in node["parts"])
        }
        if writer is None:
            found["initial-read"] += any(before[i][number] for i in writes)
        else:
            last = [p["value"] for p in nodes[writer]["parts"] if p["f"] == "w" and p["key"] == register][-1]
            shown = any(before[writer][i] and before[i][number] for i in writes)
            found["overwritten-read"] += shown or last != value
    return +found
