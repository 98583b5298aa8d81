"""Ways of saying the same: what a history may be turned into without another verdict, by docs/histories.md.

A way takes a history and a source of randomness, and gives the same history otherwise, or None where that history has
nothing that could be said in this way. What it must leave as it is follows from what the history's values mean
(`MEANING`), never from which history it is.
"""

from __future__ import annotations

import itertools
import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from checkers.api.plan import CheckRequest
from checkers.api.verdict import merge
from checkers.completions import CompletionEchoes
from checkers.consumption.rows import RETRY_PREFIX
from checkers.in_process.engine import InProcessEngine
from checkers.run import check_history
from checkers.transactions.meanings import NO_ORDER
from checkers.vacuity import Vacuity
from harness.record.history import MalformedHistory, history_schema
from tests.references.history_language import VALUE_TYPES, WrittenHistory
from tests.references.written_judgement import checker_of, evidence_of, repeats_of

Row = dict[str, Any]
Way = Callable[[WrittenHistory, random.Random], WrittenHistory | None]
Leaf = Callable[[str, Any], Any]
"""(name of the member, what stands there and is not null) -> what stands there instead."""

GREATEST = 2**63 - 1
"""Of 64 bits; the least of them, -2^63, is what columns hold for null."""


# What the parts of values mean.

VALUES = ("value", "expected", "values", "message", "messages")
"""Members that hold what is written, sent or put, wherever they stand; as leaves."""
ARITHMETIC = ("bank", "counter")
"""Of what these hold sums are made."""
ORDERED = ("monotonic", "lock", "priority-queue", "fenced-lock", "leased-lock")
"""Of what these hold the order means something."""
TIMED = ("availability", "delay", "delayed", "pop")
"""When something happened means something to these, and not only what was before what."""
READING = ("read", "get", "contains")
"""Functions that only look, in every workload and model that has them."""
CHANGING = (
    *(
        "write",
        "add",
        "enqueue",
        "send",
        "append",
        "put",
        "push",
        "txn",
        "transfer",
        "acquire",
        "inc",
        "generate",
        "cas",
    ),
)
ANSWERING = ("r", "read", "poll", "final-poll")
"""Parts of transactions that are answered."""


def named(history: WrittenHistory) -> str:
    """What it is judged as: a workload, or a model."""
    return history.model or history.checker


def timed(rows: Iterable[Row]) -> list[Row]:
    """With the times that rows without one get: a microsecond after the row before."""
    found, time = [], -1_000
    for row in rows:
        time = row.get("time", time + 1_000)
        found.append(row | {"time": time})
    return found


def with_leaves(value: Any, leaf: Leaf, member: str = "") -> Any:
    if isinstance(value, dict):
        if "json" in value:
            return value | {"json": _json(value["json"], leaf)}
        return {name: with_leaves(part, leaf, name) for name, part in value.items()}
    if isinstance(value, list):
        return [with_leaves(part, leaf, member) for part in value]
    return value if value is None else leaf(member, value)


def _json(text: str | None, leaf: Leaf) -> str | None:
    """Numbers are values, and everything else is what it is."""

    def inner(value: Any) -> Any:
        if isinstance(value, list):
            return [inner(part) for part in value]
        return leaf("value", value) if type(value) is int else value

    return None if text is None else json.dumps(inner(json.loads(text)))


def with_values(history: WrittenHistory, leaf: Leaf) -> WrittenHistory:
    rows = []
    for row in history.rows:
        value = row["value"]
        if history.model == "append-log" and row["f"] == "append" and _is_list(value):
            # Where the element came to lie, and the element.
            place, element = json.loads(value["json"])
            value = {"json": json.dumps([place, leaf("value", element)])}
        else:
            value = with_leaves(value, leaf)
        rows.append(row | {"value": value})
    return replace(history, rows=rows)


def _is_list(value: Row | None) -> bool:
    return value is not None and (value.get("json") or "").startswith("[")


def values_in(history: WrittenHistory) -> list[int]:
    """All numbers that stand for what was written, sent or put, ascending."""
    found: set[int] = set()

    def see(member: str, cell: Any) -> Any:
        if member in VALUES and type(cell) is int:
            found.add(cell)
        return cell

    with_values(history, see)
    return sorted(found)


