"""A small language for histories: one operation a line, so that a counterexample fits on one screen.

    source: where this history comes from
    checker: log
    verdict: invalid lost-write, unseen       (or: valid, or: unknown)
    options: delivery=exactly-once            of the checker, if any
    demands: recovery_limit_s=2               of its run
    bounds: max_configurations=200            of the search of an object
    model: stack                              of the checker `object`
    operations: 0 1 4 5                       that the one anomaly names, if that matters

    0 invoke send q0 1                        process, type, f, key, value
    0 ok send q0 1@0                          message 1 is at offset 0
    1 invoke poll q0 from=0                   asks for what is at offset 0 and behind
    1 ok poll q0 at=b1 0:1 1:2                replica b1 gave offset 0: message 1, offset 1: message 2
    1 ok poll q0 group=g resumed=2 2:3        its group had committed 2, where it began; message 3 is at offset 2
    2 ok caught-up q0 at=b1 end=2             the final reads of b1 reached its end
    3 ok cas r0 1->2
    3 fail write r0 7 error=not-master
    4 ok drain q0 [1,2]                       elements 1 and 2
    5 ok read bank {1=10,2=-3}                account 1 has 10, account 2 has -3
    6 ok read x 5 ts=17                       the database's own timestamp of that
    6 ok read x 5 position=b link=a           where the database says that this was, and what was before
    6 ok txn - r(x)=1 w(y)=2                  a transaction, of no key: read x as 1, wrote y as 2
    6 ok txn - r(z)=[1,2] append(z)=3         the same of lists
    0 ok txn - send(q0)=1@0 poll(q1)=0:5,1:6  of a log: sent message 1, which is at offset 0; was given two of q1
    0 ok txn - poll(q0)=repositioned,4:6      its consumer need not have gone on where it was; message 6
    0 ok txn - final-poll(q0)=0:5,1:6         the same of one that was put to the beginning and has read on since
    0 ok txn - poll(q0)=@2 poll(q1)=0:5,end   was given nothing from offset 2 on; message 5, and then q1 ended
    4 ok contains s0 7 => false               objects of a model: what was asked => what was answered, as JSON
    4 ok dequeue q0 => 7
    0 ok send q0 1 due=2                      message 1 is to be delivered 2 s after the beginning
    0 ok enqueue q0 1 delay=2                 message 1 is to be delivered when 2 s have passed
    0 ok take-back - 1                        message 1 is not wanted any more; with a queue, value 1
    1 ok dequeue q0 [1,2] places=0,1          elements 1 and 2, which stood at places 0 and 1
    0 ok send q0 1@0 time=2.5                 2.5 s after the beginning; without it soon after the operation before
    1 ok pop - invisible=500 3*0 4*2          was given messages 3, for the first time, and 4, which came twice before
    1 ok change - 3 invisible=900             message 3 is invisible for 900 ms from now on
    1 ok join - group=g member=a              the process is member a of group g from now on
    1 ok consume - group=g q0:0:1 q1:4:2+1    it was given message 1 from offset 0 of q0, and 2, tried once before
    1 ok finish - group=g outcome=later q0:0:1  it failed to consume that
    2 ok committed q0 group=g end=1           the group has consumed q0 up to offset 1

A completion whose process has nothing open stands for the invocation, right before it, as well. Lines that
begin with # are comments; - is no key. Words missing from a value are null.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from checkers.api.plan import RunUnderCheck
from checkers.linearizable.checker import CONFIGURATIONS
from checkers.log.rows import LOG_MESSAGES
from harness.record.history import history_schema
from stormproof.session.registry import workloads

REGISTER_VALUE = pa.struct([pa.field("value", pa.int64()), pa.field("expected", pa.int64())])
OBJECT_VALUE = pa.struct([pa.field("json", pa.string())])
VALUE_TYPES = {"register": REGISTER_VALUE, "object": OBJECT_VALUE, "availability": LOG_MESSAGES} | {
    name: workload.value_type for name, workload in workloads().items()
}


TELLING = (
    *(
        "poll",
        "final-poll",
        "caught-up",
        "read",
        "final-read",
        "read-init",
        "inc",
        "dequeue",
        "drain",
        "generate",
        "deliver",
    ),
    "acquire",
)
TELLING_OF_GROUPS = ("join", "consume", "committed", "settled", "dead-letters")
"""Operations whose value comes with the answer."""

UNANSWERED: dict[str, dict[str, Any]] = {
    "r": {"value": None, "values": None},
    "send": {"offset": None},
    "poll": {"messages": None, "end": None, "repositioned": None},
    "final-poll": {"messages": None, "end": None, "repositioned": None},
}
"""What of a transaction's parts comes with the answer."""


