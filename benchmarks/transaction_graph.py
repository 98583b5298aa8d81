"""How long the search for cycles among the dependencies of many transactions takes, from Parquet.

    python benchmarks/transaction_graph.py [--transactions 1000000] [--master local[2] | --in-process] [--seed 1]

Dependencies are made up: 20 processes run one transaction after the other, each takes effect at some time between its
ends, and three dependencies a transaction lead to later ones in the order of effects. Sparse: those are far away but
for one in 10,000, so that few edges run against the order of completions and the graph falls into small units.
Crowded: they are among the next 40, so that the whole history is one unit. Both are searched twice: as they are,
without a cycle, and with stale reads (RW edges back over 100 effects) that make cycles: one in a million transactions,
at least 10.
"""

from __future__ import annotations

import argparse
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from log_check import make_engine
from measured import measured

from checkers.api.plan import Dataset, Engine
from checkers.kernels.columns import OK
from checkers.transactions.elle.edges import EDGES, NODES, Dependency
from checkers.transactions.elle.graph.search import cycles
from harness.record.history import history_schema

PROCESSES = 20
ROW_GROUP_ROWS = 250_000
NEAR = 40
FAR = 100_000
STALE = 100

Int64 = npt.NDArray[np.int64]


def transactions(count: int, random: np.random.Generator) -> tuple[Int64, Int64, Int64, Int64]:
    """Beginnings and ends as history indices, processes, and the order of effects."""
    each = count // PROCESSES
    gaps = random.exponential(size=(PROCESSES, 2 * each))
    times = np.cumsum(gaps, axis=1).ravel()
    index = np.empty(len(times), dtype=np.int64)
    index[np.argsort(times)] = np.arange(len(times))
    start, end = index[::2], index[1::2]
    effect = np.argsort(start + random.random(len(start)) * (end - start))
    return start, end, np.repeat(np.arange(PROCESSES), each), effect


def written(path: Path, columns: dict[str, Int64], schema: pa.Schema) -> Path:
    arrays = [pa.array(columns[field.name].astype(field.type.to_pandas_dtype())) for field in schema]
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), path, row_group_size=ROW_GROUP_ROWS)
    return path


def made_up(directory: Path, count: int, seed: int, *, crowded: bool, stale: int) -> tuple[Path, Path]:
    """Files of NODES and EDGES."""
    random = np.random.default_rng(seed)
    start, end, process, effect = transactions(count, random)
    shape = (len(start), 3)
    near = random.integers(1, NEAR, shape)
    ahead = near if crowded else np.where(random.random(shape) < 1e-4, near, random.integers(1_000, FAR, shape))
    source = np.repeat(np.arange(len(start)), 3)
    target = source + ahead.ravel()
    kind = random.choice(np.array([Dependency.WW, Dependency.WR, Dependency.RW]), len(source))
    inside = target < len(start)
    back = random.choice(len(start) - STALE, stale, replace=False)
    source = effect[np.concatenate([source[inside], back + STALE])]
    target = effect[np.concatenate([target[inside], back])]
    nodes = {"start": start, "end": end, "process": process, "type": np.full(len(start), OK)}
    edges = {
        "kind": np.concatenate([kind[inside], np.full(stale, int(Dependency.RW))]),
        "source": start[source],
        "source_position": end[source],
        "target": start[target],
        "target_position": end[target],
    }
    return written(directory / "nodes.parquet", nodes, NODES), written(directory / "edges.parquet", edges, EDGES)


def stored(engine: Engine, path: Path) -> Dataset:
    """The rows of a file: one row of a small history stands for each of its row groups."""
    file = pq.ParquetFile(path)
    rows = [
        {"index": i, "time": i, "process": 0, "type": "invoke", "f": "f"} for i in range(file.metadata.num_row_groups)
    ]
    groups = path.with_suffix(".groups.parquet")
    pq.write_table(pa.Table.from_pylist(rows, schema=history_schema(pa.int64())), groups, row_group_size=1)
    return engine.mapped(engine.history(groups, ("index",)), partial(row_groups, path=path), file.schema_arrow)


def row_groups(batch: pa.Table, *, path: Path) -> pa.Table:
    return pq.ParquetFile(path).read_row_groups(batch["index"].to_pylist()).combine_chunks()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transactions", type=int, default=1_000_000)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--in-process", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    engine = make_engine(arguments.master, arguments.in_process)
    with tempfile.TemporaryDirectory() as directory:
        for density in ("sparse", "crowded"):
            for stale in (0, max(10, arguments.transactions // 1_000_000)):
                for count in (2_000, arguments.transactions):
                    paths = made_up(Path(directory), count, arguments.seed, crowded=density == "crowded", stale=stale)
                    nodes, edges = (stored(engine, path) for path in paths)
                    with measured() as search:
                        result = cycles(engine, nodes, edges)
                found = {name: of.count for name, of in result.found.items()}
                print(f"{density}, {stale} stale reads, {engine.name}: {found} {result.undecided}")
                print(f"search: {search}; {count / search.seconds:,.0f} transactions/s", flush=True)


if __name__ == "__main__":
    main()