def _fixed(history: WrittenHistory) -> set[int]:
    """Values that have one name only: what is there before anything is written, and the token before the first."""
    if history.checker == "causal":
        return {0, int(history.options.get("initial", 0))}
    return {0} if named(history).endswith("lock") else set()


def _by(numbers: Mapping[int, Any]) -> Leaf:
    return lambda member, cell: numbers.get(cell, cell) if member in VALUES and type(cell) is int else cell


def operations_in(rows: Sequence[Row]) -> Iterator[tuple[int, int | None]]:
    """(place of an invocation, place of its completion if it has one) of every operation of a client."""
    opened: dict[int, int] = {}
    ended: dict[int, int] = {}
    for place, row in enumerate(rows):
        if row["type"] == "invoke":
            opened[row["process"]] = place
        elif row["process"] >= 0:
            ended[opened[row["process"]]] = place
    for place, row in enumerate(rows):
        if row["type"] == "invoke" and row["process"] >= 0:
            yield place, ended.get(place)


# The ways.


def without_what_was_asked(history: WrittenHistory, rng: random.Random) -> WrittenHistory | None:
    """Completions leave out what they may only repeat. Answers stay."""
    rows = list(history.rows)
    repeats = repeats_of(history)
    for invoked, completed in operations_in(rows):
        if completed is None or rows[completed]["value"] is None:
            continue
        value = _left_out(history, rows[invoked], rows[completed], repeats)
        if all(cell is None for cell in value.values()) and rng.random() < 0.5:
            value = None
        rows[completed] = rows[completed] | {"value": value}
    return None if rows == history.rows else replace(history, rows=rows)


def _left_out(history: WrittenHistory, asked: Row, completion: Row, repeats: Sequence[CompletionEchoes]) -> Row:
    value = dict(completion["value"])
    for one in repeats:
        if completion["f"] not in one.functions:
            continue
        if history.checker == "object":
            is_answered = completion["type"] == "ok" and '"r"' in (value["json"] or "")
            if not is_answered and (completion["type"] != "ok" or value == asked["value"]):
                value["json"] = None
        elif completion["type"] in one.types:
            value |= _members_left_out(asked["value"] or {}, value, completion["type"], one)
    return value


def _members_left_out(asked: Row, value: Row, ended: str, repeats: CompletionEchoes) -> Row:
    members = {column.split(".")[1] for column in repeats.columns}
    if "txn" not in members:
        # What the invocation does not say, or says otherwise, is an answer.
        return {name: None for name in members & value.keys() if asked.get(name) == value[name]}
    parts = value.get("txn") or []
    is_answered = ended == "ok" and any(part["f"] in ANSWERING for part in parts)
    return {"txn": None} if parts and not is_answered and parts == asked.get("txn") else {}


def without_keys_in_completions(history: WrittenHistory, rng: random.Random) -> WrittenHistory | None:
    """Completions that repeat nothing else leave out the key as well: a lifted `[k v]` that is left out is null."""
    said = without_what_was_asked(history, rng) or history
    rows = list(said.rows)
    for _, completed in operations_in(rows):
        if completed is None or rows[completed]["key"] is None or _tells(None, rows[completed]["value"]):
            continue
        if rows[completed]["type"] != "ok" or rows[completed]["f"] in CHANGING:
            rows[completed] = rows[completed] | {"key": None}
    return None if rows == said.rows else replace(history, rows=rows)


def without_indefinite_rows(history: WrittenHistory, rng: random.Random) -> WrittenHistory | None:
    """Of an operation of unknown outcome only the invocation is written, unless its completion tells something."""
    rows = list(history.rows)
    left_out = {
        completed
        for invoked, completed in operations_in(rows)
        if completed is not None
        and rows[completed]["type"] == "info"
        and not _tells(rows[invoked]["value"], rows[completed]["value"])
    }
    if not left_out or history.checker == "availability":
        # Whether a system serves is seen from when its clients gave up.
        return None
    kept = [row for place, row in enumerate(timed(rows)) if place not in left_out]
    return replace(history, rows=kept)


