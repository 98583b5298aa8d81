"""How long the queue and set checks of a big history take, from Parquet.

    python benchmarks/multiset_checks.py [--operations 1000000] [--master local[2] | --in-process] [--seed 1]

Both histories are made up, valid, and the same for the same seed. Queue: 8 producers and 8 consumers; every round all
invoke, then all complete; 1 % of the enqueues time out (half of them took effect). What is left is drained. Set: 16
processes add, 1 % time out; then it is read once, by each of 4 readers. An operation is two rows.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from log_check import ROW_GROUP_ROWS, TYPES, make_engine, names_column
from measured import measured

from checkers.api.plan import CheckRequest
from checkers.elements.rows import ELEMENTS
from harness.record.history import history_schema
from stormproof.session.check_spec import checker_for

SCHEMA = history_schema(ELEMENTS)
PROCESSES = 16
FUNCTIONS = {"queue": ("enqueue", "dequeue", "drain"), "set": ("add", "", "read")}
FINAL = 2
READERS = {"queue": 1, "set": 4}

Int64 = npt.NDArray[np.int64]


def storm(workload: str, operations: int, seed: int) -> tuple[pa.Table, Int64]:
    """Rows of the rounds, and the elements that are left at their end."""
    random = np.random.default_rng(seed)
    producers = PROCESSES // 2 if workload == "queue" else PROCESSES
    rounds = operations // PROCESSES
    element = np.arange(rounds * producers).reshape(rounds, producers)
    fate = random.random(element.shape)
    died, there = fate < 0.01, fate >= 0.005
    f = np.zeros((rounds, 2, PROCESSES), dtype=np.int64)
    types = np.zeros_like(f)
    types[:, 1] = 1
    types[:, 1, :producers] = np.where(died, 3, 1)
    value = np.full_like(f, -1)
    value[:, :, :producers] = element[:, None]
    process = np.broadcast_to(np.arange(PROCESSES), f.shape).copy()
    process[:, :, :producers] += (PROCESSES * (np.cumsum(died, axis=0) - died))[:, None]
    left = element[there]
    if workload == "queue":
        f[:, :, producers:] = 1
        # Consumers take in turn what came a round before, as far as it is there.
        taken = np.where(there, element, -1)[:-1]
        value[1:, 1, producers:] = taken
        left = element[-1][there[-1]]
    return table_of(workload, f.ravel(), types.ravel(), process.ravel(), value.ravel(), first=0), left


def final(workload: str, left: Int64, first: int) -> pa.Table:
    readers = READERS[workload]
    process = np.repeat(np.arange(readers), 2) + (1 << 30)
    types = np.tile([0, 1], readers)
    nothing = np.full(2 * readers, -1)
    lists = pa.array([None, left] * readers, pa.list_(pa.int64()))
    return table_of(workload, np.full(2 * readers, FINAL), types, process, nothing, first=first, lists=lists)


def table_of(
    workload: str, f: Int64, types: Int64, process: Int64, value: Int64, *, first: int, lists: pa.Array | None = None
) -> pa.Table:
    rows = len(f)
    index = np.arange(first, first + rows)
    values = pa.nulls(rows, pa.list_(pa.int64())) if lists is None else lists
    columns = {
        "index": pa.array(index),
        "time": pa.array(index * 1_000),
        "process": pa.array(process, pa.int32()),
        "type": names_column(types, TYPES),
        "f": names_column(f, FUNCTIONS[workload]),
        "key": names_column(np.zeros(rows, dtype=np.int64), ["k"]).dictionary_decode(),
        "value": pa.StructArray.from_arrays([pa.array(value, mask=value < 0), values], fields=list(ELEMENTS)),
        "error": pa.nulls(rows, pa.string()),
        "node": pa.nulls(rows, pa.string()),
    }
    return pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operations", type=int, default=1_000_000)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--in-process", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    engine = make_engine(arguments.master, arguments.in_process)
    with tempfile.TemporaryDirectory() as directory:
        for workload in sorted(FUNCTIONS):
            path = Path(directory) / f"{workload}.parquet"
            warm = Path(directory) / f"{workload}-warm.parquet"
            for target, operations in ((warm, 1_000), (path, arguments.operations)):
                rows, left = storm(workload, operations, arguments.seed)
                with pq.ParquetWriter(target, SCHEMA, compression="zstd") as writer:
                    writer.write_table(rows, row_group_size=ROW_GROUP_ROWS)
                    writer.write_table(final(workload, left, rows.num_rows))
            operations = rows.num_rows // 2
            del rows
            checker = checker_for(workload, {})
            checker.check(CheckRequest(history=warm), engine)
            with measured() as check:
                result = checker.check(CheckRequest(history=path), engine)
            print(f"{workload}, {engine.name}: {result.verdict.value} {result.reasons} {dict(result.statistics)}")
            print(f"check: {check}; {operations / check.seconds:,.0f} operations/s", flush=True)


if __name__ == "__main__":
    main()
