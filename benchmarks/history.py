"""Rows a second that a history takes while a test runs, when it is closed, and when it is read and validated.

python benchmarks/history.py [--rows 1000000]
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import pyarrow as pa

from harness.operation import Operation
from harness.record.history import HistoryWriter, read_history

POLLED = pa.list_(pa.struct([("offset", pa.int64()), ("message", pa.int64())]))
VALUE = pa.struct([("message", pa.int64()), ("offset", pa.int64()), ("messages", POLLED)])
PROCESSES = 20


def say(what: str, rows: int, since: float) -> None:
    seconds = time.perf_counter() - since
    print(f"{what:24} {rows / seconds:12,.0f} rows/s  ({seconds:.2f} s)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "history.arrows"
        writer = HistoryWriter(path, VALUE)
        begun = time.perf_counter()
        for number in range(rows // 2):
            process, key, now = number % PROCESSES, f"t/{number % 8}", number * 1000
            value = {"message": number, "offset": None, "messages": None}
            writer.append(Operation(process, "invoke", "send", value, key, now))
            writer.append(
                Operation(process, "ok", "send", {**value, "offset": number // 8}, key, now + 500, None, "b1")
            )
        writer.flush()
        say("append, durable", rows, begun)
        begun = time.perf_counter()
        closed = writer.close()
        say("close into Parquet", rows, begun)
        begun = time.perf_counter()
        read_history(closed)
        say("read and validate", rows, begun)
        print(
            f"{closed.stat().st_size / rows:.1f} bytes a row, at most "
            f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB resident"
        )


if __name__ == "__main__":
    main()