def _tells(asked: Any, completed: Any) -> bool:
    """Whether there is more in a completion than there was in its invocation."""
    if isinstance(completed, dict):
        return any(
            _tells(asked.get(name) if isinstance(asked, dict) else None, part) for name, part in completed.items()
        )
    return completed is not None and completed != asked and completed != []


def with_indefinite_rows(history: WrittenHistory, rng: random.Random) -> WrittenHistory | None:
    """Operations that never ended are given an `info` row each, behind everything."""
    rows = timed(history.rows)
    ends = [
        rows[invoked] | {"type": "info", "time": rows[-1]["time"], "error": "client-timeout"}
        for invoked, completed in operations_in(rows)
        if completed is None
    ]
    if not ends or history.checker == "availability":
        return None
    return replace(history, rows=[*rows, *ends])


def in_another_order(history: WrittenHistory, rng: random.Random) -> WrittenHistory | None:
    """Invocations that follow each other in another order, and completions that do: what ended before what began stays.

    Where times mean something, only rows of one moment.
    """
    rows = timed(history.rows)
    runs: list[list[Row]] = []
    for row in rows:
        last = runs[-1][-1] if runs else None
        joins = (
            last is not None
            and (last["type"] == "invoke") == (row["type"] == "invoke")
            and min(last["process"], row["process"]) >= 0
            and (history.checker not in TIMED or last["time"] == row["time"])
        )
        if joins:
            runs[-1].append(row)
        else:
            runs.append([row])
    shuffled = [row for run in runs for row in rng.sample(run, len(run))]
    if shuffled == rows:
        return None
    times = [row["time"] for row in rows]
    return replace(history, rows=[row | {"time": time} for row, time in zip(shuffled, times, strict=True)])


def with_other_processes(history: WrittenHistory, rng: random.Random) -> WrittenHistory | None:
    """Processes by other numbers, some of them the greatest that there are."""
    old = sorted({row["process"] for row in history.rows if row["process"] >= 0})
    new = rng.sample([*range(2 * len(old) + 3), *range(2**31 - len(old) - 2, 2**31)], len(old))
    numbers = dict(zip(old, new, strict=True)) | {-1: -1}
    return replace(history, rows=[row | {"process": numbers[row["process"]]} for row in history.rows])


def with_other_keys(history: WrittenHistory, rng: random.Random, first: Sequence[str] = ()) -> WrittenHistory | None:
    """Keys, queues, groups, members and nodes by other names; `first` are the first of these for keys."""
    names: dict[str, dict[str, str]] = defaultdict(dict)
    new = iter([*first, *(f"{'ä' * rng.randrange(3)}k{number}" for number in rng.sample(range(1000), 400))])

    def name(kind: str, old: str) -> str:
        if kind == "key" and old.startswith(RETRY_PREFIX):
            return RETRY_PREFIX + name("group", old.removeprefix(RETRY_PREFIX))
        return names[kind].setdefault(old, "") or names[kind].setdefault(old + "\0", next(new))

    def leaf(member: str, cell: Any) -> Any:
        kind = {"queue": "key", "link": "position"}.get(member, member)
        if kind in ("key", "group", "member", "position") and isinstance(cell, str):
            return name(kind, cell) if cell != "init" else cell
        return cell

    rows = [
        row
        | {
            "key": None if row["key"] is None else name("key", row["key"]),
            "node": None if row["node"] is None else name("node", row["node"]),
            "value": row["value"] if history.checker == "object" else with_leaves(row["value"], leaf),
        }
        for row in history.rows
    ]
    return None if rows == history.rows else replace(history, rows=rows)


def with_strange_keys(history: WrittenHistory, rng: random.Random) -> WrittenHistory | None:
    """Keys are the empty text, and texts that look like something else."""
    return with_other_keys(history, rng, ["", "0", "null", "-1", "a b", "true"])


def with_other_values(history: WrittenHistory, rng: random.Random) -> WrittenHistory | None:
    """Values by other numbers; in the same order where that means something."""
    old = [value for value in values_in(history) if value not in _fixed(history)]
    if not old or named(history) in ARITHMETIC:
        return None
    new = [number for number in rng.sample(range(1, 10**6), len(old) + 2) if number not in _fixed(history)][: len(old)]
    if named(history) in ORDERED:
        new.sort()
    return with_values(history, _by(dict(zip(old, new, strict=True))))