@dataclass(frozen=True, kw_only=True)
class WrittenHistory:
    """A history file: what it claims, and its operations as rows."""

    source: str
    checker: str
    model: str
    verdict: str
    anomalies: tuple[str, ...]
    options: dict[str, str]
    demands: dict[str, str]
    """Of its run."""
    bounds: dict[str, str]
    """Of its checker."""
    operations: tuple[int, ...] | None
    rows: list[dict[str, Any]]

    def judged_by(self) -> tuple[str, ...]:
        """The options of `stormproof check` that say how it is judged."""
        if self.checker == "object":
            return ("--model", self.model)
        return ("--workload", self.checker, *(f"--set={name}={value}" for name, value in self.options.items()))

    @property
    def run(self) -> RunUnderCheck | None:
        return RunUnderCheck(**{name: float(value) for name, value in self.demands.items()}) if self.demands else None

    @property
    def max_configurations(self) -> int:
        return int(self.bounds.get("max_configurations", CONFIGURATIONS))

    def table(self) -> pa.Table:
        """In memory, as a short history is judged."""
        return _table(self.rows, VALUE_TYPES[self.checker])

    def write(self, path: Path) -> Path:
        return write_rows(self.rows, VALUE_TYPES[self.checker], path)


def write_rows(rows: list[dict[str, Any]], value_type: pa.DataType, path: Path) -> Path:
    """Rows without index and time get both from their order: a microsecond after the row before."""
    pq.write_table(_table(rows, value_type), path)
    return path


def _table(rows: list[dict[str, Any]], value_type: pa.DataType) -> pa.Table:
    numbered = []
    time_ns = -1_000
    for index, row in enumerate(rows):
        time_ns = row.get("time", time_ns + 1_000)
        numbered.append({"index": index, **row, "time": time_ns})
    return pa.Table.from_pylist(numbered, schema=history_schema(value_type))


def parse_history(text: str) -> WrittenHistory:
    head: dict[str, str] = {}
    rows: list[dict[str, Any]] = []
    for line in text.splitlines():
        line = line.split("#")[0].strip()
        if not line:
            continue
        if match := re.match(r"(source|checker|model|verdict|options|demands|bounds|operations): *(.*)", line):
            head[match[1]] = match[2]
        else:
            is_object = head["checker"] == "object"
            rows += _object_rows(line, rows) if is_object else _with_invocation(parse_operation(line), rows)
    verdict, _, anomalies = head["verdict"].partition(" ")
    return WrittenHistory(
        source=head["source"],
        checker=head["checker"],
        model=head.get("model", ""),
        verdict=verdict,
        anomalies=tuple(sorted(name.strip() for name in anomalies.split(",") if name.strip())),
        options=dict(word.split("=") for word in head.get("options", "").split()),
        demands=dict(word.split("=") for word in head.get("demands", "").split()),
        bounds=dict(word.split("=") for word in head.get("bounds", "").split()),
        operations=tuple(map(int, head["operations"].split())) if "operations" in head else None,
        rows=rows,
    )


def parse_operation(line: str) -> dict[str, Any]:
    process, kind, f, key, *words = line.split()
    named = None if key == "-" else key
    row: dict[str, Any] = {"process": int(process), "type": kind, "f": f, "key": named, "node": None, "error": None}
    value: dict[str, Any] = {}
    for word in words:
        _add(word, row, value)
    if kind == "ok" and (f.endswith("poll") or f in ("consume", "dead-letters")):
        value.setdefault("messages", [])
    row["value"] = value
    return row


