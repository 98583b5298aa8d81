"""Checkers that are one plain function over the operations on one key.

    @per_key(meanings={"forgotten": Meaning(says="What was written is read as nothing.", usually="Memory alone.")})
    def remembered(operations):
        for write in operations:
            for read in operations:
                if write.f == "write" and write.is_ok and read.f == "read" and read.is_ok and write.precedes(read):
                    if read.value["value"] is None:
                        yield finding("forgotten", write, read, because="it had been written before")

Then `remembered` is a checker that a workload can name; it runs in this process and on Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.api.anomaly import Anomaly
from checkers.api.excuses import Excuses
from checkers.api.findings import Example, Findings, found_in_buckets, judge
from checkers.api.plan import CheckRequest, Engine
from checkers.api.verdict import EXAMPLES, CheckerResult
from checkers.buckets import in_buckets
from checkers.kernels.columns import TYPES, codes, member, whole
from checkers.kernels.grouping import groups
from checkers.kernels.hashing import bucket_of, mixed, mixed_column
from checkers.kernels.pairing import operations
from checkers.prefix import Finals, by_their_names
from harness.nearest import unknown
from harness.operation import NEMESIS
from harness.record.history import MalformedHistory
from harness.record.meaning import Meaning

COLUMNS = ("index", "time", "process", "type", "f", "key", "value", "error")


class PairedOperation(NamedTuple):
    """An invocation with its completion."""

    f: str
    key: str | None
    process: int
    type: str
    """How it ended: `ok`, `fail` (it certainly did not happen) or `info` (it may have happened, or may yet)."""
    argument: Any
    """The value of the invocation as a Python object; a struct is a dict with all its members."""
    value: Any
    """The value of the completion, or that of the invocation if there is none."""
    error: str | None
    start: int
    """The history index of the invocation."""
    end: int | None
    """The history index of the completion; None without one."""
    start_ns: int
    end_ns: int | None

    @property
    def is_ok(self) -> bool:
        return self.type == "ok"

    @property
    def may_have_happened(self) -> bool:
        return self.type != "fail"

    def precedes(self, other: PairedOperation) -> bool:
        """Whether it was over before the other one began. An operation of unknown outcome never is."""
        return self.type != "info" and self.end is not None and self.end < other.start


def finding(name: str, *witnesses: PairedOperation, because: str, **details: Any) -> Anomaly:
    """An anomaly that these operations show. `because`: one sentence with the actual values; `details`: the values in a
    form that JSON can represent."""
    indices = {index for one in witnesses for index in (one.start, one.end) if index is not None}
    return Anomaly(name=name, operations=tuple(sorted(indices)), because=because, details=details)


Judges = Callable[[Sequence[PairedOperation]], Iterable[Anomaly]]


def per_key(
    *, meanings: Mapping[str, Meaning], key: str = "key", name: str = "", final_on_a_prefix: Iterable[str] = ()
) -> Callable[[Judges], PerKey]:
    """Makes a checker of a function that is given all operations of clients on one key, by their invocations, and
    yields a `finding` for each anomaly among them.

    `meanings`: for every anomaly that it can yield. `key`: the column whose values are keys, or a member of the value
    (`value.queue`), as in the invocation. `name`: the checker's name, if it is not the function's. `final_on_a_prefix`:
    anomalies that remain, whatever operations follow. If a system may legally lose what was written in some span of
    time, a finding is excused if the time from its first operation to its last meets that span.

    The function must depend on its operations alone, and be importable where Spark runs.

    Cost: every operation becomes a Python object. A core makes about 80,000 of them a second, in addition to the time
    of the function itself, and all of one key are in memory at once, at about 1 KB each. That is seconds for the
    history of a run. For histories with tens of millions of operations, or millions on one key, write kernels over
    columns (`checkers.elements.counter` is a short one).

    Raises ValueError if an anomaly that is declared final has no meaning, or if none is declared at all.
    """
    final = tuple(final_on_a_prefix)
    if not meanings:
        raise ValueError("per_key needs the meanings of the anomalies that the function can yield; none are given")
    for anomaly in final:
        _require_meaning(anomaly, meanings, "final_on_a_prefix names an ")

    def made_a_checker(function: Judges) -> PerKey:
        own_name = name or function.__name__.replace("_", "-")
        return PerKey(function, own_name, meanings, key, by_their_names(*final))

    return made_a_checker


def _require_meaning(anomaly: str, meanings: Mapping[str, Meaning], before: str) -> None:
    if anomaly not in meanings:
        raise ValueError(before + unknown("anomaly", anomaly, meanings, more=" (per_key declares their meanings)"))


@dataclass(frozen=True)
class PerKey:
    """Judges the operations on each key by a function. Calling it calls that function."""

    function: Judges
    name: str
    meanings: Mapping[str, Meaning]
    key: str
    final_on_a_prefix: Finals

    def __call__(self, operations: Sequence[PairedOperation]) -> Iterable[Anomaly]:
        return self.function(operations)

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        """The result; its statistics count keys and operations."""
        columns = tuple(dict.fromkeys((*COLUMNS, self.key.partition(".")[0])))
        schema = engine.history(request.history, columns).schema
        _require_member(schema, self.key)
        rows = pa.schema([("bucket", pa.int32()), *schema])
        paired = _paired_schema(schema)
        steps = (client_rows, rows), (partial(paired_operations, key=self.key, schema=paired), paired)
        excuses = Excuses.by_operation(request.excuses, engine, request.history)
        kernel = partial(findings_of_keys, checker=self, excuses=excuses)
        found = found_in_buckets(request, engine, in_buckets(request, engine, columns, *steps), kernel)
        statistics = found.counts("keys", "operations")
        return judge(found.anomalies, legal=request.legal, undecided=(), statistics=statistics)

    def found_of(self, of_key: Sequence[PairedOperation]) -> Iterator[Anomaly]:
        """What the function yields for the operations on one key. Raises TypeError and ValueError for a value that is
        not a finding of this checker."""
        yielded = self.function(of_key)
        if not isinstance(yielded, Iterable):
            raise TypeError(f"{self.name} returned {yielded!r}, where it has to yield findings")
        for one in yielded:
            if not isinstance(one, Anomaly):
                raise TypeError(f"{self.name} yielded {one!r}, which is no finding(name, operation, …, because=…)")
            _require_meaning(one.name, self.meanings, f"{self.name} yielded an ")
            if not one.operations:
                raise ValueError(f"{self.name} yielded {one.name!r} without any operation that shows it")
            yield one


def _require_member(schema: pa.Schema, key: str) -> None:
    """Raises MalformedHistory if values have no such member. Missing columns are found by the engine."""
    top, *members = key.split(".")
    of = schema.field(top).type
    for place, name in enumerate(members):
        there = [of.field(number).name for number in range(of.num_fields)] if pa.types.is_struct(of) else []
        if name not in there:
            within = ".".join((top, *members[:place]))
            raise MalformedHistory(None, f"{within} has no member {name!r}; there are: {', '.join(there) or 'none'}")
        of = of.field(of.get_field_index(name)).type


def _paired_schema(schema: pa.Schema) -> pa.Schema:
    value, text = schema.field("value").type, pa.string()
    return pa.schema(
        [("bucket", pa.int32()), ("group", text), ("f", text), ("key", text), ("process", pa.int64()), ("type", text)]
        + [("argument", value), ("value", value), ("error", text)]
        + [(name, pa.int64()) for name in ("start", "end", "start_ns", "end_ns")]
    )


def client_rows(batch: pa.Table, *, buckets: int) -> pa.Table:
    """Kernel: the rows of clients of a batch, in buckets of processes."""
    process = batch["process"].to_numpy()
    own = batch.take(pa.array(np.flatnonzero(process != NEMESIS)))
    bucket = bucket_of(mixed(process[process != NEMESIS]), buckets)
    return own.add_column(0, "bucket", pa.array(bucket))


def paired_operations(rows: pa.Table, *, key: str, schema: pa.Schema, buckets: int) -> pa.Table:
    """Kernel over all rows of a bucket of processes: operations, in buckets of keys."""
    kind = pa.array(codes(rows["type"], TYPES).astype(np.int8))
    position, started = operations(rows.set_column(rows.schema.get_field_index("type"), "type", kind))
    ended, begun = (rows.take(pa.array(places)) for places in (position, started))
    is_open = pa.array(position == started)
    group = begun[key.partition(".")[0]]
    for name in key.split(".")[1:]:
        group = member(group, name)
    group = whole(group).cast(pa.string())
    columns = {
        "bucket": bucket_of(mixed_column(group), buckets),
        "group": group,
        "f": begun["f"],
        "key": begun["key"],
        "process": begun["process"],
        "type": pc.if_else(is_open, "info", whole(ended["type"]).cast(pa.string())),
        "argument": begun["value"],
        "value": ended["value"],
        "error": ended["error"],
        "start": begun["index"],
        "end": pc.if_else(is_open, None, ended["index"]),
        "start_ns": begun["time"],
        "end_ns": pc.if_else(is_open, None, ended["time"]),
    }
    return pa.table(columns).cast(schema)


def findings_of_keys(paired: pa.Table, *, checker: PerKey, excuses: Excuses) -> pa.Table:
    """Kernel over all operations of a bucket of keys."""
    findings = Findings()
    found: dict[str, list[Example]] = {}
    keys = 0
    for table in groups(paired, ("group",)):
        keys += 1
        columns = table.select(PairedOperation._fields).sort_by("start").to_pydict()
        for one in checker.found_of([PairedOperation(*row) for row in zip(*columns.values(), strict=True)]):
            example = Example(
                key=one.key or table["group"][0].as_py(),
                operations=tuple(sorted(set(one.operations))),
                because=one.because,
                details=one.details,
            )
            found.setdefault(one.name, []).append(example)
    findings.tally("keys", keys)
    findings.tally("operations", paired.num_rows)
    for name, examples in found.items():
        examples.sort(key=lambda one: (one.operations, one.key or "", one.because))
        begun, ended = (np.array([one.operations[at] for one in examples], dtype=np.int64) for at in (0, -1))
        for excuse, some in excuses.split(name, begun, ended):
            findings.add(name, len(some), [examples[place] for place in some[:EXAMPLES].tolist()], excuse)
    return findings.table()