def at_the_ends_of_64_bits(history: WrittenHistory, rng: random.Random) -> WrittenHistory | None:
    """Values are the least and the greatest numbers, in their order; what sums are made of is multiplied."""
    old = [value for value in values_in(history) if value not in _fixed(history)]
    if not old:
        return None
    if named(history) in ARITHMETIC:
        return _multiplied(history)
    least = 1 if named(history).endswith("lock") else -GREATEST
    half = len(old) // 2
    new = [*range(least, least + half), *range(GREATEST - (len(old) - half) + 1, GREATEST + 1)]
    return with_values(history, _by(dict(zip(old, new, strict=True))))


def _multiplied(history: WrittenHistory) -> WrittenHistory | None:
    """By so much that the greatest of them is about the greatest number; sums of them may be greater."""
    numbers = [abs(value) for value in values_in(history)]
    options = dict(history.options)
    if history.checker == "bank":
        numbers = [abs(amount) for row in history.rows for amount in _amounts(row["value"])]
        numbers.append(abs(int(options.get("total", 0))))
    if not any(numbers):
        return None
    by = GREATEST // max(numbers)
    options |= {name: str(int(options[name]) * by) for name in ("total", "initial") if name in options}

    def leaf(member: str, cell: Any) -> Any:
        return cell * by if member in ("amount", *VALUES) and type(cell) is int else cell

    return replace(with_values(history, leaf), options=options)


def _amounts(value: Row | None) -> Iterator[int]:
    found: list[int] = []

    def see(member: str, cell: Any) -> Any:
        if member == "amount":
            found.append(cell)
        return cell

    with_leaves(value, see)
    yield from found


def with_zero_as(history: WrittenHistory, rng: random.Random) -> WrittenHistory | None:
    """One of the values is called 0, and what was called 0 takes its name."""
    old = [value for value in values_in(history) if value and value not in _fixed(history)]
    if not old or named(history) in (*ARITHMETIC, *ORDERED) or 0 in _fixed(history):
        return None
    chosen = rng.choice(old)
    return with_values(history, _by({chosen: 0, 0: chosen}))


TEXTS = ("register", "cas-register", "fifo-queue", "unordered-queue", "stack", "set", "append-log")
"""Models whose elements are of any kind."""


def with_an_empty_text(history: WrittenHistory, rng: random.Random) -> WrittenHistory | None:
    """One of the values is the empty text, of objects that hold values of any kind."""
    old = values_in(history)
    if not old or history.model not in TEXTS:
        return None
    return with_values(history, _by({rng.choice(old): ""}))


def with_a_failed_one(history: WrittenHistory, rng: random.Random) -> WrittenHistory | None:
    """One more operation of its own process that failed."""
    asked = [row for row in history.rows if row["type"] == "invoke" and row["f"] in CHANGING and row["process"] >= 0]
    if not asked or history.checker == "availability":
        # It would be one more sign that nothing is served.
        return None
    fresh = itertools.count(max((*values_in(history), 0)) + 1)
    one = rng.choice(asked)
    if named(history) in ARITHMETIC or history.model == "map":
        value = one["value"]
    else:
        alone = replace(history, rows=[one])
        value = with_values(alone, lambda member, cell: next(fresh) if member in VALUES else cell).rows[0]["value"]
    invocation = one | {"process": _new_process(history), "value": value}
    return _put_in(history, [invocation, invocation | {"type": "fail", "error": "refused"}], rng)


def with_an_unanswered_one(history: WrittenHistory, rng: random.Random) -> WrittenHistory | None:
    """One more operation that only looks, and is never answered."""
    asked = [row for row in history.rows if row["type"] == "invoke" and _only_looks(history, row)]
    if not asked or history.checker == "availability":
        return None
    invocation = rng.choice(asked) | {"process": _new_process(history)}
    return _put_in(history, [invocation], rng)


def _only_looks(history: WrittenHistory, row: Row) -> bool:
    if row["process"] < 0 or history.checker in ("log", "consumption", "availability"):
        # A consumer that looks goes on behind what it saw.
        return False
    if row["f"] in READING and history.checker not in ("pop",):
        return True
    parts = (row["value"] or {}).get("txn")
    return bool(parts) and all(part["f"] == "r" for part in parts)


