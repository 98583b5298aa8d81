"""How long the register check of a big history takes, from Parquet, on Spark.

    python benchmarks/register_check.py [--operations 1000000] [--keys 1000] [--master local[2] | --in-process]

The history is made up, linearizable, and the same for the same seed: 16 processes in groups of four; in each round
each group takes the next key, one process writes a value never used before, three read what is there before or after.
1 % of the writes time out, half of them took effect. An operation is two rows: invocation and completion.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from log_check import ROW_GROUP_ROWS, TYPES, make_engine, names_column
from measured import measured

from checkers.linearizable import MODELS, Linearizable
from checkers.plan import CheckRequest
from harness.history import history_schema

VALUE = pa.struct([pa.field("value", pa.int64()), pa.field("expected", pa.int64())])
SCHEMA = history_schema(VALUE)
GROUPS, IN_GROUP = 4, 4
PROCESSES = GROUPS * IN_GROUP
FUNCTIONS = ("read", "write")


def register_history(operations: int, keys: int, seed: int) -> pa.Table:
    """All rows; bounded by memory, which a million operations do not trouble."""
    random = np.random.default_rng(seed)
    visits = -(-operations // (keys * IN_GROUP))
    rounds = visits * keys // GROUPS
    fate = random.random((visits, keys))
    took_effect = fate >= 0.005
    is_info = fate < 0.01
    written = np.arange(visits * keys).reshape(visits, keys)
    # The value after each visit: that of the last write that took effect, -1 for null.
    after = np.maximum.accumulate(np.where(took_effect, written, -1), axis=0)
    before = np.concatenate((np.full((1, keys), -1), after[:-1]))

    shape = (rounds, 2, GROUPS, IN_GROUP)
    by_group = (rounds, GROUPS)
    reads_new = random.random((rounds, GROUPS, IN_GROUP - 1)) < 0.5
    value = np.full(shape, -1, dtype=np.int64)
    value[:, :, :, 0] = written.reshape(by_group)[:, None]
    new, old = after.reshape(by_group)[:, :, None], before.reshape(by_group)[:, :, None]
    value[:, 1, :, 1:] = np.where(reads_new, new, old)
    types = np.zeros(shape, dtype=np.int64)
    types[:, 1] = 1
    died = is_info.reshape(by_group)
    types[:, 1, :, 0] = np.where(died, 3, 1)
    process = np.broadcast_to(np.arange(PROCESSES).reshape(GROUPS, IN_GROUP), shape).copy()
    process[:, :, :, 0] += (PROCESSES * (np.cumsum(died, axis=0) - died))[:, None]
    key = np.broadcast_to((np.arange(rounds * GROUPS) % keys).reshape(rounds, 1, GROUPS, 1), shape)
    f = np.broadcast_to(np.array([1, 0, 0, 0]), shape)

    rows = value.size
    values, index = value.ravel(), np.arange(rows)
    columns = {
        "index": pa.array(index),
        "time": pa.array(index * 1_000),
        "process": pa.array(process.ravel(), pa.int32()),
        "type": names_column(types.ravel(), TYPES),
        "f": names_column(f.ravel(), FUNCTIONS),
        "key": names_column(key.ravel(), [f"r{number}" for number in range(keys)]).dictionary_decode(),
        "value": pa.StructArray.from_arrays(
            [pa.array(values, mask=values < 0), pa.nulls(rows, pa.int64())], fields=list(VALUE)
        ),
        "error": pa.nulls(rows, pa.string()),
        "node": pa.nulls(rows, pa.string()),
    }
    return pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operations", type=int, default=1_000_000)
    parser.add_argument("--keys", type=int, default=1_000, help="a multiple of 4")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--in-process", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "history.parquet"
        table = register_history(arguments.operations, arguments.keys, arguments.seed)
        pq.write_table(table, path, compression="zstd", row_group_size=ROW_GROUP_ROWS)
        rows = table.num_rows
        del table
        print(f"{rows // 2} operations, {path.stat().st_size >> 20} MiB of Parquet", flush=True)
        with measured() as whole:
            engine = make_engine(arguments.master, arguments.in_process)
            with measured() as check:
                result = Linearizable(MODELS["register"]).check(CheckRequest(history=path), engine)
    print(f"{engine.name}: {result.verdict.value} {dict(result.anomalies)} {dict(result.statistics)}")
    print(f"check: {check}")
    print(f"with the start of the engine: {whole.seconds:.1f} s; {rows / 2 / check.seconds:,.0f} operations/s")


if __name__ == "__main__":
    main()