def _add(word: str, row: dict[str, Any], value: dict[str, Any]) -> None:
    """What a word says of the row or of its value."""
    if match := re.fullmatch(r"(at|error)=(.+)", word):
        row["node" if match[1] == "at" else "error"] = match[2]
    elif match := re.fullmatch(r"time=([\d.]+)", word):
        row["time"] = round(float(match[1]) * 1e9)
    elif match := re.fullmatch(r"ts=(-?\d+)", word):
        value["timestamp"] = int(match[1])
    elif match := re.fullmatch(r"(position|link)=(\w+)", word):
        value[match[1]] = match[2]
    elif match := re.fullmatch(r"(r|w|append)\((\w+)\)=(.+)", word):
        value.setdefault("txn", []).append(_micro_operation(*match.groups()))
    elif match := re.fullmatch(r"(send|poll|final-poll)\((\w+)\)=(.*)", word):
        value.setdefault("txn", []).append(_part(*match.groups()))
    elif match := re.fullmatch(r"(group|member|outcome)=(\w+)", word):
        value[match[1]] = match[2]
    elif match := re.fullmatch(r"([\w/]+):(\d+):(-?\d+)(?:\+(\d+))?", word):
        given = {"queue": match[1], "offset": int(match[2]), "message": int(match[3]), "tries": int(match[4] or 0)}
        value.setdefault("messages", []).append(given)
    elif match := re.fullmatch(r"resumed=(\d+)", word):
        value["resumed"] = int(match[1])
    elif match := re.fullmatch(r"due=([\d.]+)", word):
        value["due"] = round(float(match[1]) * 1e9)
    elif match := re.fullmatch(r"invisible=(\d+)", word):
        value["invisible_ms"] = int(match[1])
    elif match := re.fullmatch(r"(-?\d+)\*(\d+)", word):
        value.setdefault("deliveries", []).append({"message": int(match[1]), "times": int(match[2])})
    elif match := re.fullmatch(r"(-?\d+)\*(\d+)@(\w+):(\d+)", word):
        given = {"message": int(match[1]), "times": int(match[2]), "queue": match[3], "offset": int(match[4])}
        value.setdefault("deliveries", []).append(given)
    elif match := re.fullmatch(r"of=(\w+):(\d+)", word):
        value |= {"queue": match[1], "offset": int(match[2])}
    elif match := re.fullmatch(r"delay=([\d.]+)", word):
        value["delay_ms"] = round(float(match[1]) * 1e3)
    elif match := re.fullmatch(r"places=([\d,]+)", word):
        value["places"] = [int(place) for place in match[1].split(",")]
    elif match := re.fullmatch(r"(?:from|end)=(\d+)", word):
        value["offset"] = int(match[1])
    elif match := re.fullmatch(r"(\d+):(-?\d+)", word):
        value.setdefault("messages", []).append({"offset": int(match[1]), "message": int(match[2])})
    elif match := re.fullmatch(r"\[(.*)\]", word):
        elements = [int(element) for element in match[1].split(",") if element]
        value["messages" if row["f"] == "deliver" else "values"] = elements
    elif match := re.fullmatch(r"\{(.*)\}", word):
        accounts = (pair.split("=") for pair in match[1].split(","))
        value["balances"] = [{"account": int(a), "amount": None if n == "null" else int(n)} for a, n in accounts]
    elif match := re.fullmatch(r"(-?\d+)@(\d+)", word):
        value |= {"message": int(match[1]), "offset": int(match[2])}
    elif match := re.fullmatch(r"(-?\d+)->(-?\d+)", word):
        value |= {"expected": int(match[1]), "value": int(match[2])}
    else:
        is_message = row["f"] == "send" or (row["key"] is None and row["f"] in ("ack", "change", "take-back"))
        value["message" if is_message else "value"] = None if word == "null" else int(word)


def _micro_operation(f: str, key: str, value: str) -> dict[str, Any]:
    part = {"f": f, "key": key, "value": None, "values": None}
    if value.startswith("["):
        return part | {"values": [int(element) for element in value[1:-1].split(",") if element]}
    return part | {"value": None if value == "null" else int(value)}


def _part(f: str, key: str, value: str) -> dict[str, Any]:
    empty = dict.fromkeys(("message", "offset", "messages", "from_offset", "end", "repositioned"))
    part: dict[str, Any] = empty | {"f": f, "key": key}
    if f == "send":
        message, _, offset = value.partition("@")
        return part | {"message": int(message), "offset": int(offset) if offset else None}
    part["messages"] = []
    for word in filter(None, value.split(",")):
        if word in ("end", "repositioned"):
            part[word] = True
        elif word.startswith("@"):
            part["from_offset"] = int(word[1:])
        else:
            offset, _, message = word.partition(":")
            part["messages"].append({"offset": int(offset), "message": int(message)})
    return part


def _object_rows(line: str, before: list[dict[str, Any]]) -> list[dict[str, Any]]:
    process, kind, f, key, *words = line.split()
    error = words.pop().removeprefix("error=") if words and words[-1].startswith("error=") else None
    asked, _, value = (text.strip() or None for text in " ".join(words).partition("=>"))
    row = {"process": int(process), "f": f, "key": key, "node": None}
    invocation = {**row, "type": "invoke", "value": {"json": asked}, "error": None}
    completion = {**row, "type": kind, "value": {"json": value or asked}, "error": error}
    last = next((earlier for earlier in reversed(before) if earlier["process"] == row["process"]), None)
    if kind == "invoke":
        return [invocation]
    return [completion] if last is not None and last["type"] == "invoke" else [invocation, completion]


def _with_invocation(row: dict[str, Any], before: list[dict[str, Any]]) -> list[dict[str, Any]]:
    last = next((earlier for earlier in reversed(before) if earlier["process"] == row["process"]), None)
    if row["type"] == "invoke" or (last is not None and last["type"] == "invoke"):
        return [row]
    value = {} if row["f"] in TELLING else dict(row["value"])
    if row["f"] in TELLING_OF_GROUPS:
        value = {"group": row["value"].get("group")}
    if row["f"] == "send":
        value["offset"] = None
    if "txn" in row["value"]:
        value["txn"] = [part | UNANSWERED.get(part["f"], {}) for part in row["value"]["txn"]]
    return [{**row, "type": "invoke", "value": value, "error": None, "node": None}, row]