def with_a_look_again(history: WrittenHistory, rng: random.Random) -> WrittenHistory | None:
    """Somebody else looks once more, right after one who looked while nobody did anything, and sees the same.

    What says where in the database it was stands in one place only, and is not said twice.
    """
    rows = timed(history.rows)
    still = [
        (invoked, completed)
        for invoked, completed in operations_in(rows)
        if completed == invoked + 1
        and rows[completed]["type"] == "ok"
        and _only_looks(history, rows[completed])
        and not _under_way(rows, invoked)
        and not any((rows[completed]["value"] or {}).get(name) for name in ("position", "link", "timestamp"))
    ]
    if not still:
        return None
    invoked, completed = rng.choice(still)
    process = _new_process(history)
    again = [row | {"process": process, "time": rows[completed]["time"]} for row in rows[invoked : completed + 1]]
    return replace(history, rows=[*rows[: completed + 1], *again, *rows[completed + 1 :]])


def _under_way(rows: Sequence[Row], at: int) -> bool:
    """Whether any other operation was open there that came to an end, or may have."""
    return any(
        invoked < at and (completed is None or completed > at or rows[completed]["type"] == "info")
        for invoked, completed in operations_in(rows)
    )


def _new_process(history: WrittenHistory) -> int:
    return max(row["process"] for row in history.rows) + 1


def _put_in(history: WrittenHistory, more: list[Row], rng: random.Random) -> WrittenHistory:
    rows = timed(history.rows)
    place = rng.randrange(len(rows) + 1)
    time = rows[min(place, len(rows) - 1)]["time"]
    return replace(history, rows=[*rows[:place], *(row | {"time": time} for row in more), *rows[place:]])


WAYS: dict[str, Way] = {
    "what was asked is left out": without_what_was_asked,
    "the key is left out": without_keys_in_completions,
    "indefinite rows are left out": without_indefinite_rows,
    "indefinite rows are put in": with_indefinite_rows,
    "rows in another order": in_another_order,
    "other processes": with_other_processes,
    "other keys": with_other_keys,
    "strange keys": with_strange_keys,
    "other values": with_other_values,
    "ends of 64 bits": at_the_ends_of_64_bits,
    "a value is 0": with_zero_as,
    "a value is the empty text": with_an_empty_text,
    "a failed one more": with_a_failed_one,
    "an unanswered one more": with_an_unanswered_one,
    "looked again": with_a_look_again,
}


# Several histories in one, and one in several.


def together(one: WrittenHistory, other: WrittenHistory, rng: random.Random) -> WrittenHistory:
    """Both, under keys, processes and values of their own; rows of the one between those of the other.

    Where times mean something, each row keeps its time.
    """
    apart = renamed_apart(other, one)
    mine, others = timed(one.rows), timed(apart.rows)
    if one.checker in TIMED:
        return replace(one, rows=sorted([*mine, *others], key=lambda row: row["time"]))
    turns = [*[0] * len(mine), *[1] * len(others)]
    rng.shuffle(turns)
    left = (iter(mine), iter(others))
    rows = [{name: cell for name, cell in next(left[turn]).items() if name != "time"} for turn in turns]
    return replace(one, rows=rows)


def renamed_apart(history: WrittenHistory, other: WrittenHistory) -> WrittenHistory:
    """Under keys, processes and values that the other has not. Values that are alone in their key may stay."""
    process = _new_process(other)
    prefix = "o" * (1 + max((len(name) - len(name.lstrip("o")) for name in _names_in(other)), default=0))

    def leaf(member: str, cell: Any) -> Any:
        if _is_name(member, cell):
            prefixed = prefix + cell.removeprefix(RETRY_PREFIX)
            return RETRY_PREFIX + prefixed if cell.startswith(RETRY_PREFIX) else prefixed
        return cell

    rows = [
        row
        | {
            "process": -1 if row["process"] < 0 else row["process"] + process,
            "key": None if row["key"] is None else leaf("key", row["key"]),
            "value": row["value"] if history.checker == "object" else with_leaves(row["value"], leaf),
        }
        for row in history.rows
    ]
    renamed = replace(history, rows=rows)
    if history.checker not in WITH_MESSAGES:
        return renamed
    more = max((0, *values_in(other))) + 1 - min((0, *values_in(history)))
    return with_values(renamed, lambda member, cell: cell + more if member in VALUES else cell)


