"""How long the check of registers takes, from Parquet, on Spark or in this process.

    python benchmarks/register_check.py [--operations 1000000] [--keys 1000] [--clients 20] [--indefinite 0.01]
                                        [--planted] [--master local[2] | --in-process]

The history is made up, and the same for the same seed: atomic registers and clients that are always busy, as in
`objects.py`; clients turn to the next register together, after 64 operations. No value is written twice. With --planted
one read, late in the history, returns what was there long before. An operation is two rows: invocation and completion.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from log_check import ROW_GROUP_ROWS, TYPES, make_engine, names_column
from measured import measured
from objects import INFO, OK, SCHEMA, VALUE, timeline

from checkers.api.plan import CheckRequest
from checkers.kernels.columns import NONE, Int8, Int64
from checkers.linearizable.checker import Linearizable
from checkers.linearizable.objects import MODELS
from harness.compiled import compiled

FUNCTIONS = ("read", "write")
AT_ONCE = 1_000_000
"""Operations made up at once; all clients have ended what they began when the next ones begin."""
TURN = 64


def write_history(
    path: Path, *, operations: int, keys: int, clients: int, indefinite: float, planted: bool, seed: int
) -> int:
    """Returns how many rows it has."""
    rows = 0
    with pq.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
        for table in tables(operations, keys, clients, indefinite, planted, np.random.default_rng(seed)):
            writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
            rows += table.num_rows
    return rows


def tables(
    operations: int, keys: int, clients: int, indefinite: float, planted: bool, random: np.random.Generator
) -> Iterator[pa.Table]:
    held = np.full(keys, NONE, dtype=np.int64)
    names = [f"r{number}" for number in range(keys)]
    first_process = 0
    for begun in range(0, operations, AT_ONCE):
        count = min(AT_ONCE, operations - begun)
        when = timeline(count, clients, indefinite, random)
        key = (begun + np.arange(count)) // TURN % keys
        f = (random.random(count) < 0.5).astype(np.int8)
        argument = np.where(f == 0, NONE, begun + random.permutation(count))
        result = np.full(count, NONE, dtype=np.int64)
        result[when.effects] = registers(f[when.effects], key[when.effects], argument[when.effects], held)
        if planted and begun + count == operations:
            reads = when.effects[(f == 0)[when.effects] & when.definite[when.effects] & (key == key[-1])[when.effects]]
            result[reads[len(reads) * 9 // 10]] = result[reads[len(reads) // 10]]

        order = np.argsort(np.concatenate((when.start, when.end)), kind="stable")
        twice = np.concatenate((np.arange(count), np.arange(count)))[order]
        completes = order >= count
        value = np.where(completes & when.definite[twice], result[twice], argument[twice])
        types = np.where(completes, np.where(when.definite, OK, INFO)[twice], 0)
        index = 2 * begun + np.arange(2 * count)
        columns = {
            "index": pa.array(index),
            "time": pa.array(index * 1_000),
            "process": pa.array(first_process + when.process[twice], pa.int32()),
            "type": names_column(types, TYPES),
            "f": names_column(f[twice].astype(np.int64), FUNCTIONS),
            "key": names_column(key[twice], names).dictionary_decode(),
            "value": pa.StructArray.from_arrays(
                [pa.array(value, mask=value == NONE), pa.nulls(2 * count, pa.int64())], fields=list(VALUE)
            ),
            "error": pa.nulls(2 * count, pa.string()),
            "node": pa.nulls(2 * count, pa.string()),
        }
        first_process += int(when.process.max()) + clients
        yield pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)


@compiled
def registers(f: Int8, key: Int64, argument: Int64, held: Int64) -> Int64:
    """What operations return, in the order in which they take effect; `held` is what each register holds."""
    result = argument.copy()
    for i in range(len(f)):
        if f[i] == 0:
            result[i] = held[key[i]]
        else:
            held[key[i]] = argument[i]
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operations", type=int, default=1_000_000)
    parser.add_argument("--keys", type=int, default=1_000)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--indefinite", type=float, default=0.01)
    parser.add_argument("--planted", action="store_true", help="spoil an answer")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--in-process", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "history.parquet"
        rows = write_history(
            path,
            operations=arguments.operations,
            keys=arguments.keys,
            clients=arguments.clients,
            indefinite=arguments.indefinite,
            planted=arguments.planted,
            seed=arguments.seed,
        )
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
