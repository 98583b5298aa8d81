"""How long the checks of causes and orders of a big history take, from Parquet.

    python benchmarks/order_checks.py [--operations 1000000] [--master local[2] | --in-process] [--only causal]

All histories are made up, valid, and the same for the same seed; 16 processes take turns, and every operation is over
before the next one begins. An operation is two rows. long-fork: two registers are written, each once, with a read of
both between and behind. causal: one object of 1,000 registers, transactions of a read and a write. monotonic:
1,000 registers that grow. causal-reverse: 1,000 tables, a read of the last 10 rows of a table at each tenth operation.
queue: promised order of producers, one queue, elements taken out in turn.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from log_check import ROW_GROUP_ROWS, make_engine
from measured import measured

from checkers.api.plan import CheckRequest
from checkers.transactions.history.micro_operations import MICRO_OPERATION
from harness.record.history import history_schema
from stormproof.session.check_spec import checker_for
from stormproof.session.registry import workload as workload_named

PROCESSES = 16
REGISTERS = 1_000
Int64 = npt.NDArray[np.int64]
Columns = tuple[pa.Array, pa.Array, pa.Array]
"""f, key and value of each row."""


def both(asked: pa.Array, answered: pa.Array) -> pa.Array:
    """Invocations and completions in turn."""
    return pa.concat_arrays([asked, answered]).take(pa.array(np.arange(2 * len(asked)).reshape(2, -1).T.ravel()))


def structs(workload: str, **columns: pa.Array) -> pa.Array:
    kind = workload_named(workload).value_type
    rows = len(next(iter(columns.values())))
    return pa.StructArray.from_arrays(
        [columns.get(field.name, pa.nulls(rows, field.type)) for field in kind], fields=list(kind)
    )


def transactions(
    workload: str, first: Int64, f: list[str], key: Int64, value: Int64, is_null: npt.NDArray[np.bool_]
) -> pa.Array:
    parts = pa.StructArray.from_arrays(
        [
            pa.array(f),
            pa.array(key).cast(pa.string()),
            pa.array(value, mask=is_null),
            pa.nulls(len(key), pa.list_(pa.int64())),
        ],
        fields=list(MICRO_OPERATION),
    )
    lists = pa.ListArray.from_arrays(pa.array(first, pa.int32()), parts)
    return structs(workload, txn=lists.cast(workload_named(workload).value_type.field("txn").type))


def long_fork(operations: int) -> Columns:
    groups = operations // 4
    x, y = np.arange(groups) * 2, np.arange(groups) * 2 + 1
    key = np.stack((x, x, y, y, x, y), axis=1).ravel()
    f = ["w", "r", "r", "w", "r", "r"] * groups
    first = np.concatenate(([0], np.cumsum(np.tile([1, 2, 1, 2], groups))))
    ones = np.ones(len(key), dtype=np.int64)
    is_read = np.tile([False, True, True, False, True, True], groups)
    unseen = np.tile([False, False, True, False, False, False], groups)
    asked, answered = (transactions("long-fork", first, f, key, ones, nulls) for nulls in (is_read, unseen))
    return pa.array(["txn"] * 8 * groups), pa.nulls(8 * groups, pa.string()), both(asked, answered)


def causal(operations: int) -> Columns:
    rng = np.random.default_rng(1)
    writes = rng.integers(0, REGISTERS, operations)
    reads = rng.integers(0, REGISTERS, operations)
    latest = np.full(REGISTERS, -1, dtype=np.int64)
    shown = np.empty(operations, dtype=np.int64)
    for number in range(operations):
        shown[number] = latest[reads[number]]
        latest[writes[number]] = number + 1
    key = np.stack((reads, writes), axis=1).ravel()
    value = np.stack((shown, np.arange(1, operations + 1)), axis=1).ravel()
    first = np.arange(operations + 1) * 2
    is_read = np.tile([True, False], operations)
    f = ["r", "w"] * operations
    asked, answered = (transactions("causal", first, f, key, value, nulls) for nulls in (is_read, value < 0))
    return pa.array(["txn"] * 2 * operations), pa.nulls(2 * operations, pa.string()), both(asked, answered)


def monotonic(operations: int) -> Columns:
    number = np.arange(operations)
    key = pa.array(np.repeat(number % REGISTERS, 2)).cast(pa.string())
    answered = structs("monotonic", value=pa.array(number // REGISTERS), timestamp=pa.array(number))
    asked = structs("monotonic", value=pa.nulls(operations, pa.int64()))
    return pa.array(["inc"] * 2 * operations), key, both(asked, answered)


def causal_reverse(operations: int) -> Columns:
    number = np.arange(operations)
    is_read = number % 10 == 9
    f = pa.array(["write", "read"]).take(pa.array(np.repeat(is_read.astype(np.int64), 2)))
    table = number // 10 % REGISTERS
    value = pa.array(number, mask=is_read)
    sizes = np.where(is_read, 9, 0)
    elements = number[~is_read][: int(sizes.sum())]
    # Each table has its rows of this round alone: rows of earlier rounds are in tables of their own.
    table = table + REGISTERS * (number // (10 * REGISTERS))
    lists = pa.ListArray.from_arrays(pa.array(np.concatenate(([0], np.cumsum(sizes))), pa.int32()), pa.array(elements))
    asked = structs("causal-reverse", value=value)
    answered = structs("causal-reverse", value=value, values=lists)
    return f, pa.array(np.repeat(table, 2)).cast(pa.string()), both(asked, answered)


def queue(operations: int) -> Columns:
    number = np.arange(operations)
    is_taken = number % 2 == 1
    f = pa.array(["enqueue", "dequeue"]).take(pa.array(np.repeat(is_taken.astype(np.int64), 2)))
    asked = structs("queue", value=pa.array(number, mask=is_taken))
    answered = structs("queue", value=pa.array(number - is_taken))
    return f, pa.array(["q"] * 2 * operations), both(asked, answered)


MADE: dict[str, tuple[Callable[[int], Columns], dict[str, str]]] = {
    "long-fork": (long_fork, {}),
    "causal": (causal, {}),
    "monotonic": (monotonic, {}),
    "causal-reverse": (causal_reverse, {}),
    "queue": (queue, {"order": "producer"}),
}


def write(workload: str, operations: int, path: Path) -> int:
    """Returns the number of operations."""
    f, key, value = MADE[workload][0](operations)
    rows = len(f)
    index = np.arange(rows)
    columns = {
        "index": pa.array(index),
        "time": pa.array(index * 1_000),
        "process": pa.array(index // 2 % PROCESSES, pa.int32()),
        "type": pa.array(["invoke", "ok"] * (rows // 2)).dictionary_encode(),
        "f": f.dictionary_encode(),
        "key": key,
        "value": value,
        "error": pa.nulls(rows, pa.string()),
        "node": pa.nulls(rows, pa.string()),
    }
    schema = history_schema(workload_named(workload).value_type)
    table = pa.table([columns[name] for name in schema.names], schema=schema)
    pq.write_table(table, path, row_group_size=ROW_GROUP_ROWS, compression="zstd")
    return rows // 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operations", type=int, default=1_000_000)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--in-process", action="store_true")
    parser.add_argument("--only", choices=sorted(MADE))
    arguments = parser.parse_args()
    engine = make_engine(arguments.master, arguments.in_process)
    with tempfile.TemporaryDirectory() as directory:
        for workload in [arguments.only] if arguments.only else MADE:
            path, warm = Path(directory) / f"{workload}.parquet", Path(directory) / f"{workload}-warm.parquet"
            write(workload, 10_000, warm)
            operations = write(workload, arguments.operations, path)
            checker = checker_for(workload, MADE[workload][1])
            checker.check(CheckRequest(history=warm), engine)
            with measured() as check:
                result = checker.check(CheckRequest(history=path), engine)
            print(f"{workload}, {engine.name}: {result.verdict.value} {result.reasons} {dict(result.statistics)}")
            print(f"check: {check}; {operations / check.seconds:,.0f} operations/s", flush=True)


if __name__ == "__main__":
    main()