def _is_name(member: str, cell: Any) -> bool:
    return member in ("key", "queue", "group", "position", "link") and isinstance(cell, str) and cell != "init"


def _names_in(history: WrittenHistory) -> set[str]:
    """Of keys, queues and groups, without the prefix of those of retries."""
    names = set()

    def leaf(member: str, cell: Any) -> Any:
        if _is_name(member, cell):
            names.add(cell.removeprefix(RETRY_PREFIX))
        return cell

    for row in history.rows:
        with_leaves([row["key"], row["value"]], leaf, "key")
    return names


WITH_MESSAGES = ("consumption", "delay", "delayed", "log", "pop")
"""A message has one number, whichever queue it is in."""


def may_be_together(one: WrittenHistory, other: WrittenHistory) -> bool:
    """A group of consumers is to get what is in all queues, a drain of popped messages has them all, and outages are
    those of a system. Where a log has transactions, its other operations are some as well."""
    if one.checker in ("availability", "consumption", "pop") or one.demands:
        return False
    if _counts_takers(one) or _counts_takers(other):
        return False
    has_transactions = [any((row["value"] or {}).get("txn") for row in history.rows) for history in (one, other)]
    return one.checker != "log" or has_transactions[0] == has_transactions[1]


def _counts_takers(history: WrittenHistory) -> bool:
    """Whether what comes late of a queue is counted against dequeues and drains of unknown outcome: over all queues in
    which nobody acknowledges anything."""
    taking = ("dequeue", "drain")
    definite = sum(row["type"] in ("ok", "fail") for row in history.rows if row["f"] in taking)
    begun = sum(row["type"] == "invoke" for row in history.rows if row["f"] in taking)
    is_ordered = history.options.get("order", "none") != "none" if history.checker == "queue" else True
    return history.checker in ("queue", "transactional") and is_ordered and begun > definite


def by_key(history: WrittenHistory) -> dict[str, WrittenHistory]:
    """A history of each key; none where something belongs to several of them, or to none."""
    rows = timed(history.rows)
    is_whole = history.checker in (*WITH_MESSAGES, "availability") or _counts_takers(history)
    if is_whole or any(row["key"] is None for row in rows):
        return {}
    keys = dict.fromkeys(row["key"] for row in rows)
    return {key: replace(history, rows=[row for row in rows if row["key"] == key]) for key in keys}


# How they are judged.


@dataclass(frozen=True)
class Report:
    """What is said of a history."""

    verdict: str
    """Or why it is none."""
    anomalies: frozenset[str]


def table_of(history: WrittenHistory) -> pa.Table:
    rows = [row | {"index": index} for index, row in enumerate(timed(history.rows))]
    return pa.Table.from_pylist(rows, schema=history_schema(VALUE_TYPES[history.checker]))


def report(history: WrittenHistory) -> Report:
    request = CheckRequest(history=table_of(history), repeats=repeats_of(history), run=history.run)
    checkers = {"it": checker_of(history), "vacuity": Vacuity(subject="x", evidence=evidence_of(history))}
    try:
        results = check_history(request, checkers, InProcessEngine())
    except MalformedHistory as error:
        return Report(f"refused: {error.reason}", frozenset())
    verdict = merge(result.verdict for result in results.values()).value
    failed = [reason for result in results.values() for reason in result.reasons if "checker failed" in reason]
    return Report(failed[0] if failed else verdict, frozenset(results["it"].anomalies))


def weakest(name: str) -> bool:
    """Whether it names the weakest model that is broken, which is that of all keys together."""
    return name.startswith(NO_ORDER)


def told_together(parts: Iterable[Report]) -> Report:
    """What is to be said of histories in one; of what is found in none and unknown of some, the verdict is open."""
    some = list(parts)
    verdicts = {one.verdict for one in some}
    verdict = next(iter(verdicts)) if len(verdicts) == 1 else "invalid" if "invalid" in verdicts else "unknown"
    return Report(verdict, frozenset[str]().union(*(one.anomalies for one in some)))
