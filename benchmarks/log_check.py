"""How long the log check of a big history takes, from Parquet, on Spark.

    python benchmarks/log_check.py [--operations 1000000] [--master local[2] | --in-process] [--seed 1]

The history is made up, and the same for the same seed: 8 producers and 8 consumers on 4 queues, every two of them on
one; 1 % of sends time out (half of them were written), 1 % fail; every consumer reads everything; in the end three
replicas are read from the start, 32 messages at a time. An operation is two rows: invocation and completion.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from measured import measured

from checkers.api.plan import CheckRequest, Engine
from checkers.in_process.engine import InProcessEngine
from checkers.log import LogChecker
from harness.record.history import history_schema

VALUE = pa.struct(
    [
        pa.field("message", pa.int64()),
        pa.field("offset", pa.int64()),
        pa.field("messages", pa.list_(pa.struct([pa.field("offset", pa.int64()), pa.field("message", pa.int64())]))),
    ]
)
SCHEMA = history_schema(VALUE)
QUEUES, PROCESSES, REPLICAS, FINAL_BATCH = 4, 16, 3, 32
PRODUCERS = PROCESSES // 2
ROUNDS_AT_ONCE = 4_096
ROW_GROUP_ROWS = 65_536
TYPES = ("invoke", "ok", "fail", "info")
FUNCTIONS = ("send", "poll", "final-poll", "caught-up")

Int64 = npt.NDArray[np.int64]


class LogHistory:
    """Rounds: all processes invoke, then all complete. State is what was written, by queue."""

    def __init__(self, operations: int, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        # Final reads take a share of the operations: what was sent, by each replica, a batch at a time.
        self._rounds = int(operations / (PROCESSES + PRODUCERS * REPLICAS / FINAL_BATCH))
        self._rows = 0
        self._lives = np.zeros(PROCESSES, dtype=np.int64)
        self._written: list[list[Int64]] = [[] for _ in range(QUEUES)]
        self._length = np.zeros(QUEUES, dtype=np.int64)

    def tables(self) -> Iterator[pa.Table]:
        for start in range(0, self._rounds, ROUNDS_AT_ONCE):
            yield self._storm(np.arange(start, min(start + ROUNDS_AT_ONCE, self._rounds)))
        for replica in range(REPLICAS):
            for queue in range(QUEUES):
                yield self._final(replica, queue)

    def _storm(self, rounds: Int64) -> pa.Table:
        n = len(rounds)
        message = rounds[:, None] * PRODUCERS + np.arange(PRODUCERS)
        fate = self._random.random((n, PRODUCERS))
        send_type = np.where(fate < 0.98, 1, np.where(fate < 0.99, 2, 3))
        written = (fate < 0.98) | (fate >= 0.995)
        offset = np.full((n, PRODUCERS), -1, dtype=np.int64)
        first = np.zeros((n, QUEUES), dtype=np.int64)
        before = self._length.copy()
        for queue in range(QUEUES):
            mine = written[:, queue::QUEUES]
            place = before[queue] + np.cumsum(mine.ravel()).reshape(mine.shape) - 1
            offset[:, queue::QUEUES] = np.where(mine, place, -1)
            first[:, queue] = np.concatenate(([before[queue]], place[:-1, -1] + 1))
            self._written[queue].append(message[:, queue::QUEUES][mine])
            self._length[queue] += mine.sum()
        reads = np.concatenate((first[1:], self._length[None]))[:, np.arange(PRODUCERS) % QUEUES]
        reads_from = first[:, np.arange(PRODUCERS) % QUEUES]

        # A process that timed out goes on under a new number, from the next round on.
        died = np.zeros((n, PROCESSES), dtype=np.int64)
        died[:, :PRODUCERS] = send_type == 3
        lives = self._lives + np.cumsum(died, axis=0) - died
        self._lives += died.sum(axis=0)
        process = lives * PROCESSES + np.arange(PROCESSES)

        shape = (n, 2, PROCESSES)
        types = np.zeros(shape, dtype=np.int64)
        types[:, 1, :PRODUCERS], types[:, 1, PRODUCERS:] = send_type, 1
        f = np.broadcast_to(np.repeat((0, 1), PRODUCERS), shape)
        none = np.full(shape, -1, dtype=np.int64)
        messages, offsets, start, end = none.copy(), none.copy(), np.zeros_like(none), np.zeros_like(none)
        messages[:, :, :PRODUCERS] = message[:, None]
        offsets[:, 1, :PRODUCERS] = np.where(send_type == 1, offset, -1)
        offsets[:, :, PRODUCERS:] = reads_from[:, None]
        start[:, 1, PRODUCERS:], end[:, 1, PRODUCERS:] = reads_from, reads
        queue_of = np.broadcast_to(np.arange(PROCESSES) % QUEUES, shape)
        log = [np.concatenate(parts[-1:]) for parts in self._written]
        counts = (end - start).ravel()
        at = np.repeat(start.ravel() - np.concatenate(([0], np.cumsum(counts)[:-1])), counts) + np.arange(counts.sum())
        queue_at = np.repeat(queue_of.ravel(), counts)
        content = np.empty(len(at), dtype=np.int64)
        for queue in range(QUEUES):
            content[queue_at == queue] = log[queue][at[queue_at == queue] - before[queue]]
        is_poll = (types == 1) & (f == 1)
        return self._table(
            process=np.broadcast_to(process[:, None], shape).ravel(),
            types=types.ravel(),
            f=f.ravel(),
            queue=queue_of.ravel(),
            node=np.where(types == 1, 0, -1).ravel(),
            message=messages.ravel(),
            offset=offsets.ravel(),
            counts=counts,
            has_list=is_poll.ravel(),
            read_offsets=at,
            read_messages=content,
        )

    def _final(self, replica: int, queue: int) -> pa.Table:
        log = np.concatenate(self._written[queue])
        polls = -(-len(log) // FINAL_BATCH)
        rows = 2 * (polls + 1)
        types = np.tile((0, 1), polls + 1)
        f = np.full(rows, 2)
        f[-2:] = 3
        offset = np.repeat(np.append(np.arange(polls) * FINAL_BATCH, len(log)), 2)
        counts = np.zeros(rows, dtype=np.int64)
        counts[1:-2:2] = np.minimum(len(log) - offset[1:-2:2], FINAL_BATCH)
        return self._table(
            process=np.full(rows, 1_000_000_000 + replica * QUEUES + queue),
            types=types,
            f=f,
            queue=np.full(rows, queue),
            node=np.where(types == 1, replica, -1),
            message=np.full(rows, -1),
            offset=offset,
            counts=counts,
            has_list=(types == 1) & (f == 2),
            read_offsets=np.arange(len(log)),
            read_messages=log,
        )

    def _table(
        self,
        *,
        process: Int64,
        types: Int64,
        f: Int64,
        queue: Int64,
        node: Int64,
        message: Int64,
        offset: Int64,
        counts: Int64,
        has_list: npt.NDArray[np.bool_],
        read_offsets: Int64,
        read_messages: Int64,
    ) -> pa.Table:
        rows = len(process)
        index = np.arange(self._rows, self._rows + rows)
        self._rows += rows
        elements = pa.StructArray.from_arrays([pa.array(read_offsets), pa.array(read_messages)], ["offset", "message"])
        bounds = np.append(0, np.cumsum(counts)).astype(np.int32)
        lists = pa.ListArray.from_arrays(pa.array(bounds), elements, mask=pa.array(~has_list))
        value = pa.StructArray.from_arrays(
            [pa.array(message, mask=message < 0), pa.array(offset, mask=offset < 0), lists], fields=list(VALUE)
        )
        columns = {
            "index": pa.array(index),
            "time": pa.array(index * 1_000),
            "process": pa.array(process, pa.int32()),
            "type": names_column(types, TYPES),
            "f": names_column(f, FUNCTIONS),
            "key": names_column(queue, [f"topic/{number}" for number in range(QUEUES)]).dictionary_decode(),
            "value": value,
            "error": pa.nulls(rows, pa.string()),
            "node": names_column(node, [f"b{number}" for number in range(REPLICAS)]).dictionary_decode(),
        }
        return pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)


def names_column(numbers: Int64, names: list[str] | tuple[str, ...]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int32(), mask=numbers < 0), pa.array(names))


def write_history(path: Path, operations: int, seed: int) -> int:
    """Returns the number of rows."""
    rows = 0
    with pq.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
        for table in LogHistory(operations, seed).tables():
            writer.write_table(table.cast(SCHEMA), row_group_size=ROW_GROUP_ROWS)
            rows += table.num_rows
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operations", type=int, default=1_000_000)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--in-process", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "history.parquet"
        rows = write_history(path, arguments.operations, arguments.seed)
        print(f"{rows // 2} operations, {path.stat().st_size >> 20} MiB of Parquet", flush=True)
        with measured() as whole:
            engine = make_engine(arguments.master, arguments.in_process)
            with measured() as check:
                result = LogChecker().check(CheckRequest(history=path), engine)
    print(f"{engine.name}: {result.verdict.value} {dict(result.anomalies)} {dict(result.statistics)}")
    print(f"check: {check}")
    print(f"with the start of the engine: {whole.seconds:.1f} s; {rows / 2 / check.seconds:,.0f} operations/s")


def make_engine(master: str, in_process: bool) -> Engine:
    if in_process:
        return InProcessEngine()
    from checkers.spark.engine import SparkEngine
    from checkers.spark.session import spark_session

    return SparkEngine(spark_session(master))


if __name__ == "__main__":
    main()
